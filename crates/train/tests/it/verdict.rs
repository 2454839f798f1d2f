//! Verdicts without labels: which checkpoint they keep, when they end a run, and that a run taken
//! up again decides the same.

use anchorhood_engine::{Network, NetworkOptions, Result, Tensors};
use anchorhood_train::{
    Event, LabelFreeEvaluated, Outcome, RunConfig, Subject, embedding_graph, methods, model_path,
};

use crate::common::{self, Brought, Run, each, without_clock};

/// Eight epochs, each a round of its own, after each of which there is a verdict.
fn config(patience: usize) -> RunConfig {
    let mut config = common::tiny();
    config.data.shapes_train = 40;
    config.method.name = &methods::INSTANCE;
    config.training.rounds = 7;
    config.evaluation.patience = patience;
    config
}

/// Goes on with a run until `stop` says so, by a method that shows its judges a network which stays
/// as it was drawn, and forgets everything from epoch 4 on.
fn go_on(run: &mut Run, stop: impl Fn(&Event) -> bool + Sync) -> (Outcome, Vec<Event>) {
    let graph = embedding_graph(run.dir.config(), run.data.train.pictures.height()).unwrap();
    let mut shown = run.device.network(&graph, &NetworkOptions::new(8)).unwrap();
    shown.initialise(0).unwrap();
    let method = Brought {
        shown: Some(shown),
        before_epoch: |shown, epoch| if epoch < 4 { Ok(()) } else { collapse(shown) },
        ..Brought::new(run)
    };
    run.go_on_by(Some(method), stop).unwrap()
}

fn collapse(network: &mut Network) -> Result<()> {
    let parameters = network.graph().parameters();
    let at = |name: &str| parameters.iter().position(|p| p.name == name).unwrap();
    for (which, value) in [(at("fc.weight"), 0.0), (at("fc.bias"), 1.0)] {
        let count = network.read(Tensors::Values, which)?.len();
        network.write(Tensors::Values, which, &vec![value; count])?;
    }
    Ok(())
}

fn trained(events: &[Event]) -> Vec<(usize, LabelFreeEvaluated)> {
    let of = |e: LabelFreeEvaluated| match e.subject {
        Subject::Trained { round, .. } => Some((round, e)),
        _ => None,
    };
    each!(events, Event::LabelFree(e) => *e).filter_map(of).collect()
}

#[test]
fn a_run_that_collapses_ends_and_keeps_what_was_good() {
    let mut run = Run::new(&config(2));
    let (outcome, told) = go_on(&mut run, |_| false);
    assert!(matches!(outcome, Outcome::Finished(_)));
    let verdicts = trained(&told);
    assert_eq!(verdicts.len(), 6, "two epochs early");
    for (round, e) in &verdicts {
        let good = *round < 4;
        assert_eq!(e.chosen, Some(good), "{e:?}");
        assert!(if good { e.figures.score > 0.1 } else { e.figures.score == 0.0 }, "{e:?}");
    }
    let stops = each!(told, Event::StoppedEarly(s) => (s.round, s.epoch, s.worse));
    assert_eq!(stops.collect::<Vec<_>>(), [(5, 0, 2)]);
    assert_eq!(model_path(run.dir.path()), run.dir.checkpoint("chosen"));
    assert_eq!(run.checkpoint("chosen").standing.position.round, 4, "after round 3");
    assert!(run.checkpoint("last").standing.stopped_early);

    // It is over: whoever takes it up again is told so, and trains nothing.
    let mut run = run.reopen();
    let (outcome, again) = go_on(&mut run, |_| false);
    assert!(matches!(outcome, Outcome::Finished(_)));
    assert!(matches!(&again[..], [Event::RunEnded(_)]), "{again:?}");

    // Stopped after any epoch and taken up again it ends in the same bits.
    for epoch in 0..5 {
        let mut parts = Run::new(&config(2));
        let here = |e: &Event| matches!(e, Event::EpochEnded(e) if e.round == epoch);
        let (outcome, _) = go_on(&mut parts, here);
        assert!(matches!(outcome, Outcome::Stopped(_)));
        let (outcome, _) = go_on(&mut parts, |_| false);
        assert!(matches!(outcome, Outcome::Finished(_)));
        for name in ["chosen", "last"] {
            let [one, other] = [&parts, &run].map(|r| without_clock(&r.dir.checkpoint(name)));
            assert!(one == other, "{name}, stopped in {epoch}");
        }
    }
}

#[test]
fn without_patience_nothing_is_chosen_and_nothing_ends() {
    let mut run = Run::new(&config(0));
    let (_, told) = go_on(&mut run, |_| false);
    let verdicts = trained(&told);
    assert_eq!(verdicts.len(), 8);
    assert!(verdicts.iter().all(|(_, e)| e.chosen.is_none()));
    assert_eq!(model_path(run.dir.path()), run.dir.checkpoint("last"));
    let last = run.checkpoint("last");
    assert!(last.standing.chosen.is_none() && !last.standing.stopped_early);
}
