//! An experiment carried out by the library: with several seeds, and stopped and gone on with.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anchorhood_engine::Device;
use anchorhood_reproduce::{Lab, LabFolders, ReproduceError, Results, Scale, find};
use anchorhood_train::{MachineConfig, Preset};

use crate::{stopping, to_its_end};

fn machine() -> MachineConfig {
    Preset::Quick.config("shapes").machine
}

fn place(folder: &Path) -> LabFolders {
    LabFolders { output: folder.into(), data: None, scale: Scale::Smoke }
}

fn carry_out(
    folder: &Path,
    seeds: &[u64],
    stop_after: Option<usize>,
) -> Result<Results, ReproduceError> {
    carry_out_rows(folder, seeds, stop_after, &[])
}

fn carry_out_rows(
    folder: &Path,
    seeds: &[u64],
    stop_after: Option<usize>,
    only: &[String],
) -> Result<Results, ReproduceError> {
    let stop = AtomicBool::new(false);
    let mut observer = stopping(&stop, stop_after);
    let (place, machine) = (place(folder), machine());
    let device = Device::cpu(2);
    let mut lab = Lab::new(&device, &place, &machine, &mut observer, &stop);
    lab.carry_out(&find("table5").unwrap()[0], seeds, only)
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
    assert!(expected.markdown(&[]).contains("± "));
    let found = to_its_end(2, || carry_out(parts.path(), &[0, 1], Some(3)));
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
    assert!(error.to_string().contains("training.learning_rate"), "{error}");
    assert!(error.is_usage());
}

/// One row alone; then the other one, beside what is finished; the record of a run travels without
/// its checkpoints.
#[test]
fn rows_are_run_one_by_one_and_their_records_travel() {
    let [first, second] = [(); 2].map(|_| tempfile::tempdir().unwrap());
    let row = |name: &str| [name.to_string()];
    let ours = |results: &Results| results.cells.iter().map(|c| c.ours()).collect::<Vec<_>>();
    let random = carry_out_rows(first.path(), &[0], None, &row("Random model")).unwrap();
    assert_eq!(ours(&random)[1], "not run");
    let all = carry_out_rows(first.path(), &[0], None, &row("Instance model")).unwrap();
    assert_eq!(ours(&all)[0], ours(&random)[0]);
    assert!(all.cells[1].mean.is_some());

    for name in ["instance-e2-s0", "and-r4-k1-linear-random-start-e2-s0"] {
        let run = format!("shapes-resnet18-{name}");
        let [from, to] = [&first, &second].map(|f| place(f.path()).runs().join(&run));
        std::fs::create_dir_all(&to).unwrap();
        std::fs::copy(from.join("finished.json"), to.join("finished.json")).unwrap();
    }
    let again = carry_out(second.path(), &[0], None).unwrap();
    assert_eq!(ours(&again), ours(&all));

    let error = carry_out_rows(first.path(), &[0], None, &row("no row")).unwrap_err();
    assert!(error.to_string().contains("Random model; Instance model"));
    assert!(error.is_usage());
}
