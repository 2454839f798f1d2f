//! What a run is to be like: a preset, the data set's settings, the method's recipe, the model that
//! it begins from, a file and single settings, in this order, checked once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anchorhood_storage::read_text_at_most;
use anchorhood_train::{
    ConfigError, DeviceChoice, MethodSpec, NetworkConfig, Preset, Pretrained, RunConfig, SETTINGS,
    Setting,
};

use crate::error::usage;
use crate::explain::Trace;
use crate::{Error, OnEvent, pretrained};

/// What is asked for of a run. What nobody asks for is the preset's, the method's, the model's that
/// the run begins from, or follows from the images and the time there is.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The data set: `shapes`, the name of a published set, a folder …
    pub data: Option<String>,
    /// What to begin from; [`Preset::Quick`] where nobody says.
    pub preset: Option<Preset>,
    /// A configuration file, whole or in part, such as a run's config.toml.
    pub config: Option<PathBuf>,
    /// Single settings.
    pub settings: Settings,
    /// What changes the configuration last, if something does.
    pub configure: Configure,
}

/// Settings that were given, by their names in config.toml; the others change nothing.
#[derive(Clone, Debug, Default)]
pub struct Settings(Vec<(&'static Setting, String)>);

impl Settings {
    /// Gives a setting a value, as it could be typed.
    pub fn add(&mut self, setting: &'static Setting, text: impl Into<String>) {
        self.0.push((setting, text.into()));
    }

    /// Whether a setting was given.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(setting, _)| setting.name == name)
    }

    /// The flag of a setting that was given, if it was; by the setting's name in config.toml.
    pub fn flag(&self, name: &str) -> Option<&'static str> {
        let given = self.0.iter().find(|(setting, _)| setting.name == name);
        given.and_then(|(setting, _)| setting.flag).map(|f| f.long)
    }

    /// Changes what was given.
    pub fn apply(&self, config: &mut RunConfig) -> Result<(), ConfigError> {
        let mut given = self.0.iter();
        given.try_for_each(|(setting, text)| setting.set(config, text))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(setting, _)| setting.name)
    }
}

/// A function that changes a configuration.
#[derive(Clone, Default)]
pub struct Configure(Option<Arc<Change>>);

type Change = dyn Fn(&mut RunConfig) + Send + Sync;

impl Configure {
    /// By this function.
    pub fn by(change: impl Fn(&mut RunConfig) + Send + Sync + 'static) -> Configure {
        Configure(Some(Arc::new(change)))
    }

    pub(crate) fn apply(&self, config: &mut RunConfig) {
        if let Some(change) = &self.0 {
            change(config);
        }
    }

    /// Whether it has no say about how long a run is.
    pub(crate) fn leaves_epochs(&self, config: &RunConfig) -> bool {
        let mut other = config.with_epochs(config.training.epochs + 1);
        let asked = other.training.epochs;
        self.apply(&mut other);
        other.training.epochs == asked
    }
}

impl std::fmt::Debug for Configure {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Configure(a function)" } else { "Configure(nothing)" })
    }
}

impl RunOptions {
    /// Whether the number of rounds is somebody's wish, or may be.
    pub fn rounds_are_asked_for(&self) -> bool {
        self.settings.has("training.rounds") || self.config.is_some()
    }

    /// Whether the quick preset decides about the epochs; `shapes` have their own.
    pub(crate) fn epochs_are_open(&self) -> bool {
        let quick = self.preset.is_none_or(|p| p == Preset::Quick);
        let shapes = self.data.as_deref().is_none_or(|d| d == "shapes");
        quick && !shapes && self.config.is_none() && !self.settings.has("training.epochs")
    }

    /// Where a run is to be: all that has to be known before anything else is.
    pub fn device(&self, resumed: Option<&RunConfig>) -> Result<DeviceChoice, Error> {
        let method = self.usual_method(resumed);
        Ok(self.begun_with(resumed, method, None, &mut Trace::default())?.machine.device)
    }

    /// The configuration of a new run, and the model that it begins from.
    pub(crate) fn new_run(
        &self,
        runs: &Path,
        on_event: OnEvent,
        trace: &mut Trace,
    ) -> Result<(RunConfig, Option<Pretrained>), Error> {
        let begun = self.begun_with(None, self.usual_method(None), None, &mut Trace::default())?;
        let model = pretrained::of(&begun, runs, on_event)?;
        let config = self.configuration(None, model.as_ref(), trace)?;
        if let Some(model) = &model {
            model.check(&config)?;
        }
        Ok((config, model))
    }

    /// The configuration asked for. A resumed run begins from its own, unless a preset or a file is
    /// named.
    pub(crate) fn configuration(
        &self,
        resumed: Option<&RunConfig>,
        model: Option<&Pretrained>,
        trace: &mut Trace,
    ) -> Result<RunConfig, Error> {
        // Which method it is to be is known from file and settings; what it begins with is then its
        // own.
        let usual = self.usual_method(resumed);
        let method = self.begun_with(resumed, usual, model, &mut Trace::default())?.method.name;
        let mut config = self.begun_with(resumed, method, model, trace)?;
        self.refuse_what_the_method_decides(method)?;
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

    /// The configuration asked for, by a method that neither file nor settings may change.
    pub fn configuration_by(&self, method: &'static MethodSpec) -> Result<RunConfig, Error> {
        let mut config = self.begun_with(None, method, None, &mut Trace::default())?;
        if let Some(from) = &config.training.from {
            return Err(usage!(
                "--from {from}: methods are compared from scratch; fine-tune by one of them with \
                 `anchorhood train --from {from} --method {method}`"
            ));
        }
        let named = config.method.name;
        if named != method {
            return Err(usage!(
                "--config: the file says that the method is {named}, and it is to be {method}; \
                 leave it out of the file"
            ));
        }
        self.refuse_what_the_method_decides(method)?;
        config.data.settle();
        config.check()?;
        Ok(config)
    }

    /// What preset, the model that a run begins from, file and settings come to for a method,
    /// unless they name another.
    fn begun_with(
        &self,
        resumed: Option<&RunConfig>,
        method: &'static MethodSpec,
        model: Option<&Pretrained>,
        trace: &mut Trace,
    ) -> Result<RunConfig, Error> {
        let (preset, set) = (self.preset(), self.set(resumed));
        let mut config = match (resumed, self.preset, &self.config) {
            (Some(run), None, None) => {
                trace.add("the run", run, []);
                run.clone()
            }
            _ => {
                trace.begin(preset, &set, method);
                preset.config_for(&set, method)
            }
        };
        if let Some(model) = model {
            config = model.begin(config);
            trace.add(&format!("model {}", model.name), &config, []);
        }
        if let Some(run) = resumed {
            config = as_it_began(config, run);
        }
        if let Some(file) = &self.config {
            let (text, place) = (read(file)?, file.display().to_string());
            config = config.overlaid(&text, &place)?;
            trace.add(&place, &config, names_in(&text));
        }
        if let Some(run) = resumed {
            // A whole file may have been written before these were known.
            config.data.size = config.data.size.or(run.data.size);
            config.data.embed_size = config.data.embed_size.or(run.data.embed_size);
        }
        self.settings.apply(&mut config)?;
        if let Some(model) = model {
            config.training.from = Some(model.name.clone()); // typed in one folder, found from any
        }
        if let Some(set) = &self.data {
            config.data.set = set.clone();
            config.data.seen_from = None; // said here, whatever the file says
        }
        trace.add("asked for", &config, self.settings.names());
        self.configure.apply(&mut config);
        trace.add("configure", &config, []);
        Ok(config)
    }

    fn preset(&self) -> Preset {
        self.preset.unwrap_or(Preset::Quick)
    }

    /// The data set that is meant.
    fn set(&self, resumed: Option<&RunConfig>) -> String {
        let own = || resumed.map(|run| run.data.set.clone());
        let set = self.data.clone().or_else(own);
        set.unwrap_or_else(|| "shapes".into())
    }

    /// How it learns where neither file nor setting says it.
    fn usual_method(&self, resumed: Option<&RunConfig>) -> &'static MethodSpec {
        self.preset().method(&self.set(resumed))
    }

    /// A classifier has a value for each class, and under heads features are the network's own;
    /// what has no memory is judged by features that are recomputed.
    fn refuse_what_the_method_decides(&self, method: &'static MethodSpec) -> Result<(), Error> {
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
            false => self.settings.flag(name).map(|flag| (flag, why)),
        };
        let Some((flag, why)) = decided.into_iter().find_map(asked) else {
            return Ok(());
        };
        Err(usage!(
            "--{flag} says nothing to a run of {method}: {why}; leave --{flag} out, or learn by \
             --method and"
        ))
    }
}

/// The settings that a configuration file, or a part of one, has.
fn names_in(text: &str) -> Vec<&'static str> {
    let table: toml::Table = text.parse().unwrap_or_default();
    let has = |name: &str| match name.split_once('.') {
        Some((section, field)) => table.get(section).is_some_and(|t| t.get(field).is_some()),
        None => table.contains_key(name),
    };
    SETTINGS.iter().map(|setting| setting.name).filter(|name| has(name)).collect()
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

fn read(file: &Path) -> Result<String, Error> {
    let text = read_text_at_most(file, RunConfig::MOST_BYTES);
    text.map_err(|e| usage!("{}: {e}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use anchorhood_train::methods;

    /// What these words ask for: a data set, `--preset`, `--config`, and settings by their flags.
    fn options(line: &str) -> RunOptions {
        let mut options = RunOptions::default();
        let mut words = line.split_whitespace().peekable();
        while let Some(word) = words.next() {
            let Some(flag) = word.strip_prefix("--") else {
                options.data = Some(word.into());
                continue;
            };
            let value = words.next().unwrap();
            match flag {
                "preset" => {
                    options.preset = Preset::ALL.into_iter().find(|p| p.name() == value);
                    assert!(options.preset.is_some());
                }
                "config" => options.config = Some(value.into()),
                flag => {
                    let is = |s: &&Setting| s.flag.is_some_and(|f| f.long == flag);
                    options.settings.add(SETTINGS.iter().find(is).unwrap(), value);
                }
            }
        }
        options
    }

    fn resolved(line: &str) -> Result<RunConfig, Error> {
        options(line).configuration(None, None, &mut Trace::default())
    }

    fn resumed(line: &str, run: &RunConfig) -> RunConfig {
        options(line).configuration(Some(run), None, &mut Trace::default()).unwrap()
    }

    #[test]
    fn epochs_are_decided_once() {
        let open = |line: &str| options(line).epochs_are_open();
        assert!(open("folder") && open("cifar10 --preset quick"));
        for line in
            ["", "shapes", "folder --epochs 10", "folder --preset paper", "folder --config a.toml"]
        {
            assert!(!open(line), "{line}");
        }
    }

    #[test]
    fn what_a_function_sets_is_final() {
        let mut options = options("photos --epochs 3");
        options.configure = Configure::by(|config| config.training.epochs = 7);
        let config = options.configuration(None, None, &mut Trace::default()).unwrap();
        assert_eq!(config.training.epochs, 7);
        assert!(!options.configure.leaves_epochs(&config));
        assert!(Configure::by(|config| config.training.rounds = 1).leaves_epochs(&config));
    }

    #[test]
    fn nothing_typed_is_quick_on_shapes() {
        assert_eq!(resolved("").unwrap(), Preset::Quick.config("shapes"));
    }

    #[test]
    fn flags_override_the_file_and_the_file_the_preset() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        std::fs::write(&file, "[training]\nepochs = 3\nbatch = 32\n").unwrap();
        let line = format!("cifar10 --preset paper --config {} --epochs 7", file.display());
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
        let part = format!("photos --config {}", file.display());
        let mut run = Preset::Quick.config("photos").with_rounds(3, 7);
        run.training.warm_up = 2.5;
        (run.data.size, run.data.embed_size) = (Some(32), Some(40));
        for line in [
            "",
            "--preset quick",
            "photos --preset quick",
            "photos --preset quick --epochs 7",
            &part,
        ] {
            assert_eq!(resumed(line, &run), run, "{line}");
        }
        run.training.from = Some("base".into());
        run.training.from_fingerprint = Some("0".repeat(32));
        (run.training.from_rate, run.training.freeze_epochs) = (0.03, 1);
        (run.data.mean, run.data.std) = (vec![0.5; 3], vec![0.25; 3]);
        run.network.width = 24;
        for line in ["photos --preset quick --from base", &part] {
            assert_eq!(resumed(line, &run), run, "{line}");
        }
        // What is typed counts.
        let typed = "photos --preset quick --rounds 2 --epochs 3 --embed-size 48";
        let other: Vec<String> =
            run.differences(&resumed(typed, &run)).into_iter().map(|d| d.setting).collect();
        assert_eq!(other, ["data.embed_size", "training.epochs", "training.rounds"]);
    }

    #[test]
    fn features_are_a_setting_of_methods_that_leave_them_open() {
        for method in ["and", "nat", "counting", "deepcluster"] {
            let line = format!("photos --method {method} --features 24");
            let config = resolved(&line).unwrap();
            assert_eq!(config.network.features, 24, "{method}");
            let again = format!("photos --method {method} --features 32");
            assert_eq!(resumed(&again, &config).network.features, 32, "{method}");
        }
        let (features, memory) = ("--features 24", "--knn-features memory");
        for (flag, methods) in [
            (features, ["byol", "jigsaw", "supervised", "simclr"]),
            (memory, ["byol", "nat", "supervised", "simclr"]),
        ] {
            for method in methods {
                let error = resolved(&format!("--method {method} {flag}")).unwrap_err();
                let named = flag.split(' ').next().unwrap();
                assert_eq!(error.kind(), ErrorKind::Usage);
                assert!(error.to_string().starts_with(named), "{error}");
            }
        }
    }

    #[test]
    fn a_supervised_run_is_resumed_as_the_data_made_it() {
        let asked = resolved("--method supervised --epochs 3").unwrap();
        assert_eq!(asked.method.name, &methods::SUPERVISED);
        let run = asked.supervised(10);
        for line in ["", "--preset quick --method supervised"] {
            assert_eq!(resumed(line, &run), run, "{line}");
        }
    }

    #[test]
    fn a_method_begins_with_its_own_recipe_and_flags_change_it() {
        let byol = resolved("--method byol --preset paper --rounds 2").unwrap();
        let mut expected = Preset::Paper.config_for("shapes", &methods::BYOL);
        expected.training.rounds = 2;
        assert_eq!(byol, expected);
        let instance = resolved("--method instance").unwrap();
        assert_eq!(instance.training.rounds, 0);
    }

    /// A whole file means what it says, though some of it is left unwritten; a part of one names a
    /// method with its recipe.
    #[test]
    fn a_file_of_a_method_is_taken_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine.toml");
        let line = format!("--config {}", file.display());
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
