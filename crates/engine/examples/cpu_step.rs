//! Times a training step of a ResNet18 for 32×32 (forwards, backwards, optimiser; no loss) and an inference on the CPU, at each
//! level of vector instructions there is, in turn.
//!
//! `cargo run --release -p anchorhood-engine --example cpu_step [-- WIDTH THREADS STEPS LEVEL]` (16, 2 and 20 unless told; LEVEL
//! as in `ANCHORHOOD_SIMD`, all unless told)

use std::time::Instant;

use anchorhood_engine::{
    ConvSpec, Cpu, Device, Graph, Input, Network, NetworkOptions, Result, SimdLevel, Stream,
};
use anchorhood_random::Draws;

const BATCH: usize = 64;
const SIDE: usize = 32;

fn resnet18(width: usize) -> Result<Graph> {
    let mut g = Graph::new();
    let x = g.input(SIDE, SIDE, 3);
    let spec = |out, stride| ConvSpec::square(out, 3, stride, 1);
    let mut x = g.conv_norm("stem", "stem.norm", x, spec(width, 1), true, None)?;
    for block in 0..8 {
        let (out, stride) = (
            width << (block / 2),
            1 + usize::from(block > 0 && block % 2 == 0),
        );
        let name = |part: &str| format!("{block}.{part}");
        let inner = g.conv_norm(&name("1"), &name("n1"), x, spec(out, stride), true, None)?;
        let around = match stride {
            1 => x,
            _ => {
                let down = ConvSpec::square(out, 1, stride, 0);
                g.conv_norm(&name("d"), &name("nd"), x, down, false, None)?
            }
        };
        x = g.conv_norm(
            &name("2"),
            &name("n2"),
            inner,
            spec(out, 1),
            true,
            Some(around),
        )?;
    }
    let x = g.global_avg_pool("pool", x)?;
    let x = g.linear("fc", x, 128, true)?;
    let x = g.l2_normalise("unit", x)?;
    g.output(x);
    Ok(g)
}

/// A network at one level with what its steps need.
struct Timed {
    level: SimdLevel,
    device: Device,
    net: Network,
    stream: Stream,
    pixels: Vec<f32>,
    steps: Vec<f64>,
    inferences: Vec<f64>,
}

impl Timed {
    fn new(graph: &Graph, level: SimdLevel, threads: usize) -> Result<Self> {
        let cpu = Cpu::with_level(threads, level).expect("an available level");
        let device = Device::new(cpu);
        let mut net = device.network(graph, &NetworkOptions::new(BATCH))?;
        net.initialise(0)?;
        let mut gradient = vec![0.0; BATCH * 128];
        let draws = |item| Draws::new(1, anchorhood_random::Stream::Test, 0, item);
        draws(0).fill_symmetric(&mut gradient, 0.01);
        device.write(&gradient, net.output_and_gradient().1)?;
        let mut pixels = vec![0.0; BATCH * SIDE * SIDE * 3];
        draws(1).fill_symmetric(&mut pixels, 1.0);
        Ok(Timed {
            level,
            stream: device.stream()?,
            device,
            net,
            pixels,
            steps: vec![],
            inferences: vec![],
        })
    }

    fn step(&mut self, number: usize) -> Result<()> {
        let rows = self.device.upload(&self.pixels)?;
        let Timed { net, stream, .. } = self;
        let begun = Instant::now();
        self.device.within(|| -> Result<()> {
            stream.set_step(number as u64, 0.001)?;
            net.forward(stream, 0, Input::rows(&rows))?;
            net.backward(stream, 0)?;
            net.update(stream)
        })?;
        self.steps.push(begun.elapsed().as_secs_f64() * 1e3);
        let mut output = vec![0.0; BATCH * 128];
        let begun = Instant::now();
        self.net.infer(&self.pixels, &mut output)?;
        self.inferences.push(begun.elapsed().as_secs_f64() * 1e3);
        Ok(())
    }
}

/// The median and the range, without the first two, which warm up.
fn shown(times: &[f64]) -> String {
    let mut times = times[2..].to_vec();
    times.sort_by(f64::total_cmp);
    let (least, most) = (times[0], times[times.len() - 1]);
    format!("{:.2} ms ({least:.2}–{most:.2})", times[times.len() / 2])
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, otherwise: usize| {
        let given = arguments.get(i).and_then(|a| a.parse().ok());
        given.unwrap_or(otherwise)
    };
    let (width, threads, steps) = (number(0, 16), number(1, 2), number(2, 20));
    let wanted = arguments.get(3);
    let graph = resnet18(width)?;
    let levels = SimdLevel::available().into_iter();
    let levels = levels.filter(|l| wanted.is_none_or(|w| w == l.name()));
    let timed = levels.map(|level| Timed::new(&graph, level, threads));
    let mut timed = timed.collect::<Result<Vec<Timed>>>()?;
    for step in 0..steps + 2 {
        for t in &mut timed {
            t.step(step)?;
        }
    }
    for t in &timed {
        println!(
            "{}, width {width}, batch {BATCH}, {threads} threads: step {}, inference {}",
            t.level,
            shown(&t.steps),
            shown(&t.inferences)
        );
    }
    Ok(())
}
