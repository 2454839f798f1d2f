//! Configurations to begin from.

use anchorhood_models::Architecture;

use super::{
    AugmentationConfig, CurriculumChoice, DataConfig, DeviceChoice, DiscoveryConfig,
    EvaluationConfig, FeatureSource, MachineConfig, MethodConfig, NetworkConfig, PrecisionChoice,
    RunConfig, ScheduleChoice, TrainingConfig,
};

/// A named configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Minutes on two cores: a narrow network, few epochs.
    Quick,
    /// The paper's settings: four rounds of 200 epochs, the published width.
    Paper,
}

impl Preset {
    /// All of them.
    pub const ALL: [Preset; 2] = [Preset::Quick, Preset::Paper];

    /// What the user types.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Quick => "quick",
            Preset::Paper => "paper",
        }
    }

    /// The configuration for a data set.
    pub fn config(self, set: &str) -> RunConfig {
        let paper = paper(set);
        match self {
            Preset::Paper => paper,
            Preset::Quick => quick(paper),
        }
    }
}

fn paper(set: &str) -> RunConfig {
    RunConfig {
        seed: 0,
        method: MethodConfig::default(),
        data: DataConfig {
            set: set.into(),
            seen_from: None,
            size: None,
            limit: None,
            test_limit: None,
            held_out: 0.1,
            shapes_train: 50_000,
            shapes_test: 10_000,
        },
        network: NetworkConfig {
            architecture: Architecture::ResNet18,
            width: Architecture::ResNet18.default_width(),
            features: 128,
        },
        training: TrainingConfig {
            rounds: 4,
            epochs: 200,
            batch: 128,
            learning_rate: 0.03,
            momentum: 0.9,
            weight_decay: 5e-4,
            nesterov: true,
            schedule: ScheduleChoice::Steps,
            warm_up: 0.0,
            one_schedule: false,
            milestones: vec![0.6, 0.8],
            decay_factor: 0.1,
        },
        discovery: DiscoveryConfig {
            temperature: 0.1,
            memory_rate: 0.5,
            neighbours: 1,
            curriculum: CurriculumChoice::Linear,
            discover_from: FeatureSource::Memory,
        },
        augmentation: AugmentationConfig {
            crop_scale: (0.2, 1.0),
            crop_ratio: (0.75, 4.0 / 3.0),
            brightness: 0.4,
            contrast: 0.4,
            saturation: 0.4,
            hue: 0.4,
            jitter: 1.0,
            grey: 0.2,
            blur: 0.0,
            blur_sigma: (0.1, 2.0),
            solarise: 0.0,
            flip: 0.0,
        },
        evaluation: EvaluationConfig {
            k: 200,
            temperature: 0.07,
            features: FeatureSource::Memory,
            every: 10,
        },
        machine: MachineConfig {
            device: DeviceChoice::Auto,
            precision: PrecisionChoice::Bf16,
            threads: 0,
        },
    }
}

/// `shapes` are simple, so a very narrow network on few pictures learns them within two minutes. Photographs need a wider
/// one; how long that takes depends on how many there are.
fn quick(paper: RunConfig) -> RunConfig {
    let shapes = paper.data.set == "shapes";
    RunConfig {
        data: DataConfig {
            shapes_train: 2_000,
            shapes_test: 1_000,
            ..paper.data
        },
        network: NetworkConfig {
            width: if shapes { 4 } else { 16 },
            ..paper.network
        },
        training: TrainingConfig {
            rounds: 2,
            epochs: if shapes { 30 } else { 10 },
            // Small batches: in short runs the number of steps counts.
            batch: if shapes { 32 } else { 64 },
            // The rate falls late: there is little time to learn at the high one.
            milestones: vec![0.8, 0.9],
            ..paper.training
        },
        evaluation: EvaluationConfig {
            every: if shapes { 5 } else { 2 },
            ..paper.evaluation
        },
        ..paper
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_data::Augmentation;
    use anchorhood_engine::Optimiser;
    use anchorhood_evaluate::KnnOptions;

    /// The settings every crate has as its defaults are the paper's.
    #[test]
    fn paper_is_what_the_parts_default_to() {
        let paper = Preset::Paper.config("cifar10");
        assert_eq!(paper.augmentation.augmentation(), Augmentation::default());
        assert_eq!(paper.training.optimiser(), Optimiser::sgd());
        let knn = KnnOptions::default();
        assert_eq!(paper.evaluation.k, knn.k);
        assert_eq!(paper.evaluation.temperature as f32, knn.temperature);
    }

    #[test]
    fn quick_changes_how_long_and_how_large_but_not_the_method() {
        let (quick, paper) = (
            Preset::Quick.config("cifar10"),
            Preset::Paper.config("cifar10"),
        );
        assert_eq!(quick.discovery, paper.discovery);
        assert_eq!(quick.augmentation, paper.augmentation);
        assert_eq!(quick.training.learning_rate, paper.training.learning_rate);
    }
}
