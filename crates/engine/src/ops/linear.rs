//! A linear layer: y = x·wᵀ + b, with x of batch × inputs and w of outputs × inputs. Devices take it
//! for a convolution of 1×1.
//!
//! ```text
//! dx = dy·w,   dw = dyᵀ·x,   db = Σ dy over the batch
//! ```

use super::{Case, Layer, NaiveAt, SavedForBackward, conv};
use crate::cpu::CpuState;
use crate::cuda::CudaWalk;
use crate::{Error, Graph, Initial, NodeId, Op, Result, Role, Shape, Window, walk};

/// So many output values, with a bias or without.
pub(crate) struct Linear {
    pub(super) out: usize,
    pub(super) bias: bool,
}

impl Layer for Linear {
    fn saved(&self) -> SavedForBackward {
        SavedForBackward::INPUT
    }

    fn has_bias(&self) -> bool {
        self.bias
    }

    fn convolution(&self, input: Shape) -> Option<(Shape, Window)> {
        Some((Shape::new(1, 1, input.len()), Window::square(1, 1, 0)))
    }

    fn naive(&self, at: &mut NaiveAt, inputs: &[&[f64]]) -> Vec<f64> {
        let width = at.input.len();
        let mut y = vec![];
        for row in inputs[0].chunks(width) {
            for (o, w) in at.parameters[0].chunks(width).enumerate() {
                let sum: f64 = row.iter().zip(w).map(|(x, w)| x * w).sum();
                y.push(sum + if self.bias { at.parameters[1][o] } else { 0.0 });
            }
        }
        y
    }

    fn naive_backward(&self, at: &mut NaiveAt, [x, _, dy]: [&[f64]; 3]) -> Vec<Vec<f64>> {
        let (width, out, weight) = (at.input.len(), self.out, &at.parameters[0]);
        let (mut dx, mut dw) = (vec![], vec![0.0; out * width]);
        for (row, d) in x.chunks(width).zip(dy.chunks(out)) {
            for i in 0..width {
                dx.push((0..out).map(|o| d[o] * weight[o * width + i]).sum());
                for o in 0..out {
                    dw[o * width + i] += d[o] * row[i];
                }
            }
        }
        at.gradients[0] = dw;
        if self.bias {
            at.gradients[1] = conv::bias_gradient(out, dy);
        }
        vec![dx]
    }

    fn cpu(&self, network: &mut CpuState, layer: &walk::Layer) -> Result<()> {
        network.conv_layer(layer, None, false)
    }

    fn cuda(&self, walk: &mut CudaWalk, layer: &walk::Layer) -> Result<()> {
        walk.linear_layer(layer)
    }
}

pub(super) fn cases() -> Vec<Case> {
    let sizes = [
        (1, 1, 1, true),
        (2, 5, 3, false),
        (3, 7, 4, true),
        (5, 16, 17, true),
        (3, 33, 128, true),
        (64, 128, 10, false),
        (7, 512, 65, true),
    ];
    let case = |(batch, inputs, out, bias)| {
        Case::new(6, batch, [1, 1, inputs], |g, x| g.linear("fc", x, out, bias))
    };
    sizes.map(case).into()
}

impl Graph {
    /// A linear layer over one place of channels.
    pub fn linear(&mut self, name: &str, x: NodeId, out: usize, bias: bool) -> Result<NodeId> {
        let input = self.shape(x);
        if input.pixels() != 1 {
            // PyTorch flattens C×H×W; over one place both orders agree, over more they would not.
            let expected = "one place (pool first, or use a convolution as large as the picture)";
            return Err(Error::shape(name, expected, input));
        }
        let id = self.push(name, Op::Linear { out, bias }, vec![x], Shape::new(1, 1, out))?;
        let initial = Initial::torch_default(input.len());
        self.parameter(id, name, "weight", &[out, input.len()], initial, Role::Weight);
        if bias {
            self.parameter(id, name, "bias", &[out], initial, Role::Weight);
        }
        Ok(id)
    }
}
