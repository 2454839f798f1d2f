//! An experiment carried out by the library: with several seeds, and stopped and gone on with.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anchorhood_engine::Device;
use anchorhood_reproduce::{Lab, LabFolders, ReproduceError, Results, Scale, Told, find};
use anchorhood_train::{Event, MachineConfig, Preset};

fn machine() -> MachineConfig {
    Preset::Quick.config("shapes").machine
}

fn place(folder: &Path) -> LabFolders {
    LabFolders {
        output: folder.into(),
        data: None,
        scale: Scale::Smoke,
    }
}

fn carry_out(
    folder: &Path,
    seeds: &[u64],
    stop_after: Option<usize>,
) -> Result<Results, ReproduceError> {
    let stop = AtomicBool::new(false);
    let mut epochs = 0;
    let mut observer = |told: Told| {
        if let Told::Event(Event::EpochEnded(_)) = told {
            epochs += 1;
            stop.store(stop_after.is_some_and(|n| epochs >= n), Ordering::Relaxed);
        }
    };
    let (place, machine) = (place(folder), machine());
    let device = Device::cpu(2);
    let mut lab = Lab::new(&device, &place, &machine, &mut observer, &stop);
    lab.carry_out(&find("table5").unwrap()[0], seeds)
}

#[test]
fn stopped_and_gone_on_with_it_finds_the_same() {
    let [whole, parts] = [(); 2].map(|_| tempfile::tempdir().unwrap());
    let expected = carry_out(whole.path(), &[0, 1], None).unwrap();
    for cell in &expected.cells {
        assert_eq!(cell.values.len(), 2);
        let mean = (cell.values[0] + cell.values[1]) / 2.0;
        assert!((cell.mean.unwrap() - mean).abs() < 1e-9);
        let std = (cell.values[0] - cell.values[1]).abs() / 2.0_f64.sqrt();
        assert!((cell.std.unwrap() - std).abs() < 1e-9);
        assert_eq!(cell.difference, None, "shapes are compared with nothing");
    }
    assert_eq!(expected.data.len(), 2, "each seed draws its own shapes");
    assert!(expected.markdown().contains("± "));

    let mut calls = 0;
    let found = loop {
        calls += 1;
        match carry_out(parts.path(), &[0, 1], Some(3)) {
            Err(ReproduceError::Stopped) if calls < 30 => continue,
            other => break other.unwrap(),
        }
    };
    assert!(calls > 2, "it was stopped: {calls}");
    assert_eq!(found.cells, expected.cells);
}

/// What a later version would train otherwise is not passed off as the same run.
#[test]
fn a_run_of_other_settings_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    carry_out(folder.path(), &[0], None).unwrap();
    let run = "shapes-resnet18-instance-e2-s0/finished.json";
    let file = place(folder.path()).runs().join(run);
    let text = std::fs::read_to_string(&file).unwrap();
    let other = text.replace("\"learning_rate\": 0.03", "\"learning_rate\": 0.3");
    assert_ne!(text, other);
    std::fs::write(&file, other).unwrap();
    // The AND run is finished and does not ask for it again; without its record it does.
    let and = "shapes-resnet18-and-r4-k1-linear-e2-s0/finished.json";
    std::fs::remove_file(place(folder.path()).runs().join(and)).unwrap();
    let error = carry_out(folder.path(), &[0], None).unwrap_err();
    assert!(
        error.to_string().contains("training.learning_rate"),
        "{error}"
    );
    assert!(error.is_usage());
}
