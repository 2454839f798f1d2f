//! The networks there are, by name.

use std::fmt;
use std::str::FromStr;

use anchorhood_engine::{Graph, Result};

use crate::resnet18;

/// A network the program can train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// ResNet18 with a 3×3 stem and no first pooling, for small pictures.
    ResNet18,
}

impl Architecture {
    /// All of them.
    pub const ALL: &[Architecture] = &[Architecture::ResNet18];

    /// What the user types.
    pub fn name(self) -> &'static str {
        match self {
            Architecture::ResNet18 => "resnet18",
        }
    }

    /// Channels after the stem, as published.
    pub fn default_width(self) -> usize {
        match self {
            Architecture::ResNet18 => 64,
        }
    }

    /// Its graph for square pictures of `size` pixels a side; `width` channels after the stem, `features` in the result.
    pub fn graph(self, size: usize, width: usize, features: usize) -> Result<Graph> {
        match self {
            Architecture::ResNet18 => resnet18(size, width, features),
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name no network has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownArchitecture(String);

impl fmt::Display for UnknownArchitecture {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let names: Vec<&str> = Architecture::ALL.iter().map(|a| a.name()).collect();
        write!(
            f,
            "no network is called `{}`; there is {}",
            self.0,
            names.join(", ")
        )
    }
}

impl std::error::Error for UnknownArchitecture {}

impl FromStr for Architecture {
    type Err = UnknownArchitecture;

    fn from_str(name: &str) -> Result<Self, UnknownArchitecture> {
        let is = |a: &&Architecture| a.name().eq_ignore_ascii_case(name);
        let found = Architecture::ALL.iter().find(is);
        found
            .copied()
            .ok_or_else(|| UnknownArchitecture(name.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for a in Architecture::ALL {
            assert_eq!(a.name().parse(), Ok(*a));
        }
        assert_eq!("ResNet18".parse(), Ok(Architecture::ResNet18));
    }

    #[test]
    fn an_unknown_name_hears_which_there_are() {
        let error = "resnet19".parse::<Architecture>().unwrap_err().to_string();
        assert!(error.contains("resnet19") && error.contains("resnet18"));
    }
}
