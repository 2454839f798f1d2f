//! The layers after one layer, as a network of their own that computes what they compute in
//! inference.
//!
//! A training pass would give gradients too, but of another function: its batch norms look at the
//! whole batch. Here each batch norm's running statistics are folded into the convolution before it
//! (w ← w·s, b ← β + (b − μ)·s with s = γ/√(σ² + ε)) and dropout is left out. What remains treats
//! every picture by itself, in training passes and in inference alike, so any device can be asked
//! for the gradient of the head's input: that is the gradient of the layer's output.

use anchorhood_engine::{
    ConvSpec, Device, Error, Graph, Network, NetworkOptions, Node, NodeId, Norm, Op, Result,
    Tensors,
};

/// A graph and the values of its parameters, in order.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) graph: Graph,
    pub(crate) values: Vec<Vec<f32>>,
}

impl Head {
    /// Everything between the output of `after` and the result of a network.
    pub(crate) fn of(network: &Network, after: NodeId) -> Result<Head> {
        let graph = network.graph();
        let shape = graph.shape(after);
        let mut head = Graph::new();
        let input = head.input(shape.height, shape.width, shape.channels);
        let mut built =
            Builder { network, head, values: vec![], placed: vec![None; graph.nodes().len()] };
        built.placed[after.index()] = Some(input);
        for i in after.index() + 1..graph.nodes().len() {
            built.add(i)?;
        }
        let output = graph.output_node();
        let result = built.placed[output.index()].ok_or_else(|| {
            let (layer, result) = (&graph.node(after).name, &graph.node(output).name);
            Error::Plan(format!("{result} does not follow from {layer}"))
        })?;
        built.head.output(result);
        Ok(Head { graph: built.head, values: built.values })
    }

    /// The head on a device, for batches of one size, with the gradient of its input.
    pub(crate) fn network(&self, device: &Device, batch: usize) -> Result<Network> {
        let options = NetworkOptions::new(batch).with_input_gradient();
        #[cfg(test)]
        HEADS_BUILT.set(HEADS_BUILT.get() + 1);
        let mut network = device.network(&self.graph, &options)?;
        self.write_to(&mut network)?;
        Ok(network)
    }

    /// Gives these values to a network of the same graph.
    pub(crate) fn write_to(&self, network: &mut Network) -> Result<()> {
        for (i, values) in self.values.iter().enumerate() {
            network.write(Tensors::Values, i, values)?;
        }
        Ok(())
    }
}

#[cfg(test)]
thread_local! {
    static HEADS_BUILT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// How many heads were built on this thread so far.
#[cfg(test)]
pub(crate) fn heads_built() -> usize {
    HEADS_BUILT.get()
}

struct Builder<'a> {
    network: &'a Network,
    head: Graph,
    values: Vec<Vec<f32>>,
    /// Where each layer of the network is in the head.
    placed: Vec<Option<NodeId>>,
}

impl Builder<'_> {
    /// Adds a layer if anything it reads is in the head.
    fn add(&mut self, i: usize) -> Result<()> {
        let node = &self.network.graph().nodes()[i];
        let inputs: Vec<Option<NodeId>> = node.inputs.iter().map(|x| self.place(*x)).collect();
        if inputs.iter().all(Option::is_none) {
            return Ok(());
        }
        let inputs: Option<Vec<NodeId>> = inputs.into_iter().collect();
        let inputs = inputs.ok_or_else(|| {
            Error::Plan(format!("{}: reads from before the layer too", node.name))
        })?;
        self.placed[i] = Some(self.layer(node, &inputs)?);
        Ok(())
    }

    fn place(&self, x: NodeId) -> Option<NodeId> {
        self.placed[x.index()]
    }

    fn layer(&mut self, node: &Node, inputs: &[NodeId]) -> Result<NodeId> {
        let (name, x) = (node.name.as_str(), inputs[0]);
        match node.op {
            Op::Input => Err(Error::Plan("the pictures follow no layer".into())),
            Op::Conv { spec, norm, relu } => {
                let mut y = self.convolution(node, x, spec, norm)?;
                if let Some(residual) = inputs.get(1) {
                    y = self.head.add(&format!("{name}.add"), y, *residual)?;
                }
                if relu { self.head.relu(&format!("{name}.relu"), y) } else { Ok(y) }
            }
            Op::BatchNorm(norm) => self.diagonal(node, x, norm),
            Op::Linear { out, bias } => {
                for parameter in &node.parameters {
                    self.values.push(self.read(*parameter)?);
                }
                self.head.linear(name, x, out, bias)
            }
            Op::Dropout(_) => Ok(x),
            Op::Lab => {
                for parameter in &node.parameters {
                    self.values.push(self.read(*parameter)?);
                }
                self.head.lab(name, x)
            }
            _ => self.head.copy_layer(name, node, inputs),
        }
    }

    fn read(&self, parameter: usize) -> Result<Vec<f32>> {
        self.network.read(Tensors::Values, parameter)
    }

    /// A convolution with a bias that holds whatever norm follows it.
    fn convolution(
        &mut self,
        node: &Node,
        x: NodeId,
        spec: ConvSpec,
        norm: Option<Norm>,
    ) -> Result<NodeId> {
        let mut weight = self.read(node.parameters[0])?;
        let mut bias = if spec.bias { self.read(node.parameters[1])? } else { vec![0.0; spec.out] };
        if let Some(norm) = norm {
            let first = node.parameters.len() - 4;
            let (scale, shift) = self.folded(&node.parameters[first..], norm)?;
            let each = weight.len() / spec.out;
            for (w, s) in weight.chunks_exact_mut(each).zip(&scale) {
                w.iter_mut().for_each(|w| *w *= s);
            }
            for ((b, s), t) in bias.iter_mut().zip(&scale).zip(&shift) {
                *b = *b * s + t;
            }
        }
        self.values.extend([weight, bias]);
        self.head.conv(&node.name, x, spec.with_bias())
    }

    /// A norm by itself, as a convolution that keeps channels apart.
    fn diagonal(&mut self, node: &Node, x: NodeId, norm: Norm) -> Result<NodeId> {
        let (scale, shift) = self.folded(&node.parameters, norm)?;
        let channels = scale.len();
        let mut weight = vec![0.0; channels * channels];
        (weight.iter_mut().step_by(channels + 1).zip(&scale)).for_each(|(w, s)| *w = *s);
        self.values.extend([weight, shift]);
        let spec = ConvSpec::square(channels, 1, 1, 0).with_bias();
        self.head.conv(&node.name, x, spec)
    }

    /// A norm over its running statistics as x·scale + shift; `p` are its γ, β, mean and variance.
    fn folded(&self, p: &[usize], norm: Norm) -> Result<(Vec<f32>, Vec<f32>)> {
        let [gamma, beta, mean, variance] =
            [self.read(p[0])?, self.read(p[1])?, self.read(p[2])?, self.read(p[3])?];
        let scale: Vec<f32> =
            (gamma.iter().zip(&variance)).map(|(g, v)| g / (v + norm.epsilon).sqrt()).collect();
        let shift = (beta.iter().zip(&mean).zip(&scale)).map(|((b, m), s)| b - m * s);
        let shift = shift.collect();
        Ok((scale, shift))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use anchorhood_engine::Input;
    use anchorhood_models::{ALEXNET, Backbone, RESNET18, RESNET50};
    use anchorhood_storage::random::{Draws, Stream};

    pub(crate) const BATCH: usize = 3;
    pub(crate) const SIZE: usize = 16;

    pub(crate) fn pixels() -> Vec<f32> {
        let mut pixels = vec![0.0; BATCH * SIZE * SIZE * 3];
        Draws::new(5, Stream::Test, 0, 0).fill_symmetric(&mut pixels, 2.0);
        pixels
    }

    /// A training pass on the CPU; its result.
    pub(crate) fn train_forward(network: &mut Network, rows: &[f32]) -> Vec<f32> {
        let device = Device::cpu(1);
        let (mut stream, rows) = (device.stream().unwrap(), device.upload(rows).unwrap());
        network.forward(&mut stream, 0, Input::rows(&rows)).unwrap();
        device.download(network.output()).unwrap()
    }

    /// A small network with running statistics of its own, that keeps `layer`.
    pub(crate) fn network(a: &'static Backbone, layer: &str) -> (Network, NodeId) {
        let graph = a.graph(SIZE, 2, 8).unwrap();
        let node = graph.find(layer).unwrap();
        let options = NetworkOptions { keep: vec![node], ..NetworkOptions::new(BATCH) };
        let mut network = Device::cpu(1).network(&graph, &options).unwrap();
        network.initialise(2).unwrap();
        for _ in 0..3 {
            train_forward(&mut network, &pixels());
        }
        (network, node)
    }

    #[test]
    fn gives_what_the_network_gives_from_any_layer() {
        for a in [&ALEXNET, &RESNET18, &RESNET50] {
            for layer in ["conv1", "conv3", "conv5", "fc"] {
                let (mut whole, node) = network(a, layer);
                let mut expected = vec![0.0; BATCH * 8];
                whole.infer(&pixels(), &mut expected).unwrap();
                let head = Head::of(&whole, node).unwrap();
                let mut head = head.network(&Device::cpu(1), BATCH).unwrap();
                let got = train_forward(&mut head, &whole.kept(node, BATCH).unwrap());
                for (got, expected) in got.iter().zip(&expected) {
                    assert!((got - expected).abs() < 1e-4, "{a} {layer}: {got} {expected}");
                }
            }
        }
    }

    #[test]
    fn norms_alone_dropout_and_sums_are_taken_along() {
        let mut g = Graph::new();
        let x = g.input(4, 4, 3);
        let a = g.conv("a", x, ConvSpec::square(4, 3, 1, 1)).unwrap();
        let b = g.batch_norm("b", a).unwrap();
        let c = g.relu("c", b).unwrap();
        let d = g.dropout("d", c, 0.5).unwrap();
        let e = g.add("e", d, a).unwrap();
        let f = g.global_avg_pool("f", e).unwrap();
        g.linear("g", f, 2, false).unwrap();
        let options = NetworkOptions { keep: vec![a], ..NetworkOptions::new(2) };
        let mut whole = Device::cpu(1).network(&g, &options).unwrap();
        whole.initialise(1).unwrap();
        let pixels = &pixels()[..2 * 48];
        train_forward(&mut whole, pixels);
        let mut expected = [0.0; 4];
        whole.infer(pixels, &mut expected).unwrap();
        let head = Head::of(&whole, a).unwrap();
        let mut head = head.network(&Device::cpu(1), 2).unwrap();
        let got = train_forward(&mut head, &whole.kept(a, 2).unwrap());
        for (got, expected) in got.iter().zip(expected) {
            assert!((got - expected).abs() < 1e-5, "{got} {expected}");
        }
        // From c on, the sum also needs what came before.
        let error = Head::of(&whole, c).unwrap_err().to_string();
        assert!(error.contains("e: reads from before"), "{error}");
    }
}
