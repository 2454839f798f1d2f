//! Cross-entropy over classes, on the device.
//!
//! With p = softmax(logits) and label y: loss = −ln p_y, and the gradient of the batch's mean loss with respect to the logits
//! is (p − e_y) / B, e_y being the y-th row of the identity.
//!
//! A device already computes −ln Σ p over chosen keys, where p is the softmax of inner products with the keys. With the rows
//! of the identity as keys the inner products are the logits themselves, and one chosen key is the label: that is this loss,
//! without a copy to the host and without anything asked of a device beside what discovery needs.

use anchorhood_engine::{Device, Error, Positives, Result};

/// The loss of batches over a number of classes.
pub struct CrossEntropy<D: Device> {
    identity: D::Buffer,
    classes: usize,
    positives: Positives,
    losses: Vec<f32>,
}

impl<D: Device> CrossEntropy<D> {
    /// For so many classes.
    pub fn new(device: &D, classes: usize) -> Result<Self> {
        let mut identity = vec![0.0; classes * classes];
        identity
            .iter_mut()
            .step_by(classes + 1)
            .for_each(|v| *v = 1.0);
        Ok(CrossEntropy {
            identity: device.upload(&identity)?,
            classes,
            positives: Positives::default(),
            losses: vec![],
        })
    }

    /// The mean loss of a batch of logits (a row of `classes` each); writes its gradient (`=`).
    pub fn loss(
        &mut self,
        device: &D,
        logits: &D::Buffer,
        labels: &[u32],
        gradient: &mut D::Buffer,
    ) -> Result<f64> {
        if let Some(label) = labels.iter().find(|l| **l as usize >= self.classes) {
            return Err(Error::Plan(format!(
                "label {label} of {} classes",
                self.classes
            )));
        }
        self.positives.clear();
        for label in labels {
            self.positives.push([*label]);
        }
        self.losses.resize(labels.len(), 0.0);
        device.softmax_loss(
            logits,
            &self.identity,
            self.classes,
            1.0,
            &self.positives,
            &mut self.losses,
            gradient,
        )?;
        let sum: f64 = self.losses.iter().map(|l| f64::from(*l)).sum();
        Ok(sum / labels.len().max(1) as f64)
    }

    /// The loss of each picture of the last batch.
    pub fn losses(&self) -> &[f32] {
        &self.losses
    }
}

/// The same as plain loops in f64: each picture's loss, and the gradient of their mean. The specification, for tests.
pub fn naive_cross_entropy(logits: &[f64], classes: usize, labels: &[u32]) -> (Vec<f64>, Vec<f64>) {
    let (mut losses, mut gradient) = (vec![], vec![]);
    for (row, label) in logits.chunks_exact(classes).zip(labels) {
        let max = row.iter().fold(f64::NEG_INFINITY, |m, v| m.max(*v));
        let sum: f64 = row.iter().map(|v| (v - max).exp()).sum();
        losses.push(max + sum.ln() - row[*label as usize]);
        for (class, v) in row.iter().enumerate() {
            let hit = f64::from(u8::from(class == *label as usize));
            gradient.push(((v - max).exp() / sum - hit) / labels.len() as f64);
        }
    }
    (losses, gradient)
}
