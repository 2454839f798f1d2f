//! What every declared setting promises, whichever it is; and that files of version 0.1 mean what
//! they meant.

use anchorhood_models::Architecture;
use anchorhood_train::{
    ConfigError, Kind, MethodChoice, Preset, Range, RunConfig, SETTINGS, Setting,
};

fn quick() -> RunConfig {
    Preset::Quick.config("shapes")
}

/// Something else than what the presets have, within every range.
fn another(setting: &Setting) -> String {
    let now = setting.text(&quick());
    match (setting.kind, setting.name) {
        (Kind::Whole, _) => "7".into(),
        (Kind::Real, _) => "0.25".into(),
        (Kind::Bool, _) => (now == "false").to_string(),
        (Kind::Pair, _) => "0.5,0.75".into(),
        (Kind::List, _) => "0.25,0.5".into(),
        (Kind::Choice(names), _) => names.iter().find(|n| **n != now).unwrap().to_string(),
        (Kind::Text, "network.architecture") => "alexnet".into(),
        (Kind::Text, "machine.device") => "cuda:3".into(),
        (Kind::Text, "data.validate_on") => "train:7".into(),
        (Kind::Text, "discovery.loss_rows") => "sampled:7".into(),
        (Kind::Text, _) => "some/folder".into(),
    }
}

#[test]
fn every_setting_is_named_helped_and_flagged_once() {
    let mut seen = vec![];
    for setting in SETTINGS {
        assert!(setting.help.len() > 10 && setting.help.ends_with('.'), "{}", setting.name);
        assert!(!setting.ranges.is_empty(), "{}", setting.name);
        assert!(Setting::named(setting.name).is_some_and(|s| std::ptr::eq(s, setting)));
        // Which pictures, and where from, is said without a flag; and how a model sees them is the
        // model's.
        let pictures = ["data.set", "data.seen_from"].contains(&setting.name);
        let of_model = ["data.mean", "data.std", "training.from_fingerprint"];
        let brought = setting.name == "method.own"; // by a program, not by what is typed
        let no_flag = pictures || brought || of_model.contains(&setting.name);
        assert_eq!(setting.flag.is_none(), no_flag, "{}", setting.name);
        if let Some(flag) = setting.flag {
            assert!(!seen.contains(&flag.long), "--{} is there twice", flag.long);
            seen.push(flag.long);
            seen.extend(flag.alias);
        }
    }
}

#[test]
fn every_setting_comes_back_from_text_and_from_toml() {
    for setting in SETTINGS {
        let (base, text) = (quick(), another(setting));
        let mut config = base.clone();
        config.set(setting.name, &text).unwrap();
        assert_ne!(config, base, "{}", setting.name);
        assert_eq!(config.get(setting.name).unwrap(), text);
        assert_eq!(RunConfig::from_toml(&config.to_toml(), "a test").unwrap(), config);
        // A file with this one setting changes this one alone.
        let over = base.overlaid(&alone(setting, &config), "a test").unwrap();
        assert_eq!(over, config, "{}", setting.name);
        // And its own text is understood.
        let back = config.get(setting.name).unwrap();
        let mut again = base.clone();
        again.set(setting.name, &back).unwrap();
        assert_eq!(again, config);
        again.set(setting.name, &base.get(setting.name).unwrap()).unwrap();
        assert_eq!(again, base);
    }
}

fn setting_value(setting: &Setting, config: &RunConfig) -> toml::Value {
    config.get(setting.name).unwrap().parse().unwrap()
}

/// A configuration file with one setting of another.
fn alone(setting: &Setting, config: &RunConfig) -> String {
    let all: toml::Table = toml::from_str(&config.to_toml()).unwrap();
    let mut table = toml::Table::new();
    match setting.name.split_once('.') {
        None => {
            table.insert(setting.name.into(), all[setting.name].clone());
        }
        Some((section, field)) => {
            let written = all[section].get(field).cloned();
            // What has the value that goes without saying is not written; whoever writes it is
            // understood.
            let value = written.unwrap_or_else(|| setting_value(setting, config));
            let section_alone = toml::Table::from_iter([(field.to_string(), value)]);
            table.insert(section.into(), section_alone.into());
        }
    }
    toml::to_string(&table).unwrap()
}

#[test]
fn what_is_out_of_range_is_refused_by_name() {
    let mut refused = 0;
    for setting in SETTINGS.iter().filter(|s| s.ranges != [Range::Any]) {
        let bad = match (setting.kind, setting.ranges) {
            (_, [Range::AtMost(most), ..]) => (most + 1).to_string(),
            (Kind::Whole, _) => "0".into(),
            (Kind::Pair, _) => "-1,20".into(),
            (Kind::Text, _) => match setting.name {
                "discovery.loss_rows" => "sampled:0".into(),
                _ => "train:0".into(), // the only other one with a number in it
            },
            _ => "-1".into(),
        };
        let mut config = quick();
        config.set(setting.name, &bad).unwrap();
        let message = config.check().unwrap_err().to_string();
        let named = message.starts_with(setting.name);
        assert!(named, "{}: {message}", setting.name);
        refused += 1;
    }
    assert!(refused > 25, "{refused}");
}

#[test]
fn what_is_no_value_or_no_setting_is_refused() {
    for (setting, text) in [
        ("training.epochs", "three"),
        ("training.nesterov", "perhaps"),
        ("discovery.curriculum", "steep"),
        ("augmentation.crop_scale", "0.3"),
    ] {
        let error = quick().set(setting, text).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with(setting) && message.contains(text), "{message}");
    }
    let error = quick().set("training.epoch", "3").unwrap_err();
    assert!(matches!(error, ConfigError::Unknown { setting } if setting == "training.epoch"));
    assert!(quick().get("epochs").is_err());
}

#[test]
fn a_file_says_what_is_wrong_with_it() {
    let told = |old: &str, new: &str| {
        let text = quick().to_toml().replace(old, new);
        RunConfig::from_toml(&text, "mine.toml").unwrap_err().to_string()
    };
    let message = told("epochs = 28", "epoch = 28");
    assert!(
        message.contains("unknown field `epoch`, expected one of `rounds`, `epochs`"),
        "{message}"
    );
    assert!(told("epochs = 28", "").contains("missing field `epochs`"));
    assert!(told("seed = 0", "").contains("missing field `seed`"));
    assert!(told("[machine]", "[elsewhere]").contains("unknown field `elsewhere`"));
    let message = told("curriculum = \"linear\"", "curriculum = \"steep\"");
    assert!(
        message.contains("unknown variant `steep`, expected `linear` or `one-off`"),
        "{message}"
    );
    assert!(told("resnet10", "resnet19").contains("no network is called `resnet19`"));
}

/// Written by version 0.1, which had neither `[method]` nor some of the settings.
#[test]
fn files_of_0_1_mean_anchor_neighbourhood_discovery() {
    for (preset, text) in [
        (Preset::Quick, include_str!("../fixtures/config-0.1-quick.toml")),
        (Preset::Paper, include_str!("../fixtures/config-0.1-paper.toml")),
    ] {
        let config = RunConfig::from_toml(text, "a test").unwrap();
        assert_eq!(config.method.name, MethodChoice::And);
        let mut now = preset.config("shapes");
        if preset == Preset::Quick {
            now.network.architecture = Architecture::ResNet18;
            now.training.epochs = 30;
            now.discovery.fill = false;
        }
        assert_eq!(config, now);
        // Of what 0.1 did not have, only the method is written while it has its usual value.
        let method = "[method]\nname = \"and\"\n\n";
        assert_eq!(config.to_toml().replace(method, ""), text);
    }
}
