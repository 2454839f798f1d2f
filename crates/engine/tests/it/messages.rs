//! A graph that cannot be says which layer and which shapes.

use anchorhood_engine::{
    Activation, ConvSpec, Device, Error, Fits, Graph, NetworkOptions, NodeId, Precision, Window,
};

use crate::common::graphs::Build;

fn begun() -> (Graph, NodeId) {
    let mut g = Graph::new();
    let x = g.input(8, 6, 3);
    (g, x)
}

#[track_caller]
fn says<T>(result: Result<T, Error>, parts: &[&str]) {
    let message = result.err().expect("an error").to_string();
    for part in parts {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
}

#[test]
fn what_does_not_fit_is_named() {
    const FRACTION: &[&str] = &["f: ", "not between 0 and 1"];
    const CHANNELS: &[&str] = &["c: expected channels"];
    let cases: [(Build, &[&str]); 15] = [
        // A window larger than the picture.
        (
            |g, x| g.conv("layer1.0.conv1", x, ConvSpec::square(4, 9, 1, 0)),
            &["layer1.0.conv1", "9×9", "8×6×3"],
        ),
        (|g, x| g.conv("conv1", x, ConvSpec::square(4, 3, 0, 1)), &["conv1", "stride"]),
        // A residual of another shape, and a sum of two.
        (
            |g, x| g.conv_norm("conv1", "bn1", x, ConvSpec::square(4, 3, 1, 1), true, Some(x)),
            &["conv1", "8×6×4", "8×6×3"],
        ),
        (
            |g, x| {
                let y = g.conv("conv1", x, ConvSpec::square(3, 3, 2, 1))?;
                g.add("sum", x, y)
            },
            &["sum", "8×6×3", "4×3×3"],
        ),
        // A pool of padding.
        (|g, x| g.max_pool("pool", x, Window::square(2, 1, 2)), &["pool", "8×6×3", "half"]),
        (|g, x| g.linear("fc", x, 4, true), &["fc", "one place", "8×6×3"]),
        (|g, x| g.dropout("drop", x, 1.0), &["drop", "1"]),
        // A leak that is none.
        (|g, x| g.activation("f", x, Activation::LeakyRelu(0.0)), FRACTION),
        (|g, x| g.activation("f", x, Activation::LeakyRelu(1.0)), FRACTION),
        (|g, x| g.activation("f", x, Activation::LeakyRelu(-0.1)), FRACTION),
        (|g, x| g.activation("f", x, Activation::LeakyRelu(f32::NAN)), FRACTION),
        // Channels that are not there, and colours that are none.
        (|g, x| g.channels("c", x, 3, 1), CHANNELS),
        (|g, x| g.channels("c", x, -2, 2), CHANNELS),
        (|g, x| g.channels("c", x, 0, 0), CHANNELS),
        (
            |g, x| {
                let two = g.channels("two", x, 0, 2)?;
                g.lab("lab", two)
            },
            &["lab", "red, green and blue"],
        ),
    ];
    for (layer, parts) in cases {
        let (mut g, x) = begun();
        says(layer(&mut g, x), parts);
    }
}

#[test]
fn names_are_taken_once_and_listed_where_one_is_unknown() {
    let (mut g, x) = begun();
    g.relu("relu1", x).unwrap();
    says(g.relu("relu1", x), &["relu1", "exists"]);
    g.tap("conv1", x);
    says(g.find("conv2"), &["conv2", "conv1", "relu1"]);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_full_cuda_device_says_what_would_fit() {
    let cuda = Device::cuda(0, Precision::Tf32).unwrap();
    let mut g = Graph::new();
    let x = g.input(256, 256, 64);
    let x = g.batch_norm("bn", x).unwrap();
    let x = g.relu("relu", x).unwrap();
    g.global_avg_pool("pool", x).unwrap();
    let batch = 1_000_000;
    match cuda.network(&g, &NetworkOptions::new(batch)).err() {
        Some(Error::Memory { what, fits: Some(Fits::Batch { pictures, halved }), .. }) => {
            assert_eq!(what, "activations of 1000000 pictures");
            assert!((1..batch).contains(&pictures), "{pictures}");
            assert!(halved, "bf16 would take half of it");
        }
        other => panic!("{other:?}"),
    }
}
