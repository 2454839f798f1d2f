//! Published data sets and models: downloaded, verified, unpacked, so that every call finds them by
//! their names.

mod checksum;
mod download;

use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anchorhood_data::{Archive, DATASETS, DatasetSpec, find_dataset, unpack};
use anchorhood_index::{KNOWN_MODELS, KnownModel, models_folder};
use anchorhood_storage::{Disk, FileSystem, open_regular};
use flate2::read::GzDecoder;

use self::checksum::Checksum;
use self::download::Download;
use crate::Error;
use crate::error::usage;

/// Where something is fetched from and to.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// The folder of all data sets.
    pub to: PathBuf,
    /// Whether a data set's further images are wanted, too.
    pub extra: bool,
    /// An address in place of the official one; the checksum stays the official one.
    pub mirror: Option<String>,
    /// Whether archives are kept after they are unpacked.
    pub keep: bool,
    /// The SHA-256 that a model's bytes must have; needed with an address.
    pub sha256: Option<String>,
    /// Before the first repetition of a broken download; twice as long before each next.
    pub pause: Duration,
    /// MD5 sums of files in place of the official ones.
    pub md5: Vec<(String, String)>,
}

impl Default for FetchOptions {
    fn default() -> Self {
        FetchOptions {
            to: "data".into(),
            extra: false,
            mirror: None,
            keep: false,
            sha256: None,
            pause: Duration::from_secs(1),
            md5: vec![],
        }
    }
}

/// What happens meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub enum FetchEvent<'a> {
    /// Something that is good to know.
    Note(String),
    /// So much is done.
    Bytes {
        /// Of what.
        what: &'a str,
        /// Bytes done.
        done: u64,
        /// All, as far as is known.
        total: u64,
    },
}

type OnFetch<'a> = &'a mut dyn FnMut(FetchEvent);

/// Downloads a published data set, unless it is there, and gives its folder.
///
/// ```no_run
/// let folder = anchorhood::fetch_dataset("svhn", &Default::default(), &mut |_| {})?;
/// # Ok::<(), anchorhood::Error>(())
/// ```
pub fn fetch_dataset(
    name: &str,
    options: &FetchOptions,
    on_event: OnFetch,
) -> Result<PathBuf, Error> {
    let set = find_dataset(name).filter(|set| set.name == name);
    let set = set.ok_or_else(|| {
        let names = DATASETS.names();
        usage!("there is no data set called `{name}` to fetch; give one of {names}")
    })?;
    if set.archives.is_empty() {
        return Err(Error::usage(by_hand(set, &options.to)));
    }
    if options.extra && !set.has_extra() {
        return Err(usage!("--extra: {name} has no extra pictures"));
    }
    let folder = options.to.join(set.folder);
    Disk.create_folders(&folder).map_err(failed(&folder))?;
    for archive in set.archives.iter().filter(|a| options.extra || !a.optional) {
        get(options, archive, &folder, on_event)?;
    }
    Ok(folder)
}

/// Downloads a model by its published name, or by its address and checksum, unless it is there, and
/// gives its file.
pub fn fetch_model(
    name: &str,
    options: &FetchOptions,
    on_event: OnFetch,
) -> Result<PathBuf, Error> {
    let (url, file, sum, megabytes) = match KnownModel::named(name) {
        Some(known) => {
            let file = known.file();
            let folder = options.mirror.as_deref().unwrap_or(KnownModel::FOLDER);
            let sum = match &options.sha256 {
                Some(whole) => Checksum::Sha256(whole),
                None => Checksum::Sha256Begins(known.sha256),
            };
            (format!("{}/{file}", folder.trim_end_matches('/')), file, sum, known.megabytes)
        }
        None => {
            let (file, sum) = by_address(name, options)?;
            (name.into(), file.into(), sum, 0)
        }
    };
    let folder = models_folder().ok_or_else(|| {
        Error::usage("there is no folder to keep models in: set ANCHORHOOD_CACHE to one, or HOME")
    })?;
    Disk.create_folders(&folder).map_err(failed(&folder))?;
    let to = folder.join(&file);
    let download = Download {
        url: &url,
        to: &to,
        sum,
        pause: options.pause,
        megabytes,
        otherwise: "look whether the address is right, or give --mirror",
    };
    download.run(on_event)?;
    Ok(to)
}

/// The name of a file at an address, and the checksum that the user knows.
fn by_address<'a>(
    address: &'a str,
    options: &'a FetchOptions,
) -> Result<(&'a str, Checksum<'a>), Error> {
    if !address.starts_with("https://") && !address.starts_with("http://") {
        let names: Vec<&str> = KNOWN_MODELS.iter().map(|known| known.name).collect();
        return Err(usage!(
            "there is no model called `{address}` to fetch; give one of {}, or an address that \
             begins with https://",
            names.join(", ")
        ));
    }
    if options.mirror.is_some() {
        return Err(Error::usage(
            "--mirror is another place for a name of `model list`; give the address itself",
        ));
    }
    let sum = options.sha256.as_deref().ok_or_else(|| {
        usage!(
            "{address}: give the checksum that its bytes must have, --sha256 SUM; nobody could \
             tell a broken or a swapped file otherwise"
        )
    })?;
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let file = path.rsplit('/').next().unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    if file.starts_with('.') || !file.contains('.') || !file.chars().all(plain) {
        return Err(usage!(
            "{address}: does not end in the name of a file, such as model.safetensors"
        ));
    }
    Ok((file, Checksum::Sha256(sum)))
}

/// One archive, unless what it holds is there.
fn get(
    options: &FetchOptions,
    archive: &Archive,
    folder: &Path,
    on_event: OnFetch,
) -> Result<(), Error> {
    if let Some(creates) = archive.creates
        && folder.join(creates).exists()
    {
        let there = folder.join(creates);
        on_event(FetchEvent::Note(format!("{}: is there already", there.display())));
        return Ok(());
    }
    let url = match &options.mirror {
        Some(mirror) => format!("{}/{}", mirror.trim_end_matches('/'), archive.file),
        None => archive.url.into(),
    };
    let to = folder.join(archive.file);
    let own = options.md5.iter().find(|(file, _)| file == archive.file);
    let download = Download {
        url: &url,
        to: &to,
        sum: Checksum::Md5(own.map_or(archive.md5, |(_, sum)| sum)),
        pause: options.pause,
        megabytes: archive.megabytes,
        otherwise: "the file may have moved: look at the set's page, and try --mirror",
    };
    download.run(on_event)?;
    if archive.creates.is_some() {
        unpack_told(&to, folder, archive, on_event).map_err(failed(&to))?;
        if !options.keep {
            Disk.remove(&to).map_err(failed(&to))?;
        }
    }
    Ok(())
}

fn unpack_told(from: &Path, folder: &Path, archive: &Archive, on_event: OnFetch) -> io::Result<()> {
    let file = open_regular(from)?;
    let (total, what) = (file.metadata()?.len(), format!("unpacking {}", archive.file));
    let counted = Counted {
        inner: BufReader::new(file),
        done: 0,
        report: |done| on_event(FetchEvent::Bytes { what: &what, done, total }),
    };
    match archive.file.ends_with("gz") {
        true => unpack(&Disk, GzDecoder::new(counted), folder, archive),
        false => unpack(&Disk, counted, folder, archive),
    }
}

/// Tells how much was read.
struct Counted<R, F> {
    inner: R,
    done: u64,
    report: F,
}

impl<R: Read, F: FnMut(u64)> Read for Counted<R, F> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        self.done += n as u64;
        (self.report)(self.done);
        Ok(n)
    }
}

/// What to do about a set that cannot be fetched.
fn by_hand(set: &DatasetSpec, to: &Path) -> String {
    let folder = to.join(set.folder).display().to_string();
    format!(
        "{} cannot be fetched without an account: sign up at {}, download {}, then run \
         `anchorhood data check {}:{folder}`",
        set.title,
        set.homepage,
        set.by_hand.replace("{folder}", &folder),
        set.name
    )
}

/// What the system said about a file.
fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.display().to_string();
    move |e| Error::failed(format!("{path}: {e}"))
}
