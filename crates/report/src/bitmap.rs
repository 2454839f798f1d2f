//! Charts as pixels: a backend for plotters that draws on a large bitmap and shrinks it, so that edges are smooth.
//!
//! plotters' own bitmap backend looks for the system's fonts, which a machine without a screen may lack and which make every
//! machine's chart another. This one brings its letters along, and leaves the rest to plotters' rasteriser.

use std::convert::Infallible;

use anchorhood_data::encode_png;
use anchorhood_lettering::{ink, width};
use image::RgbImage;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};

use crate::ReportError;

/// Pixels of the picture for each unit of a chart: as sharp as a good screen.
const SHARP: u32 = 2;
/// Pixels drawn for each of these, in both directions.
const SMOOTH: u32 = 2;
const SCALE: i32 = (SHARP * SMOOTH) as i32;
/// plotters' sizes are of a line of text, a font's of an em; the SVG backend divides by the same.
const LINE: f64 = 1.24;

type Done = Result<(), DrawingErrorKind<Infallible>>;

/// A white sheet of a chart's size.
pub(crate) struct Sheet<'a> {
    size: (u32, u32),
    pixels: Pixels<'a>,
}

/// What is drawn on, at its full size.
struct Pixels<'a>(&'a mut RgbImage);

/// Room for a sheet of `size`.
pub(crate) fn blank((width, height): (u32, u32)) -> RgbImage {
    let scale = SHARP * SMOOTH;
    RgbImage::from_pixel(width * scale, height * scale, image::Rgb([255; 3]))
}

/// What was drawn, as the bytes of a PNG file.
pub(crate) fn png(drawn: &RgbImage) -> Result<Vec<u8>, ReportError> {
    let (width, height) = (drawn.width() / SMOOTH, drawn.height() / SMOOTH);
    encode_png(width, height, &halved(drawn)).map_err(ReportError::Drawing)
}

/// The mean of every four pixels, which [`SMOOTH`] asks for. `image` has it for any size, by generic code that is compiled with this crate,
/// not optimised: with it the report of `shapes` took 1.2 s longer.
fn halved(drawn: &RgbImage) -> Vec<u8> {
    const { assert!(SMOOTH == 2) }
    let row = drawn.width() as usize * 3;
    let mut out = Vec::with_capacity(drawn.len() / 4);
    for rows in drawn.as_raw().chunks_exact(2 * row) {
        let (above, below) = rows.split_at(row);
        for (a, b) in above.chunks_exact(6).zip(below.chunks_exact(6)) {
            for c in 0..3 {
                let sum =
                    u16::from(a[c]) + u16::from(a[c + 3]) + u16::from(b[c]) + u16::from(b[c + 3]);
                out.push(((sum + 2) / 4) as u8);
            }
        }
    }
    out
}

impl<'a> Sheet<'a> {
    /// Draws on what [`blank`] gave.
    pub fn on(image: &'a mut RgbImage) -> Self {
        let scale = SHARP * SMOOTH;
        Sheet {
            size: (image.width() / scale, image.height() / scale),
            pixels: Pixels(image),
        }
    }
}

/// The middle of a unit.
fn large((x, y): BackendCoord) -> BackendCoord {
    (x * SCALE + SCALE / 2, y * SCALE + SCALE / 2)
}

/// A style at the bitmap's scale.
struct Large {
    color: BackendColor,
    width: u32,
}

impl BackendStyle for Large {
    fn color(&self) -> BackendColor {
        self.color
    }

    fn stroke_width(&self) -> u32 {
        self.width
    }
}

impl Large {
    fn of(style: &impl BackendStyle) -> Self {
        Large {
            color: style.color(),
            width: style.stroke_width() * SCALE as u32,
        }
    }
}

impl DrawingBackend for Pixels<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.0.dimensions()
    }

    fn ensure_prepared(&mut self) -> Done {
        Ok(())
    }

    fn present(&mut self) -> Done {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Done {
        let inside = (u32::try_from(x), u32::try_from(y));
        if let (Ok(x), Ok(y)) = inside
            && let Some(pixel) = self.0.get_pixel_mut_checked(x, y)
        {
            let ink = [color.rgb.0, color.rgb.1, color.rgb.2];
            for (there, ink) in pixel.0.iter_mut().zip(ink) {
                let mixed = f64::from(*there) * (1.0 - color.alpha) + f64::from(ink) * color.alpha;
                *there = mixed.round() as u8;
            }
        }
        Ok(())
    }
}

impl DrawingBackend for Sheet<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Done {
        Ok(())
    }

    fn present(&mut self) -> Done {
        Ok(())
    }

    fn draw_pixel(&mut self, point: BackendCoord, color: BackendColor) -> Done {
        self.draw_rect(point, (point.0 + 1, point.1 + 1), &color, true)
    }

    fn draw_line<S: BackendStyle>(&mut self, a: BackendCoord, b: BackendCoord, style: &S) -> Done {
        self.pixels.draw_line(large(a), large(b), &Large::of(style))
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        fill: bool,
    ) -> Done {
        if fill {
            let corner = |x: i32, y: i32, less: i32| (x * SCALE - less, y * SCALE - less);
            let (a, b) = (corner(left, top, 0), corner(right, bottom, 1));
            return self.pixels.draw_rect(a, b, &style.color(), true);
        }
        let corners = [
            (left, top),
            (right, top),
            (right, bottom),
            (left, bottom),
            (left, top),
        ];
        self.draw_path(corners, style)
    }

    /// Lines with a dot at each corner: the rasteriser's own thick paths grow spikes at sharp ones.
    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Done {
        let path: Vec<BackendCoord> = path.into_iter().collect();
        let radius = Large::of(style).width / 2;
        for (i, pair) in path.windows(2).enumerate() {
            self.draw_line(pair[0], pair[1], style)?;
            if i > 0 && style.stroke_width() > 1 {
                let dot = style.color();
                self.pixels
                    .draw_circle(large(pair[0]), radius, &dot, true)?;
            }
        }
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        center: BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Done {
        let (center, radius) = (large(center), radius * SCALE as u32);
        let style = Large::of(style);
        self.pixels.draw_circle(center, radius, &style, fill)
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Done {
        let corners = corners.into_iter().map(large);
        self.pixels.fill_polygon(corners, &style.color())
    }

    fn draw_text<T: BackendTextStyle>(&mut self, text: &str, style: &T, at: BackendCoord) -> Done {
        let em = (style.size() * f64::from(SCALE) / LINE) as f32;
        let width = width(text, em);
        let left = match style.anchor().h_pos {
            HPos::Left => 0.0,
            HPos::Center => -width / 2.0,
            HPos::Right => -width,
        };
        // As the SVG backend places a line, in shares of an em.
        let baseline = match style.anchor().v_pos {
            VPos::Top => 0.76 * em,
            VPos::Center => 0.27 * em,
            VPos::Bottom => -0.27 * em,
        };
        let (origin, turn, color) = (large(at), style.transform(), style.color());
        ink(text, em, [left, baseline], &mut |x, y, share| {
            let (x, y) = turn.transform(x, y);
            let ink = color.mix(f64::from(share));
            let Ok(()) = self.pixels.draw_pixel((origin.0 + x, origin.1 + y), ink) else {
                return;
            };
        });
        Ok(())
    }

    fn estimate_text_size<T: BackendTextStyle>(
        &self,
        text: &str,
        style: &T,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        let width = width(text, (style.size() / LINE) as f32);
        Ok((width.ceil() as u32, style.size().ceil() as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_of_a_chart_is_in_the_font() {
        let used = "0123456789.,-%()eE kNN top-1 raw pixels untrained loss learning rate epochs round entropy τ…×";
        for letter in used.chars() {
            assert!(anchorhood_lettering::has(letter), "{letter:?}");
        }
    }

    #[test]
    fn four_pixels_become_their_mean() {
        let drawn = RgbImage::from_fn(4, 2, |x, y| image::Rgb([(40 * x + 3 * y) as u8, 255, 0]));
        assert_eq!(halved(&drawn), [22, 255, 0, 102, 255, 0]);
    }

    #[test]
    fn shapes_lie_where_they_are_said_to() {
        let mut image = blank((20, 10));
        let mut sheet = Sheet::on(&mut image);
        let ink = BackendColor {
            alpha: 1.0,
            rgb: (10, 20, 30),
        };
        sheet.draw_rect((2, 3), (5, 7), &ink, true).unwrap();
        sheet.draw_line((10, 2), (18, 2), &ink).unwrap();
        sheet.draw_pixel((-5, 100), ink).unwrap(); // outside: nothing happens
        let drawn = image::load_from_memory(&png(&image).unwrap())
            .unwrap()
            .into_rgb8();
        assert_eq!(drawn.dimensions(), (40, 20));
        let is_ink = |x, y| drawn.get_pixel(x, y).0 == [10, 20, 30];
        let inked: Vec<(u32, u32)> = (0..40)
            .flat_map(|x| (0..14).map(move |y| (x, y)))
            .filter(|(x, y)| *x < 18 && is_ink(*x, *y))
            .collect();
        let wanted: Vec<(u32, u32)> = (4..10).flat_map(|x| (6..14).map(move |y| (x, y))).collect();
        assert_eq!(inked, wanted);
        assert!(is_ink(30, 5) || is_ink(30, 4), "the line");
        assert_eq!(drawn.get_pixel(30, 10).0, [255; 3]);
    }
}
