//! What one of several processes does, the same on every kind of device.

use anchorhood_engine::{
    Batch, Buffer, ConvSpec, Device, DevicePositives, Graph, Input, Loss, Network, NetworkOptions,
    Positives, RowSample, Shard, SoftmaxLoss, Stream, Tensors,
};

use super::{read_all, uniform};

/// Values of a row.
pub const DIM: usize = 32;

pub fn close(got: &[f32], expected: &[f32], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let most = expected.iter().fold(1e-6_f32, |m, v| m.max(v.abs()));
    for (place, (g, e)) in got.iter().zip(expected).enumerate() {
        assert!((g - e).abs() <= 1e-5 * most, "{what}, {place}: {g} for {e}");
    }
}

/// This rank's part of a matrix's rows.
pub fn own<'a>(device: &Device, rows: &'a [f32], dim: usize) -> &'a [f32] {
    let part = device.communicator().part(rows.len() / dim);
    &rows[part.start * dim..part.end * dim]
}

pub fn sharded(device: &Device, rows: &[f32], dim: usize) -> Buffer {
    let n = rows.len() / dim;
    let buffer = device.upload(own(device, rows, dim)).unwrap();
    match device.communicator().is_single() {
        true => buffer,
        false => buffer.sharded(Shard { first: device.communicator().part(n).start, rows: n }),
    }
}

pub fn positives(keys: usize, each: bool) -> Positives {
    let mut positives = Positives::default();
    (0..keys as u32)
        .for_each(|i| positives.push([i, (i + 5) % keys as u32, (3 * i) % keys as u32]));
    match each {
        true => positives.counting_each(),
        false => positives,
    }
}

/// The same on a device, of this rank's part of the keys.
pub fn own_positives(device: &Device, keys: usize, each: bool) -> DevicePositives {
    let all = positives(keys, each);
    let mut own = Positives::default();
    let part = device.communicator().part(keys);
    part.for_each(|i| own.push(all.of(i).iter().copied()));
    let own = match each {
        true => own.counting_each(),
        false => own,
    };
    device.positives_part(&own, keys, keys).unwrap()
}

/// A batch of two views of each item, as this rank has it: view 0 of its items, then view 1.
pub fn views_of(device: &Device, rows: &[f32], batch: usize) -> Vec<f32> {
    let views = rows.chunks_exact(batch * DIM);
    views.flat_map(|view| own(device, view, DIM).to_vec()).collect()
}

/// Rows of all ranks, view after view again.
pub fn together(parts: &[Vec<f32>], views: usize) -> Vec<f32> {
    let view =
        |v: usize| parts.iter().flat_map(move |p| &p[v * p.len() / views..][..p.len() / views]);
    (0..views).flat_map(view).copied().collect()
}

/// Losses, gradient, the step's loss and the keys after they were blended.
pub type Stepped = (Vec<f32>, Vec<f32>, f64, Vec<f32>);

pub fn softmax_step(device: &Device, keys: usize, each: bool) -> Stepped {
    softmax_step_over(device, keys, each, None)
}

/// The same over a sample of so many keys.
pub fn sampled_step(device: &Device, keys: usize, each: bool, rows: usize) -> Stepped {
    let sample = RowSample { rows, seed: 3 };
    softmax_step_over(device, keys, each, Some(sample))
}

fn softmax_step_over(
    device: &Device,
    keys: usize,
    each: bool,
    sample: Option<RowSample>,
) -> Stepped {
    let (batch, views) = (8, 2);
    let items: Vec<u32> = (0..batch as u32).map(|i| (7 * i + 2) % keys as u32).collect();
    let queries = views_of(device, &uniform(1, views * batch * DIM), batch);
    let part = device.communicator().part(batch);
    let items = device.upload_indices(&items[part]).unwrap();
    // Whoever names items of a batch says among how many they are.
    let items = items.below(keys).unwrap();
    let mut bank = sharded(device, &uniform(2, keys * DIM), DIM);
    let positives = own_positives(device, keys, each);
    let (mut rows, mut gradient) =
        (device.zeros(queries.len() / DIM).unwrap(), device.zeros(queries.len()).unwrap());
    let queries = device.upload(&queries).unwrap();
    let mut stream = device.stream().unwrap();
    let of = SoftmaxLoss {
        queries: &queries,
        keys: &bank,
        dim: DIM,
        temperature: 0.3,
        positives: &positives,
        items: Some(&items),
    };
    let loss = Loss { rows: &mut rows, gradient: &mut gradient, weight: 0.7 };
    let asked = match sample {
        None => stream.softmax_loss(&of, loss),
        Some(sample) => stream.sampled_softmax_loss(&of, sample, loss),
    };
    asked.unwrap();
    stream.blend_rows(&mut bank, DIM, &items, &queries, 0.5).unwrap();
    let down = |b: &Buffer| device.download(b).unwrap();
    let told = down(&rows);
    let mean = told.iter().map(|l| f64::from(*l)).sum::<f64>() / told.len() as f64;
    (told, down(&gradient), mean, down(&bank))
}

/// Losses and gradient of this rank's views against those of all.
pub fn contrast(device: &Device, views: usize) -> (Vec<f32>, Vec<f32>) {
    let batch = 12;
    let rows = views_of(device, &uniform(3, views * batch * DIM), batch);
    let (mut losses, mut gradient) =
        (device.zeros(rows.len() / DIM).unwrap(), device.zeros(rows.len()).unwrap());
    let loss = Loss { rows: &mut losses, gradient: &mut gradient, weight: 1.0 };
    let rows = device.upload(&rows).unwrap();
    let mut stream = device.stream().unwrap();
    stream.contrastive(&rows, views, DIM, 0.5, loss).unwrap();
    (device.download(&losses).unwrap(), device.download(&gradient).unwrap())
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
    let positives = own_positives(device, keys, false);
    let mut losses = device.zeros(net.batch()).unwrap();
    let mut stream = device.stream().unwrap();
    let mut source =
        device.row_batches(device.upload(&vec![0.0; steps]).unwrap().into(), 1, 1).unwrap();
    let order: Vec<u32> = (0..steps as u32).collect();
    let rates = [vec![0.1; steps]];
    let epoch =
        anchorhood_engine::Epoch { epoch: 0, order: &order, first: 0, number: 0, scalars: &rates };
    stream.begin_epoch(&mut source, &epoch).unwrap();
    let mut step = |stream: &mut Stream, _: Batch| {
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
    for _ in 0..steps {
        stream.step(&mut source, &mut step).unwrap();
    }
    let mut losses = vec![];
    stream.losses(&mut losses).unwrap();
    Left {
        losses,
        gradients: read_all(&net, Tensors::Gradients),
        values: read_all(&net, Tensors::Values),
        rows: device.download(&bank).unwrap(),
    }
}
