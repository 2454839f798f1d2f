//! A method in training: its stream, its batches, and what is written down of it.

use std::path::Path;

use crate::evaluation::{Copies, LabelFree};
use crate::methods::{EpochStart, Method, PretextFigure, Round, ViewSettings};
use anchorhood_data::{Augmentation, DataLoader, Views};
use anchorhood_engine::vectors::Whitening;
use anchorhood_engine::{
    Batch, Communicator, Device, DeviceLoader, Epoch, Network, Profile, Stream,
};

use crate::batch_source::image_batches_within;
use crate::build::build;
use crate::checkpoint::{Checkpoint, CheckpointError, Head, InputForm, tensors_of};
use crate::together::{label_free_of_first, own_pictures};
use crate::{
    Accuracy, Labelled, Position, Pretrained, RunConfig, Standing, TrainError, TrainingSet,
    VERSION, pretrained, whitened,
};

/// A method, its stream and its batches.
pub struct Trainer {
    device: Device,
    config: RunConfig,
    set: TrainingSet,
    method: Box<dyn Method>,
    stream: Stream,
    /// Mean and deviation that pictures are normalised by.
    seen: ([f32; 3], [f32; 3]),
    batches: Option<DeviceLoader>,
    /// The epoch whose order the stream has, and the batch it goes on with.
    at: Option<(usize, usize)>,
    losses: Vec<f64>,
    /// The map that features are judged and used through, since it was last found.
    whitening: Option<Whitening>,
}

impl Trainer {
    /// The configured method, without labels, at the beginning of a run; says what cannot be
    /// trained.
    pub fn new(device: &Device, config: &RunConfig, set: TrainingSet) -> Result<Self, TrainError> {
        let method = build(device, config, &set, None)?;
        Trainer::with(device, config, set, method)
    }

    /// Any method.
    pub fn with(
        device: &Device,
        config: &RunConfig,
        set: TrainingSet,
        method: Box<dyn Method>,
    ) -> Result<Self, TrainError> {
        Ok(Trainer {
            device: device.clone(),
            config: config.clone(),
            stream: device.stream()?,
            seen: config.seen_by(&set),
            batches: None,
            at: None,
            losses: vec![],
            whitening: None,
            set,
            method,
        })
    }

    /// Gives the method, at its beginning, what a model has learnt.
    pub fn begin_from(&mut self, model: &Pretrained) -> Result<(), TrainError> {
        model.check(&self.config)?;
        model.load_into(&mut *self.method)
    }

    /// The processes that take its steps.
    pub(crate) fn communicator(&self) -> &Communicator {
        self.device.communicator()
    }

    /// Pictures in a batch: the configured number, or all there are if fewer.
    pub fn batch(&self) -> usize {
        self.config.batch_of(&self.set)
    }

    /// Batches in an epoch; a last one that is not full is left out.
    pub fn batches(&self) -> usize {
        self.set.pictures.len() / self.batch()
    }

    /// What it trains on.
    pub fn set(&self) -> &TrainingSet {
        &self.set
    }

    /// The method.
    pub fn method(&mut self) -> &mut dyn Method {
        &mut *self.method
    }

    /// The network that embeds.
    pub fn network(&mut self) -> &mut Network {
        self.method.encoder().0
    }

    /// How good the features are, in an examiner's eyes.
    pub fn judge(&mut self, examiner: &Labelled) -> Result<Accuracy, TrainError> {
        let (network, memory) = self.method.encoder();
        examiner.network(network, memory, self.whitening.as_ref())
    }

    /// Finds the map anew that features are judged and used through, where there is to be one: the
    /// first process's.
    pub fn whiten(&mut self) -> Result<(), TrainError> {
        let together = self.device.communicator();
        let (network, _) = self.method.encoder();
        let seen = [self.seen.0, self.seen.1];
        let found = if together.is_first() {
            whitened::whitening(&self.config, network, &self.set.pictures, seen)?
        } else {
            None
        };
        self.whitening = Whitening::of_first(found, network.features(), together)?;
        Ok(())
    }

    /// What can be said without labels of the features, or of those of another network, which sees
    /// pictures as this one does: what the first process finds, where there are several.
    pub(crate) fn judge_label_free(
        &mut self,
        copies: &Copies,
        other: Option<&mut Network>,
    ) -> Result<LabelFree, TrainError> {
        let network = other.unwrap_or_else(|| self.method.encoder().0);
        let judge = || Ok(copies.judge(network, self.seen.0, self.seen.1)?);
        label_free_of_first(self.device.communicator(), judge)
    }

    /// Prepares batches, wherever they are best made.
    pub fn begin(&mut self) -> Result<(), TrainError> {
        self.begin_within(Some(usize::MAX))
    }

    /// The same, with no more than so many bytes of images on the device at once; without a limit
    /// the host prepares all batches.
    pub fn begin_within(&mut self, on_device: Option<usize>) -> Result<(), TrainError> {
        let loader = self.loader()?;
        if self.config.training.from.is_some() {
            // In which steps what learns follows from the settings alone, wherever the run goes on.
            let batches = self.batches();
            pretrained::set_groups(self.method.encoder().0, &self.config, batches)?;
        }
        self.end(); // its memory first
        self.batches = Some(self.device.batches(image_batches_within(loader, on_device))?);
        Ok(())
    }

    /// What this process has of the run's batches.
    fn loader(&self) -> Result<DataLoader, TrainError> {
        let ((mean, std), batch) = (self.seen, self.batch());
        Ok(DataLoader {
            images: self.set.pictures.clone(),
            views: self.views()?,
            mean,
            std,
            seed: self.config.seed,
            batch,
            part: self.device.communicator().part(batch),
            threads: (self.config.machine.thread_count() / 4).max(1),
        })
    }

    /// The run's augmentation for each view, with what the method has different in it.
    fn views(&self) -> Result<Views, TrainError> {
        let how = self.config.augmentation.augmentation();
        let of = |view: &ViewSettings| Augmentation {
            blur: view.blur.unwrap_or(how.blur),
            solarise: view.solarise.unwrap_or(how.solarise),
            ..how
        };
        Ok(Views::new(self.method.views().iter().map(of).collect())?)
    }

    /// Whether the device makes the batches.
    pub fn on_device(&self) -> bool {
        self.batches.as_ref().is_some_and(DeviceLoader::on_device)
    }

    /// Ends the preparation of batches.
    pub fn end(&mut self) {
        self.batches = None;
        self.at = None;
    }

    /// What a network makes of this process's pictures, as they are.
    fn extractor(&self) -> impl FnMut(&mut Network) -> anchorhood_engine::Result<Vec<f32>> + use<> {
        let own = own_pictures(&self.device, &self.set.pictures);
        let (mean, std) = self.seen;
        move |network| crate::evaluation::extract(network, &own, mean, std, &|_| {})
    }

    /// Before the first step of a round.
    pub fn before_round(
        &mut self,
        round: usize,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<(), TrainError> {
        let mut features = self.extractor();
        Ok(self.method.before_round(&mut Round {
            device: &self.device,
            round,
            rounds: self.config.training.rounds,
            progress,
            features: &mut features,
        })?)
    }

    /// Before the first step of an epoch, counted over all rounds.
    fn before_epoch(&mut self, epoch: usize) -> Result<(), TrainError> {
        let steps = epoch * self.batches();
        let mut features = self.extractor();
        Ok(self.method.before_epoch(&mut EpochStart {
            device: &self.device,
            epoch,
            steps,
            features: &mut features,
        })?)
    }

    /// How well the method did in the epoch that ended what it is taught by.
    pub fn pretext(&mut self) -> Result<Vec<PretextFigure>, TrainError> {
        Ok(self.method.pretext(&self.device)?)
    }

    /// Takes steps from a position on, at most `most` and at least one, within the epoch;
    /// [`Trainer::begin`] must have been asked for. Gives the loss of each; one that is not finite
    /// has left weights and memory as they were.
    pub fn advance(&mut self, at: Position, most: usize) -> Result<&[f64], TrainError> {
        let epoch = at.epochs_before(self.config.training.epochs);
        self.seek(at, epoch)?;
        let left = self.batches() - at.batch;
        let batches = self.batches.as_mut().ok_or(TrainError::LoaderEnded)?;
        // The host's batches come one by one, so that a stop is heard after each.
        let most = if batches.on_device() { most } else { 1 };
        let count = most.min(self.stream.capacity()).clamp(1, left);
        let method = &mut self.method;
        for _ in 0..count {
            self.stream.step(batches, &mut |stream, batch| method.step(stream, batch))?;
        }
        self.at = Some((epoch, at.batch + count));
        self.losses.clear();
        self.stream.losses(&mut self.losses)?;
        Ok(&self.losses)
    }

    /// Gives the stream the order and the schedule of an epoch, unless it is in the midst of it.
    fn seek(&mut self, at: Position, epoch: usize) -> Result<(), TrainError> {
        if self.at == Some((epoch, at.batch)) {
            return Ok(());
        }
        let batches = self.batches();
        if at.batch == 0 {
            self.before_epoch(epoch)?;
        }
        // A prefetcher draws its own, ahead of time.
        let order = match self.on_device() {
            true => self.loader()?.order().of(epoch as u64),
            false => vec![],
        };
        let rates = self.config.training.rates(at, batches);
        let schedules = self.schedules(epoch * batches, batches);
        let scalars: Vec<Vec<f32>> = std::iter::once(rates).chain(schedules).collect();
        let loader = self.batches.as_mut().ok_or(TrainError::LoaderEnded)?;
        let epoch = Epoch {
            epoch: epoch as u64,
            order: &order,
            first: at.batch,
            number: (epoch * batches + at.batch) as u64,
            scalars: &scalars,
        };
        self.stream.begin_epoch(loader, &epoch)?;
        Ok(())
    }

    /// The values of the method's own schedules in each of so many steps, before which so many were
    /// taken.
    fn schedules(&self, before: usize, steps: usize) -> Vec<Vec<f32>> {
        let t = &self.config.training;
        let all = ((t.rounds + 1) * t.epochs * self.batches()) as f64;
        let at = |step| self.method.scalars((before + step) as f64 / all);
        let values: Vec<Vec<f32>> = (0..steps).map(at).collect();
        let count = values.first().map_or(0, Vec::len);
        let of = |which: usize| values.iter().map(|v| v[which]).collect();
        (0..count).map(of).collect()
    }

    /// Where the time of a step goes, on a device that can tell; the training is over after it.
    pub fn profile(&mut self) -> Result<Option<Profile>, TrainError> {
        self.seek(Position::default(), 0)?;
        let loader = self.batches.as_mut().ok_or(TrainError::LoaderEnded)?;
        let method = &mut self.method;
        let step = &mut |stream: &mut Stream, batch: Batch| method.step(stream, batch);
        Ok(self.stream.profile(loader, step)?)
    }

    /// Everything, to be written down.
    pub fn checkpoint(&mut self, standing: Standing) -> Result<Checkpoint, TrainError> {
        let mut networks = vec![];
        for (namespace, network) in self.method.networks() {
            networks.push((namespace, tensors_of(network)?));
        }
        let (_, (mut weights, slots)) = networks.remove(0);
        let head = |(namespace, (weights, slots)): (&str, _)| Head {
            namespace: namespace.into(),
            weights,
            slots,
        };
        let graph = self.method.encoder().0.graph();
        let mut judged_layer = graph.node(graph.output_node()).name.clone();
        if let Some(whitening) = &self.whitening {
            weights.extend(whitened::whitening_tensors(whitening));
            judged_layer = whitened::LAYER.into();
        }
        let pictures = self.set.pictures.len();
        let own = self.device.communicator().part(pictures);
        Ok(Checkpoint {
            config: self.config.clone(),
            standing: Standing { pictures: Some(pictures), ..standing },
            program: VERSION.into(),
            method: self.config.method.name.name.into(),
            judged_layer,
            rows: [own.start, pictures].map(|n| n as u64),
            input: InputForm {
                version: InputForm::VERSION,
                size: self.set.pictures.height(),
                mean: self.seen.0,
                std: self.seen.1,
            },
            weights,
            slots,
            heads: networks.into_iter().map(head).collect(),
            state: self.method.state(&self.device)?,
        })
    }

    /// Takes up what a checkpoint holds; `path` names it in errors.
    pub fn restore(&mut self, mut checkpoint: Checkpoint, path: &Path) -> Result<(), TrainError> {
        let wrong = |reason| CheckpointError::Mismatch { path: path.into(), reason };
        let (theirs, ours) = (&checkpoint.method, self.config.method.name.name);
        if theirs != ours {
            let reason = format!("it was trained by {theirs}, this run is to be by {ours}");
            return Err(wrong(reason).into());
        }
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
        checkpoint.check_pictures(&self.set, path)?;
        for (namespace, network) in self.method.networks() {
            match namespace {
                "" => checkpoint.restore(network, true, path)?,
                head => checkpoint.restore_head(head, network, path)?,
            }
        }
        let learns = self.network().graph().parameters().len();
        self.whitening = checkpoint.weights.get(learns..).and_then(whitened::kept);
        let own = self.device.communicator().part(self.set.pictures.len());
        checkpoint.keep_pictures(own);
        let restored = self.method.restore(&self.device, &checkpoint.state);
        restored.map_err(|e| wrong(e.to_string()))?;
        Ok(())
    }
}
