//! Configurations to begin from.

use anchorhood_models::Architecture;

use super::{
    AugmentationConfig, CurriculumChoice, DataConfig, DeviceChoice, DiscoveryConfig,
    EvaluationConfig, FeatureSource, MachineConfig, NetworkConfig, RunConfig, TrainingConfig,
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
        data: DataConfig {
            set: set.into(),
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
            grey: 0.2,
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
            threads: 0,
        },
    }
}

fn quick(paper: RunConfig) -> RunConfig {
    RunConfig {
        data: DataConfig {
            shapes_train: 4_000,
            shapes_test: 1_000,
            ..paper.data
        },
        network: NetworkConfig {
            width: 8,
            ..paper.network
        },
        training: TrainingConfig {
            rounds: 2,
            epochs: 5,
            batch: 64,
            ..paper.training
        },
        evaluation: EvaluationConfig {
            every: 2,
            ..paper.evaluation
        },
        ..paper
    }
}
