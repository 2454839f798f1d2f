//! Graphs that nobody would draw: values read several times, layers that nobody reads, a result
//! that is not the last layer, windows that leave places out, pictures of one pixel. The plan must
//! keep every value as long as it is read.

use anchorhood_engine::{ConvSpec, Device, Graph, NodeId, Shape, Window};
use anchorhood_storage::random::{Draws, Stream};

use crate::common::compare::compare;
use crate::common::every_device;

struct Choices {
    draws: Draws,
    next: u64,
}

impl Choices {
    fn below(&mut self, n: usize) -> usize {
        self.next += 1;
        self.draws.word(self.next) as usize % n
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// A window that has a place in a picture.
fn window(c: &mut Choices, s: Shape) -> Window {
    let mut axis = |extent: usize| {
        let kernel = 1 + c.below(extent.min(4));
        (kernel, 1 + c.below(kernel + 1), c.below(kernel / 2 + 1))
    };
    let (down, across) = (axis(s.height), axis(s.width));
    Window { kernel: [down.0, across.0], stride: [down.1, across.1], padding: [down.2, across.2] }
}

fn random(seed: u64, batch: usize) -> Graph {
    let mut c = Choices { draws: Draws::new(seed, Stream::Test, 0, 0), next: 0 };
    let mut g = Graph::new();
    let side = [1, 2, 5, 7];
    let input = [c.one_of(&side), c.one_of(&side), c.one_of(&[1, 3, 16])];
    let mut all = vec![g.input(input[0], input[1], input[2])];
    for i in 0..4 + c.below(9) {
        let name = format!("layer{i}");
        // Mostly what came last, so that there is some depth.
        let back = c.one_of(&[1, 1, 1, 2, 3]).min(all.len());
        let x = all[all.len() - back];
        let shape = g.shape(x);
        let norms = batch * shape.pixels() >= 12;
        let alike: Vec<NodeId> = (all.iter().copied()).filter(|y| g.shape(*y) == shape).collect();
        let added = match c.below(9) {
            0..3 => {
                let out = c.one_of(&[1, 5, 8, 16, 32]);
                let window = window(&mut c, shape);
                let bias = c.below(2) == 0;
                let spec = ConvSpec { out, window, bias };
                g.conv(&name, x, spec)
            }
            3..5 if norms => {
                let same = Window::square(3, 1, 1);
                let residual = (c.below(2) == 0).then(|| c.one_of(&alike));
                let spec = ConvSpec { out: shape.channels, window: same, bias: c.below(2) == 0 };
                let (norm, relu) = (format!("{name}.norm"), c.below(2) == 0);
                g.conv_norm(&name, &norm, x, spec, relu, residual)
            }
            5 if norms => g.batch_norm(&name, x),
            6 => g.relu(&name, x),
            7 => {
                let window = window(&mut c, shape);
                g.max_pool(&name, x, window)
            }
            8 if shape.pixels() == 1 => g.linear(&name, x, 6, true),
            _ => g.add(&name, x, c.one_of(&alike)),
        };
        all.push(added.unwrap());
    }
    let last = all[all.len() - 1 - c.below(3).min(all.len() - 2)];
    g.output(last);
    g
}

every_device!(what_the_naive_loops_make_of_them);

fn what_the_naive_loops_make_of_them(device: &Device, tolerance: f64) {
    for seed in 0..300 {
        let batch = [1, 2, 3, 5][seed as usize % 4];
        // Sums of sums grow, and so does their rounding.
        let tolerance = 10.0 * tolerance;
        compare(device, &random(seed, batch), batch, seed, tolerance);
    }
}
