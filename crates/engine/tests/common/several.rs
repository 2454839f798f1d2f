//! What one of several processes does, the same on every kind of device.

use anchorhood_engine::{
    Batch, Buffer, Communicator, ConvSpec, Device, DevicePositives, Graph, Input, Loss, Network,
    NetworkOptions, Positives, RowSample, SoftmaxLoss, Stream, Tensors,
};

use anchorhood_distributed::ThreadRank;

use super::losses::{LossCase, LossKind, Softmax, positives_on};
use super::training::{epoch, losses_of, row_batches, take_steps};
use super::{read_all, uniform, widen};

/// Values of a row.
pub const DIM: usize = 32;

pub fn close(got: &[f32], expected: &[f32], what: &str) {
    close_within(1e-5, got, expected, what);
}

/// Every value as near as so much of the greatest.
pub fn close_within(tolerance: f32, got: &[f32], expected: &[f32], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let most = expected.iter().fold(1e-6_f32, |m, v| m.max(v.abs()));
    for (place, (g, e)) in got.iter().zip(expected).enumerate() {
        assert!((g - e).abs() <= tolerance * most, "{what}, {place}: {g} for {e}");
    }
}

/// Runs a body on so many ranks.
pub fn on_ranks<R: Send>(ranks: usize, body: impl Fn(&Device) -> R + Sync) -> Vec<R> {
    ThreadRank::run(ranks, |rank| body(&Device::cpu(1).among(Communicator::of(rank))))
}

/// This rank's part of a matrix's rows.
pub fn own<'a, T>(device: &Device, rows: &'a [T], dim: usize) -> &'a [T] {
    let part = device.communicator().part(rows.len() / dim);
    &rows[part.start * dim..part.end * dim]
}

pub fn sharded(device: &Device, rows: &[f32], dim: usize) -> Buffer {
    device.hand_over_part(own(device, rows, dim).to_vec(), rows.len() / dim).unwrap()
}

fn positives(keys: usize, each: bool) -> Positives {
    let mut positives = Positives::default();
    (0..keys as u32)
        .for_each(|i| positives.push([i, (i + 5) % keys as u32, (3 * i) % keys as u32]));
    if each { positives.counting_each() } else { positives }
}

/// Rows of all ranks, view after view again.
pub fn together(parts: &[Vec<f32>], views: usize) -> Vec<f32> {
    let view =
        |v: usize| parts.iter().flat_map(move |p| &p[v * p.len() / views..][..p.len() / views]);
    (0..views).flat_map(view).copied().collect()
}

/// The softmax of two views of a batch over so many keys, or over a sample of them.
pub fn softmax_case(keys: usize, each: bool, sample: Option<usize>) -> LossCase {
    let of = Softmax {
        keys: widen(&uniform(2, keys * DIM)),
        temperature: 0.3,
        positives: positives(keys, each),
        items: Some((0..8).map(|i| (7 * i + 2) % keys as u32).collect()),
        sample: sample.map(|rows| (RowSample { rows, seed: 3 }, 0)),
    };
    LossCase::new(LossKind::Softmax(of), widen(&uniform(1, 2 * 8 * DIM)), [2, DIM])
}

/// Losses, gradient, and the keys after they were blended with the first view.
pub fn softmax_step(
    device: &Device,
    keys: usize,
    each: bool,
    sample: Option<usize>,
) -> [Vec<f32>; 3] {
    let case = softmax_case(keys, each, sample);
    let [losses, gradient] = case.on(device);
    let LossKind::Softmax(Softmax { items: Some(items), .. }) = &case.kind else { unreachable!() };
    let items = device.upload_indices(own(device, items, 1)).unwrap().below(keys).unwrap();
    let queries = uniform(1, 2 * 8 * DIM);
    let queries = device.upload(own(device, &queries[..8 * DIM], DIM)).unwrap();
    let mut bank = sharded(device, &uniform(2, keys * DIM), DIM);
    device.stream().unwrap().blend_rows(&mut bank, DIM, &items, &queries, 0.5).unwrap();
    [losses, gradient, device.download(&bank).unwrap()]
}

/// Losses and gradient of this rank's views against those of all.
pub fn contrast(device: &Device, views: usize) -> [Vec<f32>; 2] {
    let rows = widen(&uniform(3, views * 12 * DIM));
    LossCase::new(LossKind::Contrastive { temperature: 0.5 }, rows, [views, DIM]).on(device)
}

pub fn network(device: &Device, batch: usize, sync_norm: bool) -> Network {
    let mut g = Graph::new();
    let x = g.input(6, 6, 3);
    let x = g.conv_norm("a", "bn1", x, ConvSpec::square(16, 3, 1, 1), true, None);
    let a = x.unwrap();
    let x = g.conv_norm("b", "bn2", a, ConvSpec::square(16, 3, 1, 1), true, Some(a));
    let x = g.global_avg_pool("pool", x.unwrap()).unwrap();
    let x = g.linear("fc", x, DIM, true).unwrap();
    let x = g.l2_normalise("unit", x).unwrap();
    g.output(x);
    let options = NetworkOptions { sync_norm, ..NetworkOptions::new(batch) };
    let mut net = device.network(&g, &options).unwrap();
    net.initialise(1).unwrap();
    net
}

/// What steps leave behind: their losses, the last one's gradients, weights and statistics, and the
/// rows of this rank.
#[derive(Debug, PartialEq)]
pub struct Left {
    pub losses: Vec<f64>,
    pub gradients: Vec<Vec<f32>>,
    pub values: Vec<Vec<f32>>,
    pub rows: Vec<f32>,
}

impl Left {
    /// Compares the first step's loss, and the last one's gradients and values.
    pub fn assert_like(&self, expected: &Left, tolerance: f32, what: &str) {
        let (loss, whole) = (self.losses[0], expected.losses[0]);
        assert!((loss - whole).abs() < 1e-5 * whole, "{what}: {loss} for {whole}");
        for (got, expected) in self.gradients.iter().zip(&expected.gradients) {
            close_within(tolerance, got, expected, &format!("gradients, {what}"));
        }
        for (got, expected) in self.values.iter().zip(&expected.values) {
            close_within(tolerance, got, expected, &format!("values, {what}"));
        }
    }
}

/// Steps over this rank's part of a batch.
pub fn network_steps(device: &Device, sync_norm: bool, steps: usize) -> Left {
    let (batch, keys, one) = (16, 50, 6 * 6 * 3);
    let part = device.communicator().part(batch);
    let mut net = network(device, part.len(), sync_norm);
    let pixels = uniform(5, batch * one);
    let pixels = device.upload(own(device, &pixels, one)).unwrap();
    let items: Vec<u32> = (0..batch as u32).collect();
    let items = device.upload_indices(&items[part]).unwrap().below(keys).unwrap();
    let mut bank = sharded(device, &uniform(6, keys * DIM), DIM);
    let positives = positives_on(device, &positives(keys, false), keys);
    let mut losses = device.zeros(net.batch()).unwrap();
    let mut stream = device.stream().unwrap();
    let mut source = row_batches(device, vec![0.0; steps], 1, 1);
    let order: Vec<u32> = (0..steps as u32).collect();
    let rates = [vec![0.1; steps]];
    let begun = epoch(&order, 0, &rates);
    let step = |stream: &mut Stream, _: Batch| {
        net.forward(stream, 0, Input::rows(&pixels))?;
        let (queries, gradient) = net.output_and_gradient();
        let of = SoftmaxLoss {
            queries,
            keys: &bank,
            dim: DIM,
            temperature: 0.3,
            positives: &positives,
            items: Some(&items),
        };
        let loss = Loss { rows: &mut losses, gradient, weight: 1.0 };
        stream.softmax_loss(&of, loss)?;
        stream.blend_rows(&mut bank, DIM, &items, net.output(), 0.5)?;
        net.backward(stream, 0)?;
        net.update(stream)
    };
    take_steps(&mut stream, &mut source, &begun, steps, step);
    Left {
        losses: losses_of(&mut stream),
        gradients: read_all(&net, Tensors::Gradients),
        values: read_all(&net, Tensors::Values),
        rows: device.download(&bank).unwrap(),
    }
}
