//! VICReg: *Variance-Invariance-Covariance Regularization for Self-Supervised Learning* (Bardes,
//! Ponce & LeCun, ICLR 2022). With z_v the projector's output of n images in view v, of d values
//! each, and C_v its covariance:
//!
//! ```text
//! ℓ = λ / (n d) Σ |z_v − z_w|²                 mean over pairs of views: invariance
//!   + μ / d Σ_v Σ_j max(0, 1 − √(C_v,jj + ε))  variance
//!   + ν / d Σ_v Σ_{j≠k} C_v,jk²                covariance
//! ```
//! λ = μ = 25, ν = 1, ε = 1e-4. The encoder's output before the projector is judged.

use anchorhood::MethodSpec;
use anchorhood::research::{
    Batch, Chain, Head, Method, MethodConfig, MethodKind, MlpEnd, Network, Result, SIMCLR, Stream,
    ViewSettings,
};

const INVARIANCE: f64 = 25.0;
const VARIANCE: f64 = 25.0;
const COVARIANCE: f64 = 1.0;
const EPSILON: f64 = 1e-4;

pub static VICREG: MethodSpec = MethodSpec {
    name: "vicreg",
    summary: "Make views alike while every value varies and no two do so together",
    reference: "Bardes, Ponce & LeCun, ICLR 2022",
    kind: MethodKind::Views,
    reads: &["views", "projector_layers", "projector_width", "projector_features", "whiten"],
    passes_per_image: |method| method.views,
    multi_process: Err("the variance is that of the whole batch"),
    recipe: |c, preset| {
        (SIMCLR.recipe)(c, preset);
        (c.method.projector_layers, c.method.projector_norm) = (3, true);
        c.training.learning_rate /= 4.0;
    },
    memory_bytes: |setup, config| {
        let m = &config.method;
        Ok((Chain::memory_bytes(setup, m.passes(), &heads(m))?, 0))
    },
    build: |setup, config, _| {
        let m = &config.method;
        Ok(Box::new(VicReg { chain: Chain::new(&setup, m.passes(), "", &heads(m))? }))
    },
    ..MethodSpec::DEFAULT
};

fn heads(m: &MethodConfig) -> [Head; 1] {
    [("projector", m.projector(), MlpEnd::Plain)]
}

struct VicReg {
    chain: Chain,
}

impl Method for VicReg {
    fn views(&self) -> Vec<ViewSettings> {
        self.chain.alike()
    }

    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        self.chain.forward(stream, batch)?;
        let (views, dim) = (self.chain.views(), self.chain.features());
        let (rows, loss) = self.chain.output_and_loss();
        stream.custom_loss(rows, loss, &mut |z, losses, gradient| {
            losses.fill(vicreg(z, views, dim, gradient));
            Ok(())
        })?;
        self.chain.learn(stream)
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        self.chain.networks()
    }
}

/// The loss of rows of `dim` values, view after view, and its gradient.
fn vicreg(z: &[f32], views: usize, dim: usize, gradient: &mut [f32]) -> f32 {
    let len = z.len() / views;
    let (n, mut loss, mut slope) = (len / dim, 0.0, vec![0.0; z.len()]);
    let weight = INVARIANCE * 2.0 / (views * (views - 1) * len) as f64;
    for (v, w) in (0..views).flat_map(|v| (0..v).map(move |w| (v, w))) {
        for i in 0..len {
            let difference = f64::from(z[v * len + i] - z[w * len + i]);
            loss += weight * difference * difference;
            slope[v * len + i] += 2.0 * weight * difference;
            slope[w * len + i] -= 2.0 * weight * difference;
        }
    }
    for (z, slope) in z.chunks(len).zip(slope.chunks_mut(len)) {
        let mean = |j: usize| z.iter().skip(j).step_by(dim).map(|v| f64::from(*v)).sum::<f64>();
        let means: Vec<f64> = (0..dim).map(|j| mean(j) / n as f64).collect();
        let centred = |i: usize, j: usize| f64::from(z[i * dim + j]) - means[j];
        // How much the slope of a row has of each of its values.
        let mut through = vec![0.0; dim * dim];
        for (j, k) in (0..dim).flat_map(|j| (0..dim).map(move |k| (j, k))) {
            let c = (0..n).map(|i| centred(i, j) * centred(i, k)).sum::<f64>() / (n - 1) as f64;
            through[j * dim + k] = if j != k {
                loss += COVARIANCE * c * c / dim as f64;
                4.0 * COVARIANCE * c / (dim * (n - 1)) as f64
            } else {
                let deviation = (c + EPSILON).sqrt();
                loss += VARIANCE * (1.0 - deviation).max(0.0) / dim as f64;
                if deviation < 1.0 { -VARIANCE / ((dim * (n - 1)) as f64 * deviation) } else { 0.0 }
            };
        }
        for (i, row) in slope.chunks_mut(dim).enumerate() {
            for (j, slope) in row.iter_mut().enumerate() {
                *slope += (0..dim).map(|k| through[j * dim + k] * centred(i, k)).sum::<f64>();
            }
        }
    }
    gradient.iter_mut().zip(slope).for_each(|(to, slope)| *to = slope as f32);
    loss as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_is_that_of_the_loss() {
        let (views, dim, n) = (3, 4, 5);
        let z: Vec<f32> =
            (0..views * n * dim).map(|i| ((i * i * 7 % 23) as f32 - 11.0) / 9.0).collect();
        let mut gradient = vec![0.0; z.len()];
        vicreg(&z, views, dim, &mut gradient);
        for i in 0..z.len() {
            let at = |by: f32| {
                let mut moved = z.clone();
                moved[i] += by;
                f64::from(vicreg(&moved, views, dim, &mut vec![0.0; z.len()]))
            };
            let (difference, ours) = ((at(1e-2) - at(-1e-2)) / 2e-2, f64::from(gradient[i]));
            assert!((difference - ours).abs() < 2e-2, "{i}: {difference}, {ours}");
        }
    }
}
