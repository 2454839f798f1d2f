//! Several processes train what one trains. Ranks are threads here; MPI's are in the tests of the
//! program.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anchorhood_data::{Dataset, EpochOrder, LoadOptions, Pictures, encode_png};
use anchorhood_distributed::ThreadRank;
use anchorhood_engine::{Communicator, Cpu, Device, SimdLevel};
use anchorhood_models::RESNET10;
use anchorhood_train::{
    Checkpoint, DiscoverChoice, Discovered, Event, Labelled, LossRows, MethodSpec, Outcome,
    Position, RunConfig, RunDir, TimeBudget, TrainError, Trainer, TrainingSet, checkpoint_path,
    fellow_readers, found_by_first, measure, methods, train,
};

use crate::common::{data, each, judged, losses, methods, pretexts, steps, tiny, tiny_by};

/// Goes on with a run, or begins it, as so many processes; what the first hears.
fn go_on(
    ranks: usize,
    runs: &Path,
    config: impl Fn(usize) -> RunConfig + Sync,
    data: &Dataset,
) -> Result<Vec<Event>, TrainError> {
    let path = runs.join("run");
    let one = |rank: Arc<ThreadRank>| {
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

/// A run from its beginning to its end.
fn whole(ranks: usize, config: &RunConfig, data: &Dataset) -> Vec<Event> {
    let runs = tempfile::tempdir().unwrap();
    go_on(ranks, runs.path(), |_| config.clone(), data).unwrap()
}

/// Shares that a method told of what it is taught by.
fn shares(events: &[Event]) -> Vec<f64> {
    pretexts(events).iter().flat_map(|told| told.figures.iter().map(|f| f.share)).collect()
}

fn discovered(events: &[Event]) -> Option<Discovered> {
    each!(events, Event::Discovered(found) => found.clone()).next()
}

/// One step an epoch, statistics of the whole batch.
fn one_step(method: &'static MethodSpec) -> RunConfig {
    let mut config = tiny_by(method, [16, 8]);
    config.network.architecture = &RESNET10;
    config.training.rounds = 0;
    config.training.batch = config.data.shapes_train;
    config.training.sync_norm = true;
    config
}

#[test]
fn the_first_step_is_that_of_one_process() {
    for method in methods().filter(|method| method.multi_process.is_ok()) {
        let config = one_step(method);
        let data = data(&config);
        let config = config.fitted(&data).unwrap();
        let of = |ranks: usize| {
            let events = whole(ranks, &config, &data);
            (losses(&events)[0], judged(&events), shares(&events))
        };
        let (whole, judged, told) = of(1);
        for ranks in [2, 4] {
            let (loss, judged_here, told_here) = of(ranks);
            let apart = (loss - whole).abs();
            assert!(apart <= 1e-5 * whole.abs(), "{method} on {ranks}: {loss} for {whole}");
            // What was counted was counted of all processes' pictures.
            let apart = told_here.iter().zip(&told).map(|(a, b)| (a - b).abs());
            assert_eq!(told_here.len(), told.len());
            assert!(apart.fold(0.0, f64::max) < 0.05, "{method} on {ranks}");
            // Raw pixels and the network as it was drawn: the same pictures vote.
            assert_eq!(judged_here[..2], judged[..2], "{method} on {ranks}");
        }
    }
}

#[test]
fn a_run_goes_on_with_other_processes() {
    let mut all = tiny();
    all.data.shapes_train = 22; // which four cannot share out evenly
    all.training.rounds = 2;
    let data = data(&all);
    let whole = whole(1, &all, &data);
    for processes in [[1, 2, 4], [4, 1, 2], [2, 4, 1]] {
        let runs = tempfile::tempdir().unwrap();
        let path = |name: &str| checkpoint_path(&runs.path().join("run"), name);
        for (part, ranks) in processes.into_iter().enumerate() {
            let events = go_on(ranks, runs.path(), |_| all.clone(), &data).unwrap();
            let ended = Checkpoint::load(&path("last")).unwrap();
            assert_eq!(ended.standing.position.round, 3, "{processes:?}");
            assert_eq!(ended.memory().map(|(rows, dim)| rows.len() / dim), Some(22));
            if part < 2 {
                let (found, expected) = (discovered(&events).unwrap(), discovered(&whole).unwrap());
                assert_eq!((found.anchors, found.k), (expected.anchors, expected.k));
                // As it was after a round before its last.
                std::fs::copy(path(&format!("round-{part}")), path("last")).unwrap();
            }
        }
    }
}

/// The same rows are drawn, whatever the number of processes, and other ones in another step.
#[test]
fn a_sampled_loss_is_that_of_one_process() {
    let mut config = one_step(&methods::AND);
    config.data.shapes_train = 64;
    config.training.batch = 8;
    config.discovery.fill = false;
    let data = data(&config);
    let of = |ranks: usize, rows: LossRows| {
        let mut config = config.clone();
        config.discovery.loss_rows = rows;
        on_ranks(ranks, |device| first_losses(device, &config, &data, 2)).swap_remove(0)
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

/// What each of several processes finds, on a device of its own.
fn on_ranks<T: Send>(ranks: usize, find: impl Fn(&Device) -> T + Sync) -> Vec<T> {
    ThreadRank::run(ranks, |rank| find(&Device::cpu(1).among(Communicator::of(rank))))
}

/// The losses of the first steps of a run.
fn first_losses(device: &Device, config: &RunConfig, data: &Dataset, count: usize) -> Vec<f64> {
    let mut trainer = Trainer::new(device, config, TrainingSet::of(data)).unwrap();
    trainer.begin().unwrap();
    let until = Position { batch: count, ..Position::default() };
    steps(&mut trainer, Position::default(), until, config.training.epochs)
}

/// How far losses part from others, at most, relative to these.
fn apart(losses: &[f64], from: &[f64]) -> f64 {
    let apart = losses.iter().zip(from).map(|(a, b)| (a - b).abs() / b.abs());
    apart.fold(0.0, f64::max)
}

/// Training is chaotic: fifty losses of several processes part from one's as one's do from each
/// other where vectors of another length have it sum in another order.
#[test]
fn fifty_losses_part_as_those_of_one_process_do() {
    const STEPS: usize = 50;
    let mut config = one_step(&methods::AND);
    config.network.width = 8;
    config.discovery.fill = false;
    config.training.batch = 8;
    config.data.shapes_train = STEPS * config.training.batch;
    // At a high one all that parts is soon as far apart as can be.
    config.training.learning_rate = 0.003;
    let data = data(&config);
    let at = |level: SimdLevel| Device::from(Cpu::with_level(1, level).unwrap());
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
        let all = on_ranks(ranks, |device| first_losses(device, &config, &data, STEPS));
        let found = apart(&all[0], &whole);
        println!("{ranks} ranks part by {found:.1e}, one process from itself by {by_itself:.1e}");
        assert!(found <= 2.0 * by_itself, "{ranks} ranks: {found:.1e}, {by_itself:.1e}");
        assert!(all.iter().all(|losses| *losses == all[0]), "{ranks} ranks");
    }
}

/// The first process's clock decides how many steps are timed, and how many epochs there are.
#[test]
fn a_time_budget_is_that_of_the_first() {
    let config = tiny();
    let data = data(&config);
    let epochs = on_ranks(2, |device| {
        let communicator = device.communicator();
        let folder = tempfile::tempdir().unwrap();
        let seconds = 20.0 + 10.0 * communicator.rank() as f64;
        let budget = TimeBudget::new(seconds, Instant::now());
        let measured = measure(device, &config, &data, None, folder.path(), &budget).unwrap();
        let with = |rounds, epochs| config.with_rounds(rounds, epochs);
        let found = || measured.fitted(&budget, 0..=2, with);
        found_by_first(communicator, found).unwrap()
    });
    assert!(epochs[0].1 > 1 && epochs[0] == epochs[1], "{epochs:?}");
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
        let all = on_ranks(ranks, |device| {
            let mut trainer = Trainer::new(device, &all, TrainingSet::of(&data)).unwrap();
            let bank = Checkpoint::load(&from("round-0")).unwrap();
            trainer.restore(bank, &from("round-0")).unwrap();
            let examiner = Labelled::of(&data, &all.evaluation, device).unwrap();
            trainer.judge(&examiner).unwrap()
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

/// Discovery that is approximate finds the same on any number of processes, and says how much of
/// the truth that is.
#[test]
fn approximate_discovery_is_that_of_one_process() {
    let mut config = tiny();
    config.data.shapes_train = 40;
    config.discovery.by = DiscoverChoice::Approximate;
    let data = data(&config);
    for ranks in [1, 2, 4] {
        let events = whole(ranks, &config, &data);
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
    assert!(uneven.contains("batch of 8") && uneven.contains("3 processes"), "{uneven}");
    for (method, why) in [
        (&methods::NNCLR, "the nearest of all pictures"),
        (&methods::COUNTING, "the next of the batch"),
    ] {
        let alone = said(2, &|_| one_step(method));
        let named = alone.contains(method.name) && alone.contains(why);
        assert!(named && alone.contains("there are 2"), "{alone}");
    }
    let differ = said(4, &|rank| {
        let mut config = tiny();
        config.training.epochs += usize::from(rank == 2);
        config
    });
    assert!(differ.contains("training.epochs: 1 on rank 0, 2 on rank 2"), "{differ}");
}

/// A folder of pictures, one of which cannot be read.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for i in 0..23_u8 {
        let rgb: Vec<u8> = (0..192).map(|b| b ^ (11 * i)).collect();
        let mut png = encode_png(8, 8, &rgb).unwrap();
        if i == 7 {
            png.truncate(40);
        }
        std::fs::write(folder.path().join(format!("{i:02}.png")), png).unwrap();
    }
    folder
}

/// Each process decodes its own part of the files to know them, and all know the same.
#[test]
fn a_folder_is_looked_through_together() {
    let folder = folder();
    let of = |ranks: usize| {
        ThreadRank::run(ranks, |rank| {
            let together = Communicator::of(rank);
            let decoded = AtomicUsize::new(0);
            let options = LoadOptions {
                size: Some(8),
                fellows: fellow_readers(&together),
                ..LoadOptions::default()
            };
            let progress = |_, _| {
                decoded.fetch_add(1, Ordering::Relaxed);
            };
            let place = folder.path().to_str().unwrap();
            let data = anchorhood_data::open_with_progress(place, &options, &progress).unwrap();
            let decoded = decoded.into_inner();
            assert_eq!(decoded, together.part(23).len(), "{ranks} ranks");
            let pictures = &data.train.pictures;
            let pixels = (0..pictures.len()).flat_map(|i| pictures.picture(i).to_vec());
            let pixels: Vec<u8> = pixels.collect();
            (data.mean, data.std, data.skipped, data.train.names, pixels)
        })
    };
    let whole = of(1).remove(0);
    assert_eq!((whole.2.len(), whole.3.len()), (1, 22));
    for ranks in [2, 4] {
        assert!(of(ranks).iter().all(|found| *found == whole), "{ranks}");
    }
}

/// In an epoch a process asks for the pictures of its own part of each batch, and for no other.
#[test]
fn a_process_reads_the_pictures_of_its_batches() {
    let (batch, n) = (8, 40);
    let mut config = one_step(&methods::INSTANCE);
    config.training.batch = batch;
    let asked = ThreadRank::run(2, |rank| {
        let asked = Arc::new(Mutex::new(vec![]));
        let noted = asked.clone();
        let make = move |i: usize, bytes: &mut [u8]| {
            noted.lock().unwrap().push(i);
            let fill = |(b, byte): (usize, &mut u8)| *byte = (31 * i + 7 * b) as u8;
            bytes.iter_mut().enumerate().for_each(fill);
        };
        let set = TrainingSet {
            name: "made".into(),
            pictures: Pictures::from_fn(8, 8, n, make).unwrap(),
            mean: [0.5; 3],
            std: [0.25; 3],
        };
        let device = Device::cpu(1).among(Communicator::of(rank));
        let mut trainer = Trainer::new(&device, &config, set).unwrap();
        // What was looked at to know whether there is anything to learn.
        asked.lock().unwrap().clear();
        trainer.begin().unwrap();
        let at = |batch| Position { batch, ..Position::default() };
        for step in 0..n / batch {
            trainer.advance(at(step), 1).unwrap();
        }
        trainer.end();
        std::mem::take(&mut *asked.lock().unwrap())
    });
    for (rank, asked) in asked.iter().enumerate() {
        let order = |epoch| {
            let order =
                EpochOrder { seed: config.seed, pictures: n, batch, part: 4 * rank..4 * rank + 4 };
            order.of(epoch)
        };
        // The loader is a few batches ahead, in the next epoch already.
        let (own, next) = (order(0), order(1));
        let mut found = asked.clone();
        found.retain(|i| !next.contains(&(*i as u32)) || own.contains(&(*i as u32)));
        assert!(asked.len() >= own.len() && asked.len() <= own.len() + 5 * 4);
        assert!(own.iter().all(|i| found.contains(&(*i as usize))), "{rank}");
        assert!(found.iter().all(|i| own.contains(&(*i as u32))), "{rank}");
    }
}
