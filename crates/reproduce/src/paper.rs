//! The figures that the paper (Huang, Dong, Gong and Zhu, ICML 2019) prints, in percent, copied as
//! they stand there.
//!
//! Figures 4, 5 and 6 of the paper are drawings without printed numbers; of these only what the
//! text says is here.

/// Where the paper has a dash, or nothing.
pub const DASH: f64 = f64::NAN;

/// A figure, if it is one.
pub fn figure(printed: f64) -> Option<f64> {
    (!printed.is_nan()).then_some(printed)
}

/// Table 1, weighted kNN on FC: CIFAR10, CIFAR100, SVHN.
pub const TABLE_1_KNN: [(&str, [f64; 3]); 6] = [
    ("Split-Brain", [11.7, 1.3, 19.7]),
    ("Counting", [41.7, 15.9, 43.4]),
    ("DeepCluster", [62.3, 22.7, 84.9]),
    ("Instance", [60.3, 32.7, 79.8]),
    ("AND", [74.8, 41.5, 90.9]),
    ("Supervised", [91.9, 69.7, 96.5]),
];

/// Table 1, linear classifier on conv5: CIFAR10, CIFAR100, SVHN.
pub const TABLE_1_LINEAR: [(&str, [f64; 3]); 6] = [
    ("Split-Brain", [67.1, 39.0, 77.3]),
    ("Counting", [50.9, 18.2, 63.4]),
    ("DeepCluster", [77.9, 41.9, 92.0]),
    ("Instance", [70.1, 39.4, 89.3]),
    ("AND", [77.6, 47.9, 93.7]),
    ("Supervised", [91.8, 71.0, 96.1]),
];

/// Table 2, ImageNet: a linear classifier on conv1 … conv5 and FC, then weighted kNN on FC.
pub const TABLE_2: [(&str, [f64; 7]); 12] = [
    ("Random", [11.6, 17.1, 16.9, 16.3, 14.1, 12.0, 3.5]),
    ("Supervised", [19.3, 36.3, 44.2, 48.3, 50.5, DASH, DASH]),
    ("Context", [17.5, 23.0, 24.5, 23.2, 20.6, 30.4, DASH]),
    ("BiGAN", [17.7, 24.5, 31.0, 29.9, 28.0, 32.2, DASH]),
    ("Colour", [13.1, 24.8, 31.0, 32.6, 31.8, 35.2, DASH]),
    ("Jigsaw", [19.2, 30.1, 34.7, 33.9, 28.3, 38.1, DASH]),
    ("NAT", [DASH, DASH, DASH, DASH, DASH, 36.0, DASH]),
    ("Counting", [18.0, 30.6, 34.3, 32.5, 25.7, DASH, DASH]),
    ("Split-Brain", [17.7, 29.3, 35.4, 35.2, 32.8, DASH, 11.8]),
    ("DeepCluster", [13.4, 32.3, 41.0, 39.6, 38.2, DASH, 26.8]),
    ("Instance", [16.8, 26.5, 31.8, 34.1, 35.6, DASH, 31.3]),
    ("AND", [15.6, 27.0, 35.9, 39.7, 37.9, 36.7, 31.3]),
];

/// Table 3, ResNet18: CUB200, Dogs.
pub const TABLE_3: [(&str, [f64; 2]); 2] = [("Instance", [11.6, 27.0]), ("AND", [14.4, 32.3])];

/// Table 4, CIFAR10: AlexNet, ResNet18, ResNet101.
pub const TABLE_4: [f64; 3] = [74.8, 86.3, 88.4];

/// ImageNet in the text under "Backbone network": AlexNet, ResNet18.
pub const BACKBONE_IMAGENET: [f64; 2] = [31.3, 41.2];

/// Table 5, CIFAR10: random start, Instance start.
pub const TABLE_5: [f64; 2] = [85.7, 86.3];

/// Table 6, CIFAR10: one-off, curriculum.
pub const TABLE_6: [f64; 2] = [84.2, 86.3];

/// The text under "Curriculum round", CIFAR10: 50 and 100 epochs a round.
pub const EPOCHS: [f64; 2] = [83.3, 84.8];

/// ResNet18 on CIFAR10 at the paper's defaults.
pub const DEFAULTS: f64 = 86.3;
