//! `anchorhood plan`: what would training on so many pictures take, on a machine one describes?

use anchorhood::train::{COST_MODELS, MachineCosts, Parts, Workload};
use clap::Parser;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::terminal::failure::Failure;
use crate::terminal::output;

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  anchorhood plan --pictures 1e9 --gpus 512 --link 50GB/s
  anchorhood plan --pictures 14e6 --gpus 8 --link 400GB/s --size 224
  anchorhood plan --pictures 1e9 --gpus 512 --link 50GB/s --loss-rows 65536

A model, not a measurement: its terms and how far it is from what was measured are in docs/scale.md.")]
pub struct PlanArgs {
    /// Pictures to train on: 1e9, 1281167.
    #[arg(long, value_name = "N", value_parser = number)]
    pub pictures: f64,
    /// Processes, one for each GPU, or for a group of cores.
    #[arg(long, alias = "ranks", value_name = "P", value_parser = number)]
    pub gpus: f64,
    /// What a process receives from others in a second: 50GB/s.
    #[arg(long, value_name = "SPEED", value_parser = speed)]
    pub link: Option<f64>,
    /// What the processes run on: a machine that was measured.
    #[arg(long, default_value = COST_MODELS[0].0, value_parser = PossibleValuesParser::new(COST_MODELS.map(|m| m.0)).map(|s| machine(&s)))]
    pub machine: MachineCosts,
    /// Pictures of each process in a step.
    #[arg(long, default_value = "128", value_parser = number)]
    pub batch: f64,
    /// Views of each.
    #[arg(long, default_value = "1", value_parser = number)]
    pub views: f64,
    /// Length of a row of the memory.
    #[arg(long, default_value = "128", value_parser = number)]
    pub dim: f64,
    /// Neighbours of an anchor.
    #[arg(long, short = 'k', default_value = "1", value_parser = number)]
    pub neighbours: f64,
    /// Weights of the network, which are exchanged in every step [default: ResNet18's].
    #[arg(long, default_value = "11.2e6", value_parser = number)]
    pub weights: f64,
    /// Rows of the memory that stand for all in the loss (train --loss-rows sampled:M) [default: all].
    #[arg(long, value_name = "M", value_parser = number)]
    pub loss_rows: Option<f64>,
}

/// Runs the command.
pub fn run(args: &PlanArgs) -> Result<(), Failure> {
    let work = Workload {
        pictures: args.pictures,
        ranks: args.gpus,
        batch: args.batch,
        views: args.views,
        dim: args.dim,
        neighbours: args.neighbours,
        weights: args.weights,
        loss_rows: args.loss_rows,
    };
    let machine = MachineCosts {
        link: args.link.unwrap_or(args.machine.link),
        ..args.machine
    };
    output::line(&told(&work, &machine))
}

/// All that is said.
fn told(work: &Workload, machine: &MachineCosts) -> String {
    let (step, memory) = (work.step_seconds(machine), work.memory(machine));
    let (bytes, discovery) = (work.step_bytes(), work.discovery_seconds(machine));
    let steps = (work.pictures / (work.batch * work.ranks)).ceil();
    let mut lines = vec![format!(
        "{} pictures on {} processes of {}, {} between them; by a model, not measured",
        count(work.pictures),
        count(work.ranks),
        machine.name,
        rate(machine.link)
    )];
    lines.extend(table("memory of a process", &memory, bytes_of));
    lines.extend(table("a step", &step, seconds_of));
    lines.extend(table("received in a step", &bytes, bytes_of));
    lines.extend(table(
        "discovery before a round, exact",
        &discovery,
        seconds_of,
    ));
    lines.push(format!(
        "an epoch: {} steps, {}",
        count(steps),
        seconds_of(steps * step.total())
    ));
    lines.push(format!(
        "the loss takes longer than the network from {} pictures on",
        count(work.pictures_where_loss_dominates(machine))
    ));
    lines.push(match work.ranks_where_exchange_dominates(machine) {
        Some(ranks) => format!(
            "exchanging takes longer than both from {} processes on",
            count(ranks)
        ),
        None => "exchanging never takes longer than both, up to a million processes".into(),
    });
    if memory.total() > machine.memory {
        lines.push(format!(
            "it does not fit: a process has {} and would need {}",
            bytes_of(machine.memory),
            bytes_of(memory.total())
        ));
    }
    lines.join("\n")
}

fn table(what: &str, parts: &Parts, show: fn(f64) -> String) -> Vec<String> {
    let head = format!(
        "{what}: {} (mostly: {})",
        show(parts.total()),
        parts.dominant()
    );
    let part = |(name, value): &(&str, f64)| format!("  {name:<28} {:>10}", show(*value));
    std::iter::once(head)
        .chain(parts.0.iter().map(part))
        .collect()
}

fn number(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if n.is_finite() && n >= 1.0 => Ok(n),
        _ => Err("give a number of at least 1, such as 5000 or 1e9".into()),
    }
}

/// Bytes a second.
fn speed(text: &str) -> Result<f64, String> {
    let bare = text.trim().trim_end_matches("/s");
    let units = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)];
    let found = units.iter().find_map(|(unit, of)| {
        let number: f64 = bare.strip_suffix(unit)?.trim().parse().ok()?;
        Some(number * of)
    });
    let positive = found.filter(|speed| *speed > 0.0 && speed.is_finite());
    positive.ok_or_else(|| "give bytes a second, such as 50GB/s or 800MB/s".into())
}

fn machine(name: &str) -> MachineCosts {
    let found = COST_MODELS.iter().find(|m| m.0 == name);
    found.expect("the parser allows only these").1
}

/// 1.28e6 as 1,281,167 people say it: with a unit.
fn with_unit(value: f64, units: &[(f64, &str)]) -> String {
    let fits = units.iter().find(|(of, _)| value >= 0.9995 * of);
    let (of, unit) = fits.or(units.last()).copied().unwrap_or((1.0, ""));
    let value = value / of;
    match value {
        v if v >= 99.95 => format!("{v:.0}{unit}"),
        v if v >= 9.995 => format!("{v:.1}{unit}"),
        v => format!("{v:.2}{unit}"),
    }
}

fn bytes_of(bytes: f64) -> String {
    with_unit(
        bytes,
        &[(1e12, " TB"), (1e9, " GB"), (1e6, " MB"), (1e3, " kB")],
    )
}

fn rate(bytes: f64) -> String {
    bytes_of(bytes) + "/s"
}

fn seconds_of(seconds: f64) -> String {
    let units = [
        (86_400.0, " days"),
        (3600.0, " h"),
        (60.0, " min"),
        (1.0, " s"),
        (1e-3, " ms"),
        (1e-6, " µs"),
    ];
    with_unit(seconds, &units)
}

fn count(n: f64) -> String {
    match n {
        n if n < 1e6 => output::grouped(n.round() as usize),
        n => with_unit(n, &[(1e9, " billion"), (1e6, " million")]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_and_numbers_are_read() {
        assert_eq!(speed("50GB/s"), Ok(5e10));
        assert_eq!(speed("1.5 TB/s"), Ok(1.5e12));
        assert_eq!(speed("800MB"), Ok(8e8));
        for wrong in ["", "50", "fast", "-1GB/s", "GB/s", "infGB/s"] {
            assert!(speed(wrong).is_err(), "{wrong}");
        }
        assert_eq!(number("1e9"), Ok(1e9));
        for wrong in ["0", "-1", "many", "inf", "nan"] {
            assert!(number(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn it_is_said_in_units_that_people_use() {
        assert_eq!(bytes_of(1.5e9), "1.50 GB");
        assert_eq!(seconds_of(0.00179), "1.79 ms");
        assert_eq!(seconds_of(7200.0), "2.00 h");
        assert_eq!(count(1e9), "1.00 billion");
        assert_eq!(count(512.0), "512");
    }
}
