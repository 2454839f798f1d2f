//! A run that ended where a run can be ended, or whose files were damaged, taken up again: it goes
//! on from the newest checkpoint that is whole, says so, and nothing is missing afterwards.

use std::fs;
use std::path::Path;

use anchorhood_train::{Checkpoint, Event, Outcome, TrainError};

use crate::common::{Brought, Run, each, tiny, without_clock};

fn warnings(told: &[Event]) -> Vec<&str> {
    each!(told, Event::Warning { message } => message.as_str()).collect()
}

fn kept(run: &Path) -> Vec<Event> {
    let text = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn ends(run: &Path) -> usize {
    kept(run).iter().filter(|e| matches!(e, Event::RunEnded(_))).count()
}

#[test]
fn from_a_bad_last_checkpoint_back_to_the_newest_whole_one() {
    let mut run = Run::new(&tiny());
    run.go_on().unwrap();
    let [last, one, zero] = ["last", "round-1", "round-0"].map(|name| run.dir.checkpoint(name));
    let whole = without_clock(&last);
    let bytes = fs::read(&last).unwrap();
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 4;
    let mut infinite = Checkpoint::load(&last).unwrap();
    infinite.weights[0].values[0] = f32::INFINITY;
    let other = run.runs.path().join("infinite");
    infinite.save(&other).unwrap();
    let infinite = fs::read(&other).unwrap();
    for bad in [&flipped[..], &bytes[..100], b"", &infinite] {
        // The last alone: the end of round 1 is the end of the run.
        fs::write(&last, bad).unwrap();
        let (_, told) = run.go_on().unwrap();
        let said = warnings(&told);
        assert!(said[0].contains("last.safetensors: not a whole checkpoint"), "{said:?}");
        assert!(said[0].contains("goes on from") && said[0].contains("round-1"), "{said:?}");
        assert!(without_clock(&last) == whole, "mended for all who read it");
        // Round 1 too: it is trained again, to the same bits.
        fs::write(&last, bad).unwrap();
        fs::write(&one, bad).unwrap();
        let (_, told) = run.go_on().unwrap();
        assert!(warnings(&told)[0].contains("round-0"), "{told:?}");
        assert!(without_clock(&last) == whole && without_clock(&one).len() == whole.len());
        // Nothing whole is left: the last is named.
        let kept = fs::read(&zero).unwrap();
        for path in [&last, &one, &zero] {
            fs::write(path, bad).unwrap();
        }
        let error = run.go_on().unwrap_err().to_string();
        assert!(error.contains("last.safetensors"), "{error}");
        fs::write(&zero, kept).unwrap();
        run.go_on().unwrap();
        assert!(without_clock(&last) == whole);
    }
    // One that is gone is as good as damaged.
    fs::remove_file(&last).unwrap();
    fs::remove_file(&one).unwrap();
    run.go_on().unwrap();
    assert!(without_clock(&last) == whole);
}

#[test]
fn half_a_line_of_metrics_is_cut_and_told() {
    let mut run = Run::new(&tiny());
    run.go_on().unwrap();
    let metrics = run.dir.path().join("metrics.jsonl");
    let text = fs::read(&metrics).unwrap();
    fs::write(&metrics, &text[..300]).unwrap();
    let (_, told) = run.go_on().unwrap();
    assert!(warnings(&told)[0].contains("metrics.jsonl: the last"), "{told:?}");
    assert!(matches!(kept(run.dir.path()).last(), Some(Event::RunEnded(_))));
    // Said once: what is there now is whole.
    let (_, told) = run.go_on().unwrap();
    assert_eq!(warnings(&told), Vec::<&str>::new());
}

/// Resuming a run that is over changes nothing about it: it is still told to have ended, once.
#[test]
fn a_finished_run_stays_finished() {
    let mut run = Run::new(&tiny());
    run.go_on().unwrap();
    assert_eq!(ends(run.dir.path()), 1);
    run.go_on().unwrap();
    assert_eq!(ends(run.dir.path()), 1, "resumed after its end");
    // Killed after its last checkpoint and before it said so.
    let metrics = fs::File::options().write(true).open(run.dir.path().join("metrics.jsonl"));
    metrics.unwrap().set_len(run.checkpoint("last").standing.metrics_bytes).unwrap();
    run.go_on().unwrap();
    assert_eq!(ends(run.dir.path()), 1, "killed at its end");
}

/// A device that fails in the midst of a run, as a GPU does: the run ends with a sentence and is
/// taken up from its last checkpoint.
#[test]
fn a_failing_device_ends_a_run_that_goes_on_from_its_last_checkpoint() {
    let mut config = tiny();
    config.data.shapes_train = 32;
    config.training.epochs = 2;
    let mut run = Run::new(&config);
    let failing = Brought { left: 6, ..Brought::new(&run) }; // one epoch is four steps
    let error = run.go_on_by(Some(failing), |_| false).unwrap_err();
    assert!(matches!(error, TrainError::DeviceFailed { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "an illegal memory access; the run is saved as of round 0, epoch 2"
    );
    let mut run = run.reopen();
    let whole = Brought::new(&run);
    let (outcome, _) = run.go_on_by(Some(whole), |_| false).unwrap();
    assert!(matches!(outcome, Outcome::Finished(_)));
}
