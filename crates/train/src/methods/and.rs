//! AND: *Unsupervised Deep Learning by Neighbourhood Discovery* (Huang et al., ICML 2019).
//!
//! A step draws the features of a batch towards their positives among all pictures remembered (Eq.
//! 7), and blends them into the memory (Eq. 8). In round 0 a picture's only positive is itself;
//! before each later round its neighbourhood is discovered (Eq. 1), and counts if its entropy (Eq.
//! 5) is among the share that the curriculum trusts (Eq. 6). With v of unit length, x̃ the memory,
//! N pictures, positives P(i):
//!
//! ```text
//! ℓ_i = − ln [ Σ_{p in P(i)} exp(v_i·x̃_p / τ) / Σ_{j ≤ N} exp(v_i·x̃_j / τ) ]
//! x̃_i ← normalise((1 − η) · x̃_i + η · v_i)
//! ```
//!
//! The recipe is the paper's (four rounds of 200 epochs after round 0, SGD at 0.03 with milestones,
//! τ = 0.1, η = 0.5, k = 1); nothing is adapted at 32×32. The feature that is compared is also the
//! one that is judged.

use anchorhood_engine::{Batch, Buffer, Device, Loss, Network, Result, Stream};

use crate::config::{DiscoveryConfig, RunConfig};
use crate::discovery::{MemoryBank, Neighbourhoods};
use crate::methods::memory::{BANK, Memory};
use crate::methods::{Embeds, Method, MethodKind, MethodSpec, Round, Setup, StateDict};

/// Draw images towards neighbours that are discovered round by round.
pub static AND: MethodSpec = MethodSpec {
    name: "and",
    summary: "Draw images towards neighbours that are discovered round by round",
    reference: "Huang et al., ICML 2019",
    kind: MethodKind::Memory,
    embeds: Embeds::Output,
    discovers: true,
    recipe: |_, _| (),
    memory_bytes: remembered,
    build: and,
    ..MethodSpec::DEFAULT
};

/// Bytes of a memory of features, with the number and the likeness of each neighbour.
pub(super) fn remembered(setup: &Setup, c: &RunConfig) -> Result<(usize, usize)> {
    let network = setup.options(setup.batch).memory_bytes(setup.graph)?;
    Ok((network, memory_row_bytes(c, c.network.features)))
}

/// With discovery where the configured method has it.
pub(super) fn and(setup: Setup, config: &RunConfig, _: &[u32]) -> Result<Box<dyn Method>> {
    Ok(Box::new(And::new(setup, config)?))
}

/// Bytes of a row of the memory, and of its neighbours.
pub(super) fn memory_row_bytes(c: &RunConfig, features: usize) -> usize {
    4 * features + 8 * c.discovery.neighbours
}

/// The network, the memory, the neighbourhoods.
pub struct And {
    /// Whether neighbourhoods are looked for.
    discovers: bool,
    settings: DiscoveryConfig,
    network: Network,
    memory: Memory,
    losses: Buffer,
}

impl And {
    /// At the beginning of a run.
    pub fn new(setup: Setup, config: &RunConfig) -> Result<Self> {
        let settings = config.discovery.clone();
        let network = setup.encoder(&setup.options(setup.batch))?;
        Ok(And {
            discovers: config.method.name.discovers,
            memory: Memory::new(&setup, &settings, BANK, network.features())?,
            losses: setup.device.zeros(setup.batch)?,
            settings,
            network,
        })
    }
}

impl Method for And {
    fn before_round(&mut self, round: &mut Round) -> Result<()> {
        if round.round == 0 && self.settings.fill {
            let features = (round.features)(&mut self.network)?;
            self.memory.fill(round.device, features)?;
        }
        if !self.discovers {
            return Ok(());
        }
        let network = &mut self.network;
        self.memory.discover(round, &self.settings, |round| {
            Ok(((round.features)(network)?, network.features()))
        })
    }

    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        let s = &self.settings;
        self.network.forward(stream, 0, batch.view(0))?;
        let (features, gradient) = self.network.output_and_gradient();
        let loss = Loss { rows: &mut self.losses, gradient, weight: 1.0 };
        self.memory.loss(stream, features, s.temperature as f32, batch, loss)?;
        let features = self.network.output();
        let bank = &mut self.memory.bank;
        bank.update(stream, batch.indices(), features, s.memory_rate as f32)?;
        self.network.backward(stream, 0)?;
        self.network.update(stream)
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        vec![("", &mut self.network)]
    }

    fn encoder(&mut self) -> (&mut Network, Option<&MemoryBank>) {
        (&mut self.network, Some(&self.memory.bank))
    }

    fn state(&self, device: &Device) -> Result<StateDict> {
        self.memory.state(device)
    }

    fn restore(&mut self, device: &Device, state: &StateDict) -> Result<()> {
        self.memory.restore(device, state)
    }

    fn neighbourhoods(&self) -> Option<&Neighbourhoods> {
        Some(&self.memory.neighbourhoods)
    }
}
