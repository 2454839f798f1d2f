//! A network driven call by call, outside of epochs, with values that come from the host and go
//! back to it.

use std::ops::{Deref, DerefMut};

use anchorhood_engine::{Device, Graph, Input, Network, NetworkOptions, Result, Stream};

/// A network of one pass, with a stream of its own.
pub struct Driven {
    device: Device,
    net: Network,
    stream: Stream,
    step: u64,
}

impl Driven {
    pub fn new(device: &Device, graph: &Graph, options: &NetworkOptions) -> Self {
        Driven {
            device: device.clone(),
            net: device.network(graph, options).unwrap(),
            stream: device.stream().unwrap(),
            step: 0,
        }
    }

    /// Runs a batch forwards in training mode, as the step of this number.
    pub fn train_forward(&mut self, pixels: &[f32], step: u64) -> Result<()> {
        self.step = step;
        self.stream.set_step(step, 0.0)?;
        let rows = self.device.upload(pixels)?;
        let Driven { net, stream, .. } = self;
        net.forward(stream, 0, Input::rows(&rows))
    }

    pub fn backward(&mut self) -> Result<()> {
        self.net.backward(&mut self.stream, 0)
    }

    /// Moves the weights at a learning rate.
    pub fn update(&mut self, rate: f32) -> Result<()> {
        self.stream.set_step(self.step, rate)?;
        self.net.update(&mut self.stream)
    }

    /// The output of the last pass.
    pub fn output(&self) -> Vec<f32> {
        self.device.download(self.net.output()).unwrap()
    }

    /// Writes the gradient of the output.
    pub fn set_output_gradient(&mut self, gradient: &[f32]) {
        let to = self.net.output_and_gradient().1;
        self.device.write(gradient, to).unwrap();
    }

    pub fn input_gradient(&self) -> Result<Vec<f32>> {
        self.device.download(self.net.input_gradient()?)
    }
}

impl Deref for Driven {
    type Target = Network;

    fn deref(&self) -> &Network {
        &self.net
    }
}

impl DerefMut for Driven {
    fn deref_mut(&mut self) -> &mut Network {
        &mut self.net
    }
}
