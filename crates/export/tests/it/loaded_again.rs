//! What is exported is loaded here as the model that it was: the same size, mean, deviation, first
//! layers and judged layer, hence the same vectors.

use std::path::Path;

use anchorhood_data::Pictures;
use anchorhood_engine::Device;
use anchorhood_export::Exported;
use anchorhood_index::fuzzing::drawn_model;
use anchorhood_index::{Checked, Model, SearchError};
use anchorhood_models::{ALEXNET, Form, RESNET10, RESNET18, RESNET50, WeightsError};
use anchorhood_train::{ColoursChoice, InputForm, NetworkConfig, StemChoice};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

/// Every stem, by the size that it is for.
const STEMS: [(StemChoice, usize, Form); 3] = [
    (StemChoice::Auto, 40, Form::Small),
    (StemChoice::Fast, 56, Form::Medium),
    (StemChoice::Auto, 128, Form::Large),
];

fn network(stem: StemChoice, width: usize) -> NetworkConfig {
    NetworkConfig { architecture: &RESNET18, stem, colours: ColoursChoice::Rgb, width, features: 6 }
}

fn model(network: NetworkConfig, size: usize, judged: &str) -> Model {
    let input = InputForm {
        version: InputForm::VERSION,
        size,
        mean: [0.1, 0.2, 0.3],
        std: [0.4, 0.5, 0.6],
    };
    drawn_model(network, input, judged)
}

/// Of pictures of another size, so that resizing counts.
fn vectors(model: &Model) -> Vec<f32> {
    let bytes = (0..3 * 50 * 70 * 3).map(|i| ((i * 7919 + i / 97 * 31) % 251) as u8);
    let pictures = Pictures::new(50, 70, bytes.collect()).unwrap();
    let vectors = model.embed(&Device::cpu(2), &pictures).unwrap().values;
    assert!(vectors.iter().all(|v| v.is_finite()));
    vectors
}

fn is_the_same(loaded: &Model, model: &Model) {
    assert_eq!(loaded.fingerprint(), model.fingerprint());
    assert_eq!(loaded.input(), model.input());
    assert_eq!(loaded.learnt_size(), model.learnt_size());
    assert_eq!(loaded.network().unwrap(), model.network().unwrap());
    assert_eq!(loaded.checked(), Checked::Verified);
    assert_eq!(vectors(loaded), vectors(model));
}

fn written(model: &Model, path: &Path) {
    let bytes = Exported::of(model).unwrap().weights().unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn safetensors_of_every_stem() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.safetensors");
    for (stem, size, form) in STEMS {
        for judged in ["fc", "avgpool"] {
            let model = model(network(stem, 4), size, judged);
            assert_eq!(model.network().unwrap().form(size), form);
            written(&model, &path);
            is_the_same(&Model::load(&path).unwrap(), &model);
        }
    }
}

/// timm has networks of the published width alone.
#[test]
fn timm_folders_of_every_stem() {
    for (stem, size, _) in STEMS {
        let folder = tempfile::tempdir().unwrap();
        let model = model(network(stem, 64), size, "fc");
        let config = Exported::of(&model).unwrap().timm_config().unwrap();
        std::fs::write(folder.path().join("config.json"), config).unwrap();
        written(&model, &folder.path().join("model.safetensors"));
        is_the_same(&Model::load(folder.path()).unwrap(), &model);
    }
}

#[test]
fn other_networks_colours_and_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.safetensors");
    let of = |architecture, colours| NetworkConfig {
        architecture,
        colours,
        ..network(StemChoice::Auto, 4)
    };
    for network in [
        of(&ALEXNET, ColoursChoice::Rgb),
        of(&RESNET50, ColoursChoice::Rgb),
        of(&RESNET10, ColoursChoice::Split),
    ] {
        let model = model(network, 32, "fc");
        written(&model, &path);
        is_the_same(&Model::load(&path).unwrap(), &model);
    }
    let larger = model(network(StemChoice::Fast, 4), 56, "fc").at_size(80).unwrap();
    written(&larger, &path);
    is_the_same(&Model::load(&path).unwrap(), &larger);
}

/// bf16 is another model, whose vectors hardly differ; what is loaded is what was saved.
#[test]
fn bf16_of_every_stem() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| folder.path().join(name));
    for (stem, size, form) in STEMS {
        let model = model(network(stem, 4), size, "fc");
        model.save(&paths[0]).unwrap();
        let loaded = Model::load(&paths[0]).unwrap();
        assert_eq!(loaded.input(), model.input());
        assert_eq!(loaded.network().unwrap().form(size), form);
        let (a, b) = (vectors(&loaded), vectors(&model));
        for (a, b) in a.chunks_exact(6).zip(b.chunks_exact(6)) {
            let cosine: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
            assert!(cosine > 0.99, "{stem:?}: {cosine}");
        }
        loaded.save(&paths[1]).unwrap();
        is_the_same(&Model::load(&paths[1]).unwrap(), &loaded);
        // And as weights again.
        written(&loaded, &paths[1]);
        is_the_same(&Model::load(&paths[1]).unwrap(), &loaded);
    }
}

/// The file's bytes with other metadata.
fn with_notes(
    bytes: &[u8],
    change: impl Fn(&mut std::collections::HashMap<String, String>),
) -> Vec<u8> {
    let (_, header) = SafeTensors::read_metadata(bytes).unwrap();
    let mut notes = header.metadata().clone().unwrap();
    change(&mut notes);
    let file = SafeTensors::deserialize(bytes).unwrap();
    safetensors::serialize(file.tensors(), Some(notes)).unwrap()
}

#[test]
fn other_numbers_or_another_description_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.safetensors");
    let model = model(network(StemChoice::Fast, 4), 56, "fc");
    let bytes = Exported::of(&model).unwrap().weights().unwrap();
    let loaded = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Model::load(&path).map(|_| ()).unwrap_err()
    };
    let mut flipped = bytes.clone();
    *flipped.last_mut().unwrap() ^= 1;
    for wrong in [
        flipped,
        with_notes(&bytes, |notes| *notes.get_mut("anchorhood").unwrap() = "{}".into()),
        with_notes(&bytes, |notes| {
            let text = notes.get_mut("anchorhood").unwrap();
            *text = text.replace("\"size\":56", "\"size\":64");
        }),
        with_notes(&bytes, |notes| {
            let text = notes.get_mut("anchorhood").unwrap();
            *text = text.replace("\"bn1.weight\"", "\"bn1.bias\"");
        }),
    ] {
        let error = loaded(&wrong);
        assert!(matches!(error, SearchError::Failed(_)), "{error}");
    }
    // Of earlier versions, the first layers are a guess.
    let old = with_notes(&bytes, |notes| _ = notes.remove("anchorhood"));
    assert!(matches!(loaded(&old), SearchError::Impossible(_)));
}

/// Without metadata they are another program's.
#[test]
fn weights_of_other_programs_are_what_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.safetensors");
    let model = model(network(StemChoice::Auto, 4), 128, "fc");
    let bytes = Exported::of(&model).unwrap().weights().unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    std::fs::write(&path, safetensors::serialize(file.tensors(), None).unwrap()).unwrap();
    let loaded = Model::load(&path).unwrap();
    assert_eq!(loaded.input().size, 224);
    assert_eq!(loaded.checked(), Checked::CannotBeChecked);
    let none = TensorView::new(Dtype::F32, vec![1], &[0; 4]).unwrap();
    let bytes = safetensors::serialize([("x", none)], None).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let source = Model::load(&path).map(|_| ()).unwrap_err();
    assert!(matches!(source, SearchError::Weights { source: WeightsError::Unknown(_), .. }));
}
