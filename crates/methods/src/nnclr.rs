//! NNCLR: *With a Little Help from My Friends* (Dwibedi et al., ICCV 2021).
//!
//! Like SimCLR, but a view is to be alike not to another view of its own picture: to the nearest neighbour of that view among the
//! pictures seen before (the support set), and unlike the neighbours of the batch's other pictures. With z the projector's
//! output, n(z) the row of the support set most similar to it, held constant, p the predictor's output of unit length, and i's
//! views W(i):
//!
//! ```text
//! ℓ_p = − ln [ Σ_{w in W(i)} exp(p·n(z_w) / τ) / Σ_{all rows w of the batch} exp(p·n(z_w) / τ) ]
//! support[i] ← z_0 / |z_0|
//! ```
//!
//! The encoder's output before the projector is judged. Neighbours pay late: below SimCLR after 200 epochs, above it after 800
//! (lightly's and solo-learn's figures).
//!
//! Recipe for 32×32 (solo-learn): τ = 0.2, projector with layers of 2048 and 256 values, predictor 256 → 4096 → 256, LARS at 0.4 for
//! 256 pictures, trust 0.02, weight decay 1e-5, cosine after a warm-up of 10 epochs.
//!
//! Adapted: the support set has a row for each training picture, in place of a queue of the last 65,536, more than CIFAR has
//! pictures; so nothing falls out of it, and its order decides nothing. The softmax goes over the neighbours for each prediction,
//! all neighbours of its own picture being positives, where the paper has it over the predictions for each neighbour.

use anchorhood_discover::MemoryBank;
use anchorhood_engine::{
    Batch, Buffer, Device, DevicePositives, Loss, Network, Positives, Result, SoftmaxLoss, Stream,
};

use crate::chain::Chain;
use crate::mlp::MlpEnd;
use crate::{Method, MlpSettings, Setup, StateDict, StateError, Values, ViewPasses, ViewSettings};

/// The method's settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NnClrSettings {
    /// The views.
    pub passes: ViewPasses,
    /// τ of the loss.
    pub temperature: f32,
    /// The projector.
    pub projector: MlpSettings,
    /// The predictor; its result has the projector's length.
    pub predictor: MlpSettings,
}

/// An encoder, whose output is judged, a projector, a predictor and the support set.
pub struct NnClr {
    settings: NnClrSettings,
    chain: Chain,
    support: MemoryBank,
    nearest: Buffer,
    positives: DevicePositives,
    losses: Buffer,
}

const PROJECTOR: usize = 1;
const SUPPORT: &str = "support";

impl NnClr {
    /// At the beginning of a run, where the support set is noise.
    pub fn new(setup: Setup, settings: NnClrSettings) -> Result<Self> {
        let heads = [
            ("projector", settings.projector, MlpEnd::Norm),
            ("predictor", settings.predictor, MlpEnd::UnitLength),
        ];
        let chain = Chain::new(&setup, settings.passes, "", &heads)?;
        let (device, rows, dim) = (setup.device, chain.rows(), settings.projector.features);
        let views = same_picture(settings.passes.views, setup.batch);
        Ok(NnClr {
            support: MemoryBank::new(device, setup.pictures, dim, setup.seed)?,
            nearest: device.zeros(rows * dim)?,
            positives: device.positives(&views, rows)?,
            losses: device.zeros(rows)?,
            settings,
            chain,
        })
    }
}

/// For each row of stacked views, the rows of the same picture.
fn same_picture(views: usize, batch: usize) -> Positives {
    let mut positives = Positives::with_capacity(views * batch, views * views * batch);
    for row in 0..views * batch {
        positives.push((0..views).map(|view| (view * batch + row % batch) as u32));
    }
    positives
}

impl Method for NnClr {
    fn name(&self) -> &'static str {
        "nnclr"
    }

    fn views(&self) -> Vec<ViewSettings> {
        self.settings.passes.alike()
    }

    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        self.chain.forward(stream, batch)?;
        let (dim, temperature) = (self.settings.projector.features, self.settings.temperature);
        let projected = self.chain.output(PROJECTOR);
        stream.nearest_rows(projected, self.support.buffer(), dim, &mut self.nearest)?;
        let (queries, gradient) = self.chain.last().output_and_gradient();
        let of = SoftmaxLoss {
            queries,
            keys: &self.nearest,
            dim,
            temperature,
            positives: &self.positives,
            items: None,
        };
        let loss = Loss {
            rows: &mut self.losses,
            gradient,
            weight: 1.0,
        };
        stream.softmax_loss(&of, loss)?;
        let projected = self.chain.output(PROJECTOR);
        self.support
            .update(stream, batch.indices(), projected, 1.0)?;
        self.chain.learn(stream)
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        self.chain.networks()
    }

    fn state(&self, device: &Device) -> Result<StateDict> {
        let mut state = StateDict::default();
        let shape = vec![self.support.len(), self.support.dim()];
        let rows = self.support.values(device)?;
        state.push(SUPPORT, shape, Values::F32(rows));
        Ok(state)
    }

    fn restore(&mut self, device: &Device, state: &StateDict) -> Result<(), StateError> {
        let wanted = [self.support.len(), self.support.dim()];
        let rows = state.floats_of(SUPPORT, &wanted)?;
        self.support = MemoryBank::from_values(device, rows, wanted[1])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_views_of_a_picture_are_positives() {
        let positives = same_picture(3, 2);
        assert_eq!(positives.len(), 6);
        assert_eq!(positives.of(0), [0, 2, 4]);
        assert_eq!(positives.of(3), [1, 3, 5]);
    }
}
