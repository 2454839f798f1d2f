//! Checkpoints of 0.1, format version 1: plain safetensors, of which nothing can be checked.
//!
//! `momentum.NAME` is what is `optimiser.momentum.NAME` in version 2; `memory`, `neighbours`, `anchors` and `entropy` are
//! `memory.bank`, `memory.neighbours` and so on. `order` has the names of the weights, `input` the preprocessing, where it
//! was kept. The standing tells its times itself.

use anchorhood_files::{Checked, OpenContainer};
use anchorhood_methods::StateDict;

use super::Checkpoint;
use super::format::{Fields, HeadField, Names, any, read_heads, read_network, run};

pub(super) const VERSION: &str = "1";
/// What a method kept where the file does not list it.
const KNOWN: [&str; 4] = ["memory", "neighbours", "anchors", "entropy"];

pub(super) fn decode(file: &OpenContainer, fields: &Fields) -> Result<Checkpoint, String> {
    let version = fields.text("version")?;
    if version != VERSION {
        return Err(format!("it has format version {version} and no checksums"));
    }
    let (config, standing) = run(fields)?;
    let order = fields.json("order")?.ok_or("it has no order")?;
    let (weights, slots) = read_network(file, "", &names(order), "")?;
    let heads: Vec<(String, Vec<String>)> = fields.json("heads")?.unwrap_or_default();
    let head = |(namespace, order)| HeadField {
        namespace,
        names: names(order),
    };
    let heads = read_heads(file, heads.into_iter().map(head).collect(), "")?;
    let mut checkpoint = Checkpoint {
        method: config.method.name.to_string(),
        config,
        standing,
        program: fields.text("program")?,
        judged_layer: "normalise".into(),
        input: fields.json("input")?,
        rows: [0, 0],
        weights,
        slots,
        heads,
        state: state(file, fields)?,
        checked: Checked::CannotBeChecked,
    };
    checkpoint.rows[1] = checkpoint.pictures() as u64;
    Ok(checkpoint)
}

fn names(order: Vec<String>) -> Names {
    Names {
        order,
        slots: vec!["momentum".into()],
    }
}

fn state(file: &OpenContainer, fields: &Fields) -> Result<StateDict, String> {
    let there = KNOWN.into_iter().filter(|name| file.shape(name).is_some());
    let known = || there.map(str::to_owned).collect();
    let names: Vec<String> = fields.json("state")?.unwrap_or_else(known);
    let mut state = StateDict::default();
    for name in names {
        let (shape, values) = any(file, &name)?;
        state.push(&renamed(&name), shape, values);
    }
    Ok(state)
}

fn renamed(name: &str) -> String {
    match name {
        "memory" => "memory.bank".into(),
        "neighbours" | "anchors" | "entropy" => format!("memory.{name}"),
        other => other.into(),
    }
}
