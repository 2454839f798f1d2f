//! `anchorhood compare`: methods beside each other, each for as long as the others.

use std::path::PathBuf;

use anchorhood::{Allowance, CompareOptions, MethodSpec, Told, compare};
use clap::Parser;

use crate::args::{StartArgs, method_names, minutes};
use crate::commands::reproduce::show;
use crate::commands::train::SAVING;
use crate::terminal::draw::{Drawer, Style};
use crate::terminal::failure::Failure;
use crate::terminal::interrupt::stop_when_interrupted;
use crate::terminal::output;

#[derive(Debug, Parser)]
#[command(after_help = help!("compare"))]
pub struct CompareArgs {
    /// Which methods, with commas between them.
    #[arg(long, value_name = "A,B,C", required = true, value_delimiter = ',',
          conflicts_with = "method.name", value_parser = method_names())]
    pub methods: Vec<&'static MethodSpec>,
    /// Train each for so long: its speed is measured first, and its epochs follow from it.
    #[arg(long, value_name = "M", value_parser = minutes, conflicts_with = "training.epochs",
          required_unless_present = "view_epochs")]
    pub minutes: Option<f64>,
    /// Train each for so many view-epochs: a view of every picture, forwards and backwards, is one.
    #[arg(long, value_name = "V", conflicts_with_all = ["minutes", "training.epochs"],
          value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub view_epochs: Option<u64>,
    /// Repeat with these seeds, and give mean ± standard deviation [default: that of --seed].
    #[arg(long, value_name = "N,N", value_delimiter = ',', conflicts_with = "seed")]
    pub seeds: Vec<u64>,
    /// What to call the comparison [default: compare- and the data set].
    #[arg(long)]
    pub name: Option<String>,
    /// Where runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub runs: PathBuf,
    /// What came of it as one JSON object on stdout.
    #[arg(long)]
    pub json: bool,
    /// Neither bars nor lines while training.
    #[arg(long)]
    pub quiet: bool,
    #[command(flatten)]
    pub start: StartArgs,
}

pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    let options = options(args);
    let folder = options.folder()?;
    let stop = stop_when_interrupted(Some(SAVING))?;
    let style = if args.quiet { Style::Quiet } else { Style::Human };
    let mut drawer = Drawer::new(style, stop.clone());
    let (mut number, of) = (0, options.methods.len() * options.seeds.len().max(1));
    let mut tell = |told: Told| match told {
        Told::Training(name) => {
            number += 1;
            drawer.note(&format!("{name}: {number} of {of}"));
        }
        other => show(&mut drawer, other),
    };
    let standings = compare(&options, None, &mut tell, &stop);
    drawer.finish();
    let standings = standings?;
    if args.json {
        let text = serde_json::to_string(&standings).expect("standings are plain values");
        return output::line(&text);
    }
    output::line(&format!(
        "{} for each\n\n{}\n\nwritten to {}",
        standings.allowance,
        standings.table(),
        folder.join("comparison.md").display()
    ))
}

fn options(args: &CompareArgs) -> CompareOptions {
    let allowance = match (args.minutes, args.view_epochs) {
        (Some(minutes), _) => Allowance::Minutes(minutes),
        (None, views) => Allowance::ViewEpochs(views.unwrap_or(1) as usize),
    };
    CompareOptions {
        seeds: args.seeds.clone(),
        name: args.name.clone(),
        runs: args.runs.clone(),
        start: args.start.options(),
        ..CompareOptions::new(&args.methods, allowance)
    }
}
