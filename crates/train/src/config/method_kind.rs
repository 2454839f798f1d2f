//! What kind of method is it? What surrounds a method asks for its kind, and seldom for its name.

use super::{ColoursChoice, MethodChoice};

/// Methods that are alike to what surrounds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodKind {
    /// It learns by a memory of all pictures' features.
    Memory,
    /// It compares views of a picture, by heads on top of the network that embeds.
    Views,
    /// Its network's own result is given targets, found without labels.
    Targets,
    /// It has a task of its own, done by heads: to guess a part of the picture, or what the picture
    /// could be made of.
    Guessing,
    /// It learns labels.
    Supervised,
}

impl MethodChoice {
    /// Its kind.
    pub fn kind(self) -> MethodKind {
        match self {
            MethodChoice::And | MethodChoice::Instance => MethodKind::Memory,
            MethodChoice::Anchorhood
            | MethodChoice::SimClr
            | MethodChoice::SimSiam
            | MethodChoice::Byol
            | MethodChoice::NnClr => MethodKind::Views,
            MethodChoice::DeepCluster | MethodChoice::Nat | MethodChoice::Counting => {
                MethodKind::Targets
            }
            MethodChoice::SplitBrain
            | MethodChoice::Colour
            | MethodChoice::Jigsaw
            | MethodChoice::Context
            | MethodChoice::BiGan => MethodKind::Guessing,
            MethodChoice::Supervised => MethodKind::Supervised,
        }
    }

    /// Whether it compares views of a picture, by heads on top of the network that embeds.
    pub fn compares_views(self) -> bool {
        self.kind() == MethodKind::Views
    }

    /// Whether heads stand on top of the network that embeds, which then ends below its last layer.
    pub fn has_heads(self) -> bool {
        matches!(self.kind(), MethodKind::Views | MethodKind::Guessing)
    }

    /// Whether the length of its features is a setting: under heads it is the network's own, and a
    /// classifier has a value for each class.
    pub fn has_features_to_choose(self) -> bool {
        matches!(self.kind(), MethodKind::Memory | MethodKind::Targets)
    }

    /// Whether it remembers the features of all pictures, which can then be judged.
    pub fn remembers(self) -> bool {
        self.kind() == MethodKind::Memory
    }

    /// Whether it discovers neighbours.
    pub fn discovers(self) -> bool {
        matches!(self, MethodChoice::And | MethodChoice::Anchorhood)
    }

    /// Why several processes cannot train by it together, a clause; nothing where they can.
    pub fn alone_because(self) -> Option<&'static str> {
        match self {
            MethodChoice::NnClr => Some(
                "each step looks for the nearest of all pictures, which would lie in every \
                 process's part",
            ),
            MethodChoice::Counting => Some(
                "it compares each picture with the next of the batch, which may be another \
                 process's",
            ),
            MethodChoice::BiGan => {
                Some("every process would make the same pictures, of the same random numbers")
            }
            _ => None,
        }
    }

    /// What its network must see of colours, where it matters to it.
    pub fn colours(self) -> Option<ColoursChoice> {
        match self {
            MethodChoice::SplitBrain => Some(ColoursChoice::Split),
            MethodChoice::Colour => Some(ColoursChoice::Lightness),
            _ => None,
        }
    }
}
