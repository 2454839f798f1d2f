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

    /// Refuses a run of a method that this program does not have: nothing here could go on with it.
    pub fn check_method_is_known(&self) -> Result<(), TrainError> {
        match self.method.name.is_known() {
            true => Ok(()),
            false => Err(TrainError::UnknownMethod { method: self.method.name }),
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
                    "a network that learns from pictures of {size}×{size} has other first layers \
                     than one for {other}×{other}; give a size closer to {size}, or none"
                ),
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// What is asked of several settings at once.
    fn check_together(&self) -> Result<(), ConfigError> {
        let (t, a, method) = (&self.training, &self.augmentation, self.method.name);
        let epochs = (t.rounds + 1).saturating_mul(t.epochs);
        let stands_still = t.optimiser != OptimiserChoice::AdamW && t.momentum == 0.0;
        let never_learns = t.freeze_epochs > 0 && t.freeze_epochs >= epochs;
        let of_no_model = |is_set: bool, off: &str| {
            (t.from.is_none() && is_set).then(|| {
                format!(
                    "is about the model that a run begins from; name that model, or set it to {off}"
                )
            })
        };
        let three = |values: &[f64]| {
            let can_be =
                matches!(values.len(), 0 | 3) && self.data.mean.len() == self.data.std.len();
            let why = "mean and std are three numbers each, or both are left out";
            (!can_be).then(|| why.into())
        };
        let colours = method.colours.filter(|wanted| *wanted != self.network.colours);
        let ordered = |(low, high): (f64, f64)| {
            let why = || format!("must be two numbers, the lesser first: {high},{low}");
            (low > high).then(why)
        };
        let wrong = [
            ("training.epochs", Range::AtMost(Self::MOST_EPOCHS).refuses(Number::Whole(epochs))),
            (
                "training.nesterov",
                (t.nesterov && stands_still)
                    .then(|| "needs a momentum above 0; set nesterov to false".into()),
            ),
            (
                "training.freeze_epochs",
                never_learns.then(|| {
                    format!(
                        "{epochs} epochs in all leave none in which the model learns; give fewer, \
                         or more epochs"
                    )
                }),
            ),
            ("training.freeze_epochs", of_no_model(t.freeze_epochs > 0, "0")),
            ("training.from_rate", of_no_model(t.from_rate != 1.0, "1")),
            ("data.mean", three(&self.data.mean)),
            ("data.std", three(&self.data.std)),
            (
                "method.views",
                (method.compares_views() && self.method.views < 2)
                    .then(|| format!("{method} compares views: at least 2")),
            ),
            (
                "network.colours",
                colours
                    .map(|wanted| format!("{method} is of a network that sees {}", wanted.text())),
            ),
            ("augmentation.crop_scale", ordered(a.crop_scale)),
            ("augmentation.crop_ratio", ordered(a.crop_ratio)),
            ("augmentation.blur_sigma", ordered(a.blur_sigma)),
        ];
        let first = wrong.into_iter().find_map(|(name, reason)| Some((name, reason?)));
        first.map_or(Ok(()), |(name, reason)| Err(setting(name, reason)))
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
