//! What several methods' recipes have in common, for images of about 32×32. A recipe changes a
//! preset's settings; where its figures come from is said at the top of the method's file.

use crate::config::{
    FeatureSource, OptimiserChoice, Preset, RunConfig, ScheduleChoice, StemChoice,
};

/// Methods that compare views: one schedule from beginning to end, gentler colours, images
/// mirrored, no memory to judge by.
pub fn views(c: &mut RunConfig) {
    one_round(c);
    c.training.schedule = ScheduleChoice::Cosine;
    photographs(c);
}

/// The same in a preset's time, after the method's own settings.
pub fn views_of_preset(c: &mut RunConfig, preset: Preset) {
    if preset == Preset::Paper {
        return;
    }
    // Images of 64 pixels cost what those of 32 do.
    c.network.stem = StemChoice::Fast;
    c.method.whiten = 0.5;
    if preset == Preset::Strong {
        return;
    }
    // Minutes on two cores: small heads for a narrow network, small batches as its other methods
    // have.
    let (t, m) = (&mut c.training, &mut c.method);
    (m.projector_width, m.projector_features, m.predictor_width) = (256, 128, 128);
    (t.batch, t.learning_rate, t.warm_up) = (64, 0.06, 0.0);
    if c.data.set == "shapes" {
        // The narrower network of shapes, which differ in outline and not in colour: colours vary
        // as much as they can.
        let a = &mut c.augmentation;
        t.batch = 32;
        (a.hue, a.jitter, a.grey, a.flip) = (0.4, 1.0, 0.2, 0.0);
        (m.projector_width, m.projector_features, m.predictor_width) = (128, 64, 64);
    }
}

/// Methods that learn in one round, without a memory to judge by.
pub fn one_round(c: &mut RunConfig) {
    c.training.rounds = 0;
    c.evaluation.features = FeatureSource::Recomputed;
}

/// Photographs' colours, changed gently, and mirrored images.
pub fn photographs(c: &mut RunConfig) {
    let a = &mut c.augmentation;
    (a.hue, a.jitter, a.flip) = (0.1, 0.8, 0.5);
}

/// Methods that guess a part of an image from another: one schedule, and colours as they are.
pub fn pretext(c: &mut RunConfig) {
    one_round(c);
    let (t, a) = (&mut c.training, &mut c.augmentation);
    (t.schedule, t.optimiser) = (ScheduleChoice::Cosine, OptimiserChoice::AdamW);
    (t.learning_rate, t.weight_decay) = (0.001, 0.01);
    (a.jitter, a.grey, a.flip) = (0.0, 0.0, 0.5);
}

/// Puzzles of tiles: a mirrored image's order is another one, and colour is not to tell it.
pub fn tiles(c: &mut RunConfig, preset: Preset) {
    pretext(c);
    let a = &mut c.augmentation;
    (a.crop_scale, a.grey, a.flip) = ((0.6, 1.0), 0.3, 0.0);
    c.method.projector_width = if preset == Preset::Quick { 256 } else { 1024 };
}
