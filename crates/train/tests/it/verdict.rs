//! Verdicts without labels: which checkpoint they keep, when they end a run, and that a run taken
//! up again decides the same.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anchorhood_data::Dataset;
use anchorhood_discover::MemoryBank;
use anchorhood_engine::{Batch, Device, Network, NetworkOptions, Result, Stream, Tensors};
use anchorhood_methods::{EpochStart, Method, Round, StateDict, StateError};
use anchorhood_train::{
    Checkpoint, Event, LabelFreeEvaluated, MethodChoice, Outcome, RunConfig, RunDir, Subject,
    build_method, embedding_graph, model_path, train_method,
};

use crate::common;

/// A method that shows its judges a network which stays as it was drawn, and forgets everything
/// from an epoch on.
struct Collapsing {
    method: Box<dyn Method>,
    shown: Network,
    from: usize,
}

impl Method for Collapsing {
    fn name(&self) -> &'static str {
        self.method.name()
    }

    fn before_round(&mut self, round: &mut Round) -> Result<()> {
        self.method.before_round(round)
    }

    fn before_epoch(&mut self, start: &mut EpochStart) -> Result<()> {
        if start.epoch >= self.from {
            let network = &mut self.shown;
            let parameters = network.graph().parameters();
            let at = |name: &str| parameters.iter().position(|p| p.name == name).unwrap();
            let (weight, bias) = (at("fc.weight"), at("fc.bias"));
            for (which, value) in [(weight, 0.0), (bias, 1.0)] {
                let count = network.read(Tensors::Values, which)?.len();
                network.write(Tensors::Values, which, &vec![value; count])?;
            }
        }
        self.method.before_epoch(start)
    }

    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        self.method.step(stream, batch)
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        self.method.networks()
    }

    fn encoder(&mut self) -> (&mut Network, Option<&MemoryBank>) {
        (&mut self.shown, None)
    }

    fn state(&self, device: &Device) -> Result<StateDict> {
        self.method.state(device)
    }

    fn restore(
        &mut self,
        device: &Device,
        state: &StateDict,
    ) -> std::result::Result<(), StateError> {
        self.method.restore(device, state)
    }
}

/// Eight epochs, each a round of its own, after each of which there is a verdict.
fn config(patience: usize) -> RunConfig {
    let mut config = common::tiny();
    config.data.shapes_train = 40;
    config.method.name = MethodChoice::Instance;
    config.training.rounds = 7;
    config.evaluation.patience = patience;
    config
}

/// Goes on with a run that collapses in epoch 4, until `stop` says so.
fn go_on(
    dir: &mut RunDir,
    data: &Dataset,
    stop: impl Fn(&Event) -> bool + Sync,
) -> (Outcome, Vec<Event>) {
    let device = Device::cpu(1);
    let graph = embedding_graph(dir.config(), data.train.pictures.height()).unwrap();
    let mut shown = device.network(&graph, &NetworkOptions::new(8)).unwrap();
    shown.initialise(0).unwrap();
    let method = Box::new(Collapsing {
        method: build_method(&device, dir.config(), data).unwrap(),
        shown,
        from: 4,
    });
    let (mut told, stopped) = (vec![], AtomicBool::new(false));
    let mut hear = |event: &Event| {
        told.push(event.clone());
        stopped.fetch_or(stop(event), Ordering::Relaxed);
    };
    let outcome = train_method(&device, dir, data, method, &mut hear, &stopped);
    (outcome.unwrap(), told)
}

fn trained(events: &[Event]) -> Vec<LabelFreeEvaluated> {
    let of = |event: &Event| match event {
        Event::LabelFree(e) if matches!(e.subject, Subject::Trained { .. }) => Some(*e),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

fn round(e: &LabelFreeEvaluated) -> usize {
    match e.subject {
        Subject::Trained { round, .. } => round,
        other => panic!("of {other:?}"),
    }
}

/// The bits of a checkpoint without its clock.
fn bits(path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[34..258].fill(0);
    bytes
}

#[test]
fn a_run_that_collapses_ends_and_keeps_what_was_good() {
    let (runs, config) = (tempfile::tempdir().unwrap(), config(2));
    let data = common::data(&config);
    let mut dir = RunDir::create(runs.path(), "whole", &config).unwrap();
    let (outcome, told) = go_on(&mut dir, &data, |_| false);
    assert!(matches!(outcome, Outcome::Finished(_)));
    let verdicts = trained(&told);
    assert_eq!(verdicts.len(), 6, "two epochs early");
    for e in &verdicts {
        let good = round(e) < 4;
        assert_eq!(e.chosen, Some(good), "{e:?}");
        assert!(if good { e.score > 0.1 } else { e.score == 0.0 }, "{e:?}");
    }
    let stops = told.iter().filter_map(|e| match e {
        Event::StoppedEarly(s) => Some((s.round, s.epoch, s.worse)),
        _ => None,
    });
    assert_eq!(stops.collect::<Vec<_>>(), [(5, 0, 2)]);
    let model = model_path(dir.path());
    assert_eq!(model, dir.checkpoint("chosen"));
    let chosen = Checkpoint::load(&model).unwrap();
    assert_eq!(chosen.standing.position.round, 4, "after round 3");
    let last = Checkpoint::load(&dir.checkpoint("last")).unwrap();
    assert!(last.standing.stopped_early);

    // It is over: whoever takes it up again is told so, and trains nothing.
    drop(dir);
    let mut dir = RunDir::open(&runs.path().join("whole")).unwrap();
    let (outcome, again) = go_on(&mut dir, &data, |_| false);
    assert!(matches!(outcome, Outcome::Finished(_)));
    assert!(matches!(&again[..], [Event::RunEnded(_)]), "{again:?}");

    // Stopped after any epoch and taken up again it ends in the same bits.
    for stopped in 0..5 {
        let name = format!("stopped-{stopped}");
        let mut dir = RunDir::create(runs.path(), &name, &config).unwrap();
        let here = |e: &Event| matches!(e, Event::EpochEnded(e) if e.round == stopped);
        let (outcome, _) = go_on(&mut dir, &data, here);
        assert!(matches!(outcome, Outcome::Stopped(_)));
        let (outcome, _) = go_on(&mut dir, &data, |_| false);
        assert!(matches!(outcome, Outcome::Finished(_)));
        for checkpoint in ["chosen", "last"] {
            let there = runs.path().join("whole/checkpoints");
            let whole = there.join(format!("{checkpoint}.safetensors"));
            assert!(bits(&dir.checkpoint(checkpoint)) == bits(&whole), "{name}");
        }
    }
}

#[test]
fn without_patience_nothing_is_chosen_and_nothing_ends() {
    let (runs, config) = (tempfile::tempdir().unwrap(), config(0));
    let data = common::data(&config);
    let mut dir = RunDir::create(runs.path(), "a", &config).unwrap();
    let (_, told) = go_on(&mut dir, &data, |_| false);
    let verdicts = trained(&told);
    assert_eq!(verdicts.len(), 8);
    assert!(verdicts.iter().all(|e| e.chosen.is_none()));
    assert_eq!(model_path(dir.path()), dir.checkpoint("last"));
    let last = Checkpoint::load(&dir.checkpoint("last")).unwrap();
    assert!(last.standing.chosen.is_none() && !last.standing.stopped_early);
}
