//! One setting of a run as data: what it is called in a file and on the command line, what may be
//! typed, what is said of it. [`SETTINGS`] has all of them, and whoever offers settings (the
//! command line, a binding) walks through it.

use super::value::Number;
use super::{ConfigError, Kind, Range, RunConfig, SETTINGS};
use crate::methods::METHODS;

/// A setting.
#[derive(Debug)]
pub struct Setting {
    /// Its name in config.toml: `training.epochs`.
    pub name: &'static str,
    /// What it does, in a sentence; see [`help`](Self::help).
    pub(super) help: &'static str,
    /// What to list it under.
    pub heading: &'static str,
    /// The flag that changes it; without one for what is said in other ways.
    pub flag: Option<Flag>,
    /// What can be typed for it.
    pub kind: Kind,
    /// What its numbers must satisfy.
    pub ranges: &'static [Range],
    pub(super) text: fn(&RunConfig) -> String,
    pub(super) parse: fn(&mut RunConfig, &str) -> Result<(), String>,
    pub(super) understands: fn(&str) -> Result<(), String>,
    pub(super) numbers: fn(&RunConfig) -> Vec<Number>,
}

/// A setting's flag.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// `epochs` for `--epochs`.
    pub long: &'static str,
    /// `k` for `-k`.
    pub short: Option<char>,
    /// Another long name.
    pub alias: Option<&'static str>,
    /// What the help calls its value; the flag in capitals without one.
    pub value: Option<&'static str>,
    /// Whether many runs say it: a short help has it.
    pub common: bool,
}

pub(super) const fn long(long: &'static str) -> Flag {
    Flag { long, short: None, alias: None, value: None, common: false }
}

impl Flag {
    pub(super) const fn short(self, short: char) -> Flag {
        Flag { short: Some(short), ..self }
    }

    pub(super) const fn alias(self, alias: &'static str) -> Flag {
        Flag { alias: Some(alias), ..self }
    }

    pub(super) const fn common(self) -> Flag {
        Flag { common: true, ..self }
    }

    pub(super) const fn value(self, value: &'static str) -> Flag {
        Flag { value: Some(value), ..self }
    }
}

impl Setting {
    /// The one of a name.
    pub fn named(name: &str) -> Option<&'static Setting> {
        SETTINGS.iter().find(|s| s.name == name)
    }

    /// What it does, in a sentence, and which methods read it, where only some do.
    pub fn help(&self) -> String {
        let field = self.name.strip_prefix("method.").unwrap_or_default();
        let readers = METHODS.all().into_iter().filter(|method| method.reads.contains(&field));
        let readers: Vec<&str> = readers.map(|method| method.name).collect();
        match self.help.strip_suffix('.') {
            Some(help) if !readers.is_empty() => format!("{help} ({}).", readers.join(", ")),
            _ => self.help.into(),
        }
    }

    /// Whether a text can be its value; of a [`Kind::List`], also whether it can be one of its
    /// values. Its range is another matter: [`RunConfig::check`].
    pub fn understands(&self, text: &str) -> Result<(), String> {
        (self.understands)(text)
    }

    /// Its value, as it could be typed.
    pub fn text(&self, config: &RunConfig) -> String {
        (self.text)(config)
    }

    /// Gives it the value that was typed.
    pub fn set(&self, config: &mut RunConfig, text: &str) -> Result<(), ConfigError> {
        (self.parse)(config, text).map_err(|reason| ConfigError::Setting {
            setting: self.name,
            reason: format!("{text:?} is no value: {reason}"),
        })
    }

    /// Says how its value leaves its range, if it does.
    pub(super) fn check(&self, config: &RunConfig) -> Result<(), ConfigError> {
        let numbers = (self.numbers)(config);
        let refused = |n: &Number| {
            let range = self.ranges.iter().find_map(|r| r.refuses(*n));
            range.or_else(|| n.cannot_be_held())
        };
        match numbers.iter().find_map(refused) {
            Some(reason) => Err(ConfigError::Setting { setting: self.name, reason }),
            None => Ok(()),
        }
    }
}

impl RunConfig {
    /// A setting's value as it could be typed, by the setting's name in config.toml.
    pub fn get(&self, name: &str) -> Result<String, ConfigError> {
        Ok(known(name)?.text(self))
    }

    /// Changes a setting, by its name in config.toml: `config.set("training.epochs", "30")`.
    /// Whether the configuration can be is for [`RunConfig::check`] to say, once all is set.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), ConfigError> {
        known(name)?.set(self, text)
    }
}

fn known(name: &str) -> Result<&'static Setting, ConfigError> {
    Setting::named(name).ok_or_else(|| ConfigError::Unknown { setting: name.into() })
}
