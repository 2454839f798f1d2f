//! Colour: *Colorful Image Colorization* (Zhang et al., ECCV 2016).
//!
//! The network is given a picture's lightness and guesses its colour: the half of
//! [split-brain](crate::methods::SPLIT_BRAIN) that a whole network does. The formula is the same.
//!
//! Recipe for 32×32: AdamW at 0.001 (the paper: Adam at 3.16e-5, for ImageNet and 40 pictures a
//! batch), batch 128, weight decay 0.01 (1e-3 of Adam's other kind), cosine; crops of 0.2 to 1,
//! mirrored.
//!
//! Adapted: as split-brain is. A colour's class is the nearest one alone, and all classes count
//! alike; the paper spreads a colour over the five nearest and gives rare ones more weight, for
//! livelier pictures.

use crate::methods::ColourTask;
use crate::methods::colour_classes::Part;

/// Colourisation: a graph that sees lightness.
pub const COLOUR: ColourTask = ColourTask { name: "colour", guesses: &[("ab", Part::Ab)] };
