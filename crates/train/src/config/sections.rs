//! What the parts of the program are told of the tables of `config.toml`, which `settings.rs`
//! declares.

use crate::evaluation::KnnOptions;
use crate::methods::{MlpSettings, ViewPasses};
use anchorhood_data::{Augmentation, LoadOptions};
use anchorhood_engine::{Graph, Optimiser, Result};
use anchorhood_models::Form;

use super::{
    AugmentationConfig, DataConfig, EvaluationConfig, MachineConfig, MethodConfig, NetworkConfig,
    OptimiserChoice, RunConfig, StemChoice, TrainingConfig,
};

impl DataConfig {
    /// What the loader wants to know.
    pub fn load_options(&self, seed: u64) -> LoadOptions {
        LoadOptions {
            seed,
            size: self.size,
            largest: None,
            limit: self.limit,
            test_limit: self.test_limit,
            validation: self.validate_on.held_out(),
            held_out: self.held_out as f32,
            labels: self.labels.into(),
            crops: self.crops,
            shapes_train: self.shapes_train,
            shapes_test: self.shapes_test,
            fellows: None,
        }
    }

    /// Mean and standard deviation of each channel that pictures are normalised by, where they are
    /// not their own.
    pub fn normalisation(&self) -> Option<([f32; 3], [f32; 3])> {
        let three = |values: &[f64]| {
            let three: Result<[f64; 3], _> = values.try_into();
            Some(three.ok()?.map(|v| v as f32))
        };
        three(&self.mean).zip(three(&self.std))
    }
}

impl RunConfig {
    /// View-epochs of the whole run: one view of every training picture, forwards and backwards, is
    /// one.
    pub fn view_epochs(&self) -> usize {
        let t = &self.training;
        (t.rounds + 1) * t.epochs * self.method.views_of_a_picture()
    }
}

impl MethodConfig {
    /// Views of a picture, or tiles as large, that a step passes through the network.
    pub fn views_of_a_picture(&self) -> usize {
        (self.name.passes_per_image)(self)
    }

    /// How views pass through networks.
    pub fn passes(&self) -> ViewPasses {
        ViewPasses { views: self.views, statistics: self.view_statistics }
    }

    /// The projector.
    pub fn projector(&self) -> MlpSettings {
        MlpSettings {
            layers: self.projector_layers,
            width: self.projector_width,
            features: self.projector_features,
            norm: self.projector_norm,
        }
    }

    /// The predictor, whose result has the projector's length.
    pub fn predictor(&self) -> MlpSettings {
        MlpSettings {
            layers: 2,
            width: self.predictor_width,
            features: self.projector_features,
            norm: true,
        }
    }
}

impl NetworkConfig {
    /// The form of its first layers for pictures of so many pixels a side.
    pub fn form(&self, size: usize) -> Form {
        match self.stem {
            StemChoice::Auto => Form::for_size(size),
            StemChoice::Fast => Form::fast_for_size(size),
        }
    }

    /// Its graph for pictures of a size.
    pub fn graph(&self, size: usize) -> Result<Graph> {
        self.graph_of(self.form(size), size)
    }

    /// The same in a form of one's choice.
    pub fn graph_of(&self, form: Form, size: usize) -> Result<Graph> {
        self.architecture.graph_seeing(self.colours, form, size, self.width, self.features)
    }
}

/// Keeps an optimiser's divisions finite.
const EPSILON: f32 = 1e-8;

impl TrainingConfig {
    /// The optimiser; its rate is the scheduler's.
    pub fn optimiser(&self) -> Optimiser {
        let (momentum, nesterov) = (self.momentum as f32, self.nesterov);
        let decay = self.weight_decay as f32;
        match self.optimiser {
            OptimiserChoice::Sgd => Optimiser::Sgd { momentum, nesterov, decay },
            OptimiserChoice::Lars => Optimiser::Lars {
                momentum,
                nesterov,
                decay,
                trust: self.trust as f32,
                epsilon: EPSILON,
            },
            OptimiserChoice::AdamW => Optimiser::AdamW {
                beta1: self.betas.0 as f32,
                beta2: self.betas.1 as f32,
                epsilon: EPSILON,
                decay,
            },
        }
    }
}

impl AugmentationConfig {
    /// For the loader.
    pub fn augmentation(&self) -> Augmentation {
        let pair = |(a, b): (f64, f64)| (a as f32, b as f32);
        Augmentation {
            crop_scale: pair(self.crop_scale),
            crop_ratio: pair(self.crop_ratio),
            brightness: self.brightness as f32,
            contrast: self.contrast as f32,
            saturation: self.saturation as f32,
            hue: self.hue as f32,
            jitter: self.jitter as f32,
            grey: self.grey as f32,
            blur: self.blur as f32,
            blur_sigma: pair(self.blur_sigma),
            solarise: self.solarise as f32,
            flip: self.flip as f32,
        }
    }
}

impl EvaluationConfig {
    /// For the classifier.
    pub fn knn(&self) -> KnnOptions {
        KnnOptions { k: self.k, temperature: self.temperature }
    }
}

impl MachineConfig {
    /// More threads than this only wait for each other.
    pub const MOST_THREADS: usize = 256;

    /// The number of threads, counted where it is left open.
    pub fn thread_count(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
            n => n,
        }
    }
}
