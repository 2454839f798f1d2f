//! The brightness of a picture in few pixels: what decides whether two pictures are one, and what
//! blurry, dark and flat ones are told by.

use anchorhood_data::Picture;

/// A small grey picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Luma {
    pub rows: usize,
    pub columns: usize,
    pub pixels: Vec<u8>,
}

impl Luma {
    /// A whole picture, its longer side `side` pixels, as Rec. 601 weighs colours.
    pub fn of(picture: &Picture, side: usize) -> Result<Luma, String> {
        let ([rows, columns], rgb) = picture.within(side)?;
        Ok(Luma::of_rgb(rows, columns, &rgb))
    }

    /// Of RGB bytes.
    pub fn of_rgb(rows: usize, columns: usize, rgb: &[u8]) -> Luma {
        let grey = |c: &[u8; 3]| {
            let [r, g, b] = c.map(u32::from);
            ((299 * r + 587 * g + 114 * b + 500) / 1000) as u8
        };
        let (colours, _) = rgb.as_chunks::<3>();
        Luma { rows, columns, pixels: colours.iter().map(grey).collect() }
    }

    /// So many of its rows and columns, from a place on.
    pub fn part(&self, [top, left]: [usize; 2], [rows, columns]: [usize; 2]) -> Luma {
        let line = |y: usize| &self.pixels[y * self.columns + left..][..columns];
        Luma { rows, columns, pixels: (top..top + rows).flat_map(line).copied().collect() }
    }

    /// As other rows and columns, each a mean over what it covers; the shape may change.
    pub fn resized(&self, rows: usize, columns: usize) -> Vec<f32> {
        let mut narrow = vec![0.0; self.rows * columns];
        let across = spans(self.columns, columns);
        for (row, out) in
            self.pixels.chunks_exact(self.columns).zip(narrow.chunks_exact_mut(columns))
        {
            for (out, span) in out.iter_mut().zip(&across) {
                *out = span.iter().map(|(at, share)| f32::from(row[*at]) * share).sum();
            }
        }
        let mut out = vec![0.0; rows * columns];
        for (out, span) in out.chunks_exact_mut(columns).zip(spans(self.rows, rows)) {
            for (at, share) in span {
                let row = &narrow[at * columns..][..columns];
                out.iter_mut().zip(row).for_each(|(o, v)| *o += v * share);
            }
        }
        out
    }
}

/// Which of `from` pixels each of `to` covers, and which share of it each is.
fn spans(from: usize, to: usize) -> Vec<Vec<(usize, f32)>> {
    let step = from as f32 / to as f32;
    let span = |i: usize| {
        let (start, end) = (i as f32 * step, (i as f32 + 1.0) * step);
        let last = (end.ceil() as usize).min(from);
        let covered = |at: usize| (end.min(at as f32 + 1.0) - start.max(at as f32)).max(0.0);
        (start as usize..last.max(start as usize + 1).min(from))
            .map(|at| (at, covered(at) / step))
            .collect()
    };
    (0..to).map(span).collect()
}

/// Mean and standard deviation.
pub(crate) fn mean_and_deviation(values: &[f32]) -> (f32, f32) {
    let n = values.len().max(1) as f32;
    let mean = values.iter().sum::<f32>() / n;
    let square = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f32>();
    (mean, (square / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_over_what_is_covered() {
        let luma = Luma { rows: 2, columns: 3, pixels: vec![0, 30, 60, 100, 130, 160] };
        assert_eq!(luma.resized(2, 3), [0.0, 30.0, 60.0, 100.0, 130.0, 160.0]);
        assert_eq!(luma.resized(1, 3), [50.0, 80.0, 110.0]);
        let close = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-3);
        assert!(close(&luma.resized(1, 2), &[60.0, 100.0]));
        assert!(close(&luma.resized(2, 6)[..6], &[0.0, 0.0, 30.0, 30.0, 60.0, 60.0]));
    }

    #[test]
    fn the_longer_side_is_as_long_as_asked() {
        let white = Picture::from_rgb(40, 10, vec![255; 1200]).unwrap();
        let luma = Luma::of(&white, 16).unwrap();
        assert_eq!((luma.rows, luma.columns), (4, 16));
        assert!(luma.pixels.iter().all(|p| *p == 255));
        let thin = Picture::from_rgb(1, 100, vec![9; 300]).unwrap();
        let luma = Luma::of(&thin, 16).unwrap();
        assert_eq!((luma.rows, luma.columns), (16, 2));
    }
}
