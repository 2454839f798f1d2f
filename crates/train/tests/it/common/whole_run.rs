//! A run from beginning to end, and what became of it.

use std::sync::atomic::AtomicBool;

use anchorhood_engine::Device;
use anchorhood_train::{Checkpoint, Event, Outcome, RunConfig, RunDir, train};

/// The epochs' losses, the accuracies of the untrained network and at the end, and what was saved.
pub fn whole_run(device: &Device, config: &RunConfig) -> (Vec<f64>, [f64; 2], Checkpoint) {
    let options = config.data.load_options(config.seed);
    let data = anchorhood_data::open(&config.data.set, &options).unwrap();
    let config = config.fitted(&data).unwrap();
    let runs = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(runs.path(), "a", &config).unwrap();
    let (mut losses, mut judged) = (vec![], vec![]);
    let mut observer = |event: &Event| match event {
        Event::EpochEnded(e) => losses.push(e.loss),
        Event::Evaluated(e) => judged.push(e.accuracy.top1),
        _ => {}
    };
    let stop = AtomicBool::new(false);
    let outcome = train(device, &mut dir, &data, &mut observer, &stop).unwrap();
    assert!(matches!(outcome, Outcome::Finished(_)));
    let saved = Checkpoint::load(&dir.checkpoint("last")).unwrap();
    (losses, [judged[1], judged[judged.len() - 1]], saved)
}
