//! A flag for every setting of a run, made from the settings' own declaration: name, help, what may
//! be typed.

use anchorhood::research::Settings;
use anchorhood::{SETTINGS, Setting};
use anchorhood_train::{Flag, Kind};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};

use super::method_names;

/// In which order `--help` has them.
const HEADINGS: [&str; 8] =
    ["Run", "Method", "Data", "Network", "Training", "Discovery", "Evaluation", "Augmentation"];

/// The settings that were typed; the others change nothing.
#[derive(Clone, Debug, Default)]
pub struct SettingArgs(pub Settings);

impl clap::Args for SettingArgs {
    fn augment_args(command: Command) -> Command {
        let under = |heading| flags().filter(move |(s, _)| s.heading == heading);
        let all = HEADINGS.into_iter().flat_map(under);
        command.args(all.map(|(setting, flag)| arg(setting, flag))).arg(by_name())
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
                self.0.add(setting, values.join(","));
            }
        }
        let named = matches.get_many::<(&'static Setting, String)>(BY_NAME).into_iter().flatten();
        named.for_each(|(setting, text)| self.0.add(setting, text));
        Ok(())
    }
}

const BY_NAME: &str = "set";

/// Any setting by its name in config.toml.
fn by_name() -> Arg {
    Arg::new(BY_NAME)
        .long(BY_NAME)
        .value_name("NAME=VALUE")
        .help("Any setting by its name in config.toml, such as training.nesterov=false")
        .action(ArgAction::Append)
        .value_parser(named)
}

fn named(text: &str) -> Result<(&'static Setting, String), String> {
    let (name, value) = text.split_once('=').ok_or("give NAME=VALUE")?;
    let known = |s: &&Setting| s.name == name && s.flag.is_some();
    let setting = SETTINGS
        .iter()
        .find(known)
        .ok_or_else(|| format!("no setting is called {name}; `train --explain` has all of them"))?;
    setting.understands(value)?;
    Ok((setting, value.into()))
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
        .help_heading(setting.heading)
        .hide_short_help(!flag.common);
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
    use anchorhood::{Preset, RunConfig};
    use clap::Args;

    fn parsed(words: &[&str]) -> Result<SettingArgs, clap::Error> {
        let command = SettingArgs::augment_args(Command::new("train").no_binary_name(true));
        SettingArgs::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    fn typed(words: &[&str]) -> RunConfig {
        let mut config = Preset::Quick.config("shapes");
        parsed(words).unwrap().0.apply(&mut config).unwrap();
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
        assert!(parsed(&pair).unwrap().0.has("augmentation.crop_scale"));
        assert!(!parsed(&pair).unwrap().0.has("augmentation.crop_ratio"));
    }

    #[test]
    fn any_setting_is_set_by_its_name() {
        let config = typed(&["--set", "training.nesterov=false", "--set", "training.epochs=3"]);
        assert_eq!((config.training.nesterov, config.training.epochs), (false, 3));
    }

    #[test]
    fn the_short_help_has_the_settings_that_many_runs_say() {
        let mut command = SettingArgs::augment_args(Command::new("train"));
        let [short, long] =
            [command.render_help(), command.render_long_help()].map(|help| help.to_string());
        let shown = |help: &str| {
            let shown = |(_, flag): &(_, Flag)| help.contains(&format!("--{} ", flag.long));
            flags().filter(shown).count()
        };
        assert_eq!(shown(&long), flags().count());
        assert!((18..=24).contains(&shown(&short)), "{}", shown(&short));
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
            ["--set", "training.epochs"],
            ["--set", "training.epochs=three"],
            ["--set", "training.epoch=3"],
        ] {
            let message = parsed(&line).unwrap_err().to_string();
            assert!(message.contains(line[0]), "{message}");
        }
    }
}
