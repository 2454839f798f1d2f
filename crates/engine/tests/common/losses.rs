//! Losses over rows, each a case of one table: what it is computed of, how a device is asked for
//! it, and what plain loops make of it.

use anchorhood_engine::naive::losses::{contrastive, cosine, counting, cross_entropy};
use anchorhood_engine::naive::similarity::softmax_loss;
use anchorhood_engine::{
    Buffer, Counting, Device, DevicePositives, Loss, Positives, Result, RowSample, SoftmaxLoss,
    Stream,
};

use super::several::{own, sharded, together};
use super::{assert_close, narrow};

/// What is computed in f32 on every device may be off by.
pub const TOLERANCE: f64 = 1e-5;

pub const WEIGHT: f32 = 0.75;

/// A loss, and what it is computed of.
#[derive(Clone, Debug)]
pub struct LossCase {
    pub kind: LossKind,
    /// What the gradient is of: rows of `dim`, view after view.
    pub x: Vec<f64>,
    pub views: usize,
    pub dim: usize,
    pub weight: f32,
    pub tolerance: f64,
}

/// A loss that the engine does not have: the mean over row r of (a − b)², and the gradient of
/// weight · mean(losses) with respect to a alone, weight / R · 2·(a − b) / dim.
pub fn mean_squared(a: &[f64], b: &[f64], dim: usize, weight: f64) -> [Vec<f64>; 2] {
    let apart: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let loss = |row: &[f64]| row.iter().map(|d| d * d / dim as f64).sum::<f64>();
    let scale = weight / a.len() as f64;
    let gradient = apart.iter().map(|d| scale * 2.0 * d).collect();
    [apart.chunks(dim).map(loss).collect(), gradient]
}

/// The same by code of the test's own, on the host.
pub fn mean_squared_on_host(
    stream: &mut Stream,
    x: &Buffer,
    dim: usize,
    loss: Loss,
    other: &mut dyn FnMut(&[f32]) -> Vec<f64>,
) -> Result<()> {
    stream.custom_loss(x, loss, &mut |x, losses, gradient| {
        let [of_rows, slope] = mean_squared(&super::widen(x), &other(x), dim, 1.0);
        losses.copy_from_slice(&narrow(&of_rows));
        gradient.copy_from_slice(&narrow(&slope));
        Ok(())
    })
}

#[derive(Clone, Debug)]
pub enum LossKind {
    CrossEntropy {
        /// The class of each item, and the item of each row.
        labels: Vec<u32>,
        items: Vec<u32>,
        /// Of the classes.
        weights: Option<Vec<f64>>,
    },
    Counting {
        margin: f64,
    },
    Contrastive {
        temperature: f64,
    },
    Cosine {
        targets: Vec<f64>,
    },
    /// By code of the test's own, on the host.
    MeanSquared {
        other: Vec<f64>,
    },
    Softmax(Softmax),
    /// Each picture's own key is the positive.
    BetweenViews {
        keys: Vec<f64>,
        temperature: f64,
    },
}

#[derive(Clone, Debug)]
pub struct Softmax {
    pub keys: Vec<f64>,
    pub temperature: f64,
    /// Of each item.
    pub positives: Positives,
    /// The items of the rows, where these are not one by one.
    pub items: Option<Vec<u32>>,
    /// Which of the keys stand for all, and the step that draws them.
    pub sample: Option<(RowSample, u64)>,
}

impl LossCase {
    pub fn new(kind: LossKind, x: Vec<f64>, [views, dim]: [usize; 2]) -> Self {
        LossCase { kind, x, views, dim, weight: WEIGHT, tolerance: TOLERANCE }
    }

    pub fn within(self, tolerance: f64) -> Self {
        LossCase { tolerance, ..self }
    }

    /// How many losses there are.
    pub fn losses(&self) -> usize {
        match self.kind {
            LossKind::Counting { .. } => self.x.len() / self.dim / self.views,
            _ => self.x.len() / self.dim,
        }
    }

    /// What a failed assertion says of it.
    pub fn what(&self) -> String {
        let kind = format!("{:?}", self.kind);
        let kind = kind.split([' ', '(']).next().unwrap_or_default();
        format!("{kind} of {} rows of {}, {} views", self.losses(), self.dim, self.views)
    }

    /// Asks for the loss of rows that are this process's part of x.
    pub fn ask(&self, device: &Device, stream: &mut Stream, x: &Buffer, to: Loss) -> Result<()> {
        let up = |values: &[f64]| device.upload(&narrow(values)).unwrap();
        let here = |values: &[f64]| {
            let values = narrow(values);
            device.upload(own(device, &values, self.dim)).unwrap()
        };
        let words = |words: &[u32]| device.upload_indices(words).unwrap();
        match &self.kind {
            LossKind::CrossEntropy { labels, items, weights } => {
                let (labels, items) = (words(labels), words(own(device, items, 1)));
                match weights {
                    None => stream.cross_entropy(x, self.dim, &labels, &items, to),
                    Some(w) => stream.weighted_cross_entropy(x, &labels, &items, &up(w), to),
                }
            }
            LossKind::Counting { margin } => {
                let of =
                    Counting { rows: x, views: self.views, dim: self.dim, margin: *margin as f32 };
                stream.counting(&of, &mut device.zeros(2 * self.losses()).unwrap(), to)
            }
            LossKind::Contrastive { temperature } => {
                stream.contrastive(x, self.views, self.dim, *temperature as f32, to)
            }
            LossKind::Cosine { targets } => stream.cosine(x, &here(targets), self.dim, to),
            LossKind::MeanSquared { other } => {
                let other = super::widen(own(device, &narrow(other), self.dim));
                mean_squared_on_host(stream, x, self.dim, to, &mut |_| other.clone())
            }
            LossKind::Softmax(s) => s.on(device, x, self.dim, |of| match s.sample {
                None => stream.softmax_loss(of, to),
                Some((sample, step)) => {
                    stream.set_step(step, 0.0)?;
                    stream.sampled_softmax_loss(of, sample, to)
                }
            }),
            LossKind::BetweenViews { keys, temperature } => {
                let pictures = self.losses() / self.views;
                let of = SoftmaxLoss {
                    queries: x,
                    keys: &up(keys),
                    dim: self.dim,
                    temperature: *temperature as f32,
                    positives: &device.positives(&itself(pictures), pictures).unwrap(),
                    items: None,
                };
                stream.softmax_between_views(&of, self.views, to)
            }
        }
    }

    /// Losses and gradient of this process's part on a device.
    pub fn on(&self, device: &Device) -> [Vec<f32>; 2] {
        let x = narrow(&self.x);
        let x: Vec<f32> = x
            .chunks(x.len() / self.views)
            .flat_map(|view| own(device, view, self.dim).to_vec())
            .collect();
        let unwritten = |len| device.hand_over(vec![f32::NAN; len]).unwrap();
        let mut to = [unwritten(x.len() * self.losses() / self.x.len()), unwritten(x.len())];
        let [rows, gradient] = &mut to;
        let loss = Loss { rows, gradient, weight: self.weight };
        let mut stream = device.stream().unwrap();
        self.ask(device, &mut stream, &device.upload(&x).unwrap(), loss).unwrap();
        to.map(|buffer| device.download(&buffer).unwrap())
    }

    /// The same by plain loops.
    pub fn naively(&self, x: &[f64]) -> [Vec<f64>; 2] {
        let (dim, views, weight) = (self.dim, self.views, f64::from(self.weight));
        match &self.kind {
            LossKind::CrossEntropy { labels, items, weights } => {
                let weights = weights.clone().unwrap_or(vec![1.0; dim]);
                cross_entropy(x, &weights, labels, items, weight)
            }
            LossKind::Counting { margin } => counting(x, [views, dim], *margin, weight),
            LossKind::Contrastive { temperature } => {
                contrastive(x, [views, dim], *temperature, weight)
            }
            LossKind::Cosine { targets } => cosine(x, targets, dim, weight),
            LossKind::MeanSquared { other } => mean_squared(x, other, dim, weight),
            LossKind::Softmax(s) => {
                let counts = s.counts(self.losses(), dim);
                let (over, own) = ((&s.keys[..], &counts[..], dim), s.of_rows(self.losses()));
                softmax_loss(x, over, s.temperature, &own, weight)
            }
            LossKind::BetweenViews { keys, temperature } => {
                let (each, pictures) = (x.len() / views, self.losses() / views);
                let (counts, own) = (vec![1.0; pictures], itself(pictures));
                let (mut losses, mut gradient) = (vec![], vec![]);
                for (x, keys) in x.chunks(each).zip(keys.chunks(each).cycle().skip(1)) {
                    let (over, weight) = ((keys, &counts[..], dim), weight / views as f64);
                    let [more, slope] = softmax_loss(x, over, *temperature, &own, weight);
                    losses.extend(more);
                    gradient.extend(slope);
                }
                [losses, gradient]
            }
        }
    }

    /// What the plain loops make of x as a device has it.
    pub fn expected(&self) -> [Vec<f64>; 2] {
        self.naively(&super::widen(&narrow(&self.x)))
    }

    /// Compares a device, asked twice, with the plain loops.
    pub fn check(&self, device: &Device) {
        let got = self.on(device);
        let what = format!("{}: {}", device.describe(), self.what());
        assert!(got == self.on(device), "other bits: {what}");
        self.assert_like(&what, &got, &self.expected());
    }

    pub fn assert_like(&self, what: &str, got: &[Vec<f32>; 2], expected: &[Vec<f64>; 2]) {
        assert_close(&format!("losses, {what}"), &got[0], &expected[0], self.tolerance);
        // A first row without length has a gradient that dwarfs all others.
        let first = if self.x[..self.dim].iter().all(|v| *v == 0.0) { self.dim } else { 0 };
        let (got, expected) = (got[1].split_at(first), expected[1].split_at(first));
        for (got, expected) in [(got.0, expected.0), (got.1, expected.1)] {
            assert_gradient(&format!("gradient, {what}"), got, expected, self.tolerance);
        }
    }

    /// Compares the naive gradient of weight · mean(losses) with differences of it.
    pub fn check_slope(&self) {
        const STEP: f64 = 1e-6;
        let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
        let [losses, gradient] = self.naively(&self.x);
        // Differences of O(1) numbers over 2e-6 keep some nine digits.
        let tolerance = 1e-8 * losses.iter().fold(1.0_f64, |m, l| m.max(l.abs()));
        let mut moved = self.x.clone();
        for (i, computed) in gradient.into_iter().enumerate() {
            let mut side = |d: f64| {
                moved[i] = self.x[i] + d;
                f64::from(self.weight) * mean(&self.naively(&moved)[0])
            };
            let difference = (side(STEP) - side(-STEP)) / (2.0 * STEP);
            side(0.0);
            let (error, what) = ((computed - difference).abs(), self.what());
            assert!(error < tolerance, "{what}[{i}]: computed {computed}, {difference}");
        }
    }

    /// Compares so many processes, each of which has its part of the rows, with the plain loops.
    pub fn check_on_ranks(&self, ranks: usize) {
        let parts = super::several::on_ranks(ranks, |device| self.on(device));
        let of = |which: usize, views| {
            let parts: Vec<_> = parts.iter().map(|part| part[which].clone()).collect();
            together(&parts, views)
        };
        let got = [of(0, self.views), of(1, self.views)];
        self.assert_like(&format!("{}, {ranks} ranks", self.what()), &got, &self.expected());
    }
}

impl Softmax {
    /// Gives work what a device is asked for, of queries that are this process's part of them.
    pub fn on<R>(
        &self,
        device: &Device,
        queries: &Buffer,
        dim: usize,
        work: impl FnOnce(&SoftmaxLoss) -> R,
    ) -> R {
        let keys = self.keys.len() / dim;
        let items = self.items.as_ref().map(|items| {
            let items = device.upload_indices(own(device, items, 1)).unwrap();
            items.below(keys).unwrap()
        });
        work(&SoftmaxLoss {
            queries,
            keys: &sharded(device, &narrow(&self.keys), dim),
            dim,
            temperature: self.temperature as f32,
            positives: &positives_on(device, &self.positives, keys),
            items: items.as_ref(),
        })
    }

    /// The positives of so many rows.
    pub fn of_rows(&self, rows: usize) -> Positives {
        let item = |row: usize| match &self.items {
            Some(items) => items[row % items.len()],
            None => row as u32,
        };
        positives_of(&self.positives, (0..rows).map(item))
    }

    /// As how many each key counts: where some are drawn, the positives of the batch as one, and
    /// the others as often as they come, times what makes up for those that do not.
    fn counts(&self, rows: usize, dim: usize) -> Vec<f64> {
        let keys = self.keys.len() / dim;
        let Some((sample, step)) = self.sample else {
            return vec![1.0; keys];
        };
        let mut counts = vec![0.0; keys];
        sample.draw(step, keys).for_each(|row| counts[row as usize] += 1.0);
        let own = self.of_rows(rows);
        let listed: std::collections::BTreeSet<usize> =
            (0..rows).flat_map(|row| own.of(row)).map(|p| *p as usize).collect();
        listed.iter().for_each(|p| counts[*p] = 0.0);
        let drawn = counts.iter().sum::<f64>().max(1.0);
        counts.iter_mut().for_each(|n| *n *= (keys - listed.len()) as f64 / drawn);
        listed.iter().for_each(|p| counts[*p] = 1.0);
        counts
    }
}

/// Positives on a device, of this process's part of the items.
pub fn positives_on(device: &Device, all: &Positives, keys: usize) -> DevicePositives {
    let here = device.communicator().part(all.len());
    let own = positives_of(all, here.map(|i| i as u32));
    device.positives_part(&own, all.len(), keys).unwrap()
}

/// The positives of some items.
fn positives_of(all: &Positives, items: impl Iterator<Item = u32>) -> Positives {
    let mut own = Positives::default();
    items.for_each(|i| own.push(all.of(i as usize).iter().copied()));
    if all.count_each() { own.counting_each() } else { own }
}

/// So many items that are their own positives.
pub fn itself(items: usize) -> Positives {
    let mut itself = Positives::default();
    (0..items as u32).for_each(|i| itself.push([i]));
    itself
}

/// A gradient, relative to its own size, which the mean over the rows makes small.
#[track_caller]
fn assert_gradient(what: &str, got: &[f32], expected: &[f64], tolerance: f64) {
    let scale = expected.iter().fold(1e-9_f64, |m, g| m.max(g.abs()));
    let got: Vec<f32> = got.iter().map(|g| (f64::from(*g) / scale) as f32).collect();
    let expected: Vec<f64> = expected.iter().map(|g| g / scale).collect();
    assert_close(what, &got, &expected, tolerance);
}
