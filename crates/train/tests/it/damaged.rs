//! A run whose files were damaged: it goes on from the newest checkpoint that is whole, and says
//! so.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anchorhood_data::Dataset;
use anchorhood_engine::Device;
use anchorhood_train::{Checkpoint, Event, Outcome, RunDir, TrainError, train};

use crate::common::{data, tiny};

fn go_on(dir: &mut RunDir, data: &Dataset) -> Result<(Outcome, Vec<Event>), TrainError> {
    let (stop, mut told) = (AtomicBool::new(false), vec![]);
    let mut hear = |event: &Event| told.push(event.clone());
    let outcome = train(&Device::cpu(1), dir, data, &mut hear, &stop)?;
    Ok((outcome, told))
}

fn warnings(told: &[Event]) -> Vec<&str> {
    let warnings = told.iter().filter_map(|e| match e {
        Event::Warning { message } => Some(message.as_str()),
        _ => None,
    });
    warnings.collect()
}

/// A file as it is in every run: a checkpoint without its clock.
fn without_clock(path: &Path) -> Vec<u8> {
    let mut bytes = fs::read(path).unwrap();
    bytes[34..258].fill(0);
    bytes
}

#[test]
fn from_a_bad_last_checkpoint_back_to_the_newest_whole_one() {
    let config = tiny();
    let data = data(&config);
    let runs = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(runs.path(), "a", &config).unwrap();
    go_on(&mut dir, &data).unwrap();
    let [last, one, zero] = ["last", "round-1", "round-0"].map(|name| dir.checkpoint(name));
    let whole = without_clock(&last);
    let bytes = fs::read(&last).unwrap();
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 4;
    let mut infinite = Checkpoint::load(&last).unwrap();
    infinite.weights[0].values[0] = f32::INFINITY;
    let other = runs.path().join("infinite");
    infinite.save(&other).unwrap();
    let infinite = fs::read(&other).unwrap();
    for bad in [&flipped[..], &bytes[..100], b"", &infinite] {
        // The last alone: the end of round 1 is the end of the run.
        fs::write(&last, bad).unwrap();
        let (_, told) = go_on(&mut dir, &data).unwrap();
        let said = warnings(&told);
        assert!(said[0].contains("last.safetensors: not a whole checkpoint"), "{said:?}");
        assert!(said[0].contains("goes on from") && said[0].contains("round-1"), "{said:?}");
        assert!(without_clock(&last) == whole, "mended for all who read it");
        // Round 1 too: it is trained again, to the same bits.
        fs::write(&last, bad).unwrap();
        fs::write(&one, bad).unwrap();
        let (_, told) = go_on(&mut dir, &data).unwrap();
        assert!(warnings(&told)[0].contains("round-0"), "{told:?}");
        assert!(without_clock(&last) == whole && without_clock(&one).len() == whole.len());
        // Nothing whole is left: the last is named.
        let kept = fs::read(&zero).unwrap();
        for path in [&last, &one, &zero] {
            fs::write(path, bad).unwrap();
        }
        let error = go_on(&mut dir, &data).unwrap_err().to_string();
        assert!(error.contains("last.safetensors"), "{error}");
        fs::write(&zero, kept).unwrap();
        go_on(&mut dir, &data).unwrap();
        assert!(without_clock(&last) == whole);
    }
    // One that is gone is as good as damaged.
    fs::remove_file(&last).unwrap();
    fs::remove_file(&one).unwrap();
    go_on(&mut dir, &data).unwrap();
    assert!(without_clock(&last) == whole);
}

#[test]
fn half_a_line_of_metrics_is_cut_and_told() {
    let config = tiny();
    let data = data(&config);
    let runs = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(runs.path(), "a", &config).unwrap();
    go_on(&mut dir, &data).unwrap();
    let metrics = dir.path().join("metrics.jsonl");
    let text = fs::read(&metrics).unwrap();
    fs::write(&metrics, &text[..300]).unwrap();
    let (_, told) = go_on(&mut dir, &data).unwrap();
    assert!(warnings(&told)[0].contains("metrics.jsonl: the last"), "{told:?}");
    let after = fs::read_to_string(&metrics).unwrap();
    let events: Vec<Event> = after.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert!(matches!(events.last(), Some(Event::RunEnded(_))));
    // Said once: what is there now is whole.
    let (_, told) = go_on(&mut dir, &data).unwrap();
    assert_eq!(warnings(&told), Vec::<&str>::new());
}
