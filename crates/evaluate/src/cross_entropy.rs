//! Cross-entropy over classes, on the device.
//!
//! With p = softmax(logits) and label y: loss = −ln p_y, and the gradient of the batch's mean loss with respect to the logits
//! is (p − e_y) / B, e_y being the y-th row of the identity.
//!
//! A device already computes −ln Σ p over chosen keys, where p is the softmax of inner products with the keys. With the rows
//! of the identity as keys the inner products are the logits themselves, and one chosen key is the label: that is this loss,
//! without a copy to the host and without anything asked of a device beside what discovery needs.

use anchorhood_engine::{
    Buffer, Device, DevicePositives, Error, Loss, Positives, Result, SoftmaxLoss, Stream,
};

/// The loss of items whose classes are known.
pub struct CrossEntropy {
    identity: Buffer,
    classes: usize,
    labels: DevicePositives,
}

impl CrossEntropy {
    /// For so many classes, and the class of every item.
    pub fn new(device: &Device, classes: usize, labels: &[u32]) -> Result<Self> {
        if let Some(label) = labels.iter().find(|l| **l as usize >= classes) {
            return Err(Error::Plan(format!("label {label} of {classes} classes")));
        }
        let mut identity = vec![0.0; classes * classes];
        identity
            .iter_mut()
            .step_by(classes + 1)
            .for_each(|v| *v = 1.0);
        let mut positives = Positives::with_capacity(labels.len(), labels.len());
        labels.iter().for_each(|label| positives.push([*label]));
        Ok(CrossEntropy {
            identity: device.hand_over(identity)?,
            classes,
            labels: device.positives(&positives, classes)?,
        })
    }

    /// The loss of a batch of logits (a row of `classes` for each of `items`), part of the stream's step.
    pub fn loss(
        &self,
        stream: &mut Stream,
        logits: &Buffer,
        items: &Buffer<u32>,
        loss: Loss,
    ) -> Result<()> {
        let of = SoftmaxLoss {
            queries: logits,
            keys: &self.identity,
            dim: self.classes,
            temperature: 1.0,
            positives: &self.labels,
            items: Some(items),
        };
        stream.softmax_loss(&of, loss)
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
