//! Which crop, which colours: the random choices for one picture.
//!
//! Written so that a GPU can draw the same bits: every step is one f32 `+ - * /` or `sqrt` (rounded
//! to nearest, never fused), a comparison, or an integer multiply and shift. Only the logarithms of
//! the ratio bounds come from a library; they are the same for every picture, computed once in f64.
//!
//! Words used, by block of four: try `t` of the crop takes block `t` (area, log-ratio, top, left);
//! block 16 holds brightness, contrast, saturation, hue; block 17 the order, grey, flip; block 18
//! whether colours are jittered, whether it is blurred, sigma, whether it is solarised. A view has
//! [`VIEW_BLOCKS`] blocks of its own: those of view 0 come first.

use anchorhood_storage::random::{Draws, Stream, unit};

use super::Augmentation;

/// A change of colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// Towards black.
    Brightness = 0,
    /// Towards the picture's mean grey.
    Contrast = 1,
    /// Towards each pixel's own grey.
    Saturation = 2,
    /// Around the colour circle.
    Hue = 3,
}

/// The random choices for one picture. `repr(C)`: a device may read an array of them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct AugmentParams {
    /// First row of the crop.
    pub top: u32,
    /// First column of the crop.
    pub left: u32,
    /// Rows of the crop, at least 1.
    pub height: u32,
    /// Columns of the crop, at least 1.
    pub width: u32,
    /// Factor of brightness; 1 changes nothing.
    pub brightness: f32,
    /// Factor of contrast; 1 changes nothing.
    pub contrast: f32,
    /// Factor of saturation; 1 changes nothing.
    pub saturation: f32,
    /// Turn of the hue; 0 changes nothing.
    pub hue: f32,
    /// Which row of [`AugmentParams::ORDERS`] the four changes of colour follow.
    pub order: u32,
    /// Whether it turns grey: 0 or 1.
    pub grey: u32,
    /// Whether it is mirrored: 0 or 1.
    pub flip: u32,
    /// Sigma of the Gaussian blur in pixels; 0 blurs nothing.
    pub blur: f32,
    /// Whether it is solarised: 0 or 1.
    pub solarise: u32,
}

/// Tries to find a crop that fits before falling back to the centre.
const TRIES: u32 = 10;
const COLOUR_BLOCK: u32 = 16;
const CHOICE_BLOCK: u32 = 17;
const SOMETIMES_BLOCK: u32 = 18;
/// Blocks of words that belong to one view: as many as a GPU's warp draws at once.
pub const VIEW_BLOCKS: u32 = 32;

/// The draws for one view of item `item` in an epoch.
pub fn view_draws(seed: u64, epoch: u64, item: u32, view: u32) -> Draws {
    Draws::new(seed, Stream::Augment, epoch, u64::from(item)).skip(view * VIEW_BLOCKS)
}

impl AugmentParams {
    /// The 24 orders of four things, in lexicographic order.
    pub const ORDERS: [[u8; 4]; 24] = orders();

    /// The whole picture, unchanged.
    pub fn identity(h: usize, w: usize) -> Self {
        AugmentParams {
            top: 0,
            left: 0,
            height: h as u32,
            width: w as u32,
            brightness: 1.0,
            contrast: 1.0,
            saturation: 1.0,
            hue: 0.0,
            order: 0,
            grey: 0,
            flip: 0,
            blur: 0.0,
            solarise: 0,
        }
    }

    /// Chooses for one `h`×`w` picture.
    pub fn draw(how: &Augmentation, h: usize, w: usize, draws: &Draws) -> Self {
        let (top, left, height, width) = crop(how, h as u32, w as u32, draws);
        let [brightness, contrast, saturation, hue] = draws.units(COLOUR_BLOCK);
        let [order, grey, flip, _] = draws.block(CHOICE_BLOCK);
        let [jitter, blur, sigma, solarise] = draws.units(SOMETIMES_BLOCK);
        let drawn = AugmentParams {
            top,
            left,
            height,
            width,
            brightness: factor(how.brightness, brightness),
            contrast: factor(how.contrast, contrast),
            saturation: factor(how.saturation, saturation),
            hue: between(-how.hue, how.hue, hue),
            order: below(order, 24),
            grey: u32::from(unit(grey) < how.grey),
            flip: u32::from(unit(flip) < how.flip),
            blur: if blur < how.blur {
                between(how.blur_sigma.0, how.blur_sigma.1, sigma)
            } else {
                0.0
            },
            solarise: u32::from(solarise < how.solarise),
        };
        if jitter < how.jitter { drawn } else { drawn.without_jitter() }
    }

    /// The same with the picture's own colours.
    fn without_jitter(self) -> Self {
        AugmentParams { brightness: 1.0, contrast: 1.0, saturation: 1.0, hue: 0.0, ..self }
    }

    /// The four changes of colour in the order they are made.
    pub fn ops(&self) -> [Op; 4] {
        Self::ORDERS[self.order as usize % 24].map(|op| match op {
            0 => Op::Brightness,
            1 => Op::Contrast,
            2 => Op::Saturation,
            _ => Op::Hue,
        })
    }
}

const fn orders() -> [[u8; 4]; 24] {
    let mut table = [[0; 4]; 24];
    let mut row = 0;
    let mut code = 0;
    while code < 256 {
        let p = [code >> 6 & 3, code >> 4 & 3, code >> 2 & 3, code & 3];
        if 1 << p[0] | 1 << p[1] | 1 << p[2] | 1 << p[3] == 15 {
            table[row] = [p[0] as u8, p[1] as u8, p[2] as u8, p[3] as u8];
            row += 1;
        }
        code += 1;
    }
    table
}

/// A word scaled into 0..n.
fn below(word: u32, n: u32) -> u32 {
    ((u64::from(word) * u64::from(n)) >> 32) as u32
}

fn between(low: f32, high: f32, u: f32) -> f32 {
    low + u * (high - low)
}

/// 1 when there is nothing to vary, so that doing nothing is exact.
fn factor(amount: f32, u: f32) -> f32 {
    between((1.0 - amount).max(0.0), 1.0 + amount, u)
}

/// To the nearest whole number, halves upwards.
fn round(x: f32) -> u32 {
    (x + 0.5) as u32
}

/// e^x by a degree-6 Taylor polynomial of x/8, squared three times. Relative error below 2e-6 for
/// |x| ≤ ln 8.
pub(super) fn exp(x: f32) -> f32 {
    let y = x * 0.125;
    let mut p = 1.0 / 720.0;
    for c in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = p * y + c;
    }
    p = p * p;
    p = p * p;
    p * p
}

pub(super) fn log(x: f32) -> f32 {
    f64::from(x).ln() as f32
}

/// torchvision's rule: an area and a ratio, both uniform (the ratio in its logarithm), until the
/// box fits.
fn crop(how: &Augmentation, h: u32, w: u32, draws: &Draws) -> (u32, u32, u32, u32) {
    let area = (h * w) as f32;
    let (low, high) = (log(how.crop_ratio.0), log(how.crop_ratio.1));
    for attempt in 0..TRIES {
        let words = draws.block(attempt);
        let target = area * between(how.crop_scale.0, how.crop_scale.1, unit(words[0]));
        let ratio = exp(between(low, high, unit(words[1])));
        let width = round((target * ratio).sqrt());
        let height = round((target / ratio).sqrt());
        if (1..=w).contains(&width) && (1..=h).contains(&height) {
            let top = below(words[2], h - height + 1);
            let left = below(words[3], w - width + 1);
            return (top, left, height, width);
        }
    }
    centre(how, h, w)
}

/// The largest centred box whose ratio is allowed.
fn centre(how: &Augmentation, h: u32, w: u32) -> (u32, u32, u32, u32) {
    let ratio = w as f32 / h as f32;
    let (mut height, mut width) = (h, w);
    if ratio < how.crop_ratio.0 {
        height = round(w as f32 / how.crop_ratio.0).clamp(1, h);
    } else if ratio > how.crop_ratio.1 {
        width = round(h as f32 * how.crop_ratio.1).clamp(1, w);
    }
    ((h - height) / 2, (w - width) / 2, height, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(how: &Augmentation, h: usize, w: usize, n: u64) -> Vec<AugmentParams> {
        (0..n)
            .map(|i| AugmentParams::draw(how, h, w, &Draws::new(1, Stream::Augment, 0, i)))
            .collect()
    }

    #[test]
    fn the_exponential_keeps_its_word() {
        let worst = (-2080..=2080)
            .map(|i| i as f32 / 1000.0)
            .map(|x| (f64::from(exp(x)) / f64::from(x).exp() - 1.0).abs())
            .fold(0.0, f64::max);
        assert!(worst < 2e-6, "{worst}");
        assert_eq!(exp(0.0), 1.0);
    }

    #[test]
    fn orders_are_the_24_permutations() {
        assert_eq!(AugmentParams::ORDERS[0], [0, 1, 2, 3]);
        assert_eq!(AugmentParams::ORDERS[1], [0, 1, 3, 2]);
        assert_eq!(AugmentParams::ORDERS[23], [3, 2, 1, 0]);
        let distinct: std::collections::HashSet<_> = AugmentParams::ORDERS.iter().collect();
        assert_eq!(distinct.len(), 24);
    }

    #[test]
    fn crops_fit_and_cover_what_they_should() {
        for (h, w) in [(32, 32), (20, 48), (1, 1), (3, 40)] {
            for p in drawn(&Augmentation::default(), h, w, 2000) {
                assert!(p.height >= 1 && p.top + p.height <= h as u32);
                assert!(p.width >= 1 && p.left + p.width <= w as u32);
            }
        }
        let all = drawn(&Augmentation::default(), 32, 32, 20_000);
        let share = |p: &AugmentParams| f64::from(p.height * p.width) / 1024.0;
        let mean = all.iter().map(share).sum::<f64>() / all.len() as f64;
        // torchvision's rule gives 0.550 over 200,000 draws (large crops off the square do not fit
        // and are drawn again).
        assert!((mean - 0.550).abs() < 0.01, "{mean}");
        assert!(all.iter().all(|p| share(p) > 0.17));
        assert!(all.iter().any(|p| p.top > 10) && all.iter().any(|p| p.left > 10));
    }

    #[test]
    fn a_long_picture_falls_back_to_its_centre() {
        let how = Augmentation { crop_scale: (1.0, 1.0), ..Augmentation::default() };
        let p = drawn(&how, 30, 100, 1)[0];
        assert_eq!((p.top, p.left, p.height, p.width), (0, 30, 30, 40));
        let p = drawn(&how, 100, 30, 1)[0];
        assert_eq!((p.top, p.left, p.height, p.width), (30, 0, 40, 30));
    }

    #[test]
    fn colours_stay_in_range_and_orders_are_all_used() {
        let all = drawn(&Augmentation { flip: 0.5, ..Augmentation::default() }, 32, 32, 10_000);
        assert!(all.iter().all(|p| (0.6..=1.4).contains(&p.brightness)
            && (0.6..=1.4).contains(&p.contrast)
            && (0.6..=1.4).contains(&p.saturation)
            && (-0.4..=0.4).contains(&p.hue)));
        for order in 0..24 {
            let n = all.iter().filter(|p| p.order == order).count();
            assert!((300..540).contains(&n), "order {order}: {n}");
        }
        let share = |f: fn(&AugmentParams) -> u32| all.iter().map(f).sum::<u32>();
        assert!((1800..2200).contains(&share(|p| p.grey)));
        assert!((4800..5200).contains(&share(|p| p.flip)));
    }

    #[test]
    fn probabilities_hold() {
        let how = Augmentation { jitter: 0.8, blur: 0.5, solarise: 0.2, ..Augmentation::default() };
        let all = drawn(&how, 32, 32, 10_000);
        let count = |f: fn(&AugmentParams) -> bool| all.iter().filter(|p| f(p)).count();
        let plain = |p: &AugmentParams| [p.brightness, p.contrast, p.saturation] == [1.0; 3];
        assert!((1880..2120).contains(&count(plain)));
        assert!(all.iter().all(|p| plain(p) == (p.hue == 0.0)));
        assert!((1880..2120).contains(&count(|p| p.solarise == 1)));
        assert!((4850..5150).contains(&count(|p| p.blur > 0.0)));
        let sigmas = || all.iter().map(|p| p.blur).filter(|s| *s > 0.0);
        assert!(sigmas().all(|s| (0.1..2.0).contains(&s)));
        let mean = sigmas().sum::<f32>() / sigmas().count() as f32;
        assert!((mean - 1.05).abs() < 0.04, "{mean}");
        // Independent of each other: each pair of choices as often as the product of its
        // probabilities.
        assert!((900..1100).contains(&count(|p| p.blur > 0.0 && p.solarise == 1)));
        assert!((330..470).contains(&count(|p| p.solarise == 1 && p.hue == 0.0)));
    }

    #[test]
    fn choices_of_later_words_leave_the_others_alone() {
        let usual = Augmentation { flip: 0.5, ..Augmentation::default() };
        let more = Augmentation { blur: 1.0, solarise: 1.0, ..usual };
        for (a, b) in drawn(&usual, 32, 32, 100).iter().zip(drawn(&more, 32, 32, 100)) {
            assert!(b.blur > 0.0 && b.solarise == 1);
            let (blur, solarise) = (0.0, 0);
            assert_eq!(*a, AugmentParams { blur, solarise, ..b });
        }
    }

    #[test]
    fn views_have_words_of_their_own() {
        let mut seen = std::collections::HashSet::new();
        for view in 0..4 {
            let draws = view_draws(1, 2, 3, view);
            assert!((0..VIEW_BLOCKS).all(|b| seen.insert(draws.block(b))));
        }
        let first = Draws::new(1, Stream::Augment, 2, 3);
        assert_eq!(view_draws(1, 2, 3, 0).block(17), first.block(17));
        const { assert!(SOMETIMES_BLOCK < VIEW_BLOCKS) };
    }

    #[test]
    fn none_is_the_identity() {
        for p in drawn(&Augmentation::none(), 32, 32, 100) {
            assert_eq!(AugmentParams { order: 0, ..p }, AugmentParams::identity(32, 32));
        }
    }

    /// Fixed for good: a kernel on another device is tested against these.
    #[test]
    fn known_draws() {
        let draws = Draws::new(7, Stream::Augment, 3, 11);
        let p = AugmentParams::draw(&Augmentation::default(), 32, 32, &draws);
        let bits = [p.brightness, p.contrast, p.saturation, p.hue].map(f32::to_bits);
        assert_eq!(([p.top, p.left, p.height, p.width], bits, [p.order, p.grey, p.flip]), KNOWN);
    }

    /// As [`known_draws`], of what is drawn sometimes, in a second view.
    #[test]
    fn known_draws_of_a_second_view() {
        let how = Augmentation { blur: 1.0, solarise: 0.5, ..Augmentation::default() };
        let p = AugmentParams::draw(&how, 32, 32, &view_draws(7, 3, 11, 1));
        let crop = [p.top, p.left, p.height, p.width];
        assert_eq!((crop, p.blur.to_bits(), p.solarise), KNOWN_SECOND);
    }

    const KNOWN_SECOND: ([u32; 4], u32, u32) = ([3, 7, 22, 25], 1_061_282_540, 1);

    const KNOWN: ([u32; 4], [u32; 4], [u32; 3]) =
        ([13, 1, 16, 17], [1058851248, 1059036315, 1067430757, 1051334381], [5, 0, 0]);
}
