//! Where everything lives and in which order gradients are written, fixed before the first batch.
//!
//! Time runs forwards over the layers and then backwards over them. Each activation, saved value
//! and gradient is alive for an interval of that time; buffers whose intervals do not meet share
//! memory.

use std::ops::Range;

use crate::graph::{Graph, NodeId};
use crate::{Error, NetworkOptions, Result};

/// A place in the arena, in f32 values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// First value.
    pub start: usize,
    /// How many values.
    pub len: usize,
}

impl Slot {
    /// As a range of the arena.
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.len
    }

    /// The first `len` values.
    pub fn head(&self, len: usize) -> Range<usize> {
        debug_assert!(len <= self.len);
        self.start..self.start + len
    }
}

/// What a layer does with the gradient of one of its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradientWrite {
    /// Nobody needs it.
    Skip,
    /// First to write: `=`.
    Assign,
    /// Others wrote before: `+=`.
    Accumulate,
}

/// The memory of one way of running a graph.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Pictures in a batch.
    pub batch: usize,
    /// Each layer's output.
    pub value: Vec<Slot>,
    /// What each layer saves for its backward pass (a convolution's output before batch norm);
    /// empty if nothing.
    pub saved: Vec<Slot>,
    /// The gradient of each layer's output; empty in inference.
    pub gradient: Vec<Slot>,
    /// For each layer and each of its inputs, how the input's gradient is written.
    pub writes: Vec<Vec<GradientWrite>>,
    /// Values in the whole arena.
    pub arena: usize,
    /// Layers whose outputs nobody overwrites.
    kept: Vec<NodeId>,
}

/// A buffer to place: which, how large, and from when to when it is alive (both included).
struct Wanted {
    len: usize,
    from: usize,
    to: usize,
}

impl Plan {
    /// The plan of a training step: forwards, then backwards.
    pub fn training(graph: &Graph, options: &NetworkOptions) -> Result<Plan> {
        Plan::new(graph, options, Some(0))
    }

    /// The same for a device on which the backward pass of a layer may still read its input and its
    /// output's gradient while those of `lag` layers before it run.
    pub fn training_with_lag(graph: &Graph, options: &NetworkOptions, lag: usize) -> Result<Plan> {
        Plan::new(graph, options, Some(lag))
    }

    /// The plan of inference: forwards only, memory reused as soon as its last reader is done.
    pub fn inference(graph: &Graph, options: &NetworkOptions) -> Result<Plan> {
        Plan::new(graph, options, None)
    }

    /// In training, backward passes are late by up to `late` layers.
    fn new(graph: &Graph, options: &NetworkOptions, late: Option<usize>) -> Result<Plan> {
        let (training, lag) = (late.is_some(), late.unwrap_or(0));
        let n = graph.nodes().len();
        Error::refuse(options.batch == 0, || "a batch needs at least one picture".into())?;
        let end = 2 * n;
        let output = graph.output_node().index();
        let kept = |i: usize| i == output || options.keep.contains(&NodeId(i));
        let leads = lead_to_output(graph);
        let needs = needs_gradient(graph, &leads, options.input_gradient);
        let writes = gradient_writes(graph, &leads, &needs, training);
        let backward_time = |i: usize| end - 1 - i;

        let mut value = Vec::with_capacity(n);
        let mut saved = Vec::with_capacity(n);
        let mut gradient = Vec::with_capacity(n);
        for (i, node) in graph.nodes().iter().enumerate() {
            let len = options.batch * node.shape.len();
            let readers = || readers(graph, i);
            let mut to = readers().max().unwrap_or(i);
            if training {
                let late = readers().filter(|c| graph.nodes()[*c].op.saved().input);
                let own = node.op.saved().output.then_some(i);
                let last = late.chain(own).map(|i| backward_time(i) + lag).max();
                to = last.unwrap_or(to);
            }
            let to = if kept(i) { end } else { to };
            value.push(Wanted { len, from: i, to });

            let saves = training && node.op.saved().before_norm;
            saved.push(Wanted { len: if saves { len } else { 0 }, from: i, to: backward_time(i) });

            let has = training && (needs[i] || i == output);
            let first = readers().max().map_or(n, backward_time);
            gradient.push(Wanted {
                len: if has { len } else { 0 },
                from: if i == output { n } else { first },
                to: if i == 0 { end } else { backward_time(i) + lag },
            });
        }

        let mut all: Vec<Wanted> = value.into_iter().chain(saved).chain(gradient).collect();
        let (slots, arena) = place(&mut all);
        let mut thirds = slots.chunks(n).map(<[Slot]>::to_vec);
        let mut third = || thirds.next().expect("three of them");
        Ok(Plan {
            batch: options.batch,
            value: third(),
            saved: third(),
            gradient: third(),
            writes,
            arena,
            kept: (0..n).filter(|i| kept(*i)).map(NodeId).collect(),
        })
    }

    /// Where the output of a kept layer over `count` pictures lies.
    pub fn kept(&self, graph: &Graph, node: NodeId, count: usize) -> Result<Slot> {
        if !self.kept.contains(&node) {
            let name = &graph.node(node).name;
            return Err(Error::Plan(format!(
                "{name}: its output is not kept; name it in NetworkOptions::keep"
            )));
        }
        if count > self.batch {
            return Err(Error::Length {
                what: "pictures of the last pass".into(),
                expected: self.batch,
                got: count,
            });
        }
        Ok(Slot { start: self.value[node.index()].start, len: count * graph.shape(node).len() })
    }
}

fn readers(graph: &Graph, of: usize) -> impl Iterator<Item = usize> {
    let reads = move |n: &crate::Node| n.inputs.contains(&NodeId(of));
    let nodes = graph.nodes().iter().enumerate();
    nodes.filter(move |(_, n)| reads(n)).map(|(i, _)| i)
}

/// Layers that the result is made from, itself among them.
fn lead_to_output(graph: &Graph) -> Vec<bool> {
    let mut leads = vec![false; graph.nodes().len()];
    leads[graph.output_node().index()] = true;
    for (i, node) in graph.nodes().iter().enumerate().rev() {
        let on = leads[i];
        node.inputs.iter().for_each(|x| leads[x.index()] |= on);
    }
    leads
}

/// Layers through which a gradient must flow: those behind which there is something to train, and
/// before which there is the result. Any other has no gradient, and must not pass one on.
fn needs_gradient(graph: &Graph, leads: &[bool], input: bool) -> Vec<bool> {
    let mut needs: Vec<bool> = Vec::with_capacity(graph.nodes().len());
    for (i, node) in graph.nodes().iter().enumerate() {
        let behind = node.inputs.iter().any(|x| needs[x.index()]);
        needs.push(behind || !node.parameters.is_empty() || (i == 0 && input));
    }
    needs.iter_mut().zip(leads).for_each(|(n, l)| *n &= l);
    needs
}

/// Backwards over the layers, and over a layer's inputs from last to first, the first writer of a
/// gradient assigns and later ones accumulate.
fn gradient_writes(
    graph: &Graph,
    leads: &[bool],
    needs: &[bool],
    training: bool,
) -> Vec<Vec<GradientWrite>> {
    let mut written = vec![false; graph.nodes().len()];
    let mut writes = vec![vec![]; graph.nodes().len()];
    for (i, node) in graph.nodes().iter().enumerate().rev() {
        writes[i] = vec![GradientWrite::Skip; node.inputs.len()];
        if !leads[i] {
            continue;
        }
        for (slot, x) in node.inputs.iter().enumerate().rev() {
            writes[i][slot] = match (training && needs[x.index()], written[x.index()]) {
                (false, _) => GradientWrite::Skip,
                (true, false) => GradientWrite::Assign,
                (true, true) => GradientWrite::Accumulate,
            };
            written[x.index()] = true;
        }
    }
    writes
}

/// Gives each buffer the lowest place free for its whole life, largest first.
fn place(wanted: &mut [Wanted]) -> (Vec<Slot>, usize) {
    const ALIGN: usize = 16; // a cache line of f32
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|i| (std::cmp::Reverse(wanted[*i].len), wanted[*i].from));
    let mut slots = vec![Slot::default(); wanted.len()];
    let mut placed: Vec<usize> = vec![];
    let mut arena = 0;
    for i in order {
        let w = &wanted[i];
        if w.len == 0 {
            continue;
        }
        let meets = |j: &&usize| wanted[**j].from <= w.to && w.from <= wanted[**j].to;
        let mut taken: Vec<&Slot> = placed.iter().filter(meets).map(|j| &slots[*j]).collect();
        taken.sort_by_key(|s| s.start);
        let mut start = 0;
        for s in taken {
            if start + w.len <= s.start {
                break;
            }
            start = start.max((s.start + s.len).next_multiple_of(ALIGN));
        }
        slots[i] = Slot { start, len: w.len };
        arena = arena.max(start + w.len);
        placed.push(i);
    }
    (slots, arena)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConvSpec;

    fn residual_graph() -> Graph {
        let mut g = Graph::new();
        let x = g.input(8, 8, 3);
        let spec = ConvSpec::square(8, 3, 1, 1);
        let a = g.conv_norm("a", "an", x, spec, true, None).unwrap();
        let b = g.conv_norm("b", "bn", a, spec, true, None).unwrap();
        let c = g.conv_norm("c", "cn", b, spec, true, Some(a)).unwrap();
        let p = g.global_avg_pool("p", c).unwrap();
        g.linear("fc", p, 4, true).unwrap();
        g
    }

    /// Replays both passes, marking who owns each value of the arena, and checks that nothing is
    /// overwritten before its last reader.
    #[test]
    fn nothing_is_overwritten_while_alive() {
        let g = residual_graph();
        let plan = Plan::training(&g, &NetworkOptions::new(2)).unwrap();
        let n = g.nodes().len();
        let value = |i: usize| i;
        let saved = |i: usize| n + i;
        let grad = |i: usize| 2 * n + i;
        let mut log: Vec<(Vec<usize>, Vec<usize>)> = vec![];
        for (i, node) in g.nodes().iter().enumerate() {
            let reads = node.inputs.iter().map(|x| value(x.index())).collect();
            log.push((reads, vec![value(i), saved(i)]));
        }
        log.push((vec![value(n - 1)], vec![grad(n - 1)]));
        for (i, node) in g.nodes().iter().enumerate().rev() {
            let mut reads = vec![grad(i), saved(i)];
            if node.op.saved().output {
                reads.push(value(i));
            }
            let mut writes = vec![];
            for (x, w) in node.inputs.iter().zip(&plan.writes[i]) {
                if node.op.saved().input && *x == node.inputs[0] {
                    reads.push(value(x.index()));
                }
                match w {
                    GradientWrite::Skip => {}
                    GradientWrite::Assign => writes.push(grad(x.index())),
                    GradientWrite::Accumulate => reads.push(grad(x.index())),
                }
            }
            log.push((reads, writes));
        }
        let slot = |id: usize| match id / n {
            0 => &plan.value[id % n],
            1 => &plan.saved[id % n],
            _ => &plan.gradient[id % n],
        };
        let mut current = vec![usize::MAX; plan.arena];
        for (reads, writes) in log {
            for w in &writes {
                current[slot(*w).range()].fill(*w);
            }
            for r in reads {
                let s = slot(r);
                assert!(current[s.range()].iter().all(|o| *o == r), "buffer {r}");
            }
        }
    }

    #[test]
    fn shared_input_is_assigned_once_then_accumulated() {
        let g = residual_graph();
        let plan = Plan::training(&g, &NetworkOptions::new(2)).unwrap();
        assert_eq!(plan.writes[3], [GradientWrite::Assign; 2]); // c: conv input b, residual a
        assert_eq!(plan.writes[2], [GradientWrite::Accumulate]); // b adds to a
        assert_eq!(plan.writes[1], [GradientWrite::Skip]); // pictures need none
    }

    #[test]
    fn inference_needs_less_memory() {
        let g = residual_graph();
        let o = NetworkOptions::new(2);
        let infer = Plan::inference(&g, &o).unwrap().arena;
        assert!(2 * infer < Plan::training(&g, &o).unwrap().arena);
    }
}
