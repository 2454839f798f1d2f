//! The linear probe (linear classifier) on a layer: one fully connected layer over the layer's
//! values, trained by cross-entropy, the network itself left as it is.
//!
//! Rows are extracted once ([`extract_layer`](crate::evaluation::extract_layer)) and the classifier is a graph
//! of one linear layer on the same engine, so it runs wherever a network does, over rows that lie
//! on the device. Before training, each channel is shifted and scaled to mean 0 and standard
//! deviation 1 over the training rows, and all values divided by √dim, so that a row's mean squared
//! length is 1. A linear layer could undo this, so what it can express stays the same, but one
//! learning rate now suits every layer of every network. Everything random derives from the seed.

use std::sync::Arc;

use anchorhood_data::Labels;
use anchorhood_engine::{
    Buffer, Device, Epoch, Error, Fits, Graph, Loss, Network, NetworkOptions, Optimiser, Result,
};
use anchorhood_storage::random::{Draws, Stream as Purpose};
use rayon::prelude::*;

use crate::evaluation::Rows;

/// How the classifier is trained.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearOptions {
    /// Passes over the training rows.
    pub epochs: usize,
    /// Rows in a batch; all, where there are fewer.
    pub batch: usize,
    /// The learning rate at the start.
    pub rate: f32,
    /// The share of the momentum that is kept (Nesterov's).
    pub momentum: f32,
    /// Weight decay.
    pub decay: f32,
    /// Shares of the epochs after which the rate falls to a tenth.
    pub milestones: Vec<f64>,
    /// Decides the initial weights and the order of the rows.
    pub seed: u64,
}

impl Default for LinearOptions {
    fn default() -> Self {
        LinearOptions {
            epochs: 100,
            batch: 256,
            // The loss curves by at most half the rows' mean squared length, which is 1; steps with
            // this momentum are then stable up to a rate of 2 · 1.9 / 0.5 = 7.6, whatever the rows.
            rate: 5.0,
            momentum: 0.9,
            decay: 0.0,
            milestones: vec![0.6, 0.8],
            seed: 0,
        }
    }
}

impl LinearOptions {
    fn rate_at(&self, epoch: usize) -> f32 {
        let after = |m: &&f64| epoch as f64 >= **m * self.epochs as f64;
        let falls = self.milestones.iter().filter(after).count();
        self.rate * 0.1_f32.powi(falls as i32)
    }

    /// Says which setting cannot be, if one cannot.
    pub fn check(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::Plan(format!("linear classifier: {what}")));
        if self.epochs == 0 || self.batch == 0 {
            return wrong("needs at least one epoch, and one row in a batch".into());
        }
        if !(self.rate > 0.0 && self.rate.is_finite()) {
            return wrong(format!("a learning rate of {} is not above 0", self.rate));
        }
        if !(0.0..1.0).contains(&self.momentum) || self.decay.is_nan() || self.decay < 0.0 {
            return wrong("momentum must be in [0, 1), and decay 0 or more".into());
        }
        Ok(())
    }
}

/// How well it did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearResult {
    /// Share of test rows whose class came first.
    pub top1: f64,
    /// Share whose class was among the first five; nothing where there are no more than five
    /// classes.
    pub top5: Option<f64>,
    /// Test rows.
    pub n: usize,
    /// Values of a row.
    pub dim: usize,
    /// The mean loss of the last epoch.
    pub train_loss: f64,
}

/// Rows made ready for classifiers, which may be several: see the module.
pub struct LinearSet {
    device: Device,
    /// The training rows.
    train: Arc<Buffer>,
    test: Rows,
    train_labels: Vec<u32>,
    test_labels: Vec<u32>,
    classes: usize,
}

impl LinearSet {
    /// Takes over the rows, scales them in place, and gives those to train on to the device.
    pub fn new(
        device: &Device,
        mut train: Rows,
        train_labels: &Labels,
        mut test: Rows,
        test_labels: &Labels,
    ) -> Result<Self> {
        Error::check_length("labels of the training rows", train.len(), train_labels.len())?;
        Error::check_length("labels of the test rows", test.len(), test_labels.len())?;
        Error::check_length("values of a test row", train.dim, test.dim)?;
        if train.is_empty() || test.is_empty() {
            return Err(Error::Plan(
                "a linear classifier needs labelled pictures to train and to test on".into(),
            ));
        }
        let (mean, scale) = statistics(&train);
        for rows in [&mut train, &mut test] {
            standardise(rows, &mean, &scale);
        }
        let classes = [train_labels, test_labels].map(|l| l.classes().len());
        Ok(LinearSet {
            train: Arc::new(hand_over(device, train.values)?),
            device: device.clone(),
            test,
            train_labels: train_labels.values().to_vec(),
            test_labels: test_labels.values().to_vec(),
            classes: classes[0].max(classes[1]),
        })
    }

    /// Trains a classifier and tests it. `progress` is told the epochs done and the last one's mean
    /// loss.
    pub fn classify(
        &self,
        options: &LinearOptions,
        progress: &(dyn Fn(usize, f64) + Sync),
    ) -> Result<LinearResult> {
        options.check()?;
        let mut graph = Graph::new();
        let x = graph.input(1, 1, self.test.dim);
        let x = graph.linear("classifier", x, self.classes, true)?;
        graph.output(x);
        let batch = options.batch.min(self.train_labels.len());
        let sgd = Optimiser::Sgd {
            momentum: options.momentum,
            nesterov: options.momentum > 0.0,
            decay: options.decay,
        };
        let network = NetworkOptions::new(batch).with_optimiser(sgd);
        let mut network = self.device.network(&graph, &network)?;
        network.initialise(options.seed)?;
        self.device.within(|| {
            let train_loss = self.train(&mut network, options, progress)?;
            let ranks = self.ranks(&mut network)?;
            let share = |first: usize| {
                let hits = ranks.iter().filter(|r| **r < first).count();
                hits as f64 / ranks.len() as f64
            };
            Ok(LinearResult {
                top1: share(1),
                top5: (self.classes > 5).then(|| share(5)),
                n: ranks.len(),
                dim: self.test.dim,
                train_loss,
            })
        })
    }

    fn train(
        &self,
        network: &mut Network,
        options: &LinearOptions,
        progress: &(dyn Fn(usize, f64) + Sync),
    ) -> Result<f64> {
        let (device, n, batch) = (&self.device, self.train_labels.len(), network.batch());
        let labels = device.upload_indices(&self.train_labels)?;
        let mut source = device.row_batches(self.train.clone(), self.test.dim, batch)?;
        let (mut stream, mut rows) = (device.stream()?, device.zeros(batch)?);
        let steps = n / batch;
        let mut last = 0.0;
        for epoch in 0..options.epochs {
            let order = Draws::new(options.seed, Purpose::Order, epoch as u64, 1).permutation(n);
            let part = Epoch {
                epoch: epoch as u64,
                order: &order,
                first: 0,
                number: (epoch * steps) as u64,
                scalars: &[vec![options.rate_at(epoch); steps]],
            };
            let losses = stream.epoch(&mut source, &part, &mut |stream, items| {
                network.forward(stream, 0, items.view(0))?;
                let (logits, gradient) = network.output_and_gradient();
                let loss = Loss { rows: &mut rows, gradient, weight: 1.0 };
                stream.cross_entropy(logits, self.classes, &labels, items.indices(), loss)?;
                network.backward(stream, 0)?;
                network.update(stream)
            })?;
            last = losses.iter().sum::<f64>() / steps as f64;
            if !last.is_finite() {
                return Err(Error::Plan(format!(
                    "the linear classifier's loss became {last} in epoch {}; try a smaller \
                     learning rate",
                    epoch + 1
                )));
            }
            progress(epoch + 1, last);
        }
        Ok(last)
    }

    /// How many classes come before each test row's own.
    fn ranks(&self, network: &mut Network) -> Result<Vec<usize>> {
        let batch = network.batch();
        let mut logits = vec![0.0; batch * self.classes];
        let mut ranks = Vec::with_capacity(self.test.len());
        let rows = self.test.values.chunks(batch * self.test.dim);
        for (rows, labels) in rows.zip(self.test_labels.chunks(batch)) {
            let logits = &mut logits[..labels.len() * self.classes];
            network.infer(rows, logits)?;
            for (logits, label) in logits.chunks_exact(self.classes).zip(labels) {
                ranks.push(rank(logits, *label as usize));
            }
        }
        Ok(ranks)
    }
}

/// Says what makes the rows shorter, where they do not fit.
fn hand_over(device: &Device, values: Vec<f32>) -> Result<Buffer> {
    device.hand_over(values).map_err(|e| match e {
        Error::Memory { asked, free, total, .. } => Error::Memory {
            what: "a layer's values of all training pictures".into(),
            asked,
            free,
            total,
            fits: Some(Fits::ShorterRows),
        },
        other => other,
    })
}

/// How many classes come before one; of equal ones the lower number comes first, and all come
/// before what is not a number.
fn rank(logits: &[f32], class: usize) -> usize {
    let own = logits[class];
    if own.is_nan() {
        return logits.len();
    }
    let before = |(other, v): (usize, &f32)| *v > own || (*v == own && other < class);
    logits.iter().enumerate().filter(|v| before(*v)).count()
}

/// Mean of each channel over all rows and places, and 1 / (standard deviation · √dim); 0 for a
/// channel that never changes.
fn statistics(rows: &Rows) -> (Vec<f32>, Vec<f32>) {
    let c = rows.channels;
    // In blocks of a fixed length, so that the sums do not depend on the number of threads. Sums,
    // then sums of squares.
    let blocks: Vec<Vec<f64>> = (rows.values.par_chunks(256 * rows.dim))
        .map(|block| {
            let mut sums = vec![0.0; 2 * c];
            let (sum, squares) = sums.split_at_mut(c);
            for place in block.chunks_exact(c) {
                for ((s, q), v) in sum.iter_mut().zip(&mut *squares).zip(place) {
                    let v = f64::from(*v);
                    *s += v;
                    *q += v * v;
                }
            }
            sums
        })
        .collect();
    let count = (rows.values.len() / c) as f64;
    let total = |i: usize| blocks.iter().map(|b| b[i]).sum::<f64>() / count;
    let mean: Vec<f64> = (0..c).map(total).collect();
    let scale = |i: usize| {
        let square = total(c + i);
        let variance = square - mean[i] * mean[i];
        // Below this the difference of the two is rounding.
        match variance > 1e-12 * square {
            true => (1.0 / (variance * rows.dim as f64).sqrt()) as f32,
            false => 0.0,
        }
    };
    let scale = (0..c).map(scale).collect();
    (mean.iter().map(|m| *m as f32).collect(), scale)
}

fn standardise(rows: &mut Rows, mean: &[f32], scale: &[f32]) {
    (rows.values.par_chunks_exact_mut(rows.channels)).for_each(|place| {
        for ((v, m), s) in place.iter_mut().zip(mean).zip(scale) {
            *v = (*v - m) * s;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_falls_at_milestones() {
        let options = LinearOptions { epochs: 10, rate: 1.0, ..LinearOptions::default() };
        let rates = [0, 5, 6, 7, 8, 9].map(|e| options.rate_at(e));
        for (rate, expected) in rates.iter().zip([1.0, 1.0, 0.1, 0.1, 0.01, 0.01]) {
            assert!((rate - expected).abs() < 1e-6, "{rates:?}");
        }
    }

    #[test]
    fn ranks_and_ties() {
        let logits = [0.5, 2.0, 0.5, -1.0];
        assert_eq!([0, 1, 2, 3].map(|c| rank(&logits, c)), [1, 0, 2, 3]);
        assert_eq!(rank(&[f32::NAN; 4], 2), 4, "not a number is no hit");
    }

    #[test]
    fn channels_become_alike_and_dead_ones_zero() {
        let mut rows = Rows {
            dim: 6,
            channels: 3,
            values: vec![1.0, 7.0, 10.0, 3.0, 7.0, 20.0, 5.0, 7.0, 30.0, 7.0, 7.0, 40.0],
        };
        let (mean, scale) = statistics(&rows);
        standardise(&mut rows, &mean, &scale);
        for channel in 0..3 {
            let values = rows.values.iter().skip(channel).step_by(3);
            let values: Vec<f32> = values.copied().collect();
            let sum: f32 = values.iter().sum();
            let squares: f32 = values.iter().map(|v| v * v).sum();
            let expected = if channel == 1 { 0.0 } else { 4.0 / 6.0 };
            assert!(sum.abs() < 1e-6 && (squares - expected).abs() < 1e-5, "{values:?}");
        }
    }
}
