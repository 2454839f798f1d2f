//! Labels in WebDataset shards: beside `000017.jpg` lies `000017.cls` with its class, or
//! `000017.json` that has one.

use std::collections::BTreeMap;
use std::path::Path;

use super::archive::{self, Member};

/// A label is short.
const MOST_BYTES: u64 = 1 << 16;

/// Whether a file may hold a label rather than a picture.
pub(super) fn is_label(ending: &str) -> bool {
    ["cls", "json"].contains(&ending)
}

/// What the files of an archive have in common that belong together: the name up to the first dot
/// after the last `/`.
fn key(name: &str) -> &str {
    let file = name.rfind('/').map_or(0, |slash| slash + 1);
    let dot = name[file..].find('.').unwrap_or(name.len() - file);
    &name[..file + dot]
}

/// The label of each picture that has one.
pub(super) fn labels<'a>(
    path: &Path,
    pictures: impl Iterator<Item = &'a str>,
    beside: &[&Member],
) -> Vec<(&'a str, String)> {
    let mut known: BTreeMap<&str, String> = BTreeMap::new();
    for member in beside {
        let bytes = archive::read(path, member, MOST_BYTES);
        if let Some(label) = bytes.ok().and_then(|b| label(&member.name, &b)) {
            known.insert(key(&member.name), label);
        }
    }
    let labelled = pictures.filter_map(|name| Some((name, known.get(key(name))?.clone())));
    labelled.collect()
}

fn label(name: &str, bytes: &[u8]) -> Option<String> {
    let text = str::from_utf8(bytes).ok()?.trim();
    if !name.ends_with(".json") {
        return (!text.is_empty()).then(|| text.to_string());
    }
    let object: serde_json::Value = serde_json::from_str(text).ok()?;
    let value = ["cls", "class", "label"].iter().find_map(|k| object.get(k))?;
    match value {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_belong_together() {
        assert_eq!(key("a.b/000017.seg.png"), "a.b/000017");
        assert_eq!(key("000017"), "000017");
    }

    #[test]
    fn labels_of_either_kind() {
        assert_eq!(label("1.cls", b" 7\n").as_deref(), Some("7"));
        assert_eq!(label("1.json", br#"{"label": "cat"}"#).as_deref(), Some("cat"));
        assert_eq!(label("1.json", br#"{"cls": 3}"#).as_deref(), Some("3"));
        for none in [&b"{"[..], b"{}", br#"{"label": [1]}"#, b"\xff"] {
            assert_eq!(label("1.json", none), None);
        }
    }
}
