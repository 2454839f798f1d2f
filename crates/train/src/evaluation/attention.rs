//! Where does the network look? Grad-CAM (Selvaraju et al., 2017) for an embedding.
//!
//! Grad-CAM asks which places of a convolution's maps A raise the score of a class. An embedding
//! has no classes; what training raises is the probability of a picture's neighbourhood, so the
//! score is
//!
//! ```text
//! y = log Σ_{j ∈ N(i)} p_ij,   p_i = softmax(x_i · m / τ) over all rows m of the memory
//! α_c = mean over places of ∂y/∂A_c,   map = ReLU(Σ_c α_c · A_c)
//! ```
//!
//! with x_i and A as inference has them: the network runs forwards once, and the layers after A run
//! backwards as a network of their own (see `head.rs`), on any device.

use anchorhood_engine::{
    Buffer, Device, Error, Input, Loss, Network, NodeId, Positives, Result, Shape, SoftmaxLoss,
    Stream,
};

use crate::evaluation::head::Head;

/// How much each place of one picture speaks for its neighbourhood; 0 or more, in no unit.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Values, row after row.
    pub values: Vec<f32>,
}

/// A layer's values and the gradient of each picture's score with respect to them, picture after
/// picture.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerGradient {
    /// What the layer gives for a picture.
    pub shape: Shape,
    /// Its values.
    pub values: Vec<f32>,
    /// ∂y/∂values.
    pub gradient: Vec<f32>,
}

/// What a picture is compared with.
pub struct Memory<'a> {
    /// A row for each picture that was learnt.
    pub bank: &'a Buffer,
    /// Length of a row: that of a feature.
    pub dim: usize,
    /// τ of the softmax.
    pub temperature: f32,
}

/// A network that can be asked where it looks. The layers after the one looked at are built once,
/// for so many pictures at a time; asking builds nothing.
pub struct Attention {
    device: Device,
    stream: Stream,
    network: Network,
    node: NodeId,
    head: Network,
    losses: Buffer,
}

impl Attention {
    /// Looks at `count` pictures at a time, at `node`, which is named in the network's keep.
    pub fn new(device: &Device, network: Network, node: NodeId, count: usize) -> Result<Self> {
        if count == 0 {
            return Err(Error::Plan("no picture to look at".into()));
        }
        let head = Head::of(&network, node)?.network(device, count)?;
        Ok(Attention {
            device: device.clone(),
            stream: device.stream()?,
            losses: device.zeros(count)?,
            network,
            node,
            head,
        })
    }

    /// Lets `write` give the network other weights; the layers after the node then have them too.
    pub fn set_weights<E: From<Error>>(
        &mut self,
        write: impl FnOnce(&mut Network) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        write(&mut self.network)?;
        let head = Head::of(&self.network, self.node)?;
        Ok(head.write_to(&mut self.head)?)
    }

    /// The gradient at the node for pictures as the network sees them, each with the rows of the
    /// memory that are its neighbourhood.
    pub fn layer_gradient(
        &mut self,
        pixels: &[f32],
        positives: &Positives,
        memory: &Memory,
    ) -> Result<LayerGradient> {
        let count = self.head.batch();
        Error::check_length("pictures to look at", count, positives.len())?;
        let values = self.values(pixels)?;
        let keys = memory.bank.len() / memory.dim.max(1);
        let positives = self.device.positives(positives, keys)?;
        let (head, stream) = (&mut self.head, &mut self.stream);
        head.forward(stream, 0, Input::rows(&self.device.upload(&values)?))?;
        let (features, gradient) = head.output_and_gradient();
        let of = SoftmaxLoss {
            queries: features,
            keys: memory.bank,
            dim: memory.dim,
            temperature: memory.temperature,
            positives: &positives,
            items: None,
        };
        let loss = Loss { rows: &mut self.losses, gradient, weight: 1.0 };
        stream.softmax_loss(&of, loss)?;
        head.backward(stream, 0)?;
        // The loss is −y, meaned over the pictures.
        let scale = -(count as f32);
        let gradient = self.device.download(head.input_gradient()?)?;
        let gradient = gradient.iter().map(|g| g * scale).collect();
        Ok(LayerGradient { shape: self.network.graph().shape(self.node), values, gradient })
    }

    /// What the node gives for the pictures.
    fn values(&mut self, pixels: &[f32]) -> Result<Vec<f32>> {
        let (graph, count) = (self.network.graph(), self.head.batch());
        let one = graph.nodes()[0].shape.len();
        let result = graph.shape(graph.output_node()).len();
        Error::check_length("pixels of the pictures", count * one, pixels.len())?;
        let mut values = Vec::with_capacity(count * graph.shape(self.node).len());
        let batch = self.network.batch();
        let mut output = vec![0.0; batch * result];
        for pixels in pixels.chunks(batch * one) {
            let here = pixels.len() / one;
            self.network.infer(pixels, &mut output[..here * result])?;
            values.extend(self.network.kept(self.node, here)?);
        }
        Ok(values)
    }

    /// Each picture's map; see the module. Takes what [`Attention::layer_gradient`] takes.
    pub fn maps(
        &mut self,
        pixels: &[f32],
        positives: &Positives,
        memory: &Memory,
    ) -> Result<Vec<HeatMap>> {
        let found = self.layer_gradient(pixels, positives, memory)?;
        let shape = found.shape;
        let pictures = found.values.chunks_exact(shape.len());
        let gradients = found.gradient.chunks_exact(shape.len());
        Ok(pictures
            .zip(gradients)
            .map(|(values, gradient)| heat(values, gradient, shape))
            .collect())
    }
}

fn heat(values: &[f32], gradient: &[f32], shape: Shape) -> HeatMap {
    let mut weights = vec![0.0; shape.channels];
    for place in gradient.chunks_exact(shape.channels) {
        weights.iter_mut().zip(place).for_each(|(w, g)| *w += g);
    }
    let scale = 1.0 / shape.pixels() as f32;
    let at = |place: &[f32]| {
        let sum: f32 = place.iter().zip(&weights).map(|(v, w)| v * w).sum();
        (sum * scale).max(0.0)
    };
    HeatMap {
        height: shape.height,
        width: shape.width,
        values: values.chunks_exact(shape.channels).map(at).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::head::heads_built;
    use crate::evaluation::head::tests::{BATCH, network, pixels};
    use anchorhood_engine::naive::NaiveNetwork;
    use anchorhood_models::{ALEXNET, RESNET18};
    use anchorhood_storage::random::{Draws, Stream as Purpose};

    const TAU: f32 = 0.5;
    const ROWS: usize = 20;

    fn bank() -> Vec<f32> {
        let mut bank = vec![0.0; ROWS * 8];
        Draws::new(6, Purpose::Test, 0, 0).fill_symmetric(&mut bank, 0.6);
        bank
    }

    fn memory(bank: &Buffer) -> Memory<'_> {
        Memory { bank, dim: 8, temperature: TAU }
    }

    fn neighbourhoods() -> Positives {
        let mut positives = Positives::with_capacity(3, 6);
        positives.push([0]);
        positives.push([1, 7]);
        positives.push([2, 11, 19]);
        positives
    }

    /// log Σ p of one picture from its layer's values, in f64 throughout.
    fn score(head: &mut NaiveNetwork, values: &[f64], of: &[u32]) -> f64 {
        let x = head.infer(values).to_vec();
        let scores: Vec<f64> = (bank().chunks_exact(8))
            .map(|m| x.iter().zip(m).map(|(x, m)| x * f64::from(*m)).sum::<f64>() / f64::from(TAU))
            .collect();
        let all: f64 = scores.iter().map(|s| s.exp()).sum();
        let ours: f64 = of.iter().map(|j| scores[*j as usize].exp()).sum();
        (ours / all).ln()
    }

    #[test]
    fn the_gradient_is_that_of_finite_differences() {
        let device = Device::cpu(1);
        for (a, layer) in [(&RESNET18, "conv5"), (&RESNET18, "conv4"), (&ALEXNET, "conv5")] {
            let (net, node) = network(a, layer);
            let (positives, bank) = (neighbourhoods(), device.upload(&bank()).unwrap());
            let head = Head::of(&net, node).unwrap();
            let mut attention = Attention::new(&device, net, node, BATCH).unwrap();
            let found = attention.layer_gradient(&pixels(), &positives, &memory(&bank));
            let found = found.unwrap();
            let mut naive = NaiveNetwork::new(&head.graph);
            for (place, values) in naive.parameters.iter_mut().zip(&head.values) {
                *place = values.iter().map(|v| f64::from(*v)).collect();
            }
            let one = found.shape.len();
            let largest = found.gradient.iter().fold(0.0_f32, |m, g| m.max(g.abs()));
            assert!(largest > 1e-3, "{a}: nothing to compare");
            let mut compared = 0;
            for picture in 0..BATCH {
                let at = picture * one;
                let start: Vec<f64> =
                    found.values[at..at + one].iter().map(|v| f64::from(*v)).collect();
                // Zeros tie in a max pool and have two slopes there: only values above.
                let above = (0..one).filter(|i| start[*i] > 0.0).step_by(one / 60 + 1);
                for i in above {
                    compared += 1;
                    let mut slope = 0.0;
                    for step in [1e-6, -1e-6] {
                        let mut moved = start.clone();
                        moved[i] += step;
                        slope += score(&mut naive, &moved, positives.of(picture)) / (2.0 * step);
                    }
                    let got = f64::from(found.gradient[at + i]);
                    let off = (got - slope).abs() / f64::from(largest);
                    assert!(off < 2e-3, "{a} {layer}, picture {picture}, value {i}: {got} {slope}");
                }
            }
            assert!(compared >= 20, "{a} {layer}: {compared}");
        }
    }

    #[test]
    fn batches_do_not_matter() {
        let device = Device::cpu(1);
        let looking_at = |count| {
            let (net, node) = network(&ALEXNET, "conv5");
            Attention::new(&device, net, node, count).unwrap()
        };
        let (bank, pixels) = (device.upload(&bank()).unwrap(), pixels());
        let memory = memory(&bank);
        let all = looking_at(3).maps(&pixels, &neighbourhoods(), &memory);
        let all = all.unwrap();
        let mut one = Positives::with_capacity(3, 6);
        one.push([1, 7]);
        let second = &pixels[pixels.len() / 3..2 * pixels.len() / 3];
        let alone = looking_at(1).maps(second, &one, &memory).unwrap();
        for (a, b) in alone[0].values.iter().zip(&all[1].values) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
    }

    #[test]
    fn the_layers_after_are_built_once_and_take_other_weights() {
        let device = Device::cpu(1);
        let bank = device.upload(&bank()).unwrap();
        let (pixels, positives) = (pixels(), neighbourhoods());
        let memory = memory(&bank);
        let (net, node) = network(&RESNET18, "conv4");
        let before = heads_built();
        let mut attention = Attention::new(&device, net, node, BATCH).unwrap();
        let first = attention.maps(&pixels, &positives, &memory).unwrap();
        assert_eq!(
            attention.maps(&pixels, &positives, &memory).unwrap(),
            first,
            "asking changes nothing"
        );
        let fresh = |network: &mut Network| network.initialise(9);
        attention.set_weights(fresh).unwrap();
        let other = attention.maps(&pixels, &positives, &memory).unwrap();
        assert_eq!(heads_built() - before, 1);
        let (mut net, node) = network(&RESNET18, "conv4");
        fresh(&mut net).unwrap();
        let mut newly_built = Attention::new(&device, net, node, BATCH).unwrap();
        assert_eq!(newly_built.maps(&pixels, &positives, &memory).unwrap(), other);
        assert_ne!(other, first);
    }

    #[test]
    fn another_number_of_pictures_is_refused() {
        let (net, node) = network(&ALEXNET, "conv5");
        let device = Device::cpu(1);
        let mut attention = Attention::new(&device, net, node, 2).unwrap();
        let bank = device.upload(&bank()).unwrap();
        let refused = attention.maps(&pixels(), &neighbourhoods(), &memory(&bank));
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("pictures to look at"), "{error}");
        let (net, node) = network(&ALEXNET, "conv5");
        let error = Attention::new(&device, net, node, 0).err().unwrap();
        assert!(error.to_string().contains("no picture"), "{error}");
    }

    /// Two places, two channels: α = (1, −2), so the first place gives 3 − 2 and the second 0 − 8,
    /// cut to 0.
    #[test]
    fn maps_are_weighted_and_cut() {
        let shape = Shape::new(1, 2, 2);
        let map = heat(&[3.0, 1.0, 0.0, 4.0], &[2.0, -1.0, 0.0, -3.0], shape);
        assert_eq!(map.values, [1.0, 0.0]);
    }
}
