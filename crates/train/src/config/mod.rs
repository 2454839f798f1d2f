//! Everything a run depends on, resolved: what `config.toml` holds and what can be fed back in.
//!
//! Each setting is declared once, in `settings.rs`; its table, its TOML, its range and its flag
//! follow from that. A configuration begins as a [`Preset`], a file may change any part of it
//! ([`RunConfig::overlaid`]), and [`RunConfig::check`] says what cannot be. Nothing later reads
//! flags or the environment.

mod check;
mod choices;
mod declare;
mod fit;
mod loss_rows;
mod method_kind;
mod place;
mod preset;
mod range;
mod recipe;
mod sections;
mod setting;
mod settings;
mod validate_on;
mod value;

pub use check::Difference;
pub use choices::{
    ColoursChoice, CropsChoice, CurriculumChoice, DeviceChoice, DiscoverChoice, FeatureSource,
    GpuSet, LabelsChoice, MethodChoice, OptimiserChoice, PrecisionChoice, ScheduleChoice,
    StemChoice, ViewStatisticsChoice,
};
pub use loss_rows::LossRows;
pub use method_kind::MethodKind;
pub use preset::Preset;
pub use range::Range;
pub use setting::{Flag, Setting};
pub use settings::{
    AugmentationConfig, DataConfig, DiscoveryConfig, EvaluationConfig, MachineConfig, MethodConfig,
    NetworkConfig, RunConfig, SETTINGS, TrainingConfig,
};
pub use validate_on::ValidateOn;
pub use value::Kind;

/// A configuration that cannot be, with the way out.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A setting outside its range.
    #[error("{setting}: {reason}")]
    Setting {
        /// Its name in config.toml.
        setting: &'static str,
        /// What it must be.
        reason: String,
    },
    /// A name that no setting has.
    #[error("{setting}: no setting is called so")]
    Unknown {
        /// The name.
        setting: String,
    },
    /// A file that is not a configuration.
    #[error("{place}: not a configuration: {reason}")]
    File {
        /// The file.
        place: String,
        /// What was met.
        reason: String,
    },
}

impl RunConfig {
    /// As written to `config.toml`.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("a configuration is plain tables of plain values")
    }

    /// What a configuration file may have: a hundred times what any does.
    pub const MOST_BYTES: u64 = 1 << 20;

    /// Read back; `place` names the file in errors.
    pub fn from_toml(text: &str, place: &str) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|e| file_error(place, &e.to_string()))
    }

    /// This configuration with whatever `text`, a configuration file or a part of one, says
    /// instead. A whole one is taken as it is: what it leaves unwritten has a meaning of its own.
    pub fn overlaid(&self, text: &str, place: &str) -> Result<Self, ConfigError> {
        if let Ok(whole) = Self::from_toml(text, place) {
            return Ok(whole);
        }
        let over: toml::Table =
            toml::from_str(text).map_err(|e| file_error(place, &e.to_string()))?;
        let mut all = toml::Table::try_from(self).expect("a configuration is a table");
        overlay(&mut all, over);
        all.try_into().map_err(|e: toml::de::Error| file_error(place, &e.to_string()))
    }
}

fn file_error(place: &str, reason: &str) -> ConfigError {
    ConfigError::File { place: place.into(), reason: reason.trim_end().into() }
}

fn overlay(base: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(more)) => overlay(inner, more),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_and_read_back_it_is_the_same() {
        for preset in Preset::ALL {
            let config = preset.config("shapes");
            let text = config.to_toml();
            assert_eq!(RunConfig::from_toml(&text, "a test").unwrap(), config);
        }
    }

    #[test]
    fn a_file_changes_only_what_it_names() {
        let base = Preset::Quick.config("shapes");
        let mine = base.overlaid("seed = 7\n[training]\nepochs = 3\n", "mine.toml").unwrap();
        let mut expected = base;
        expected.seed = 7;
        expected.training.epochs = 3;
        assert_eq!(mine, expected);
    }

    #[test]
    fn a_misspelt_setting_is_named() {
        let base = Preset::Quick.config("shapes");
        let error = base.overlaid("[training]\nepoch = 3\n", "mine.toml");
        let message = error.unwrap_err().to_string();
        assert!(message.contains("mine.toml") && message.contains("`epoch`"));
        let error = base.overlaid("[training]\nepochs = \"three\"\n", "mine.toml");
        assert!(error.unwrap_err().to_string().contains("epochs"));
        assert!(base.overlaid("epochs: 3", "mine.toml").is_err());
    }
}
