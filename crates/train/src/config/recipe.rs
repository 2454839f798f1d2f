//! What a method begins with where nobody says otherwise: parts of a configuration file, for
//! pictures of about 32×32. Where they come from is said at the top of the method's file
//! (`crates/train/src/methods`).

use super::preset::Start;
use super::{MethodChoice, RunConfig};

/// Settings as a file has them.
type Recipe = &'static str;

/// Methods that compare views: one schedule from beginning to end, gentler colours, pictures
/// mirrored, no memory to judge by.
const VIEWS: Recipe = "
    training = { rounds = 0, schedule = 'cosine' }
    augmentation = { hue = 0.1, jitter = 0.8, flip = 0.5 }
    evaluation.features = 'recomputed'
";

/// Neighbours pay late: the first rounds are instance discrimination.
const ANCHORHOOD: Recipe = "
    training = { rounds = 9, one_schedule = true, batch = 256, learning_rate = 0.24, warm_up = 5 }
    augmentation.grey = 0.1
    method = { view_statistics = 'all', temperature = 0.2, memory_weight = 0.25 }
    discovery = { temperature = 0.2, neighbours = 5, each = true, begin = 0.5,
                  discover_from = 'recomputed', memory_rate = 1 }
";

/// Pictures of 64 pixels cost what those of 32 do.
const STRONG_VIEWS: Recipe = "
    network.stem = 'fast'
    method.whiten = 0.5
";

/// Ten rounds of 50 epochs: 500 epochs of two views.
const STRONG_ANCHORHOOD: Recipe = "
    training.epochs = 50
    evaluation.every = 25
";

/// Rounds that are not shorter than an epoch where there are many pictures, and of a few epochs
/// each, after which the features are judged: that embeds all pictures and takes as long as a third
/// of an epoch.
const QUICK_ANCHORHOOD: Recipe = "
    training.rounds = 4
    evaluation.every = 3
";

const SIMCLR: Recipe = "
    training = { batch = 512, learning_rate = 0.12, warm_up = 10 }
    augmentation.grey = 0.1
    method = { view_statistics = 'all', projector_width = 1024, projector_norm = false }
";

const SIMSIAM: Recipe = "
    training = { learning_rate = 0.06, nesterov = false }
    method = { views = 4, projector_features = 2048 }
";

const BYOL: Recipe = "
    training = { learning_rate = 0.06, nesterov = false }
    method = { projector_width = 4096, projector_features = 256, predictor_width = 4096 }
";

const NNCLR: Recipe = "
    training = { batch = 512, optimiser = 'lars', learning_rate = 0.8, trust = 0.02,
                 weight_decay = 1e-5, nesterov = false, warm_up = 10 }
    method = { temperature = 0.2, projector_features = 256, predictor_width = 4096 }
";

/// Methods that guess a part of a picture from another: one schedule, and colours as they are.
const PRETEXT: Recipe = "
    training = { rounds = 0, schedule = 'cosine', optimiser = 'adamw', learning_rate = 0.001,
                 weight_decay = 0.01 }
    augmentation = { jitter = 0, grey = 0, flip = 0.5 }
    evaluation.features = 'recomputed'
";

/// Puzzles of tiles: a mirrored picture's order is another one, and colour is not to tell it.
const TILES: Recipe = "
    augmentation = { crop_scale = [0.6, 1], grey = 0.3, flip = 0 }
    method.projector_width = 1024
";

/// As GANs are trained; most of a picture, so that there is less to be made.
const BIGAN: Recipe = "
    training = { learning_rate = 0.0002, betas = [0.5, 0.999], weight_decay = 2.5e-5 }
    augmentation.crop_scale = [0.67, 1]
    method.projector_width = 1024
";

const QUICK_TILES: Recipe = "method.projector_width = 256";

/// Few steps.
const QUICK_BIGAN: Recipe = "
    method.projector_width = 256
    training.learning_rate = 0.0005
";

/// In the quick preset's minutes on two cores: small heads for its narrow network, small batches as
/// its other methods have.
const QUICK_VIEWS: Recipe = "
    network.stem = 'fast'
    method = { whiten = 0.5, projector_width = 256, projector_features = 128,
               predictor_width = 128 }
    training = { batch = 64, learning_rate = 0.06, warm_up = 0 }
";

/// The same for the narrower network of `shapes`, which differ in outline and not in colour:
/// colours vary as much as they can.
const SHAPES_VIEWS: Recipe = "
    training.batch = 32
    augmentation = { hue = 0.4, jitter = 1, grey = 0.2, flip = 0 }
    method = { projector_width = 128, projector_features = 64, predictor_width = 64 }
";

const NOTHING: Recipe = "";

/// LARS measures tensors, and its rate is another one.
const QUICK_NNCLR: Recipe = "training.learning_rate = 0.1";

/// Methods that learn by labels or by a pretext task of their own, in one round; no memory to judge
/// by.
const TASK: Recipe = "
    training.rounds = 0
    evaluation.features = 'recomputed'
";

/// One rate throughout.
const DEEPCLUSTER: Recipe = "
    training = { batch = 256, learning_rate = 0.05, weight_decay = 1e-5, nesterov = false,
                 decay_factor = 1 }
    augmentation = { hue = 0.1, jitter = 0.8, flip = 0.5 }
";

/// Clusters of few pictures.
const SMALL_DEEPCLUSTER: Recipe = "
    training = { batch = 32, learning_rate = 0.02 }
    method.clusters = 50
";

const NAT: Recipe = "
    training = { batch = 256, learning_rate = 0.01 }
    augmentation = { hue = 0.1, jitter = 0.8, flip = 0.5 }
";

/// Few steps.
const SMALL_NAT: Recipe = "training = { batch = 32, learning_rate = 0.03 }";

/// Whole pictures, mostly: what is cut off is not counted.
const COUNTING: Recipe = "
    training = { optimiser = 'adamw', learning_rate = 0.0001, weight_decay = 0.01,
                 schedule = 'cosine' }
    augmentation = { crop_scale = [0.67, 1], hue = 0.1, grey = 0.67, flip = 0.5 }
";

/// Few steps, and of a narrow network, whose features change less in one.
const SMALL_COUNTING: Recipe = "training = { batch = 32, learning_rate = 0.001 }";

/// A pretext task's recipe, and what is different in minutes on two cores.
fn of_task(all: Recipe, own: Recipe, small: Recipe, start: Start) -> Vec<Recipe> {
    match start {
        Start::Paper | Start::Strong => vec![all, own],
        Start::Quick | Start::Shapes => vec![all, own, small],
    }
}

impl MethodChoice {
    fn recipe(self, start: Start) -> Vec<Recipe> {
        let (own, strong, quick) = match self {
            MethodChoice::SplitBrain => return vec![PRETEXT, "network.colours = 'split'"],
            MethodChoice::Colour => return vec![PRETEXT, "network.colours = 'lightness'"],
            MethodChoice::Jigsaw | MethodChoice::Context => {
                return of_task(PRETEXT, TILES, QUICK_TILES, start);
            }
            MethodChoice::BiGan => return of_task(PRETEXT, BIGAN, QUICK_BIGAN, start),
            MethodChoice::And => return vec![],
            MethodChoice::Instance => return vec!["training.rounds = 0"],
            MethodChoice::Supervised => return vec![TASK],
            MethodChoice::DeepCluster => {
                return of_task(TASK, DEEPCLUSTER, SMALL_DEEPCLUSTER, start);
            }
            MethodChoice::Nat => return of_task(TASK, NAT, SMALL_NAT, start),
            MethodChoice::Counting => return of_task(TASK, COUNTING, SMALL_COUNTING, start),
            MethodChoice::Anchorhood => (ANCHORHOOD, STRONG_ANCHORHOOD, QUICK_ANCHORHOOD),
            MethodChoice::SimClr => (SIMCLR, NOTHING, NOTHING),
            MethodChoice::SimSiam => (SIMSIAM, NOTHING, NOTHING),
            MethodChoice::Byol => (BYOL, NOTHING, NOTHING),
            MethodChoice::NnClr => (NNCLR, NOTHING, QUICK_NNCLR),
        };
        match start {
            Start::Paper => vec![VIEWS, own],
            Start::Strong => vec![VIEWS, own, STRONG_VIEWS, strong],
            Start::Quick => vec![VIEWS, own, QUICK_VIEWS, quick],
            Start::Shapes => vec![VIEWS, own, QUICK_VIEWS, SHAPES_VIEWS, quick],
        }
    }
}

impl RunConfig {
    /// With a method and its recipe.
    pub(super) fn by(mut self, method: MethodChoice, start: Start) -> RunConfig {
        self.method.name = method;
        for recipe in method.recipe(start) {
            let with = self.overlaid(recipe, "a recipe");
            self = with.expect("a recipe names settings and values there are");
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::Preset;
    use super::*;

    #[test]
    fn every_recipe_can_be() {
        for name in MethodChoice::NAMES {
            let method: MethodChoice = name.parse().unwrap();
            for preset in Preset::ALL {
                for set in ["shapes", "cifar10"] {
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
    fn and_is_what_the_preset_is() {
        for preset in Preset::ALL {
            let by = preset.config_for("shapes", MethodChoice::And);
            assert_eq!(by, preset.config("shapes"));
            assert_ne!(by, preset.config_for("shapes", MethodChoice::Anchorhood));
        }
    }
}
