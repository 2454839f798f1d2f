//! What is not a finite number is never lost on its way to the loss, and a loss that is none
//! changes nothing: weights, optimiser, running statistics, momentum copy and memory keep their
//! bits, on every device.

use anchorhood_engine::naive::{NaiveNetwork, widen};
use anchorhood_engine::{
    BatchSource, ConvSpec, Device, Epoch, Graph, Loss, NetworkOptions, Result, Role, Shape, Stream,
    Tensors, Window,
};

use crate::common::graphs::{one_layer, residual};
use crate::common::training::{TwoViews, WithMemory, epoch, losses_of, row_batches};
use crate::common::{Driven, any_parameters, every_device, read_all, set_parameters, uniform};

every_device!(
    layers_keep_what_is_not_a_number,
    losses_are_not_finite_where_a_row_is_not,
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
fn batches_with(device: &Device, order: &[u32], step: usize, bad: f32) -> BatchSource {
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

/// Whether steps are recorded by then or not, the step with the bad pixel changes nothing, and
/// neither do those asked for after it; they go on when the losses were read.
fn a_bad_pixel_changes_nothing(device: &Device, _: f64) {
    for (failing, bad) in [(0, f32::NAN), (2, f32::INFINITY), (3, f32::NAN)] {
        let (order, scalars) = order_and_scalars();
        let options = NetworkOptions::new(BATCH);
        let mut training = WithMemory::new(device, &graph(), &options, ITEMS);
        let mut source = batches_with(device, &order, failing, bad);
        let mut stream = device.stream().unwrap();
        let begun = epoch(&order, 0, &scalars);
        stream.begin_epoch(&mut source, &begun).unwrap();
        let mut before = kept(&training);
        for step in 0..STEPS {
            let asked = stream.step(&mut source, &mut |s, b| training.step(s, b));
            asked.unwrap();
            let now = kept(&training);
            let what = format!("{}: step {step} of {failing}", device.describe());
            assert_eq!(now != before, step < failing, "{what}");
            before = now;
        }
        assert_only_this_failed(&losses_of(&mut stream), failing);
        assert!(kept(&training) == before);

        let again = Epoch { first: failing + 1, number: 100, ..begun };
        stream.begin_epoch(&mut source, &again).unwrap();
        let asked = stream.step(&mut source, &mut |s, b| training.step(s, b));
        asked.unwrap();
        assert!(kept(&training) != before, "it goes on");
        assert!(training.state().iter().flatten().all(|v| v.is_finite()));
        assert!(losses_of(&mut stream)[0].is_finite());
    }
}

/// Statistics are moved by each of the passes, and all of it is undone.
fn a_bad_pixel_changes_nothing_in_two_passes(device: &Device, _: f64) {
    let failing = 3;
    let (order, scalars) = order_and_scalars();
    let options = NetworkOptions::new(BATCH);
    let mut training = TwoViews::new(device, &graph(), options);
    let mut source = batches_with(device, &order, failing, f32::INFINITY);
    let mut stream = device.stream().unwrap();
    let begun = epoch(&order, 0, &scalars);
    stream.begin_epoch(&mut source, &begun).unwrap();
    let kept = |training: &TwoViews| {
        let mut all = read_all(&training.net, Tensors::Values);
        all.extend(read_all(&training.net, Tensors::Slot(0)));
        bits(all)
    };
    let mut before = kept(&training);
    for step in 0..STEPS {
        let asked =
            stream.step(&mut source, &mut |s, b| training.step_over(s, [b.view(0), b.view(0)]));
        asked.unwrap();
        let now = kept(&training);
        assert_eq!(now != before, step < failing, "{}", device.describe());
        before = now;
    }
    assert_only_this_failed(&losses_of(&mut stream), failing);
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
        let begun = epoch(&order, 0, &scalars);
        stream.begin_epoch(&mut source, &begun).unwrap();
        let before = kept(&training);
        let asked = stream.step(&mut source, &mut |s, b| training.step(s, b));
        asked.unwrap();
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
        let mut twin = NaiveNetwork::new(graph);
        let mut net = Driven::new(device, graph, &NetworkOptions::new(BATCH));
        set_parameters(&mut net, &mut twin, &any_parameters(graph, 5)).unwrap();
        for at in [0, 17, BATCH * one - 1] {
            let mut pixels = uniform(2, BATCH * one);
            pixels[at] = f32::NAN;
            // Inference first: in training the running statistics become NaN.
            let expected = twin.infer(&widen(&pixels)).to_vec();
            let mut got = vec![0.0; expected.len()];
            net.infer(&pixels, &mut got).unwrap();
            assert_kept(device, graph, &got, &expected);
            net.train_forward(&pixels, 1).unwrap();
            let expected = twin.train_forward(&widen(&pixels), 1).to_vec();
            assert_kept(device, graph, &net.output(), &expected);
            set_parameters(&mut net, &mut twin, &any_parameters(graph, 5)).unwrap();
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

/// Every loss, with one value of one row that is not finite: that row's loss is not finite, and it
/// alone where rows are not compared with each other.
fn losses_are_not_finite_where_a_row_is_not(device: &Device, _: f64) {
    const ROWS: usize = 6;
    const DIM: usize = 20;
    let fine = device.upload(&uniform(3, ROWS * DIM)).unwrap();
    let words: Vec<u32> = (0..ROWS as u32).collect();
    let words = device.upload_indices(&words).unwrap();
    for bad in [f32::NAN, f32::INFINITY] {
        let mut values = uniform(4, ROWS * DIM);
        values[3 * DIM + 7] = bad;
        let rows = device.upload(&values).unwrap();
        let refuse = |what: &str, run: &dyn Fn(&mut Stream, Loss) -> Result<()>| {
            let (mut losses, mut gradient) =
                (device.zeros(ROWS).unwrap(), device.zeros(ROWS * DIM).unwrap());
            let loss = Loss { rows: &mut losses, gradient: &mut gradient, weight: 1.0 };
            run(&mut device.stream().unwrap(), loss).unwrap();
            let losses = device.download(&losses).unwrap();
            let finite = losses.iter().filter(|l| l.is_finite()).count();
            let what = format!("{}: {what}: {losses:?}", device.describe());
            assert!(!losses[3].is_finite(), "{what}");
            assert!(finite == ROWS - 1 || what.contains("contrastive"), "{what}");
        };
        refuse("cross-entropy", &|s, loss| s.cross_entropy(&rows, DIM, &words, &words, loss));
        refuse("contrastive", &|s, loss| s.contrastive(&rows, 2, DIM, 0.5, loss));
        refuse("cosine", &|s, loss| s.cosine(&rows, &fine, DIM, loss));
        refuse("cosine's target", &|s, loss| s.cosine(&fine, &rows, DIM, loss));
        refuse("mean squared", &|s, loss| s.mean_squared(&rows, &fine, DIM, loss));
    }
}
