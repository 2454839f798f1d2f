//! A method says how each view differs from the run's augmentation. A stand-in for a method keeps
//! what it is shown: a view that differs in nothing has the bits of the run's only view, another
//! those of its own settings.

use std::sync::{Arc, Mutex};

use anchorhood_engine::{
    Batch, Buffer, Device, Graph, Loss, Network, NetworkOptions, Result, Stream,
};
use anchorhood_train::methods::{Method, ViewSettings};
use anchorhood_train::{Position, RunConfig, Trainer, TrainingSet};

use crate::common;

/// Shows each view to a network without weights, and keeps what comes out.
struct Watcher {
    network: Network,
    losses: Buffer,
    views: Vec<ViewSettings>,
    seen: Arc<Mutex<Vec<Vec<f32>>>>,
}

impl Method for Watcher {
    fn views(&self) -> Vec<ViewSettings> {
        self.views.clone()
    }

    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        for view in 0..batch.views() {
            self.network.forward(stream, 0, batch.view(view))?;
            let (output, gradient) = self.network.output_and_gradient();
            let loss = Loss { rows: &mut self.losses, gradient, weight: 1.0 };
            stream.custom_loss(output, loss, &mut |features, losses, gradient| {
                losses.fill(0.0);
                gradient.fill(0.0);
                self.seen.lock().unwrap().push(features.to_vec());
                Ok(())
            })?;
        }
        Ok(())
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        vec![("", &mut self.network)]
    }
}

/// What the first step of a run sees of each view.
fn seen(device: &Device, config: &RunConfig, views: &[ViewSettings]) -> Vec<Vec<f32>> {
    let data = common::data(config);
    let size = data.train.pictures.height();
    let mut graph = Graph::new();
    let x = graph.input(size, size, 3);
    graph.relu("relu", x).unwrap();
    let options = NetworkOptions::new(config.training.batch);
    let seen = Arc::new(Mutex::new(vec![]));
    let watcher = Watcher {
        losses: device.zeros(config.training.batch).unwrap(),
        network: device.network(&graph, &options).unwrap(),
        views: views.to_vec(),
        seen: seen.clone(),
    };
    let set = TrainingSet::of(&data);
    let mut trainer = Trainer::with(device, config, set, Box::new(watcher)).unwrap();
    trainer.begin().unwrap();
    trainer.advance(Position::default(), 1).unwrap();
    let all = seen.lock().unwrap().clone();
    all[..views.len()].to_vec()
}

fn each_view_has_its_settings(device: &Device) {
    let mut config = common::tiny();
    config.data.size = Some(16);
    let same = ViewSettings::default();
    let other = ViewSettings { blur: Some(1.0), solarise: Some(0.5) };
    let alone = seen(device, &config, &[same]);
    let both = seen(device, &config, &[same, same]);
    assert_eq!(both[0], alone[0], "view 0 draws what the only view draws");
    assert_ne!(both[1], both[0], "each view draws for itself");
    let differing = seen(device, &config, &[same, other]);
    assert_eq!(differing[0], both[0]);
    assert_ne!(differing[1], both[1]);
    // What the method says of a view is what the run would say of all.
    let mut all = config.clone();
    (all.augmentation.blur, all.augmentation.solarise) = (1.0, 0.5);
    assert_eq!(differing[1], seen(device, &all, &[same, same])[1]);
}

#[test]
fn each_view_has_its_settings_on_the_cpu() {
    each_view_has_its_settings(&Device::cpu(1));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn each_view_has_its_settings_on_cuda() {
    common::on_cuda(each_view_has_its_settings);
}
