//! A JSON object a line.

use std::io::{self, Write};

use serde_json::json;

pub fn write_row(
    to: &mut impl Write,
    path: &str,
    label: Option<&str>,
    vector: &[f32],
) -> io::Result<()> {
    let row = json!({ "path": path, "label": label, "vector": vector });
    serde_json::to_writer(&mut *to, &row)?;
    to.write_all(b"\n")
}
