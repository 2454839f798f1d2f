//! How fast does a server answer, alone and with many clients at once?
//!
//! ```sh
//! anchorhood serve pictures.index &
//! cargo run --release -p anchorhood-serve --example load -- http://127.0.0.1:4242 QUERIES [CLIENTS] [SECONDS]
//! ```
//!
//! `QUERIES` is a folder of pictures to upload. One client asks first, for a fifth of the time,
//! then all of them at once. It fails if one answer does.

mod asking;

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use asking::{Seen, ask};

/// Pictures taken from the folder, at most.
const MOST: usize = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, folder, numbers @ ..] = &args[..] else {
        return Err("give the server's address and a folder of pictures".into());
    };
    let number = |i: usize, usual: usize| match numbers.get(i) {
        Some(text) => text.parse().map_err(|e| format!("{text:?}: {e}")),
        None => Ok(usual),
    };
    let (clients, seconds) = (number(0, 50)?, number(1, 30)?);
    let pictures = read(Path::new(folder))?;
    println!("{} pictures to upload", pictures.len());
    let mut errors = 0;
    for (clients, seconds) in [(1, (seconds / 5).max(1)), (clients, seconds)] {
        let seen = ask(address, &pictures, clients, Duration::from_secs(seconds as u64));
        errors += seen.errors.len();
        tell(&seen, clients, seconds);
    }
    match errors {
        0 => Ok(()),
        _ => Err(format!("{errors} questions were not answered").into()),
    }
}

fn read(folder: &Path) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    paths.retain(|p| p.is_file());
    paths.sort();
    let step = paths.len().div_ceil(MOST).max(1);
    let some = paths.iter().step_by(step).map(std::fs::read);
    let some: Vec<Vec<u8>> = some.collect::<Result<_, _>>()?;
    match some.is_empty() {
        true => Err(format!("{}: no files", folder.display()).into()),
        false => Ok(some),
    }
}

fn tell(seen: &Seen, clients: usize, seconds: usize) {
    let requests = seen.requests();
    let rate = requests as f64 / seconds as f64;
    println!(
        "{clients} clients, {seconds} s: {requests} requests, {rate:.0} a second, {} errors",
        seen.errors.len()
    );
    for (name, times) in [
        ("upload, until its neighbours are there", &seen.uploads),
        ("search by a picture that is there", &seen.searches),
        ("a small picture", &seen.pictures),
    ] {
        let mut times = times.clone();
        times.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| {
            let i = (times.len() as f64 * share) as usize;
            times.get(i.min(times.len().saturating_sub(1)))
        };
        let ms = |share| at(share).map_or("–".into(), |t| format!("{:.1} ms", t * 1000.0));
        println!(
            "  {name:40} {:7} times   half within {:>9}   99% {:>9}   all {:>9}",
            times.len(),
            ms(0.5),
            ms(0.99),
            ms(1.0)
        );
    }
    for error in seen.errors.iter().take(5) {
        println!("  error: {error}");
    }
}
