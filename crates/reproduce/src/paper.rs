//! The figures that the paper (Huang, Dong, Gong and Zhu, ICML 2019) prints, in percent, copied as
//! they stand there.
//!
//! Figures 4, 5 and 6 of the paper are drawings without printed numbers; of these only what the
//! text says is here.

/// A figure, or a dash in the paper.
pub type Figure = Option<f64>;

const fn some<const N: usize>(all: [f64; N]) -> [Figure; N] {
    let mut out = [None; N];
    let mut i = 0;
    while i < N {
        out[i] = Some(all[i]);
        i += 1;
    }
    out
}

/// Table 1, weighted kNN on FC: CIFAR10, CIFAR100, SVHN.
pub const TABLE_1_KNN: [(&str, [Figure; 3]); 6] = [
    ("Split-Brain", some([11.7, 1.3, 19.7])),
    ("Counting", some([41.7, 15.9, 43.4])),
    ("DeepCluster", some([62.3, 22.7, 84.9])),
    ("Instance", some([60.3, 32.7, 79.8])),
    ("AND", some([74.8, 41.5, 90.9])),
    ("Supervised", some([91.9, 69.7, 96.5])),
];

/// Table 1, linear classifier on conv5: CIFAR10, CIFAR100, SVHN.
pub const TABLE_1_LINEAR: [(&str, [Figure; 3]); 6] = [
    ("Split-Brain", some([67.1, 39.0, 77.3])),
    ("Counting", some([50.9, 18.2, 63.4])),
    ("DeepCluster", some([77.9, 41.9, 92.0])),
    ("Instance", some([70.1, 39.4, 89.3])),
    ("AND", some([77.6, 47.9, 93.7])),
    ("Supervised", some([91.8, 71.0, 96.1])),
];

const NONE: Figure = None;
const fn f(figure: f64) -> Figure {
    Some(figure)
}

/// Table 2, ImageNet: a linear classifier on conv1 … conv5 and FC, then weighted kNN on FC.
pub const TABLE_2: [(&str, [Figure; 7]); 12] = [
    ("Random", some([11.6, 17.1, 16.9, 16.3, 14.1, 12.0, 3.5])),
    ("Supervised", [f(19.3), f(36.3), f(44.2), f(48.3), f(50.5), NONE, NONE]),
    ("Context", [f(17.5), f(23.0), f(24.5), f(23.2), f(20.6), f(30.4), NONE]),
    ("BiGAN", [f(17.7), f(24.5), f(31.0), f(29.9), f(28.0), f(32.2), NONE]),
    ("Colour", [f(13.1), f(24.8), f(31.0), f(32.6), f(31.8), f(35.2), NONE]),
    ("Jigsaw", [f(19.2), f(30.1), f(34.7), f(33.9), f(28.3), f(38.1), NONE]),
    ("NAT", [NONE, NONE, NONE, NONE, NONE, f(36.0), NONE]),
    ("Counting", [f(18.0), f(30.6), f(34.3), f(32.5), f(25.7), NONE, NONE]),
    ("Split-Brain", [f(17.7), f(29.3), f(35.4), f(35.2), f(32.8), NONE, f(11.8)]),
    ("DeepCluster", [f(13.4), f(32.3), f(41.0), f(39.6), f(38.2), NONE, f(26.8)]),
    ("Instance", [f(16.8), f(26.5), f(31.8), f(34.1), f(35.6), NONE, f(31.3)]),
    ("AND", some([15.6, 27.0, 35.9, 39.7, 37.9, 36.7, 31.3])),
];

/// Table 3, ResNet18: CUB200, Dogs.
pub const TABLE_3: [(&str, [Figure; 2]); 2] =
    [("Instance", some([11.6, 27.0])), ("AND", some([14.4, 32.3]))];

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
