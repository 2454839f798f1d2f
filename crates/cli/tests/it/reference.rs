//! The page of the command line is made from the program's own help.

use std::fmt::Write;

use anchorhood_testing::check_generated;

use crate::common::{Ran, Sandbox};

const HEAD: &str = "\
# Command line

What `--help` of each command prints. A test makes this page:
`ANCHORHOOD_WRITE_DOCS=1 cargo test -p anchorhood-cli --test it reference::`.
";

/// The commands that a help text lists.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    // What is further to the right goes on with a description.
    let named = lines.filter_map(|line| line.strip_prefix("  ").filter(|l| !l.starts_with(' ')));
    let names = named.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(String::from).collect()
}

#[test]
fn the_page_of_the_command_line_is_fresh() {
    let program = Sandbox::new();
    let mut page = HEAD.to_owned();
    let mut left = vec![String::new()];
    while let Some(command) = left.pop() {
        let mut asked = program.command(&format!("{command} --help"));
        let help = Ran::of(asked.env_remove("COLUMNS")).succeeded().stdout;
        write!(page, "\n## `{}`\n\n", format!("anchorhood {command}").trim_end()).unwrap();
        write!(page, "```text\n{}\n```\n", help.trim_end()).unwrap();
        let below = commands(&help).into_iter().rev();
        left.extend(below.map(|name| format!("{command} {name}").trim().to_owned()));
    }
    check_generated("cli.md", &page);
}
