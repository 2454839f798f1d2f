//! What of a picture's colours a network sees: all, lightness alone, or two half networks side by
//! side, one of which sees lightness and the other colour (Zhang et al., *Split-Brain
//! Autoencoders*, CVPR 2017).
//!
//! All take pictures in red, green and blue. Lightness and colour are L and ab of CIE Lab, which
//! the first layer makes of them. The halves' layers are named `l.…` and `ab.…`, each with half of
//! the channels. Their taps and their results stand side by side, L's first; what follows conv5
//! reads it from there, so that a head can stand on conv5 as on any network's.

use anchorhood_engine::{Graph, NodeId, Result};

use crate::Trunk;

/// What a network sees of colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    /// Red, green and blue.
    #[default]
    Rgb,
    /// Lightness.
    Lightness,
    /// Half of it lightness, the other half colour.
    Split,
}

/// A whole network: what it sees, its trunk or trunks, a linear layer, unit length.
pub(crate) fn whole(
    colours: Colours,
    trunk: &dyn Trunk,
    size: usize,
    width: usize,
    features: usize,
) -> Result<Graph> {
    let mut g = Graph::new();
    let pictures = g.input(size, size, 3);
    let x = match colours {
        Colours::Rgb => one_trunk(&mut g, trunk, pictures, width)?,
        Colours::Lightness => {
            let lab = g.lab("lab", pictures)?;
            let lightness = g.channels("lightness", lab, 0, 1)?;
            one_trunk(&mut g, trunk, lightness, width)?
        }
        Colours::Split => two_trunks(&mut g, trunk, pictures, (width / 2).max(1))?,
    };
    let x = g.linear("fc", x, features, true)?;
    g.tap("fc", x);
    let x = g.l2_normalise("normalise", x)?;
    g.output(x);
    Ok(g)
}

fn one_trunk(g: &mut Graph, trunk: &dyn Trunk, x: NodeId, width: usize) -> Result<NodeId> {
    let stages = trunk.stages(g, "", x, width)?;
    for (number, stage) in (1..).zip(stages) {
        g.tap(&format!("conv{number}"), stage);
    }
    trunk.vector(g, "", stages[4], width)
}

fn two_trunks(g: &mut Graph, trunk: &dyn Trunk, pictures: NodeId, width: usize) -> Result<NodeId> {
    let lab = g.lab("lab", pictures)?;
    let lightness = g.channels("lightness", lab, 0, 1)?;
    let colour = g.channels("colour", lab, 1, 2)?;
    let left = trunk.stages(g, "l.", lightness, width)?;
    let right = trunk.stages(g, "ab.", colour, width)?;
    let mut both = lab;
    for (number, (a, b)) in (1..).zip(left.into_iter().zip(right)) {
        let name = format!("conv{number}");
        both = g.concat(&name, a, b)?;
        g.tap(&name, both);
    }
    let channels = g.shape(left[4]).channels;
    let mut ends = [both; 2];
    for (end, (prefix, first)) in ends.iter_mut().zip([("l.", 0), ("ab.", channels)]) {
        let own = g.channels(&format!("{prefix}own"), both, first as isize, channels)?;
        *end = trunk.vector(g, prefix, own, width)?;
    }
    g.concat("halves", ends[0], ends[1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BACKBONES, Backbone, Form};

    fn graphs() -> impl Iterator<Item = (&'static Backbone, Colours, Graph)> {
        let all = [Colours::Rgb, Colours::Lightness, Colours::Split];
        let networks = BACKBONES.all().into_iter();
        networks.flat_map(move |a| {
            all.map(|c| (a, c, a.graph_seeing(c, Form::Small, 32, 4, 16).unwrap()))
        })
    }

    /// Whatever it sees, a network has the same taps of the same shape, and ends alike.
    #[test]
    fn all_have_the_same_taps() {
        for (a, colours, g) in graphs() {
            let usual = a.graph(32, 4, 16).unwrap();
            for (name, id) in usual.taps() {
                let found = g.shape(g.find(name).unwrap());
                assert_eq!(found, usual.shape(*id), "{a} {colours:?} {name}");
            }
            assert_eq!(g.node(g.output_node()).name, "normalise");
        }
    }

    /// No layer of a half reads from the other one's, but for what both have been put side by side
    /// for.
    #[test]
    fn halves_do_not_see_each_other() {
        for (a, colours, g) in graphs() {
            let of = |prefix: &str| {
                let own = g.nodes().iter().filter(|n| n.name.starts_with(prefix));
                own.map(|n| n.parameters.len()).sum::<usize>()
            };
            match colours {
                Colours::Split => assert_eq!(of("l."), of("ab."), "{a}"),
                Colours::Rgb | Colours::Lightness => assert_eq!(of("ab."), 0, "{a}"),
            }
            for node in g.nodes().iter().filter(|n| n.name.starts_with("l.")) {
                let reads = |x: &NodeId| g.node(*x).name.starts_with("ab.");
                assert!(!node.inputs.iter().any(reads), "{a}: {}", node.name);
            }
        }
    }
}
