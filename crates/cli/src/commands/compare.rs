//! `anchorhood compare`: methods beside each other, each for as long as the others.

use std::path::PathBuf;

use anchorhood::research::FeatureSource;
use anchorhood::{MethodSpec, RunConfig};
use anchorhood::{largest_images, refit};
use anchorhood_reproduce::{Allowance, Comparison, Standings, Told};
use anchorhood_train::{check_run_name, run_name_from};
use clap::Parser;

use crate::args::{StartArgs, device, method_names, minutes};
use crate::commands::reproduce::{failure, show};
use crate::commands::train::SAVING;
use crate::terminal::draw::{Drawer, Style};
use crate::terminal::failure::Failure;
use crate::terminal::interrupt::stop_when_interrupted;
use crate::terminal::output;

/// How often every run is judged, about, where nobody says.
const EVALUATIONS: usize = 20;

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
    let comparison = comparison(args)?;
    let stop = stop_when_interrupted(Some(SAVING))?;
    let style = if args.quiet { Style::Quiet } else { Style::Human };
    let mut drawer = Drawer::new(style, stop.clone());
    let device = device::open(&comparison.configs[0].machine)?;
    let (mut number, of) = (0, comparison.configs.len());
    let mut tell = |told: Told| match told {
        Told::Training(name) => {
            number += 1;
            drawer.note(&format!("{name}: {number} of {of}"));
        }
        Told::Trained { run, data } => refit(run, data, &device, &mut |event| drawer.event(event)),
        other => show(&mut drawer, other),
    };
    let standings = comparison.carry_out(&device, &mut tell, &stop);
    drawer.finish();
    publish(args, &comparison, &standings.map_err(failure)?)
}

fn publish(
    args: &CompareArgs,
    comparison: &Comparison,
    standings: &Standings,
) -> Result<(), Failure> {
    if args.json {
        let text = serde_json::to_string(standings).expect("standings are plain values");
        return output::line(&text);
    }
    let page = comparison.folder.join("comparison.md");
    output::line(&format!(
        "{} for each\n\n{}\n\nwritten to {}",
        standings.allowance,
        standings.table(),
        page.display()
    ))
}

fn comparison(args: &CompareArgs) -> Result<Comparison, Failure> {
    let configs = configs(args)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => {
            let set = &configs[0].data.set;
            let last = set.rsplit(['/', '\\', ':']).find(|part| !part.is_empty());
            format!("compare-{}", run_name_from(last.unwrap_or(set)))
        }
    };
    check_run_name(&name)?;
    let typed = args.start.settings.0.has("evaluation.every");
    Ok(Comparison {
        folder: args.runs.join(name),
        allowance: match (args.minutes, args.view_epochs) {
            (Some(minutes), _) => Allowance::Minutes(minutes),
            (None, views) => Allowance::ViewEpochs(views.unwrap_or(1) as usize),
        },
        largest: Some(largest_images(&configs[0].machine)),
        configs,
        evaluations: (!typed).then_some(EVALUATIONS),
        rounds_asked_for: args.start.options().rounds_are_asked_for(),
    })
}

/// A configuration for each seed and method; all of a seed are of the same pictures.
fn configs(args: &CompareArgs) -> Result<Vec<RunConfig>, Failure> {
    if let Some(flag) = args.start.settings.0.flag("evaluation.features") {
        return Err(usage!(
            "--{flag} says nothing here: features of all methods are recomputed to be judged; \
             leave it out"
        ));
    }
    let by = |method: &&'static MethodSpec| {
        let mut config = args.start.options().configuration_by(method)?;
        config.evaluation.features = FeatureSource::Recomputed;
        Ok(config)
    };
    let methods: Vec<RunConfig> = args.methods.iter().map(by).collect::<Result<_, Failure>>()?;
    let seeds = match args.seeds.as_slice() {
        [] => vec![methods[0].seed],
        seeds => seeds.to_vec(),
    };
    let of_seed = |seed: &u64| {
        let mut all = methods.clone();
        all.iter_mut().for_each(|config| config.seed = *seed);
        all
    };
    let all: Vec<RunConfig> = seeds.iter().flat_map(of_seed).collect();
    all.iter().try_for_each(RunConfig::check)?;
    Ok(all)
}
