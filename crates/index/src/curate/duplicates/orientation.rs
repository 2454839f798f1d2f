//! The eight ways in which a rectangle may be turned by quarters, also in a mirror.

use super::CopyKind;
use crate::curate::luma::Luma;

/// Left for right where it is mirrored, then so many quarters clockwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Orientation {
    pub mirrored: bool,
    pub quarters: u8,
}

impl Orientation {
    pub const UPRIGHT: Orientation = Orientation { mirrored: false, quarters: 0 };
    pub const MIRRORED: Orientation = Orientation { mirrored: true, quarters: 0 };

    /// All, the more usual ones first.
    pub const ALL: [Orientation; 8] = [
        Self::UPRIGHT,
        Self::MIRRORED,
        Orientation { mirrored: false, quarters: 1 },
        Orientation { mirrored: false, quarters: 2 },
        Orientation { mirrored: false, quarters: 3 },
        Orientation { mirrored: true, quarters: 1 },
        Orientation { mirrored: true, quarters: 2 },
        Orientation { mirrored: true, quarters: 3 },
    ];

    /// Of rows and columns, the values as they lie then.
    pub fn turned<T: Copy>(
        self,
        [rows, columns]: [usize; 2],
        values: &[T],
    ) -> ([usize; 2], Vec<T>) {
        let sides = match self.quarters % 2 {
            0 => [rows, columns],
            _ => [columns, rows],
        };
        let from = |y: usize, x: usize| {
            let (y, x) = match self.quarters {
                0 => (y, x),
                1 => (rows - 1 - x, y),
                2 => (rows - 1 - y, columns - 1 - x),
                _ => (x, columns - 1 - y),
            };
            let x = if self.mirrored { columns - 1 - x } else { x };
            values[y * columns + x]
        };
        let all = (0..sides[0]).flat_map(|y| (0..sides[1]).map(move |x| (y, x)));
        (sides, all.map(|(y, x)| from(y, x)).collect())
    }

    /// An image as it lies then.
    pub fn of(self, luma: &Luma) -> Luma {
        let ([rows, columns], pixels) = self.turned([luma.rows, luma.columns], &luma.pixels);
        Luma { rows, columns, pixels }
    }

    /// A part of an image as it lies then.
    pub fn of_part(self, part: Part) -> Part {
        let Part { top, left, height, width } = part;
        let left = if self.mirrored { 1.0 - left - width } else { left };
        let mut part = Part { top, left, height, width };
        for _ in 0..self.quarters {
            part = Part {
                top: part.left,
                left: 1.0 - part.top - part.height,
                height: part.width,
                width: part.height,
            };
        }
        part
    }

    /// What a whole copy is called that lies so; none for one that is upright.
    pub fn kind(self) -> Option<CopyKind> {
        match (self.mirrored, self.quarters) {
            (false, 0) => None,
            (true, 0) => Some(CopyKind::Mirrored),
            (false, 1) => Some(CopyKind::Rotated90),
            (false, 2) => Some(CopyKind::Rotated180),
            (false, _) => Some(CopyKind::Rotated270),
            (true, 1) => Some(CopyKind::MirroredRotated90),
            (true, 2) => Some(CopyKind::MirroredRotated180),
            (true, _) => Some(CopyKind::MirroredRotated270),
        }
    }

    /// The orientation that undoes it.
    pub fn inverse(self) -> Orientation {
        match self.mirrored {
            true => self, // a reflection
            false => Orientation { quarters: (4 - self.quarters) % 4, ..self },
        }
    }
}

/// A part of an image, as shares of its sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    pub top: f32,
    pub left: f32,
    pub height: f32,
    pub width: f32,
}

impl Part {
    pub const WHOLE: Part = Part { top: 0.0, left: 0.0, height: 1.0, width: 1.0 };

    /// A part of this part, as a part of the image.
    pub fn within(self, inner: Part) -> Part {
        Part {
            top: self.top + inner.top * self.height,
            left: self.left + inner.left * self.width,
            height: self.height * inner.height,
            width: self.width * inner.width,
        }
    }

    pub fn area(self) -> f32 {
        self.height * self.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_orientation_moves_values_and_parts_alike_and_is_undone() {
        let (rows, columns) = (4, 6);
        let values: Vec<usize> = (0..rows * columns).collect();
        // The upper left quarter of a sixth of the columns.
        let part = Part { top: 0.0, left: 0.0, height: 0.25, width: 1.0 / 6.0 };
        let mut seen = vec![];
        for orientation in Orientation::ALL {
            let (sides, turned) = orientation.turned([rows, columns], &values);
            let place = turned.iter().position(|v| *v == 0).unwrap();
            let moved = orientation.of_part(part);
            let at = [moved.top * sides[0] as f32, moved.left * sides[1] as f32];
            let place = [place / sides[1], place % sides[1]];
            assert!((at[0] - place[0] as f32).abs() < 1e-5, "{orientation:?}");
            assert!((at[1] - place[1] as f32).abs() < 1e-5, "{orientation:?}");
            let back = orientation.inverse().turned(sides, &turned);
            assert_eq!(back, ([rows, columns], values.clone()), "{orientation:?}");
            assert!(!seen.contains(&turned));
            seen.push(turned);
        }
        // A quarter clockwise: the first column from below becomes the first row.
        let (_, turned) = Orientation::ALL[2].turned([2, 3], &[1, 2, 3, 4, 5, 6]);
        assert_eq!(turned, [4, 1, 5, 2, 6, 3]);
    }
}
