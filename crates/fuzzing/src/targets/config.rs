//! Settings.

use anchorhood_engine::Precision;
use anchorhood_train::methods;
use anchorhood_train::{Kind, Preset, RunConfig, SETTINGS};

/// What can be used is written and read back the same, as a file and setting by setting.
pub fn read(bytes: &[u8]) -> Option<()> {
    let text = String::from_utf8_lossy(bytes);
    let base = Preset::Quick.config("shapes");
    for (name, value) in text.lines().take(3).filter_map(|line| line.split_once(" = ")) {
        let _ = base.clone().set(name, value);
    }
    let (read, mut can_be) = (RunConfig::from_toml(&text, "a file"), false);
    for config in [read, base.overlaid(&text, "a file")].into_iter().flatten() {
        if config.check().is_ok() {
            let _ = base.differences(&config);
            let written = config.to_toml();
            let again = RunConfig::from_toml(&written, "a file");
            assert_eq!(again.expect("what was written is read"), config);
            assert_eq!(typed(&config), config);
            used(&config);
            can_be = true;
        }
    }
    can_be.then_some(())
}

/// The same configuration by what would be typed for each setting.
fn typed(config: &RunConfig) -> RunConfig {
    let mut typed = Preset::Paper.config("shapes");
    // A method that is not here cannot be typed.
    let here = config.method.name.is_known();
    for setting in SETTINGS.iter().filter(|setting| here || setting.name != "method.name") {
        let text = setting.text(config);
        let understood = setting.understands(&text);
        assert!(understood.is_ok(), "{}: {understood:?}", setting.name);
        let set = typed.set(setting.name, &text);
        set.expect("what is shown can be typed");
        assert_eq!(typed.get(setting.name).ok(), Some(text));
    }
    // A folder or a model called `none` cannot be typed, and nobody types it.
    typed.data.seen_from.clone_from(&config.data.seen_from);
    typed.method.name = config.method.name;
    let (to, from) = (&mut typed.training, &config.training);
    to.from.clone_from(&from.from);
    to.from_fingerprint.clone_from(&from.from_fingerprint);
    typed
}

/// What the parts of a run are told of it are numbers that they can compute with.
fn used(config: &RunConfig) {
    let (training, method) = (config.training.optimiser(), &config.method);
    let numbers = format!(
        "{training:?} {:?} {:?} {:?}",
        config.augmentation.augmentation(),
        config.evaluation.knn(),
        config.data.load_options(config.seed),
    );
    assert!(!numbers.contains("inf") && !numbers.contains("NaN"), "{numbers}");
    assert!(config.evaluation.knn().temperature > 0.0, "{numbers}");
    let deviation = config.data.normalisation().map(|(_, std)| std);
    assert!(deviation.is_none_or(|std| std.iter().all(|s| *s > 0.0)));
    assert!(method.passes().views >= 1 && config.machine.thread_count() >= 1);
    assert_eq!(method.projector().features, method.predictor().features);
    let precision = Precision::from(config.machine.precision);
    let _ = (precision, config.data.describe_place());
}

/// Every method in every preset, with every choice that a setting has.
fn recipes() -> Vec<RunConfig> {
    let methods =
        methods::METHODS.all().into_iter().zip(0..).flat_map(|(method, i)| {
            Preset::ALL.map(|preset| (preset.config_for("shapes", method), i))
        });
    let with_choices = |(mut config, i): (RunConfig, usize)| {
        let chosen = SETTINGS.iter().filter(|s| s.name != "method.name");
        for setting in chosen {
            if let Kind::Choice(names) = setting.kind {
                let set = config.set(setting.name, names[i % names.len()]);
                set.expect("one of its choices");
            }
        }
        config
    };
    methods.map(with_choices).collect()
}

pub fn seeds() -> Vec<Vec<u8>> {
    let part = "seed = 7\n[training]\nepochs = 3\nrate = 0.03\n[network]\nwidth = 16\n";
    let devices = ["cpu", "cuda", "cuda:1", "cuda:x"];
    let device = |name: &str| format!("[machine]\ndevice = \"{name}\"\n[data]\nlimit = 5\n");
    let wide = "seed = 18446744073709551615\n[discovery]\nneighbours = 9223372036854775808\n";
    let wrong =
        "[training]\noptimiser = \"adam\"\nmilestones = []\n[network]\narchitecture = \"vgg\"\n";
    let fine_tuned = "[training]\nfrom = \"base\"\nfreeze_epochs = 1\nfrom_rate = 0.1\n\
        [data]\nmean = [0.485, 0.456, 0.406]\nstd = [0.229, 0.224, 0.225]\n";
    let held_out = ["train:5", "train:x", "test", "tests"];
    let held_out =
        held_out.map(|on| format!("data.validate_on = {on}\n[data]\nvalidate_on = \"{on}\"\n"));
    let whole = recipes().into_iter().map(|config| config.to_toml());
    let parts = [part, wide, wrong, fine_tuned].map(String::from);
    let all = whole.chain(devices.map(device)).chain(held_out).chain(parts);
    all.map(String::into_bytes).collect()
}
