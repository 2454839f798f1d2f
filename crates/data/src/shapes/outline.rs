//! The ten outlines, each a signed distance: negative inside, positive outside, in a frame where
//! shapes reach from −1 to 1.
//!
//! Near the edge the distance is exact enough for one pixel of anti-aliasing. Only `+ - * /`,
//! square root and comparisons, so every machine draws the same bytes. The star, triangle and heart
//! follow Inigo Quilez's derivations.

/// A class of the data set: what a picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outline {
    /// A full circle.
    Disc,
    /// A circle with a hole.
    Ring,
    /// An equilateral triangle.
    Triangle,
    /// A square.
    Square,
    /// A five-pointed star.
    Star,
    /// A plus sign.
    Cross,
    /// A moon.
    Crescent,
    /// A heart.
    Heart,
    /// An arrow.
    Arrow,
    /// The letter L.
    Ell,
}

impl Outline {
    /// Every class, in the order of their numbers.
    pub const ALL: [Outline; 10] = [
        Outline::Disc,
        Outline::Ring,
        Outline::Triangle,
        Outline::Square,
        Outline::Star,
        Outline::Cross,
        Outline::Crescent,
        Outline::Heart,
        Outline::Arrow,
        Outline::Ell,
    ];

    /// The class's name.
    pub fn name(self) -> &'static str {
        match self {
            Outline::Disc => "disc",
            Outline::Ring => "ring",
            Outline::Triangle => "triangle",
            Outline::Square => "square",
            Outline::Star => "star",
            Outline::Cross => "cross",
            Outline::Crescent => "crescent",
            Outline::Heart => "heart",
            Outline::Arrow => "arrow",
            Outline::Ell => "ell",
        }
    }

    /// The distance of each of many points, given as (x, y) pairs of slices of one length.
    ///
    /// The class is looked at once for all of them, so that the loop over points can be vectorised.
    pub fn distances(self, x: &[f32], y: &[f32], out: &mut [f32]) {
        fn each(x: &[f32], y: &[f32], out: &mut [f32], distance: impl Fn(f32, f32) -> f32) {
            for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
                *out = distance(*x, *y);
            }
        }
        match self {
            Outline::Disc => each(x, y, out, |x, y| Outline::Disc.distance(x, y)),
            Outline::Ring => each(x, y, out, |x, y| Outline::Ring.distance(x, y)),
            Outline::Triangle => each(x, y, out, |x, y| Outline::Triangle.distance(x, y)),
            Outline::Square => each(x, y, out, |x, y| Outline::Square.distance(x, y)),
            Outline::Star => each(x, y, out, |x, y| Outline::Star.distance(x, y)),
            Outline::Cross => each(x, y, out, |x, y| Outline::Cross.distance(x, y)),
            Outline::Crescent => each(x, y, out, |x, y| Outline::Crescent.distance(x, y)),
            Outline::Heart => each(x, y, out, |x, y| Outline::Heart.distance(x, y)),
            Outline::Arrow => each(x, y, out, |x, y| Outline::Arrow.distance(x, y)),
            Outline::Ell => each(x, y, out, |x, y| Outline::Ell.distance(x, y)),
        }
    }

    /// How far (x, y) lies outside the outline; y grows downwards.
    #[inline(always)]
    pub fn distance(self, x: f32, y: f32) -> f32 {
        match self {
            Outline::Disc => length(x, y) - 0.85,
            Outline::Ring => (length(x, y) - 0.7).abs() - 0.2,
            Outline::Triangle => triangle(x, y),
            Outline::Square => square(x, y, 0.72, 0.72),
            Outline::Star => star(x, y),
            Outline::Cross => square(x, y, 0.9, 0.27).min(square(x, y, 0.27, 0.9)),
            Outline::Crescent => (length(x + 0.12, y) - 0.88).max(0.68 - length(x - 0.32, y)),
            Outline::Heart => heart(x, y),
            Outline::Arrow => arrow(x, y),
            Outline::Ell => square(x + 0.4, y, 0.23, 0.85).min(square(x, y - 0.62, 0.63, 0.23)),
        }
    }
}

fn length(x: f32, y: f32) -> f32 {
    (x * x + y * y).sqrt()
}

/// 1 with the sign of `x`.
fn sign(x: f32) -> f32 {
    if x < 0.0 { -1.0 } else { 1.0 }
}

/// A rectangle by its half sides.
fn square(x: f32, y: f32, half_width: f32, half_height: f32) -> f32 {
    let (dx, dy) = (x.abs() - half_width, y.abs() - half_height);
    length(dx.max(0.0), dy.max(0.0)) + dx.max(dy).min(0.0)
}

fn triangle(x: f32, y: f32) -> f32 {
    const HALF: f32 = 0.85;
    const ROOT3: f32 = 1.732_050_8;
    let mut x = x.abs() - HALF;
    let mut y = -y + HALF / ROOT3;
    if x + ROOT3 * y > 0.0 {
        (x, y) = ((x - ROOT3 * y) * 0.5, (-ROOT3 * x - y) * 0.5);
    }
    x -= x.clamp(-2.0 * HALF, 0.0);
    -length(x, y) * sign(y)
}

fn star(x: f32, y: f32) -> f32 {
    const RADIUS: f32 = 0.98;
    const INNER: f32 = 0.45;
    const COS: f32 = 0.809_017;
    const SIN: f32 = 0.587_785_25;
    let (mut x, mut y) = (x.abs(), -y);
    let side = 2.0 * (COS * x - SIN * y).max(0.0);
    (x, y) = (x - side * COS, y + side * SIN);
    let side = 2.0 * (-COS * x - SIN * y).max(0.0);
    (x, y) = ((x + side * COS).abs(), y + side * SIN - RADIUS);
    let (bx, by) = (INNER * SIN, INNER * COS - 1.0);
    let along = ((x * bx + y * by) / (bx * bx + by * by)).clamp(0.0, RADIUS);
    length(x - bx * along, y - by * along) * sign(y * bx - x * by)
}

fn heart(x: f32, y: f32) -> f32 {
    const SCALE: f32 = 0.62;
    let (x, y) = (x.abs() * SCALE, 0.55 - y * SCALE);
    let distance = if x + y > 1.0 {
        length(x - 0.25, y - 0.75) - 0.353_553_4
    } else {
        let along = 0.5 * (x + y).max(0.0);
        length(x, y - 1.0).min(length(x - along, y - along)) * sign(x - y)
    };
    distance / SCALE
}

fn arrow(x: f32, y: f32) -> f32 {
    let shaft = square(x + 0.4, y, 0.5, 0.2);
    // The head is where it is right of its base and inside its two slanted sides.
    let slanted = ((x - 0.92) * 0.65 + y.abs() * 0.87) / 1.086;
    shaft.min(slanted.max(-x))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(outline: Outline) -> f32 {
        let inside = (0..200 * 200)
            .map(|i| ((i % 200) as f32 / 100.0 - 0.995, (i / 200) as f32 / 100.0 - 0.995))
            .filter(|&(x, y)| outline.distance(x, y) < 0.0);
        inside.count() as f32 / 10_000.0
    }

    #[test]
    fn every_outline_is_large_and_stays_in_its_frame() {
        for outline in Outline::ALL {
            let area = area(outline);
            assert!((0.7..2.4).contains(&area), "{}: {area}", outline.name());
            for i in 0..=100 {
                let t = i as f32 / 50.0 - 1.0;
                for (x, y) in [(t, 1.02), (t, -1.02), (1.02, t), (-1.02, t)] {
                    assert!(outline.distance(x, y) > 0.0, "{} at {x}, {y}", outline.name());
                }
            }
        }
    }

    /// A distance never changes faster than one moves; a wrong fold or sign would jump.
    #[test]
    fn distances_are_continuous() {
        for outline in Outline::ALL {
            for i in 0..100 {
                for j in 0..100 {
                    let (x, y) = (i as f32 / 50.0 - 1.0, j as f32 / 50.0 - 1.0);
                    let here = outline.distance(x, y);
                    for there in [outline.distance(x + 0.01, y), outline.distance(x, y + 0.01)] {
                        assert!((here - there).abs() < 0.0101, "{} at {x}, {y}", outline.name());
                    }
                }
            }
        }
    }
}
