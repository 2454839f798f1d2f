//! Every file operation of `embed` and `index` goes wrong in every way, and the power is cut after
//! each: the same job, begun again, leaves the same bytes, and under its name a file is whole or
//! not there.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use anchorhood_engine::Device;
use anchorhood_export::{ExportError, TableFormat, npy_names_file, save_folder_table};
use anchorhood_index::fuzzing::small_model;
use anchorhood_index::{FolderJob, FolderVectors, Model, PictureIndex, SearchError};
use anchorhood_storage::{FileSystem, Forgetful, attack};

/// More than are decoded at a time, so that the journal grows by pieces.
const PICTURES: usize = 70;

/// Those that an index of before has.
const BEFORE: usize = 5;

/// A tiny model, and a folder of pictures one of which is none.
struct Lab {
    _folder: tempfile::TempDir,
    pictures: PathBuf,
    model: Model,
    device: Device,
    /// An index of before, of five pictures and of one that is gone.
    known: PictureIndex,
}

/// One for all tests.
static LAB: LazyLock<Lab> = LazyLock::new(Lab::new);

impl Lab {
    fn new() -> Lab {
        let folder = tempfile::tempdir().unwrap();
        let (model, device) = (small_model(), Device::cpu(1));
        let (pictures, index) = (folder.path().join("pictures"), folder.path().join("index"));
        std::fs::create_dir(&pictures).unwrap();
        let write = |i: usize, name: &str| {
            let grey = |x, y| image::Rgb([(i as u32 * (3 * x + y + 1)) as u8; 3]);
            image::RgbImage::from_fn(8, 8, grey).save(pictures.join(name)).unwrap();
        };
        (0..BEFORE).for_each(|i| write(i, &format!("{i:02}.png")));
        write(7, "gone.png");
        let known = PictureIndex::build(&index, &model, &device, &pictures).unwrap();
        assert_eq!(known.len(), BEFORE + 1);
        std::fs::remove_file(pictures.join("gone.png")).unwrap();
        (BEFORE..PICTURES).for_each(|i| write(i, &format!("{i:02}.png")));
        std::fs::write(pictures.join("broken.png"), "no picture").unwrap();
        Lab { model, _folder: folder, pictures, device, known }
    }

    fn job(&self, disk: &Arc<dyn FileSystem>, output: &Path) -> FolderJob<'_> {
        FolderJob {
            batch: 8,
            threads: 1,
            content_sums: false,
            disk: disk.clone(),
            ..FolderJob::new(&self.model, std::slice::from_ref(&self.pictures), output)
        }
    }

    fn vectors(&self, job: &FolderJob) -> Result<FolderVectors, SearchError> {
        job.run_whole(&self.device, &mut |_| {})
    }

    fn embed(
        &self,
        disk: &Arc<dyn FileSystem>,
        format: TableFormat,
        output: &Path,
    ) -> Result<(), ExportError> {
        let vectors = self.vectors(&self.job(disk, output))?;
        save_folder_table(&**disk, format, output, &self.model, vectors)
    }

    /// Brings the index of before up to date, in its place.
    fn update(&self, disk: &Arc<dyn FileSystem>, output: &Path) -> Result<(), ExportError> {
        let job = FolderJob { known: Some(&self.known), ..self.job(disk, output) };
        assert_eq!(self.known.cannot_take_up(&job), None);
        let (_, changes) = self.vectors(&job)?.save(output, &job, &self.device, false)?;
        assert_eq!((changes.added, changes.removed), (PICTURES - BEFORE, 1));
        Ok(())
    }

    fn index(&self, disk: &Arc<dyn FileSystem>, output: &Path) -> Result<(), ExportError> {
        let job = self.job(disk, output);
        let mut vectors = self.vectors(&job)?;
        vectors.index(output, &job)?.save_on(&**disk)?;
        Ok(vectors.journal.remove()?)
    }
}

type Work<'a> = &'a dyn Fn(&Arc<dyn FileSystem>) -> Result<(), ExportError>;

/// Attacks a job that leaves these files in the place of those of before, if there were any.
fn attacked(start: &Forgetful, work: Work, files: &[&Path]) {
    let whole = start.copy();
    work(&whole.shared()).unwrap();
    let read = |disk: &Forgetful| -> Vec<Option<Vec<u8>>> {
        files.iter().map(|file| disk.read(file).ok()).collect()
    };
    let (expected, before) = (read(&whole), read(start));
    assert!(expected.iter().all(Option::is_some));
    let root = whole.list(Path::new("/")).unwrap();
    assert_eq!(root.len(), files.len(), "nothing beside them: {root:?}");
    let faults = attack(
        start,
        |disk| work(&disk).is_ok(),
        |disk, promised, what| {
            let now = read(disk);
            for ((file, expected), before) in now.iter().zip(&expected).zip(&before) {
                assert!(file == expected || !promised, "{what}: it is gone");
                assert!(file == before || file == expected, "{what}: half a file");
            }
            let again = work(&disk.shared());
            again.unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(read(disk) == expected, "{what}: other bytes");
        },
    );
    println!("{faults} faults");
    assert!(faults > 100, "{faults}");
}

#[test]
fn a_numpy_table_is_whole_or_not_there() {
    let table = Path::new("/v.npy");
    let work: Work = &|disk| LAB.embed(disk, TableFormat::Npy, table);
    attacked(&Forgetful::new(), work, &[table, &npy_names_file(table)]);
}

#[test]
fn a_parquet_table_is_whole_or_not_there() {
    let table = Path::new("/v.parquet");
    let work: Work = &|disk| LAB.embed(disk, TableFormat::Parquet, table);
    attacked(&Forgetful::new(), work, &[table]);
}

#[test]
fn a_new_index_is_whole_or_not_there() {
    let index = Path::new("/pictures.index");
    attacked(&Forgetful::new(), &|disk| LAB.index(disk, index), &[index]);
}

#[test]
fn an_index_brought_up_to_date_is_the_old_one_or_the_new_one() {
    let (index, before) = (Path::new("/pictures.index"), Forgetful::new());
    let there = PictureIndex::from_parts(index, LAB.known.parts().clone()).unwrap();
    there.save_on(&before).unwrap();
    attacked(&before, &|disk| LAB.update(disk, index), &[index]);
}
