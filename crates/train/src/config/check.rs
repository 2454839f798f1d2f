//! What a configuration must satisfy, and how two of them differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::value::Number;
use super::{ConfigError, OptimiserChoice, Range, RunConfig, SETTINGS, Value};
use crate::TrainError;

impl RunConfig {
    /// What epochs may come to over all rounds: they number the random draws, and there is room for
    /// so many.
    pub const MOST_EPOCHS: usize = 1 << 20;

    /// Says which setting cannot be, if one cannot, before anything is loaded.
    pub fn check(&self) -> Result<(), ConfigError> {
        for setting in SETTINGS {
            setting.check(self)?;
        }
        self.check_together()
    }

    /// Refuses a run of a method that a program brought: nothing here could go on with it.
    pub fn check_method_is_known(&self) -> Result<(), TrainError> {
        match &self.method.own {
            Some(own) => Err(TrainError::OwnMethod { own: own.clone(), brought: None }),
            None => Ok(()),
        }
    }

    /// Says why a network that learns from pictures of `size` pixels a side cannot be given those
    /// that the finished model is to be given.
    pub(crate) fn check_embed_size(&self, size: usize) -> Result<(), ConfigError> {
        let network = &self.network;
        match self.data.embed_size {
            Some(other) if network.form(size) != network.form(other) => Err(setting(
                "data.embed_size",
                format!(
                    "a network that learns from pictures of {size}×{size} has other first layers than one for {other}×{other}; give a size closer to {size}, or none"
                ),
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// What is asked of several settings at once.
    fn check_together(&self) -> Result<(), ConfigError> {
        let t = &self.training;
        let epochs = (t.rounds + 1).saturating_mul(t.epochs);
        if let Some(reason) = Range::AtMost(Self::MOST_EPOCHS).refuses(Number::Whole(epochs)) {
            return Err(setting("training.epochs", reason));
        }
        let momentum = match t.optimiser {
            OptimiserChoice::Sgd | OptimiserChoice::Lars => Some(t.momentum),
            OptimiserChoice::AdamW => None,
        };
        if t.nesterov && momentum == Some(0.0) {
            return Err(setting(
                "training.nesterov",
                "needs a momentum above 0; set nesterov to false".into(),
            ));
        }
        if t.freeze_epochs > 0 && t.freeze_epochs >= epochs {
            return Err(setting(
                "training.freeze_epochs",
                format!(
                    "{epochs} epochs in all leave none in which the model learns; give fewer, or more epochs"
                ),
            ));
        }
        let of_a_model = [
            ("training.freeze_epochs", t.freeze_epochs > 0, "0"),
            ("training.from_rate", t.from_rate != 1.0, "1"),
        ];
        if let (None, Some((name, _, off))) = (&t.from, of_a_model.iter().find(|s| s.1)) {
            let reason = format!(
                "is about the model that a run begins from; name that model, or set it to {off}"
            );
            return Err(setting(name, reason));
        }
        for (name, values) in [("data.mean", &self.data.mean), ("data.std", &self.data.std)] {
            let both = self.data.mean.len() == self.data.std.len();
            if !both || !matches!(values.len(), 0 | 3) {
                return Err(setting(
                    name,
                    "mean and std are three numbers each, or both are left out".into(),
                ));
            }
        }
        if self.method.name.compares_views() && self.method.views < 2 {
            return Err(setting(
                "method.views",
                format!("{} compares views: at least 2", self.method.name),
            ));
        }
        let wanted = self.method.name.colours();
        if let Some(wanted) = wanted.filter(|wanted| *wanted != self.network.colours) {
            return Err(setting(
                "network.colours",
                format!("{} is of a network that sees {}", self.method.name, wanted.text()),
            ));
        }
        let a = &self.augmentation;
        for (name, (low, high)) in [
            ("augmentation.crop_scale", a.crop_scale),
            ("augmentation.crop_ratio", a.crop_ratio),
            ("augmentation.blur_sigma", a.blur_sigma),
        ] {
            if low > high {
                let reason = format!("must be two numbers, the lesser first: {high},{low}");
                return Err(setting(name, reason));
            }
        }
        Ok(())
    }

    /// Where another configuration differs in what decides a result; neither the machine nor the
    /// folder it was started in does.
    pub fn differences(&self, other: &RunConfig) -> Vec<Difference> {
        let (ours, theirs) = (self.decisive(), other.decisive());
        let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        let differ = names.into_iter().filter(|name| ours.get(*name) != theirs.get(*name));
        let of = |all: &BTreeMap<String, String>, name: &String| match all.get(name) {
            Some(value) => value.clone(),
            None => "unset".into(),
        };
        let difference = |name: &String| Difference {
            setting: name.clone(),
            ours: of(&ours, name),
            theirs: of(&theirs, name),
        };
        differ.map(difference).collect()
    }

    /// The names and values of all settings that decide a result.
    pub(crate) fn decisive(&self) -> BTreeMap<String, String> {
        let mut c = self.clone();
        c.data.seen_from = None;
        let mut table = toml::Table::try_from(c).expect("a configuration is a table");
        table.remove("machine");
        let mut found = vec![];
        for (section, value) in table {
            match value {
                toml::Value::Table(settings) => found.extend(
                    (settings.into_iter())
                        .map(|(name, value)| (format!("{section}.{name}"), value)),
                ),
                value => found.push((section, value)),
            }
        }
        let text = |(name, value): (String, toml::Value)| (name, value.to_string());
        found.into_iter().map(text).collect()
    }
}

/// One setting on which two configurations disagree.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Its name: `training.epochs`.
    pub setting: String,
    /// What the first says.
    pub ours: String,
    /// What the second says.
    pub theirs: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} ({} ≠ {})", self.setting, self.ours, self.theirs)
    }
}

fn setting(setting: &'static str, reason: String) -> ConfigError {
    ConfigError::Setting { setting, reason }
}

#[cfg(test)]
mod tests {
    use super::super::Preset;

    /// What config.toml could not hold is refused before it is written there.
    #[test]
    fn whole_numbers_have_63_bits() {
        let mut config = Preset::Quick.config("shapes");
        config.seed = i64::MAX as u64;
        config.check().unwrap();
        assert!(config.to_toml().contains("9223372036854775807"));
        for (setting, text) in
            [("seed", "9223372036854775808"), ("discovery.neighbours", "18446744073709551615")]
        {
            let mut config = Preset::Quick.config("shapes");
            config.set(setting, text).unwrap();
            let refused = config.check().unwrap_err().to_string();
            assert!(refused.contains(setting) && refused.contains("at most"), "{refused}");
        }
    }

    /// What is asked of several settings at once, and where ranges end above.
    #[test]
    fn nonsense_is_named() {
        let nonsense = [
            ("training.nesterov", "[training]\nmomentum = 0.0"),
            ("training.epochs", "[training]\nepochs = 10000000"),
            ("method.views", "[method]\nname = \"byol\"\nviews = 1"),
            ("training.freeze_epochs", "[training]\nfreeze_epochs = 1"),
            ("training.from_rate", "[training]\nfrom_rate = 0.5"),
            ("training.freeze_epochs", "[training]\nfrom = \"base\"\nfreeze_epochs = 1000"),
            ("data.mean", "[data]\nmean = [0.5]\nstd = [0.5]"),
            ("data.mean", "[data]\nmean = [0.5, 0.5, 0.5]"),
            ("data.std", "[data]\nmean = [0.5, 0.5, 0.5]\nstd = [0.5, 0.0, 0.5]"),
            ("training.learning_rate", "[training]\nlearning_rate = nan"),
            ("training.milestones", "[training]\nmilestones = [1.5]"),
            ("training.momentum", "[training]\nmomentum = 1.0"),
            ("discovery.memory_rate", "[discovery]\nmemory_rate = 2.0"),
            ("data.held_out", "[data]\nheld_out = 1.0"),
        ];
        for (name, text) in nonsense {
            let config = Preset::Quick.config("shapes").overlaid(text, "a test");
            let message = config.unwrap().check().unwrap_err().to_string();
            assert!(message.starts_with(name), "{text}: {message}");
        }
    }

    /// What the augmentation computes with is within these, for the loader does not check it.
    #[test]
    fn augmentation_has_ranges() {
        let with = |name: &str, value: &str| {
            let mut config = Preset::Quick.config("shapes");
            config.set(&format!("augmentation.{name}"), value).unwrap();
            config.check().map_err(|e| e.to_string())
        };
        let factors = ["brightness", "contrast", "saturation"];
        let shares = ["jitter", "grey", "blur", "solarise", "flip"];
        let factors = factors.map(|name| (name, ["0", "10"], ["-0.1", "10.1"]));
        let shares = shares.map(|name| (name, ["0", "1"], ["-0.1", "1.1"]));
        let others = [
            ("hue", ["0", "0.5"], ["-0.1", "0.6"]),
            ("crop_scale", ["0.01,1", "1,1"], ["0,1", "0.2,1.1"]),
            ("crop_ratio", ["0.125,8", "1,1"], ["0.12,1", "1,8.1"]),
            ("blur_sigma", ["0.1,10", "2,2"], ["0,2", "0.1,10.1"]),
        ];
        for (name, can, cannot) in [&factors[..], &shares, &others].concat() {
            can.iter().for_each(|value| with(name, value).unwrap());
            for value in cannot {
                let said = with(name, value).unwrap_err();
                let named = said.starts_with(&format!("augmentation.{name}"));
                assert!(named, "{name} = {value}: {said}");
            }
            let nan = if can[0].contains(',') { "nan,nan" } else { "nan" };
            assert!(with(name, nan).is_err(), "{name}");
        }
        for (name, wrong_order) in
            [("crop_scale", "0.9,0.2"), ("crop_ratio", "2,0.5"), ("blur_sigma", "2,0.1")]
        {
            let said = with(name, wrong_order).unwrap_err();
            assert!(said.contains("the lesser first"), "{said}");
        }
    }

    #[test]
    fn differences_name_the_setting_and_spare_the_machine() {
        let ours = Preset::Quick.config("shapes");
        let mut theirs = ours.clone();
        theirs.machine.threads = 7;
        theirs.data.seen_from = Some("elsewhere".into());
        assert_eq!(ours.differences(&theirs), []);
        theirs.training.epochs += 1;
        theirs.data.limit = Some(5);
        let said: Vec<String> =
            ours.differences(&theirs).iter().map(|d| d.setting.clone()).collect();
        assert_eq!(said, ["data.limit", "training.epochs"]);
    }
}
