//! The networks there are, by name.

use std::fmt;
use std::str::FromStr;

use anchorhood_engine::{Graph, Result};

use crate::alexnet::AlexNet;
use crate::colours::whole;
use crate::resnet::{ResNet, Stages};
use crate::{Colours, Form};

/// A network the program can train. Its form follows the size of the pictures, see [`Form`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// AlexNet with batch norm.
    AlexNet,
    /// ResNet10: a block in each stage, where ResNet18 has two.
    ResNet10,
    /// ResNet18.
    ResNet18,
    /// ResNet34.
    ResNet34,
    /// ResNet50.
    ResNet50,
    /// ResNet101.
    ResNet101,
}

impl Architecture {
    /// All of them.
    pub const ALL: [Architecture; 6] = [
        Architecture::AlexNet,
        Architecture::ResNet10,
        Architecture::ResNet18,
        Architecture::ResNet34,
        Architecture::ResNet50,
        Architecture::ResNet101,
    ];

    /// What the user types.
    pub fn name(self) -> &'static str {
        match self {
            Architecture::AlexNet => "alexnet",
            Architecture::ResNet10 => "resnet10",
            Architecture::ResNet18 => "resnet18",
            Architecture::ResNet34 => "resnet34",
            Architecture::ResNet50 => "resnet50",
            Architecture::ResNet101 => "resnet101",
        }
    }

    /// Channels after the stem, as published.
    pub fn default_width(self) -> usize {
        64
    }

    /// Its graph for square pictures of `size` pixels a side, in the form that suits them; `width`
    /// channels after the stem, `features` in the result.
    pub fn graph(self, size: usize, width: usize, features: usize) -> Result<Graph> {
        self.graph_of(Form::for_size(size), size, width, features)
    }

    /// The same in a form of one's choice: weights learnt on large pictures can be tried on small
    /// ones.
    pub fn graph_of(self, form: Form, size: usize, width: usize, features: usize) -> Result<Graph> {
        self.graph_seeing(Colours::Rgb, form, size, width, features)
    }

    /// The same, seeing something of the colours or all.
    pub fn graph_seeing(
        self,
        colours: Colours,
        form: Form,
        size: usize,
        width: usize,
        features: usize,
    ) -> Result<Graph> {
        match self.stages() {
            None => whole(colours, &AlexNet(form), size, width, features),
            Some(stages) => whole(colours, &ResNet { stages, form }, size, width, features),
        }
    }

    /// The form whose first convolution is so many pixels wide, if there is one. The medium form's
    /// is as wide as the small one's: weights alone do not tell them apart.
    pub fn form_of_stem(self, kernel: usize) -> Option<Form> {
        let [small, large] = match self {
            Architecture::AlexNet => [5, 11],
            _ => [3, 7],
        };
        match kernel {
            k if k == small => Some(Form::Small),
            k if k == large => Some(Form::Large),
            _ => None,
        }
    }

    /// A ResNet's.
    pub(crate) fn stages(self) -> Option<Stages> {
        let (blocks, bottleneck) = match self {
            Architecture::AlexNet => return None,
            Architecture::ResNet10 => ([1, 1, 1, 1], false),
            Architecture::ResNet18 => ([2, 2, 2, 2], false),
            Architecture::ResNet34 => ([3, 4, 6, 3], false),
            Architecture::ResNet50 => ([3, 4, 6, 3], true),
            Architecture::ResNet101 => ([3, 4, 23, 3], true),
        };
        Some(Stages { blocks, bottleneck })
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name no network has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no network is called `{0}`; there is {names}",
    names = Architecture::ALL.map(Architecture::name).join(", ")
)]
pub struct UnknownArchitecture(String);

impl FromStr for Architecture {
    type Err = UnknownArchitecture;

    fn from_str(name: &str) -> Result<Self, UnknownArchitecture> {
        let is = |a: &&Architecture| a.name().eq_ignore_ascii_case(name);
        let found = Architecture::ALL.iter().find(is);
        found.copied().ok_or_else(|| UnknownArchitecture(name.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for a in Architecture::ALL {
            assert_eq!(a.name().parse(), Ok(a));
        }
        assert_eq!("ResNet18".parse(), Ok(Architecture::ResNet18));
    }

    /// Every network, in both forms, has the taps that protocols ask for and a result of unit
    /// length.
    #[test]
    fn all_have_the_same_taps() {
        for a in Architecture::ALL {
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
        let error = "resnet19".parse::<Architecture>().unwrap_err().to_string();
        assert!(error.contains("resnet19") && error.contains("resnet18"));
    }
}
