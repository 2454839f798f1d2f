//! A small index with everything in it, and a small model: what tests damage, and `crates/fuzzing`
//! mutates.

use std::path::Path;

use anchorhood_storage::random::{Draws, Stream};
use anchorhood_train::{InputForm, NetworkConfig, Preset, Tensor, judged_graph};

use crate::{IndexParts, IndexedFolder, Lists, Model, PictureIndex, Thumbnails};

/// A network that nobody trained, of pictures of 8×8.
pub fn small_model() -> Model {
    let network = NetworkConfig { width: 2, features: 4, ..Preset::Quick.config("shapes").network };
    let input = InputForm {
        version: InputForm::VERSION,
        size: 8,
        mean: [0.1, 0.2, 0.3],
        std: [0.4, 0.5, 0.6],
    };
    drawn_model(network, input, "fc")
}

/// Any network that nobody trained, judged by a layer.
pub fn drawn_model(network: NetworkConfig, input: InputForm, judged: &str) -> Model {
    let graph = network.graph(input.size);
    let graph = graph.and_then(|whole| judged_graph(&whole, judged));
    let graph = graph.expect("such a network there is");
    let weights = graph.parameters().iter().enumerate().map(|(i, p)| {
        let draws = Draws::new(0, Stream::Test, i as u64, 0);
        let count = p.shape.iter().product::<usize>();
        // Of either sign, and smaller the more are summed up; statistics and the like are positive.
        let fan = p.shape.iter().skip(1).product::<usize>() as f32;
        let value = |j: usize| match draws.word(j as u64) as f32 / 2_f32.powi(32) {
            part if p.shape.len() > 1 => (part - 0.5) * (12.0 / fan).sqrt(),
            part => part / 2.0 + 0.5,
        };
        Tensor {
            name: p.name.clone(),
            shape: p.shape.clone(),
            values: (0..count).map(value).collect(),
        }
    });
    let weights = weights.collect();
    Model::of(Path::new("small"), network, input, graph, weights)
}

/// Its parts.
pub fn small_index() -> IndexParts {
    let mut thumbnails = Thumbnails::default();
    thumbnails.push(b"jpeg");
    thumbnails.push(b"");
    thumbnails.push(b"another");
    IndexParts {
        model: "0123".into(),
        layer: Some("conv5".into()),
        folders: vec![IndexedFolder::alone("/somewhere/pictures")],
        preprocessing: Some(InputForm {
            version: anchorhood_data::PREPROCESSING,
            size: 32,
            mean: [0.1, 0.2, 0.3],
            std: [0.4, 0.5, 0.6],
        }),
        model_path: Some("/somewhere/runs/mine".into()),
        stamps: Some(vec![1, 1 << 63, 0]),
        content_sums: Some(vec![u64::MAX, 0, 7]),
        sizes: Some(vec![[600, 800], [0, 0], [1, 70_000]]),
        names: ["a.png", "ü/b\n.jpg", "日本.gif"].map(String::from).into(),
        classes: vec![Some("x".into()), None, Some("a".into())],
        dim: 2,
        vectors: vec![1.0, 0.0, 0.6, 0.8, 0.0, -1.0].into(),
        thumbnails: Some(thumbnails),
        lists: Some((
            Lists {
                centres: vec![1.0, 0.0, 0.0, -1.0],
                starts: vec![0, 2, 3],
                members: vec![0, 1, 2],
            },
            0.975,
        )),
    }
}

/// The same of two folders.
pub fn small_index_of_two() -> IndexParts {
    let folder = |label: &str, path: &str| IndexedFolder {
        label: label.into(),
        ..IndexedFolder::alone(path)
    };
    let names = ["a/1.png", "b/1.png", "b/in/2.png"];
    IndexParts {
        folders: vec![folder("a", "/x/a"), folder("b", "/y/b")],
        names: names.map(String::from).into(),
        ..small_index()
    }
}

/// An index of images in a folder, each with a vector of equal length and perhaps a label.
pub fn index_of(
    folder: &Path,
    names: &[impl ToString],
    labels: &[Option<&str>],
    vectors: Vec<f32>,
) -> PictureIndex {
    let label = |i| labels.get(i).copied().flatten().map(String::from);
    let parts = IndexParts {
        folders: vec![IndexedFolder::alone(folder)],
        names: names.iter().map(|name| name.to_string()).collect(),
        classes: (0..names.len()).map(label).collect(),
        dim: vectors.len() / names.len(),
        vectors: vectors.into(),
        ..IndexParts::default()
    };
    PictureIndex::from_parts(Path::new("test.index"), parts).expect("such an index there is")
}
