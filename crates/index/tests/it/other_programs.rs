//! Weights of other programs are models: recognised by their tensors, and seen as they expect
//! pictures.

use std::path::Path;

use anchorhood_data::Pictures;
use anchorhood_engine::{Device, Network, NetworkOptions};
use anchorhood_index::{Checked, Model, SearchError};
use anchorhood_models::{RESNET18, Weights};
use anchorhood_train::{CheckpointError, IMAGENET, judged_graph};
use safetensors::SafeTensors;

/// A ResNet18 with a last layer of seven values, as its seed draws it.
fn network() -> Network {
    let graph = RESNET18.graph(32, 2, 7).unwrap();
    let mut network = Device::cpu(1).network(&graph, &NetworkOptions::new(1)).unwrap();
    network.initialise(3).unwrap();
    network
}

fn written(bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.safetensors");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn refused(path: &Path) -> String {
    Model::load(path).err().unwrap().to_string()
}

#[test]
fn weights_are_recognised_and_embed() {
    let device = Device::cpu(1);
    let (_folder, path) = written(&Weights::of(&network()).unwrap().encode());
    let model = Model::load(&path).unwrap();
    let found = model.network().unwrap();
    assert_eq!(found.architecture, &RESNET18);
    assert_eq!((found.width, found.features), (2, 16));
    assert_eq!((model.input().size, model.input().mean), (32, IMAGENET.0));
    let pixels: Vec<u8> = (0..32 * 32 * 3).map(|i| (i * 7 % 251) as u8).collect();
    let pictures = Pictures::new(32, 32, pixels.clone()).unwrap();
    let vectors = model.embed(&device, &pictures).unwrap();

    let graph = judged_graph(network().graph(), "avgpool").unwrap();
    let mut judged = device.network(&graph, &NetworkOptions::new(1)).unwrap();
    judged.initialise(3).unwrap();
    let (mean, std) = IMAGENET;
    let seen = |(i, p): (usize, &u8)| (f32::from(*p) / 255.0 - mean[i % 3]) / std[i % 3];
    let seen: Vec<f32> = pixels.iter().enumerate().map(seen).collect();
    let mut expected = vec![0.0; 16];
    judged.infer(&seen, &mut expected).unwrap();
    for (got, expected) in vectors.row(0).iter().zip(&expected) {
        assert!((got - expected).abs() < 1e-5, "{got} {expected}");
    }
}

/// The same tensors without checksums: of another program they are weights, whose damage would go
/// unnoticed; of this program a file of another version.
#[test]
fn files_of_this_program_without_checksums_are_no_weights_of_another() {
    let theirs = Weights::of(&network()).unwrap().encode();
    let tensors = SafeTensors::deserialize(&theirs).unwrap();
    let of = |format: &str| {
        let fields = [("format", format), ("version", "1")].map(|(k, v)| (k.into(), v.into()));
        let bytes = safetensors::serialize(tensors.tensors(), Some(fields.into())).unwrap();
        let (_folder, path) = written(&bytes);
        Model::load(path).map(|model| model.checked())
    };
    assert_eq!(of("pt").unwrap(), Checked::CannotBeChecked);
    for format in ["anchorhood-checkpoint", "anchorhood-index", "anchorhood-model"] {
        let said = of(format).unwrap_err();
        assert!(
            matches!(said, SearchError::Checkpoint(CheckpointError::Mismatch { .. })),
            "{said}"
        );
        assert!(said.to_string().contains("format version 1"), "{said}");
    }
}

#[test]
fn what_is_no_model_says_why() {
    let (_folder, path) = written(b"neither");
    assert!(refused(&path).contains("theirs.safetensors"));
    let (_folder, path) = written(b"PK\x03\x04 but no archive");
    assert!(refused(&path).contains("cut off or damaged"), "{}", refused(&path));
    let (_folder, path) = written(&Weights::default().encode());
    assert!(refused(&path).contains("no conv1.weight"), "{}", refused(&path));
}
