//! `anchorhood data fetch`: download, verify, unpack, so that `train NAME` finds the set.

use std::path::Path;

use anchorhood::data::{Archive, SETS, SetFacts, facts_of};
use anchorhood::files::{Disk, FileSystem};

use super::FetchArgs;
use super::download::Download;
use super::unpack::unpack;
use crate::terminal::failure::Failure;
use crate::terminal::output;

/// Runs the command.
pub fn run(args: &FetchArgs) -> Result<(), Failure> {
    let set = facts_of(&args.name).filter(|set| set.name == args.name);
    let set = set.ok_or_else(|| unknown(&args.name))?;
    if set.archives.is_empty() {
        return Err(Failure::usage(by_hand(set, &args.to)));
    }
    if args.extra && !set.archives.iter().any(|a| a.optional) {
        let name = set.name;
        return Err(Failure::usage(format!(
            "--extra: {name} has no extra pictures"
        )));
    }
    let folder = args.to.join(set.folder);
    Disk.create_folders(&folder)
        .map_err(|e| Failure::failed(format!("{}: {e}", folder.display())))?;
    for archive in set.archives.iter().filter(|a| args.extra || !a.optional) {
        get(args, archive, &folder)?;
    }
    let spec = match args.to == Path::new("data") {
        true => set.name.to_owned(),
        false => format!("{}:{}", set.name, args.to.display()),
    };
    output::line(&format!(
        "{} is in {}. Look at it with\n  anchorhood data check {spec}\nLearn from it with\n  anchorhood train {spec}",
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
        md5: expected_sum(args, archive),
        pause: std::time::Duration::from_millis(args.pause),
        megabytes: archive.megabytes,
    };
    download.run()?;
    if archive.creates.is_some() {
        unpack(&to, folder, archive)?;
        if !args.keep {
            Disk.remove(&to)
                .map_err(|e| Failure::failed(format!("{}: {e}", to.display())))?;
        }
    }
    Ok(())
}

fn expected_sum<'a>(args: &'a FetchArgs, archive: &'a Archive) -> &'a str {
    let given = args.md5.iter().filter_map(|given| given.split_once('='));
    let mut given = given.filter(|(file, _)| *file == archive.file);
    given.next().map_or(archive.md5, |(_, sum)| sum)
}

fn unknown(name: &str) -> Failure {
    let names: Vec<&str> = SETS.iter().map(|set| set.name).collect();
    Failure::usage(format!(
        "there is no data set called `{name}` to fetch; give one of {}",
        names.join(", ")
    ))
}

/// What to do about a set that cannot be fetched.
fn by_hand(set: &SetFacts, to: &Path) -> String {
    let folder = to.join(set.folder);
    let folder = folder.display();
    format!(
        "{} cannot be fetched without an account: sign up at {}, download ILSVRC2012_img_train.tar (unpack it, and each of the \
         1,000 archives in it into {folder}/train/SYNSET), ILSVRC2012_img_val.tar (into {folder}/val) and \
         ILSVRC2012_devkit_t12.tar.gz (into {folder}), then run `anchorhood data check imagenet:{folder}`",
        set.title, set.page
    )
}
