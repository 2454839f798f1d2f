//! What every declared setting promises, whichever it is.

use anchorhood_train::{ConfigError, Kind, Preset, Range, RunConfig, SETTINGS, Setting};

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
        (Kind::Method, _) => "byol".into(),
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
        assert!(setting.help().len() > 10 && setting.help().ends_with('.'), "{}", setting.name);
        assert!(!setting.ranges.is_empty(), "{}", setting.name);
        assert!(Setting::named(setting.name).is_some_and(|s| std::ptr::eq(s, setting)));
        // Which pictures, and where from, is said without a flag; and how a model sees them is the
        // model's.
        let pictures = ["data.set", "data.seen_from"].contains(&setting.name);
        let of_model = ["data.mean", "data.std", "training.from_fingerprint"];
        let no_flag = pictures || of_model.contains(&setting.name);
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
    // Files look as they did before there were these.
    let file = quick().to_toml();
    assert!(!["loss_rows", "validate_on", "whiten"].iter().any(|field| file.contains(field)));
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

/// A configuration file with one setting of another.
fn alone(setting: &Setting, config: &RunConfig) -> String {
    let all: toml::Value = toml::from_str(&config.to_toml()).unwrap();
    let written = setting.name.split('.').try_fold(&all, |table, name| table.get(name));
    // What has the value that goes without saying is not written; whoever writes it is understood.
    let value = match written {
        Some(value) => value.to_string(),
        None => config.get(setting.name).unwrap(),
    };
    format!("{} = {value}", setting.name)
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
    assert!(message.contains("\"steep\" is none of linear, one-off"), "{message}");
    assert!(told("resnet10", "resnet19").contains("no network is called `resnet19`"));
    let part = |text| quick().overlaid(text, "mine.toml").unwrap_err().to_string();
    let message = part("[training]\nepoch = 3\n");
    assert!(message.contains("mine.toml") && message.contains("`epoch`"), "{message}");
    assert!(part("[training]\nepochs = \"three\"\n").contains("epochs"));
    assert!(part("epochs: 3").contains("mine.toml"));
}
