//! What a method remembers of all pictures: a feature of each, and which of them belong together.

use anchorhood_engine::{
    Batch, Buffer, Device, DevicePositives, Error, Loss, Result, RowSample, Stream,
};

use crate::config::{DiscoveryConfig, FeatureSource};
use crate::discovery::{MemoryBank, Neighbourhoods, neighbourhood_loss};
use crate::methods::{Round, Setup, StateDict, Values};

impl DiscoveryConfig {
    /// The share of pictures that are anchors in a round.
    fn share(&self, round: usize, rounds: usize) -> f64 {
        let alone = (self.begin * (rounds + 1) as f64).round() as usize;
        let before = alone.saturating_sub(1);
        let of = rounds.saturating_sub(before);
        self.curriculum.share(round.saturating_sub(before), of)
    }
}

/// The memory bank and the neighbourhoods.
pub(crate) struct Memory {
    /// What its rows are called among what the method keeps.
    name: &'static str,
    each: bool,
    sample: Option<RowSample>,
    pub bank: MemoryBank,
    pub neighbourhoods: Neighbourhoods,
    positives: DevicePositives,
}

/// Rows that are the features which are judged.
pub(crate) const BANK: &str = "memory.bank";
/// Rows that a projector made.
pub(crate) const PROJECTED: &str = "memory.projected";

impl Memory {
    /// Noise, and every picture by itself.
    pub fn new(
        setup: &Setup,
        settings: &DiscoveryConfig,
        name: &'static str,
        dim: usize,
    ) -> Result<Self> {
        let (device, pictures) = (setup.device, setup.pictures);
        let neighbourhoods = single(device, pictures);
        let positives = neighbourhoods.positives();
        Ok(Memory {
            name,
            each: settings.each,
            sample: settings.loss_rows.sampled().map(|rows| RowSample { rows, seed: setup.seed }),
            bank: MemoryBank::new(device, pictures, dim, setup.seed)?,
            positives: device.positives_part(&positives, pictures, pictures)?,
            neighbourhoods,
        })
    }

    /// Features of unit length, a row for each of this process's pictures, in place of what it
    /// remembers.
    pub fn fill(&mut self, device: &Device, rows: Vec<f32>) -> Result<()> {
        self.bank = self.bank_of(device, rows, self.bank.dim())?;
        Ok(())
    }

    /// A bank of the same pictures from other features: a row of `dim` values for each of this
    /// process's.
    pub fn bank_of(&self, device: &Device, rows: Vec<f32>, dim: usize) -> Result<MemoryBank> {
        MemoryBank::from_part(device, self.bank.len(), rows, dim)
    }

    /// Neighbourhoods for a round that has anchors at all: from what it remembers or, where that is
    /// set, from features of unit length computed anew, and the length of each.
    pub fn discover(
        &mut self,
        round: &mut Round,
        settings: &DiscoveryConfig,
        recompute: impl FnOnce(&mut Round) -> Result<(Vec<f32>, usize)>,
    ) -> Result<()> {
        let share = settings.share(round.round, round.rounds);
        if share <= 0.0 {
            return Ok(());
        }
        let recomputed = if settings.discover_from == FeatureSource::Recomputed {
            let (rows, dim) = recompute(round)?;
            Some(self.bank_of(round.device, rows, dim)?)
        } else {
            None
        };
        self.neighbourhoods = Neighbourhoods::discover(
            round.device,
            recomputed.as_ref().unwrap_or(&self.bank),
            settings.by,
            settings.neighbours,
            settings.temperature as f32,
            share,
            round.progress,
        )?;
        self.count(round.device)
    }

    /// The loss of a batch's features, view after view, over all that is remembered.
    pub fn loss(
        &self,
        stream: &mut Stream,
        features: &Buffer,
        temperature: f32,
        batch: Batch,
        loss: Loss,
    ) -> Result<()> {
        let (bank, positives) = (&self.bank, &self.positives);
        let items = batch.indices();
        let sample = self.sample.filter(|sample| sample.rows < bank.len());
        neighbourhood_loss(stream, features, bank, temperature, positives, items, sample, loss)
    }

    /// All of it, for a checkpoint: of this process's pictures.
    pub fn state(&self, device: &Device) -> Result<StateDict> {
        let (n, dim) = (self.neighbourhoods.len(), self.bank.dim());
        let mut state = StateDict::default();
        let rows = device.download(self.bank.buffer())?;
        state.push(self.name, vec![n, dim], Values::F32(rows));
        let found = &self.neighbourhoods;
        if found.k() > 0 {
            let neighbours = found.neighbours().to_vec();
            let anchors = found.anchors().iter().map(|a| u8::from(*a)).collect();
            let entropy = found.entropy().to_vec();
            state.push("memory.neighbours", vec![n, found.k()], Values::U32(neighbours));
            state.push("memory.anchors", vec![n], Values::U8(anchors));
            state.push("memory.entropy", vec![n], Values::F32(entropy));
        }
        Ok(state)
    }

    /// Takes up what a checkpoint has.
    pub fn restore(&mut self, device: &Device, state: &StateDict) -> Result<()> {
        let (pictures, dim) = (self.bank.len(), self.bank.dim());
        let part = device.communicator().part(pictures);
        let rows = state.floats_of(self.name, &[part.len(), dim])?;
        self.bank = self.bank_of(device, rows.to_vec(), dim)?;
        let found = neighbourhoods_of(state, [part.start, pictures])?;
        self.neighbourhoods = found.unwrap_or_else(|| single(device, pictures));
        self.count(device)
    }

    /// Brings the positives to the device.
    fn count(&mut self, device: &Device) -> Result<()> {
        let positives = self.neighbourhoods.positives();
        let positives = if self.each { positives.counting_each() } else { positives };
        let pictures = self.bank.len();
        self.positives = device.positives_part(&positives, pictures, pictures)?;
        Ok(())
    }
}

/// Every one of this process's pictures by itself.
fn single(device: &Device, pictures: usize) -> Neighbourhoods {
    Neighbourhoods::single_part(device.communicator().part(pictures), pictures)
}

/// The memory of judged features that a state holds: rows, and the length of each.
pub fn memory_of(state: &StateDict) -> Option<(&[f32], usize)> {
    match state.floats(BANK)? {
        ([_, dim], rows) => Some((rows, *dim)),
        _ => None,
    }
}

/// Pictures that a state holds a row of, whatever the row is of.
pub fn remembered_pictures(state: &StateDict) -> usize {
    let rows = state.get(BANK).or_else(|| state.get(PROJECTED));
    rows.and_then(|rows| rows.shape.first().copied()).unwrap_or(0)
}

/// The neighbourhoods that a state holds, of pictures from a number on, of so many.
pub fn neighbourhoods_of(state: &StateDict, rows: [usize; 2]) -> Result<Option<Neighbourhoods>> {
    let Some((shape, neighbours)) = state.words("memory.neighbours") else {
        return Ok(None);
    };
    let missing = |name| move || Error::Plan(format!("it has no {name}"));
    let (_, anchors) = state.flags("memory.anchors").ok_or_else(missing("memory.anchors"))?;
    let (_, entropy) = state.floats("memory.entropy").ok_or_else(missing("memory.entropy"))?;
    let k = shape.get(1).copied().unwrap_or(0);
    let anchors = anchors.iter().map(|a| *a != 0).collect();
    let (neighbours, entropy) = (neighbours.to_vec(), entropy.to_vec());
    let found = Neighbourhoods::of_part(rows, k, neighbours, anchors, entropy)?;
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Preset;

    #[test]
    fn the_curriculum_begins_when_it_is_to() {
        let shares = |begin, rounds: usize| -> Vec<f64> {
            let paper = Preset::Paper.config("shapes").discovery;
            let settings = DiscoveryConfig { begin, ..paper };
            (0..=rounds).map(|r| settings.share(r, rounds)).collect()
        };
        assert_eq!(shares(0.0, 4), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(shares(0.4, 4), [0.0, 0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0]);
        assert_eq!(shares(1.0, 2), [0.0; 3]);
        assert_eq!(shares(0.5, 0), [0.0]);
    }
}
