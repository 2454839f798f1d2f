//! Which other programs can go on with it?
//!
//! [`Exported`] is a model for them; [`onnx_model`] writes a network as ONNX, for any runtime;
//! [`torchvision_weights`] writes its weights as PyTorch loads them, [`timm_config`] what timm
//! wants to know beside them. [`TableWriter`] writes vectors of pictures as Parquet, NumPy, CSV or
//! JSON lines, [`save_folder_table`] those of a whole folder.

#![forbid(unsafe_code)]

mod error;
mod exported;
mod folder_table;
mod onnx;
mod table;
mod weights;

pub use error::ExportError;
pub use exported::Exported;
pub use folder_table::{npy_names_file, save_folder_table};
pub use onnx::{OPSET, onnx_model};
pub use table::{TableFormat, TableInfo, TableWriter, write_npy_names};
pub use weights::{NamedTensor, Preprocessing, timm_config, torchvision_weights};
