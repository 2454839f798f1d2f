//! The pictures that can be looked at, and nothing else: an index's files, or a run's training pictures.

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

/// A picture as a browser takes it.
pub(crate) struct Shown {
    pub kind: &'static str,
    pub bytes: Arc<[u8]>,
}

impl Catalog {
    /// The pictures of an index.
    pub fn of_index(name: String, index: PictureIndex) -> Result<Catalog, ServeError> {
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
    pub(crate) fn whole(&self, i: usize) -> Result<Shown, String> {
        match &self.pixels {
            Pixels::Split(train) => png(train, i),
            Pixels::Files(root) => {
                let bytes = self.file(root, i)?;
                let format = image::guess_format(&bytes);
                let format =
                    format.map_err(|_| "the file is not a picture any more".to_string())?;
                Ok(Shown {
                    kind: kind_of(format)?,
                    bytes: bytes.into(),
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
            Pixels::Files(root) => jpeg(&Picture::from_bytes(&self.file(root, i)?)?, side),
        }?;
        self.kept.put((i, side), made.bytes.clone());
        Ok(made)
    }

    /// A file's bytes. Whatever an index or a link says, only files inside the folder are read.
    fn file(&self, root: &Path, i: usize) -> Result<Vec<u8>, String> {
        let path = picture_named(root, self.index.name(i));
        let gone = |_| "the picture is gone".to_string();
        let path = path.canonicalize().map_err(gone)?;
        if !path.starts_with(root) {
            return Err("the picture lies outside the indexed folder".into());
        }
        if path.metadata().map_err(gone)?.len() > LARGEST_FILE {
            return Err("the picture's file is too large to be sent".into());
        }
        std::fs::read(&path).map_err(gone)
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
        Catalog::of_index("test".into(), index).unwrap()
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
        assert_eq!(shelf.whole(0).unwrap().kind, "image/png");
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
        let found = anchorhood_data::find_pictures(folder.path()).unwrap();
        let names: Vec<&str> = found.files.iter().map(|f| f.name.as_str()).collect();
        let shelf = index(folder.path(), &names);
        let sides = (0..2).map(|i| {
            let shown = shelf.whole(i).unwrap();
            image::load_from_memory(&shown.bytes).unwrap().width()
        });
        assert_eq!(sides.collect::<Vec<_>>(), [4, 6]);
        assert!(shelf.small(1, 16).is_ok());
    }
}
