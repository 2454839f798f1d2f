//! The networks there are, by name.

use std::fmt;
use std::str::FromStr;

use anchorhood_engine::{Graph, NodeId, Result};
use anchorhood_storage::{Named, Registry};

use crate::alexnet::ALEXNET;
use crate::colours::whole;
use crate::resnet::{RESNET10, RESNET18, RESNET34, RESNET50, RESNET101, ResNet};
use crate::{Colours, Form};

/// A network that can be trained. Its form follows the size of the images, see [`Form`].
pub struct Backbone {
    /// What the user types.
    pub name: &'static str,
    /// Channels after the stem, as published.
    pub width: usize,
    /// Pixels a side that its first convolution sees: of small and medium images, and of large
    /// ones. The medium form's is as wide as the small one's: weights alone do not tell them apart.
    pub stem: [usize; 2],
    /// Its layers.
    pub layers: Layers,
}

/// The layers of a network.
pub enum Layers {
    /// A ResNet's, which torchvision and timm have by the same names.
    ResNet(Stages),
    /// Any others, in a form.
    Other(fn(Form) -> Box<dyn Trunk>),
}

/// Which residual network: blocks in each stage, and of which kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    /// Blocks in each of the four stages.
    pub blocks: [usize; 4],
    /// Whether they are bottlenecks.
    pub bottleneck: bool,
}

/// The layers of a network behind what it sees, with names that begin alike and so many channels
/// after the stem.
pub trait Trunk {
    /// The five stages, conv1 … conv5.
    fn stages(&self, g: &mut Graph, prefix: &str, x: NodeId, width: usize) -> Result<[NodeId; 5]>;

    /// From conv5 to a vector.
    fn vector(&self, g: &mut Graph, prefix: &str, x: NodeId, width: usize) -> Result<NodeId>;
}

/// All networks; another program adds its own.
pub static BACKBONES: Registry<Backbone> =
    Registry::new(&[&ALEXNET, &RESNET10, &RESNET18, &RESNET34, &RESNET50, &RESNET101]);

impl Named for Backbone {
    fn name(&self) -> &str {
        self.name
    }
}

impl Backbone {
    /// Its graph for square pictures of `size` pixels a side, in the form that suits them; `width`
    /// channels after the stem, `features` in the result.
    pub fn graph(&self, size: usize, width: usize, features: usize) -> Result<Graph> {
        self.graph_of(Form::for_size(size), size, width, features)
    }

    /// The same in a form of one's choice: weights learnt on large pictures can be tried on small
    /// ones.
    pub fn graph_of(
        &self,
        form: Form,
        size: usize,
        width: usize,
        features: usize,
    ) -> Result<Graph> {
        self.graph_seeing(Colours::Rgb, form, size, width, features)
    }

    /// The same, seeing something of the colours or all.
    pub fn graph_seeing(
        &self,
        colours: Colours,
        form: Form,
        size: usize,
        width: usize,
        features: usize,
    ) -> Result<Graph> {
        let trunk = match self.layers {
            Layers::ResNet(stages) => Box::new(ResNet { stages, form }),
            Layers::Other(layers) => layers(form),
        };
        whole(colours, &*trunk, size, width, features)
    }

    /// The form whose first convolution is so many pixels wide, if there is one.
    pub fn form_of_stem(&self, kernel: usize) -> Option<Form> {
        let [small, large] = self.stem;
        match kernel {
            k if k == small => Some(Form::Small),
            k if k == large => Some(Form::Large),
            _ => None,
        }
    }

    /// A ResNet's.
    pub(crate) fn stages(&self) -> Option<Stages> {
        match self.layers {
            Layers::ResNet(stages) => Some(stages),
            Layers::Other(_) => None,
        }
    }
}

impl PartialEq for Backbone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Backbone {}

impl fmt::Debug for Backbone {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for Backbone {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A name no network has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no network is called `{0}`; there is {names}", names = BACKBONES.names())]
pub struct UnknownBackbone(String);

impl FromStr for &'static Backbone {
    type Err = UnknownBackbone;

    fn from_str(name: &str) -> std::result::Result<Self, UnknownBackbone> {
        let found = BACKBONES.find(&name.to_ascii_lowercase()).or_else(|| BACKBONES.find(name));
        found.ok_or_else(|| UnknownBackbone(name.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for a in BACKBONES.all() {
            assert_eq!(a.name.parse(), Ok(a));
        }
        assert_eq!("ResNet18".parse(), Ok(&RESNET18));
    }

    /// Every network, in both forms, has the taps that protocols ask for and a result of unit
    /// length.
    #[test]
    fn all_have_the_same_taps() {
        for a in BACKBONES.all() {
            for (size, form) in [(32, Form::Small), (224, Form::Large)] {
                let g = a.graph(size, 2, 16).unwrap();
                let taps: Vec<&str> = g.taps().iter().map(|(name, _)| name.as_str()).collect();
                let expected = ["conv1", "conv2", "conv3", "conv4", "conv5", "fc"];
                assert_eq!(taps, expected, "{a}");
                assert_eq!(g.node(g.output_node()).name, "normalise");
                let kernel = g.parameters()[0].shape[3];
                assert_eq!(a.form_of_stem(kernel), Some(form), "{a}");
            }
        }
    }

    #[test]
    fn an_unknown_name_hears_which_there_are() {
        let error = "resnet19".parse::<&Backbone>().unwrap_err().to_string();
        assert!(error.contains("resnet19") && error.contains("resnet18"));
    }
}
