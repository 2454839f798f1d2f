//! The page of all settings is made from [`SETTINGS`].

use std::fmt::Write;

use anchorhood_testing::check_generated;
use anchorhood_train::{Preset, SETTINGS, Setting};

const HEAD: &str = "\
# Configuration

Every setting of a run: its name in `config.toml` (and for `train --set NAME=VALUE`), its flag, its value in three presets, and what it does. The
values are those of CIFAR-10 with the preset's default method; other methods and data sets begin with their own, which
`anchorhood train … --explain` prints.

A test makes this page: `ANCHORHOOD_WRITE_DOCS=1 cargo test -p anchorhood-train --test it reference::`.
";

/// A table's cell: no line breaks, no bars.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn flag(setting: &Setting) -> String {
    let flag = setting.flag.map(|f| format!("`--{}`", f.long));
    flag.unwrap_or_default()
}

#[test]
fn the_page_of_settings_is_fresh() {
    let presets = [Preset::Quick, Preset::Strong, Preset::Paper].map(|p| p.config("cifar10"));
    let mut page = HEAD.to_owned();
    let mut section = None;
    for setting in SETTINGS {
        let table = setting.name.rsplit_once('.').map(|(table, _)| table);
        if section != Some(table) {
            section = Some(table);
            let title = table.map_or("All runs".into(), |t| format!("`[{t}]`"));
            let columns = "| setting | flag | quick | strong | paper | meaning |";
            write!(page, "\n## {title}\n\n{columns}\n|---|---|---|---|---|---|\n").unwrap();
        }
        let name = setting.name.rsplit('.').next().unwrap_or_default();
        let values = presets.each_ref().map(|config| cell(&setting.text(config)));
        let (flag, help) = (flag(setting), cell(&setting.help()));
        writeln!(page, "| `{name}` | {flag} | {} | {help} |", values.join(" | ")).unwrap();
    }
    check_generated("configuration.md", &page);
}
