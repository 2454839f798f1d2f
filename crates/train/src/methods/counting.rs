//! Counting: *Representation Learning by Learning to Count* (Noroozi, Pirsiavash & Favaro, ICCV
//! 2017).
//!
//! What is seen in the four quarters of a picture is, together, what is seen in the whole: features
//! are to be such that the quarters' add up to those of the whole picture, shrunk to the size of a
//! quarter, and not to those of another. With φ = max(0, the network's result), D the shrunk
//! picture, T_q its quarters, y another picture of the batch, M = 10:
//!
//! ```text
//! ℓ_x = |φ(D x) − Σ_q φ(T_q x)|² + max(0, M − |φ(D y) − Σ_q φ(T_q x)|²)
//! ```
//!
//! Without the second term φ = 0 would do. The network's last layer, before the ReLU, is judged.
//!
//! Recipe: M = 10, a learning rate of 0.0001, and grey pictures two times in three, so that colours
//! at lenses' edges do not tell parts apart (the paper). At ten times the rate AlexNet's first
//! steps make all features negative, φ = 0, and no gradient leads back; `quick`'s narrow networks
//! bear it.
//!
//! Adapted for 32×32: quarters and the shrunk picture, of 16×16 pixels, are enlarged to 32×32, so
//! that one network is for them and for pictures; 128 features (`--features`) in place of 1000;
//! AdamW with weight decay 0.01, batch 128, cosine, since batch norm makes another network of
//! AlexNet.

use anchorhood_engine::{
    Batch, Buffer, Counting as PartsAndWholes, Device, Graph, Input, Loss, Network, Result, Stream,
};

use crate::config::{OptimiserChoice, Preset, RunConfig, ScheduleChoice};
use crate::methods::recipes::one_round;
use crate::methods::{
    Embeds, EpochStart, Method, MethodKind, MethodSpec, PretextFigure, Setup, StateDict, Values,
};

/// Make the features of an image's quarters add up to those of the whole.
pub static COUNTING: MethodSpec = MethodSpec {
    name: "counting",
    summary: "Make the features of an image's quarters add up to those of the whole",
    reference: "Noroozi, Pirsiavash & Favaro, ICCV 2017",
    kind: MethodKind::Targets,
    embeds: Embeds::Fc,
    passes_per_image: |_| VIEWS,
    multi_process: Err(
        "it compares each picture with the next of the batch, which may be another process's",
    ),
    recipe,
    memory_bytes: |setup, _| Ok((Counting::memory_bytes(setup)?, 0)),
    build: |setup, _, _| Ok(Box::new(Counting::new(setup)?)),
    ..MethodSpec::DEFAULT
};

/// Whole images, mostly: what is cut off is not counted.
fn recipe(c: &mut RunConfig, preset: Preset) {
    one_round(c);
    let (t, a) = (&mut c.training, &mut c.augmentation);
    (t.optimiser, t.schedule) = (OptimiserChoice::AdamW, ScheduleChoice::Cosine);
    (t.learning_rate, t.weight_decay) = (0.0001, 0.01);
    (a.crop_scale, a.hue, a.grey, a.flip) = ((0.67, 1.0), 0.1, 0.67, 0.5);
    if preset == Preset::Quick {
        // Few steps, and of a narrow network, whose features change less in one.
        (t.batch, t.learning_rate) = (32, 0.001);
    }
}

/// M.
const MARGIN: f32 = 10.0;
/// The whole and its quarters.
const VIEWS: usize = 5;
const TALLY: &str = "tally";

/// The network, and what it is shown of a batch.
pub struct Counting {
    network: Network,
    /// Views as they are, and what becomes of features: layers without weights.
    pixels: Network,
    relu: Network,
    size: usize,
    /// The wholes and the quarters.
    parts: Buffer,
    distances: Buffer,
    /// Of the two classes that distances are logits of, the second is always right.
    own: Buffer<u32>,
    tally: Buffer<u32>,
    losses: Buffer,
}

impl Counting {
    /// Bytes of the network that learns, and of what it is shown.
    pub fn memory_bytes(setup: &Setup) -> Result<usize> {
        let values = VIEWS * setup.batch * setup.picture().len();
        Ok(setup.options(VIEWS * setup.batch).memory_bytes(setup.graph)? + 4 * values)
    }

    /// At the beginning of a run.
    pub fn new(setup: Setup) -> Result<Self> {
        let (device, batch) = (setup.device, setup.batch);
        let network = setup.encoder(&setup.options(VIEWS * batch))?;
        let (pictures, relu) = (setup.picture(), relu(network.features())?);
        let head = setup.options(VIEWS * batch).with_input_gradient();
        Ok(Counting {
            pixels: setup.pixels()?,
            relu: device.network(&relu, &head)?,
            size: pictures.height,
            parts: device.zeros(VIEWS * batch * pictures.len())?,
            distances: device.zeros(2 * batch)?,
            own: device.upload_indices(&vec![1; setup.pictures])?,
            tally: device.upload_indices(&[0; 3])?,
            losses: device.zeros(batch)?,
            network,
        })
    }
}

fn relu(features: usize) -> Result<Graph> {
    let mut graph = Graph::new();
    let x = graph.input(1, 1, features);
    let x = graph.relu("relu", x)?;
    graph.output(x);
    Ok(graph)
}

impl Method for Counting {
    fn before_epoch(&mut self, start: &mut EpochStart) -> Result<()> {
        self.tally = start.device.upload_indices(&[0; 3])?;
        Ok(())
    }

    fn pretext(&mut self, device: &Device) -> Result<Vec<PretextFigure>> {
        let tally = device.download_indices(&self.tally)?;
        Ok(vec![PretextFigure {
            name: "accuracy".into(),
            share: f64::from(tally[0]) / f64::from(tally[2].max(1)),
            chance: Some(0.5),
        }])
    }

    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        self.pixels.forward(stream, 0, batch.view(0))?;
        let channels = self.pixels.features() / (self.size * self.size);
        stream.quarters(self.pixels.output(), self.size, channels, &mut self.parts)?;
        self.network.forward(stream, 0, Input::rows(&self.parts))?;
        self.relu.forward(stream, 0, self.network.output_of(0))?;
        let dim = self.network.features();
        let (rows, gradient) = self.relu.output_and_gradient();
        let of = PartsAndWholes { rows, views: VIEWS, dim, margin: MARGIN };
        let loss = Loss { rows: &mut self.losses, gradient, weight: 1.0 };
        stream.counting(&of, &mut self.distances, loss)?;
        let (distances, items) = (&self.distances, batch.indices());
        stream.tally(distances, 2, &self.own, items, &mut self.tally)?;
        self.relu.backward(stream, 0)?;
        let (_, gradient) = self.network.output_and_gradient();
        stream.copy(self.relu.input_gradient()?, gradient)?;
        self.network.backward(stream, 0)?;
        self.network.update(stream)
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        vec![("", &mut self.network)]
    }

    fn state(&self, device: &Device) -> Result<StateDict> {
        let mut state = StateDict::default();
        let tally = device.download_indices(&self.tally)?;
        state.push(TALLY, vec![tally.len()], Values::U32(tally));
        Ok(state)
    }

    fn restore(&mut self, device: &Device, state: &StateDict) -> Result<()> {
        let tally = state.words_of(TALLY, &[3], usize::MAX)?;
        self.tally = device.upload_indices(tally)?;
        Ok(())
    }
}
