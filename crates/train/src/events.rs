//! What happens in a run, as it happens. A library user subscribes; the command line draws;
//! `metrics.jsonl` keeps.
//!
//! In all events `round`, `epoch` (of the round) and `batch` count from 0; `rounds` are those after
//! round 0, which has no neighbourhoods, and `epochs` those of each round; `pictures` are those
//! trained on, and `seconds` are how long it took, where nothing else is said.

#![allow(missing_docs)] // of fields: above

use crate::evaluation::{Accuracy, Consistency, LabelFree};
pub use crate::methods::PretextFigure as PretextShare;
use serde::{Deserialize, Serialize};

use crate::Position;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The time there is was turned into epochs, before a run begins; not kept, but the epochs are,
    /// as a setting.
    TimeFitted(TimeFitted),
    /// Training begins, or goes on.
    RunStarted(RunStarted),
    /// Something the user should know, and nothing stops.
    Warning { message: String },
    /// Something that is good to know; not kept.
    Note { message: String },
    /// Images are read before a run begins; not kept.
    Loading {
        /// So many are.
        done: usize,
        /// How many there are.
        pictures: usize,
    },
    /// A round begins.
    RoundStarted {
        /// Which, from 0.
        round: usize,
        /// The last one.
        rounds: usize,
    },
    /// A step of discovery; not kept.
    Discovering {
        round: usize,
        /// Pictures compared with all others so far.
        done: usize,
        /// How many there are.
        pictures: usize,
    },
    /// Neighbourhoods were found.
    Discovered(Discovered),
    /// Some steps were taken; not kept.
    Progress(Progress),
    /// All pictures were seen once more.
    EpochEnded(EpochEnded),
    /// How well a method did in an epoch what it is taught by.
    Pretext(PretextMeasured),
    /// Features were judged, on labels that training never sees.
    Evaluated(Evaluated),
    /// Features were judged without labels.
    LabelFree(LabelFreeEvaluated),
    /// Training ends before its last epoch, since verdicts without labels have become worse.
    StoppedEarly(StoppedEarly),
    /// The run can be resumed from here; not kept.
    CheckpointSaved {
        path: String,
        /// Where the run will go on.
        position: Position,
    },
    /// The last round ended.
    RunEnded(RunEnded),
}

impl Event {
    /// Something that is good to know.
    pub fn note(message: impl Into<String>) -> Event {
        Event::Note { message: message.into() }
    }

    /// Something the user should know.
    pub fn warning(message: impl Into<String>) -> Event {
        Event::Warning { message: message.into() }
    }

    /// Whether `metrics.jsonl` keeps it.
    pub fn is_kept(&self) -> bool {
        !matches!(
            self,
            Event::TimeFitted(_)
                | Event::Note { .. }
                | Event::Loading { .. }
                | Event::Progress(_)
                | Event::Discovering { .. }
                | Event::CheckpointSaved { .. }
        )
    }
}

/// How much training there is time for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeFitted {
    /// The time there is, from the program's start to its end.
    pub minutes: f64,
    /// Pictures trained on a second, as measured.
    pub pictures_per_second: f64,
    pub rounds: usize,
    pub epochs: usize,
    /// Epochs of the warm-up.
    pub warm_up: f64,
    /// Whether that is shorter than it was to be.
    pub shortened: bool,
}

/// What is trained on what, where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    pub version: String,
    /// The device, in words.
    pub device: String,
    pub data: String,
    pub pictures: usize,
    /// Their pixels a side.
    pub size: usize,
    /// Labelled pictures that features are judged on; 0 if there are no labels.
    pub test_pictures: usize,
    /// Whether these were held out of the training pictures, and the test pictures are not looked
    /// at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub validation: bool,
    /// The network, in words.
    pub network: String,
    /// Weights it trains.
    pub weights: usize,
    pub batch: usize,
    pub rounds: usize,
    pub epochs: usize,
    pub seed: u64,
    /// The model it began from, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Where it goes on, when it was resumed.
    pub resumed: Option<Position>,
}

/// What discovery found before a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Discovered {
    pub round: usize,
    /// Pictures whose neighbourhood counts in this round.
    pub anchors: usize,
    /// Pictures in all.
    pub pictures: usize,
    /// Neighbours of each anchor.
    pub k: usize,
    /// Mean entropy of all pictures.
    pub mean_entropy: f64,
    /// Mean entropy of the anchors.
    pub anchor_entropy: f64,
    /// The share of true neighbours that were found, of some pictures, where discovery was
    /// approximate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall: Option<f64>,
    /// How often neighbours carry the anchor's label, where there are labels.
    pub consistency: Option<Consistency>,
    pub seconds: f64,
}

/// How far the run is within an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    pub round: usize,
    pub epoch: usize,
    pub batch: usize,
    /// Batches in an epoch.
    pub batches: usize,
    /// Mean loss of the epoch so far.
    pub loss: f64,
    /// Speed since the last report.
    pub pictures_per_second: f64,
    /// Training time left in the whole run, at this speed.
    pub seconds_left: f64,
}

/// One epoch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochEnded {
    pub round: usize,
    pub epoch: usize,
    pub epochs: usize,
    /// Mean loss.
    pub loss: f64,
    /// The learning rate.
    pub rate: f64,
    pub pictures_per_second: f64,
    pub seconds: f64,
}

/// How well a method did in an epoch what it is taught by: its pretext task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PretextMeasured {
    pub round: usize,
    pub epoch: usize,
    /// The task's own figures.
    pub figures: Vec<PretextShare>,
}

/// Whose features were judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Subject {
    /// The pixels themselves: the floor.
    RawPixels,
    /// The network as it was drawn: the other floor.
    Untrained,
    /// The model that the run began from, as it was: what fine-tuning must beat.
    Before,
    /// The network after an epoch.
    Trained { round: usize, epoch: usize },
    /// The run's model as it is used: given pictures of another size than it learnt with.
    Model {
        /// Pixels a side.
        size: usize,
    },
}

/// An evaluation, on the test pictures or on those a run is validated on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluated {
    #[serde(flatten)]
    pub subject: Subject,
    /// How good they are.
    #[serde(flatten)]
    pub accuracy: Accuracy,
    pub seconds: f64,
}

/// An evaluation without labels, by pictures and two changed copies of each.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelFreeEvaluated {
    #[serde(flatten)]
    pub subject: Subject,
    /// How good they are; verdicts go by their score.
    #[serde(flatten)]
    pub figures: LabelFree,
    /// Whether the run's model is the network as it is now; not said of a run that keeps the last
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<bool>,
    pub seconds: f64,
}

/// The end of a run before its last epoch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoppedEarly {
    /// The last epoch's round, from 0.
    pub round: usize,
    /// The last epoch, from 0.
    pub epoch: usize,
    /// Verdicts in a row that were clearly worse than the best.
    pub worse: usize,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEnded {
    /// How long the run took, over all its parts, evaluations included.
    pub seconds: f64,
    /// Mean loss of the last epoch.
    pub loss: f64,
    /// The last epoch's accuracy: the headline.
    pub last: Option<Accuracy>,
    /// The best accuracy of any epoch, by the same accuracy: not a fair figure, shown beside it.
    pub best: Option<Accuracy>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_evaluation_is_one_flat_object() {
        let subject = Subject::Trained { round: 1, epoch: 4 };
        let accuracy = Accuracy { top1: 0.5, top5: None, n: 10, k: 3, temperature: 0.07 };
        let figures = LabelFree {
            pictures: 10,
            found: 0.5,
            agreement: 0.5,
            score: 0.5,
            effective_rank: 2.0,
            uniformity: -1.5,
        };
        for (event, expected) in [
            (
                Event::Evaluated(Evaluated { subject, accuracy, seconds: 0.25 }),
                r#"{"event":"evaluated","of":"trained","round":1,"epoch":4,"top1":0.5,"top5":null,
                    "n":10,"k":3,"temperature":0.07,"seconds":0.25}"#,
            ),
            (
                Event::LabelFree(LabelFreeEvaluated {
                    subject,
                    figures,
                    chosen: None,
                    seconds: 0.25,
                }),
                r#"{"event":"label_free","of":"trained","round":1,"epoch":4,"pictures":10,
                    "found":0.5,"agreement":0.5,"score":0.5,"effective_rank":2.0,
                    "uniformity":-1.5,"seconds":0.25}"#,
            ),
        ] {
            let text = serde_json::to_string(&event).unwrap();
            assert_eq!(text, expected.lines().map(str::trim).collect::<String>());
            assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
        }
    }
}
