//! `anchorhood train`.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anchorhood::data::{self, Dataset, LoadOptions};
use anchorhood::engine::Device;
use anchorhood::report::{Summary, read_metrics, write_curve};
use anchorhood::search::Model;
use anchorhood::train::{
    Beginning, Event, Measured, Outcome, Preset, Pretrained, RunConfig, RunDir, RunEnded,
    TimeBudget, check_data, check_room_to_train, check_together, embedding_path, fellow_readers,
    found_by_first, measure, refitted_path, train_with,
};

use crate::args::TrainArgs;
use crate::args::device;
use crate::args::ranks::Ranks;
use crate::args::resolve::{Plan, plan};
use crate::args::run_data;
use crate::commands::refit;
use crate::commands::tensorboard::Follower;
use crate::terminal::draw::{Drawer, Style};
use crate::terminal::failure::Failure;
use crate::terminal::folder_report;
use crate::terminal::interrupt::stop_when_interrupted;
use crate::terminal::output;

/// Who sees a training.
pub trait Viewer: Send {
    /// Something happened.
    fn event(&mut self, event: &Event);
    /// Something that is good to know.
    fn note(&mut self, _text: &str) {}
    /// So many of all pictures are read.
    fn loading(&mut self, _done: usize, _total: usize) {}
}

/// A training that is over.
pub struct Trained {
    /// The run's folder.
    pub run: PathBuf,
    /// How it ended.
    pub outcome: Outcome,
    data: Dataset,
    device: Device,
}

/// Runs the command, as one process or as one of several.
pub fn run(args: &TrainArgs) -> Result<(), Failure> {
    let ranks = Ranks::join()?;
    let outcome = train(args, &ranks);
    ranks.ended(outcome)
}

fn train(args: &TrainArgs, ranks: &Ranks) -> Result<(), Failure> {
    let began = Instant::now();
    let first = ranks.communicator.is_first();
    let style = match (first, args.json, args.quiet) {
        (false, _, _) => Style::Silent,
        (true, true, _) => Style::Json,
        (true, _, true) => Style::Quiet,
        (true, false, false) => Style::Human,
    };
    let stop = stop_when_interrupted(first.then_some(SAVING))?;
    let mut drawer = Drawer::new(style, stop.clone());
    let trained = learn(args, (began, ranks), None, &mut drawer, &stop);
    let drawn = match &trained {
        Ok(trained) if first => trained.draw(&mut drawer),
        Ok(_) | Err(_) => Ok(None),
    };
    drawer.finish();
    let (trained, summary) = (trained?, drawn?);
    match (&trained.outcome, &summary) {
        (Outcome::Finished(ended), Some(summary)) => finished(args, &trained, ended, summary),
        (Outcome::Finished(_), None) => Ok(()), // the first process draws
        (Outcome::Stopped(_), _) if !first => Err(Failure::interrupted()),
        (Outcome::Stopped(position), _) => {
            eprintln!(
                "stopped at {position}, saved in {}; go on with\n  anchorhood train --resume {}",
                trained.run.display(),
                run_and_place(&args.runs, &trained.run)
            );
            Err(if drawer.closed() { Failure::closed_pipe() } else { Failure::interrupted() })
        }
    }
}

/// Trains what was typed since some time, as one process or as one of several, on pictures of one's
/// own where there are some.
pub fn learn(
    args: &TrainArgs,
    (began, ranks): (Instant, &Ranks),
    own: Option<Dataset>,
    viewer: &mut dyn Viewer,
    stop: &AtomicBool,
) -> Result<Trained, Failure> {
    let (mut plan, model) = plan(args)?;
    let data = match own {
        Some(own) => {
            let (Plan::New(config) | Plan::Resume(_, config)) = &plan;
            own.with_options(&config.data.load_options(config.seed))?
        }
        None => open(&plan, args.moved.as_deref(), ranks, viewer)?,
    };
    if let (Plan::New(config), true) = (&mut plan, epochs_are_open(args)) {
        config.training.epochs = enough_epochs(config, &data);
    }
    if let Plan::New(config) = &mut plan {
        let open = config.data.size.is_none();
        **config = config.resolved(&data)?;
        if let (true, Some(size)) = (open, config.data.size) {
            viewer.note(&format!(
                "pictures of {size}×{size} (--size for another), learnt from nothing (--from base: \
                 from the model inside this program)"
            ));
        }
        if let Some(model) = &model {
            viewer.note(&begins_from(model, config));
        }
    }
    let (Plan::New(config) | Plan::Resume(_, config)) = &plan;
    let machine = ranks.divide(config.machine.clone())?;
    if device::several(machine.device)?.len() > 1 {
        return Err(usage!(
            "--device {}: several GPUs are work for as many processes, which only the command line \
             starts; name one",
            machine.device
        ));
    }
    if let Some(carrier) = ranks.communicator.describe() {
        let ranks = ranks.communicator.ranks();
        viewer.note(&format!("{ranks} processes train together, by {carrier}"));
    }
    let work = Training { args, began, plan, model, data: &data, viewer, stop };
    let device = device::open(&machine).map(|d| d.among(ranks.communicator.clone()));
    let device = device?;
    let (run, outcome) = work.on(&device)?;
    device.leave();
    Ok(Trained { run, outcome, data, device: device.alone() })
}

/// Pixels that a run looks at where nobody says how long it is to be: 330,000 views of 32×32, two
/// to five minutes on two cores at the quick preset's width.
const A_RUN: usize = 330_000 * 32 * 32;
/// The most that such a run is to take on a CPU: five minutes, less a tenth for what else a machine
/// begins to do meanwhile.
const QUICK_MINUTES: f64 = 4.5;
/// Seconds that its steps are timed, to see whether it is as quick as that.
const A_GLANCE: f64 = 2.0;

/// Seconds of what follows a training: the page with its map of up to 2,000 pictures took 1.7 on
/// one core (an AMD EPYC).
const A_REPORT: f64 = 2.0;
/// The same of a GPU's large networks and memories: seven to eight beside an H200, while every
/// checkpoint was read whole.
const A_REPORT_ON_GPU: f64 = 8.0;

/// Whether the quick preset decides about the epochs; `shapes` have their own.
fn epochs_are_open(args: &TrainArgs) -> bool {
    let start = &args.start;
    let quick = start.preset.is_none_or(|p| p == Preset::Quick);
    let shapes = start.set().is_none_or(|d| d == "shapes");
    quick && !shapes && start.config.is_none() && !start.settings.has("training.epochs")
}

/// A preset cannot know how many pictures there are, and a few need more epochs than many: with 3 ×
/// 10 of 4,000 photographs AND does not pass raw pixels, with 3 × 30 it does.
fn enough_epochs(config: &RunConfig, data: &Dataset) -> usize {
    let pictures = &data.train.pictures;
    let views = config.method.views_of_a_picture();
    let pixels = pictures.len() * pictures.height() * pictures.width() * views;
    let rounds = config.training.rounds + 1;
    let least = (30 / rounds / views).max(1);
    (A_RUN / (pixels * rounds).max(1)).clamp(least, 100)
}

/// Training, once there are pictures and a device: a run that cannot begin leaves no folder behind.
struct Training<'a> {
    args: &'a TrainArgs,
    began: Instant,
    plan: Plan,
    model: Option<Pretrained>,
    data: &'a Dataset,
    viewer: &'a mut dyn Viewer,
    stop: &'a AtomicBool,
}

impl Training<'_> {
    /// The run's folder, and what it begins with.
    fn folder(&mut self, device: &Device) -> Result<(RunDir, Beginning), Failure> {
        let (runs, mut beginning) = (&self.args.runs, Beginning::default());
        let first = device.communicator().is_first();
        let dir = match &self.plan {
            Plan::New(config) => {
                let mut config = config.clone();
                check_data(&config, self.data)?;
                check_together(device, &config, self.data)?;
                check_room_to_train(device, &config, self.data)?;
                if let Some(minutes) = self.args.minutes {
                    (*config, beginning) = self.within(minutes, &config, device)?;
                } else if self.may_be_shortened(&config, device) {
                    (*config, beginning) = self.shortened(&config, device)?;
                }
                if !first {
                    let name = self.args.name.as_ref().unwrap_or(&self.data.name);
                    let dir = RunDir::follow(&runs.join(name), &config);
                    beginning.model = self.model.take();
                    return Ok((dir, beginning));
                }
                match &self.args.name {
                    Some(name) => RunDir::create(runs, name, &config)?,
                    None => RunDir::create_numbered(runs, &self.data.name, &config)?,
                }
            }
            Plan::Resume(path, config) if !first => RunDir::follow(path, config),
            Plan::Resume(path, config) => {
                let mut dir = RunDir::open(path)?;
                refit::forget(path)?;
                dir.set_machine(config.machine.clone());
                dir
            }
        };
        beginning.model = self.model.take();
        Ok((dir, beginning))
    }

    /// A configuration that ends within so many minutes, with its floors.
    fn within(
        &mut self,
        minutes: f64,
        config: &RunConfig,
        device: &Device,
    ) -> Result<(RunConfig, Beginning), Failure> {
        let budget = self.budget(minutes, device);
        let (measured, budget, rounds) = self.measured(config, device, budget)?;
        let with = |rounds, epochs| config.with_rounds(rounds, epochs);
        let found = || measured.fitted(&budget, rounds, with);
        let (rounds, epochs) = found_by_first(device.communicator(), found)?;
        let fitted = with(rounds, epochs);
        self.viewer.event(&measured.event(&budget, config, &fitted));
        Ok((fitted, Beginning::after(measured)))
    }

    /// Whether nobody but the preset says how long a run on a CPU is, which is as long as most
    /// people wait. A model that it begins from is fine-tuned for as long as was found best.
    fn may_be_shortened(&self, config: &RunConfig, device: &Device) -> bool {
        device.is_host() && config.training.from.is_none() && epochs_are_open(self.args)
    }

    /// The configuration where this machine is fast enough for it, else one that ends within
    /// [`QUICK_MINUTES`], with its floors.
    fn shortened(
        &mut self,
        config: &RunConfig,
        device: &Device,
    ) -> Result<(RunConfig, Beginning), Failure> {
        let budget = TimeBudget { timing: A_GLANCE, ..self.budget(QUICK_MINUTES, device) };
        let (measured, budget, rounds) = self.measured(config, device, budget)?;
        let found = || Ok(measured.shortened(&budget, rounds, config));
        let (rounds, epochs) = found_by_first(device.communicator(), found)?;
        let own = &config.training;
        if (rounds, epochs) == (own.rounds, own.epochs) {
            return Ok((config.clone(), Beginning::after(measured)));
        }
        let fitted = config.with_rounds(rounds, epochs);
        let foreseen = measured.foreseen(&budget, &fitted);
        if foreseen <= budget.seconds {
            self.viewer.event(&measured.event(&budget, config, &fitted));
            let whole = (own.rounds + 1) * own.epochs;
            self.viewer.note(&format!(
                "(a faster machine would take {whole} in all; --minutes or --epochs for longer)"
            ));
        } else {
            let least = match rounds {
                0 => "one epoch".into(),
                rounds => format!("an epoch in each of {} rounds", rounds + 1),
            };
            let message = format!(
                "as little as {least} will take about {} here; --limit learns from fewer pictures",
                output::duration(foreseen)
            );
            self.viewer.event(&Event::Warning { message });
        }
        Ok((fitted, Beginning::after(measured)))
    }

    /// So many minutes since the program's start, the report included.
    fn budget(&self, minutes: f64, device: &Device) -> TimeBudget {
        TimeBudget {
            afterwards: if device.is_host() { A_REPORT } else { A_REPORT_ON_GPU },
            ..TimeBudget::new(60.0 * minutes, self.began)
        }
    }

    /// What the parts of the run take; the budget less what comes after training; and the rounds
    /// there may be.
    fn measured(
        &self,
        config: &RunConfig,
        device: &Device,
        mut budget: TimeBudget,
    ) -> Result<(Measured, TimeBudget, RangeInclusive<usize>), Failure> {
        let runs = self.args.runs.ancestors().find(|folder| folder.is_dir());
        let scratch = runs.unwrap_or(Path::new("."));
        let model = self.model.as_ref();
        let measured = measure(device, config, self.data, model, scratch, &budget)?;
        budget.afterwards += refit::seconds(config, self.data, device, &measured.costs);
        let rounds = config.rounds_to_fit(self.args.start.rounds_are_asked_for());
        Ok((measured, budget, rounds))
    }

    fn on(mut self, device: &Device) -> Result<(PathBuf, Outcome), Failure> {
        let (mut dir, beginning) = self.folder(device)?;
        let first = device.communicator().is_first();
        let mut follower = Follower::new(dir.path(), self.args.tensorboard && first);
        let viewer = self.viewer;
        let mut observer = |event: &Event| {
            viewer.event(event);
            if let Some(message) = follower.event(event) {
                viewer.event(&Event::Warning { message });
            }
        };
        let outcome = train_with(device, &mut dir, self.data, beginning, &mut observer, self.stop)?;
        Ok((dir.path().into(), outcome))
    }
}

/// What a run begins from, and how carefully.
fn begins_from(model: &Pretrained, config: &RunConfig) -> String {
    let (network, size, t) = (&model.network, model.input.size, &config.training);
    let frozen = match t.freeze_epochs {
        0 => "it is never frozen".into(),
        1 => "it stays as it is for 1 epoch while the heads settle".into(),
        epochs => format!("it stays as it is for {epochs} epochs while the heads settle"),
    };
    let given = match config.data.embed_size {
        Some(embed) => format!(" (what it has learnt is then given {embed}×{embed})"),
        None => String::new(),
    };
    format!(
        "begins from {}: {} width {}, pictures of {size}×{size}{given}; {frozen}, and learns at {} \
         × the learning rate then",
        model.name, network.architecture, network.width, t.from_rate
    )
}

/// What is said when the first Ctrl-C asks training to save and end; the second ends the program.
pub const SAVING: &str = "saving after this step … (once more to end at once)";

fn open(
    plan: &Plan,
    moved: Option<&str>,
    ranks: &Ranks,
    viewer: &mut dyn Viewer,
) -> Result<Dataset, Failure> {
    let fellows = fellow_readers(&ranks.communicator);
    let data = {
        let viewer = std::sync::Mutex::new(&mut *viewer);
        let progress = |done, total| {
            if let Ok(mut viewer) = viewer.try_lock() {
                viewer.loading(done, total);
            }
        };
        match plan {
            Plan::New(config) => {
                let options = LoadOptions {
                    largest: Some(device::largest_pictures(&config.machine)),
                    fellows,
                    ..config.data.load_options(config.seed)
                };
                data::open_with_progress(&config.data.place(), &options, &progress)?
            }
            Plan::Resume(_, config) => {
                run_data::open_with_progress(config, moved, fellows, &progress)?
            }
        }
    };
    let told = folder_report::told(&data.report);
    for message in told.warnings {
        viewer.event(&Event::Warning { message });
    }
    told.notes.iter().for_each(|note| viewer.note(note));
    for (path, why) in &data.skipped {
        viewer.event(&Event::Warning { message: format!("{path}: skipped: {why}") });
    }
    // Those of the training part are told as training meets them.
    let test = data.test.iter().flat_map(|test| test.pictures.failures());
    for (path, why) in test {
        viewer
            .event(&Event::Warning { message: format!("{path}: {why}; it is seen as plain grey") });
    }
    if !data.skipped.is_empty() {
        let read = data.train.pictures.len() + data.test.as_ref().map_or(0, |t| t.pictures.len());
        viewer.event(&Event::Warning {
            message: format!(
                "{} of {} pictures could not be read and were skipped",
                data.skipped.len(),
                data.skipped.len() + read
            ),
        });
    }
    Ok(data)
}

impl Trained {
    /// Makes what a run that came to its end is used by and looked at: its model, curve and report.
    pub fn draw(&self, viewer: &mut dyn Viewer) -> Result<Option<Summary>, Failure> {
        if let Outcome::Stopped(_) = self.outcome {
            return Ok(None);
        }
        refit::after_training(&self.run, &self.data, &self.device, viewer);
        let summary = Summary::of(&read_metrics(&self.run.join("metrics.jsonl"))?.events);
        write_curve(&summary, &self.run.join("curve.svg"))?;
        crate::commands::report::after_training(&self.run, &self.data, &self.device);
        Ok(Some(summary))
    }
}

fn finished(
    args: &TrainArgs,
    trained: &Trained,
    ended: &RunEnded,
    summary: &Summary,
) -> Result<(), Failure> {
    let verdict = summary.verdict().map(|verdict| verdict.to_string());
    let mut said: Vec<String> = verdict.into_iter().chain(summary.choice()).collect();
    said.push(headline(ended, summary));
    said.push(whereabouts(args, &trained.run, ended.last.is_some()));
    said.extend(beside_base(&trained.run, ended.last.is_some()));
    let mut parts = vec![summary.table()];
    parts.extend(summary.before_and_after());
    parts.push(said.join("\n"));
    let text = parts.join("\n\n");
    if args.json {
        eprintln!("{text}");
        return Ok(());
    }
    output::line(&text)
}

fn headline(ended: &RunEnded, summary: &Summary) -> String {
    let took = output::duration(ended.seconds);
    let as_used = summary.as_used.as_ref().map(|(size, of)| {
        let top1 = of.top1 * 100.0;
        format!(", {top1:.1}% as its model is used, given pictures of {size}×{size}")
    });
    match (ended.last, ended.best) {
        (Some(last), Some(best)) => format!(
            "kNN after the last epoch {:.1}%{}; best of any epoch {:.1}% (chosen by {} accuracy). \
             {took}.",
            last.top1 * 100.0,
            as_used.unwrap_or_default(),
            best.top1 * 100.0,
            summary.judged_on()
        ),
        _ => format!(
            "No kNN is reported, because these pictures have no labels to judge by; loss {:.4} \
             after the last epoch. {took}.",
            ended.loss
        ),
    }
}

fn whereabouts(args: &TrainArgs, run: &Path, judged: bool) -> String {
    let next = match judged {
        true => "Judge it again with\n  anchorhood evaluate",
        false => "See what it found with\n  anchorhood serve",
    };
    format!(
        "The model is {}, the report {}.\n{next} {}",
        embedding_path(run).display(),
        run.join("report.html").display(),
        run_and_place(&args.runs, run)
    )
}

/// How to see whether photographs are told apart better than by the model that was there already.
fn beside_base(run: &Path, judged: bool) -> Option<String> {
    let config = RunDir::config_of(run).ok()?;
    if !judged || !Path::new(&config.data.set).is_dir() {
        return None;
    }
    let pictures = quoted(&config.data.set);
    let base = format!("anchorhood evaluate base --data {pictures}");
    match (config.training.from.as_deref(), config.data.embed_size) {
        (None, _) => {
            Some(format!("and the model inside this program, on the same pictures, with\n  {base}"))
        }
        (Some(Model::BASE), Some(size)) if refitted_path(run).is_file() => Some(format!(
            "and before and after with pictures of {size}×{size}, as both are used, with\n  \
             {base}\n  anchorhood evaluate {} --data {pictures}",
            quoted(&refitted_path(run).display().to_string())
        )),
        (Some(_), _) => None,
    }
}

/// A run by name where that is enough, by folder otherwise, and where the name would be taken for a
/// flag.
fn run_and_place(runs: &Path, run: &Path) -> String {
    let name = run.file_name().map(|n| n.to_string_lossy().into_owned());
    match name {
        Some(name)
            if runs == Path::new("runs") && run == runs.join(&name) && !name.starts_with('-') =>
        {
            quoted(&name)
        }
        _ => quoted(&run.display().to_string()),
    }
}

/// As a shell takes it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./".contains(c);
    if text.chars().all(plain) { text.into() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::train;
    use anchorhood::data::{Pictures, Split};
    use anchorhood::train::methods;

    #[test]
    fn epochs_are_decided_once() {
        let open = |line: &str| epochs_are_open(&train(line));
        assert!(open("train folder") && open("train cifar10 --preset quick"));
        for line in [
            "train",
            "train shapes",
            "train folder --epochs 10",
            "train folder --preset paper",
            "train folder --config mine.toml",
        ] {
            assert!(!open(line), "{line}");
        }
    }

    #[test]
    fn what_is_said_to_be_typed_can_be_typed() {
        let said = |name: &str| run_and_place(Path::new("runs"), &Path::new("runs").join(name));
        assert_eq!(said("mine"), "mine");
        assert_eq!(said("it's mine"), r"'it'\''s mine'");
        assert_eq!(said("-x"), "runs/-x");
    }

    #[test]
    fn few_small_pictures_are_looked_at_more_often() {
        let of = |method, n: usize, side: usize| {
            let config = Preset::Quick.config_for("photos", method);
            let pictures = Pictures::new(side, side, vec![0; n * side * side * 3]).unwrap();
            let data = Dataset {
                name: "a test".into(),
                train: Split { pictures, labels: None, names: vec![] },
                test: None,
                mean: [0.0; 3],
                std: [1.0; 3],
                skipped: vec![],
                report: Default::default(),
            };
            enough_epochs(&config, &data)
        };
        let by_and = |n, side| of(&methods::AND, n, side);
        assert_eq!(by_and(20, 32), 100);
        assert_eq!(by_and(3600, 32), 30);
        assert_eq!(by_and(900, 64), 30);
        assert_eq!(by_and(20_000, 32), 10);
        // Five rounds, and two views of each picture in a step.
        let by_views = |n, side| of(&methods::ANCHORHOOD, n, side);
        assert_eq!(by_views(20, 32), 100);
        assert_eq!(by_views(4400, 32), 7);
        assert_eq!(by_views(1100, 64), 7);
        assert_eq!(by_views(20_000, 32), 3);
        // Nine tiles of each picture in a step, a whole and its quarters, and a picture alone.
        assert_eq!(of(&methods::JIGSAW, 4400, 32), 8);
        assert_eq!(of(&methods::COUNTING, 4400, 32), 15);
        assert_eq!(of(&methods::NAT, 4400, 32), 75);
        assert_eq!(of(&methods::JIGSAW, 20_000, 32), 3);
    }
}
