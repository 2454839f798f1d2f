//! How images become squares, against Pillow by torchvision's rules. The values come from
//! tools/golden/resize.py.

use anchorhood_data::{Interpolation, Picture, Resize, Squaring};

#[derive(serde::Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    h: u32,
    w: u32,
    mode: String,
    side: usize,
    size: usize,
    filter: String,
    image: Vec<u8>,
    expected: Vec<u8>,
}

impl Case {
    fn squaring(&self) -> Squaring {
        Squaring {
            size: self.size,
            resize: match self.mode.as_str() {
                "shorter" => Resize::ShorterSide(self.side),
                "both" => Resize::BothSides(self.side),
                _ => Resize::CentreSquare,
            },
            interpolation: match self.filter.as_str() {
                "bicubic" => Interpolation::Bicubic,
                _ => Interpolation::Bilinear,
            },
        }
    }

    fn made(&self, by: Squaring) -> Vec<u8> {
        let picture = Picture::from_rgb(self.w, self.h, self.image.clone()).unwrap();
        let mut out = vec![0; by.bytes()];
        picture.square_by(by, &mut out).unwrap();
        out
    }
}

fn differences(a: &[u8], b: &[u8]) -> (u8, f64) {
    let each = || a.iter().zip(b).map(|(a, b)| a.abs_diff(*b));
    let mean = each().map(f64::from).sum::<f64>() / a.len() as f64;
    (each().max().unwrap(), mean)
}

/// Within two levels, and less than a third of one in the mean: weights are rounded in another way.
#[test]
fn squares_are_pillows() {
    let golden: Golden = serde_json::from_str(include_str!("../golden/resize.json")).unwrap();
    assert_eq!(golden.cases.len(), 36);
    for (number, case) in golden.cases.iter().enumerate() {
        let (worst, mean) = differences(&case.made(case.squaring()), &case.expected);
        assert!(worst <= 2 && mean < 0.3, "case {number}: {worst}, {mean}");
    }
}

/// The ways are told apart by far more than what separates each from Pillow.
#[test]
fn each_way_is_another() {
    let golden: Golden = serde_json::from_str(include_str!("../golden/resize.json")).unwrap();
    let case = &golden.cases[0];
    let (of, other) = (case.squaring(), Squaring::from(case.size));
    assert!(differences(&case.made(other), &case.expected).1 > 1.0);
    let bicubic = Squaring { interpolation: Interpolation::Bicubic, ..of };
    assert!(differences(&case.made(bicubic), &case.expected).1 > 0.4);
}

#[test]
fn what_is_cut_out_must_be_there() {
    let picture = Picture::from_rgb(9, 7, vec![5; 9 * 7 * 3]).unwrap();
    let by = Squaring { resize: Resize::ShorterSide(15), ..Squaring::from(16) };
    let mut out = vec![0; by.bytes()];
    assert!(picture.square_by(by, &mut out).is_err());
    assert!(picture.square_by(by, &mut []).is_err());
}
