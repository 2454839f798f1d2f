//! Configurations to begin from. A setting's value in each is declared with the setting.

use anchorhood_data::find_dataset;

use super::{CropsChoice, RunConfig};
use crate::methods::{ANCHORHOOD, AND, MethodSpec};

/// A named configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Minutes on two cores: a narrow network, few epochs.
    Quick,
    /// Minutes on a GPU: the published width, and the method that gives the best features for them.
    Strong,
    /// The paper's settings: four rounds of 200 epochs, the published width.
    Paper,
}

impl Preset {
    /// All of them.
    pub const ALL: [Preset; 3] = [Preset::Quick, Preset::Strong, Preset::Paper];

    /// What the user types.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Quick => "quick",
            Preset::Strong => "strong",
            Preset::Paper => "paper",
        }
    }

    /// How it learns where nobody says otherwise. Views teach more about photographs than a memory
    /// does; `shapes`, which differ in outline alone, are told apart by AND.
    pub fn method(self, set: &str) -> &'static MethodSpec {
        match (self, set) {
            (Preset::Paper, _) | (Preset::Quick | Preset::Strong, "shapes") => &AND,
            (Preset::Quick | Preset::Strong, _) => &ANCHORHOOD,
        }
    }

    /// The configuration for a data set.
    pub fn config(self, set: &str) -> RunConfig {
        self.config_for(set, self.method(set))
    }

    /// The same for a method, with its own recipe.
    pub fn config_for(self, set: &str, method: &'static MethodSpec) -> RunConfig {
        let [.., (_, config)] = self.stages(set, method);
        config
    }

    /// The same, as it comes about: by the preset, by what the data set has otherwise, by the
    /// method's recipe; each with what it is called.
    pub fn stages(self, set: &str, method: &'static MethodSpec) -> [(String, RunConfig); 3] {
        let start = match (self, set) {
            (Preset::Paper, _) => Start::Paper,
            (Preset::Strong, _) => Start::Strong,
            (Preset::Quick, "shapes") => Start::Shapes,
            (Preset::Quick, _) => Start::Quick,
        };
        let mut config = RunConfig::started(start);
        config.data.set = set.into();
        config.data.crops = match (self, set) {
            (Preset::Paper, _) | (_, "shapes") => CropsChoice::Square,
            (Preset::Quick | Preset::Strong, _) => CropsChoice::Picture,
        };
        let by_preset = (format!("preset {}", self.name()), config.clone());
        if let Some(spec) = find_dataset(set) {
            for (name, value) in spec.settings {
                config.set(name, value).expect("a data set names settings and values there are");
            }
            if self == Preset::Paper {
                config.training.batch = spec.batch;
            }
        }
        let by_data = (format!("data set {set}"), config.clone());
        config.method.name = method;
        (method.recipe)(&mut config, self);
        [by_preset, by_data, (format!("method {method}"), config)]
    }
}

/// Which value of a setting a preset takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Paper,
    /// What is not the method's own is the paper's.
    Strong,
    Quick,
    /// The quick preset on `shapes`, which are simple; how long photographs take depends on how
    /// many there are.
    Shapes,
}

impl Start {
    /// Of a setting's values the one that counts; what is not given is the paper's.
    pub(super) fn value<T>(self, paper: T, quick: Option<T>, shapes: Option<T>) -> T {
        match self {
            Start::Paper | Start::Strong => paper,
            Start::Quick => quick.unwrap_or(paper),
            Start::Shapes => shapes.or(quick).unwrap_or(paper),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::KnnOptions;
    use crate::methods::METHODS;
    use anchorhood_data::Augmentation;
    use anchorhood_engine::Optimiser;
    use anchorhood_models::{RESNET10, RESNET18};

    /// The settings every crate has as its defaults are the paper's.
    #[test]
    fn paper_is_what_the_parts_default_to() {
        let paper = Preset::Paper.config("cifar10");
        assert_eq!(paper.augmentation.augmentation(), Augmentation::default());
        assert_eq!(paper.training.optimiser(), Optimiser::sgd());
        let knn = KnnOptions::default();
        assert_eq!(paper.evaluation.k, knn.k);
        assert_eq!(paper.evaluation.temperature, knn.temperature);
    }

    #[test]
    fn every_recipe_can_be() {
        for method in METHODS.all() {
            for preset in Preset::ALL {
                for set in ["shapes", "cifar10", "imagenet"] {
                    let config = preset.config_for(set, method);
                    assert_eq!(config.method.name, method);
                    config.check().unwrap();
                    let read = RunConfig::from_toml(&config.to_toml(), "a test").unwrap();
                    assert_eq!(read, config);
                }
            }
        }
    }

    #[test]
    fn imagenet_has_its_own_settings_and_methods_their_own() {
        let paper = Preset::Paper.config("imagenet:some/where");
        assert_eq!((paper.training.batch, paper.training.weight_decay), (256, 1e-4));
        assert_eq!((paper.discovery.temperature, paper.augmentation.flip), (0.07, 0.5));
        assert_eq!(paper.data.crops, CropsChoice::Picture);
        let cifar = Preset::Paper.config("cifar10");
        assert_eq!((cifar.training.batch, cifar.training.weight_decay), (128, 5e-4));
        for set in ["imagenet", "cifar10"] {
            let colour = Preset::Strong.config_for(set, METHODS.find("colour").unwrap());
            assert_eq!(colour.training.weight_decay, 0.01, "{set}: the method's own");
        }
    }

    #[test]
    fn and_is_what_the_preset_is() {
        for preset in Preset::ALL {
            let by = preset.config_for("shapes", &AND);
            assert_eq!(by, preset.config("shapes"));
            assert_ne!(by, preset.config_for("shapes", &ANCHORHOOD));
        }
    }

    #[test]
    fn quick_changes_how_long_and_how_large_but_not_what_and_is() {
        let [quick, paper] = [Preset::Quick, Preset::Paper].map(|p| p.config_for("cifar10", &AND));
        assert_eq!(quick.discovery, paper.discovery);
        assert_eq!(quick.augmentation, paper.augmentation);
        assert_eq!(quick.training.learning_rate, paper.training.learning_rate);
    }

    #[test]
    fn quick_is_shorter_and_smaller_and_more_so_for_shapes() {
        let of = |set: &str| {
            let config = Preset::Quick.config_for(set, &AND);
            assert_eq!(config.data.set, set);
            assert_eq!((config.training.rounds, config.data.shapes_train), (2, 2_000));
            assert_eq!(config.training.milestones, [0.8, 0.9]);
            let t = &config.training;
            let network = (config.network.architecture, config.network.width);
            (network, t.epochs, t.batch, config.evaluation.every)
        };
        assert_eq!(of("cifar10"), ((&RESNET18, 16), 10, 64, 2));
        assert_eq!(of("shapes"), ((&RESNET10, 4), 28, 32, 5));
    }
}
