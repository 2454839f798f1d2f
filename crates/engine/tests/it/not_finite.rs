//! What is not a finite number is never lost on its way to the loss, and a loss that is none
//! changes nothing: weights, optimiser, running statistics, momentum copy and memory keep their
//! bits, on every device.

use anchorhood_engine::{
    Batch, ConvSpec, Device, DeviceLoader, Epoch, Graph, NetworkOptions, Result, Role, Shape,
    Stream, Tensors, Window,
};

use crate::common::compare::Twins;
use crate::common::graphs::{one_layer, residual};
use crate::common::training::{TwoViews, WithMemory, epoch, losses_of, row_batches, take_steps};
use crate::common::{any_parameters, every_device, read_all, uniform, widen};

every_device!(
    layers_keep_what_is_not_a_number,
    a_bad_pixel_changes_nothing,
    a_bad_pixel_changes_nothing_in_two_passes,
    a_bad_weight_changes_nothing_else,
);

const BATCH: usize = 4;
const ITEMS: usize = 20;
const STEPS: usize = ITEMS / BATCH;
const PIXELS: usize = 8 * 6 * 3;

/// Everything that a ResNet has, and dropout.
fn graph() -> Graph {
    let mut g = residual(8, 6, 8, 16).unwrap();
    let x = g.output_node();
    let x = g.dropout("drop", x, 0.3).unwrap();
    let x = g.linear("head", x, 16, true).unwrap();
    let x = g.l2_normalise("unit", x).unwrap();
    g.output(x);
    g
}

fn bits(tensors: Vec<Vec<f32>>) -> Vec<Vec<u32>> {
    let bits = |t: Vec<f32>| t.into_iter().map(f32::to_bits).collect();
    tensors.into_iter().map(bits).collect()
}

/// All that a step may change but its own losses.
fn kept(training: &WithMemory) -> Vec<Vec<u32>> {
    let mut all = read_all(&training.net, Tensors::Values);
    all.extend(read_all(&training.net, Tensors::Slot(0)));
    all.extend(read_all(&training.copy, Tensors::Values));
    all.push(training.device.download(&training.keys).unwrap());
    bits(all)
}

/// The order of the items, and schedules of rate and momentum.
fn order_and_scalars() -> (Vec<u32>, [Vec<f32>; 2]) {
    let order = (0..ITEMS).map(|i| (7 * i % ITEMS) as u32).collect();
    (order, [vec![0.1; STEPS], vec![0.75; STEPS]])
}

/// Batches of rows, one of which has a bad value: that of the second item of the step that is to
/// fail.
fn batches_with(device: &Device, order: &[u32], step: usize, bad: f32) -> DeviceLoader {
    let mut pixels = uniform(1, ITEMS * PIXELS);
    pixels[order[step * BATCH + 1] as usize * PIXELS + 5] = bad;
    row_batches(device, pixels, PIXELS, BATCH)
}

#[track_caller]
fn assert_only_this_failed(losses: &[f64], failing: usize) {
    let finite: Vec<bool> = losses.iter().map(|l| l.is_finite()).collect();
    let expected: Vec<bool> = (0..STEPS).map(|step| step != failing).collect();
    assert_eq!(finite, expected, "{losses:?}");
}

/// Steps of which one has a bad pixel: it changes nothing of what is kept, and neither do those
/// asked for after it.
fn fail<T>(
    (device, training): (&Device, &mut T),
    (failing, bad): (usize, f32),
    kept: fn(&T) -> Vec<Vec<u32>>,
    step_of: fn(&mut T, &mut Stream, Batch) -> Result<()>,
) -> (DeviceLoader, Stream) {
    let (order, scalars) = order_and_scalars();
    let mut source = batches_with(device, &order, failing, bad);
    let mut stream = device.stream().unwrap();
    stream.begin_epoch(&mut source, &epoch(&order, 0, &scalars)).unwrap();
    let mut before = kept(training);
    for step in 0..STEPS {
        stream.step(&mut source, &mut |s, b| step_of(training, s, b)).unwrap();
        let now = kept(training);
        let what = format!("{}: step {step} of {failing}", device.describe());
        assert_eq!(now != before, step < failing, "{what}");
        before = now;
    }
    assert_only_this_failed(&losses_of(&mut stream), failing);
    assert!(kept(training) == before);
    (source, stream)
}

/// Whether steps are recorded by then or not; they go on when the losses were read.
fn a_bad_pixel_changes_nothing(device: &Device, _: f64) {
    for (failing, bad) in [(0, f32::NAN), (2, f32::INFINITY), (3, f32::NAN)] {
        let mut training = WithMemory::new(device, &graph(), &NetworkOptions::new(BATCH), ITEMS);
        let given = (device, &mut training);
        let (mut source, mut stream) = fail(given, (failing, bad), kept, WithMemory::step);
        let (before, (order, scalars)) = (kept(&training), order_and_scalars());
        let again = Epoch { first: failing + 1, number: 100, ..epoch(&order, 0, &scalars) };
        take_steps(&mut stream, &mut source, &again, 1, |s, b| training.step(s, b));
        assert!(kept(&training) != before, "it goes on");
        assert!(training.state().iter().flatten().all(|v| v.is_finite()));
        assert!(losses_of(&mut stream)[0].is_finite());
    }
}

/// Statistics are moved by each of the passes, and all of it is undone.
fn a_bad_pixel_changes_nothing_in_two_passes(device: &Device, _: f64) {
    let mut training = TwoViews::new(device, &graph(), NetworkOptions::new(BATCH));
    let kept = |training: &TwoViews| {
        let mut all = read_all(&training.net, Tensors::Values);
        all.extend(read_all(&training.net, Tensors::Slot(0)));
        bits(all)
    };
    fail((device, &mut training), (3, f32::INFINITY), kept, |training, stream, batch| {
        training.step_over(stream, [batch.view(0), batch.view(0)])
    });
}

/// A weight that is not a number makes the loss none, wherever it is, and nothing else becomes like
/// it.
fn a_bad_weight_changes_nothing_else(device: &Device, _: f64) {
    let graph = graph();
    let (order, scalars) = order_and_scalars();
    let options = NetworkOptions::new(BATCH);
    let mut training = WithMemory::new(device, &graph, &options, ITEMS);
    let mut source = batches_with(device, &order, 0, 0.0);
    let mut stream = device.stream().unwrap();
    for (i, p) in graph.parameters().iter().enumerate() {
        if p.role == Role::Statistic {
            continue;
        }
        let whole = training.net.read(Tensors::Values, i).unwrap();
        let mut bad = whole.clone();
        bad[p.len() / 2] = f32::NAN;
        training.net.write(Tensors::Values, i, &bad).unwrap();
        let before = kept(&training);
        let begun = epoch(&order, 0, &scalars);
        take_steps(&mut stream, &mut source, &begun, 1, |s, b| training.step(s, b));
        let loss = losses_of(&mut stream)[0];
        assert!(!loss.is_finite(), "{}: {loss}", p.name);
        assert!(kept(&training) == before, "{}", p.name);
        training.net.write(Tensors::Values, i, &whole).unwrap();
    }
}

/// Where the naive loops have no number, neither has the device, in training and in inference.
fn layers_keep_what_is_not_a_number(device: &Device, _: f64) {
    let shape = Shape { height: 6, width: 5, channels: 11 };
    let spec = ConvSpec::square(11, 3, 1, 1);
    let graphs = [
        one_layer(shape, |g, x| g.relu("relu", x)),
        one_layer(shape, |g, x| g.dropout("drop", x, 0.9)),
        one_layer(shape, |g, x| g.max_pool("pool", x, Window::square(3, 2, 1))),
        one_layer(shape, |g, x| g.global_avg_pool("average", x)),
        one_layer(shape, |g, x| {
            let x = g.conv("conv", x, spec.with_bias())?;
            g.relu("relu", x)
        }),
        one_layer(shape, |g, x| g.conv_norm("c", "n", x, spec, false, None)),
        one_layer(shape, |g, x| g.conv_norm("c", "n", x, spec, true, None)),
        one_layer(shape, |g, x| g.conv_norm("c", "n", x, spec, true, Some(x))),
    ];
    for graph in &graphs {
        let one = graph.nodes()[0].shape.len();
        let parameters = any_parameters(graph, 5);
        for at in [0, 17, BATCH * one - 1] {
            let mut twins = Twins::new(device, graph, &NetworkOptions::new(BATCH), &parameters);
            let mut pixels = uniform(2, BATCH * one);
            pixels[at] = f32::NAN;
            // Inference first: in training the running statistics become NaN.
            let expected = twins.twin.infer(&widen(&pixels)).to_vec();
            let mut got = vec![0.0; expected.len()];
            twins.net.infer(&pixels, &mut got).unwrap();
            assert_kept(device, graph, &got, &expected);
            let expected = twins.train_forward(&pixels, 1);
            assert_kept(device, graph, &twins.net.output(), &expected);
        }
    }
}

#[track_caller]
fn assert_kept(device: &Device, graph: &Graph, got: &[f32], expected: &[f64]) {
    let layer = &graph.nodes()[graph.output_node().index()].name;
    assert!(expected.iter().any(|v| v.is_nan()), "{layer}");
    let lost = (got.iter().zip(expected)).position(|(g, e)| e.is_nan() && !g.is_nan());
    assert_eq!(lost, None, "{}: {layer}", device.describe());
}
