//! What a small set is learnt best by: the fine-grained sets of Table 3 have 6,000 to 12,000
//! pictures, which a network knows by heart before the last round. Each row is one freedom that the
//! paper leaves.

use anchorhood_models::RESNET18;

use crate::{Entry, Experiment, Plot, Protocol, Settings, Subject, System};

/// A folder of pictures in sub-folders by class, or in such below `train/` and `val/`, beside the
/// other sets.
pub const SMALL_SET: &str = "tiny-imagenet";
/// Pictures of it that are learnt from and judged on, and their side, which is half of those on
/// disk.
pub(crate) const PICTURES: usize = 6_000;
pub(crate) const TEST_PICTURES: usize = 5_000;
pub(crate) const SIDE: usize = 32;

const WHOLE: (&str, &str) = ("data.crops", "picture");
const MIRRORED: (&str, &str) = ("augmentation.flip", "0.5");
const DECAY: (&str, &str) = ("training.weight_decay", "0.005");
const PAPERS_STEPS: (&str, &str) = ("training.milestones", "0.4,0.6,0.8");
const COSINE: (&str, &str) = ("training.schedule", "cosine");

/// What won, which `table3` has.
pub(crate) const BEST: Settings = &[WHOLE, MIRRORED, DECAY];

/// The rows, and what is otherwise in each.
const ROWS: [(&str, Settings); 8] = [
    ("as on CIFAR", &[]),
    ("crops from the whole picture", &[WHOLE]),
    ("mirrored", &[MIRRORED]),
    ("ten times the weight decay", &[DECAY]),
    ("rate falls as the paper's text says", &[PAPERS_STEPS]),
    ("rate falls as a cosine", &[COSINE]),
    ("whole pictures, mirrored", &[WHOLE, MIRRORED]),
    ("whole pictures, mirrored, ten times the decay", BEST),
];

pub(crate) fn small_set() -> Experiment {
    let columns = [("Instance", System::Instance), ("AND", System::AND)];
    let cells = ROWS.into_iter().flat_map(|(row, settings)| {
        columns.map(|(column, method)| {
            let subject =
                Subject { set: SMALL_SET, network: &RESNET18, method, epochs: 200, settings };
            Entry {
                row: row.into(),
                column,
                ours: Some((subject, Protocol::Knn)),
                paper: None,
                x: None,
            }
        })
    });
    Experiment {
        name: "smallset",
        title: "Few pictures",
        place: "beside Table 3",
        notes: &[
            "6,000 pictures of the folder tiny-imagenet, seen at 32×32 pixels, stand for the \
             fine-grained sets, which are as small; 5,000 others are judged by weighted kNN on FC.",
            "Each row has one setting, which the paper leaves open, otherwise than the first, or \
             several. results.json has the accuracy after every round.",
        ],
        plot: Plot::Bars,
        entries: cells.collect(),
    }
}
