//! Several processes embed folders together: the same bytes as one process's. Ranks are threads here; MPI's are in the tests of the program.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anchorhood_data::LabelChoice;
use anchorhood_engine::{Communicator, Device};
use anchorhood_files::Disk;
use anchorhood_ranks::ThreadRank;
use anchorhood_search::fuzzing::small_model;
use anchorhood_search::{FolderJob, FolderOutcome, Journal, Model, PictureIndex, SearchError};

fn fill(folder: &Path, pictures: u32) {
    std::fs::create_dir_all(folder).unwrap();
    for i in 0..pictures {
        let pixel = |x, y| image::Rgb([(i * 5) as u8, (x * 20) as u8, (y * 30) as u8]);
        let picture = image::RgbImage::from_fn(9, 8, pixel);
        picture.save(folder.join(format!("{i:04}.png"))).unwrap();
    }
}

fn job<'a>(
    model: &'a Model,
    folders: &'a [PathBuf],
    index: &Path,
    known: Option<&'a PictureIndex>,
) -> FolderJob<'a> {
    FolderJob {
        model,
        folders,
        labels: LabelChoice::None,
        known,
        journal: Journal::place(index),
        layer: None,
        batch: 4,
        thumbnail: Some(8),
        threads: 1,
        content_sums: true,
        restart: false,
        watched: false,
        disk: Disk::shared(),
    }
}

/// Makes an index as so many processes, or brings it up to date; says how many pictures each embedded, or what the first refuses.
fn index(ranks: usize, model: &Model, pictures: &Path, path: &Path) -> Result<usize, SearchError> {
    let folders = [pictures.to_owned()];
    let on = |rank: std::sync::Arc<ThreadRank>| {
        let device = Device::cpu(1).among(Communicator::of(rank));
        let stop = AtomicBool::new(false);
        if !device.communicator().is_first() {
            let stopped = job(model, &folders, path, None).help(&device, &stop)?;
            assert!(!stopped);
            return Ok(0);
        }
        let known = path.exists().then(|| PictureIndex::load(path).unwrap());
        let job = job(model, &folders, path, known.as_ref());
        let FolderOutcome::Finished(done) = job.run(&device, &mut |_| {}, &stop)? else {
            unreachable!("nobody asked it to stop")
        };
        let new = done.new;
        done.save(path, &job, &device, false)?;
        Ok(new)
    };
    ThreadRank::run(ranks, on).swap_remove(0)
}

#[test]
fn many_processes_write_what_one_writes() {
    let (folder, model) = (tempfile::tempdir().unwrap(), small_model());
    let pictures = folder.path().join("pictures");
    fill(&pictures, 150);
    std::fs::write(pictures.join("broken.png"), "no picture").unwrap();
    let path = folder.path().join("all.index");
    let bytes = |ranks: usize| {
        let new = index(ranks, &model, &pictures, &path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        (new, bytes)
    };
    let mut made = vec![];
    for ranks in [1, 2, 3] {
        let _ = std::fs::remove_file(&path);
        made.push(bytes(ranks));
    }
    assert_eq!(made[0].0, 151);
    assert!(made.iter().all(|one| *one == made[0]));
    // Brought up to date by several: what it knows is not embedded again.
    fill(&pictures, 160);
    std::fs::remove_file(pictures.join("0007.png")).unwrap();
    let (_, by_three) = bytes(3);
    std::fs::remove_file(&path).unwrap();
    assert!(
        by_three == bytes(1).1,
        "an index that was brought up to date by three"
    );
}

#[test]
fn processes_that_see_other_files_are_named() {
    let (folder, model) = (tempfile::tempdir().unwrap(), small_model());
    let path = folder.path().join("all.index");
    let places = ["a", "b"].map(|name| folder.path().join(name));
    fill(&places[0], 3);
    fill(&places[1], 2);
    let said = ThreadRank::run(2, |rank| {
        let communicator = Communicator::of(rank);
        let folders = [places[communicator.rank()].clone()];
        let device = Device::cpu(1).among(communicator);
        let job = job(&model, &folders, &path, None);
        let stop = AtomicBool::new(false);
        match device.communicator().is_first() {
            true => job.run(&device, &mut |_| {}, &stop).err().unwrap(),
            false => job.help(&device, &stop).err().unwrap(),
        }
        .to_string()
    });
    assert!(
        said[0].contains("rank 0 sees 3 pictures there, and rank 1 2"),
        "{said:?}"
    );
    assert_eq!(said[0], said[1]);
}
