//! `anchorhood data fetch`: download, verify, unpack, so that `train NAME` finds the set.

use std::path::Path;
use std::time::Duration;

use anchorhood::{DATASETS, FetchEvent, FetchOptions, fetch_dataset};

use super::FetchArgs;
use crate::terminal::bar::Bar;
use crate::terminal::failure::Failure;
use crate::terminal::output;

pub fn run(args: &FetchArgs) -> Result<(), Failure> {
    let sums = args.md5.iter().filter_map(|given| given.split_once('='));
    let options = FetchOptions {
        to: args.to.clone(),
        extra: args.extra,
        mirror: args.mirror.clone(),
        keep: args.keep,
        pause: Duration::from_millis(args.pause),
        md5: sums.map(|(file, sum)| (file.into(), sum.into())).collect(),
        ..FetchOptions::default()
    };
    let folder = drawn(|on_event| fetch_dataset(&args.name, &options, on_event))?;
    let name = &args.name;
    let spec = match args.to == Path::new("data") {
        true => name.clone(),
        false => format!("{name}:{}", args.to.display()),
    };
    output::line(&format!(
        "{} is in {}. Look at it with\n  anchorhood data check {spec}\nLearn from it with\n  \
         anchorhood train {spec}",
        DATASETS.find(name).map_or(&**name, |set| set.title),
        folder.display(),
    ))
}

/// Shows how far a download is.
pub fn drawn<T>(
    fetch: impl FnOnce(&mut dyn FnMut(FetchEvent)) -> Result<T, anchorhood::Error>,
) -> Result<T, Failure> {
    let mut bar: Option<(String, Bar)> = None;
    let fetched = fetch(&mut |event| match event {
        FetchEvent::Note(text) => match &bar {
            Some((_, bar)) => bar.say(&text),
            None => eprintln!("{text}"),
        },
        FetchEvent::Bytes { what, done, total } => {
            if bar.as_ref().is_none_or(|(of, _)| of != what) {
                bar = None; // its line is cleared before the next begins
                let new = Bar::of_bytes(what);
                new.goes_on_from(done as usize);
                bar = Some((what.into(), new));
            }
            if let Some((_, bar)) = &bar {
                bar.at(done as usize, total as usize);
            }
        }
    });
    drop(bar);
    Ok(fetched?)
}
