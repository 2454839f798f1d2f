//! A comparison that is stopped and gone on with finds the same.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anchorhood_data::encode_png;
use anchorhood_engine::Device;
use anchorhood_reproduce::{Allowance, Comparison, ReproduceError, Standings};
use anchorhood_train::{FeatureSource, MethodSpec, Preset, RunConfig, RunDir, methods};

use crate::{stopping, to_its_end};

fn config(method: &'static MethodSpec) -> RunConfig {
    let mut config = Preset::Quick.config_for("shapes", method);
    for (name, value) in [
        ("data.shapes_train", "64"),
        ("data.shapes_test", "32"),
        ("data.size", "16"),
        ("network.width", "2"),
        ("training.batch", "16"),
    ] {
        config.set(name, value).unwrap();
    }
    config.evaluation.features = FeatureSource::Recomputed;
    config
}

fn carry_out(folder: &Path, stop_after: Option<usize>) -> Result<Standings, ReproduceError> {
    let stop = AtomicBool::new(false);
    let comparison = Comparison {
        folder: folder.into(),
        allowance: Allowance::ViewEpochs(6),
        configs: [&methods::AND, &methods::BYOL, &methods::SUPERVISED].map(config).into(),
        evaluations: Some(2),
        rounds_asked_for: true,
        largest: None,
    };
    comparison.carry_out(&Device::cpu(2), &mut stopping(&stop, stop_after), &stop)
}

/// All but the time it took.
fn figures(standings: &Standings) -> Vec<(String, usize, f64, Vec<f64>)> {
    let runs = standings.runs.iter();
    runs.map(|run| {
        let curve = run.curve.iter().map(|point| point.1).collect();
        (run.method.clone(), run.epochs, run.last.top1, curve)
    })
    .collect()
}

#[test]
fn stopped_and_gone_on_with_it_finds_the_same() {
    let [whole, parts] = [(); 2].map(|_| tempfile::tempdir().unwrap());
    let expected = carry_out(whole.path(), None).unwrap();
    let epochs: Vec<usize> = expected.runs.iter().map(|run| run.epochs).collect();
    assert_eq!(epochs, [6, 3, 6]);
    assert_eq!(expected.runs[0].curve.len(), 1 + 3, "untrained, and each round's end");
    let found = to_its_end(3, || carry_out(parts.path(), Some(2)));
    assert_eq!(figures(&found), figures(&expected));
}

/// Photographs are as large as the machine of the first run lets them be, for all that join it
/// later, on whatever machine.
#[test]
fn photographs_are_of_one_size() {
    let [place, photos] = [(); 2].map(|_| tempfile::tempdir().unwrap());
    for (class, grey) in [("cats", 30_u8), ("dogs", 200)] {
        let folder = photos.path().join(class);
        std::fs::create_dir(&folder).unwrap();
        for i in 0..10 {
            let pixels: Vec<u8> = (0..100 * 100 * 3).map(|p| grey ^ ((p / 7 + i) as u8)).collect();
            let png = encode_png(100, 100, &pixels).unwrap();
            std::fs::write(folder.join(format!("{i}.png")), png).unwrap();
        }
    }
    let size_of = |methods: &[&'static MethodSpec], largest: usize| {
        let of = |method: &&'static MethodSpec| {
            let mut config = config(method);
            config.data.size = None;
            config.data.set = photos.path().display().to_string();
            config.training.batch = 8;
            config
        };
        let comparison = Comparison {
            folder: place.path().into(),
            allowance: Allowance::ViewEpochs(1),
            configs: methods.iter().map(of).collect(),
            evaluations: Some(1),
            rounds_asked_for: true,
            largest: Some(largest),
        };
        let never = AtomicBool::new(false);
        let device = Device::cpu(1);
        comparison.carry_out(&device, &mut |_| {}, &never).unwrap();
        let last = methods.last().unwrap().to_string();
        let config = RunDir::config_of(&place.path().join(last)).unwrap();
        config.data.size
    };
    let (first, second) = (&methods::INSTANCE, &methods::SIMSIAM);
    assert_eq!(size_of(&[first], 64), Some(64));
    assert_eq!(size_of(&[first, second], 96), Some(64));
}

/// Minutes may have left a run fewer rounds than its method begins with: it is the same run when it
/// is read again, unless somebody asks for the others.
#[test]
fn fewer_rounds_are_those_of_the_minutes() {
    let folder = tempfile::tempdir().unwrap();
    let began = config(&methods::ANCHORHOOD);
    let go = |rounds_asked_for| {
        let comparison = Comparison {
            folder: folder.path().into(),
            allowance: Allowance::Minutes(0.05),
            configs: vec![began.clone()],
            evaluations: Some(1),
            rounds_asked_for,
            largest: None,
        };
        let never = AtomicBool::new(false);
        comparison.carry_out(&Device::cpu(1), &mut |_| {}, &never)
    };
    let first = go(false).unwrap();
    let file = folder.path().join("anchorhood/config.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let found = RunDir::config_of(&folder.path().join("anchorhood")).unwrap();
    let now = |rounds: usize| format!("rounds = {rounds}\n");
    let other = text.replace(&now(found.training.rounds), &now(3));
    std::fs::write(&file, other).unwrap();
    assert_eq!(began.training.rounds, 4);
    assert_eq!(go(false).unwrap().runs[0].last, first.runs[0].last);
    let refused = go(true).unwrap_err().to_string();
    assert!(refused.contains("training.rounds (3 ≠ 4)"), "{refused}");
}
