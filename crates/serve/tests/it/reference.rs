//! The page of the HTTP API is made from the OpenAPI document.

use std::fmt::Write;

use anchorhood_testing::check_generated;
use serde_json::Value;

const HEAD: &str = "\
# HTTP API

What `anchorhood serve` answers to programs. The server itself has the whole description, with all types, at `/api/openapi.json`
([the same file](../../crates/serve/src/openapi.json)).

A test makes this page: `ANCHORHOOD_WRITE_DOCS=1 cargo test -p anchorhood-serve --test it reference::`.
";

fn words(text: &Value) -> String {
    let text = text.as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

#[test]
fn the_page_of_the_api_is_fresh() {
    let document: Value = serde_json::from_str(include_str!("../../src/openapi.json")).unwrap();
    let mut page = format!("{HEAD}\n{}\n", words(&document["info"]["description"]));
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let title = format!("{} {path}", method.to_uppercase());
            write!(page, "\n## `{title}`\n\n{}\n", words(&operation["summary"])).unwrap();
            let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
            if !parameters.is_empty() {
                page += "\n| parameter | in | needed | meaning |\n|---|---|---|---|\n";
            }
            for p in parameters {
                let needed = if p["required"] == Value::Bool(true) { "yes" } else { "no" };
                let [name, place, meaning] = ["name", "in", "description"].map(|k| words(&p[k]));
                writeln!(page, "| `{name}` | {place} | {needed} | {meaning} |").unwrap();
            }
            page += "\n| status | answer |\n|---|---|\n";
            for (status, answer) in operation["responses"].as_object().unwrap() {
                writeln!(page, "| {status} | {} |", words(&answer["description"])).unwrap();
            }
        }
    }
    check_generated("http-api.md", &page);
}
