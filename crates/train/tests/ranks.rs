//! Several processes train what one trains. Ranks are threads here; MPI's are in the tests of the program.

mod common;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anchorhood_data::Dataset;
use anchorhood_engine::{Communicator, Device};
use anchorhood_ranks::ThreadRank;
use anchorhood_train::{
    Checkpoint, Discovered, Evaluated, Event, MethodChoice, Outcome, RunConfig, RunDir, TrainError,
    checkpoint_path, train,
};
use common::{data, tiny};

/// Goes on with a run, or begins it, as so many processes; what the first hears.
fn go_on(
    ranks: usize,
    runs: &Path,
    config: impl Fn(usize) -> RunConfig + Sync,
    data: &Dataset,
) -> Result<Vec<Event>, TrainError> {
    let path = runs.join("run");
    let one = |rank: std::sync::Arc<ThreadRank>| {
        let communicator = Communicator::of(rank);
        let (rank, mut events) = (communicator.rank(), vec![]);
        let config = config(rank);
        let mut dir = match (rank, path.exists()) {
            (0, true) => RunDir::open(&path)?,
            (0, false) => RunDir::create(runs, "run", &config)?,
            _ => RunDir::follow(&path, &config),
        };
        let stop = AtomicBool::new(false);
        let device = Device::cpu(1).among(communicator);
        let mut observer = |event: &Event| events.push(event.clone());
        let outcome = train(&device, &mut dir, data, &mut observer, &stop)?;
        assert!(matches!(outcome, Outcome::Finished(_)));
        Ok(events)
    };
    ThreadRank::run(ranks, one).swap_remove(0)
}

fn losses(events: &[Event]) -> Vec<f64> {
    let loss = |event: &Event| match event {
        Event::EpochEnded(e) => Some(e.loss),
        _ => None,
    };
    events.iter().filter_map(loss).collect()
}

fn judged(events: &[Event]) -> Vec<f64> {
    let top1 = |event: &Event| match event {
        Event::Evaluated(Evaluated { accuracy, .. }) => Some(accuracy.top1),
        _ => None,
    };
    events.iter().filter_map(top1).collect()
}

fn discovered(events: &[Event]) -> Option<Discovered> {
    events.iter().find_map(|event| match event {
        Event::Discovered(found) => Some(found.clone()),
        _ => None,
    })
}

/// One step an epoch, statistics of the whole batch.
fn one_step(method: MethodChoice) -> RunConfig {
    let mut config = anchorhood_train::Preset::Quick.config_for("shapes", method);
    let small = tiny();
    config.data = small.data;
    config.network.width = 2;
    (config.training.rounds, config.training.epochs) = (0, 1);
    config.training.batch = config.data.shapes_train;
    config.training.sync_norm = true;
    config.method.projector_width = 16;
    config.method.predictor_width = 16;
    config.method.projector_features = 8;
    config
}

#[test]
fn the_first_step_is_that_of_one_process() {
    for method in [
        MethodChoice::And,
        MethodChoice::Instance,
        MethodChoice::Anchorhood,
        MethodChoice::SimClr,
        MethodChoice::SimSiam,
        MethodChoice::Byol,
    ] {
        let config = one_step(method);
        let data = data(&config);
        let of = |ranks: usize| {
            let runs = tempfile::tempdir().unwrap();
            let events = go_on(ranks, runs.path(), |_| config.clone(), &data).unwrap();
            (losses(&events)[0], judged(&events))
        };
        let (whole, judged) = of(1);
        for ranks in [2, 4] {
            let (loss, judged_here) = of(ranks);
            let apart = (loss - whole).abs();
            assert!(
                apart <= 1e-5 * whole.abs(),
                "{method} on {ranks}: {loss} for {whole}"
            );
            // Raw pixels and the network as it was drawn: the same pictures vote.
            assert_eq!(judged_here[..2], judged[..2], "{method} on {ranks}");
        }
    }
}

#[test]
fn a_run_goes_on_with_other_processes() {
    let config = |rounds| {
        let mut config = tiny();
        config.data.shapes_train = 22; // which four cannot share out evenly
        config.training.rounds = rounds;
        config
    };
    let data = data(&config(0));
    let (all, one) = (config(1), tempfile::tempdir().unwrap());
    let whole = go_on(1, one.path(), |_| all.clone(), &data).unwrap();
    for (before, after) in [(1, 2), (2, 1), (2, 4), (4, 1)] {
        let runs = tempfile::tempdir().unwrap();
        go_on(before, runs.path(), |_| all.clone(), &data).unwrap();
        // As it was after round 0.
        let path = |name: &str| checkpoint_path(&runs.path().join("run"), name);
        std::fs::copy(path("round-0"), path("last")).unwrap();
        let begun = Checkpoint::load(&path("last")).unwrap();
        assert_eq!(begun.memory().map(|(rows, dim)| rows.len() / dim), Some(22));
        let events = go_on(after, runs.path(), |_| all.clone(), &data).unwrap();
        let ended = Checkpoint::load(&path("last")).unwrap();
        assert_eq!(ended.standing.position.round, 2, "{before} then {after}");
        let (rows, dim) = ended.memory().unwrap();
        assert!(rows.iter().all(|v| v.is_finite()));
        assert_eq!(rows.len() / dim, 22);
        let (found, expected) = (discovered(&events).unwrap(), discovered(&whole).unwrap());
        assert_eq!((found.anchors, found.k), (expected.anchors, expected.k));
    }
}

/// One bank, whatever the number of processes: the same neighbourhoods and the same vote.
#[test]
fn one_loaded_bank_is_seen_alike() {
    let mut all = tiny();
    all.data.shapes_train = 34;
    let data = data(&all);
    let origin = tempfile::tempdir().unwrap();
    go_on(1, origin.path(), |_| all.clone(), &data).unwrap();
    let from = |name: &str| checkpoint_path(&origin.path().join("run"), name);
    let of = |ranks: usize| {
        let runs = tempfile::tempdir().unwrap();
        drop(RunDir::create(runs.path(), "run", &all).unwrap());
        let to = checkpoint_path(&runs.path().join("run"), "last");
        std::fs::copy(from("round-0"), to).unwrap();
        let events = go_on(ranks, runs.path(), |_| all.clone(), &data).unwrap();
        let found = Checkpoint::load(&checkpoint_path(&runs.path().join("run"), "last"));
        let found = found.unwrap().neighbourhoods().unwrap();
        (found, discovered(&events).unwrap())
    };
    let (whole, told) = of(1);
    for ranks in [2, 4] {
        let (found, told_here) = of(ranks);
        assert_eq!(found.neighbours(), whole.neighbours(), "{ranks} ranks");
        assert_eq!(found.anchors(), whole.anchors(), "{ranks} ranks");
        assert_eq!(told_here.consistency, told.consistency);
        let apart = |(a, b): (&f32, &f32)| (a - b).abs();
        let apart = found.entropy().iter().zip(whole.entropy()).map(apart);
        assert!(apart.fold(0.0, f32::max) < 1e-5);
    }
}

#[test]
fn what_cannot_be_trained_together_is_refused() {
    let said = |ranks: usize, config: &(dyn Fn(usize) -> RunConfig + Sync)| {
        let runs = tempfile::tempdir().unwrap();
        let data = data(&config(0));
        let error = go_on(ranks, runs.path(), config, &data).unwrap_err();
        assert!(error.is_usage());
        error.to_string()
    };
    let uneven = said(3, &|_| tiny());
    assert!(
        uneven.contains("batch of 8") && uneven.contains("3 processes"),
        "{uneven}"
    );
    let nnclr = said(2, &|_| one_step(MethodChoice::NnClr));
    assert!(
        nnclr.contains("nnclr") && nnclr.contains("there are 2"),
        "{nnclr}"
    );
    let differ = said(4, &|rank| {
        let mut config = tiny();
        config.training.epochs += usize::from(rank == 2);
        config
    });
    assert!(
        differ.contains("training.epochs: 1 on rank 0, 2 on rank 2"),
        "{differ}"
    );
}
