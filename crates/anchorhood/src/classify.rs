//! A few labels carried to all images of an index, which to label next, and which are wrong.

use anchorhood_index::curate::{
    Guess, WrongLabel, classify, classify_logistic, label_next, leave_one_out, wrong_labels,
};
use anchorhood_index::{GivenLabels, numbered_classes};

use crate::error::usage;
use crate::{Error, Index};

/// Labels up to which a logistic regression takes seconds.
const FEW: usize = 10_000;

/// How classes are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Classifier {
    /// Logistic up to 10,000 labels, kNN beyond.
    #[default]
    Auto,
    /// The nearest labelled images vote.
    Knn,
    /// A logistic regression on all labelled images.
    Logistic,
}

impl Classifier {
    /// The one of a name: `auto`, `knn`, `logistic`.
    pub fn named(name: &str) -> Option<Classifier> {
        match name {
            "auto" => Some(Classifier::Auto),
            "knn" => Some(Classifier::Knn),
            "logistic" => Some(Classifier::Logistic),
            _ => None,
        }
    }

    /// The one that is meant with so many labels.
    pub fn with(self, labels: usize) -> Classifier {
        match (self, labels) {
            (Classifier::Auto, 0..=FEW) => Classifier::Logistic,
            (Classifier::Auto, _) => Classifier::Knn,
            (by, _) => by,
        }
    }
}

/// An index of which some images have a class.
pub struct LabelledIndex<'a> {
    index: &'a Index,
    classes: Vec<String>,
    given: Vec<Option<u32>>,
}

impl<'a> LabelledIndex<'a> {
    /// With these labels, or with its sub-folders' where there are none.
    pub fn new(index: &'a Index, labels: Option<&GivenLabels>) -> Result<Self, Error> {
        let parts = index.parts().parts();
        match labels {
            Some(labels) => {
                LabelledIndex::of(index, &labels.of(&parts.names, &index.parts().folders())?)
            }
            None => LabelledIndex::of(index, &parts.classes),
        }
    }

    /// With a label, or none, for each image.
    pub fn of(index: &'a Index, named: &[Option<String>]) -> Result<Self, Error> {
        if named.iter().all(Option::is_none) {
            return Err(usage!(
                "{}: its sub-folders are no classes; give the labels with --labels",
                index.folders()
            ));
        }
        let (classes, given) = numbered_classes(named);
        let classes = classes.into_iter().cloned().collect();
        Ok(LabelledIndex { index, classes, given })
    }

    /// The images.
    pub fn index(&self) -> &'a Index {
        self.index
    }

    /// The names of the classes, by number.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The name of a class.
    pub fn class(&self, number: u32) -> &str {
        &self.classes[number as usize]
    }

    /// The class of each image that has one, by number.
    pub fn given(&self) -> &[Option<u32>] {
        &self.given
    }

    /// How many images have one.
    pub fn labels(&self) -> usize {
        self.given.iter().flatten().count()
    }

    /// A class for each image, with how sure it is.
    pub fn classify(&self, by: Classifier, k: usize) -> Result<Vec<Guess>, Error> {
        let (vectors, dim) = (self.index.vectors()?, self.index.dim());
        let device = self.index.device();
        device.within(|| {
            let votes = classify(device, vectors, dim, &self.given, k, &|_| {})?;
            Ok(match by.with(self.labels()) {
                Classifier::Auto | Classifier::Knn => votes,
                Classifier::Logistic => classify_logistic(vectors, dim, &self.given, &votes),
            })
        })
    }

    /// How many of the given labels would be guessed right by the others, as a share.
    pub fn leave_one_out(&self, guesses: &[Guess]) -> f64 {
        leave_one_out(&self.given, guesses)
    }

    /// The images without a label whose labels would help most, the most helpful first.
    pub fn label_next(&self, guesses: &[Guess], count: usize) -> Result<Vec<usize>, Error> {
        let (vectors, dim) = (self.index.vectors()?, self.index.dim());
        Ok(label_next(vectors, dim, &self.given, guesses, count))
    }

    /// The labels that are contradicted by the images most like theirs, the likeliest wrong first.
    pub fn wrong_labels(&self, k: usize) -> Result<Vec<WrongLabel>, Error> {
        let (vectors, dim) = (self.index.vectors()?, self.index.dim());
        let device = self.index.device();
        Ok(device.within(|| wrong_labels(device, vectors, dim, &self.given, k, &|_| {}))?)
    }
}
