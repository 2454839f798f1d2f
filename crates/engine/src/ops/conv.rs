//! Convolution (cross-correlation, as PyTorch defines it), and the batch norm, residual and ReLU
//! that are fused behind it.
//!
//! ```text
//! y[n,p,o] = b[o] + Σ over (i, k) of x[n, p·stride + k − padding, i] · w[o,i,k]
//! ```
//!
//! x and y are NHWC, w is OIHW.

use super::{Case, Layer, NaiveAt, SavedForBackward, add, batch_norm, relu};
use crate::cpu::CpuState;
use crate::cuda::CudaWalk;
use crate::naive::window::Sliding;
use crate::{ConvSpec, Error, Graph, Initial, NodeId, Norm, Op, Result, Role, Shape, Window, walk};

/// A convolution, with a batch norm or without, with ReLU or without.
pub(crate) struct Conv {
    pub(super) spec: ConvSpec,
    pub(super) norm: Option<Norm>,
    pub(super) relu: bool,
}

impl Layer for Conv {
    fn saved(&self) -> SavedForBackward {
        let before_norm = self.norm.is_some();
        SavedForBackward { input: true, output: self.relu, before_norm }
    }

    fn norm(&self) -> Option<Norm> {
        self.norm
    }

    fn has_bias(&self) -> bool {
        self.spec.bias
    }

    fn convolution(&self, input: Shape) -> Option<(Shape, Window)> {
        Some((input, self.spec.window))
    }

    fn naive(&self, at: &mut NaiveAt, inputs: &[&[f64]]) -> Vec<f64> {
        let bias = self.spec.bias.then(|| &at.parameters[1][..]);
        let s = at.sliding(self.spec.window);
        let mut y = forward(&s, inputs[0], &at.parameters[0], bias);
        if let Some(norm) = self.norm {
            y = batch_norm::naive(norm, at, y);
        }
        if let [_, residual] = inputs {
            y = add::naive(&y, residual);
        }
        if self.relu { relu::naive(&y) } else { y }
    }

    fn naive_backward(&self, at: &mut NaiveAt, [x, y, dy]: [&[f64]; 3]) -> Vec<Vec<f64>> {
        let dy = if self.relu { relu::naive_backward(y, dy) } else { dy.to_vec() };
        let dz = match self.norm {
            Some(norm) => batch_norm::naive_backward(norm, at, &dy),
            None => dy.clone(),
        };
        let s = at.sliding(self.spec.window);
        at.gradients[0] = weight_gradient(&s, x, &dz);
        if self.spec.bias {
            at.gradients[1] = bias_gradient(self.spec.out, &dz);
        }
        vec![input_gradient(&s, &at.parameters[0], &dz), dy]
    }

    fn cpu(&self, network: &mut CpuState, layer: &walk::Layer) -> Result<()> {
        network.conv_layer(layer, self.norm, self.relu)
    }

    fn cuda(&self, walk: &mut CudaWalk, layer: &walk::Layer) -> Result<()> {
        walk.conv_layer(layer, self.norm, self.relu)
    }
}

fn forward(s: &Sliding, x: &[f64], weight: &[f64], bias: Option<&[f64]>) -> Vec<f64> {
    let (inputs, outputs) = (s.input.channels, s.output.channels);
    let mut y = vec![0.0; s.batch * s.output.len()];
    if let Some(bias) = bias {
        y.chunks_mut(outputs).for_each(|p| p.copy_from_slice(bias));
    }
    s.for_each(|to, from, k| {
        for o in 0..outputs {
            for i in 0..inputs {
                y[to * outputs + o] += x[from * inputs + i] * weight[at(s, o, i, k)];
            }
        }
    });
    y
}

fn input_gradient(s: &Sliding, weight: &[f64], dy: &[f64]) -> Vec<f64> {
    let (inputs, outputs) = (s.input.channels, s.output.channels);
    let mut dx = vec![0.0; s.batch * s.input.len()];
    s.for_each(|to, from, k| {
        for o in 0..outputs {
            for i in 0..inputs {
                dx[from * inputs + i] += dy[to * outputs + o] * weight[at(s, o, i, k)];
            }
        }
    });
    dx
}

/// Summed over the batch.
fn weight_gradient(s: &Sliding, x: &[f64], dy: &[f64]) -> Vec<f64> {
    let (inputs, outputs) = (s.input.channels, s.output.channels);
    let [rows, columns] = s.window.kernel;
    let mut dw = vec![0.0; outputs * inputs * rows * columns];
    s.for_each(|to, from, k| {
        for o in 0..outputs {
            for i in 0..inputs {
                dw[at(s, o, i, k)] += dy[to * outputs + o] * x[from * inputs + i];
            }
        }
    });
    dw
}

/// The output's gradient, summed over batch and places.
pub(super) fn bias_gradient(channels: usize, dy: &[f64]) -> Vec<f64> {
    let mut db = vec![0.0; channels];
    for pixel in dy.chunks(channels) {
        for (sum, d) in db.iter_mut().zip(pixel) {
            *sum += d;
        }
    }
    db
}

/// Where OIHW keeps the weight from input channel `i` to output channel `o` at window place `k`.
fn at(s: &Sliding, o: usize, i: usize, k: usize) -> usize {
    let [rows, columns] = s.window.kernel;
    (o * s.input.channels + i) * rows * columns + k
}

/// A few that are small enough for finite differences.
pub(super) fn cases() -> Vec<Case> {
    let windows = [
        ([1, 1], [1, 1], [0, 0]),
        ([3, 3], [1, 1], [1, 1]),
        ([3, 2], [2, 1], [1, 0]),
        ([2, 5], [3, 2], [0, 3]),
    ];
    let case = |(kernel, stride, padding)| {
        let spec = ConvSpec { out: 3, window: Window { kernel, stride, padding }, bias: true };
        Case::new(1, 3, [5, 6, 2], |g, x| g.conv("conv", x, spec))
    };
    windows.map(case).into()
}

impl Graph {
    /// A convolution alone.
    pub fn conv(&mut self, name: &str, x: NodeId, spec: ConvSpec) -> Result<NodeId> {
        self.any_conv(name, None, x, spec, false, None)
    }

    /// Convolution, batch norm, residual add and ReLU as one layer; `conv` and `norm` name their
    /// parameters.
    pub fn conv_norm(
        &mut self,
        conv: &str,
        norm: &str,
        x: NodeId,
        spec: ConvSpec,
        relu: bool,
        residual: Option<NodeId>,
    ) -> Result<NodeId> {
        self.any_conv(conv, Some(norm), x, spec, relu, residual)
    }

    fn any_conv(
        &mut self,
        name: &str,
        norm: Option<&str>,
        x: NodeId,
        spec: ConvSpec,
        relu: bool,
        residual: Option<NodeId>,
    ) -> Result<NodeId> {
        let input = self.shape(x);
        let [height, width] = spec.window.places(name, input)?;
        let shape = Shape::new(height, width, spec.out);
        if let Some(r) = residual.filter(|r| self.shape(*r) != shape) {
            let expected = format!("a residual of {shape}");
            return Err(Error::shape(name, expected, self.shape(r)));
        }
        let op = Op::Conv { spec, norm: norm.map(|_| Norm::default()), relu };
        let inputs = std::iter::once(x).chain(residual).collect();
        let id = self.push(name, op, inputs, shape)?;
        let [kh, kw] = spec.window.kernel;
        let initial = Initial::torch_default(input.channels * kh * kw);
        let dims = [spec.out, input.channels, kh, kw];
        self.parameter(id, name, "weight", &dims, initial, Role::Weight);
        if spec.bias {
            self.parameter(id, name, "bias", &[spec.out], initial, Role::Weight);
        }
        if let Some(norm) = norm {
            self.norm_parameters(id, norm, spec.out);
        }
        Ok(id)
    }
}
