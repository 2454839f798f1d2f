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
mod place;
mod preset;
mod range;
mod rows;
mod sections;
mod setting;
mod settings;
mod value;

pub use crate::discovery::{Curriculum as CurriculumChoice, DiscoverBy as DiscoverChoice};
pub use crate::methods::ViewStatistics as ViewStatisticsChoice;
pub use anchorhood_data::CropsFrom as CropsChoice;
pub use anchorhood_models::Colours as ColoursChoice;
pub use check::Difference;
pub use choices::{
    DeviceChoice, FeatureSource, GpuSet, LabelsChoice, OptimiserChoice, PrecisionChoice,
    ScheduleChoice, StemChoice,
};
pub use preset::Preset;
pub use range::Range;
pub use rows::{LossRows, ValidateOn};
pub use setting::{Flag, Setting};
pub use settings::{
    AugmentationConfig, DataConfig, DiscoveryConfig, EvaluationConfig, MachineConfig, MethodConfig,
    NetworkConfig, RunConfig, SETTINGS, TrainingConfig,
};
pub use value::Kind;
pub(crate) use value::Value;

/// A configuration that cannot be, with the way out.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // of fields: a variant's message says what they are
pub enum ConfigError {
    /// A setting outside its range.
    #[error("{setting}: {reason}")]
    Setting { setting: &'static str, reason: String },
    /// A name that no setting has.
    #[error("{setting}: no setting is called so")]
    Unknown { setting: String },
    /// A file that is not a configuration.
    #[error("{place}: not a configuration: {reason}")]
    File { place: String, reason: String },
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
