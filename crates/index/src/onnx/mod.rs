//! How does a network of another program run?
//!
//! An [`Encoder`] is an ONNX file that makes vectors of pictures: DINOv2, CLIP's image tower,
//! MobileNet, EfficientNet, or what `anchorhood export --onnx` wrote. It is run by ONNX Runtime,
//! which is no part of this program: its library is [looked for](Runtime::find) when the first such
//! file is met.
//!
//! A file is [read](header) by ourselves first: what it takes, what it gives, and whether it asks
//! for more memory or time than a network of its size could. Only then is it given to the library,
//! which has a bounded store of memory. What is done to a picture is taken from the file or from
//! what lies [beside it](preprocessing).

mod api;
mod encoder;
mod functions;
mod header;
mod inputs;
pub mod messages;
mod outputs;
mod plain;
mod preprocessing;
mod runtime;
mod session;

pub use encoder::{Encoder, is_onnx};
pub use header::{External, Header, Value};
pub use inputs::{Layout, PictureInput};
pub use outputs::{Kind, VectorOutput};
pub use preprocessing::{CLIP, IMAGENET, MeanAndStd, Preprocessing, Source, Told, read_json};
pub use runtime::Runtime;
