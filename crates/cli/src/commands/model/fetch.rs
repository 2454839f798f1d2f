//! `anchorhood model fetch`: download and verify, so that every command finds the model by its
//! name.

use std::time::Duration;

use anchorhood_index::{KNOWN_MODELS, KnownModel};
use anchorhood_storage::{Disk, FileSystem};

use super::{FetchArgs, folder};
use crate::args::model::io;
use crate::commands::download::{Checksum, Download};
use crate::terminal::failure::Failure;
use crate::terminal::output;

/// What is to be downloaded.
struct Wanted<'a> {
    name: &'a str,
    url: String,
    file: String,
    sum: Checksum<'a>,
    megabytes: u32,
}

pub fn run(args: &FetchArgs) -> Result<(), Failure> {
    let wanted = match KnownModel::named(&args.model) {
        Some(known) => published(args, known),
        None => by_address(args)?,
    };
    let folder = folder()?;
    Disk.create_folders(&folder).map_err(io(&folder))?;
    let to = folder.join(&wanted.file);
    let download = Download {
        url: &wanted.url,
        to: &to,
        sum: wanted.sum,
        pause: Duration::from_millis(args.pause),
        megabytes: wanted.megabytes,
        otherwise: "look whether the address is right, or give --mirror",
    };
    download.run()?;
    let name = wanted.name;
    output::line(&format!(
        "{name} is in {}. See what it is with\n  anchorhood model show {name}\nFine-tune it \
         with\n  anchorhood train ~/pictures --from {name}",
        to.display()
    ))
}

fn published<'a>(args: &'a FetchArgs, known: &'a KnownModel) -> Wanted<'a> {
    let (file, folder) = (known.file(), args.mirror.as_deref().unwrap_or(KnownModel::FOLDER));
    Wanted {
        name: known.name,
        url: format!("{}/{file}", folder.trim_end_matches('/')),
        file,
        sum: match &args.sha256 {
            Some(whole) => Checksum::Sha256(whole),
            None => Checksum::Sha256Begins(known.sha256),
        },
        megabytes: known.megabytes,
    }
}

/// A file whose checksum the user knows.
fn by_address(args: &FetchArgs) -> Result<Wanted<'_>, Failure> {
    let address = &args.model;
    if !address.starts_with("https://") && !address.starts_with("http://") {
        return Err(unknown(address));
    }
    if args.mirror.is_some() {
        return Err(Failure::usage(
            "--mirror is another place for a name of `model list`; give the address itself",
        ));
    }
    let sum = args.sha256.as_deref().ok_or_else(|| {
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
    let (url, sum) = (address.clone(), Checksum::Sha256(sum));
    Ok(Wanted { name: file, url, file: file.into(), sum, megabytes: 0 })
}

fn unknown(name: &str) -> Failure {
    let names: Vec<&str> = KNOWN_MODELS.iter().map(|known| known.name).collect();
    usage!(
        "there is no model called `{name}` to fetch; give one of {}, or an address that begins \
         with https://",
        names.join(", ")
    )
}
