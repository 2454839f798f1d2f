//! Split-brain autoencoders: *Split-Brain Autoencoders: Unsupervised Learning by Cross-Channel
//! Prediction* (Zhang et al., CVPR 2017).
//!
//! The network is two halves that do not see each other: one is given the picture's lightness and
//! guesses its colour, the other is given its colour and guesses its lightness. Guesses are
//! classes: at each place p of the picture, with the logits l of a half,
//!
//! ```text
//! ℓ_p = − ln [ exp(l_c) / Σ_k exp(l_k) ]      c: the fixed value of ab (or L) nearest to that of p
//! ```
//!
//! and the loss is the mean over places, of both halves added up. The halves' vectors, side by
//! side, are judged.
//!
//! Recipe for 32×32: AdamW at 0.001 (the authors have Adam for colour), batch 128, weight decay
//! 0.01, cosine, one schedule; crops of 0.2 to 1, mirrored; no change of colour, which is what is
//! to be guessed.
//!
//! Adapted: the paper's halves are convolutional to the end, and guess each place from its
//! surroundings; here a linear layer guesses all 8×8 places from the half's vector, so that the
//! vector that is judged is what learns. 121 classes of ab and 50 of L (the paper: 313 and 100).

use anchorhood_engine::{Batch, Device, Graph, Network, Result, Stream};

use crate::config::ColoursChoice;
use crate::methods::classifier::Classifier;
use crate::methods::colour_classes::{ColourClasses, Part, places};
use crate::methods::recipes::pretext;
use crate::methods::{Method, MethodSpec, PretextFigure, Setup, StateDict};

/// Guess colour from lightness and lightness from colour, by a half of the network each.
pub static SPLIT_BRAIN: MethodSpec = MethodSpec {
    name: "split-brain",
    summary: "Guess colour from lightness and lightness from colour, by a half of the network each",
    reference: "Zhang et al., CVPR 2017",
    colours: Some(ColoursChoice::Split),
    recipe: |c, _| {
        pretext(c);
        c.network.colours = ColoursChoice::Split;
    },
    memory_bytes: |setup, _| Ok((SplitBrain::memory_bytes(setup, TASK)?, 0)),
    build: |setup, _, _| Ok(Box::new(SplitBrain::new(setup, TASK)?)),
    ..MethodSpec::DEFAULT
};

/// A network of one or more parts, side by side, and what each has to guess.
pub struct SplitBrain {
    encoder: Network,
    guesses: Vec<Guess>,
}

struct Guess {
    name: &'static str,
    classes: ColourClasses,
    classifier: Classifier,
}

/// What guesses by one of so many parts of the features, side by side, the classes of all places.
fn head(setup: &Setup, part: Part, number: usize, of: usize) -> Result<Graph> {
    let own = setup.features() / of;
    let mut g = Graph::new();
    let x = g.input(1, 1, setup.features());
    let x = g.channels("own", x, (number * own) as isize, own)?;
    let guesses = places(setup, part)? * part.classes();
    let x = g.linear("places", x, guesses, true)?;
    g.output(x);
    Ok(g)
}

/// What each part of a network has to guess: its name, and of what it is.
pub(crate) type ColourTask = &'static [(&'static str, Part)];

/// Split-brain autoencoders: a network whose result is two halves side by side, lightness' first.
const TASK: ColourTask = &[("ab", Part::Ab), ("lightness", Part::L)];

impl SplitBrain {
    /// Bytes of the networks.
    pub(crate) fn memory_bytes(setup: &Setup, task: ColourTask) -> Result<usize> {
        let mut bytes = setup.options(setup.batch).memory_bytes(setup.graph)?;
        for (number, (_, part)) in task.iter().enumerate() {
            let head = head(setup, *part, number, task.len())?;
            bytes += Classifier::memory_bytes(setup, &head)?;
        }
        Ok(bytes)
    }

    /// At the beginning of a run: a graph that has a part for each guess, as large as the others,
    /// in their order.
    pub(crate) fn new(setup: Setup, task: ColourTask) -> Result<Self> {
        let encoder = setup.encoder(&setup.options(setup.batch))?;
        let guess = |(number, (name, part)): (usize, &(&'static str, Part))| {
            let g = head(&setup, *part, number, task.len())?;
            let named = (*name, number as u64 + 1);
            Ok(Guess {
                name,
                classes: ColourClasses::new(&setup, *part)?,
                classifier: Classifier::new(&setup, named, &g, part.classes())?,
            })
        };
        let guesses = task.iter().enumerate().map(guess);
        Ok(SplitBrain { guesses: guesses.collect::<Result<_>>()?, encoder })
    }
}

impl Method for SplitBrain {
    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        self.encoder.forward(stream, 0, batch.view(0))?;
        for (number, guess) in self.guesses.iter_mut().enumerate() {
            let classifier = &mut guess.classifier;
            guess.classes.write(stream, batch, classifier.labels())?;
            classifier.learn(stream, self.encoder.output_of(0))?;
            let (_, gradient) = self.encoder.output_and_gradient();
            match number {
                0 => stream.copy(classifier.input_gradient()?, gradient)?,
                _ => stream.add(classifier.input_gradient()?, gradient)?,
            }
        }
        self.encoder.backward(stream, 0)?;
        for guess in &mut self.guesses {
            guess.classifier.network().update(stream)?;
        }
        self.encoder.update(stream)
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        let heads = self.guesses.iter_mut();
        let heads = heads.map(|guess| (guess.name, guess.classifier.network()));
        std::iter::once(("", &mut self.encoder)).chain(heads).collect()
    }

    fn pretext(&mut self, device: &Device) -> Result<Vec<PretextFigure>> {
        let all = self.guesses.iter_mut();
        all.map(|guess| guess.classifier.figure(device)).collect()
    }

    fn state(&self, device: &Device) -> Result<StateDict> {
        let mut state = StateDict::default();
        for guess in &self.guesses {
            guess.classifier.keep(device, &mut state)?;
        }
        Ok(state)
    }

    fn restore(&mut self, device: &Device, state: &StateDict) -> Result<()> {
        let mut all = self.guesses.iter_mut();
        all.try_for_each(|guess| guess.classifier.restore(device, state))
    }
}
