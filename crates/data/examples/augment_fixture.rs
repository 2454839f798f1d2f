//! Writes what the CUDA kernel of the augmentation must give, computed on the CPU, for
//! `tools/check_kernels.py`.
//!
//! `cargo run -p anchorhood-data --example augment_fixture -- FOLDER` writes one file per case,
//! little-endian words: pictures, batch, step, epoch, height, width, channels, view (8), the
//! kernel's words (31), the order, the pictures' bytes (padded to whole words), 13 words of
//! parameters a picture, and the expected f32 values.

use anchorhood_data::augment::{kernel::AugmentKernel, view_draws};
use anchorhood_data::{AugmentParams, Augmentation, augment};
use anchorhood_storage::random::{Draws, Stream};

const MEAN: [f32; 3] = [0.4914, 0.4822, 0.4465];
const STD: [f32; 3] = [0.2023, 0.1994, 0.2010];

struct Case {
    name: &'static str,
    how: Augmentation,
    size: (usize, usize),
    pictures: usize,
    batch: usize,
    step: usize,
    epoch: u64,
    channels: u32,
    view: u32,
}

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    std::fs::create_dir_all(&folder)?;
    let usual = Augmentation { flip: 0.5, ..Augmentation::default() };
    let strip = Augmentation {
        crop_scale: (1.0, 1.0), // never fits: the centre is taken
        ..usual
    };
    let case = |name, how, size, channels| Case {
        name,
        how,
        size,
        pictures: 300,
        batch: 128,
        step: 1,
        epoch: 3,
        channels,
        view: 0,
    };
    // As a second view of several methods.
    let second = Augmentation { jitter: 0.8, blur: 0.5, solarise: 0.2, ..usual };
    let blurred = Augmentation { blur: 1.0, ..second };
    let wide = Augmentation { blur_sigma: (0.1, 10.0), ..blurred };
    let of_view = |view, case: Case| Case { view, ..case };
    let few = |pictures, case: Case| Case { pictures, batch: pictures / 2, ..case };
    let cases = [
        case("usual", usual, (32, 32), 3),
        case("none", Augmentation::none(), (32, 32), 3),
        case("strip", strip, (10, 33), 3),
        case("odd", blurred, (3, 2), 3),
        case("line", blurred, (1, 9), 3),
        of_view(1, case("second", second, (32, 32), 3)),
        of_view(2, case("third", usual, (32, 32), 3)),
        few(32, of_view(1, case("medium", blurred, (100, 75), 4))),
        few(8, case("large", usual, (224, 160), 4)),
        few(8, case("large_blurred", wide, (224, 260), 4)),
        few(4, of_view(1, case("huge", wide, (640, 660), 3))),
    ];
    for case in cases {
        std::fs::write(format!("{folder}/{}.bin", case.name), words(&case))?;
    }
    Ok(())
}

fn words(case: &Case) -> Vec<u8> {
    let (h, w) = case.size;
    let kernel = AugmentKernel {
        how: case.how,
        height: h as u32,
        width: w as u32,
        channels: case.channels,
        bf16: false,
        ring: 0,
        slot: 0,
        seed: 0x1234_5678_9abc_def0,
        mean: MEAN,
        std: STD,
    };
    let order = Draws::new(kernel.seed, Stream::Order, case.epoch, 0).permutation(case.pictures);
    let noise = Draws::new(1, Stream::Test, 0, 0);
    let len = case.pictures * h * w * 3;
    let mut bytes: Vec<u8> = (0..len.div_ceil(16) as u32)
        .flat_map(|b| noise.block(b))
        .flat_map(u32::to_le_bytes)
        .collect();
    // Every other picture of few colours, so that greys and ties between channels are common.
    for (i, value) in bytes.iter_mut().enumerate() {
        if i / (h * w * 3) % 2 == 1 {
            *value = *value / 86 * 127;
        }
    }
    let sizes = [case.pictures, case.batch, case.step, case.epoch as usize];
    let mut out: Vec<u32> = sizes.map(|v| v as u32).to_vec();
    out.extend([h as u32, w as u32, case.channels, case.view]);
    out.extend(kernel.words());
    out.extend(&order);
    out.extend(
        bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().expect("four bytes"))),
    );
    let mut values = vec![];
    for index in &order[case.step * case.batch..][..case.batch] {
        let draws = view_draws(kernel.seed, case.epoch, *index, case.view);
        let p = AugmentParams::draw(&case.how, h, w, &draws);
        out.extend([p.top, p.left, p.height, p.width]);
        out.extend([p.brightness, p.contrast, p.saturation, p.hue].map(f32::to_bits));
        out.extend([p.order, p.grey, p.flip, p.blur.to_bits(), p.solarise]);
        let mut seen = vec![0.0; h * w * 3];
        let picture = &bytes[*index as usize * h * w * 3..][..h * w * 3];
        augment(picture, [h, w], [h, w], &case.how, &draws, MEAN, STD, &mut seen);
        for pixel in seen.chunks_exact(3) {
            values.extend(pixel);
            values.extend(std::iter::repeat_n(0.0, case.channels as usize - 3));
        }
    }
    out.extend(values.into_iter().map(f32::to_bits));
    out.into_iter().flat_map(u32::to_le_bytes).collect()
}
