//! Pictures to vectors: a model on a device.

use std::path::Path;
use std::sync::Arc;

use crate::curate::extend_unit;
use crate::onnx::Encoder;
use anchorhood_data::{Picture, Pictures, Squaring, normalise};
use anchorhood_engine::{Device, Network, NodeId};
use anchorhood_train::InputForm;
use anchorhood_train::evaluation::Rows;
use rayon::prelude::*;

use crate::SearchError;

/// A model on a device.
///
/// The vector of a picture is the network's result, of unit length; of another layer it is the mean
/// of each channel over all places, as it is.
pub struct Embedder {
    runner: Runner,
    input: InputForm,
    squaring: Squaring,
    dim: usize,
    batch: usize,
}

/// Who makes the vectors.
enum Runner {
    Engine(OnEngine),
    /// Pictures are spread over the device's threads, each by itself: the same bits, however many
    /// there are.
    Onnx(Arc<Encoder>, Device),
}

/// A network of ours, and room for a batch.
struct OnEngine {
    network: Network,
    tap: Option<NodeId>,
    pixels: Vec<f32>,
    result: Vec<f32>,
}

impl Embedder {
    pub(crate) fn new(network: Network, input: InputForm, tap: Option<NodeId>) -> Self {
        let graph = network.graph();
        let result = graph.shape(graph.output_node()).len() * network.batch();
        let dim = match tap {
            Some(tap) => graph.shape(tap).channels,
            None => graph.shape(graph.output_node()).len(),
        };
        Embedder {
            input,
            squaring: input.size.into(),
            dim,
            batch: network.batch(),
            runner: Runner::Engine(OnEngine {
                pixels: vec![0.0; network.batch() * input.size * input.size * 3],
                result: vec![0.0; result],
                network,
                tap,
            }),
        }
    }

    pub(crate) fn of_onnx(
        encoder: Arc<Encoder>,
        device: &Device,
        input: InputForm,
        batch: usize,
    ) -> Self {
        Embedder {
            input,
            squaring: encoder.preprocessing().squaring,
            dim: encoder.dim(),
            batch,
            runner: Runner::Onnx(encoder, device.clone()),
        }
    }

    /// Length of a vector.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Pictures at a time.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Pixels a side of what it is given.
    pub fn size(&self) -> usize {
        self.input.size
    }

    /// How a picture becomes what it is given.
    pub fn squaring(&self) -> Squaring {
        self.squaring
    }

    /// Appends to `vectors` one for each of up to a batch of pictures, `size`×`size`×3 bytes each.
    pub fn embed(&mut self, squares: &[u8], vectors: &mut Vec<f32>) -> Result<(), SearchError> {
        let one = self.input.size * self.input.size * 3;
        match &mut self.runner {
            Runner::Engine(engine) => {
                engine.embed(squares, squares.len() / one, &self.input, self.dim, vectors)
            }
            Runner::Onnx(encoder, device) => {
                for vector in on_threads(encoder, device, squares, one)?.chunks_exact(self.dim) {
                    extend_unit(vectors, vector);
                }
                Ok(())
            }
        }
    }

    /// The vectors of any number of pictures, which are resized where the network wants another
    /// size.
    pub fn embed_all(&mut self, pictures: &Pictures) -> Result<Rows, SearchError> {
        let size = self.input.size;
        let ours = self.squaring.is_ours();
        let fits = ours && (pictures.height(), pictures.width()) == (size, size);
        let mut values = Vec::with_capacity(pictures.len() * self.dim);
        let all: Vec<usize> = (0..pictures.len()).collect();
        for batch in all.chunks(self.batch()) {
            // A batch at a time: what is made or decoded on demand need not fit in memory.
            let batch = pictures.subset(batch);
            let batch = if fits { batch } else { batch.resized(self.squaring)? };
            self.embed(batch.raw(), &mut values)?;
        }
        Ok(Rows::new(values, self.dim))
    }

    /// The vector of one picture file.
    pub fn embed_file(&mut self, path: impl AsRef<Path>) -> Result<Vec<f32>, SearchError> {
        let path = path.as_ref();
        let by = self.squaring;
        let mut square = vec![0; by.bytes()];
        let read = Picture::read_for(path, by.side(), |picture| picture.square_by(by, &mut square));
        read.map_err(|why| SearchError::bad_picture(path, why))?;
        let mut vector = Vec::with_capacity(self.dim);
        self.embed(&square, &mut vector)?;
        Ok(vector)
    }
}

impl OnEngine {
    fn embed(
        &mut self,
        squares: &[u8],
        count: usize,
        input: &InputForm,
        dim: usize,
        vectors: &mut Vec<f32>,
    ) -> Result<(), SearchError> {
        let pixels = &mut self.pixels[..squares.len()];
        normalise(squares, input.mean, input.std, pixels);
        let graph = self.network.graph();
        let width = graph.shape(graph.output_node()).len();
        let result = &mut self.result[..count * width];
        self.network.infer(pixels, result)?;
        match self.tap {
            None => vectors.extend_from_slice(result),
            Some(tap) => {
                let values = self.network.kept(tap, count)?;
                for picture in values.chunks_exact(values.len() / count.max(1)) {
                    mean_over_places(picture, dim, vectors);
                }
            }
        }
        Ok(())
    }
}

/// The vectors of pictures of `one` bytes each as an ONNX file gives them, in their order.
fn on_threads(
    encoder: &Encoder,
    device: &Device,
    squares: &[u8],
    one: usize,
) -> Result<Vec<f32>, SearchError> {
    let parts = squares.par_chunks(one * encoder.step());
    let vectors = parts.map(|pictures| encoder.vectors(pictures));
    let done: Result<Vec<Vec<f32>>, SearchError> = device.within(|| vectors.collect());
    Ok(done?.concat())
}

fn mean_over_places(picture: &[f32], channels: usize, out: &mut Vec<f32>) {
    let places = (picture.len() / channels) as f32;
    let start = out.len();
    out.resize(start + channels, 0.0);
    for place in picture.chunks_exact(channels) {
        for (sum, v) in out[start..].iter_mut().zip(place) {
            *sum += v;
        }
    }
    out[start..].iter_mut().for_each(|v| *v /= places);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_averaged_channel_by_channel() {
        let mut out = vec![9.0];
        mean_over_places(&[1.0, 10.0, 3.0, 30.0], 2, &mut out);
        assert_eq!(out, [9.0, 2.0, 20.0]);
    }
}
