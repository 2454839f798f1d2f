//! The figure of one cell: a run's features judged by a protocol, once.

use std::path::PathBuf;
use std::sync::Mutex;

use anchorhood_train::evaluation::{Accuracy, LinearOptions};
use anchorhood_train::{
    Checkpoint, Encoder, LayerOptions, LayerProgress, LayerProtocol, checkpoint_path, judge_layers,
};

use crate::record::{self, FinishedRun, Judged};
use crate::{Job, Lab, Protocol, ReproduceError, Scale, System, Told, name_of};

type Observer<'a> = Mutex<&'a mut (dyn FnMut(Told) + Send)>;

impl Lab<'_> {
    /// The run of a job and how it does by a protocol.
    ///
    /// kNN of what was trained without labels is the run's own last figure, whose voters are the
    /// memory. Of other networks the features are computed, without augmentation.
    pub(crate) fn figure(
        &mut self,
        job: &Job,
        protocol: Protocol,
    ) -> Result<(FinishedRun, Judged), ReproduceError> {
        let run = self.trained(job)?;
        if let (Protocol::Knn, Some(knn)) = (protocol, run.knn) {
            let (protocol, Accuracy { top1, top5, n, .. }) = (protocol.describe(), knn);
            return Ok((run, Judged { protocol, top1, top5, n, ..Judged::default() }));
        }
        let file = self.judged_file(&run.name, protocol);
        if let Some(judged) = record::read(&file)? {
            return Ok((run, judged));
        }
        let judged = self.judge(job, &run, protocol)?;
        record::write(&file, &judged)?;
        Ok((run, judged))
    }

    /// Whether there is a figure of a job already.
    pub(crate) fn is_judged(&self, job: &Job, protocol: Protocol) -> Result<bool, ReproduceError> {
        let name = name_of(job);
        let finished = self.place.runs().join(&name).join("finished.json");
        let run = record::read::<FinishedRun>(&finished)?;
        let Some(run) = run else { return Ok(false) };
        Ok(run.is_judged_by_itself(protocol) || self.judged_file(&name, protocol).is_file())
    }

    fn judged_file(&self, run: &str, protocol: Protocol) -> PathBuf {
        let folder = self.place.runs().join(run).join("judged");
        folder.join(format!("{}.json", protocol.name()))
    }

    fn judge(
        &mut self,
        job: &Job,
        run: &FinishedRun,
        protocol: Protocol,
    ) -> Result<Judged, ReproduceError> {
        let data = self.data(job)?;
        let mut encoder = match job.subject.method {
            System::Untrained => Encoder::untrained(run.config.clone()),
            System::And { .. } | System::Instance | System::Supervised | System::Rival(_) => {
                self.trained_here(job)?;
                let last = checkpoint_path(&self.place.runs().join(&run.name), "last");
                Encoder::of_checkpoint(Checkpoint::load(&last)?, &last)
            }
        };
        encoder.config.seed = run.config.seed;
        let graph = encoder.graph(data.train.pictures.height())?;
        let (layer, protocol_on_it) = match protocol {
            Protocol::Knn => (graph.output_node(), LayerProtocol::Knn),
            Protocol::Linear(layer) => {
                let options = linear_options(job);
                (graph.find(layer)?, LayerProtocol::Linear(options))
            }
        };
        let layers = [(graph.node(layer).name.clone(), layer)];
        let options = LayerOptions { protocol: protocol_on_it, seeds: 1 };
        let what = format!("{}: {}", run.name, protocol.describe());
        let observer: Observer = Mutex::new(&mut *self.observer);
        let tell = |progress: LayerProgress| step(&observer, &what, progress);
        let judged = judge_layers(self.device, &encoder, &graph, &layers, &options, &data, &tell);
        let (figures, _) = judged?;
        let figures = figures.into_iter().next().unwrap_or_default();
        Ok(Judged {
            protocol: protocol.describe(),
            top1: figures.top1.first().copied().unwrap_or_default(),
            top5: figures.top5.first().copied(),
            n: figures.pictures,
            linear_epochs: match options.protocol {
                LayerProtocol::Knn => None,
                LayerProtocol::Linear(options) => Some(options.epochs),
            },
            seconds: figures.seconds,
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

/// Told from whichever thread gets there; a report that would have to wait is left out.
fn step(observer: &Observer, what: &str, progress: LayerProgress) {
    let (done, total) = match progress {
        LayerProgress::Extracting { done, total, .. } => (done, total),
        LayerProgress::Probing { epoch, epochs, .. } => (epoch, epochs),
    };
    if let Ok(mut observer) = observer.try_lock() {
        observer(Told::Step { what, done, total });
    }
}
