//! The pictures that can be looked at, and nothing else: an index's files, or a run's training pictures.

use std::fs::File;
use std::io::{Read, Seek, Take};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anchorhood_data::{Picture, Split, encode_jpeg, encode_png, picture_named};
use anchorhood_search::{IndexParts, PictureIndex};
use image::ImageFormat;

use crate::ServeError;
use crate::kept::Kept;

const QUALITY: u8 = 88;
/// A picture file larger than this is not sent whole.
const LARGEST_FILE: u64 = 64 << 20;
/// So many bytes tell what kind of picture it is.
const FIRST: u64 = 64;
const GONE: &str = "the picture is gone";
/// Small pictures are kept up to so many bytes.
const KEPT: usize = 64 << 20;

/// Where the pictures' bytes are.
#[derive(Debug)]
pub enum Pixels {
    /// In files of a folder; the path is the folder's, without links.
    Files(PathBuf),
    /// In a data set.
    Split(Box<Split>),
}

/// Pictures with their vectors.
#[derive(Debug)]
pub struct Catalog {
    /// What to call it.
    pub name: String,
    pub(crate) index: PictureIndex,
    pixels: Pixels,
    kept: Kept,
}

/// A picture whole: made now, or as its file is.
pub(crate) enum Whole {
    Made(Shown),
    File {
        kind: &'static str,
        length: u64,
        file: Take<File>,
    },
}

/// A picture as a browser takes it.
pub(crate) struct Shown {
    pub kind: &'static str,
    pub bytes: Arc<[u8]>,
}

impl Catalog {
    /// The pictures of an index, in the folder it names; where that is as wide as a disk or somebody's home, whoever serves
    /// it must have said so by `folder`, since an index may come from anywhere.
    pub fn of_index(
        name: String,
        mut index: PictureIndex,
        folder: Option<&Path>,
    ) -> Result<Catalog, ServeError> {
        match folder {
            Some(folder) => index.moved_to(folder),
            None => refuse_wide(&index)?,
        }
        // A damaged index is told of before anybody is served, not in the middle of it.
        let vectors = index.vectors().map(|_| ());
        vectors.map_err(|e| ServeError::Catalog(e.to_string()))?;
        let folder = &index.parts().folder;
        // Thumbnails in the index can be shown even when the folder is gone.
        let root = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        Ok(Catalog {
            name,
            index,
            pixels: Pixels::Files(root),
            kept: Kept::new(KEPT),
        })
    }

    /// The training pictures of a run with its memory, vectors of `dim`; `model` is the fingerprint.
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
        Ok(Catalog {
            index: index.map_err(|e| ServeError::Catalog(e.to_string()))?,
            name,
            pixels: Pixels::Split(Box::new(train)),
            kept: Kept::new(KEPT),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// The picture whole, or why not.
    pub(crate) fn whole(&self, i: usize) -> Result<Whole, String> {
        match &self.pixels {
            Pixels::Split(train) => png(train, i).map(Whole::Made),
            Pixels::Files(root) => {
                let (mut file, length) = self.file(root, i)?;
                let mut first = vec![];
                let read = (&mut file).take(FIRST).read_to_end(&mut first);
                let kind = read.ok().and_then(|_| image::guess_format(&first).ok());
                let kind = kind.ok_or("the file is not a picture any more")?;
                file.rewind().map_err(|_| GONE)?;
                Ok(Whole::File {
                    kind: kind_of(kind)?,
                    length,
                    file: file.take(length),
                })
            }
        }
    }

    /// A small square copy that is at hand: in the index, or made before.
    pub(crate) fn small_at_hand(&self, i: usize, side: usize) -> Option<Shown> {
        let thumbnails = self.index.parts().thumbnails.as_ref();
        let thumbnail = thumbnails
            .and_then(|t| t.get(i).ok())
            .filter(|t| !t.is_empty());
        let bytes = match thumbnail {
            Some(bytes) => bytes.into(),
            None => self.kept.get((i, side))?,
        };
        Some(Shown {
            kind: kind_of(image::guess_format(&bytes).ok()?).ok()?,
            bytes,
        })
    }

    /// The same, made now where it is not.
    pub(crate) fn small(&self, i: usize, side: usize) -> Result<Shown, String> {
        if let Some(shown) = self.small_at_hand(i, side) {
            return Ok(shown);
        }
        let made = match &self.pixels {
            // Larger than they are they would only be heavier.
            Pixels::Split(train) if train.pictures.height() <= side => png(train, i),
            Pixels::Split(train) => jpeg(&Picture::from_bytes(&png(train, i)?.bytes)?, side),
            Pixels::Files(root) => {
                let bytes = self.bytes(root, i)?;
                jpeg(&Picture::from_bytes_for(&bytes, side)?, side)
            }
        }?;
        self.kept.put((i, side), made.bytes.clone());
        Ok(made)
    }

    fn bytes(&self, root: &Path, i: usize) -> Result<Vec<u8>, String> {
        let (file, length) = self.file(root, i)?;
        let mut bytes = Vec::with_capacity(length as usize);
        let read = file.take(length).read_to_end(&mut bytes);
        read.map(|_| bytes).map_err(|_| GONE.into())
    }

    /// A file and its length. Whatever an index or a link says, only files of the index are opened.
    fn file(&self, root: &Path, i: usize) -> Result<(File, u64), String> {
        let path = self.indexed(root, i)?;
        let about = path.metadata().map_err(|_| GONE)?;
        // Opening what is no file could wait for ever.
        if !about.is_file() {
            return Err(GONE.into());
        }
        if about.len() > LARGEST_FILE {
            return Err("the picture's file is too large to be sent".into());
        }
        let file = File::open(&path).map_err(|_| GONE)?;
        Ok((file, about.len()))
    }

    /// Where a picture lies, links followed: the place that its name says, or that of another picture of the index.
    fn indexed(&self, root: &Path, i: usize) -> Result<PathBuf, String> {
        let named = picture_named(root, self.index.name(i));
        let path = named.canonicalize().map_err(|_| GONE)?;
        let Ok(inside) = path.strip_prefix(root) else {
            return Err("the picture lies outside the indexed folder".into());
        };
        let names = &self.index.parts().names;
        match path == named || names.iter().any(|name| Path::new(name) == inside) {
            true => Ok(path),
            false => Err("the picture is a link to a file that is not in the index".into()),
        }
    }
}

/// A folder that holds everything, or all that is somebody's.
fn refuse_wide(index: &PictureIndex) -> Result<(), ServeError> {
    let folder = &index.parts().folder;
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    let whole = folder.parent().is_none() || home.is_some_and(|home| home.starts_with(&folder));
    match folder.is_absolute() && whole {
        false => Ok(()),
        true => Err(ServeError::WideFolder {
            index: index.path().display().to_string(),
            folder: folder.display().to_string(),
        }),
    }
}

fn kind_of(format: ImageFormat) -> Result<&'static str, String> {
    Ok(match format {
        ImageFormat::Jpeg => "image/jpeg",
        ImageFormat::Png => "image/png",
        ImageFormat::WebP => "image/webp",
        ImageFormat::Bmp => "image/bmp",
        ImageFormat::Gif => "image/gif",
        _ => return Err("the file is not a picture any more".into()),
    })
}

fn png(train: &Split, i: usize) -> Result<Shown, String> {
    let pictures = &train.pictures;
    let mut scratch = vec![];
    let pixels = pictures.picture_in(i, &mut scratch);
    let bytes = encode_png(pictures.width() as u32, pictures.height() as u32, pixels)?;
    Ok(Shown {
        kind: "image/png",
        bytes: bytes.into(),
    })
}

fn jpeg(picture: &Picture, side: usize) -> Result<Shown, String> {
    let mut pixels = vec![0; side * side * 3];
    picture.square(side, &mut pixels)?;
    let bytes = encode_jpeg(side as u32, side as u32, &pixels, QUALITY)?;
    Ok(Shown {
        kind: "image/jpeg",
        bytes: bytes.into(),
    })
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

    fn index(folder: &Path, names: &[&str]) -> Catalog {
        let parts = IndexParts {
            folder: folder.into(),
            names: names.iter().map(|n| n.to_string()).collect(),
            classes: vec![None; names.len()],
            dim: 2,
            vectors: vec![1.0; 2 * names.len()].into(),
            ..IndexParts::default()
        };
        let index = PictureIndex::from_parts(Path::new("test.index"), parts).unwrap();
        Catalog::of_index("test".into(), index, None).unwrap()
    }

    fn whole(shelf: &Catalog, i: usize) -> Vec<u8> {
        let mut bytes = vec![];
        match shelf.whole(i).map_err(|why| panic!("{why}")) {
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
        let parts = |folder: &Path| IndexParts {
            folder: folder.into(),
            names: vec![named.clone()],
            classes: vec![None],
            dim: 2,
            vectors: vec![1.0, 0.0].into(),
            ..IndexParts::default()
        };
        let index = |folder| PictureIndex::from_parts(Path::new("x.index"), parts(folder)).unwrap();
        let home = std::env::home_dir().unwrap_or("/".into());
        for folder in [Path::new("/"), Path::new("/tmp/.."), &home] {
            let refused = Catalog::of_index("x".into(), index(folder), None);
            assert!(
                matches!(refused, Err(ServeError::WideFolder { .. })),
                "{folder:?}"
            );
        }
        let meant = Catalog::of_index("x".into(), index(Path::new("/")), Some(Path::new("/")));
        assert!(meant.unwrap().whole(0).is_ok());
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
        let shown = (0..5).map(|i| shelf.whole(i).is_ok());
        assert_eq!(shown.collect::<Vec<_>>(), [true, true, false, true, false]);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(folder.path().join("pipe.png"))
            .status();
        if !made.is_ok_and(|s| s.success()) {
            anchorhood_testing::skip("no mkfifo");
            return;
        }
        std::fs::create_dir(folder.path().join("folder.png")).unwrap();
        let shelf = index(folder.path(), &["pipe.png", "folder.png"]);
        for i in 0..2 {
            assert!(shelf.whole(i).err().unwrap().contains("gone"));
            assert!(shelf.small(i, 16).is_err());
        }
    }

    #[test]
    fn nothing_outside_the_folder_is_read() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("pictures");
        std::fs::create_dir(&folder).unwrap();
        RgbImage::new(4, 4)
            .save(place.path().join("secret.png"))
            .unwrap();
        RgbImage::new(4, 4).save(folder.join("mine.png")).unwrap();
        std::fs::write(folder.join("text.png"), "not a picture").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("../secret.png", folder.join("link.png")).unwrap();
        let absolute = place.path().join("secret.png").display().to_string();
        let names = [
            "mine.png",
            "../secret.png",
            &absolute,
            "gone.png",
            "text.png",
            "link.png",
        ];
        let shelf = index(&folder, &names);
        assert_eq!(
            whole(&shelf, 0),
            std::fs::read(folder.join("mine.png")).unwrap()
        );
        for (i, part) in [
            (1, "outside"),
            (2, "outside"),
            (3, "gone"),
            (4, "not a picture"),
        ] {
            let why = shelf.whole(i).err().unwrap();
            assert!(why.contains(part), "{why}");
            assert!(shelf.small(i, 16).is_err());
        }
        #[cfg(unix)]
        assert!(shelf.whole(5).err().unwrap().contains("outside"));
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
        let names: Vec<&str> = found.files.iter().map(|f| f.name.as_str()).collect();
        let shelf = index(folder.path(), &names);
        let sides = (0..2).map(|i| image::load_from_memory(&whole(&shelf, i)).unwrap().width());
        assert_eq!(sides.collect::<Vec<_>>(), [4, 6]);
        assert!(shelf.small(1, 16).is_ok());
    }
}
