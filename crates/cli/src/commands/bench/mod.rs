//! `anchorhood bench`: the speed of one part, as one line or one JSON object.

mod discover;
mod fixed_batch;
mod step;

use anchorhood::MachineConfig;

use crate::args::{Bench, BenchArgs, BenchCommon};
use crate::terminal::failure::Failure;
use crate::terminal::output;

pub fn run(args: &BenchArgs) -> Result<(), Failure> {
    let common = match &args.what {
        Bench::Step(args) => &args.common,
        Bench::Discover(args) => &args.common,
    };
    let most = MachineConfig::MOST_THREADS;
    if common.threads > most {
        return Err(usage!("--threads {}: may come to {most} at most", common.threads));
    }
    match &args.what {
        Bench::Step(args) => step::run(args),
        Bench::Discover(args) => discover::run(args),
    }
}

impl BenchCommon {
    fn machine(&self) -> MachineConfig {
        MachineConfig { device: self.device, precision: self.precision, threads: self.threads }
    }

    fn thread_count(&self) -> usize {
        self.machine().thread_count()
    }

    fn show(&self, text: &str, object: &serde_json::Value) -> Result<(), Failure> {
        output::either(self.json, || object.clone(), || text.into())
    }
}

/// The middle of some measurements; of an even number the mean of the two middle ones.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn medians() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
