//! The pictures that can be looked at, and nothing else: an index's files, or a run's training
//! pictures.
//!
//! A picture is shown from its own file wherever that can be read, shrunk to what is shown and
//! never enlarged; else from what is kept of it, a small copy in the index or the pixels a run was
//! trained on.

use std::fs::File;
use std::hash::BuildHasher;
use std::io::{Read, Take};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anchorhood_data::{Picture, Split, encode_jpeg, encode_png};
use anchorhood_index::curate::Look;
use anchorhood_index::{IndexParts, IndexedFolder, PictureIndex};
use image::ImageFormat;

use crate::ServeError;
use crate::kept::Kept;
use crate::originals::Original;

const QUALITY: u8 = 88;
/// So many bytes tell what kind of picture it is.
const FIRST: u64 = 64;
/// Copies are kept up to so many bytes.
const KEPT: usize = 64 << 20;
/// A picture file larger than this is not sent whole.
const LARGEST_FILE: u64 = 64 << 20;

/// Pictures with their vectors.
#[derive(Debug)]
pub struct Catalog {
    /// What to call it.
    pub name: String,
    pub(crate) index: PictureIndex,
    /// The folders of the pictures' files, without links; none where they have no files.
    folders: Vec<IndexedFolder>,
    /// What a run was trained on.
    train: Option<Split>,
    kept: Arc<Kept>,
}

/// What is wanted of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Wanted {
    /// Its file, as it is.
    Whole,
    /// The square in its middle, so many pixels a side at most.
    Square(usize),
    /// All of it, its longer side so many pixels at most.
    Fitted(usize),
}

/// A picture whose file is open, where it has one.
pub(crate) struct Opened<'a> {
    /// What tells this view of the picture from every other of this process, also of the same file
    /// after it was written again.
    pub tag: u64,
    shelf: &'a Catalog,
    i: usize,
    wanted: Wanted,
    original: Result<Original, String>,
}

/// A picture whole: made now, or as its file is.
pub(crate) enum Whole {
    Made(Shown),
    File { kind: &'static str, length: u64, file: Take<File> },
}

/// A picture as a browser takes it.
pub(crate) struct Shown {
    pub kind: &'static str,
    pub bytes: Arc<[u8]>,
}

impl Catalog {
    /// The pictures of an index, in the folders it names; where one is as wide as a disk or
    /// somebody's home, whoever serves it must have said so by `folders`, since an index may come
    /// from anywhere.
    pub fn of_index<'a>(
        name: String,
        mut index: PictureIndex,
        folders: impl IntoIterator<Item = &'a Path>,
    ) -> Result<Catalog, ServeError> {
        let folders: Vec<&Path> = folders.into_iter().collect();
        index.moved_to(&folders)?;
        if folders.is_empty() || index.folders().len() > 1 {
            refuse_wide(&index.path().display().to_string(), &index.folders())?;
        }
        // A damaged index is told of before anybody is served, not in the middle of it.
        let vectors = index.vectors().map(|_| ());
        vectors.map_err(|e| ServeError::Catalog(e.to_string()))?;
        let folders = index.folders();
        Ok(Catalog {
            name,
            index,
            // Thumbnails in the index can be shown even when a folder is gone.
            folders: folders.iter().map(IndexedFolder::without_links).collect(),
            train: None,
            kept: Arc::new(Kept::new(KEPT)),
        })
    }

    /// The same refusal for folders that are not indexed yet.
    pub(crate) fn refuse_wide_folders(name: &str, paths: &[PathBuf]) -> Result<(), ServeError> {
        let folder = |path: &PathBuf| {
            IndexedFolder::alone(std::path::absolute(path).unwrap_or_else(|_| path.clone()))
        };
        refuse_wide(name, &paths.iter().map(folder).collect::<Vec<_>>())
    }

    /// The training pictures of a run with its memory, vectors of `dim`; `model` is the
    /// fingerprint.
    pub fn of_run(
        name: String,
        train: Split,
        vectors: &[f32],
        dim: usize,
        model: String,
    ) -> Result<Catalog, ServeError> {
        let n = train.pictures.len();
        if dim == 0 || vectors.len() != n * dim {
            return Err(ServeError::OtherPictures {
                name,
                remembered: vectors.len() / dim.max(1),
                pictures: n,
            });
        }
        let labels = train.labels.as_ref();
        let class = |i: usize| labels.map(|l| l.classes()[l.get(i) as usize].clone());
        let file = |i: usize| match train.names.get(i) {
            Some(name) => name.clone(),
            None => format!("picture {i}"),
        };
        let parts = IndexParts {
            model,
            names: (0..n).map(file).collect(),
            classes: (0..n).map(class).collect(),
            dim,
            vectors: units(vectors, dim).into(),
            ..IndexParts::default()
        };
        let index = PictureIndex::from_parts(Path::new(&name), parts);
        let folder = train.pictures.folder().filter(|_| train.names.len() == n);
        let path = folder.and_then(|folder| folder.canonicalize().ok());
        let folder = path.map(IndexedFolder::alone);
        Ok(Catalog {
            index: index.map_err(|e| ServeError::Catalog(e.to_string()))?,
            name,
            folders: folder.into_iter().collect(),
            train: Some(train),
            kept: Arc::new(Kept::new(KEPT)),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// The folders of the pictures' files.
    pub(crate) fn folders(&self) -> &[IndexedFolder] {
        &self.folders
    }

    /// Shows what was made by the one before it.
    pub(crate) fn with_copies_of(mut self, before: &Catalog) -> Catalog {
        self.kept = before.kept.clone();
        self
    }

    /// Opens a picture's file, once for all that is done with it.
    pub(crate) fn open(&self, i: usize, wanted: Wanted) -> Opened<'_> {
        let original = self.original(i);
        let file = original.as_ref().ok();
        let stored = file.is_none().then_some(i);
        let file = file.map(|file| (&file.path, file.length, file.written));
        let (place, name) = (self.index.path(), self.index.name(i));
        let known_by = (place, name, stored, file, wanted);
        Opened { tag: self.kept.hasher.hash_one(known_by), shelf: self, i, wanted, original }
    }

    fn original(&self, i: usize) -> Result<Original, String> {
        Original::open(&self.folders, self.index.parts(), i)
    }

    /// The picture as it is compared with others: its file, or where there is none, what was
    /// trained on.
    pub(crate) fn look(&self, i: usize) -> Result<Look, String> {
        match (self.original(i), &self.train) {
            (Ok(original), _) => original.look(),
            (Err(_), Some(train)) => Look::of(&stored_picture(train, i)?),
            (Err(why), None) => Err(why),
        }
    }

    /// What is kept of a picture whose file cannot be read.
    fn stored(&self, i: usize, wanted: Wanted) -> Option<Shown> {
        match &self.train {
            Some(train) => trained_on(train, i, wanted).ok(),
            None => shown(self.thumbnail(i)?.into()),
        }
    }

    fn thumbnail(&self, i: usize) -> Option<&[u8]> {
        let thumbnail = self.index.parts().thumbnails.as_ref()?.get(i).ok()?;
        (!thumbnail.is_empty()).then_some(thumbnail)
    }
}

impl Opened<'_> {
    /// The picture whole, or why not.
    pub fn whole(self) -> Result<Whole, String> {
        let sent = self.original.and_then(sent_whole);
        match &self.shelf.train {
            Some(train) => sent.or_else(|_| png(train, self.i).map(Whole::Made)),
            None => sent,
        }
    }

    /// A copy that is at hand: in the index, or made before of this file.
    pub fn at_hand(&self) -> Option<Shown> {
        let large_enough = |bytes: &[u8]| match self.wanted {
            Wanted::Square(side) => {
                Picture::promised(bytes).is_some_and(|[width, _]| width as usize >= side)
            }
            Wanted::Whole | Wanted::Fitted(_) => false,
        };
        let thumbnail = || self.shelf.thumbnail(self.i).filter(|t| large_enough(t));
        shown(match self.shelf.kept.get(self.tag) {
            Some(bytes) => bytes,
            None => thumbnail()?.into(),
        })
    }

    /// The same, made now where it is not.
    pub fn copy(self) -> Result<Shown, String> {
        if let Some(shown) = self.at_hand() {
            return Ok(shown);
        }
        let shrunk = |original| shrunk(original, self.wanted);
        let made = match self.original.and_then(shrunk) {
            Ok(made) => made,
            Err(why) => self.shelf.stored(self.i, self.wanted).ok_or(why)?,
        };
        self.shelf.kept.put(self.tag, made.bytes.clone());
        Ok(made)
    }
}

/// A picture's file as it is.
fn sent_whole(mut original: Original) -> Result<Whole, String> {
    if original.length > LARGEST_FILE {
        return Err("the picture's file is too large to be sent whole".into());
    }
    let mut first = vec![];
    let head = FIRST.min(original.length);
    let read = original.rewind()?.take(head).read_to_end(&mut first);
    let kind = read.ok().and_then(|_| image::guess_format(&first).ok());
    let kind = kind_of(kind.ok_or("the file is not a picture any more")?)?;
    let length = original.length;
    Ok(Whole::File { kind, length, file: original.into_file()?.take(length) })
}

fn shown(bytes: Arc<[u8]>) -> Option<Shown> {
    let kind = kind_of(image::guess_format(&bytes).ok()?).ok()?;
    Some(Shown { kind, bytes })
}

/// A copy of the picture in a file.
fn shrunk(original: Original, wanted: Wanted) -> Result<Shown, String> {
    match wanted {
        Wanted::Square(side) => original.decode(side, |picture| square(picture, side)),
        Wanted::Fitted(longest) => {
            // Decoders are told of the shorter side; with two thirds of it the longer one has
            // enough, whatever the shape.
            original.decode(longest * 2 / 3, |picture| fitted(picture, longest))
        }
        Wanted::Whole => Err("a file is sent as it is".into()),
    }
}

fn square(picture: &Picture, side: usize) -> Result<Shown, String> {
    let [height, width] = picture.height_and_width();
    let side = side.min(height.min(width) as usize);
    let mut pixels = vec![0; side * side * 3];
    picture.square(side, &mut pixels)?;
    encoded([side, side], &pixels)
}

fn fitted(picture: &Picture, longest: usize) -> Result<Shown, String> {
    let (sides, pixels) = picture.fitted(longest)?;
    encoded(sides, &pixels)
}

/// Sides up to this are sent without loss: they are shown enlarged, with all that JPEG does to
/// them.
const EXACT: usize = 64;

fn encoded([height, width]: [usize; 2], pixels: &[u8]) -> Result<Shown, String> {
    let (columns, rows) = (width as u32, height as u32);
    let (kind, bytes) = match height.max(width) <= EXACT {
        true => ("image/png", encode_png(columns, rows, pixels)?),
        false => ("image/jpeg", encode_jpeg(columns, rows, pixels, QUALITY)?),
    };
    Ok(Shown { kind, bytes: bytes.into() })
}

/// A folder that holds everything, or all that is somebody's.
fn refuse_wide(name: &str, folders: &[IndexedFolder]) -> Result<(), ServeError> {
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    let is_wide = |folder: &IndexedFolder| {
        let path = &folder.path;
        let above_home = home.as_ref().is_some_and(|home| home.starts_with(path));
        path.is_absolute() && (path.parent().is_none() || above_home)
    };
    match folders.iter().map(IndexedFolder::without_links).find(is_wide) {
        None => Ok(()),
        Some(folder) => Err(ServeError::WideFolder {
            index: name.into(),
            folder: folder.path.display().to_string(),
        }),
    }
}

fn kind_of(format: ImageFormat) -> Result<&'static str, String> {
    let shown = anchorhood_data::ImageFormat::of(format).and_then(|format| format.mime);
    shown.ok_or_else(|| "the file is not a picture any more".into())
}

fn png(train: &Split, i: usize) -> Result<Shown, String> {
    let pictures = &train.pictures;
    let mut scratch = vec![];
    let pixels = pictures.picture_in(i, &mut scratch);
    let bytes = encode_png(pictures.width() as u32, pictures.height() as u32, pixels)?;
    Ok(Shown { kind: "image/png", bytes: bytes.into() })
}

fn stored_picture(train: &Split, i: usize) -> Result<Picture, String> {
    let pictures = &train.pictures;
    let mut scratch = vec![];
    let pixels = pictures.picture_in(i, &mut scratch).to_vec();
    Picture::from_rgb(pictures.width() as u32, pictures.height() as u32, pixels)
}

/// A picture as it was trained on; larger than it is it would only be heavier.
fn trained_on(train: &Split, i: usize, wanted: Wanted) -> Result<Shown, String> {
    let (rows, columns) = (train.pictures.height(), train.pictures.width());
    let picture = || stored_picture(train, i);
    match wanted {
        Wanted::Square(side) if side < rows.min(columns) => square(&picture()?, side),
        Wanted::Fitted(longest) if longest < rows.max(columns) => fitted(&picture()?, longest),
        Wanted::Whole | Wanted::Square(_) | Wanted::Fitted(_) => png(train, i),
    }
}

fn units(vectors: &[f32], dim: usize) -> Vec<f32> {
    let rows = vectors.chunks_exact(dim).flat_map(|row| {
        let length = row.iter().map(|v| v * v).sum::<f32>().sqrt().max(1e-12);
        row.iter().map(move |v| v / length)
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::RgbImage;

    use super::*;
    use crate::fixtures;

    fn index(folder: &Path, names: &[&str]) -> Catalog {
        let index = fixtures::index(folder, names, &[], vec![1.0; 2 * names.len()]);
        Catalog::of_index("test".into(), index, None).unwrap()
    }

    fn small(shelf: &Catalog, i: usize, side: usize) -> Result<Shown, String> {
        shelf.open(i, Wanted::Square(side)).copy()
    }

    fn is_whole(shelf: &Catalog, i: usize) -> bool {
        shelf.open(i, Wanted::Whole).whole().is_ok()
    }

    fn why_not(shelf: &Catalog, i: usize) -> String {
        shelf.open(i, Wanted::Whole).whole().err().unwrap()
    }

    fn sides(shown: &Shown) -> (u32, u32) {
        let picture = image::load_from_memory(&shown.bytes).unwrap();
        (picture.width(), picture.height())
    }

    fn whole(shelf: &Catalog, i: usize) -> Vec<u8> {
        let mut bytes = vec![];
        match shelf.open(i, Wanted::Whole).whole().map_err(|why| panic!("{why}")) {
            Ok(Whole::File { mut file, .. }) => file.read_to_end(&mut bytes).unwrap(),
            _ => panic!("it is in a file"),
        };
        bytes
    }

    #[test]
    fn a_folder_as_wide_as_the_disk_must_be_meant() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().canonicalize().unwrap().join("secret.png");
        RgbImage::new(4, 4).save(&path).unwrap();
        let named = path.to_str().unwrap().trim_start_matches('/').to_string();
        let index = |folder: &Path| fixtures::index(folder, &[&named], &[], vec![1.0, 0.0]);
        let home = std::env::home_dir().unwrap_or("/".into());
        for folder in [Path::new("/"), Path::new("/tmp/.."), &home] {
            let refused = Catalog::of_index("x".into(), index(folder), None);
            assert!(matches!(refused, Err(ServeError::WideFolder { .. })), "{folder:?}");
        }
        let meant = Catalog::of_index("x".into(), index(Path::new("/")), Some(Path::new("/")));
        assert!(is_whole(&meant.unwrap(), 0));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_leads_to_a_picture_of_the_index_or_nowhere() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().canonicalize().unwrap();
        for name in ["mine.png", "other.png"] {
            RgbImage::new(4, 4).save(folder.join(name)).unwrap();
        }
        for (to, link) in [("mine.png", "a.png"), ("other.png", "b.png"), (".", "c")] {
            std::os::unix::fs::symlink(to, folder.join(link)).unwrap();
        }
        let names = ["mine.png", "a.png", "b.png", "c/mine.png", "c/other.png"];
        let shelf = index(&folder, &names);
        let shown = (0..5).map(|i| is_whole(&shelf, i));
        assert_eq!(shown.collect::<Vec<_>>(), [true, true, false, true, false]);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let made =
            std::process::Command::new("mkfifo").arg(folder.path().join("pipe.png")).status();
        if !made.is_ok_and(|s| s.success()) {
            anchorhood_testing::skip("no mkfifo");
            return;
        }
        std::fs::create_dir(folder.path().join("folder.png")).unwrap();
        let shelf = index(folder.path(), &["pipe.png", "folder.png"]);
        for i in 0..2 {
            assert!(why_not(&shelf, i).contains("gone"));
            assert!(small(&shelf, i, 16).is_err());
        }
    }

    #[test]
    fn nothing_outside_the_folder_is_read() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("pictures");
        std::fs::create_dir(&folder).unwrap();
        RgbImage::new(4, 4).save(place.path().join("secret.png")).unwrap();
        RgbImage::new(4, 4).save(folder.join("mine.png")).unwrap();
        std::fs::write(folder.join("text.png"), "not a picture").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("../secret.png", folder.join("link.png")).unwrap();
        let absolute = place.path().join("secret.png").display().to_string();
        let names = ["mine.png", "../secret.png", &absolute, "gone.png", "text.png", "link.png"];
        let shelf = index(&folder, &names);
        assert_eq!(whole(&shelf, 0), std::fs::read(folder.join("mine.png")).unwrap());
        for (i, part) in [(1, "outside"), (2, "outside"), (3, "gone"), (4, "not a picture")] {
            let why = why_not(&shelf, i);
            assert!(why.contains(part), "{why}");
            assert!(small(&shelf, i, 16).is_err());
        }
        #[cfg(unix)]
        assert!(why_not(&shelf, 5).contains("link"));
    }

    #[cfg(unix)]
    #[test]
    fn names_that_are_not_unicode_lead_to_their_pictures() {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().unwrap();
        for (name, side) in [(&b"caf\xe8.png"[..], 4), (b"caf\xe9.png", 6)] {
            let mut bytes = Cursor::new(vec![]);
            let picture = RgbImage::new(side, side);
            picture.write_to(&mut bytes, ImageFormat::Png).unwrap();
            let path = folder.path().join(std::ffi::OsStr::from_bytes(name));
            if std::fs::write(path, bytes.into_inner()).is_err() {
                anchorhood_testing::skip("a file system of Unicode names alone");
                return;
            }
        }
        let found =
            anchorhood_data::find_pictures(folder.path(), anchorhood_data::LabelChoice::None)
                .unwrap();
        let files = found.files();
        let names: Vec<&str> = files.iter().map(|f| f.name.as_str()).collect();
        let shelf = index(folder.path(), &names);
        let sides = (0..2).map(|i| image::load_from_memory(&whole(&shelf, i)).unwrap().width());
        assert_eq!(sides.collect::<Vec<_>>(), [4, 6]);
        assert!(small(&shelf, 1, 16).is_ok());
    }

    /// A photograph of 300×200, one of 20×20 in a sub-folder, and the first in an archive.
    fn folder_with_archive() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        let large = folder.path().join("large.png");
        RgbImage::from_fn(300, 200, |x, y| image::Rgb([x as u8, y as u8, 9])).save(&large).unwrap();
        RgbImage::new(20, 20).save(folder.path().join("sub/tiny.png")).unwrap();
        archive(&folder.path().join("shard.tar"), "in/a.png", &std::fs::read(&large).unwrap());
        folder
    }

    fn archive(path: &Path, name: &str, bytes: &[u8]) {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        let mut archive = tar::Builder::new(File::create(path).unwrap());
        archive.append_data(&mut header, name, bytes).unwrap();
        archive.finish().unwrap();
    }

    #[test]
    fn copies_are_of_the_originals_and_never_enlarged() {
        let folder = folder_with_archive();
        let shelf = index(folder.path(), &["large.png", "sub/tiny.png", "shard.tar/in/a.png"]);
        let copy = |i, wanted| shelf.open(i, wanted).copy().unwrap();
        for i in [0, 2] {
            assert_eq!(sides(&copy(i, Wanted::Square(128))), (128, 128));
            assert_eq!(sides(&copy(i, Wanted::Square(512))), (200, 200));
            assert_eq!(sides(&copy(i, Wanted::Fitted(150))), (150, 100));
            assert_eq!(sides(&copy(i, Wanted::Fitted(1600))), (300, 200));
        }
        let tiny = copy(1, Wanted::Square(256));
        assert_eq!((sides(&tiny), tiny.kind), ((20, 20), "image/png"));
        let original = std::fs::read(folder.path().join("large.png")).unwrap();
        assert!(whole(&shelf, 0) == original && whole(&shelf, 2) == original);
    }

    #[test]
    fn an_archive_elsewhere_or_behind_a_link_is_not_read() {
        let place = folder_with_archive();
        let inside = place.path().join("sub");
        #[cfg(unix)]
        {
            let link = std::os::unix::fs::symlink;
            link("../shard.tar", inside.join("out.tar")).unwrap();
            archive(&inside.join("real.tar"), "b.png", b"x");
            link("real.tar", inside.join("in.tar")).unwrap();
        }
        let names = ["../shard.tar/in/a.png", "out.tar/in/a.png", "in.tar/b.png"];
        let shelf = index(&inside, &names);
        for i in 0..3 {
            let why = why_not(&shelf, i);
            let told = ["outside", "link", "gone"];
            assert!(told.iter().any(|t| why.contains(t)), "{why}");
            assert!(small(&shelf, i, 16).is_err());
        }
    }

    /// Only what is sent whole has to be small.
    #[test]
    fn a_copy_is_made_of_a_file_that_is_too_large_to_be_sent() {
        let folder = folder_with_archive();
        let large = folder.path().join("large.png");
        let file = File::options().append(true).open(large).unwrap();
        file.set_len(LARGEST_FILE + 1).unwrap();
        let shelf = index(folder.path(), &["large.png"]);
        assert!(!is_whole(&shelf, 0));
        assert_eq!(sides(&small(&shelf, 0, 128).unwrap()), (128, 128));
    }

    #[test]
    fn a_file_that_was_written_again_has_another_tag_and_another_copy() {
        let folder = folder_with_archive();
        let shelf = index(folder.path(), &["large.png", "sub/tiny.png"]);
        let wanted = Wanted::Square(64);
        let tag = |shelf: &Catalog, i, wanted| shelf.open(i, wanted).tag;
        let (before, bytes) = (tag(&shelf, 0, wanted), small(&shelf, 0, 64).unwrap().bytes);
        assert_eq!(before, tag(&shelf, 0, wanted));
        assert_ne!(before, tag(&shelf, 1, wanted));
        assert_ne!(before, tag(&shelf, 0, Wanted::Fitted(64)));
        let again = RgbImage::from_pixel(301, 200, image::Rgb([9; 3]));
        again.save(folder.path().join("large.png")).unwrap();
        assert_ne!(before, tag(&shelf, 0, wanted));
        assert_ne!(bytes, small(&shelf, 0, 64).unwrap().bytes);
        // The next catalogue of the same pictures has what was made for this one.
        let next = index(folder.path(), &["large.png", "sub/tiny.png"]).with_copies_of(&shelf);
        assert_eq!(tag(&next, 0, wanted), tag(&shelf, 0, wanted));
        assert!(next.open(0, wanted).at_hand().is_some());
    }

    #[test]
    fn a_run_shows_its_files_and_without_them_what_it_was_trained_on() {
        let folder = tempfile::tempdir().unwrap();
        for i in 0..3 {
            let picture = RgbImage::from_pixel(300, 200, image::Rgb([80 * i; 3]));
            picture.save(folder.path().join(format!("{i}.png"))).unwrap();
        }
        let options = anchorhood_data::LoadOptions { size: Some(16), ..Default::default() };
        let place = folder.path().to_str().unwrap();
        let data = anchorhood_data::open(place, &options).unwrap();
        let vectors = [1.0, 0.0].repeat(3);
        let shelf = Catalog::of_run("run".into(), data.train, &vectors, 2, "m".into()).unwrap();
        let copy = |i, wanted| shelf.open(i, wanted).copy().unwrap();
        assert_eq!(sides(&copy(1, Wanted::Square(128))), (128, 128));
        assert_eq!(sides(&copy(1, Wanted::Fitted(1600))), (300, 200));
        assert!(matches!(shelf.open(1, Wanted::Whole).whole(), Ok(Whole::File { .. })));
        std::fs::remove_file(folder.path().join("1.png")).unwrap();
        assert_eq!(sides(&copy(1, Wanted::Square(128))), (16, 16));
        assert!(matches!(shelf.open(1, Wanted::Whole).whole(), Ok(Whole::Made(_))));
    }
}
