//! AND: *Unsupervised Deep Learning by Neighbourhood Discovery* (Huang et al., ICML 2019).
//!
//! A step draws the features of a batch towards their positives among all pictures remembered (Eq. 7), and blends them into
//! the memory (Eq. 8). In round 0 a picture's only positive is itself; before each later round its neighbourhood is
//! discovered (Eq. 1), and counts if its entropy (Eq. 5) is among the share that the curriculum trusts (Eq. 6). With v of unit
//! length, x̃ the memory, N pictures, positives P(i):
//!
//! ```text
//! ℓ_i = − ln [ Σ_{p in P(i)} exp(v_i·x̃_p / τ) / Σ_{j ≤ N} exp(v_i·x̃_j / τ) ],   x̃_i ← normalise((1 − η) · x̃_i + η · v_i)
//! ```
//!
//! The recipe is the paper's (four rounds of 200 epochs after round 0, SGD at 0.03 with milestones, τ = 0.1, η = 0.5, k = 1); nothing
//! is adapted at 32×32. The feature that is compared is also the one that is judged.

use anchorhood_discover::{Curriculum, MemoryBank, Neighbourhoods, neighbourhood_loss};
use anchorhood_engine::{Batch, Buffer, Device, DevicePositives, Loss, Network, Result, Stream};

use crate::{Method, Round, Setup, StateDict, StateError, Values};

/// The method's settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AndSettings {
    /// τ of the loss and the entropy.
    pub temperature: f32,
    /// η: the share of the new feature in the memory.
    pub memory_rate: f32,
    /// k: neighbours of an anchor.
    pub neighbours: usize,
    /// How the share of anchors grows over the rounds.
    pub curriculum: Curriculum,
    /// Whether neighbourhoods are discovered from features computed anew, rather than from the memory.
    pub recompute: bool,
}

/// The network, the memory, the neighbourhoods.
pub struct And {
    /// Whether neighbourhoods are looked for.
    discovers: bool,
    settings: AndSettings,
    network: Network,
    memory: MemoryBank,
    neighbourhoods: Neighbourhoods,
    positives: DevicePositives,
    losses: Buffer,
}

impl And {
    /// At the beginning of a run.
    pub fn new(setup: Setup, settings: AndSettings) -> Result<Self> {
        let (device, pictures) = (setup.device, setup.pictures);
        let network = setup.encoder(&setup.options(setup.batch))?;
        let neighbourhoods = Neighbourhoods::single(pictures);
        Ok(And {
            discovers: true,
            memory: MemoryBank::new(device, pictures, network.features(), setup.seed)?,
            positives: device.positives(&neighbourhoods.positives(), pictures)?,
            losses: device.zeros(setup.batch)?,
            settings,
            network,
            neighbourhoods,
        })
    }
}

impl And {
    /// Every picture stays by itself.
    pub(crate) fn without_discovery(self) -> Self {
        And {
            discovers: false,
            ..self
        }
    }
}

impl Method for And {
    fn name(&self) -> &'static str {
        match self.discovers {
            true => "and",
            false => "instance",
        }
    }

    fn before_round(&mut self, round: &mut Round) -> Result<()> {
        if round.round == 0 || !self.discovers {
            return Ok(());
        }
        let (device, s) = (round.device, &self.settings);
        let recomputed = match s.recompute {
            false => None,
            true => {
                let features = (round.features)(&mut self.network)?;
                let dim = self.memory.dim();
                Some(MemoryBank::from_values(device, &features, dim)?)
            }
        };
        self.neighbourhoods = Neighbourhoods::discover(
            device,
            recomputed.as_ref().unwrap_or(&self.memory),
            s.neighbours,
            s.temperature,
            s.curriculum.share(round.round, round.rounds),
            round.progress,
        )?;
        self.positives = device.positives(&self.neighbourhoods.positives(), self.memory.len())?;
        Ok(())
    }

    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        let s = &self.settings;
        self.network.forward(stream, 0, batch.view(0))?;
        let (features, gradient) = self.network.output_and_gradient();
        let loss = Loss {
            rows: &mut self.losses,
            gradient,
            weight: 1.0,
        };
        let (memory, positives) = (&self.memory, &self.positives);
        neighbourhood_loss(
            stream,
            features,
            memory,
            s.temperature,
            positives,
            batch.indices(),
            loss,
        )?;
        let features = self.network.output();
        self.memory
            .update(stream, batch.indices(), features, s.memory_rate)?;
        self.network.backward(stream, 0)?;
        self.network.update(stream)
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        vec![("", &mut self.network)]
    }

    fn encoder(&mut self) -> (&mut Network, Option<&MemoryBank>) {
        (&mut self.network, Some(&self.memory))
    }

    fn state(&self, device: &Device) -> Result<StateDict> {
        let (n, dim) = (self.memory.len(), self.memory.dim());
        let mut state = StateDict::default();
        let rows = self.memory.values(device)?;
        state.push("memory.bank", vec![n, dim], Values::F32(rows));
        let found = &self.neighbourhoods;
        if found.k() > 0 {
            let neighbours = found.neighbours().to_vec();
            let anchors = found.anchors().iter().map(|a| u8::from(*a)).collect();
            let entropy = found.entropy().to_vec();
            state.push(
                "memory.neighbours",
                vec![n, found.k()],
                Values::U32(neighbours),
            );
            state.push("memory.anchors", vec![n], Values::U8(anchors));
            state.push("memory.entropy", vec![n], Values::F32(entropy));
        }
        Ok(state)
    }

    fn restore(&mut self, device: &Device, state: &StateDict) -> Result<(), StateError> {
        let wanted = [self.memory.len(), self.memory.dim()];
        let rows = state.floats_of("memory.bank", &wanted)?;
        self.memory = MemoryBank::from_values(device, rows, wanted[1])?;
        let found = neighbourhoods_of(state)?;
        self.neighbourhoods = found.unwrap_or_else(|| Neighbourhoods::single(wanted[0]));
        self.positives = device.positives(&self.neighbourhoods.positives(), wanted[0])?;
        Ok(())
    }

    fn neighbourhoods(&self) -> Option<&Neighbourhoods> {
        Some(&self.neighbourhoods)
    }
}

/// The memory that a state holds: rows, and the length of each.
pub fn memory_of(state: &StateDict) -> Option<(&[f32], usize)> {
    match state.floats("memory.bank")? {
        ([_, dim], rows) => Some((rows, *dim)),
        _ => None,
    }
}

/// The neighbourhoods that a state holds.
pub fn neighbourhoods_of(state: &StateDict) -> Result<Option<Neighbourhoods>, StateError> {
    let Some((shape, neighbours)) = state.words("memory.neighbours") else {
        return Ok(None);
    };
    let missing = |name| StateError::Missing { name };
    let (_, anchors) = state
        .flags("memory.anchors")
        .ok_or(missing("memory.anchors"))?;
    let (_, entropy) = state
        .floats("memory.entropy")
        .ok_or(missing("memory.entropy"))?;
    let k = shape.get(1).copied().unwrap_or(0);
    let anchors = anchors.iter().map(|a| *a != 0).collect();
    let found = Neighbourhoods::from_parts(k, neighbours.to_vec(), anchors, entropy.to_vec())?;
    Ok(Some(found))
}
