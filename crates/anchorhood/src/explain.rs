//! Where does each value of a configuration come from?

use anchorhood_train::{MethodSpec, Preset, RunConfig, SETTINGS, Setting};

/// A setting of a run that is about to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Its name in config.toml.
    pub setting: &'static str,
    /// Its value, as it could be typed.
    pub value: String,
    /// Who decided about it.
    pub from: String,
}

/// A configuration while it is made, after everybody who has a say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace(Vec<Stage>);

#[derive(Clone, Debug)]
struct Stage {
    who: String,
    config: RunConfig,
    /// Settings that were named, though they may have had this value before.
    named: Vec<&'static str>,
}

impl Trace {
    /// What it begins as: by a preset, a data set and a method.
    pub fn begin(&mut self, preset: Preset, set: &str, method: &'static MethodSpec) {
        for (who, config) in preset.stages(set, method) {
            self.add(&who, &config, []);
        }
    }

    /// What somebody made of it, and the settings that were named for it.
    pub fn add(
        &mut self,
        who: &str,
        config: &RunConfig,
        named: impl IntoIterator<Item = &'static str>,
    ) {
        let named = named.into_iter().collect();
        self.0.push(Stage { who: who.into(), config: config.clone(), named });
    }

    /// Every setting, with the last who changed or named it.
    pub fn explain(&self) -> Vec<Explained> {
        let Some(last) = self.0.last() else {
            return vec![];
        };
        let of = |setting: &'static Setting| {
            let text = |stage: &Stage| setting.text(&stage.config);
            let mut from = &self.0[0];
            for two in self.0.windows(2) {
                if text(&two[0]) != text(&two[1]) || two[1].named.contains(&setting.name) {
                    from = &two[1];
                }
            }
            Explained { setting: setting.name, value: text(last), from: from.who.clone() }
        };
        SETTINGS.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_who_changed_or_named_a_setting_is_told() {
        let mut trace = Trace::default();
        let mut config = Preset::Quick.config("photos");
        trace.begin(Preset::Quick, "photos", config.method.name);
        config.training.batch = 7;
        trace.add("a file", &config, ["training.batch", "seed"]);
        config.training.epochs = 3;
        trace.add("images", &config, []);
        let explained = trace.explain();
        let of = |name: &str| {
            let found = explained.iter().find(|e| e.setting == name).unwrap();
            (found.value.clone(), found.from.clone())
        };
        assert_eq!(of("training.batch"), ("7".into(), "a file".into()));
        assert_eq!(of("seed"), ("0".into(), "a file".into()));
        assert_eq!(of("training.epochs"), ("3".into(), "images".into()));
        assert_eq!(of("method.name"), ("anchorhood".into(), "method anchorhood".into()));
        assert_eq!(of("network.width"), ("16".into(), "preset quick".into()));
        assert_eq!(explained.len(), SETTINGS.len());
        let mut trace = Trace::default();
        trace.begin(Preset::Paper, "imagenet", &anchorhood_train::methods::AND);
        let tau = trace.explain().into_iter().find(|e| e.setting == "discovery.temperature");
        assert_eq!(tau.unwrap().from, "data set imagenet");
    }
}
