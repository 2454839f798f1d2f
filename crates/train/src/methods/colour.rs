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

use crate::config::ColoursChoice;
use crate::methods::MethodSpec;
use crate::methods::colour_classes::Part;
use crate::methods::recipes::pretext;
use crate::methods::split_brain::{ColourTask, SplitBrain};

/// Guess an image's colours from its lightness.
pub static COLOUR: MethodSpec = MethodSpec {
    name: "colour",
    summary: "Guess an image's colours from its lightness",
    reference: "Zhang et al., ECCV 2016",
    colours: Some(ColoursChoice::Lightness),
    recipe: |c, _| {
        pretext(c);
        c.network.colours = ColoursChoice::Lightness;
    },
    memory_bytes: |setup, _| Ok((SplitBrain::memory_bytes(setup, TASK)?, 0)),
    build: |setup, _, _| Ok(Box::new(SplitBrain::new(setup, TASK)?)),
    ..MethodSpec::DEFAULT
};

/// Colourisation: a graph that sees lightness.
const TASK: ColourTask = &[("ab", Part::Ab)];
