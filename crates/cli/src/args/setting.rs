//! A flag for every setting of a run, made from the settings' own declaration: name, help, what may
//! be typed.

use anchorhood::train::{ConfigError, Flag, Kind, RunConfig, SETTINGS, Setting};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};

use super::method_names;

/// In which order `--help` has them.
const HEADINGS: [&str; 8] =
    ["Run", "Method", "Data", "Network", "Training", "Discovery", "Evaluation", "Augmentation"];

/// The settings that were typed; the others change nothing.
#[derive(Clone, Debug, Default)]
pub struct SettingArgs {
    typed: Vec<(&'static Setting, String)>,
}

impl SettingArgs {
    /// Changes what was typed.
    pub fn apply(&self, config: &mut RunConfig) -> Result<(), ConfigError> {
        let mut typed = self.typed.iter();
        typed.try_for_each(|(setting, text)| setting.set(config, text))
    }

    /// The flag by which a setting was typed, if it was; by the setting's name in config.toml.
    pub fn flag(&self, name: &str) -> Option<&'static str> {
        let typed = self.typed.iter().find(|(setting, _)| setting.name == name);
        typed.and_then(|(setting, _)| setting.flag).map(|f| f.long)
    }

    /// Whether a setting was typed.
    pub fn has(&self, name: &str) -> bool {
        self.flag(name).is_some()
    }
}

impl clap::Args for SettingArgs {
    fn augment_args(command: Command) -> Command {
        let under = |heading| flags().filter(move |(s, _)| s.heading == heading);
        let all = HEADINGS.into_iter().flat_map(under);
        command.args(all.map(|(setting, flag)| arg(setting, flag)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut args = SettingArgs::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for (setting, _) in flags() {
            if let Some(values) = matches.get_many::<String>(setting.name) {
                let values: Vec<&str> = values.map(String::as_str).collect();
                self.typed.push((setting, values.join(",")));
            }
        }
        Ok(())
    }
}

/// Every setting that has a flag.
fn flags() -> impl Iterator<Item = (&'static Setting, Flag)> {
    SETTINGS.iter().filter_map(|s| s.flag.map(|flag| (s, flag)))
}

fn arg(setting: &'static Setting, flag: Flag) -> Arg {
    let capitals = || flag.long.to_uppercase().replace('-', "_");
    let help = setting.help();
    let arg = Arg::new(setting.name)
        .long(flag.long)
        .value_name(flag.value.map_or_else(capitals, String::from))
        .help(help.strip_suffix('.').unwrap_or(&help).to_owned())
        .help_heading(setting.heading);
    let arg = match flag.short {
        Some(short) => arg.short(short),
        None => arg,
    };
    let arg = match flag.alias {
        Some(alias) => arg.visible_alias(alias),
        None => arg,
    };
    let text = move |text: &str| setting.understands(text).map(|()| text.to_string());
    match setting.kind {
        Kind::Bool => arg.value_parser(PossibleValuesParser::new(["true", "false"])),
        Kind::Method => arg.value_parser(method_names().map(|method| method.name.to_owned())),
        Kind::Choice(names) => arg.value_parser(PossibleValuesParser::new(names)),
        Kind::List => arg.value_parser(text).value_delimiter(',').action(ArgAction::Append),
        Kind::Whole | Kind::Real | Kind::Text | Kind::Pair => arg.value_parser(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood::train::Preset;
    use clap::Args;

    fn parsed(words: &[&str]) -> Result<SettingArgs, clap::Error> {
        let command = SettingArgs::augment_args(Command::new("train").no_binary_name(true));
        SettingArgs::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    fn typed(words: &[&str]) -> RunConfig {
        let mut config = Preset::Quick.config("shapes");
        parsed(words).unwrap().apply(&mut config).unwrap();
        config
    }

    /// Something else than what the presets have, of every kind.
    fn another(setting: &Setting) -> String {
        let now = setting.text(&Preset::Quick.config("shapes"));
        match setting.kind {
            Kind::Whole => "7".into(),
            Kind::Real => "0.25".into(),
            Kind::Bool => (now == "false").to_string(),
            Kind::Pair => "0.5,0.75".into(),
            Kind::List => "0.25,0.5".into(),
            Kind::Method => "byol".into(),
            Kind::Choice(names) => names.iter().find(|n| **n != now).unwrap().to_string(),
            Kind::Text if setting.name == "network.architecture" => "alexnet".into(),
            Kind::Text if setting.name == "data.validate_on" => "train:7".into(),
            Kind::Text if setting.name == "discovery.loss_rows" => "sampled:7".into(),
            Kind::Text => "cpu".into(),
        }
    }

    #[test]
    fn every_flag_reaches_its_setting_and_no_other() {
        let base = Preset::Quick.config("shapes");
        for (setting, flag) in flags() {
            let text = another(setting);
            let changed = typed(&[&format!("--{}", flag.long), &text]);
            let mut expected = base.clone();
            expected.set(setting.name, &text).unwrap();
            assert_ne!(changed, base, "{}", setting.name);
            assert_eq!(changed, expected, "{}", setting.name);
            assert_eq!(setting.text(&changed), text);
        }
    }

    #[test]
    fn every_setting_with_a_flag_is_under_a_heading() {
        let command = SettingArgs::augment_args(Command::new("train"));
        for (setting, flag) in flags() {
            let arg = command.get_arguments().find(|a| a.get_long() == Some(flag.long));
            let arg = arg.unwrap_or_else(|| panic!("{} has no flag", setting.name));
            assert_eq!(arg.get_help_heading(), Some(setting.heading));
            assert!(arg.get_help().is_some_and(|h| !h.to_string().is_empty()));
        }
    }

    #[test]
    fn short_names_aliases_lists_and_pairs() {
        assert_eq!(typed(&["-k", "3"]).discovery.neighbours, 3);
        let rate = typed(&["--learning-rate", "0.5"]).training.learning_rate;
        assert_eq!(rate, 0.5);
        let list = ["--milestones", "0.5,0.9"];
        assert_eq!(typed(&list).training.milestones, [0.5, 0.9]);
        let twice = ["--milestones", "0.5", "--milestones", "0.9"];
        assert_eq!(typed(&twice).training.milestones, [0.5, 0.9]);
        let none = typed(&["--milestones", "none"]);
        assert!(none.training.milestones.is_empty());
        let pair = ["--crop-scale", "0.3,1"];
        assert_eq!(typed(&pair).augmentation.crop_scale, (0.3, 1.0));
        assert!(parsed(&pair).unwrap().has("augmentation.crop_scale"));
        assert!(!parsed(&pair).unwrap().has("augmentation.crop_ratio"));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_flag() {
        for line in [
            ["--epochs", "three"],
            ["--lr", "fast"],
            ["--nesterov", "perhaps"],
            ["--crop-scale", "0.3"],
            ["--milestones", "0.5,x"],
            ["--curriculum", "steep"],
            ["--device", "toaster"],
            ["--validate-on", "train"],
        ] {
            let message = parsed(&line).unwrap_err().to_string();
            assert!(message.contains(line[0]), "{message}");
        }
    }
}
