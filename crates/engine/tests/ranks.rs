//! Several processes do what one does: losses over sharded keys, gradients of whole networks, scans. Ranks are threads here; MPI's are in
//! the tests of `anchorhood-ranks` and of the program.

mod common;

use anchorhood_engine::{
    Buffer, Communicator, ConvSpec, Device, Error, Graph, Input, Loss, Network, NetworkOptions,
    Positives, Scan, Shard, SoftmaxLoss, Tensors,
};
use anchorhood_ranks::ThreadRank;
use common::{read_all, uniform};

const DIM: usize = 8;

/// Runs a body on so many ranks.
fn on_ranks<R: Send>(ranks: usize, body: impl Fn(&Device) -> R + Sync) -> Vec<R> {
    ThreadRank::run(ranks, |rank| {
        body(&Device::cpu(1).among(Communicator::of(rank)))
    })
}

fn close(got: &[f32], expected: &[f32], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let most = expected.iter().fold(1e-6_f32, |m, v| m.max(v.abs()));
    for (place, (g, e)) in got.iter().zip(expected).enumerate() {
        assert!((g - e).abs() <= 1e-5 * most, "{what}, {place}: {g} for {e}");
    }
}

/// This rank's part of a matrix's rows.
fn own<'a>(device: &Device, rows: &'a [f32], dim: usize) -> &'a [f32] {
    let part = device.communicator().part(rows.len() / dim);
    &rows[part.start * dim..part.end * dim]
}

fn sharded(device: &Device, rows: &[f32], dim: usize) -> Buffer {
    let n = rows.len() / dim;
    let buffer = device.upload(own(device, rows, dim)).unwrap();
    match device.communicator().ranks() {
        1 => buffer,
        _ => buffer.sharded(Shard {
            first: device.communicator().part(n).start,
            rows: n,
        }),
    }
}

fn positives(keys: usize, each: bool) -> Positives {
    let mut positives = Positives::default();
    (0..keys as u32)
        .for_each(|i| positives.push([i, (i + 5) % keys as u32, (3 * i) % keys as u32]));
    match each {
        true => positives.counting_each(),
        false => positives,
    }
}

/// A batch of two views of each item, as this rank has it: view 0 of its items, then view 1.
fn views_of(device: &Device, rows: &[f32], batch: usize) -> Vec<f32> {
    let views = rows.chunks_exact(batch * DIM);
    views
        .flat_map(|view| own(device, view, DIM).to_vec())
        .collect()
}

/// Rows of all ranks, view after view again.
fn together(parts: &[Vec<f32>], views: usize) -> Vec<f32> {
    let view = |v: usize| {
        parts
            .iter()
            .flat_map(move |p| &p[v * p.len() / views..][..p.len() / views])
    };
    (0..views).flat_map(view).copied().collect()
}

/// Losses, gradient, the step's loss and the keys after they were blended.
type Stepped = (Vec<f32>, Vec<f32>, f64, Vec<f32>);

fn softmax_step(device: &Device, keys: usize, each: bool) -> Stepped {
    let (batch, views) = (8, 2);
    let items: Vec<u32> = (0..batch as u32)
        .map(|i| (7 * i + 2) % keys as u32)
        .collect();
    let queries = views_of(device, &uniform(1, views * batch * DIM), batch);
    let part = device.communicator().part(batch);
    let items = device.upload_indices(&items[part]).unwrap();
    // Whoever names items of a batch says among how many they are.
    let items = items.below(keys);
    let mut bank = sharded(device, &uniform(2, keys * DIM), DIM);
    let positives = device.positives(&positives(keys, each), keys).unwrap();
    let (mut rows, mut gradient) = (
        device.zeros(queries.len() / DIM).unwrap(),
        device.zeros(queries.len()).unwrap(),
    );
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
    let loss = Loss {
        rows: &mut rows,
        gradient: &mut gradient,
        weight: 0.7,
    };
    stream.softmax_loss(&of, loss).unwrap();
    stream
        .blend_rows(&mut bank, DIM, &items, &queries, 0.5)
        .unwrap();
    let down = |b: &Buffer| device.download(b).unwrap();
    let told = down(&rows);
    let mean = told.iter().map(|l| f64::from(*l)).sum::<f64>() / told.len() as f64;
    (told, down(&gradient), mean, down(&bank))
}

#[test]
fn the_softmax_over_shards_is_that_over_all() {
    // More keys than a range of the kernel has, fewer than there are ranks' worth of, and an odd number.
    for (keys, each) in [(1001, false), (1001, true), (64, false), (3, false)] {
        let whole = softmax_step(&Device::cpu(2), keys, each);
        for ranks in [1, 2, 4] {
            let parts = on_ranks(ranks, |device| softmax_step(device, keys, each));
            let of = |which: fn(&Stepped) -> &Vec<f32>, views| {
                let parts: Vec<_> = parts.iter().map(|p| which(p).clone()).collect();
                together(&parts, views)
            };
            let what = format!("{keys} keys, {ranks} ranks");
            close(&of(|p| &p.0, 2), &whole.0, &format!("losses of {what}"));
            close(&of(|p| &p.1, 2), &whole.1, &format!("gradient of {what}"));
            close(&of(|p| &p.3, 1), &whole.3, &format!("rows of {what}"));
        }
    }
}

#[test]
fn views_are_contrasted_with_all_processes_views() {
    let contrast = |device: &Device, views: usize| {
        let batch = 12;
        let rows = views_of(device, &uniform(3, views * batch * DIM), batch);
        let (mut losses, mut gradient) = (
            device.zeros(rows.len() / DIM).unwrap(),
            device.zeros(rows.len()).unwrap(),
        );
        let loss = Loss {
            rows: &mut losses,
            gradient: &mut gradient,
            weight: 1.0,
        };
        let rows = device.upload(&rows).unwrap();
        let mut stream = device.stream().unwrap();
        stream.contrastive(&rows, views, DIM, 0.5, loss).unwrap();
        (
            device.download(&losses).unwrap(),
            device.download(&gradient).unwrap(),
        )
    };
    for views in [2, 3] {
        let whole = contrast(&Device::cpu(2), views);
        for ranks in [1, 2, 4] {
            let parts = on_ranks(ranks, |device| contrast(device, views));
            let (losses, gradients): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
            close(&together(&losses, views), &whole.0, "losses");
            close(&together(&gradients, views), &whole.1, "gradient");
        }
    }
}

fn network(device: &Device, batch: usize, sync_norm: bool) -> Network {
    let mut g = Graph::new();
    let x = g.input(6, 6, 3);
    let x = g.conv_norm("a", "bn1", x, ConvSpec::square(16, 3, 1, 1), true, None);
    let a = x.unwrap();
    let x = g.conv_norm("b", "bn2", a, ConvSpec::square(16, 3, 1, 1), true, Some(a));
    let x = g.global_avg_pool("pool", x.unwrap()).unwrap();
    let x = g.linear("fc", x, DIM, true).unwrap();
    let x = g.l2_normalise("unit", x).unwrap();
    g.output(x);
    let options = NetworkOptions {
        sync_norm,
        ..NetworkOptions::new(batch)
    };
    let mut net = device.network(&g, &options).unwrap();
    net.initialise(1);
    net
}

/// One step over this rank's part of a batch: the step's loss, gradients, weights and statistics.
fn network_step(device: &Device, sync_norm: bool) -> (f64, Vec<Vec<f32>>, Vec<Vec<f32>>) {
    let (batch, keys, one) = (16, 50, 6 * 6 * 3);
    let part = device.communicator().part(batch);
    let mut net = network(device, part.len(), sync_norm);
    let pixels = uniform(5, batch * one);
    let pixels = device.upload(own(device, &pixels, one)).unwrap();
    let items: Vec<u32> = (0..batch as u32).collect();
    let items = device.upload_indices(&items[part]).unwrap().below(keys);
    let bank = sharded(device, &uniform(6, keys * DIM), DIM);
    let positives = device.positives(&positives(keys, false), keys).unwrap();
    let mut losses = device.zeros(net.batch()).unwrap();
    let mut stream = device.stream().unwrap();
    let mut source = device
        .row_batches(device.upload(&[0.0]).unwrap().into(), 1, 1)
        .unwrap();
    let rates = [vec![0.1]];
    let epoch = anchorhood_engine::Epoch {
        epoch: 0,
        order: &[0],
        first: 0,
        number: 0,
        scalars: &rates,
    };
    stream.begin_epoch(&mut source, &epoch).unwrap();
    stream
        .step(&mut source, &mut |stream, _| {
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
            let loss = Loss {
                rows: &mut losses,
                gradient,
                weight: 1.0,
            };
            stream.softmax_loss(&of, loss)?;
            net.backward(stream, 0)?;
            net.update(stream)
        })
        .unwrap();
    let mut told = vec![];
    stream.losses(&mut told).unwrap();
    (
        told[0],
        read_all(&net, Tensors::Gradients),
        read_all(&net, Tensors::Values),
    )
}

#[test]
fn a_step_of_several_processes_is_that_of_one() {
    let whole = network_step(&Device::cpu(2), false);
    for ranks in [1, 2, 4] {
        let parts = on_ranks(ranks, |device| network_step(device, true));
        for (loss, gradients, values) in &parts {
            assert!(
                (loss - whole.0).abs() < 1e-5 * whole.0,
                "{loss} for {}",
                whole.0
            );
            for (got, expected) in gradients.iter().zip(&whole.1) {
                close(got, expected, &format!("gradients on {ranks} ranks"));
            }
            for (got, expected) in values.iter().zip(&whole.2) {
                close(got, expected, &format!("values on {ranks} ranks"));
            }
            // Not a bit apart: they would part further with every step.
            assert_eq!((gradients, values), (&parts[0].1, &parts[0].2));
        }
    }
}

/// Each process normalises by its own rows, and yet all have the same weights and statistics after a step.
#[test]
fn processes_that_normalise_by_themselves_stay_together() {
    let parts = on_ranks(4, |device| network_step(device, false));
    for part in &parts {
        assert_eq!((&part.1, &part.2), (&parts[0].1, &parts[0].2));
    }
    let synced = on_ranks(4, |device| network_step(device, true));
    assert_ne!(parts[0].1, synced[0].1);
}

/// The means over rows of all processes, without any of them asking about the others' rows.
#[test]
fn other_losses_are_shared_too() {
    let cosine = |device: &Device| {
        let [p, z] = [8, 9].map(|seed| uniform(seed, 8 * DIM));
        let [p, z] = [p, z].map(|rows| device.upload(own(device, &rows, DIM)).unwrap());
        let (mut rows, mut gradient) = (
            device.zeros(p.len() / DIM).unwrap(),
            device.zeros(p.len()).unwrap(),
        );
        let loss = Loss {
            rows: &mut rows,
            gradient: &mut gradient,
            weight: 1.0,
        };
        let mut stream = device.stream().unwrap();
        stream.cosine(&p, &z, DIM, loss).unwrap();
        device.download(&gradient).unwrap()
    };
    let whole = cosine(&Device::cpu(1));
    close(&on_ranks(4, cosine).concat(), &whole, "gradient");
}

/// A loss that is no number anywhere leaves the weights everywhere as they were.
#[test]
fn a_loss_that_is_no_number_stops_all() {
    let losses = on_ranks(2, |device| {
        let bad = device.communicator().rank() == 1;
        let rows = device
            .upload(&[if bad { f32::NAN } else { 1.0 }; DIM])
            .unwrap();
        let target = device.upload(&[1.0; DIM]).unwrap();
        let mut keys = device.upload(&[0.5; DIM]).unwrap();
        let (mut losses, mut gradient) = (device.zeros(1).unwrap(), device.zeros(DIM).unwrap());
        let loss = Loss {
            rows: &mut losses,
            gradient: &mut gradient,
            weight: 1.0,
        };
        let mut stream = device.stream().unwrap();
        stream.cosine(&rows, &target, DIM, loss).unwrap();
        let which = device.upload_indices(&[0]).unwrap();
        stream
            .blend_rows(&mut keys, DIM, &which, &target, 1.0)
            .unwrap();
        device.download(&keys).unwrap()
    });
    assert_eq!(losses, [[0.5; DIM], [0.5; DIM]]);
}

#[test]
fn neighbours_over_shards_are_those_over_all() {
    for (n, k) in [(1203, 10), (37, 36), (5, 2), (3, 2)] {
        let rows = uniform(4, n * DIM);
        let scan = Scan {
            dim: DIM,
            entropy_temperature: Some(0.2),
            k,
            same: true,
        };
        let one = Device::cpu(2);
        let all = one.upload(&rows).unwrap();
        let whole = one.scan(&all, &all, &scan, &|_| {}).unwrap();
        for ranks in [1, 2, 4] {
            let parts = on_ranks(ranks, |device| {
                let keys = sharded(device, &rows, DIM);
                device.scan(&keys, &keys, &scan, &|_| {}).unwrap()
            });
            let of = |p: &anchorhood_engine::ScanResult| p.neighbours.indices.clone();
            let indices: Vec<u32> = parts.iter().flat_map(of).collect();
            assert_eq!(indices, whole.neighbours.indices, "{n} rows, {ranks} ranks");
            let similarities = parts.iter().flat_map(|p| p.neighbours.similarities.clone());
            let similarities: Vec<f32> = similarities.collect();
            assert_eq!(similarities, whole.neighbours.similarities);
            let entropy: Vec<f32> = parts.iter().flat_map(|p| p.entropy.clone()).collect();
            close(&entropy, &whole.entropy, "entropies");
        }
    }
}

/// Queries of each process's own, over keys of all.
#[test]
fn queries_meet_all_shards() {
    let (queries, keys) = (uniform(7, 10 * DIM), uniform(8, 33 * DIM));
    let scan = Scan {
        dim: DIM,
        entropy_temperature: None,
        k: 7,
        same: false,
    };
    let found = |device: &Device| {
        let queries = device.upload(own(device, &queries, DIM)).unwrap();
        let keys = sharded(device, &keys, DIM);
        device
            .scan(&queries, &keys, &scan, &|_| {})
            .unwrap()
            .neighbours
            .indices
    };
    let whole = found(&Device::cpu(1));
    assert_eq!(on_ranks(4, found).concat(), whole);
}

#[test]
fn a_part_that_is_not_this_processs_is_refused() {
    let refused = on_ranks(2, |device| {
        let rows = device.upload(&[0.0; 3 * DIM]).unwrap();
        let mut keys = rows.sharded(Shard { first: 0, rows: 9 });
        let which = device.upload_indices(&[0]).unwrap();
        let queries = device.upload(&[1.0; DIM]).unwrap();
        let mut stream = device.stream().unwrap();
        match stream.blend_rows(&mut keys, DIM, &which, &queries, 0.5) {
            Err(Error::Plan(why)) => why,
            other => panic!("{other:?}"),
        }
    });
    assert!(
        refused[0].contains("not this process's part of 9"),
        "{refused:?}"
    );
}
