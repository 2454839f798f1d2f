//! Files of `torch.save` (PyTorch 2, made by `tools/golden/torch_files.py`) are read as data.
//! `crates/fuzzing` damages them.

use std::path::{Path, PathBuf};

use anchorhood_models::{Weights, WeightsError};

fn fixture(name: &str) -> PathBuf {
    Path::new("tests/fixtures").join(name)
}

fn values(weights: &Weights, name: &str) -> Vec<f32> {
    weights.values(name).unwrap().to_vec()
}

#[test]
fn tensors_are_what_pytorch_wrote() {
    for name in ["state_dict.pth", "checkpoint.pth"] {
        let weights = Weights::read(&fixture(name)).unwrap();
        assert_eq!(weights.shape("a.weight"), Some(&[2, 2][..]));
        assert_eq!(values(&weights, "a.weight"), [1.5, -2.0, 0.25, 3.0]);
        assert_eq!(values(&weights, "a.half"), [1.0, 0.5]);
        assert_eq!(values(&weights, "a.bf16"), [1.0, -0.5]);
        assert_eq!(values(&weights, "view"), [2.0, 3.0, 4.0]);
        assert_eq!(weights.shape("one"), Some(&[3, 1][..]));
        assert_eq!(weights.shape("a.num_batches_tracked"), None);
    }
}

fn refused(name: &str) -> String {
    let error = Weights::read(&fixture(name)).unwrap_err();
    assert!(matches!(error, WeightsError::BadFile { .. }), "{error}");
    error.to_string()
}

#[test]
fn what_is_not_in_order_is_named() {
    let said = refused("transposed.pth");
    assert!(said.contains("t: its numbers are not one after the other"), "{said}");
}

#[test]
fn nothing_is_called() {
    let said = refused("calls.pth");
    assert!(said.contains("system, which is refused"), "{said}");
}
