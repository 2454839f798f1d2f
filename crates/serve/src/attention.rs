//! Where a run's network looks in one of its training pictures, on demand: a picture under the heat
//! of its attention.

use anchorhood_data::{Pictures, normalise};
use anchorhood_engine::{Device, Positives};
use anchorhood_index::Model;
use anchorhood_train::InputForm;
use anchorhood_train::discovery::{MemoryBank, Neighbourhoods};
use anchorhood_train::evaluation::overlay::{overlay, picture, png};
use anchorhood_train::evaluation::{Attention, Memory};

use crate::ServeError;

/// The layer whose places are weighed, as `attention` takes it by default.
const LAYER: &str = "conv5";

/// What is needed to look.
pub(crate) struct LookFrom {
    /// The training pictures.
    pub pictures: Pictures,
    /// What every picture is known by, a row each.
    pub memory: Vec<f32>,
    /// Length of a row.
    pub dim: usize,
    /// τ of the softmax over it.
    pub temperature: f32,
}

/// A network that can be asked where it looks.
pub(crate) struct Looker {
    attention: Attention,
    bank: MemoryBank,
    from: LookFrom,
    input: InputForm,
}

impl Looker {
    /// The model on a device, with its memory.
    pub fn new(device: &Device, model: &Model, from: LookFrom) -> Result<Self, ServeError> {
        let node = model.graph()?.find(LAYER)?;
        let network = model.network_on(device, 1, vec![node])?;
        let bank = MemoryBank::from_values(device, &from.memory, from.dim)?;
        Ok(Looker {
            attention: Attention::new(device, network, node, 1)?,
            bank,
            from,
            input: *model.input(),
        })
    }

    /// Picture `i` as PNG, under the heat of what places it near its neighbourhood: that of `found`
    /// where it is an anchor.
    pub fn look(&mut self, i: usize, found: Option<&Neighbourhoods>) -> Result<Vec<u8>, String> {
        let pictures = &self.from.pictures;
        let mut scratch = vec![];
        let bytes = pictures.picture_in(i, &mut scratch);
        let input = &self.input;
        let mut pixels = vec![0.0; bytes.len()];
        normalise(bytes, input.mean, input.std, &mut pixels);
        let shown = picture(bytes, pictures.height(), pictures.width());
        let neighbours = match found {
            Some(found) if found.anchors().get(i) == Some(&true) => found.neighbours_of(i),
            _ => &[],
        };
        let mut positives = Positives::with_capacity(1, 1 + neighbours.len());
        positives.push(std::iter::once(i as u32).chain(neighbours.iter().copied()));
        let memory = Memory {
            bank: self.bank.buffer(),
            dim: self.bank.dim(),
            temperature: self.from.temperature,
        };
        let maps = self.attention.maps(&pixels, &positives, &memory);
        let maps = maps.map_err(|e| e.to_string())?;
        let map = maps.first().ok_or("the network gave no map")?;
        Ok(png(&overlay(&shown, map)))
    }
}
