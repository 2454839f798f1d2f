//! From what was typed to what is meant: preset, then file, then flags, checked once.

use std::path::{Path, PathBuf};

use anchorhood::search::{KnownModel, fetched_model, models_folder};
use anchorhood::storage::read_text_at_most;
use anchorhood::train::{
    DeviceChoice, MethodSpec, NetworkConfig, Preset, Pretrained, RunConfig, RunDir, TrainError,
    embedding_path, model_path,
};

use crate::args::{StartArgs, TrainArgs, pretrained};
use crate::terminal::failure::Failure;

/// What a `train` command comes to, and the model that it needs to begin.
pub type Planned = (Plan, Option<Pretrained>);

/// Which run.
#[derive(Debug)]
pub enum Plan {
    /// A new run.
    New(Box<RunConfig>),
    /// An existing one goes on.
    Resume(PathBuf, Box<RunConfig>),
}

/// Resolves a `train` command.
pub fn plan(args: &TrainArgs) -> Result<Planned, Failure> {
    let Some(resume) = &args.resume else {
        if let Some(data) = &args.moved {
            return Err(usage!(
                "--data says where the pictures of a run lie that goes on (--resume); a new run \
                 takes them without it: `anchorhood train {data}`"
            ));
        }
        let (mut config, model) = new_configuration(&args.start, &args.runs)?;
        config.data.settle();
        return Ok((Plan::New(Box::new(config)), model));
    };
    let path = resumed_run(args, resume)?;
    let theirs = RunDir::config_of(&path)?;
    theirs.check_method_is_known()?;
    let mut config = configuration(&args.start, Some(&theirs), None)?;
    config.data.seen_from = theirs.data.seen_from.clone();
    if pretrained::is_the_same(&config, &theirs, &args.runs) {
        config.training.from = theirs.training.from.clone();
    }
    let differences = theirs.differences(&config);
    if !differences.is_empty() {
        return Err(TrainError::OtherSettings { path, differences }.into());
    }
    let model = pretrained::of_resumed(&path, &config, &args.runs)?;
    Ok((Plan::Resume(path, Box::new(config)), model))
}

/// The run that is to go on.
fn resumed_run(args: &TrainArgs, resume: &str) -> Result<PathBuf, Failure> {
    let name = match (resume, &args.name) {
        ("", Some(name)) => Some(name.as_str()),
        ("", None) => None,
        (run, None) => Some(run),
        (run, Some(name)) if run == name => Some(run),
        (run, Some(name)) => {
            return Err(usage!(
                "--resume {run} goes on with that run, and --name {name} names another; give one \
                 of them"
            ));
        }
    };
    match name {
        Some(name) => find_run(&args.runs, name),
        None => latest_run(&args.runs),
    }
}

/// Where a `train` command is to run: all that has to be known before anything else is.
pub fn device_of_training(args: &TrainArgs) -> Result<DeviceChoice, Failure> {
    let resumed = match &args.resume {
        Some(resume) => Some(RunDir::config_of(&resumed_run(args, resume)?)?),
        None => None,
    };
    let (start, resumed) = (&args.start, resumed.as_ref());
    let config = begun_with(start, resumed, usual_method(start, resumed), None)?;
    Ok(config.machine.device)
}

/// The configuration asked for of a new run, and the model that it begins from.
fn new_configuration(
    args: &StartArgs,
    runs: &Path,
) -> Result<(RunConfig, Option<Pretrained>), Failure> {
    let model = pretrained::of(&begun_with(args, None, usual_method(args, None), None)?, runs)?;
    let config = configuration(args, None, model.as_ref())?;
    if let Some(model) = &model {
        model.check(&config)?;
    }
    Ok((config, model))
}

/// The configuration asked for. A resumed run begins from its own, unless a preset or a file is
/// named.
fn configuration(
    args: &StartArgs,
    resumed: Option<&RunConfig>,
    model: Option<&Pretrained>,
) -> Result<RunConfig, Failure> {
    // Which method it is to be is known from file and flags; what it begins with is then its own.
    let method = begun_with(args, resumed, usual_method(args, resumed), model)?.method.name;
    let mut config = begun_with(args, resumed, method, model)?;
    refuse_what_the_method_decides(args, method)?;
    // The method decided about the features when the run began; of a new run it will.
    if let Some(run) = resumed {
        if !method.has_features_to_choose() {
            config.network.features = run.network.features;
        }
        if !method.remembers() {
            config.evaluation.features = run.evaluation.features;
        }
    }
    config.check()?;
    Ok(config)
}

/// The configuration asked for, by a method that neither file nor flags may change.
pub fn configuration_by(
    args: &StartArgs,
    method: &'static MethodSpec,
) -> Result<RunConfig, Failure> {
    let mut config = begun_with(args, None, method, None)?;
    if let Some(from) = &config.training.from {
        return Err(usage!(
            "--from {from}: methods are compared from scratch; fine-tune by one of them with \
             `anchorhood train --from {from} --method {method}`"
        ));
    }
    let named = config.method.name;
    if named != method {
        return Err(usage!(
            "--config: the file says that the method is {named}, and it is to be {method}; leave \
             it out of the file"
        ));
    }
    refuse_what_the_method_decides(args, method)?;
    config.data.settle();
    config.check()?;
    Ok(config)
}

/// What preset, the model that a run begins from, file and flags come to for a method, unless they
/// name another.
fn begun_with(
    args: &StartArgs,
    resumed: Option<&RunConfig>,
    method: &'static MethodSpec,
    model: Option<&Pretrained>,
) -> Result<RunConfig, Failure> {
    let mut config = match (resumed, args.preset, &args.config) {
        (Some(run), None, None) => run.clone(),
        _ => preset(args).config_for(&set(args, resumed), method),
    };
    if let Some(model) = model {
        config = model.begin(config);
    }
    if let Some(run) = resumed {
        config = as_it_began(config, run);
    }
    if let Some(file) = &args.config {
        config = config.overlaid(&read(file)?, &file.display().to_string())?;
    }
    if let Some(run) = resumed {
        // A whole file may have been written before these were known.
        config.data.size = config.data.size.or(run.data.size);
        config.data.embed_size = config.data.embed_size.or(run.data.embed_size);
    }
    args.settings.apply(&mut config)?;
    if let Some(model) = model {
        config.training.from = Some(model.name.clone()); // typed in one folder, found from any
    }
    if let Some(set) = args.set() {
        config.data.set = set;
        config.data.seen_from = None; // typed here, whatever the file says
    }
    Ok(config)
}

/// A preset's configuration with what was decided when a run began: how long it is and how large
/// its pictures are by the pictures and the time there was; the network, and how it is fine-tuned,
/// by the model that it began from.
fn as_it_began(mut config: RunConfig, run: &RunConfig) -> RunConfig {
    let (t, began) = (&mut config.training, &run.training);
    (t.rounds, t.epochs, t.warm_up) = (began.rounds, began.epochs, began.warm_up);
    config.data.size = run.data.size;
    config.data.embed_size = run.data.embed_size;
    if began.from.is_some() {
        t.from = began.from.clone();
        t.from_fingerprint = began.from_fingerprint.clone();
        (t.from_rate, t.freeze_epochs) = (began.from_rate, began.freeze_epochs);
        config.data.mean = run.data.mean.clone();
        config.data.std = run.data.std.clone();
        config.network = NetworkConfig { features: config.network.features, ..run.network.clone() };
    }
    config
}

fn preset(args: &StartArgs) -> Preset {
    args.preset.unwrap_or(Preset::Quick)
}

/// The data set that is meant.
fn set(args: &StartArgs, resumed: Option<&RunConfig>) -> String {
    let own = || resumed.map(|run| run.data.set.clone());
    let set = args.set().or_else(own);
    set.unwrap_or_else(|| "shapes".into())
}

/// How it learns where neither file nor flag says it.
fn usual_method(args: &StartArgs, resumed: Option<&RunConfig>) -> &'static MethodSpec {
    preset(args).method(&set(args, resumed))
}

fn read(file: &Path) -> Result<String, Failure> {
    let text = read_text_at_most(file, RunConfig::MOST_BYTES);
    text.map_err(|e| usage!("{}: {e}", file.display()))
}

/// A classifier has a value for each class, and under heads features are the network's own; what
/// has no memory is judged by features that are recomputed.
fn refuse_what_the_method_decides(
    args: &StartArgs,
    method: &'static MethodSpec,
) -> Result<(), Failure> {
    let own = match method.has_heads() {
        true => "it has as many features as the network has below its last layer",
        false => "it has as many values as there are classes",
    };
    let no_memory = "it remembers no features, and they are recomputed to be judged";
    let decided = [
        ("network.features", own, method.has_features_to_choose()),
        ("evaluation.features", no_memory, method.remembers()),
    ];
    let asked = |(name, why, free)| match free {
        true => None,
        false => args.settings.flag(name).map(|flag| (flag, why)),
    };
    let Some((flag, why)) = decided.into_iter().find_map(asked) else {
        return Ok(());
    };
    Err(usage!(
        "--{flag} says nothing to a run of {method}: {why}; leave --{flag} out, or learn by \
         --method and"
    ))
}

/// The file that is meant by a model: itself, or the checkpoint that is a run's model.
pub fn model_file(runs: &Path, model: &str) -> Result<PathBuf, Failure> {
    file_of(runs, model, model_path)
}

/// The file that is meant by a model to embed pictures with: of a run the one for another size than
/// it learnt with, where it has one.
pub fn embedding_file(runs: &Path, model: &str) -> Result<PathBuf, Failure> {
    file_of(runs, model, embedding_path)
}

fn file_of(runs: &Path, model: &str, of_run: fn(&Path) -> PathBuf) -> Result<PathBuf, Failure> {
    let file = PathBuf::from(model);
    if file.is_file() {
        return Ok(file);
    }
    match find_run(runs, model) {
        Ok(run) => saved(&run, of_run(&run)),
        Err(no_run) => fetched(model)?.ok_or(no_run),
    }
}

/// The file of a model that was fetched by this name (`anchorhood model fetch`), if it was.
fn fetched(name: &str) -> Result<Option<PathBuf>, Failure> {
    let file = models_folder().and_then(|folder| fetched_model(&folder, name));
    match (&file, KnownModel::named(name)) {
        (None, Some(_)) => Err(usage!(
            "{name} is not on this machine yet; get it with `anchorhood model fetch {name}`"
        )),
        (Some(_), _) | (None, None) => Ok(file),
    }
}

/// The checkpoint that is a run's model.
pub fn model_of(run: &Path) -> Result<PathBuf, Failure> {
    saved(run, model_path(run))
}

fn saved(run: &Path, model: PathBuf) -> Result<PathBuf, Failure> {
    match model.is_file() {
        true => Ok(model),
        false => Err(usage!(
            "{}: this run has no checkpoint yet; its first is saved after its first epoch",
            run.display()
        )),
    }
}

/// A run by its name under `runs`, or by its folder.
pub fn find_run(runs: &Path, name: &str) -> Result<PathBuf, Failure> {
    let named = runs.join(name);
    let is_run = |p: &Path| p.join("config.toml").is_file();
    if is_run(&named) {
        return Ok(named);
    }
    let folder = PathBuf::from(name);
    if is_run(&folder) {
        return Ok(folder);
    }
    let known = names_in(runs);
    let known = match known.is_empty() {
        true => format!("there are no runs in {}", runs.display()),
        false => format!("{} has {}", runs.display(), known.join(", ")),
    };
    Err(usage!("there is no run called `{name}`; {known}"))
}

fn names_in(runs: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(runs).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|e| e.path().join("config.toml").is_file())
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn latest_run(runs: &Path) -> Result<PathBuf, Failure> {
    let changed = |name: &String| {
        let metrics = runs.join(name).join("metrics.jsonl");
        metrics.metadata().and_then(|m| m.modified()).ok()
    };
    let latest = names_in(runs).into_iter().max_by_key(changed);
    latest.map(|name| runs.join(name)).ok_or_else(|| {
        usage!("there is no run to resume in {}; start one with `anchorhood train`", runs.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::train;
    use anchorhood::train::methods;

    fn resolved(line: &str) -> Result<RunConfig, Failure> {
        configuration(&train(line).start, None, None)
    }

    fn resumed(line: &str, run: &RunConfig) -> RunConfig {
        configuration(&train(line).start, Some(run), None).unwrap()
    }

    #[test]
    fn nothing_typed_is_quick_on_shapes() {
        assert_eq!(resolved("train").unwrap(), Preset::Quick.config("shapes"));
    }

    #[test]
    fn flags_override_the_file_and_the_file_the_preset() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        std::fs::write(&file, "[training]\nepochs = 3\nbatch = 32\n").unwrap();
        let line = format!("train cifar10 --preset paper --config {} --epochs 7", file.display());
        let config = resolved(&line).unwrap();
        let mut expected = Preset::Paper.config("cifar10");
        expected.training.epochs = 7;
        expected.training.batch = 32;
        assert_eq!(config, expected);
    }

    /// Pictures, the clock and a model decide about settings that nobody typed.
    #[test]
    fn a_run_is_resumed_by_the_words_that_began_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("part.toml");
        std::fs::write(&file, "[training]\nbatch = 64\n").unwrap();
        let part = format!("train photos --config {} --resume", file.display());
        let mut run = Preset::Quick.config("photos").with_rounds(3, 7);
        run.training.warm_up = 2.5;
        (run.data.size, run.data.embed_size) = (Some(32), Some(40));
        for line in [
            "train --resume",
            "train --resume --preset quick",
            "train photos --resume --preset quick",
            "train photos --resume --preset quick --epochs 7",
            &part,
        ] {
            assert_eq!(resumed(line, &run), run, "{line}");
        }
        run.training.from = Some("base".into());
        run.training.from_fingerprint = Some("0".repeat(32));
        (run.training.from_rate, run.training.freeze_epochs) = (0.03, 1);
        (run.data.mean, run.data.std) = (vec![0.5; 3], vec![0.25; 3]);
        run.network.width = 24;
        for line in ["train photos --preset quick --from base --resume", &part] {
            assert_eq!(resumed(line, &run), run, "{line}");
        }
        // What is typed counts.
        let typed = "train photos --preset quick --resume --rounds 2 --epochs 3 --embed-size 48";
        let other: Vec<String> =
            run.differences(&resumed(typed, &run)).into_iter().map(|d| d.setting).collect();
        assert_eq!(other, ["data.embed_size", "training.epochs", "training.rounds"]);
    }

    #[test]
    fn features_are_a_setting_of_methods_that_leave_them_open() {
        for method in ["and", "nat", "counting", "deepcluster"] {
            let line = format!("train photos --method {method} --features 24");
            let config = resolved(&line).unwrap();
            assert_eq!(config.network.features, 24, "{method}");
            let again = format!("train photos --resume --method {method} --features 32");
            assert_eq!(resumed(&again, &config).network.features, 32, "{method}");
        }
        let (features, memory) = ("--features 24", "--knn-features memory");
        for (flag, methods) in [
            (features, ["byol", "jigsaw", "supervised", "simclr"]),
            (memory, ["byol", "nat", "supervised", "simclr"]),
        ] {
            for method in methods {
                let failure = resolved(&format!("train --method {method} {flag}")).unwrap_err();
                let named = flag.split(' ').next().unwrap();
                assert!(failure.code == 2 && failure.message.unwrap().starts_with(named));
            }
        }
    }

    #[test]
    fn a_supervised_run_is_resumed_as_the_data_made_it() {
        let asked = resolved("train --method supervised --epochs 3").unwrap();
        assert_eq!(asked.method.name, &methods::SUPERVISED);
        let run = asked.supervised(10);
        for line in ["train --resume", "train --resume --preset quick --method supervised"] {
            assert_eq!(resumed(line, &run), run, "{line}");
        }
    }

    #[test]
    fn a_method_begins_with_its_own_recipe_and_flags_change_it() {
        let byol = resolved("train --method byol --preset paper --rounds 2").unwrap();
        let mut expected = Preset::Paper.config_for("shapes", &methods::BYOL);
        expected.training.rounds = 2;
        assert_eq!(byol, expected);
        let instance = resolved("train --method instance").unwrap();
        assert_eq!(instance.training.rounds, 0);
    }

    /// A whole file means what it says, though some of it is left unwritten; a part of one names a
    /// method with its recipe.
    #[test]
    fn a_file_of_a_method_is_taken_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine.toml");
        let line = format!("train --config {}", file.display());
        let mut run = Preset::Paper.config_for("shapes", &methods::NNCLR);
        run.set("training.schedule", "steps").unwrap();
        run.set("method.temperature", "0.5").unwrap();
        std::fs::write(&file, run.to_toml()).unwrap();
        assert_eq!(resolved(&line).unwrap(), run);
        std::fs::write(&file, "[method]\nname = \"simsiam\"\nviews = 3\n").unwrap();
        let part = resolved(&line).unwrap();
        let mut expected = Preset::Quick.config_for("shapes", &methods::SIMSIAM);
        expected.method.views = 3;
        assert_eq!(part, expected);
    }
}
