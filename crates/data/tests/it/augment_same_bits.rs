//! The first view of the settings without blur and solarise: the same bits in every version, so
//! that runs can be repeated.
//!
//! The hashes were made by the version that knew one view only.

use anchorhood_data::{Augmentation, augment};
use anchorhood_storage::random::{Draws, Stream};

const MEAN: [f32; 3] = [0.4914, 0.4822, 0.4465];
const STD: [f32; 3] = [0.2023, 0.1994, 0.2010];

/// FNV-1a of the bits of 40 augmented pictures of noise.
fn hash(how: &Augmentation, h: usize, w: usize) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut out = vec![0.0; h * w * 3];
    for item in 0..40 {
        let noise = Draws::new(11, Stream::Test, 0, item);
        let picture: Vec<u8> = (0..h * w * 3).map(|i| noise.word(i as u64) as u8).collect();
        let draws = Draws::new(5 << 32 | 3, Stream::Augment, 1000 + item / 20, item);
        augment(&picture, [h, w], [h, w], how, &draws, MEAN, STD, &mut out);
        for byte in out.iter().flat_map(|v| v.to_bits().to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

#[test]
fn the_first_view_has_the_bits_it_always_had() {
    let usual = Augmentation::default();
    let flipped = Augmentation { flip: 0.5, ..usual };
    let strip = Augmentation { crop_scale: (1.0, 1.0), ..flipped };
    let cases = [
        (usual, 32, 32),
        (flipped, 32, 32),
        (flipped, 40, 24),
        (strip, 10, 33),
        (Augmentation::none(), 32, 32),
    ];
    let hashes = cases.map(|(how, h, w)| hash(&how, h, w));
    assert_eq!(hashes, KNOWN, "{hashes:#x?}");
}

const KNOWN: [u64; 5] = [
    0x9faf_5343_44c1_de08,
    0xa8dd_4a17_b71b_f24c,
    0x5386_ce8a_4934_14db,
    0x46ed_afaa_fd2d_2851,
    0xd67d_68c6_968b_2191,
];
