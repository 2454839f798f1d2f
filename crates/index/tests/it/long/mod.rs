//! What needs other programs: `cargo test -- --ignored long::`.

mod onnx_agrees;
