//! Both augmentations against torchvision's, for fixed parameters. The values come from
//! tools/golden/augment.py.

use anchorhood_data::augment::{AugmentParams, apply, naive};

#[derive(serde::Deserialize)]
struct Golden {
    mean: [f32; 3],
    std: [f32; 3],
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    h: usize,
    w: usize,
    picture: Vec<u8>,
    #[serde(flatten, with = "Params")]
    params: AugmentParams,
    expected: Vec<f32>,
}

#[derive(serde::Deserialize)]
#[serde(remote = "AugmentParams")]
struct Params {
    top: u32,
    left: u32,
    height: u32,
    width: u32,
    brightness: f32,
    contrast: f32,
    saturation: f32,
    hue: f32,
    order: u32,
    grey: u32,
    flip: u32,
    #[serde(default)]
    blur: f32,
    #[serde(default)]
    solarise: u32,
}

#[test]
fn both_agree_with_torchvision() {
    let golden: Golden = serde_json::from_str(include_str!("../golden/augment.json")).unwrap();
    assert_eq!(golden.cases.len(), 57);
    let mut worst = 0.0_f32;
    for (number, case) in golden.cases.iter().enumerate() {
        let mut fast = vec![0.0; case.expected.len()];
        let mut slow = fast.clone();
        let (mean, std) = (golden.mean, golden.std);
        let size = [case.h, case.w];
        apply(&case.picture, size, size, &case.params, mean, std, &mut fast);
        naive::apply(&case.picture, size, size, &case.params, mean, std, &mut slow);
        for ((fast, slow), expected) in fast.iter().zip(&slow).zip(&case.expected) {
            let error = (fast - expected).abs().max((slow - expected).abs());
            assert!(error < 2e-5, "case {number}: {fast}, {slow}, torchvision {expected}");
            worst = worst.max(error);
        }
    }
    println!("largest difference: {worst:e}");
}
