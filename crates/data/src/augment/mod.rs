//! What the network sees of a picture in training: a random crop, colours jittered in random order,
//! sometimes grey, blurred, solarised, mirrored.
//!
//! The operations are torchvision's on float tensors in [0, 1], in this order: `RandomResizedCrop`,
//! `ColorJitter`, `RandomGrayscale`, `GaussianBlur`, `RandomSolarize`, `RandomHorizontalFlip`, then
//! normalisation. Choosing ([`AugmentParams::draw`]) is apart from doing ([`apply`]), so that
//! another device can do either and agree. [`naive`] is the specification of the doing. A method
//! may see several [`Views`] of a picture, each with settings and draws of its own.

mod apply;
mod blur;
pub mod kernel;
pub mod naive;
mod params;
mod views;

pub use apply::{apply, normalise};
pub use params::{AugmentParams, Op, VIEW_BLOCKS, view_draws};
pub use views::Views;

use anchorhood_storage::random::Draws;

/// How strongly pictures are changed. The default is that of the authors' code. Numbers are not
/// checked here: a run's settings have ranges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Augmentation {
    /// Least and greatest share of the picture's area that a crop keeps.
    pub crop_scale: (f32, f32),
    /// Least and greatest width over height of a crop.
    pub crop_ratio: (f32, f32),
    /// Brightness is multiplied by 1 ± this.
    pub brightness: f32,
    /// Contrast is multiplied by 1 ± this.
    pub contrast: f32,
    /// Saturation is multiplied by 1 ± this.
    pub saturation: f32,
    /// Hue turns by up to this share of the circle either way.
    pub hue: f32,
    /// Probability that brightness, contrast, saturation and hue are changed at all.
    pub jitter: f32,
    /// Probability of turning grey.
    pub grey: f32,
    /// Probability of a Gaussian blur. Its window is a tenth of the picture's lesser side, at least
    /// 3 pixels.
    pub blur: f32,
    /// Least and greatest sigma of the blur, in pixels.
    pub blur_sigma: (f32, f32),
    /// Probability of being solarised: values of at least a half turn into 1 − value.
    pub solarise: f32,
    /// Probability of being mirrored.
    pub flip: f32,
}

impl Default for Augmentation {
    fn default() -> Self {
        Augmentation {
            crop_scale: (0.2, 1.0),
            crop_ratio: (3.0 / 4.0, 4.0 / 3.0),
            brightness: 0.4,
            contrast: 0.4,
            saturation: 0.4,
            hue: 0.4,
            jitter: 1.0,
            grey: 0.2,
            blur: 0.0,
            blur_sigma: (0.1, 2.0),
            solarise: 0.0,
            flip: 0.0,
        }
    }
}

impl Augmentation {
    /// Leaves square pictures as they are: the whole picture, its own colours.
    pub fn none() -> Self {
        Augmentation {
            crop_scale: (1.0, 1.0),
            crop_ratio: (1.0, 1.0),
            brightness: 0.0,
            contrast: 0.0,
            saturation: 0.0,
            hue: 0.0,
            grey: 0.0,
            ..Augmentation::default()
        }
    }
}

/// Augments one RGB picture of `from[0]` rows and `from[1]` columns with what `draws` give, and
/// normalises it into `out` (`to[0]` rows and `to[1]` columns, HWC).
///
/// Allocates nothing after a thread's first call for a size.
pub fn augment(
    picture: &[u8],
    from: [usize; 2],
    to: [usize; 2],
    how: &Augmentation,
    draws: &Draws,
    mean: [f32; 3],
    std: [f32; 3],
    out: &mut [f32],
) {
    let params = AugmentParams::draw(how, from[0], from[1], draws);
    apply(picture, from, to, &params, mean, std, out);
}
