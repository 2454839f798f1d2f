//! All settings of a run, each declared once: its type, its value in each preset, its range, its
//! flag and its help. How to read a line is said in `declare.rs`. Real numbers are f64 so that 0.03
//! is written as 0.03.

use anchorhood_models::{Backbone, RESNET10, RESNET18};
use serde::de::Error;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::methods::{AND, MethodSpec};

use super::Range::{
    Any, AtLeastOne, AtMost, Below, Between, NotNegative, Positive, Share, ShareBelowOne,
};
use super::declare::{absent, first, setting, settings};
use super::preset::Start;
use super::setting::long;
use super::value::{Read, Value, Write};
use super::{
    ColoursChoice, CropsChoice, CurriculumChoice, DeviceChoice, DiscoverChoice, FeatureSource,
    LabelsChoice, LossRows, OptimiserChoice, PrecisionChoice, ScheduleChoice, Setting, StemChoice,
    ValidateOn, ViewStatisticsChoice,
};

/// A likeness, from −1 to 1, is divided by it before e is raised to it: beyond these, gradients
/// leave f32's numbers or say nothing.
const TEMPERATURE: super::Range = Between(1e-3, 1e3);

settings! {
    /// All settings of a run.
    RunConfig, "Run" {
        /// Decides every random draw.
        seed: u64 = 0; [Any], flag long("seed").common();
    }

    /// `[method]`: how features are learnt; what is not named is Anchor Neighbourhood Discovery. A
    /// method reads those of the settings that its [`MethodSpec`] names, and begins with its own
    /// values for them.
    method: MethodConfig, "Method" {
        /// How to learn: anchorhood, by views and neighbourhoods (the default for photographs),
        /// and, Anchor Neighbourhood Discovery (the default for shapes and the paper), another
        /// method without labels, or supervised, from labels.
        name: &'static MethodSpec = &AND; [Any], flag long("method").common(), absent &AND;
        /// Views of each picture in a step [default: 4 for simsiam, else 2].
        views: usize = 2; [AtLeastOne, AtMost(64)], flag long("views").common(); unwritten;
        /// Batch norm's statistics over each view or over all [default: all for anchorhood and
        /// simclr].
        view_statistics: ViewStatisticsChoice = ViewStatisticsChoice::Each;
            [Any], flag long("view-statistics"); unwritten;
        /// Whether every second view is seldom blurred and at times solarised, and the others
        /// always blurred: true or false.
        views_differ: bool = false; [Any], flag long("views-differ").value("BOOL"); unwritten;
        /// Temperature of the contrastive loss.
        temperature: f64 = 0.5; [TEMPERATURE], flag long("temperature"); unwritten;
        /// Share of the momentum encoder (EMA) that a step keeps, at first; it rises to 1.
        momentum: f64 = 0.99; [Share], flag long("ema"); unwritten;
        /// Whether what is remembered comes from a momentum encoder, which sees one view more: true
        /// or false.
        momentum_rows: bool = false; [Any], flag long("momentum-rows").value("BOOL"); unwritten;
        /// Weight of the loss over the memory; the rest is that of the loss between views.
        memory_weight: f64 = 0.5;
            [Share, Positive], flag long("memory-weight").value("SHARE"); unwritten;
        /// Linear layers of the projector.
        projector_layers: usize = 2;
            [AtLeastOne, AtMost(16)], flag long("projector-layers").value("N"); unwritten;
        /// Values of the hidden layers of the projector, or of other heads.
        projector_width: usize = 2048;
            [AtLeastOne, AtMost(65_536)], flag long("projector-width").value("N"); unwritten;
        /// Values of the projector's result, or of what pictures are made of (bigan).
        projector_features: usize = 128;
            [AtLeastOne, AtMost(65_536)], flag long("projector-features").value("N"); unwritten;
        /// Whether the projector's hidden layers have a batch norm: true or false.
        projector_norm: bool = true; [Any], flag long("projector-norm").value("BOOL"); unwritten;
        /// Whether a predictor stands between the projector and the loss: true or false.
        predictor: bool = false; [Any], flag long("predictor").value("BOOL"); unwritten;
        /// Values of the predictor's hidden layer.
        predictor_width: usize = 512;
            [AtLeastOne, AtMost(65_536)], flag long("predictor-width").value("N"); unwritten;
        /// Clusters that pictures are divided into before every epoch, if there are as many
        /// pictures.
        clusters: usize = 100;
            [AtLeastOne, AtMost(65_536)], flag long("clusters").value("K"); unwritten;
        /// How far features are whitened: 0 leaves them, at 1 all their directions count alike.
        whiten: f64 = 0.0; [Share], flag long("whiten").value("POWER"); unwritten;
    }

    /// `[data]`: which pictures.
    data: DataConfig, "Data" {
        /// `shapes`, `cifar10`, `cifar100`, `cifar10:PATH` or the path of a folder.
        set: String = "shapes".into(); [Any];
        /// The folder that a `set` which is no whole path is seen from: the one the run was started
        /// in.
        seen_from: Option<String> = None; [Any];
        /// Resize pictures to so many pixels a side.
        size: Option<usize> = None; [AtLeastOne, AtMost(4096)], flag long("size").common();
        /// Pixels a side of the pictures that the finished model is given, whitened by those it
        /// learnt from: larger ones than it learnt with are often better, and take longer [default:
        /// five quarters of the size it learnt with where features are whitened; with --from, the
        /// model's own].
        embed_size: Option<usize> = None;
            [AtLeastOne, AtMost(4096)], flag long("embed-size").value("SIZE");
        /// Mean of each channel that pictures are normalised by; their own where there is none.
        /// That of a model a run begins from.
        mean: Vec<f64> = vec![]; [Share]; unwritten;
        /// Standard deviation of each channel, likewise.
        std: Vec<f64> = vec![]; [Share, Positive]; unwritten;
        /// At most so many training pictures.
        limit: Option<usize> = None; [AtLeastOne], flag long("limit").common();
        /// At most so many test pictures.
        test_limit: Option<usize> = None; [AtLeastOne], flag long("test-limit");
        /// What features are judged on: test (the default), or train:5000, so many training
        /// pictures held out.
        validate_on: ValidateOn = ValidateOn::Test;
            [AtLeastOne], flag long("validate-on").common().value("PICTURES"); unwritten;
        /// Share of a labelled folder held out for evaluation.
        held_out: f64 = 0.1; [ShareBelowOne], flag long("held-out").value("SHARE");
        /// Whether sub-folders of a folder are classes: auto (where they look like it), folders or
        /// none.
        labels: LabelsChoice = LabelsChoice::Auto; [Any], flag long("labels").common(); unwritten;
        /// What crops of a folder's pictures are cut from: picture (the whole, where it is larger;
        /// the default but for the paper preset), or square (the shrunk centre).
        crops: CropsChoice = CropsChoice::Square; [Any], flag long("crops"); unwritten;
        /// Training pictures drawn for `shapes`.
        shapes_train: usize = 50_000, quick 2_000;
            [AtLeastOne], flag long("shapes-train").value("N");
        /// Test pictures drawn for `shapes`.
        shapes_test: usize = 10_000, quick 1_000; [Any], flag long("shapes-test").value("N");
    }

    /// `[network]`: which network.
    network: NetworkConfig, "Network" {
        // Shapes are simple: a shallow and very narrow network learns them in a minute, and better
        // than ResNet18 in as many epochs. Photographs need a deeper and wider one.
        /// The network [default: resnet18; resnet10 for shapes in the preset quick].
        architecture: &'static Backbone = &RESNET18, shapes &RESNET10;
            [Any], flag long("network").common();
        /// Channels after its stem (64 as published).
        width: usize = RESNET18.width, quick 16, shapes 4;
            [AtLeastOne, AtMost(4096)], flag long("width").common();
        /// Its first layers: auto (as published for the size of the pictures), fast (from 48 to 127
        /// pixels at stride 2) [default: fast in the presets quick and strong where views are
        /// compared].
        stem: StemChoice = StemChoice::Auto; [Any], flag long("stem"); unwritten;
        /// What it sees of a picture's colours: rgb, lightness, or split (half of it lightness, the
        /// other half colour) [default: split for split-brain, lightness for colour].
        colours: ColoursChoice = ColoursChoice::Rgb; [Any], flag long("colours"); unwritten;
        /// Length of a feature vector.
        features: usize = 128; [AtLeastOne, AtMost(65_536)], flag long("features");
    }

    /// `[training]`: how long and how fast.
    training: TrainingConfig, "Training" {
        /// Rounds with neighbourhoods, after round 0 without.
        rounds: usize = 4, quick 2; [AtMost(10_000)], flag long("rounds").common();
        /// Epochs in each round [default, quick: up to 100, the fewer pictures the more, and on a
        /// CPU what five minutes have time for; 28 for shapes].
        epochs: usize = 200, quick 10, shapes 28; [AtLeastOne], flag long("epochs").common();
        /// Fine-tune a model instead of beginning from nothing: a run or checkpoint, `base`, or
        /// torchvision's or timm's ResNet weights. Network and size are its own.
        from: Option<String> = None; [Any], flag long("from").common().value("MODEL");
        /// Which model that is: its fingerprint.
        from_fingerprint: Option<String> = None; [Any];
        /// Epochs in which only the heads learn and the model stays as it is [default: 1 with
        /// --from].
        freeze_epochs: usize = 0; [Any], flag long("freeze-epochs").value("EPOCHS"); unwritten;
        /// What the learning rate is multiplied by for all that comes from the model [default: 0.03
        /// with --from].
        from_rate: f64 = 1.0; [Share, Positive], flag long("from-rate").value("FACTOR"); unwritten;
        // Small batches are quick's: in short runs the number of steps counts.
        /// Pictures in a batch.
        batch: usize = 128, quick 64, shapes 32; [AtLeastOne], flag long("batch").common();
        /// Whether batch norm's statistics are those of the whole batch, rather than of each
        /// process's part of it, where several processes train together: true or false.
        sync_norm: bool = false; [Any], flag long("sync-norm").value("BOOL"); unwritten;
        /// How weights move: sgd (the default), lars, for large batches, or adamw.
        optimiser: OptimiserChoice = OptimiserChoice::Sgd;
            [Any], flag long("optimiser").alias("optimizer"); unwritten;
        /// Learning rate at the start of each round.
        learning_rate: f64 = 0.03; [Positive], flag long("lr").common().alias("learning-rate");
        /// Share of the momentum that is kept (sgd, lars).
        momentum: f64 = 0.9;
            [Share, Below(1.0, "or nothing is ever forgotten")], flag long("momentum");
        /// Weight decay.
        weight_decay: f64 = 5e-4; [NotNegative], flag long("weight-decay").common();
        /// Whether momentum is Nesterov's: true or false (sgd, lars).
        nesterov: bool = true; [Any], flag long("nesterov").value("BOOL");
        /// How far a tensor moves, relative to its own length (lars).
        trust: f64 = 0.001; [Positive], flag long("trust"); unwritten;
        /// Shares of the mean gradient and of the mean squared gradient that are kept (adamw):
        /// 0.9,0.999.
        betas: (f64, f64) = (0.9, 0.999);
            [ShareBelowOne], flag long("betas").value("FIRST,SECOND"); unwritten;
        /// How the learning rate falls: at the milestones (the default), or as a cosine, to zero.
        schedule: ScheduleChoice = ScheduleChoice::Steps; [Any], flag long("schedule"); unwritten;
        /// Epochs in which the learning rate rises to its full height first.
        warm_up: f64 = 0.0; [NotNegative], flag long("warm-up").value("EPOCHS"); unwritten;
        /// Whether one schedule spans all rounds, rather than one each round: true or false.
        one_schedule: bool = false; [Any], flag long("one-schedule").value("BOOL"); unwritten;
        // The quick preset's rate falls late: there is little time to learn at the high one.
        /// Shares of a round's epochs after which the learning rate falls: 0.6,0.8.
        milestones: Vec<f64> = vec![0.6, 0.8], quick vec![0.8, 0.9];
            [Share], flag long("milestones").value("SHARES");
        /// What the learning rate is multiplied by at each milestone.
        decay_factor: f64 = 0.1; [Positive], flag long("decay-factor").value("FACTOR");
    }

    /// `[discovery]`: the settings of Anchor Neighbourhood Discovery.
    discovery: DiscoveryConfig, "Discovery" {
        /// τ: temperature of the loss and the entropy.
        temperature: f64 = 0.1; [TEMPERATURE], flag long("tau").common();
        /// η: share of the new feature in the memory.
        memory_rate: f64 = 0.5; [Share, Positive], flag long("eta");
        /// k: neighbours of an anchor.
        neighbours: usize = 1; [AtLeastOne], flag long("neighbours").common().short('k').value("K");
        /// How the share of anchors grows over the rounds.
        curriculum: CurriculumChoice = CurriculumChoice::Linear; [Any], flag long("curriculum");
        /// Which features neighbourhoods are discovered from.
        discover_from: FeatureSource = FeatureSource::Memory; [Any], flag long("discover-from");
        /// Share of the rounds that pass before neighbours count.
        begin: f64 = 0.0; [Share], flag long("discover-after").value("SHARE"); unwritten;
        /// Whether every neighbour counts as much, rather than the likeliest most: true or false.
        each: bool = false; [Any], flag long("count-each").value("BOOL"); unwritten;
        /// Whether the memory begins with the untrained network's features rather than with noise:
        /// true or false.
        fill: bool = false, shapes true; [Any], flag long("fill-memory").value("BOOL"); unwritten;
        /// How neighbourhoods are looked for: exact (among all pictures), approximate (in a few
        /// clusters of them; the share of true neighbours found is measured and told), or auto
        /// (exact up to 2 million pictures, the default).
        by: DiscoverChoice = DiscoverChoice::Auto; [Any], flag long("discover"); unwritten;
        /// Rows of the memory that a step's loss is over: exact (all, the default), or sampled:M,
        /// so many drawn in each step that stand for all, for memories too large to be looked
        /// through in every step (on CPUs).
        loss_rows: LossRows = LossRows::Exact;
            [AtLeastOne, AtMost(1 << 30)], flag long("loss-rows").value("ROWS"); unwritten;
    }

    /// `[augmentation]`: what the network sees of a picture.
    augmentation: AugmentationConfig, "Augmentation" {
        /// Least and greatest share of the area a crop keeps: 0.2,1.
        crop_scale: (f64, f64) = (0.2, 1.0);
            [Positive, Between(0.0, 1.0)], flag long("crop-scale").common().value("LOW,HIGH");
        /// Least and greatest width over height of a crop: 0.75,1.3333.
        crop_ratio: (f64, f64) = (0.75, 4.0 / 3.0);
            [Between(0.125, 8.0)], flag long("crop-ratio").value("LOW,HIGH");
        /// Brightness is multiplied by 1 ± this.
        brightness: f64 = 0.4; [Between(0.0, 10.0)], flag long("brightness");
        /// Contrast is multiplied by 1 ± this.
        contrast: f64 = 0.4; [Between(0.0, 10.0)], flag long("contrast");
        /// Saturation is multiplied by 1 ± this.
        saturation: f64 = 0.4; [Between(0.0, 10.0)], flag long("saturation");
        /// Hue turns by up to this share of the circle.
        hue: f64 = 0.4; [Between(0.0, 0.5)], flag long("hue");
        /// Probability that the four colour changes above are made at all.
        jitter: f64 = 1.0; [Share], flag long("jitter"); unwritten;
        /// Probability of turning grey.
        grey: f64 = 0.2; [Share], flag long("grey");
        /// Probability of a Gaussian blur.
        blur: f64 = 0.0; [Share], flag long("blur"); unwritten;
        /// Least and greatest standard deviation of the blur, in pixels: 0.1,2.
        blur_sigma: (f64, f64) = (0.1, 2.0);
            [Positive, Between(0.0, 10.0)], flag long("blur-sigma").value("LOW,HIGH"); unwritten;
        /// Probability that bright values are turned dark.
        solarise: f64 = 0.0; [Share], flag long("solarise"); unwritten;
        /// Probability of being mirrored.
        flip: f64 = 0.0; [Share], flag long("flip");
    }

    /// `[evaluation]`: how features are judged.
    evaluation: EvaluationConfig, "Evaluation" {
        /// Neighbours that vote in the kNN classifier.
        k: usize = 200; [AtLeastOne], flag long("knn-k").value("K");
        /// τ of their weights.
        temperature: f64 = 0.07; [TEMPERATURE], flag long("knn-tau").value("TAU");
        /// Which features of the training pictures vote.
        features: FeatureSource = FeatureSource::Memory; [Any], flag long("knn-features");
        /// Epochs between evaluations; a round's last epoch is always evaluated.
        every: usize = 10, quick 2, shapes 5;
            [AtLeastOne], flag long("evaluate-every").common().value("EPOCHS");
        /// Verdicts without labels, in a row, that are clearly worse than the best before training
        /// stops early; the model is then, and whenever this is above 0, the last that was not
        /// clearly worse. 0: the model is the last epoch's.
        patience: usize = 0, quick 3, shapes 0;
            [AtMost(1 << 20)], flag long("patience").value("N"); unwritten;
    }

    /// `[machine]`: where it runs; no result depends on it.
    machine: MachineConfig, "Run" {
        /// Where to run: auto, cpu, cuda, cuda:N, or on several GPUs, a process each, cuda:0,1 or
        /// cuda:all. auto takes a GPU when one works.
        device: DeviceChoice = DeviceChoice::Auto; [Any], flag long("device").common();
        /// What numbers a GPU computes with: bf16 (the default), tf32 or f32.
        precision: PrecisionChoice = PrecisionChoice::Bf16;
            [Any], flag long("precision").common(), absent PrecisionChoice::Bf16;
        /// Threads; 0 for one a core.
        threads: usize = 0; [AtMost(MachineConfig::MOST_THREADS)], flag long("threads").common();
    }
}

fn missing<'de, D: Deserializer<'de>>(name: &'static str) -> D::Error {
    D::Error::missing_field(name)
}
