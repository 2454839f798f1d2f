//! Steps that a device may record and launch as a whole, on every device: what they compute is what
//! the same calls compute one by one, to the bit; and the host may have a part in them.

use anchorhood_engine::{
    ConvSpec, Device, DeviceLoader, Epoch, FrozenSteps, Graph, Input, Loss, NetworkOptions,
    Optimiser, Parameter, ParameterGroup, Result, Role, Stream, Tensors,
};

use crate::common;
use crate::common::graphs::residual;
use crate::common::losses::mean_squared_on_host;
use crate::common::training::{
    HostViews, TwoViews, WithMemory, epoch, gathered, losses_of, row_batches, take_steps,
};
use crate::common::{every_device, read_all, uniform, widen};

every_device!(
    steps_are_their_calls,
    steps_of_two_views_are_their_calls,
    schedules_may_come_and_go,
    the_host_has_a_part_in_a_step,
    what_is_frozen_keeps_its_bits_and_learns_again,
);

const BATCH: usize = 4;
const ITEMS: usize = 20;
const STEPS: usize = ITEMS / BATCH;
const PIXELS: usize = 8 * 6 * 3;
const FEATURES: usize = 16;

/// Layers that depend on the step's number and on the batch.
fn graph() -> Graph {
    let mut g = Graph::new();
    let x = g.input(8, 6, 3);
    let spec = ConvSpec::square(8, 3, 1, 1);
    let x = g.conv_norm("conv1", "bn1", x, spec, true, None).unwrap();
    let x = g.conv_norm("conv2", "bn2", x, spec, false, Some(x)).unwrap();
    let x = g.global_avg_pool("pool", x).unwrap();
    let x = g.dropout("drop", x, 0.3).unwrap();
    let x = g.linear("fc", x, FEATURES, true).unwrap();
    let x = g.l2_normalise("unit", x).unwrap();
    g.output(x);
    g
}

/// The order of an epoch's items: another one in each epoch.
fn order(epoch: usize) -> Vec<u32> {
    (0..ITEMS).map(|i| ((7 * i + 3 * epoch) % ITEMS) as u32).collect()
}

/// The learning rate of each step of an epoch, and the share that a momentum copy keeps.
fn scalars(epoch: usize) -> [Vec<f32>; 2] {
    let rate = |step: usize| 0.1 / (1 + step + 2 * epoch) as f32;
    [(0..STEPS).map(rate).collect(), vec![0.75; STEPS]]
}

/// Epochs, each with the step it begins at: the last goes on in its midst.
const EPOCHS: [(usize, usize); 3] = [(0, 0), (1, 0), (2, 3)];

/// Which items the steps take, at which rate: epoch, step in it, number among all.
fn plan() -> impl Iterator<Item = (usize, usize, u64)> {
    let steps = |(epoch, first)| (first..STEPS).map(move |step| (epoch, step));
    let all = EPOCHS.into_iter().flat_map(steps);
    all.enumerate().map(|(number, (epoch, step))| (epoch, step, number as u64))
}

/// The temperature changes in the midst of an epoch: other calls than those recorded.
fn temperature(number: u64) -> f32 {
    if (7..9).contains(&number) { 0.2 } else { 0.1 }
}

fn batches(device: &Device, pixels: Vec<f32>) -> DeviceLoader {
    row_batches(device, pixels, PIXELS, BATCH)
}

/// A step's loss as it is read, beside that of its rows: some devices keep it in f32.
#[track_caller]
fn assert_losses(got: &[f64], expected: &[f64]) {
    assert_eq!(got.len(), expected.len());
    for (got, expected) in got.iter().zip(expected) {
        let near = (got - expected).abs() <= 2e-7 * expected.abs();
        assert!(near, "{got}, expected {expected}");
    }
}

fn mean(rows: &[f32]) -> f64 {
    rows.iter().map(|l| f64::from(*l)).sum::<f64>() / rows.len() as f64
}

fn by_steps(device: &Device, pixels: &[f32]) -> (Vec<f64>, Vec<Vec<f32>>) {
    let mut training = WithMemory::new(device, &graph(), &NetworkOptions::new(BATCH), ITEMS);
    let mut source = batches(device, pixels.to_vec());
    let mut stream = device.stream().unwrap();
    let mut number = 0;
    for (epoch, first) in EPOCHS {
        let (order, scalars) = (order(epoch), scalars(epoch));
        let begun = Epoch {
            epoch: epoch as u64,
            first,
            ..common::training::epoch(&order, number, &scalars)
        };
        stream.begin_epoch(&mut source, &begun).unwrap();
        for _ in first..STEPS {
            training.temperature = temperature(number);
            stream.step(&mut source, &mut |s, b| training.step(s, b)).unwrap();
            number += 1;
        }
    }
    let losses = losses_of(&mut stream);
    (losses, training.state())
}

fn by_calls(device: &Device, pixels: &[f32]) -> (Vec<f64>, Vec<Vec<f32>>) {
    let mut training = WithMemory::new(device, &graph(), &NetworkOptions::new(BATCH), ITEMS);
    let mut stream = device.stream().unwrap();
    let mut losses = vec![];
    for (epoch, step, number) in plan() {
        let items = &order(epoch)[step * BATCH..][..BATCH];
        let batch = device.upload(&gathered(pixels, PIXELS, items)).unwrap();
        let items = device.upload_indices(items).unwrap();
        stream.set_step(number, scalars(epoch)[0][step]).unwrap();
        training.temperature = temperature(number);
        let net = &mut training.net;
        net.forward(&mut stream, 0, Input::rows(&batch)).unwrap();
        training.learn(&mut stream, &items).unwrap();
        losses.push(mean(&device.download(&training.rows).unwrap()));
    }
    assert!(losses_of(&mut stream).is_empty(), "no step was asked for");
    (losses, training.state())
}

fn steps_are_their_calls(device: &Device, _: f64) {
    let pixels = uniform(1, ITEMS * PIXELS);
    let (losses, state) = by_steps(device, &pixels);
    let (expected, expected_state) = by_calls(device, &pixels);
    assert_eq!(losses.len(), plan().count());
    assert_losses(&losses, &expected);
    assert!(state == expected_state, "{}", device.describe());
    let (again, state_again) = by_steps(device, &pixels);
    assert_eq!(losses, again);
    assert!(state == state_again, "{}", device.describe());
}

/// Two passes over batches that the host prepares.
fn steps_of_two_views_are_their_calls(device: &Device, _: f64) {
    let graph = residual(8, 6, 8, FEATURES).unwrap();
    let views =
        HostViews { batch: BATCH, views: 2, items: ITEMS, len: PIXELS, ..HostViews::default() };
    let order: Vec<u32> = (0..ITEMS as u32).collect();
    let run = |fresh: bool| {
        let mut training = TwoViews::new(device, &graph, NetworkOptions::new(BATCH));
        let (mut source, mut stream) = (views.clone().on(device), device.stream().unwrap());
        let mut losses = vec![];
        for number in 0..2 * STEPS {
            let (epoch, first) = (number / STEPS, number % STEPS);
            if fresh {
                // Nothing that was recorded is used again.
                losses.extend(losses_of(&mut stream));
                (source, stream) = (views.clone().on(device), device.stream().unwrap());
            }
            if fresh || first == 0 {
                let scalars = scalars(epoch);
                let begun = common::training::epoch(&order, number as u64, &scalars);
                let begun = Epoch { epoch: epoch as u64, first, ..begun };
                stream.begin_epoch(&mut source, &begun).unwrap();
            }
            stream.step(&mut source, &mut |s, b| training.step(s, b)).unwrap();
        }
        losses.extend(losses_of(&mut stream));
        (losses, read_all(&training.net, Tensors::Values))
    };
    let (losses, weights) = run(false);
    assert_eq!(losses.len(), 2 * STEPS);
    assert!(losses.iter().all(|l| l.is_finite()));
    assert!((losses, weights) == run(true), "{}", device.describe());
}

/// An epoch with more schedules, or of other lengths, than the one before.
fn schedules_may_come_and_go(device: &Device, _: f64) {
    let run = |recorded: bool| {
        let mut training = WithMemory::new(device, &graph(), &NetworkOptions::new(BATCH), ITEMS);
        let (mut source, mut stream) =
            (batches(device, uniform(1, ITEMS * PIXELS)), device.stream().unwrap());
        for (epoch, count) in [1, 4, 2, 3].into_iter().enumerate() {
            if !recorded {
                source = batches(device, uniform(1, ITEMS * PIXELS));
                stream = device.stream().unwrap();
            }
            let order = order(epoch);
            let value = |i: usize| vec![0.1 * (1 + epoch) as f32 / (1 + i) as f32; STEPS];
            let scalars: Vec<Vec<f32>> = (0..count).map(value).collect();
            let begun = common::training::epoch(&order, (epoch * STEPS) as u64, &scalars);
            take_steps(&mut stream, &mut source, &begun, STEPS, |s, b| {
                training.net.forward(s, 0, b.view(0))?;
                training.learn(s, b.indices())
            });
        }
        training.state()
    };
    assert!(run(true) == run(false), "{}", device.describe());
}

/// In each step the host reads the features and says what they are to become; it is asked once for
/// each step.
fn the_host_has_a_part_in_a_step(device: &Device, _: f64) {
    let (graph, pixels) = (graph(), uniform(1, ITEMS * PIXELS));
    let options = NetworkOptions::new(BATCH);
    let run = |in_steps: bool| -> (Vec<Vec<f32>>, Vec<Vec<f32>>) {
        let mut net = device.network(&graph, &options).unwrap();
        net.initialise(3).unwrap();
        let zeros = |len| device.zeros(len).unwrap();
        let (mut rows, mut seen) = (zeros(BATCH), vec![]);
        let mut work = |stream: &mut Stream, input: Input| -> Result<()> {
            net.forward(stream, 0, input)?;
            let (output, gradient) = net.output_and_gradient();
            let loss = Loss { rows: &mut rows, gradient, weight: 1.0 };
            mean_squared_on_host(stream, output, FEATURES, loss, &mut |features| {
                seen.push(features.to_vec());
                widen(features).iter().map(|f| f.round() - 0.25).collect()
            })?;
            net.backward(stream, 0)?;
            net.update(stream)
        };
        let mut stream = device.stream().unwrap();
        let (order, scalars) = (order(0), scalars(0));
        if in_steps {
            let mut source = batches(device, pixels.clone());
            let begun = epoch(&order, 0, &scalars);
            take_steps(&mut stream, &mut source, &begun, STEPS, |s, b| work(s, b.view(0)));
        } else {
            for (step, items) in order.chunks(BATCH).enumerate() {
                let batch = device.upload(&gathered(&pixels, PIXELS, items)).unwrap();
                stream.set_step(step as u64, scalars[0][step]).unwrap();
                work(&mut stream, Input::rows(&batch)).unwrap();
            }
        }
        (seen, read_all(&net, Tensors::Values))
    };
    let (seen, weights) = run(true);
    assert_eq!(seen.len(), STEPS, "once for each step");
    assert!((seen, weights) == run(false), "{}", device.describe());
}

/// All but the last layer stays as it is in the second of four epochs, whose steps were recorded in
/// the first.
fn what_is_frozen_keeps_its_bits_and_learns_again(device: &Device, _: f64) {
    for optimiser in [Optimiser::sgd(), Optimiser::lars(), Optimiser::adam_w()] {
        let options = NetworkOptions::new(BATCH).with_optimiser(optimiser);
        let graph = graph();
        let mut training = WithMemory::new(device, &graph, &options, ITEMS);
        let mut source = batches(device, uniform(1, ITEMS * PIXELS));
        let mut stream = device.stream().unwrap();
        let mut before = read_all(&training.net, Tensors::Values);
        for number in 0..4 {
            let is_frozen = |p: &Parameter| number == 1 && !p.name.starts_with("fc");
            let second = STEPS as u64..2 * STEPS as u64;
            let group = |p: &Parameter| ParameterGroup {
                frozen: match number > 0 && !p.name.starts_with("fc") {
                    true => second.clone().into(),
                    false => FrozenSteps::NONE,
                },
                ..ParameterGroup::default()
            };
            training.net.regroup(&group).unwrap();
            let (order, scalars) = (order(number), scalars(number));
            let begun = epoch(&order, (number * STEPS) as u64, &scalars);
            take_steps(&mut stream, &mut source, &begun, STEPS, |s, b| training.step(s, b));
            let after = read_all(&training.net, Tensors::Values);
            for ((p, before), after) in graph.parameters().iter().zip(&before).zip(&after) {
                let frozen = is_frozen(p) && p.role == Role::Weight;
                let what = format!("{} in epoch {number} by {optimiser:?}", p.name);
                assert_eq!(before == after, frozen, "{what} on {}", device.describe());
            }
            before = after;
        }
    }
}
