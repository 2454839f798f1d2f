//! The tables of `config.toml`. Real numbers are f64 so that 0.03 is written as 0.03.

use anchorhood_data::{Augmentation, LoadOptions};
use anchorhood_discover::Curriculum;
use anchorhood_engine::Optimiser;
use anchorhood_evaluate::KnnOptions;
use anchorhood_models::Architecture;
use serde::{Deserialize, Serialize};

/// `[method]`: how features are learnt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MethodConfig {
    /// Its name.
    pub name: MethodChoice,
}

/// The methods there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MethodChoice {
    /// Anchor Neighbourhood Discovery.
    #[default]
    And,
    /// Cross-entropy on labels.
    Supervised,
}

impl std::fmt::Display for MethodChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            MethodChoice::And => "and",
            MethodChoice::Supervised => "supervised",
        })
    }
}

/// `[data]`: which pictures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// `shapes`, `cifar10`, `cifar100`, `cifar10:PATH` or the path of a folder.
    pub set: String,
    /// The folder that a `set` which is no whole path is seen from: the one the run was started in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_from: Option<String>,
    /// Pictures are resized to so many pixels a side; the data set's own size when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<usize>,
    /// At most so many training pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// At most so many test pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_limit: Option<usize>,
    /// Share of a labelled folder held out for evaluation when it has no test folder of its own.
    pub held_out: f64,
    /// Training pictures drawn for `shapes`.
    pub shapes_train: usize,
    /// Test pictures drawn for `shapes`.
    pub shapes_test: usize,
}

impl DataConfig {
    /// What the loader wants to know.
    pub fn load_options(&self, seed: u64) -> LoadOptions {
        LoadOptions {
            seed,
            size: self.size,
            limit: self.limit,
            test_limit: self.test_limit,
            held_out: self.held_out as f32,
            shapes_train: self.shapes_train,
            shapes_test: self.shapes_test,
        }
    }
}

/// `[network]`: which network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkConfig {
    /// Its name.
    #[serde(with = "by_name")]
    pub architecture: Architecture,
    /// Channels after the stem; 64 as published.
    pub width: usize,
    /// Length of a feature vector.
    pub features: usize,
}

mod by_name {
    use super::Architecture;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(a: &Architecture, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(a.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Architecture, D::Error> {
        String::deserialize(d)?.parse().map_err(D::Error::custom)
    }
}

/// `[training]`: how long and how fast.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingConfig {
    /// Rounds with neighbourhoods, after round 0 without.
    pub rounds: usize,
    /// Epochs in each round.
    pub epochs: usize,
    /// Pictures in a batch.
    pub batch: usize,
    /// The learning rate at the start of each round.
    pub learning_rate: f64,
    /// The share of the momentum that is kept.
    pub momentum: f64,
    /// Weight decay.
    pub weight_decay: f64,
    /// Whether momentum is Nesterov's.
    pub nesterov: bool,
    /// How the learning rate falls.
    #[serde(default, skip_serializing_if = "ScheduleChoice::is_steps")]
    pub schedule: ScheduleChoice,
    /// Epochs in which the learning rate rises to its full height first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warm_up: f64,
    /// Whether one schedule spans all rounds, rather than one each round.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_schedule: bool,
    /// Shares of a round's epochs after which the learning rate falls, by steps.
    pub milestones: Vec<f64>,
    /// What it is multiplied by at each.
    pub decay_factor: f64,
}

/// How the learning rate falls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleChoice {
    /// At milestones.
    #[default]
    Steps,
    /// As a cosine, to zero.
    Cosine,
}

impl ScheduleChoice {
    fn is_steps(&self) -> bool {
        *self == ScheduleChoice::Steps
    }
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

fn one() -> f64 {
    1.0
}

fn is_one(value: &f64) -> bool {
    *value == 1.0
}

fn sigmas() -> (f64, f64) {
    (0.1, 2.0)
}

fn is_sigmas(value: &(f64, f64)) -> bool {
    *value == sigmas()
}

impl TrainingConfig {
    /// The optimiser; its rate is the scheduler's.
    pub fn optimiser(&self) -> Optimiser {
        Optimiser::Sgd {
            momentum: self.momentum as f32,
            nesterov: self.nesterov,
            decay: self.weight_decay as f32,
        }
    }
}

/// How the share of anchors grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CurriculumChoice {
    /// r/R in round r.
    Linear,
    /// All at once, from round 1.
    OneOff,
}

impl From<CurriculumChoice> for Curriculum {
    fn from(choice: CurriculumChoice) -> Self {
        match choice {
            CurriculumChoice::Linear => Curriculum::Linear,
            CurriculumChoice::OneOff => Curriculum::OneOff,
        }
    }
}

/// Which features of the training pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FeatureSource {
    /// The memory bank as training left it.
    Memory,
    /// Those the network gives now, without augmentation.
    Recomputed,
}

/// `[discovery]`: the method's own settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiscoveryConfig {
    /// τ of the loss and the entropy.
    pub temperature: f64,
    /// η: the share of the new feature in the memory.
    pub memory_rate: f64,
    /// k: neighbours of an anchor.
    pub neighbours: usize,
    /// How the share of anchors grows over the rounds.
    pub curriculum: CurriculumChoice,
    /// Which features neighbourhoods are discovered from.
    pub discover_from: FeatureSource,
}

/// `[augmentation]`: what the network sees of a picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AugmentationConfig {
    /// Least and greatest share of the area that a crop keeps.
    pub crop_scale: (f64, f64),
    /// Least and greatest width over height of a crop.
    pub crop_ratio: (f64, f64),
    /// Brightness is multiplied by 1 ± this.
    pub brightness: f64,
    /// Contrast is multiplied by 1 ± this.
    pub contrast: f64,
    /// Saturation is multiplied by 1 ± this.
    pub saturation: f64,
    /// Hue turns by up to this share of the circle.
    pub hue: f64,
    /// Probability that the four colour changes above are made at all.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub jitter: f64,
    /// Probability of turning grey.
    pub grey: f64,
    /// Probability of a Gaussian blur.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub blur: f64,
    /// Least and greatest standard deviation of it, in pixels.
    #[serde(default = "sigmas", skip_serializing_if = "is_sigmas")]
    pub blur_sigma: (f64, f64),
    /// Probability that bright values are turned dark.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub solarise: f64,
    /// Probability of being mirrored.
    pub flip: f64,
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

/// `[evaluation]`: how features are judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluationConfig {
    /// Neighbours that vote.
    pub k: usize,
    /// τ of their weights.
    pub temperature: f64,
    /// Which features of the training pictures vote.
    pub features: FeatureSource,
    /// Epochs between evaluations; a round's last epoch is always evaluated.
    pub every: usize,
}

impl EvaluationConfig {
    /// For the classifier.
    pub fn knn(&self) -> KnnOptions {
        KnnOptions {
            k: self.k,
            temperature: self.temperature as f32,
        }
    }
}

/// Which device: `auto`, `cpu`, `cuda` or `cuda:N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DeviceChoice {
    /// The first GPU that works, else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// An NVIDIA GPU by its number.
    Cuda(usize),
}

impl std::fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            DeviceChoice::Auto => f.write_str("auto"),
            DeviceChoice::Cpu => f.write_str("cpu"),
            DeviceChoice::Cuda(0) => f.write_str("cuda"),
            DeviceChoice::Cuda(n) => write!(f, "cuda:{n}"),
        }
    }
}

impl std::str::FromStr for DeviceChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let number = |n: &str| n.parse().ok().map(DeviceChoice::Cuda);
        let choice = match name {
            "auto" => Some(DeviceChoice::Auto),
            "cpu" => Some(DeviceChoice::Cpu),
            "cuda" => Some(DeviceChoice::Cuda(0)),
            _ => name.strip_prefix("cuda:").and_then(number),
        };
        choice.ok_or_else(|| format!("{name:?} is none of auto, cpu, cuda, cuda:N"))
    }
}

impl TryFrom<String> for DeviceChoice {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

impl From<DeviceChoice> for String {
    fn from(choice: DeviceChoice) -> String {
        choice.to_string()
    }
}

/// What numbers a GPU computes with; the CPU's are f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrecisionChoice {
    /// Activations in bf16, sums and weights in f32.
    #[default]
    Bf16,
    /// f32, with convolutions rounded to tf32.
    Tf32,
    /// f32.
    F32,
}

impl From<PrecisionChoice> for anchorhood_engine::Precision {
    fn from(choice: PrecisionChoice) -> Self {
        match choice {
            PrecisionChoice::Bf16 => anchorhood_engine::Precision::Bf16,
            PrecisionChoice::Tf32 => anchorhood_engine::Precision::Tf32,
            PrecisionChoice::F32 => anchorhood_engine::Precision::F32,
        }
    }
}

/// `[machine]`: where it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineConfig {
    /// Which device.
    pub device: DeviceChoice,
    /// What numbers a GPU computes with.
    #[serde(default)]
    pub precision: PrecisionChoice,
    /// Threads; 0 for as many as there are cores.
    pub threads: usize,
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
