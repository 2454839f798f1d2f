//! Opening a data set, then an epoch of batches prepared from it with nobody training beside.

use std::time::Instant;

use anchorhood::data::{self, Augmentation, Feed, Loader};
use anchorhood::train::Preset;
use serde_json::json;

use super::at_least_one;
use crate::args::BenchLoadArgs;
use crate::terminal::failure::Failure;

/// Runs the benchmark.
pub fn run(args: &BenchLoadArgs) -> Result<(), Failure> {
    at_least_one(&[("batch", args.batch)])?;
    let threads = args.common.thread_count();
    let mut config = Preset::Quick.config(&args.data);
    config.data.size = args.size;
    config.data.limit = args.limit;
    config.check()?;
    let clock = Instant::now();
    let set = data::open(&args.data, &config.data.load_options(0))?;
    let opened = clock.elapsed().as_secs_f64();
    let n = set.train.pictures.len();
    let test = set.test.as_ref().map_or(0, |t| t.pictures.len());

    let batch = args.batch.min(n);
    let feed = Feed {
        pictures: set.train.pictures.clone(),
        views: Augmentation::default().into(),
        mean: set.mean,
        std: set.std,
        seed: 0,
        batch,
    };
    let mut loader = Loader::start(feed, threads, 4)?;
    let batches = (n / batch).max(1);
    let clock = Instant::now();
    for _ in 0..batches {
        let one = loader.next().ok_or_else(|| {
            Failure::failed("the threads that prepare batches ended unexpectedly")
        })?;
        loader.recycle(one);
    }
    let prepared = clock.elapsed().as_secs_f64();
    let rate = (batches * batch) as f64 / prepared;
    let text = format!(
        "load {} threads={threads}: {} pictures opened in {opened:.3} s; batches of {batch} at {rate:.0} pictures/s",
        set.name,
        n + test
    );
    let object = json!({
        "bench": "load", "data": set.name, "pictures": n + test, "threads": threads, "open_seconds": opened,
        "batch": batch, "pictures_per_second": rate, "version": anchorhood::train::VERSION,
    });
    args.common.show(&text, &object)
}
