//! `anchorhood data fetch`: download, verify, unpack, so that `train NAME` finds the set.

use std::io::{self, BufReader, Read};
use std::path::Path;

use anchorhood::DATASETS;
use anchorhood::research::{Archive, DatasetSpec};
use anchorhood_data::{find_dataset, unpack};
use anchorhood_storage::{Disk, FileSystem, open_regular};
use flate2::read::GzDecoder;

use super::FetchArgs;
use crate::args::model::io as failed;
use crate::commands::download::{Checksum, Download};
use crate::terminal::bar::Bar;
use crate::terminal::failure::Failure;
use crate::terminal::output;

pub fn run(args: &FetchArgs) -> Result<(), Failure> {
    let set = find_dataset(&args.name).filter(|set| set.name == args.name);
    let set = set.ok_or_else(|| unknown(&args.name))?;
    if set.archives.is_empty() {
        return Err(Failure::usage(by_hand(set, &args.to)));
    }
    if args.extra && !set.has_extra() {
        let name = set.name;
        return Err(usage!("--extra: {name} has no extra pictures"));
    }
    let folder = args.to.join(set.folder);
    Disk.create_folders(&folder).map_err(failed(&folder))?;
    for archive in set.archives.iter().filter(|a| args.extra || !a.optional) {
        get(args, archive, &folder)?;
    }
    let spec = match args.to == Path::new("data") {
        true => set.name.to_owned(),
        false => format!("{}:{}", set.name, args.to.display()),
    };
    output::line(&format!(
        "{} is in {}. Look at it with\n  anchorhood data check {spec}\nLearn from it with\n  \
         anchorhood train {spec}",
        set.title,
        folder.display(),
    ))
}

/// One archive, unless what it holds is there.
fn get(args: &FetchArgs, archive: &Archive, folder: &Path) -> Result<(), Failure> {
    if let Some(creates) = archive.creates
        && folder.join(creates).exists()
    {
        eprintln!("{}: is there already", folder.join(creates).display());
        return Ok(());
    }
    let url = match &args.mirror {
        Some(mirror) => format!("{}/{}", mirror.trim_end_matches('/'), archive.file),
        None => archive.url.into(),
    };
    let to = folder.join(archive.file);
    let download = Download {
        url: &url,
        to: &to,
        sum: Checksum::Md5(expected_sum(args, archive)),
        pause: std::time::Duration::from_millis(args.pause),
        megabytes: archive.megabytes,
        otherwise: "the file may have moved: look at the set's page, and try --mirror",
    };
    download.run()?;
    if archive.creates.is_some() {
        unpack_with_bar(&to, folder, archive).map_err(failed(&to))?;
        if !args.keep {
            Disk.remove(&to).map_err(failed(&to))?;
        }
    }
    Ok(())
}

fn unpack_with_bar(from: &Path, folder: &Path, archive: &Archive) -> io::Result<()> {
    let file = open_regular(from)?;
    let length = file.metadata()?.len();
    let bar = Bar::of_bytes(format!("unpacking {}", archive.file));
    let counted = Counted {
        inner: BufReader::new(file),
        done: 0,
        report: |done: u64| bar.at(done as usize, length as usize),
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

impl<R: Read, F: Fn(u64)> Read for Counted<R, F> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        self.done += n as u64;
        (self.report)(self.done);
        Ok(n)
    }
}

fn expected_sum<'a>(args: &'a FetchArgs, archive: &'a Archive) -> &'a str {
    let given = args.md5.iter().filter_map(|given| given.split_once('='));
    let mut given = given.filter(|(file, _)| *file == archive.file);
    given.next().map_or(archive.md5, |(_, sum)| sum)
}

fn unknown(name: &str) -> Failure {
    let names = DATASETS.names();
    usage!("there is no data set called `{name}` to fetch; give one of {names}")
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
