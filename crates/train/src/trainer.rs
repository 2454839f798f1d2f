//! The state that training changes (weights, momentum, memory, neighbourhoods) and the step that changes it.

use std::path::Path;

use anchorhood_data::{Batch, Dataset, Feed, Pictures};
use anchorhood_discover::{Curriculum, MemoryBank, Neighbourhoods, neighbourhood_loss};
use anchorhood_engine::{
    Device, Network, NetworkOptions, Positives, Profile, Sgd, StepRule, Steps,
};

use crate::checkpoint::{Checkpoint, CheckpointError, InputForm, SavedNeighbourhoods, tensors_of};
use crate::feeding::{Feeding, Lead, fetch};
use crate::{FeatureSource, Position, RunConfig, Standing, TrainError, VERSION};

/// All that training may know of a data set: pictures, and no labels.
#[derive(Clone, Debug)]
pub struct TrainingSet {
    /// What to call it.
    pub name: String,
    /// The pictures.
    pub pictures: Pictures,
    /// Mean of each channel.
    pub mean: [f32; 3],
    /// Standard deviation of each channel.
    pub std: [f32; 3],
}

impl TrainingSet {
    /// The training pictures of a data set, without what else is known of them.
    pub fn of(data: &Dataset) -> Self {
        TrainingSet {
            name: data.name.clone(),
            pictures: data.train.pictures.clone(),
            mean: data.mean,
            std: data.std,
        }
    }
}

/// A network, its memory and its neighbourhoods in training.
pub struct Trainer<D: Device> {
    device: D,
    config: RunConfig,
    set: TrainingSet,
    network: D::Network,
    bank: MemoryBank<D>,
    neighbourhoods: Neighbourhoods,
    positives: Positives,
    losses: Vec<f32>,
    feeding: Option<Feeding<D>>,
}

impl<D: Device> Trainer<D> {
    /// A trainer at the beginning of a run; says what cannot be trained.
    pub fn new(device: &D, config: &RunConfig, set: TrainingSet) -> Result<Self, TrainError> {
        check_pictures(config, &set)?;
        let (n, k) = (set.pictures.len(), config.discovery.neighbours);
        let batch = config.training.batch.min(n);
        let mut network = network_for(device, config, &set, batch)?;
        network.initialise(config.seed);
        let bank = MemoryBank::new(device, n, config.network.features, config.seed)?;
        Ok(Trainer {
            device: device.clone(),
            config: config.clone(),
            network,
            bank,
            neighbourhoods: Neighbourhoods::single(n),
            positives: Positives::with_capacity(batch, batch * (k + 1)),
            losses: vec![0.0; batch],
            feeding: None,
            set,
        })
    }

    /// Pictures in a batch: the configured number, or all there are if fewer.
    pub fn batch(&self) -> usize {
        self.losses.len()
    }

    /// Batches in an epoch; a last one that is not full is left out.
    pub fn batches(&self) -> usize {
        self.set.pictures.len() / self.batch()
    }

    /// What it trains on.
    pub fn set(&self) -> &TrainingSet {
        &self.set
    }

    /// The network.
    pub fn network(&mut self) -> &mut D::Network {
        &mut self.network
    }

    /// The network and the memory, for an examiner.
    pub fn features(&mut self) -> (&mut D::Network, &MemoryBank<D>) {
        (&mut self.network, &self.bank)
    }

    /// What the last discovery found.
    pub fn neighbourhoods(&self) -> &Neighbourhoods {
        &self.neighbourhoods
    }

    /// Prepares batches from a position on: on the device if it can, else on threads of the host.
    pub fn begin(&mut self, from: Position) -> Result<(), TrainError> {
        self.begin_led(from, Lead::Any)
    }

    /// The same, with a say in who leads.
    pub fn begin_led(&mut self, from: Position, lead: Lead) -> Result<(), TrainError> {
        let threads = (self.config.machine.thread_count() / 4).max(1);
        let epoch = from.epochs_before(self.config.training.epochs);
        let feed = Feed {
            pictures: self.set.pictures.clone(),
            augmentation: self.config.augmentation.augmentation(),
            mean: self.set.mean,
            std: self.set.std,
            seed: self.config.seed,
            batch: self.batch(),
        };
        let from = (epoch as u64, from.batch);
        self.feeding = None; // its memory first
        let feeding = Feeding::start(&self.device, &self.network, feed, threads, lead, from)?;
        self.feeding = Some(feeding);
        self.tell_positives()
    }

    /// Whether the device leads the steps.
    pub fn device_leads(&self) -> bool {
        matches!(self.feeding, Some(Feeding::Device(_)))
    }

    /// Where the time of a step goes, on a device that leads; the training is over after it.
    pub fn profile(&mut self, sgd: &Sgd) -> Result<Option<Profile>, TrainError> {
        let rule = self.rule(sgd);
        let Some(Feeding::Device(feeding)) = &mut self.feeding else {
            return Ok(None);
        };
        let (network, keys) = (&mut self.network, self.bank.buffer_mut());
        Ok(Some(feeding.steps.profile(&rule, network, keys)?))
    }

    fn rule(&self, sgd: &Sgd) -> StepRule {
        let d = &self.config.discovery;
        StepRule {
            temperature: d.temperature as f32,
            blend: d.memory_rate as f32,
            sgd: *sgd,
        }
    }

    /// Ends the preparation of batches.
    pub fn end(&mut self) {
        self.feeding = None;
    }

    /// A device that leads steps itself must know every picture's positives.
    fn tell_positives(&mut self) -> Result<(), TrainError> {
        if let Some(Feeding::Device(feeding)) = &mut self.feeding {
            let n = self.set.pictures.len();
            let all: Vec<u32> = (0..n as u32).collect();
            let k = self.neighbourhoods.k();
            let mut positives = Positives::with_capacity(n, n * (k + 1));
            self.neighbourhoods.positives(&all, &mut positives);
            feeding.steps.set_positives(&positives)?;
        }
        Ok(())
    }

    /// Takes steps from `batch` of `epoch` (counted over all rounds) on, at most `most` and at least one, within the
    /// epoch; [`Trainer::begin`] must have been asked for these. Gives the loss of each; after one that is not finite the
    /// weights may be lost.
    pub fn advance(
        &mut self,
        (epoch, batch): (usize, usize),
        most: usize,
        sgd: &Sgd,
    ) -> Result<Vec<f64>, TrainError> {
        let batches = self.batches();
        let number = (epoch * batches + batch) as u64;
        match self.feeding.take() {
            None => Err(TrainError::LoaderEnded),
            Some(Feeding::Host(mut loader)) => {
                let next = loader.next().ok_or(TrainError::LoaderEnded)?;
                let loss = self.step(&next, number, sgd)?;
                loader.recycle(next);
                self.feeding = Some(Feeding::Host(loader));
                Ok(vec![loss])
            }
            Some(Feeding::Device(mut feeding)) => {
                let count = most.clamp(1, batches - batch);
                let rule = self.rule(sgd);
                let pictures = &self.set.pictures;
                feeding.seek(self.config.seed, pictures.len(), (epoch as u64, batch))?;
                feeding.steps.run(
                    count,
                    number,
                    &rule,
                    &|which, bytes| fetch(pictures, which, bytes),
                    &mut self.network,
                    self.bank.buffer_mut(),
                )?;
                feeding.moved(count);
                let losses = feeding.steps.losses()?;
                self.feeding = Some(Feeding::Device(feeding));
                Ok(losses.into_iter().map(f64::from).collect())
            }
        }
    }

    /// Finds the neighbourhoods of a round (from 1) in the memory, or in features computed now.
    pub fn discover(
        &mut self,
        round: usize,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<(), TrainError> {
        let d = &self.config.discovery;
        let share = Curriculum::from(d.curriculum).share(round, self.config.training.rounds);
        let recomputed;
        let bank = match d.discover_from {
            FeatureSource::Memory => &self.bank,
            FeatureSource::Recomputed => {
                let features = anchorhood_evaluate::extract(
                    &mut self.network,
                    &self.set.pictures,
                    self.set.mean,
                    self.set.std,
                    &|_| {},
                )?;
                recomputed =
                    MemoryBank::from_values(&self.device, &features, self.config.network.features)?;
                &recomputed
            }
        };
        self.neighbourhoods = Neighbourhoods::discover(
            &self.device,
            bank,
            d.neighbours,
            d.temperature as f32,
            share,
            progress,
        )?;
        self.tell_positives()
    }

    /// One step: forwards, loss, backwards, weights, memory. Gives the mean loss of the batch; when that is not a finite
    /// number, weights and memory are left as they were.
    pub fn step(&mut self, batch: &Batch, number: u64, sgd: &Sgd) -> Result<f64, TrainError> {
        let d = &self.config.discovery;
        self.neighbourhoods
            .positives(&batch.indices, &mut self.positives);
        self.network.train_forward(&batch.pixels, number)?;
        let (features, gradient) = self.network.output_and_gradient();
        let loss = neighbourhood_loss(
            &self.device,
            features,
            &self.bank,
            d.temperature as f32,
            &self.positives,
            &mut self.losses,
            gradient,
        )?;
        if !loss.is_finite() {
            return Ok(loss);
        }
        self.network.backward()?;
        self.network.update(sgd)?;
        let (features, _) = self.network.output_and_gradient();
        let rate = d.memory_rate as f32;
        self.bank
            .update(&self.device, &batch.indices, features, rate)?;
        Ok(loss)
    }

    /// Everything, to be written down.
    pub fn checkpoint(&self, standing: Standing) -> Result<Checkpoint, TrainError> {
        let (weights, momentum) = tensors_of(&self.network)?;
        let found = &self.neighbourhoods;
        Ok(Checkpoint {
            config: self.config.clone(),
            standing,
            program: VERSION.into(),
            input: Some(InputForm {
                size: self.set.pictures.height(),
                mean: self.set.mean,
                std: self.set.std,
            }),
            weights,
            momentum,
            pictures: self.set.pictures.len(),
            memory: self.bank.values(&self.device)?,
            neighbourhoods: (found.k() > 0).then(|| SavedNeighbourhoods {
                k: found.k(),
                neighbours: found.neighbours().to_vec(),
                anchors: found.anchors().to_vec(),
                entropy: found.entropy().to_vec(),
            }),
        })
    }

    /// Takes up what a checkpoint holds; `path` names it in errors.
    pub fn restore(&mut self, checkpoint: Checkpoint, path: &Path) -> Result<(), TrainError> {
        let n = self.set.pictures.len();
        let wrong = |reason| CheckpointError::Mismatch {
            path: path.into(),
            reason,
        };
        if checkpoint.config.network != self.config.network {
            let ours = &self.config.network;
            return Err(wrong(format!(
                "the checkpoint holds {}, this run wants {} width {}, {} features",
                checkpoint.network(),
                ours.architecture,
                ours.width,
                ours.features
            ))
            .into());
        }
        checkpoint.check_memory(&self.set, path)?;
        checkpoint.restore(&mut self.network, true, path)?;
        let features = self.config.network.features;
        self.bank = MemoryBank::from_values(&self.device, &checkpoint.memory, features)?;
        self.neighbourhoods = match checkpoint.neighbourhoods {
            None => Neighbourhoods::single(n),
            Some(f) => Neighbourhoods::from_parts(f.k, f.neighbours, f.anchors, f.entropy)
                .map_err(|e| wrong(e.to_string()))?,
        };
        self.tell_positives()
    }
}

/// Says why a data set cannot be trained on with a configuration, before anything is made.
pub fn check_data(config: &RunConfig, data: &Dataset) -> Result<(), TrainError> {
    check_pictures(config, &TrainingSet::of(data))
}

fn check_pictures(config: &RunConfig, set: &TrainingSet) -> Result<(), TrainError> {
    config.check()?;
    let (n, k) = (set.pictures.len(), config.discovery.neighbours);
    if n < 2 {
        return Err(TrainError::TooFewPictures {
            data: set.name.clone(),
            pictures: n,
        });
    }
    check_neighbours(k, n)?;
    let (height, width) = (set.pictures.height(), set.pictures.width());
    if height != width {
        return Err(TrainError::NotSquare {
            data: set.name.clone(),
            height,
            width,
        });
    }
    Ok(())
}

/// A picture and its neighbours are positives, and positives are counted in 32 bits.
fn check_neighbours(k: usize, pictures: usize) -> Result<(), TrainError> {
    if k >= pictures {
        return Err(TrainError::TooManyNeighbours { k, pictures });
    }
    let most = (u32::MAX as usize / pictures).saturating_sub(1);
    if k > most {
        return Err(TrainError::NeighboursBeyondCount { k, pictures, most });
    }
    Ok(())
}

/// The configured network for a data set's pictures.
pub(crate) fn network_for<D: Device>(
    device: &D,
    config: &RunConfig,
    set: &TrainingSet,
    batch: usize,
) -> Result<D::Network, TrainError> {
    let n = &config.network;
    let graph = n
        .architecture
        .graph(set.pictures.height(), n.width, n.features)?;
    Ok(device.network(&graph, &NetworkOptions::new(batch))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_as_many_as_there_are_and_can_be_counted() {
        check_neighbours(1, 2).unwrap();
        check_neighbours(49_999, 50_000).unwrap();
        check_neighbours(3_351, 1_281_167).unwrap();
        let why = |k, pictures| check_neighbours(k, pictures).unwrap_err().to_string();
        assert!(why(2, 2).contains("only 1 others among 2 pictures"));
        let beyond = why(3_352, 1_281_167);
        assert!(beyond.contains("--neighbours 3351 is the most"), "{beyond}");
    }
}
