//! The figure of one cell: a run's features judged by a protocol, once.

use std::sync::Mutex;
use std::time::Instant;

use anchorhood_data::Dataset;
use anchorhood_engine::{Device, Network, NetworkOptions, NodeId};
use anchorhood_evaluate::{
    LinearOptions, LinearSet, MOST_VALUES, Rows, extract_layer, weighted_knn,
};
use anchorhood_train::{Checkpoint, RunConfig, TrainError, checkpoint_path};

use crate::record::{self, Judged, RunRecord};
use crate::{Job, Lab, Method, Protocol, ReproduceError, Scale, Told};

type Observer<'a> = Mutex<&'a mut (dyn FnMut(Told) + Send)>;

impl Lab<'_> {
    /// The run of a job and how it does by a protocol.
    ///
    /// kNN of what was trained without labels is the run's own last figure, whose voters are the memory. Of other networks
    /// the features are computed, without augmentation.
    pub(crate) fn figure(
        &mut self,
        job: &Job,
        protocol: Protocol,
    ) -> Result<(RunRecord, Judged), ReproduceError> {
        let run = self.trained(job)?;
        if let (Protocol::Knn, Some(knn)) = (protocol, run.knn) {
            let judged = Judged {
                protocol: protocol.describe(),
                top1: knn.top1,
                top5: knn.top5,
                n: knn.n,
                linear_epochs: None,
                seconds: 0.0,
            };
            return Ok((run, judged));
        }
        let folder = self.place.runs().join(&run.name).join("judged");
        let file = folder.join(format!("{}.json", protocol.name()));
        if let Some(judged) = record::read(&file)? {
            return Ok((run, judged));
        }
        let judged = self.judge(job, &run, protocol)?;
        record::write(&file, &judged)?;
        Ok((run, judged))
    }

    fn judge(
        &mut self,
        job: &Job,
        run: &RunRecord,
        protocol: Protocol,
    ) -> Result<Judged, ReproduceError> {
        let clock = Instant::now();
        let data = self.data(job)?;
        let observer: Observer = Mutex::new(&mut *self.observer);
        let what = format!("{}: {}", run.name, protocol.describe());
        let n = &run.config.network;
        let size = data.train.pictures.height();
        let graph = (n.architecture).graph(size, n.width, n.features)?;
        let node = match protocol {
            Protocol::Knn => graph.output_node(),
            Protocol::Linear(layer) => graph.find(layer)?,
        };
        let options = NetworkOptions {
            keep: vec![node],
            ..NetworkOptions::new(run.config.training.batch)
        };
        let mut network = self.device.network(&graph, &options)?;
        network.initialise(run.config.seed);
        if job.subject.method != Method::Untrained {
            let last = checkpoint_path(&self.place.runs().join(&run.name), "last");
            Checkpoint::load(&last)?.restore(&mut network, false, &last)?;
        }
        let rows = rows(self.device, &mut network, node, &data, &what, &observer)?;
        drop(network); // its memory before the classifier's
        let (top1, top5, count, linear_epochs) = match protocol {
            Protocol::Knn => vote(self.device, &run.config, &data, rows)?,
            Protocol::Linear(_) => {
                let options = linear_options(job);
                classify(self.device, &options, &data, rows, &what, &observer)?
            }
        };
        Ok(Judged {
            protocol: protocol.describe(),
            top1,
            top5,
            n: count,
            linear_epochs,
            seconds: clock.elapsed().as_secs_f64(),
        })
    }
}

fn linear_options(job: &Job) -> LinearOptions {
    let usual = LinearOptions::default();
    LinearOptions {
        epochs: match job.scale {
            Scale::Smoke => 5,
            _ => usual.epochs,
        },
        seed: job.seed,
        ..usual
    }
}

/// What a layer makes of the training and of the test pictures.
fn rows(
    device: &Device,
    network: &mut Network,
    node: NodeId,
    data: &Dataset,
    what: &str,
    observer: &Observer,
) -> Result<[Rows; 2], ReproduceError> {
    let test = data.test.as_ref().ok_or_else(|| no_labels(data))?;
    let train = &data.train.pictures;
    let total = train.len() + test.pictures.len();
    let mut of = |pictures, before: usize| {
        let tell = |done| step(observer, what, before + done, total);
        device.within(|| {
            let (mean, std) = (data.mean, data.std);
            extract_layer(network, node, pictures, mean, std, MOST_VALUES, &tell)
        })
    };
    Ok([of(train, 0)?, of(&test.pictures, train.len())?])
}

type Figures = (f64, Option<f64>, usize, Option<usize>);

fn vote(
    device: &Device,
    config: &RunConfig,
    data: &Dataset,
    [mut train, mut test]: [Rows; 2],
) -> Result<Figures, ReproduceError> {
    let (train_labels, test_labels) = labels(data)?;
    train.to_unit_length();
    test.to_unit_length();
    let result = weighted_knn(
        device,
        &config.evaluation.knn(),
        &device.upload(&train.values)?,
        train.dim,
        train_labels,
        &device.upload(&test.values)?,
        test_labels,
    )?;
    Ok((result.top1, result.top5, result.n, None))
}

fn classify(
    device: &Device,
    options: &LinearOptions,
    data: &Dataset,
    [train, test]: [Rows; 2],
    what: &str,
    observer: &Observer,
) -> Result<Figures, ReproduceError> {
    let (train_labels, test_labels) = labels(data)?;
    let set = LinearSet::new(device, train, train_labels, test, test_labels)?;
    let tell = |epoch, _| step(observer, what, epoch, options.epochs);
    let result = set.classify(options, &tell)?;
    Ok((result.top1, result.top5, result.n, Some(options.epochs)))
}

/// Told from whichever thread gets there; a report that would have to wait is left out.
fn step(observer: &Observer, what: &str, done: usize, total: usize) {
    if let Ok(mut observer) = observer.try_lock() {
        observer(Told::Step { what, done, total });
    }
}

fn labels(
    data: &Dataset,
) -> Result<(&anchorhood_data::Labels, &anchorhood_data::Labels), ReproduceError> {
    let test = data.test.as_ref().and_then(|t| t.labels.as_ref());
    let both = data.train.labels.as_ref().zip(test);
    both.ok_or_else(|| no_labels(data))
}

fn no_labels(data: &Dataset) -> ReproduceError {
    let data = data.name.clone();
    TrainError::NoLabels { data }.into()
}
