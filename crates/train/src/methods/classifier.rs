//! A head that tells classes apart, for methods whose pretext task is to guess something of the
//! picture: which class each row is of is written down on the device, step by step, and how often
//! the guess is right is counted there and told once an epoch.

use anchorhood_engine::{
    Buffer, Device, Graph, Input, Loss, Network, NetworkOptions, Result, Stream,
};

use crate::methods::tally::{counted, go_on};
use crate::methods::{PretextFigure, Setup, StateDict, Values};

/// A network whose rows of output are logits of one or more guesses each.
pub(crate) struct Classifier {
    /// What it guesses: the name of its figure, and of what is kept of it.
    name: &'static str,
    network: Network,
    classes: usize,
    /// The class of each guess of a batch, and each guess's own number, by which it finds its
    /// class.
    labels: Buffer<u32>,
    items: Buffer<u32>,
    losses: Buffer,
    tally: Buffer<u32>,
    /// What the tally held when it was last told of.
    told: Vec<u32>,
}

fn options(setup: &Setup) -> NetworkOptions {
    setup.options(setup.batch).with_input_gradient()
}

impl Classifier {
    /// Bytes of the network of such a head.
    pub fn memory_bytes(setup: &Setup, graph: &Graph) -> Result<usize> {
        options(setup).memory_bytes(graph)
    }

    /// A head for so many rows, each of which it makes one or more guesses of, as many as its
    /// result has rows of `classes` values.
    pub fn new(
        setup: &Setup,
        (name, number): (&'static str, u64),
        graph: &Graph,
        classes: usize,
    ) -> Result<Self> {
        let network = setup.network(graph, &options(setup), number)?;
        let guesses = setup.batch * network.features() / classes;
        let (device, numbers) = (setup.device, (0..guesses as u32).collect::<Vec<_>>());
        let labels = device.upload_indices(&vec![0; guesses])?;
        Ok(Classifier {
            name,
            network,
            classes,
            labels: labels.below(classes)?,
            items: device.upload_indices(&numbers)?,
            losses: device.zeros(guesses)?,
            tally: device.upload_indices(&vec![0; classes + 1])?,
            told: vec![0; classes + 1],
        })
    }

    /// Where the step's classes are written to.
    pub fn labels(&mut self) -> &mut Buffer<u32> {
        &mut self.labels
    }

    /// Guesses by what an encoder gave, and learns from how wrong that is, up to its input's
    /// gradient.
    pub fn learn(&mut self, stream: &mut Stream, input: Input) -> Result<()> {
        self.network.forward(stream, 0, input)?;
        let logits = self.network.output();
        let (labels, items) = (&self.labels, &self.items);
        stream.tally(logits, self.classes, labels, items, &mut self.tally)?;
        self.guess_back(stream, None)
    }

    /// The same with other classes for the true ones, by which its guesses are not counted.
    pub fn mislead(
        &mut self,
        stream: &mut Stream,
        input: Input,
        labels: &Buffer<u32>,
    ) -> Result<()> {
        self.network.forward(stream, 0, input)?;
        self.guess_back(stream, Some(labels))
    }

    /// Gradients of what was guessed, up to the input's, by the step's classes or by others.
    fn guess_back(&mut self, stream: &mut Stream, others: Option<&Buffer<u32>>) -> Result<()> {
        let (logits, gradient) = self.network.output_and_gradient();
        let loss = Loss { rows: &mut self.losses, gradient, weight: 1.0 };
        let labels = others.unwrap_or(&self.labels);
        stream.cross_entropy(logits, self.classes, labels, &self.items, loss)?;
        self.network.backward(stream, 0)
    }

    /// The losses of the last guesses.
    #[cfg(test)]
    pub fn losses(&self) -> &Buffer {
        &self.losses
    }

    /// The gradient of what it was given.
    pub fn input_gradient(&self) -> Result<&Buffer> {
        self.network.input_gradient()
    }

    /// The head.
    pub fn network(&mut self) -> &mut Network {
        &mut self.network
    }

    /// How often it was right since it was last asked, beside how often the commonest class would
    /// have been.
    pub fn figure(&mut self, device: &Device) -> Result<PretextFigure> {
        let counts = self.counts(device)?;
        self.told = counted(device, &self.tally)?;
        let all: u64 = counts[1..].iter().map(|c| u64::from(*c)).sum();
        let share = |count: u32| f64::from(count) / all.max(1) as f64;
        let commonest = counts[1..].iter().copied().max().unwrap_or(0);
        Ok(PretextFigure {
            name: self.name.into(),
            share: share(counts[0]),
            chance: Some(share(commonest)),
        })
    }

    /// What the tally has counted since it was last told of.
    fn counts(&self, device: &Device) -> Result<Vec<u32>> {
        let now = counted(device, &self.tally)?;
        let since = now.iter().zip(&self.told).map(|(n, t)| n.wrapping_sub(*t));
        Ok(since.collect())
    }

    /// Keeps what was counted and not told of.
    pub fn keep(&self, device: &Device, state: &mut StateDict) -> Result<()> {
        let counts = self.counts(device)?;
        state.push(self.name, vec![counts.len()], Values::U32(counts));
        Ok(())
    }

    /// Takes it up.
    pub fn restore(&mut self, device: &Device, state: &StateDict) -> Result<()> {
        let counts = state.words_of(self.name, &[self.classes + 1], usize::MAX)?;
        self.tally = go_on(device, counts)?;
        self.told = vec![0; counts.len()];
        Ok(())
    }
}
