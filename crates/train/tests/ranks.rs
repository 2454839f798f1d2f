//! Several processes train what one trains. Ranks are threads here; MPI's are in the tests of the program.

mod common;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anchorhood_data::Dataset;
use anchorhood_engine::{Communicator, Cpu, Device, SimdLevel};
use anchorhood_ranks::ThreadRank;
use anchorhood_train::{
    Checkpoint, DiscoverChoice, Discovered, Evaluated, Event, Labelled, LossRows, MethodChoice,
    Outcome, Position, RunConfig, RunDir, TimeBudget, TrainError, Trainer, TrainingSet,
    checkpoint_path, measure, train,
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

/// The same rows are drawn, whatever the number of processes, and other ones in another step.
#[test]
fn a_sampled_loss_is_that_of_one_process() {
    let mut config = one_step(MethodChoice::And);
    config.data.shapes_train = 64;
    config.training.batch = 8;
    let data = data(&config);
    let of = |ranks: usize, rows: LossRows| {
        let mut config = config.clone();
        config.discovery.loss_rows = rows;
        let mut all = ThreadRank::run(ranks, |rank| {
            let device = Device::cpu(1).among(Communicator::of(rank));
            first_losses(&device, &config, &data, 2)
        });
        all.swap_remove(0)
    };
    let (exact, sampled) = (of(1, LossRows::Exact), of(1, LossRows::Sampled(16)));
    let off = (sampled[0] - exact[0]).abs() / exact[0];
    assert!(off > 1e-6 && off < 0.2, "{sampled:?} {exact:?}");
    for ranks in [2, 4] {
        let found = of(ranks, LossRows::Sampled(16));
        assert!(
            (found[0] - sampled[0]).abs() < 1e-5 * sampled[0],
            "{ranks}: {found:?} {sampled:?}"
        );
    }
    // As many rows as there are: all of them, and the exact loss.
    assert_eq!(of(1, LossRows::Sampled(64)), exact);
}

/// Begun by four, gone on with by one, brought to its end by two.
#[test]
fn a_run_passes_from_four_to_one_to_two() {
    let mut config = tiny();
    config.data.shapes_train = 22;
    config.training.rounds = 2;
    let data = data(&config);
    let runs = tempfile::tempdir().unwrap();
    let path = |name: &str| checkpoint_path(&runs.path().join("run"), name);
    for (ranks, then) in [(4, Some("round-0")), (1, Some("round-1")), (2, None)] {
        let events = go_on(ranks, runs.path(), |_| config.clone(), &data).unwrap();
        assert!(losses(&events).iter().all(|loss| loss.is_finite()));
        let ended = Checkpoint::load(&path("last")).unwrap();
        assert_eq!(ended.standing.position.round, 3, "{ranks} ranks");
        if let Some(then) = then {
            std::fs::copy(path(then), path("last")).unwrap();
        }
    }
}

/// The losses of the first steps of a run.
fn first_losses(device: &Device, config: &RunConfig, data: &Dataset, steps: usize) -> Vec<f64> {
    let mut trainer = Trainer::new(device, config, TrainingSet::of(data)).unwrap();
    trainer.begin().unwrap();
    let mut losses = vec![];
    while losses.len() < steps {
        let at = Position {
            batch: losses.len(),
            ..Position::default()
        };
        losses.extend(trainer.advance(at, 1).unwrap());
    }
    losses
}

/// How far losses part from others, at most, relative to these.
fn apart(losses: &[f64], from: &[f64]) -> f64 {
    let apart = losses
        .iter()
        .zip(from)
        .map(|(a, b)| (a - b).abs() / b.abs());
    apart.fold(0.0, f64::max)
}

/// Training is chaotic: fifty losses of several processes part from one's as one's do from each other where vectors of another length
/// have it sum in another order.
#[test]
fn fifty_losses_part_as_those_of_one_process_do() {
    const STEPS: usize = 50;
    let mut config = one_step(MethodChoice::And);
    config.network.width = 8;
    config.training.batch = 8;
    config.data.shapes_train = STEPS * config.training.batch;
    config.training.learning_rate = 0.003; // at a high one all that parts is soon as far apart as can be
    let data = data(&config);
    let at = |level: SimdLevel| Device::new(Cpu::with_level(1, level).unwrap());
    let levels = SimdLevel::available().into_iter().map(at);
    let whole = first_losses(&Device::cpu(1), &config, &data, STEPS);
    let by_itself =
        levels.map(|device| apart(&first_losses(&device, &config, &data, STEPS), &whole));
    let by_itself = by_itself.fold(0.0, f64::max);
    if by_itself == 0.0 {
        anchorhood_testing::skip(
            "this machine has one kind of vectors, and sums in one order alone",
        );
        return;
    }
    for ranks in [2, 4] {
        let all = ThreadRank::run(ranks, |rank| {
            let device = Device::cpu(1).among(Communicator::of(rank));
            first_losses(&device, &config, &data, STEPS)
        });
        let found = apart(&all[0], &whole);
        println!("{ranks} ranks part by {found:.1e}, one process from itself by {by_itself:.1e}");
        assert!(
            found <= 2.0 * by_itself,
            "{ranks} ranks: {found:.1e}, {by_itself:.1e}"
        );
        assert!(all.iter().all(|losses| *losses == all[0]), "{ranks} ranks");
    }
}

/// The first process's clock decides how many steps are timed, and how many epochs there are.
#[test]
fn a_time_budget_is_that_of_the_first() {
    let config = tiny();
    let data = data(&config);
    let epochs = ThreadRank::run(2, |rank| {
        let communicator = Communicator::of(rank);
        let device = Device::cpu(1).among(communicator.clone());
        let folder = tempfile::tempdir().unwrap();
        let budget = TimeBudget {
            seconds: 20.0 + 10.0 * communicator.rank() as f64,
            since: Instant::now(),
            afterwards: 0.0,
        };
        let measured = measure(&device, &config, &data, None, folder.path(), &budget).unwrap();
        let with = |epochs| config.with_epochs(epochs);
        let fitted = measured.fitted_together(&communicator, &budget, with);
        fitted.unwrap().training.epochs
    });
    assert!(epochs[0] > 1 && epochs[0] == epochs[1], "{epochs:?}");
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
    let vote = |ranks: usize| {
        let all = ThreadRank::run(ranks, |rank| {
            let device = Device::cpu(1).among(Communicator::of(rank));
            let mut trainer = Trainer::new(&device, &all, TrainingSet::of(&data)).unwrap();
            let bank = Checkpoint::load(&from("round-0")).unwrap();
            trainer.restore(bank, &from("round-0")).unwrap();
            let mut examiner = Labelled::of(&data, &all.evaluation, &device).unwrap();
            trainer.judge(&mut examiner).unwrap().unwrap()
        });
        assert!(all.iter().all(|accuracy| *accuracy == all[0]));
        all[0]
    };
    let ((whole, told), voted) = (of(1), vote(1));
    for ranks in [2, 4] {
        let (found, told_here) = of(ranks);
        assert_eq!(vote(ranks), voted, "{ranks} ranks");
        assert_eq!(found.neighbours(), whole.neighbours(), "{ranks} ranks");
        assert_eq!(found.anchors(), whole.anchors(), "{ranks} ranks");
        assert_eq!(told_here.consistency, told.consistency);
        let apart = |(a, b): (&f32, &f32)| (a - b).abs();
        let apart = found.entropy().iter().zip(whole.entropy()).map(apart);
        assert!(apart.fold(0.0, f32::max) < 1e-5);
    }
}

/// Discovery that is approximate finds the same on any number of processes, and says how much of the truth that is.
#[test]
fn approximate_discovery_is_that_of_one_process() {
    let mut config = tiny();
    config.data.shapes_train = 40;
    config.discovery.by = DiscoverChoice::Approximate;
    let data = data(&config);
    for ranks in [1, 2, 4] {
        let runs = tempfile::tempdir().unwrap();
        let events = go_on(ranks, runs.path(), |_| config.clone(), &data).unwrap();
        let found = discovered(&events).unwrap();
        // So few pictures are all in the sample.
        assert_eq!(found.recall, Some(1.0), "{ranks} ranks");
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
    for method in [
        MethodChoice::NnClr,
        MethodChoice::DeepCluster,
        MethodChoice::SplitBrain,
        MethodChoice::Nat,
        MethodChoice::Counting,
        MethodChoice::Jigsaw,
    ] {
        let alone = said(2, &|_| one_step(method));
        let named = alone.contains(method.name());
        assert!(named && alone.contains("there are 2"), "{alone}");
    }
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
