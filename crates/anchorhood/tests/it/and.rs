//! The paper in one file trains as the command does: the same losses and the same accuracy.

use std::sync::atomic::AtomicBool;

use anchorhood::research::RunDir;
use anchorhood::{Device, Event, Images, LoadOptions, Preset};
use anchorhood_train::train;

#[expect(dead_code, reason = "the example's own entry and command line")]
#[path = "../../examples/and.rs"]
mod example;

#[test]
fn the_example_gives_the_losses_and_the_accuracy_of_train() {
    let options = LoadOptions { shapes_train: 320, shapes_test: 200, ..Default::default() };
    let data = Images::open("shapes").unwrap().load(&options).unwrap();
    let device = Device::cpu(2);

    let mut settings = example::Settings::new("shapes");
    settings.epochs = 2;
    let own = device.within(|| {
        let and = example::And::new(device.clone(), settings, data.clone()).unwrap();
        and.train().unwrap()
    });

    let mut config = Preset::Quick.config("shapes");
    config.training.epochs = 2;
    let config = config.fitted(&data).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunDir::create(folder.path(), "and", &config).unwrap();
    let (mut losses, mut accuracy) = (vec![], 0.0);
    let mut observer = |event: &Event| match event {
        Event::EpochEnded(e) => losses.push(e.loss),
        Event::Evaluated(e) => accuracy = e.accuracy.top1,
        _ => {}
    };
    train(&device, &mut run, &data, &mut observer, &AtomicBool::new(false)).unwrap();

    assert_eq!(losses.len(), 6);
    assert_eq!(own, (losses, accuracy));
}
