//! `anchorhood reproduce`: the paper's tables and figures, each by one command, ours beside the
//! paper's.

use std::path::{Path, PathBuf};

use anchorhood::{
    DeviceChoice, MachineConfig, PrecisionChoice, ReproduceOptions, Results, Scale, Told,
    experiments, reproduce,
};
use clap::Parser;

use crate::args::{device, one_of, precisions};
use crate::commands::train::SAVING;
use crate::terminal::draw::{Drawer, Style};
use crate::terminal::failure::Failure;
use crate::terminal::interrupt::stop_when_interrupted;
use crate::terminal::output;

#[derive(Debug, Parser)]
#[command(after_help = help!("reproduce"))]
pub struct ReproduceArgs {
    /// Which experiment (see --list), or `all`.
    #[arg(required_unless_present = "list")]
    pub name: Option<String>,
    /// Name the experiments and where they are in the paper.
    #[arg(long)]
    pub list: bool,
    /// How large: smoke (a minute on a CPU, on drawn shapes), short (minutes on a GPU, a tenth of
    /// the epochs) or paper.
    #[arg(long, default_value = "short",
          value_parser = one_of::<Scale>(&["smoke", "short", "paper"]))]
    pub scale: Scale,
    /// Where data sets lie [default: as for `train`, ./data].
    #[arg(long, value_name = "FOLDER")]
    pub data_folder: Option<PathBuf>,
    /// Repeat with the seeds 0 to N − 1, and give mean ± standard deviation.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: u64,
    /// Only this row (several: one flag each); of others, what is finished already is shown.
    #[arg(long, value_name = "ROW")]
    pub only: Vec<String>,
    /// Where runs and results are kept.
    #[arg(long, short = 'o', value_name = "FOLDER", default_value = "reproduced")]
    pub output: PathBuf,
    /// Where to run: auto, cpu, cuda or cuda:N. auto takes a GPU when one works.
    #[arg(long, default_value = "auto")]
    pub device: DeviceChoice,
    /// What numbers a GPU computes with: bf16 (the default), tf32 or f32.
    #[arg(long, value_parser = precisions())]
    pub precision: Option<PrecisionChoice>,
    /// Threads; 0 for one a core.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// Neither bars nor lines while it runs.
    #[arg(long)]
    pub quiet: bool,
}

pub fn run(args: &ReproduceArgs) -> Result<(), Failure> {
    if args.list {
        return list();
    }
    let wanted = experiments(args.name.as_deref().unwrap_or("all"))?;
    let options = ReproduceOptions {
        scale: args.scale,
        seeds: args.seeds,
        only: args.only.clone(),
        output: args.output.clone(),
        data: args.data_folder.clone(),
        machine: MachineConfig {
            device: args.device,
            precision: args.precision.unwrap_or_default(),
            threads: args.threads,
        },
    };
    options.check()?;
    let stop = stop_when_interrupted(Some(SAVING))?;
    let style = if args.quiet { Style::Quiet } else { Style::Brief };
    let mut drawer = Drawer::new(style, stop.clone());
    let device = device::open(&options.machine)?;
    let done = wanted.iter().try_for_each(|experiment| {
        let mut tell = |told: Told| show(&mut drawer, told);
        let results = reproduce(experiment, &options, &device, &mut tell, &stop);
        drawer.clear();
        publish(&results?, &options.results(experiment))
    });
    drawer.finish();
    done
}

/// Shows what several runs are doing.
pub fn show(drawer: &mut Drawer, told: Told) {
    match told {
        Told::Note(text) => drawer.note(text),
        Told::Training(name) => drawer.note(&format!("  {name}")),
        Told::Trained { .. } => {}
        Told::Event(event) => drawer.event(event),
        Told::Step { what, done, total } => drawer.step(what.into(), done, total, None),
    }
}

fn list() -> Result<(), Failure> {
    for e in experiments("all")? {
        output::line(&format!("{:<11} {} ({})", e.name, e.title, e.place))?;
    }
    Ok(())
}

/// Shows the table, and where it is written.
fn publish(results: &Results, folder: &Path) -> Result<(), Failure> {
    output::line(&format!(
        "{}: {} ({} scale)\n\n{}",
        results.paper,
        results.title,
        results.scale,
        results.table()
    ))?;
    for why in results.reasons() {
        output::line(&format!("not run: {why}"))?;
    }
    for smaller in &results.smaller_than_the_paper {
        output::line(&format!("smaller than the paper: {smaller}"))?;
    }
    output::line(&format!("written to {}\n", folder.join("results.md").display()))
}
