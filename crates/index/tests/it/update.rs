//! An index that lives: brought up to date it is the index that would be made anew, and what it
//! knew is not embedded again.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anchorhood_data::LabelChoice;
use anchorhood_engine::Device;
use anchorhood_index::fuzzing::small_model;
use anchorhood_index::{
    Changes, FolderEvent, FolderJob, Journal, Model, PictureIndex, SearchError,
};

struct Lab {
    folder: tempfile::TempDir,
    model: Model,
    device: Device,
}

impl Lab {
    fn new() -> Lab {
        Lab { folder: tempfile::tempdir().unwrap(), model: small_model(), device: Device::cpu(1) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn picture(&self, name: &str, grey: u8) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let pixel = |x, y| image::Rgb([grey, (x * 20) as u8, (y * 30) as u8]);
        image::RgbImage::from_fn(9, 8, pixel).save(path).unwrap();
    }

    fn touch(&self, name: &str) {
        let later = SystemTime::now() + Duration::from_secs(5);
        let file = std::fs::File::options().write(true).open(self.path(name));
        file.unwrap().set_modified(later).unwrap();
    }

    /// Makes an index of folders, or brings it up to date; tells what was embedded.
    fn index(
        &self,
        name: &str,
        folders: &[&str],
        thumbnail: Option<usize>,
    ) -> (PictureIndex, Changes, Vec<String>) {
        let folders: Vec<PathBuf> = folders.iter().map(|f| self.path(f)).collect();
        let path = self.path(name);
        let known = path.exists().then(|| PictureIndex::load(&path).unwrap());
        let job = FolderJob {
            labels: LabelChoice::None,
            known: known.as_ref(),
            batch: 4,
            thumbnail,
            threads: 1,
            ..FolderJob::new(&self.model, &folders, &path)
        };
        let refused = known.as_ref().and_then(|index| index.cannot_take_up(&job));
        assert_eq!(refused, None);
        let mut embedded = vec![];
        let mut tell = |event: FolderEvent| {
            if let FolderEvent::Embedded { entry } = event {
                embedded.push(entry.name.clone());
            }
        };
        let done = job.run_whole(&self.device, &mut tell).unwrap();
        let (_, changes) = done.save(&path, &job, &self.device, false).unwrap();
        assert!(!Journal::place(&path).exists());
        (PictureIndex::load(&path).unwrap(), changes, embedded)
    }
}

#[test]
fn only_what_is_new_is_embedded_and_the_result_is_as_if_made_anew() {
    let lab = Lab::new();
    for (i, name) in ["a", "b", "c", "d"].iter().enumerate() {
        lab.picture(&format!("p/{name}.png"), 40 * i as u8);
    }
    let (_, changes, embedded) = lab.index("x.index", &["p"], Some(16));
    assert_eq!((changes.added, embedded.len()), (4, 4));
    lab.picture("p/b.png", 200);
    lab.touch("p/b.png");
    lab.picture("p/new.png", 77);
    std::fs::remove_file(lab.path("p/c.png")).unwrap();
    std::fs::write(lab.path("p/broken.png"), "no picture").unwrap();
    let (index, changes, embedded) = lab.index("x.index", &["p"], None);
    let expected = Changes { added: 1, changed: 1, removed: 1, kept: 2 };
    assert_eq!(changes, expected);
    assert_eq!(embedded, ["b.png", "broken.png", "new.png"]);
    let (anew, ..) = lab.index("y.index", &["p"], Some(16));
    assert_eq!(index.parts(), anew.parts());
    assert_eq!(index.thumbnail_side(), Some(16));
    // Nothing happened since.
    let (_, changes, _) = lab.index("x.index", &["p"], None);
    assert!(changes.none() && changes.kept == 4, "{changes:?}");
}

/// A file whose time changed is read, and embedded where its bytes changed, too.
#[test]
fn what_was_only_written_again_is_not_embedded_again() {
    let lab = Lab::new();
    for name in ["p/a.png", "p/b.png"] {
        lab.picture(name, 40);
    }
    let (before, ..) = lab.index("x.index", &["p"], None);
    lab.picture("p/b.png", 41);
    lab.touch("p/a.png");
    lab.touch("p/b.png");
    let (index, changes, embedded) = lab.index("x.index", &["p"], None);
    assert_eq!((changes.kept, changes.changed), (1, 1));
    assert_eq!(embedded, ["b.png"]);
    assert_ne!(index.parts().stamps, before.parts().stamps);
    // Touched alone, its stamp is taken down; then there is nothing to do.
    lab.touch("p/a.png");
    let (_, changes, embedded) = lab.index("x.index", &["p"], None);
    assert!(changes.none() && embedded.is_empty(), "{changes:?}");
    let written = || std::fs::read(lab.path("x.index")).unwrap();
    let bytes = written();
    lab.index("x.index", &["p"], None);
    assert!(written() == bytes);
}

#[test]
fn a_folder_more_is_added_and_a_moved_one_is_found() {
    let lab = Lab::new();
    for (name, grey) in [("p/a.png", 10), ("q/a.png", 90), ("q/in/b.png", 160)] {
        lab.picture(name, grey);
    }
    lab.index("x.index", &["p"], None);
    let (mut index, changes, embedded) = lab.index("x.index", &["p", "q"], None);
    assert_eq!((changes.added, changes.kept, changes.removed), (2, 1, 0));
    assert_eq!(embedded, ["q/a.png", "q/in/b.png"]);
    assert_eq!(index.parts().names, ["p/a.png", "q/a.png", "q/in/b.png"]);
    for i in 0..3 {
        assert!(index.picture(i).is_file(), "{}", index.name(i));
    }
    let (elsewhere, now) = (lab.path("elsewhere"), lab.path("elsewhere/q"));
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::rename(lab.path("q"), &now).unwrap();
    assert!(!index.picture(1).exists());
    index.moved_to(&[&now]).unwrap();
    assert!(index.picture(0).is_file() && index.picture(2).is_file());
    let refused = index.moved_to(&[Path::new("/tmp/other")]).unwrap_err();
    assert!(refused.to_string().contains("called p, q"), "{refused}");
    let named = format!("p={}", now.display());
    index.moved_to(&[&named]).unwrap();
    assert_eq!(index.picture(0), now.join("a.png"));
}

/// Vectors of images that were decoded in another way are never mixed with those of today.
#[test]
fn an_index_of_another_preprocessing_is_refused_and_made_again() {
    let lab = Lab::new();
    ["a", "b"].into_iter().zip([10, 200]).for_each(|(f, v)| lab.picture(&format!("p/{f}.png"), v));
    let (index, ..) = lab.index("x.index", &["p"], None);
    assert!(!index.is_outdated() && index.check_model(&lab.model).is_ok());
    let mut parts = index.parts().clone();
    parts.preprocessing.as_mut().unwrap().version = 1;
    let old = PictureIndex::from_parts(index.path(), parts).unwrap();
    old.save().unwrap();
    let refused = old.check_model(&lab.model).unwrap_err();
    assert!(refused.to_string().contains("preprocessing 1, here"), "{refused}");
    assert!(matches!(refused, SearchError::Impossible(_)), "{refused}");
    let (renewed, changes, embedded) = lab.index("x.index", &["p"], None);
    assert_eq!((changes.changed, changes.kept, embedded.len()), (2, 0, 2));
    assert!(renewed == index, "what is made again is what a new index has");
}

#[test]
fn what_cannot_be_brought_up_to_date_says_why() {
    let lab = Lab::new();
    lab.picture("p/a.png", 10);
    lab.picture("q/a.png", 10);
    let (index, ..) = lab.index("x.index", &["p"], None);
    let why = |layer, thumbnail, folder: &str| {
        let folders = [lab.path(folder)];
        let new = FolderJob::new(&lab.model, &folders, Path::new(""));
        let job = FolderJob { layer, thumbnail, ..new };
        index.cannot_take_up(&job).unwrap_or_default()
    };
    assert_eq!(why(None, None, "p"), "");
    assert!(why(Some("conv4"), None, "p").contains("the last layer"));
    assert!(why(None, Some(32), "p").contains("no thumbnails"));
    assert!(why(None, None, "q").contains("another folder"));
}
