//! Every file operation of `embed` and `index` goes wrong in every way, and the power is cut after
//! each: the same job, begun again, leaves the same bytes, and under its name a file is whole or
//! not there.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anchorhood_data::Dataset;
use anchorhood_engine::Device;
use anchorhood_export::{ExportError, TableFormat, npy_names_file, save_folder_table};
use anchorhood_files::{FileSystem, Forgetful, attack};
use anchorhood_search::{
    FolderJob, FolderOutcome, FolderVectors, Journal, Model, PictureIndex, SearchError,
};
use anchorhood_train::{Preset, RunDir, train};

/// More than are decoded at a time, so that the journal grows by pieces.
const PICTURES: usize = 70;

/// A tiny model, and a folder of pictures one of which is none.
struct Lab {
    _folder: tempfile::TempDir,
    pictures: PathBuf,
    model: Model,
    device: Device,
}

impl Lab {
    fn new() -> Lab {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Preset::Quick.config("shapes");
        config.data.shapes_train = PICTURES;
        config.data.shapes_test = 8;
        config.data.size = Some(8);
        config.network.width = 2;
        config.network.features = 8;
        config.training.batch = 8;
        config.training.rounds = 0;
        config.training.epochs = 1;
        let options = config.data.load_options(config.seed);
        let data = anchorhood_data::open("shapes", &options).unwrap();
        let device = Device::cpu(1);
        let mut run = RunDir::create(folder.path(), "a", &config).unwrap();
        let never = AtomicBool::new(false);
        train(&device, &mut run, &data, &mut |_| {}, &never).unwrap();
        let pictures = folder.path().join("pictures");
        write_pictures(&data, &pictures);
        Lab { model: Model::load(run.path()).unwrap(), _folder: folder, pictures, device }
    }

    fn job(&self, disk: &Arc<dyn FileSystem>, output: &Path) -> FolderJob<'_> {
        FolderJob {
            model: &self.model,
            folders: std::slice::from_ref(&self.pictures),
            known: None,
            watched: false,
            labels: anchorhood_data::LabelChoice::Auto,
            journal: Journal::place(output),
            layer: None,
            batch: 8,
            thumbnail: None,
            threads: 1,
            content_sums: false,
            restart: false,
            shard: None,
            disk: disk.clone(),
        }
    }

    fn vectors(&self, job: &FolderJob) -> Result<FolderVectors, SearchError> {
        let never = AtomicBool::new(false);
        match job.run(&self.device, &mut |_| {}, &never)? {
            FolderOutcome::Finished(done) => Ok(done),
            FolderOutcome::Stopped { .. } => unreachable!("nobody asked it to stop"),
        }
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

    /// Brings an index of before up to date, in its place.
    fn update(
        &self,
        disk: &Arc<dyn FileSystem>,
        output: &Path,
        known: &PictureIndex,
    ) -> Result<(), ExportError> {
        let job = FolderJob { known: Some(known), ..self.job(disk, output) };
        assert_eq!(known.cannot_take_up(&job), None);
        let (_, changes) = self.vectors(&job)?.save(output, &job, &self.device, false)?;
        assert_eq!((changes.added, changes.removed), (PICTURES - 5, 1));
        Ok(())
    }

    fn index(&self, disk: &Arc<dyn FileSystem>, output: &Path) -> Result<(), ExportError> {
        let job = self.job(disk, output);
        let mut vectors = self.vectors(&job)?;
        vectors.index(output, &job)?.save_on(&**disk)?;
        Ok(vectors.journal.remove()?)
    }
}

fn write_pictures(data: &Dataset, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for i in 0..PICTURES {
        let pixels = data.train.pictures.picture(i).to_vec();
        let picture = image::RgbImage::from_raw(8, 8, pixels).unwrap();
        picture.save(to.join(format!("{i:02}.png"))).unwrap();
    }
    std::fs::write(to.join("broken.png"), "no picture").unwrap();
}

type Work<'a> = &'a dyn Fn(&Arc<dyn FileSystem>) -> Result<(), ExportError>;

/// Attacks a job that leaves these files, where there was nothing.
fn attacked(work: Work, files: &[&Path]) -> usize {
    attacked_from(&Forgetful::new(), work, files)
}

/// Attacks a job that leaves these files in the place of those of before.
fn attacked_from(start: &Forgetful, work: Work, files: &[&Path]) -> usize {
    let whole = start.copy();
    work(&whole.shared()).unwrap();
    let read = |disk: &Forgetful| -> Vec<Option<Vec<u8>>> {
        files.iter().map(|file| disk.read(file).ok()).collect()
    };
    let (expected, before) = (read(&whole), read(start));
    assert!(expected.iter().all(Option::is_some));
    let root = whole.list(Path::new("/")).unwrap();
    assert_eq!(root.len(), files.len(), "nothing beside them: {root:?}");
    attack(
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
    )
}

#[test]
fn nothing_that_happens_to_its_files_changes_a_job() {
    let lab = Lab::new();
    let table = Path::new("/v.npy");
    let names = npy_names_file(table);
    let embedded = attacked(&|disk| lab.embed(disk, TableFormat::Npy, table), &[table, &names]);
    let parquet = Path::new("/v.parquet");
    let columns = attacked(&|disk| lab.embed(disk, TableFormat::Parquet, parquet), &[parquet]);
    let index = Path::new("/pictures.index");
    let indexed = attacked(&|disk| lab.index(disk, index), &[index]);
    // An index of five pictures and of one that is gone becomes one of all.
    let first = tempfile::tempdir().unwrap();
    let known = first.path().join("pictures.index");
    let hidden = first.path().join("hidden");
    std::fs::create_dir(&hidden).unwrap();
    let (gone, later) = (lab.pictures.join("gone.png"), 5..PICTURES);
    std::fs::copy(lab.pictures.join("07.png"), &gone).unwrap();
    let name = |i: usize| format!("{i:02}.png");
    let place = |folder: &Path, i| folder.join(name(i));
    later
        .clone()
        .for_each(|i| std::fs::rename(place(&lab.pictures, i), place(&hidden, i)).unwrap());
    let known = PictureIndex::build(&known, &lab.model, &lab.device, &lab.pictures).unwrap();
    later.for_each(|i| std::fs::rename(place(&hidden, i), place(&lab.pictures, i)).unwrap());
    std::fs::remove_file(&gone).unwrap();
    assert_eq!(known.len(), 6);
    let before = Forgetful::new();
    let parts = known.parts().clone();
    let there = PictureIndex::from_parts(index, parts).unwrap();
    there.save_on(&before).unwrap();
    let updated = attacked_from(&before, &|disk| lab.update(disk, index, &known), &[index]);
    let all = embedded + columns + indexed + updated;
    println!(
        "{all} faults: {embedded} and {columns} of embed, {indexed} of index, {updated} of bringing one up to date"
    );
    assert!(all > 350, "{all}");
}
