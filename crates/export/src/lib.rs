//! Which other programs can go on with it?
//!
//! [`Exported`] is a model for them: as ONNX, for any runtime, or its weights as PyTorch loads
//! them, with what timm wants to know beside them, [where](check_places) no run is harmed.
//! [`TableWriter`] writes vectors of pictures as Parquet, NumPy, CSV or JSON lines,
//! [`save_folder_table`] those of a whole folder.

#![forbid(unsafe_code)]

mod error;
mod exported;
mod folder_table;
mod onnx;
mod places;
mod table;
mod weights;

pub use error::ExportError;
pub use exported::Exported;
pub use folder_table::{npy_names_file, save_folder_table};
pub use onnx::OPSET;
pub use places::check_places;
pub use table::{TableFormat, TableInfo, TableWriter};
