//! NNCLR: *With a Little Help from My Friends* (Dwibedi et al., ICCV 2021).
//!
//! Like SimCLR, but a view is to be alike not to another view of its own picture: to the nearest
//! neighbour of that view among the pictures seen before (the support set), and unlike the
//! neighbours of the batch's other pictures. With z the projector's output, n(z) the row of the
//! support set most similar to it, held constant, and p the predictor's output of unit length, for
//! picture i in view v, whose next view (after the last one, the first) is w:
//!
//! ```text
//! ℓ_iv = − ln [ exp(p_iv·n(z_iw) / τ) / Σ_{pictures j of the batch} exp(p_iv·n(z_jw) / τ) ]
//! support[i] ← z_i0 / |z_i0|
//! ```
//!
//! That the neighbour is another view's is all that teaches: to foretell the neighbour of the very
//! view that is seen asks for nothing that views have in common.
//!
//! The encoder's output before the projector is judged. Neighbours pay late: below SimCLR after 200
//! epochs, above it after 800 (lightly's and solo-learn's figures).
//!
//! Recipe for 32×32 (solo-learn): τ = 0.2, projector with layers of 2048 and 256 values, predictor
//! 256 → 4096 → 256, LARS at 0.4 for 256 pictures, trust 0.02, weight decay 1e-5, cosine after a
//! warm-up of 10 epochs.
//!
//! Adapted: the support set has a row for each training picture, in place of a queue of the last
//! 65,536, more than CIFAR has pictures; so nothing falls out of it, and its order decides nothing.
//! The softmax goes over the neighbours for each prediction, where the paper has it over the
//! predictions for each neighbour. Any number of views, each foretelling the next one's neighbours.

use anchorhood_engine::{
    Batch, Buffer, Device, DevicePositives, Network, Positives, Result, SoftmaxLoss, Stream,
};

use crate::config::{MethodConfig, OptimiserChoice, Preset, RunConfig};
use crate::discovery::MemoryBank;
use crate::methods::chain::{Chain, Head};
use crate::methods::mlp::MlpEnd;
use crate::methods::recipes::{views, views_of_preset};
use crate::methods::{Method, MethodKind, MethodSpec, Setup, StateDict, Values, ViewSettings};

/// Draw a view towards the nearest neighbour of another view.
pub static NNCLR: MethodSpec = MethodSpec {
    name: "nnclr",
    summary: "Draw a view towards the nearest neighbour of another view",
    reference: "Dwibedi et al., ICCV 2021",
    kind: MethodKind::Views,
    reads: &[
        "views",
        "view_statistics",
        "temperature",
        "projector_layers",
        "projector_width",
        "projector_features",
        "projector_norm",
        "predictor_width",
        "whiten",
    ],
    passes_per_image: |method| method.views,
    multi_process: Err(
        "each step looks for the nearest of all pictures, which would lie in every process's part",
    ),
    recipe,
    memory_bytes: |setup, config| {
        let m = &config.method;
        let networks = Chain::memory_bytes(setup, m.passes(), &heads(m))?;
        Ok((networks, 4 * m.projector_features))
    },
    build: |setup, config, _| Ok(Box::new(NnClr::new(setup, &config.method)?)),
    ..MethodSpec::DEFAULT
};

fn recipe(c: &mut RunConfig, preset: Preset) {
    views(c);
    let (t, m) = (&mut c.training, &mut c.method);
    (t.batch, t.learning_rate, t.warm_up) = (512, 0.8, 10.0);
    (t.optimiser, t.trust) = (OptimiserChoice::Lars, 0.02);
    (t.weight_decay, t.nesterov) = (1e-5, false);
    (m.temperature, m.projector_features, m.predictor_width) = (0.2, 256, 4096);
    views_of_preset(c, preset);
    if preset == Preset::Quick {
        // LARS measures tensors, and its rate is another one.
        c.training.learning_rate = 0.1;
    }
}

/// An encoder, whose output is judged, a projector, a predictor and the support set.
pub struct NnClr {
    temperature: f32,
    chain: Chain,
    support: MemoryBank,
    nearest: Buffer,
    positives: DevicePositives,
}

const PROJECTOR: usize = 1;
const SUPPORT: &str = "support";

fn heads(m: &MethodConfig) -> [Head; 2] {
    [("projector", m.projector(), MlpEnd::Norm), ("predictor", m.predictor(), MlpEnd::UnitLength)]
}

impl NnClr {
    /// At the beginning of a run, where the support set is noise.
    pub fn new(setup: Setup, m: &MethodConfig) -> Result<Self> {
        let chain = Chain::new(&setup, m.passes(), "", &heads(m))?;
        let (device, dim) = (setup.device, chain.features());
        let mut itself = Positives::with_capacity(setup.batch, setup.batch);
        (0..setup.batch as u32).for_each(|picture| itself.push([picture]));
        Ok(NnClr {
            support: MemoryBank::new(device, setup.pictures, dim, setup.seed)?,
            nearest: device.zeros(chain.rows() * dim)?,
            positives: device.positives(&itself, setup.batch)?,
            temperature: m.temperature as f32,
            chain,
        })
    }
}

impl Method for NnClr {
    fn views(&self) -> Vec<ViewSettings> {
        self.chain.alike()
    }

    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        self.chain.forward(stream, batch)?;
        let (views, dim) = (self.chain.views(), self.chain.features());
        let projected = self.chain.output(PROJECTOR);
        stream.nearest_rows(projected, self.support.buffer(), dim, &mut self.nearest)?;
        let (queries, loss) = self.chain.output_and_loss();
        let of = SoftmaxLoss {
            queries,
            keys: &self.nearest,
            dim,
            temperature: self.temperature,
            positives: &self.positives,
            items: None,
        };
        stream.softmax_between_views(&of, views, loss)?;
        let projected = self.chain.output(PROJECTOR);
        self.support.update(stream, batch.indices(), projected, 1.0)?;
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

    fn restore(&mut self, device: &Device, state: &StateDict) -> Result<()> {
        let wanted = [self.support.len(), self.support.dim()];
        let rows = state.floats_of(SUPPORT, &wanted)?;
        self.support = MemoryBank::from_values(device, rows, wanted[1])?;
        Ok(())
    }
}
