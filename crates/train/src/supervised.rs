//! The supervised baseline: the same networks, augmentation, optimiser and schedule, trained on labels.
//!
//! It stands beside the method and shares no step with it: [`train`](crate::train) takes a [`TrainingSet`], which has no
//! labels, and only this file takes a [`LabelledSet`], which has. The loss is the cross-entropy of the last layer's values
//! (`fc`, as many as there are classes); there are no rounds, no memory and no neighbourhoods.
//!
//! A run is a folder like any other, and `evaluate` judges its checkpoint like any other; its memory is empty. Stopped
//! anywhere and gone on with, it ends in the same bits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anchorhood_data::{Dataset, Feed, Labels, Loader};
use anchorhood_engine::{Device, Network, NetworkOptions};
use anchorhood_evaluate::CrossEntropy;

use crate::checkpoint::tensors_of;
use crate::saves::Saves;
use crate::{
    Checkpoint, CheckpointError, EpochEnded, Event, FeatureSource, InputForm, Outcome, Position,
    RunConfig, RunDir, RunEnded, Standing, TrainError, TrainingSet, VERSION,
};

/// Pictures with their labels, for the supervised baseline alone.
#[derive(Clone, Debug)]
pub struct LabelledSet {
    set: TrainingSet,
    labels: Labels,
}

impl LabelledSet {
    /// The training pictures of a data set and their labels, where it has them.
    pub fn of(data: &Dataset) -> Result<Self, TrainError> {
        let labels = data.train.labels.clone();
        let labels = labels.ok_or_else(|| TrainError::NoLabels {
            data: data.name.clone(),
        })?;
        Ok(LabelledSet {
            set: TrainingSet::of(data),
            labels,
        })
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.labels.classes().len()
    }
}

/// What supervision makes of a configuration: one round of all the epochs, a value of the result for each class, and
/// features that are computed when they are judged, there being no memory.
pub fn supervised_config(config: &RunConfig, classes: usize) -> RunConfig {
    let mut config = config.clone();
    config.training.rounds = 0;
    config.network.features = classes;
    config.evaluation.features = FeatureSource::Recomputed;
    config
}

/// Trains a run, made with a [`supervised_config`], to its end, from its last checkpoint if it has one. `observer` hears of
/// epochs; setting `stop` ends training after the step under way, saved.
pub fn train_supervised<D: Device>(
    device: &D,
    dir: &mut RunDir,
    data: &LabelledSet,
    observer: &mut (dyn FnMut(&Event) + Send),
    stop: &AtomicBool,
) -> Result<Outcome, TrainError> {
    let run = Supervised::new(device, dir, data, observer, stop)?;
    device.within(|| run.go())
}

struct Supervised<'a, D: Device> {
    device: &'a D,
    dir: &'a mut RunDir,
    data: &'a LabelledSet,
    observer: &'a mut (dyn FnMut(&Event) + Send),
    stop: &'a AtomicBool,
    network: D::Network,
    loss: CrossEntropy<D>,
    standing: Standing,
    clock: Instant,
    seconds_before: f64,
}

impl<'a, D: Device> Supervised<'a, D> {
    fn new(
        device: &'a D,
        dir: &'a mut RunDir,
        data: &'a LabelledSet,
        observer: &'a mut (dyn FnMut(&Event) + Send),
        stop: &'a AtomicBool,
    ) -> Result<Self, TrainError> {
        let config = dir.config().clone();
        let n = &config.network;
        let pictures = &data.set.pictures;
        if pictures.len() < 2 {
            return Err(TrainError::TooFewPictures {
                data: data.set.name.clone(),
                pictures: pictures.len(),
            });
        }
        let graph = n
            .architecture
            .graph(pictures.height(), n.width, n.features)?;
        // Unit length, the layer after it, is for features; a classifier's values may be as large as they like.
        let graph = graph.up_to(graph.find("fc")?);
        let batch = config.training.batch.min(pictures.len());
        let mut network = device.network(&graph, &NetworkOptions::new(batch))?;
        network.initialise(config.seed);
        let mut standing = Standing::default();
        let last = dir.checkpoint("last");
        if last.exists() {
            let checkpoint = Checkpoint::load(&last)?;
            let differences = checkpoint.config.differences(&config);
            if !differences.is_empty() {
                return Err(TrainError::OtherSettings {
                    path: last,
                    differences,
                });
            }
            if checkpoint.pictures != 0 {
                return Err(CheckpointError::Mismatch {
                    path: last,
                    reason: "it has a memory, so it was not trained on labels".into(),
                }
                .into());
            }
            checkpoint.check_pictures(&data.set, &last)?;
            checkpoint.restore(&mut network, true, &last)?;
            standing = checkpoint.standing;
        }
        standing.pictures = Some(pictures.len());
        dir.rewind_metrics(standing.metrics_bytes)?;
        Ok(Supervised {
            loss: CrossEntropy::new(device, data.classes())?,
            device,
            dir,
            data,
            observer,
            stop,
            network,
            standing,
            clock: Instant::now(),
            seconds_before: standing.seconds,
        })
    }

    fn go(mut self) -> Result<Outcome, TrainError> {
        if self.standing.position.round == 0 {
            let mut loader = self.loader()?;
            let mut saves = Saves::default();
            while self.standing.position.round == 0 {
                let at = self.standing.position;
                if !self.epoch(&mut loader)? {
                    self.save(self.standing.position)?;
                    return Ok(Outcome::Stopped(self.standing.position));
                }
                let over = self.standing.position.round > 0;
                if over || saves.due() {
                    let (begun, batch) = (Instant::now(), loader.batches_per_epoch());
                    self.save(Position { batch, ..at })?;
                    saves.written(begun);
                }
            }
        }
        Ok(Outcome::Finished(RunEnded {
            seconds: self.standing.seconds,
            loss: self.standing.last_loss.unwrap_or(f64::NAN),
            last: None,
            best: None,
        }))
    }

    fn loader(&self) -> Result<Loader, TrainError> {
        let config = self.dir.config();
        let set = &self.data.set;
        let feed = Feed {
            pictures: set.pictures.clone(),
            augmentation: config.augmentation.augmentation(),
            mean: set.mean,
            std: set.std,
            seed: config.seed,
            batch: self.network.batch(),
        };
        let at = self.standing.position;
        let threads = (config.machine.thread_count() / 4).max(1);
        Ok(Loader::start_at(
            at.epoch as u64,
            at.batch,
            feed,
            threads,
            4,
        )?)
    }

    /// Trains to the end of the epoch; false if it was asked to stop before.
    fn epoch(&mut self, loader: &mut Loader) -> Result<bool, TrainError> {
        let training = self.dir.config().training.clone();
        let at = self.standing.position;
        let rate = training.rate_in(at.epoch);
        let sgd = training.sgd(rate);
        let batches = loader.batches_per_epoch();
        let (clock, before) = (Instant::now(), self.standing.epoch_seconds);
        let mut labels = vec![];
        while self.standing.position.batch < batches {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let batch = loader.next().ok_or(TrainError::LoaderEnded)?;
            let number = (at.epoch * batches + self.standing.position.batch) as u64;
            labels.clear();
            labels.extend((batch.indices.iter()).map(|i| self.data.labels.get(*i as usize)));
            self.network.train_forward(&batch.pixels, number)?;
            let (logits, gradient) = self.network.output_and_gradient();
            let loss = self.loss.loss(self.device, logits, &labels, gradient)?;
            if !loss.is_finite() {
                let at = self.standing.position;
                return Err(self.dir.diverged("the loss", loss, at));
            }
            self.network.backward()?;
            self.network.update(&sgd)?;
            loader.recycle(batch);
            self.standing.loss_sum += loss;
            self.standing.position.batch += 1;
            self.standing.epoch_seconds = before + clock.elapsed().as_secs_f64();
        }
        let seconds = self.standing.epoch_seconds;
        let loss = self.standing.loss_sum / batches as f64;
        let ended = Event::EpochEnded(EpochEnded {
            round: 0,
            epoch: at.epoch,
            epochs: training.epochs,
            loss,
            rate,
            pictures_per_second: (batches * self.network.batch()) as f64 / seconds.max(1e-9),
            seconds,
        });
        self.dir.keep(&ended)?;
        (self.observer)(&ended);
        self.standing.last_loss = Some(loss);
        self.standing.loss_sum = 0.0;
        self.standing.epoch_seconds = 0.0;
        self.standing.position = at.next_epoch(training.epochs);
        Ok(true)
    }

    /// Keeps the run as it stands after the steps that `reached` counts.
    fn save(&mut self, reached: Position) -> Result<(), TrainError> {
        self.standing.seconds = self.seconds_before + self.clock.elapsed().as_secs_f64();
        self.standing.metrics_bytes = self.dir.metrics_bytes()?;
        let (weights, momentum) = tensors_of(&self.network)?;
        let set = &self.data.set;
        let checkpoint = Checkpoint {
            config: self.dir.config().clone(),
            standing: self.standing,
            program: VERSION.into(),
            input: Some(InputForm {
                size: set.pictures.height(),
                mean: set.mean,
                std: set.std,
            }),
            weights,
            momentum,
            pictures: 0,
            memory: vec![],
            neighbourhoods: None,
        };
        self.dir.check_finite(&checkpoint, reached)?;
        Ok(checkpoint.save(&self.dir.checkpoint("last"))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Preset;
    use anchorhood_engine::Cpu;

    fn small() -> (RunConfig, Dataset) {
        let mut config = Preset::Quick.config("shapes");
        config.data.shapes_train = 96;
        config.data.size = Some(16);
        config.network.width = 4;
        config.training.batch = 16;
        config.training.epochs = 20;
        // So few pictures are learnt by heart, and quickly if they always look the same.
        config.augmentation = crate::AugmentationConfig {
            crop_scale: (1.0, 1.0),
            crop_ratio: (1.0, 1.0),
            brightness: 0.0,
            contrast: 0.0,
            saturation: 0.0,
            hue: 0.0,
            grey: 0.0,
            flip: 0.0,
        };
        let data = anchorhood_data::open("shapes", &config.data.load_options(0)).unwrap();
        (supervised_config(&config, 10), data)
    }

    fn bits(checkpoint: &Checkpoint) -> Vec<u32> {
        let tensors = checkpoint.weights.iter().chain(&checkpoint.momentum);
        tensors
            .flat_map(|t| t.values.iter().map(|v| v.to_bits()))
            .collect()
    }

    /// The loss falls from about that of a guess (ln 10), and a run that was stopped ends in the same bits.
    #[test]
    fn it_learns_and_resumes_to_the_bit() {
        let (config, data) = small();
        let labelled = LabelledSet::of(&data).unwrap();
        let runs = tempfile::tempdir().unwrap();
        let device = Cpu::new(1);
        let no = AtomicBool::new(false);

        let mut dir = RunDir::create(runs.path(), "whole", &config).unwrap();
        let mut losses = vec![];
        let mut observer = |event: &Event| {
            if let Event::EpochEnded(e) = event {
                losses.push(e.loss);
            }
        };
        let whole = train_supervised(&device, &mut dir, &labelled, &mut observer, &no).unwrap();
        assert!(matches!(whole, Outcome::Finished(e) if e.loss.is_finite()));
        assert_eq!(losses.len(), 20);
        assert!(losses[0] > 1.5 && losses[19] < 1.0, "{losses:?}");
        let expected = Checkpoint::load(&dir.checkpoint("last")).unwrap();

        let mut dir = RunDir::create(runs.path(), "parts", &config).unwrap();
        let stop = AtomicBool::new(false);
        let mut observer = |event: &Event| {
            if matches!(event, Event::EpochEnded(e) if e.epoch == 2) {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let part = train_supervised(&device, &mut dir, &labelled, &mut observer, &stop).unwrap();
        assert!(matches!(part, Outcome::Stopped(p) if p.epoch == 3));
        let mut quiet = |_: &Event| {};
        train_supervised(&device, &mut dir, &labelled, &mut quiet, &no).unwrap();
        let resumed = Checkpoint::load(&dir.checkpoint("last")).unwrap();
        assert_eq!(bits(&resumed), bits(&expected));
    }

    /// A run that has taken a step does not go on with fewer pictures, nor with others in their places.
    #[test]
    fn it_does_not_go_on_with_other_pictures() {
        let (config, data) = small();
        let runs = tempfile::tempdir().unwrap();
        let device = Cpu::new(1);
        let mut dir = RunDir::create(runs.path(), "a", &config).unwrap();
        let stop = AtomicBool::new(false);
        let mut go = |data: &Dataset, until_epoch: Option<usize>| {
            let labelled = LabelledSet::of(data).unwrap();
            stop.store(false, Ordering::Relaxed);
            let mut observer = |event: &Event| {
                let ended = |e: &EpochEnded| until_epoch == Some(e.epoch);
                if matches!(event, Event::EpochEnded(e) if ended(e)) {
                    stop.store(true, Ordering::Relaxed);
                }
            };
            train_supervised(&device, &mut dir, &labelled, &mut observer, &stop)
        };
        go(&data, Some(0)).unwrap();
        let fewer = Dataset {
            train: data.train.clone().take(Some(95)),
            ..data.clone()
        };
        let message = go(&fewer, None).unwrap_err().to_string();
        assert!(message.contains("96 pictures") && message.contains("95"));
        let mut others = data.clone();
        others.mean[2] -= 1e-4;
        let message = go(&others, None).unwrap_err().to_string();
        assert!(message.contains("not the same"), "{message}");
        let went_on = go(&data, Some(1)).unwrap();
        assert!(matches!(went_on, Outcome::Stopped(p) if p.epoch == 2));
    }

    #[test]
    fn pictures_without_labels_are_refused() {
        let (_, mut data) = small();
        data.train.labels = None;
        assert!(matches!(
            LabelledSet::of(&data),
            Err(TrainError::NoLabels { .. })
        ));
    }
}
