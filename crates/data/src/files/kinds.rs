//! Which files are read, by the endings of their names, and why others that show something are not.

use std::collections::BTreeMap;
use std::fmt;

use super::{FORMATS, heif};

/// Endings of pictures that are read where there is a library for them.
const HEIF: [&str; 4] = ["heic", "heif", "hif", "avif"];
/// Where there is none.
const NO_HEIF: &str =
    "the library libheif, which reads them, is not here; install it (apt: libheif1, brew: libheif)";

/// Why pipes, sockets and devices are not read.
const SPECIAL: &str = "not a regular file but a pipe, a socket or a device";

/// Endings of what shows something and is not read, with the reason.
const NOT_READ: [(&[&str], &str); 6] = [
    (&HEIF, NO_HEIF),
    (
        &["arw", "cr2", "cr3", "dng", "nef", "orf", "pef", "raf", "raw", "rw2", "srw"],
        "a camera's raw data are not read; export them as JPEG or PNG",
    ),
    (
        &[
            "dds", "exr", "ff", "hdr", "ico", "j2k", "jp2", "jpx", "jxl", "jxr", "pbm", "pcx",
            "pgm", "pnm", "ppm", "psd", "qoi", "tga", "xcf",
        ],
        "pictures of this kind are not read; convert them to JPEG or PNG",
    ),
    (
        &["ai", "eps", "pdf", "svg", "svgz"],
        "drawings and documents are not read; export them as PNG",
    ),
    (
        &["3gp", "avi", "m2ts", "m4v", "mkv", "mov", "mp4", "mpeg", "mpg", "mts", "webm", "wmv"],
        "videos are not read",
    ),
    (
        &["7z", "bz2", "gz", "rar", "tgz", "txz", "xz", "zip", "zst"],
        "compressed archives are not read; unpack them, or make them .tar",
    ),
];

/// Files of one kind that were passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOver {
    /// The ending of their names, with its dot; empty for files without one.
    pub ending: String,
    /// How many there are.
    pub files: usize,
    /// Why they are not read, where they may show something; none for what is no picture.
    pub why: Option<&'static str>,
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let why = self.why.unwrap_or("no picture");
        let (files, ending) = (self.files, &self.ending);
        match ending.is_empty() {
            true => write!(f, "{files} skipped: {why}"),
            false => write!(f, "{files} {ending} skipped: {why}"),
        }
    }
}

/// How many files of each kind were passed over, by the lower-case endings of their names.
pub(crate) type Endings = BTreeMap<String, usize>;

/// Whether files with this ending, in lower case, are read.
pub(crate) fn is_read(ending: &str) -> bool {
    let read = FORMATS.iter().any(|format| format.extensions.contains(&ending));
    read || (HEIF.contains(&ending) && heif::is_here())
}

/// What was passed over, `special` of it no regular files: first what may show something.
pub(crate) fn passed_over(endings: &Endings, special: usize) -> Vec<PassedOver> {
    let kind = |(ending, files): (&String, &usize)| PassedOver {
        ending: if ending.is_empty() { String::new() } else { format!(".{ending}") },
        files: *files,
        why: why(ending),
    };
    let special = (special > 0).then(|| PassedOver {
        ending: String::new(),
        files: special,
        why: Some(SPECIAL),
    });
    let mut kinds: Vec<PassedOver> = endings.iter().map(kind).chain(special).collect();
    kinds.sort_by_key(|kind| (kind.why.is_none(), std::cmp::Reverse(kind.files)));
    kinds
}

fn why(ending: &str) -> Option<&'static str> {
    let of = |(endings, _): &&(&[&str], &'static str)| endings.contains(&ending);
    NOT_READ.iter().find(of).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_counted_with_the_reason() {
        let endings = [("txt", 9), ("nef", 312), ("", 1), ("mp4", 400)];
        let endings = endings.map(|(e, n)| (e.to_string(), n));
        let kinds = passed_over(&Endings::from(endings), 2);
        let counted: Vec<_> = kinds.iter().map(|k| (k.ending.as_str(), k.files)).collect();
        assert_eq!(counted, [(".mp4", 400), (".nef", 312), ("", 2), (".txt", 9), ("", 1)]);
        assert!(kinds[1].to_string().starts_with("312 .nef skipped: "));
        assert!(kinds[2].to_string().starts_with("2 skipped: "));
        assert!(kinds[3].why.is_none() && kinds[4].why.is_none());
    }

    #[test]
    fn every_ending_is_of_one_kind() {
        let mut all: Vec<&str> = NOT_READ.iter().flat_map(|(e, _)| *e).copied().collect();
        all.extend(FORMATS.iter().flat_map(|format| format.extensions));
        let many = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), many);
    }
}
