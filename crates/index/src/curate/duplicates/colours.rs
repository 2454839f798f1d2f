//! Which colours a picture has, and how much of each: what a crop keeps, wherever it was cut out.
//!
//! A histogram of 6×6×6 colours, each pixel shared among those around it, as square roots and of
//! unit length: the product of two is then Bhattacharyya's coefficient, 1 where the shares are the
//! same.

/// Steps along each of red, green and blue.
const STEPS: usize = 6;
/// Numbers of a histogram.
pub(super) const COLOURS: usize = STEPS * STEPS * STEPS;

/// The histogram of RGB bytes.
pub(super) fn histogram(rgb: &[u8]) -> Vec<f32> {
    let mut shares = vec![0.0_f32; COLOURS];
    let (pixels, _) = rgb.as_chunks::<3>();
    for pixel in pixels {
        let places = pixel.map(|v| {
            let at = (f32::from(v) * STEPS as f32 / 256.0 - 0.5).clamp(0.0, STEPS as f32 - 1.0);
            let low = (at as usize).min(STEPS - 2);
            [(low, 1.0 - (at - low as f32)), (low + 1, at - low as f32)]
        });
        for (r, red) in places[0] {
            for (g, green) in places[1] {
                for (b, blue) in places[2] {
                    shares[(r * STEPS + g) * STEPS + b] += red * green * blue;
                }
            }
        }
    }
    let all = (pixels.len() as f32).max(1.0);
    shares.iter().map(|share| (share / all).sqrt()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_colours_anywhere_are_the_same() {
        let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let (red, blue) = ([250, 10, 0], [0, 20, 255]);
        let both = histogram(&[red, blue, red, blue].concat());
        assert!((product(&both, &both) - 1.0).abs() < 1e-5);
        assert!((product(&both, &histogram(&[blue, red].concat())) - 1.0).abs() < 1e-5);
        assert!(product(&histogram(&red), &histogram(&blue)) < 0.01);
        let near = product(&histogram(&red), &histogram(&[240, 10, 0]));
        assert!(near > 0.95, "{near}");
    }
}
