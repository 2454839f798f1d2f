//! `anchorhood model list`.

use std::path::{Path, PathBuf};

use anchorhood::Model;
use anchorhood_index::{KNOWN_MODELS, KnownModel, fetched_model, fetched_models};
use anchorhood_report::aligned;
use serde_json::{Value, json};

use super::{ListArgs, folder};
use crate::terminal::failure::Failure;
use crate::terminal::output;

pub fn run(args: &ListArgs) -> Result<(), Failure> {
    let folder = folder()?;
    let others = fetched_by_address(&folder);
    if args.json {
        let known: Vec<Value> = KNOWN_MODELS.iter().map(|k| object(k, &folder)).collect();
        let base = json!({ "name": Model::BASE, "network": base()?, "licence": OWN_LICENCE });
        let all = json!({ "folder": folder, "base": base, "models": known, "others": others });
        return output::line(&all.to_string());
    }
    let header = ["", "network", "MB", "SHA-256", "licence", "here"];
    let mut rows = vec![header.map(String::from).to_vec()];
    let inside = [Model::BASE, &base()?, "–", "–", OWN_LICENCE, "yes"];
    rows.push(inside.map(String::from).to_vec());
    rows.extend(KNOWN_MODELS.iter().map(|known| row(known, &folder)));
    output::line(&aligned(&rows))?;
    output::line(&format!(
        "\n`base` is inside this program. BSD-3-Clause is the licence of torchvision's code. Its \
         weights were learnt from ImageNet-1k, with labels: the terms of those pictures\n\
         may matter for what you do with them. They are published at {};\n\
         `anchorhood model fetch NAME` keeps one in {}.",
        KnownModel::FOLDER,
        folder.display()
    ))?;
    let names: Vec<String> = others.iter().map(|p| p.display().to_string()).collect();
    match names.is_empty() {
        true => Ok(()),
        false => output::line(&format!("Fetched by address: {}.", names.join(", "))),
    }
}

/// The terms of this program, and of the model inside it.
const OWN_LICENCE: &str = "MIT OR Apache-2.0";

/// Which network the model inside the program is.
fn base() -> Result<String, Failure> {
    Ok(Model::base()?.network()?.architecture.to_string())
}

/// Files that were fetched and have no published name.
fn fetched_by_address(folder: &Path) -> Vec<PathBuf> {
    let names = fetched_models(folder).into_iter();
    let names = names.filter_map(|path| path.file_name().map(PathBuf::from));
    let known = |name: &PathBuf| KNOWN_MODELS.iter().any(|k| name.as_os_str() == &*k.file());
    names.filter(|name| !known(name)).collect()
}

fn row(known: &KnownModel, folder: &Path) -> Vec<String> {
    let here = fetched_model(folder, known.name).is_some();
    vec![
        known.name.into(),
        known.architecture.to_string(),
        known.megabytes.to_string(),
        format!("{}…", known.sha256),
        KnownModel::LICENCE.into(),
        if here { "yes" } else { "no" }.into(),
    ]
}

fn object(known: &KnownModel, folder: &Path) -> Value {
    json!({
        "name": known.name,
        "network": known.architecture.name,
        "megabytes": known.megabytes,
        "sha256_begins": known.sha256,
        "licence": KnownModel::LICENCE,
        "about": known.about,
        "url": format!("{}{}", KnownModel::FOLDER, known.file()),
        "file": fetched_model(folder, known.name),
    })
}
