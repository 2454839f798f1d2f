//! How do words get onto a picture?
//!
//! The letters are brought along (DejaVu Sans, Latin and Greek): a machine without a screen may
//! have none, and every machine would draw others. A letter that the font lacks is a box.
//!
//! ```
//! use image::{Rgb, RgbImage};
//!
//! let mut picture = RgbImage::from_pixel(100, 20, Rgb([255; 3]));
//! anchorhood_report::lettering::draw(&mut picture, "a.png", 12.0, [5, 15], Rgb([0; 3]));
//! assert!(picture.pixels().any(|p| *p == Rgb([0; 3])));
//! ```

use std::sync::LazyLock;

use ab_glyph::{Font, FontRef, GlyphId, PxScale, PxScaleFont, ScaleFont, point};
use image::{Rgb, RgbImage};

static FONT: LazyLock<FontRef> = LazyLock::new(|| {
    FontRef::try_from_slice(include_bytes!("font/DejaVuSans-subset.ttf")).expect("a font, tested")
});

/// What stands for the beginning of a text that is too long.
const CUT: char = '…';

fn font(em: f32) -> PxScaleFont<&'static FontRef<'static>> {
    let units = FONT.units_per_em().unwrap_or(FONT.height_unscaled());
    FONT.as_scaled(PxScale::from(em * FONT.height_unscaled() / units))
}

/// Each letter with its place on the line, and the line's length.
fn lay_out(font: &PxScaleFont<&FontRef>, text: &str) -> (Vec<(GlyphId, f32)>, f32) {
    let (mut glyphs, mut x) = (vec![], 0.0);
    for letter in text.chars() {
        let glyph = font.glyph_id(letter);
        glyphs.push((glyph, x));
        x += font.h_advance(glyph);
    }
    (glyphs, x)
}

/// Pixels that a line of text is long, in letters whose em is `em` pixels.
fn width(text: &str, em: f32) -> f32 {
    lay_out(&font(em), text).1
}

/// Writes a line of text on a picture, its baseline beginning at `start`; what lies outside is left
/// out.
pub fn draw(picture: &mut RgbImage, text: &str, em: f32, start: [u32; 2], colour: Rgb<u8>) {
    let font = font(em);
    let [left, baseline] = start.map(|v| v as f32);
    for (glyph, x) in lay_out(&font, text).0 {
        let glyph = glyph.with_scale_and_position(font.scale(), point(left + x, baseline));
        let Some(outline) = font.outline_glyph(glyph) else {
            continue; // a space
        };
        let corner = outline.px_bounds().min;
        outline.draw(|x, y, share| {
            let inside = (
                u32::try_from(x as i32 + corner.x as i32),
                u32::try_from(y as i32 + corner.y as i32),
            );
            if let (Ok(x), Ok(y)) = inside
                && let Some(pixel) = picture.get_pixel_mut_checked(x, y)
            {
                let share = share.clamp(0.0, 1.0);
                for (there, ink) in pixel.0.iter_mut().zip(colour.0) {
                    let mixed = f32::from(*there) * (1.0 - share) + f32::from(ink) * share;
                    *there = mixed.round() as u8;
                }
            }
        });
    }
}

/// As much of the end of a text as fits into so many pixels, since names of files differ at their
/// ends.
pub fn shortened(text: &str, em: f32, room: f32) -> String {
    if width(text, em) <= room {
        return text.into();
    }
    let starts = text.char_indices().skip(1).map(|(at, _)| at);
    let cut = |at: usize| format!("{CUT}{}", &text[at..]);
    let mut ends = starts.map(cut);
    ends.find(|end| width(end, em) <= room).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_their_ends() {
        assert_eq!(shortened("a.png", 10.0, 100.0), "a.png");
        let long = "holidays/2019/ü/IMG_0354.png";
        let short = shortened(long, 10.0, 90.0);
        assert!(short.starts_with(CUT) && long.ends_with(&short[CUT.len_utf8()..]), "{short}");
        assert!(width(&short, 10.0) <= 90.0 && width(&short, 10.0) > 75.0);
        assert_eq!(shortened(long, 10.0, 1.0), "");
    }

    #[test]
    fn letters_stand_on_their_line_and_never_outside() {
        let mut picture = RgbImage::from_pixel(40, 20, Rgb([255; 3]));
        draw(&mut picture, "Hx", 12.0, [2, 15], Rgb([0; 3]));
        draw(&mut picture, "outside", 12.0, [38, 19], Rgb([0; 3]));
        let dark = |y: u32| (0..30).any(|x| picture.get_pixel(x, y).0[0] < 100);
        assert!(dark(14) && dark(8) && !dark(16) && !dark(3));
        let has = |letter: char| FONT.glyph_id(letter).0 != 0;
        assert!(has('ü') && has(CUT) && !has('写'));
    }
}
