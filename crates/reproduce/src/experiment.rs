//! An experiment as data: which runs, how judged, and what the paper has in their place.

use anchorhood_models::Backbone;
use anchorhood_train::{CurriculumChoice, MethodSpec};

use crate::ReproduceError;

/// One table or figure of the paper.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// What the user types.
    pub name: &'static str,
    /// What it asks.
    pub title: &'static str,
    /// Where it is in the paper.
    pub place: &'static str,
    /// What has to be said of it, beside the figures.
    pub notes: &'static [&'static str],
    /// How it is drawn.
    pub plot: Plot,
    /// Its cells, row by row.
    pub entries: Vec<Entry>,
}

/// How results are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plot {
    /// A bar for each cell, the paper's beside ours.
    Bars,
    /// A line over a number that each row has; the axis is called so.
    Line(&'static str),
    /// Consistent and inconsistent neighbourhoods over the rounds.
    Quality,
    /// Strips of pictures.
    Attention,
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its row.
    pub row: String,
    /// Its column.
    pub column: &'static str,
    /// Whose features, and by which protocol; none where only the paper has a figure.
    pub ours: Option<(Subject, Protocol)>,
    /// The paper's figure, in percent.
    pub paper: Option<f64>,
    /// The number of a [`Plot::Line`].
    pub x: Option<f64>,
}

impl Entry {
    /// Whether it is of a row by its name, or by what follows the name of a group in it: `kNN / FC:
    /// AND`, `AND`.
    pub fn is_of(&self, row: &str) -> bool {
        let own = self.row.split_once(": ").map(|(_, own)| own);
        self.row == row || own == Some(row)
    }
}

/// Whose features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// A published set.
    pub set: &'static str,
    /// The network.
    pub network: &'static Backbone,
    /// How it is trained.
    pub method: System,
    /// The paper's epochs a round.
    pub epochs: usize,
    /// What is otherwise than in the paper.
    pub settings: Settings,
}

/// Settings of a run by their names, and their values as text.
pub type Settings = &'static [(&'static str, &'static str)];

/// How a network is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// The paper's.
    And {
        /// k.
        neighbours: usize,
        /// R.
        rounds: usize,
        /// How anchors are chosen.
        curriculum: CurriculumChoice,
        /// What the first neighbourhoods are discovered in.
        start: Start,
    },
    /// Every picture on its own: round 0 alone.
    Instance,
    /// Not at all.
    Untrained,
    /// On labels.
    Supervised,
    /// A rival of the paper's, by its own recipe.
    Rival(&'static MethodSpec),
}

/// What the first neighbourhoods are discovered in (Table 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The memory after round 0.
    Instance,
    /// The features of a network nobody trained; there is no round 0.
    Random,
}

impl System {
    /// The paper's settings: k = 1, R = 4, linear, after round 0.
    pub const AND: System = System::And {
        neighbours: 1,
        rounds: 4,
        curriculum: CurriculumChoice::Linear,
        start: Start::Instance,
    };
}

/// How features are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Weighted kNN on the features (FC).
    Knn,
    /// A linear classifier on a layer.
    Linear(&'static str),
}

impl Protocol {
    /// As a file name.
    pub fn name(self) -> String {
        match self {
            Protocol::Knn => "knn".into(),
            Protocol::Linear(layer) => format!("linear-{layer}"),
        }
    }

    /// In words.
    pub fn describe(self) -> String {
        match self {
            Protocol::Knn => "weighted kNN on FC".into(),
            Protocol::Linear(layer) => format!("linear classifier on {layer}"),
        }
    }
}

impl Experiment {
    /// That there are rows of these names.
    pub(crate) fn check_rows(&self, names: &[String]) -> Result<(), ReproduceError> {
        let is_there = |name: &str| self.entries.iter().any(|e| e.is_of(name));
        match names.iter().find(|name| !is_there(name)) {
            None => Ok(()),
            Some(row) => Err(ReproduceError::UnknownRow {
                experiment: self.name,
                row: row.clone(),
                known: self.rows().join("; "),
            }),
        }
    }

    /// Rows, in the order they first come.
    pub fn rows(&self) -> Vec<&str> {
        distinct(self.entries.iter().map(|e| e.row.as_str()))
    }

    /// Columns, likewise.
    pub fn columns(&self) -> Vec<&str> {
        distinct(self.entries.iter().map(|e| e.column))
    }
}

pub(crate) fn distinct<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = vec![];
    for one in all {
        if !seen.contains(&one) {
            seen.push(one);
        }
    }
    seen
}
