//! One picture: a pattern of copies of one shape, its colours, the texture behind it, drawn into
//! bytes.
//!
//! Block by block of a picture's own random words, so a picture depends on nothing but its seed and
//! number.

use anchorhood_storage::random::Draws;

use super::outline::Outline;

/// First of the blocks that hold pixel noise; those before it describe the scene.
const NOISE_BLOCK: u32 = 16;
/// Pixels of a row handled together.
const RUN: usize = 32;
/// The greatest change of a channel by noise, of 1.
const NOISE: f32 = 0.03;
/// Half the distance from one copy of the shape to the next, in radii: copies never touch.
const PITCH: f32 = 1.1;

/// What lies behind the shape.
#[derive(Clone, Copy)]
enum Texture {
    Gradient,
    Stripes,
    Checks,
    Blobs,
}

/// Everything about a picture but its pixel noise. Coordinates reach from −1 to 1 in both
/// directions.
pub(super) struct Scene {
    pub outline: Outline,
    centre: (f32, f32),
    radius: f32,
    /// Cosine and sine of the shape's turn.
    turn: (f32, f32),
    texture: Texture,
    /// Cosine and sine of the texture's turn, each times its frequency.
    grain: (f32, f32),
    shift: f32,
    /// Heights of the 5×5 corners between which blobs are interpolated.
    corners: [f32; 25],
    back: [[f32; 3]; 2],
    fore: [f32; 3],
}

fn between(low: f32, high: f32, u: f32) -> f32 {
    low + u * (high - low)
}

/// Which of `n` equal parts of [0, 1) `u` falls in.
fn pick(n: usize, u: f32) -> usize {
    ((u * n as f32) as usize).min(n - 1)
}

/// Cosine and sine of 2·atan(t), without trigonometry: the same on every machine.
fn turned(t: f32) -> (f32, f32) {
    let d = 1.0 + t * t;
    ((1.0 - t * t) / d, 2.0 * t / d)
}

/// A colour of about this brightness, with a tint.
fn colour(luma: f32, red: f32, blue: f32) -> [f32; 3] {
    [luma + red, luma - 0.5 * red - 0.2 * blue, luma + blue].map(|v| v.clamp(0.02, 0.98))
}

impl Scene {
    pub fn draw(draws: &Draws) -> Self {
        let [class, angle, radius, texture] = draws.units(0);
        let [x, y, grain_angle, frequency] = draws.units(1);
        let [luma, contrast, side, step] = draws.units(2);
        let [red, blue, red_step, blue_step] = draws.units(3);
        let [fore_red, fore_blue, shift, _] = draws.units(4);
        let mut corners = [0.0; 25];
        for (chunk, block) in corners.chunks_mut(4).zip(5..) {
            chunk.copy_from_slice(&draws.units(block)[..chunk.len()]);
        }
        let radius = between(0.33, 0.5, radius);
        let room = PITCH * radius;
        let luma = between(0.15, 0.4, luma);
        let contrast = between(0.4, 0.5, contrast);
        let (luma, fore_luma) =
            if side < 0.5 { (luma, luma + contrast) } else { (1.0 - luma, 1.0 - luma - contrast) };
        let grain = turned(between(-1.0, 1.0, grain_angle));
        let frequency = between(1.5, 4.0, frequency);
        Scene {
            outline: Outline::ALL[pick(Outline::ALL.len(), class)],
            centre: (between(-room, room, x), between(-room, room, y)),
            radius,
            turn: turned(between(-1.0, 1.0, angle)),
            texture: [Texture::Gradient, Texture::Stripes, Texture::Checks, Texture::Blobs]
                [pick(4, texture)],
            grain: (grain.0 * frequency, grain.1 * frequency),
            shift: shift * 2.0,
            corners,
            back: [
                colour(luma, between(-0.12, 0.12, red), between(-0.12, 0.12, blue)),
                colour(
                    luma + between(-0.06, 0.06, step),
                    between(-0.12, 0.12, red) + between(-0.06, 0.06, red_step),
                    between(-0.12, 0.12, blue) + between(-0.06, 0.06, blue_step),
                ),
            ],
            fore: colour(fore_luma, between(-0.3, 0.3, fore_red), between(-0.3, 0.3, fore_blue)),
        }
    }

    /// Fills `out` (`size`×`size`×3) with the picture.
    pub fn paint(&self, draws: &Draws, size: usize, out: &mut [u8]) {
        let pixel = 2.0 / size as f32;
        let mut block = NOISE_BLOCK;
        for (row, line) in out.chunks_exact_mut(size * 3).enumerate() {
            let y = (row as f32 + 0.5) * pixel - 1.0;
            for (part, out) in line.chunks_mut(RUN * 3).enumerate() {
                let start = (part * RUN) as f32 + 0.5;
                let x: [f32; RUN] = std::array::from_fn(|i| (start + i as f32) * pixel - 1.0);
                let cover = self.cover(&x, y, pixel);
                let behind = self.behind(&x, y);
                let noise = noise(draws, &mut block);
                let mut values = [0.0; RUN * 3];
                for i in 0..RUN {
                    for c in 0..3 {
                        let back =
                            self.back[0][c] + behind[i] * (self.back[1][c] - self.back[0][c]);
                        values[i * 3 + c] = back + cover[i] * (self.fore[c] - back);
                    }
                }
                for ((out, value), noise) in out.iter_mut().zip(values).zip(noise) {
                    *out = byte(value + noise * NOISE);
                }
            }
        }
    }

    /// Which share of each pixel of a run the shape covers.
    fn cover(&self, x: &[f32; RUN], y: f32, pixel: f32) -> [f32; RUN] {
        let inverse = 1.0 / self.radius;
        let dy = (y - self.centre.1) * inverse;
        let (mut u, mut v, mut distance) = ([0.0; RUN], [0.0; RUN], [0.0; RUN]);
        for i in 0..RUN {
            let dx = (x[i] - self.centre.0) * inverse;
            u[i] = nearest_copy(self.turn.0 * dx + self.turn.1 * dy);
            v[i] = nearest_copy(self.turn.0 * dy - self.turn.1 * dx);
        }
        self.outline.distances(&u, &v, &mut distance);
        let scale = self.radius / pixel;
        distance.map(|d| (0.5 - d * scale).clamp(0.0, 1.0))
    }

    /// The texture's place between its two colours at each pixel of a run, in [0, 1].
    fn behind(&self, x: &[f32; RUN], y: f32) -> [f32; RUN] {
        let along = |x: f32| x * self.grain.0 + y * self.grain.1;
        let across = |x: f32| y * self.grain.0 - x * self.grain.1;
        match self.texture {
            Texture::Gradient => x.map(|x| (0.5 + 0.12 * along(x)).clamp(0.0, 1.0)),
            Texture::Stripes => x.map(|x| edge(wave(along(x) + self.shift))),
            Texture::Checks => x.map(|x| {
                let (a, b) = (wave(along(x) + self.shift), wave(across(x) + self.shift));
                edge(a * b + (1.0 - a) * (1.0 - b))
            }),
            Texture::Blobs => x.map(|x| self.blob(x, y)),
        }
    }

    fn blob(&self, x: f32, y: f32) -> f32 {
        let (gx, gy) = ((x + 1.0) * 2.0, (y + 1.0) * 2.0);
        let (column, row) = ((gx as usize).min(3), (gy as usize).min(3));
        let (fx, fy) = (smooth(gx - column as f32), smooth(gy - row as f32));
        let at = |r: usize, c: usize| self.corners[r * 5 + c];
        let top = between(at(row, column), at(row, column + 1), fx);
        let bottom = between(at(row + 1, column), at(row + 1, column + 1), fx);
        between(top, bottom, fy)
    }
}

/// A coordinate measured from the nearest copy's centre.
fn nearest_copy(x: f32) -> f32 {
    // Rounds to nearest by dropping the fraction of a number made positive; frames are a few copies
    // wide.
    let copies = (x * (0.5 / PITCH) + 64.5) as i32 - 64;
    x - copies as f32 * (2.0 * PITCH)
}

/// A triangle wave of period 2 between 0 and 1.
fn wave(x: f32) -> f32 {
    // `as i32` drops the fraction; arguments stay far inside its range, and are made positive
    // first.
    let x = x + 16.0;
    let part = x - ((x * 0.5) as i32 * 2) as f32;
    (part - 1.0).abs()
}

/// Steepens the middle of [0, 1].
fn edge(x: f32) -> f32 {
    ((x - 0.5) * 3.0 + 0.5).clamp(0.0, 1.0)
}

fn smooth(x: f32) -> f32 {
    x * x * (3.0 - 2.0 * x)
}

/// Numbers in [−1, 1) for the channels of a run, sixteen from a block of random words.
fn noise(draws: &Draws, block: &mut u32) -> [f32; RUN * 3] {
    let mut numbers = [0.0; RUN * 3];
    for numbers in numbers.chunks_exact_mut(16) {
        for (numbers, word) in numbers.chunks_exact_mut(4).zip(draws.block(*block)) {
            for (number, byte) in numbers.iter_mut().zip(word.to_le_bytes()) {
                *number = f32::from(byte) * (1.0 / 128.0) - 1.0;
            }
        }
        *block += 1;
    }
    numbers
}

/// From [0, 1] to a byte, rounded. Through i32, since a direct cast to u8 does not vectorise.
fn byte(value: f32) -> u8 {
    (value * 255.0 + 0.5).clamp(0.0, 255.0) as i32 as u8
}
