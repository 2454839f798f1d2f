//! What is true of a method beside its step: its name, its recipe, what it needs. Each method's
//! file has a [`MethodSpec`]; [`METHODS`](crate::methods::METHODS) lists them.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use anchorhood_engine::{Error, Result};
use anchorhood_storage::Named;

use crate::config::{ColoursChoice, MethodConfig, Preset, RunConfig};
use crate::methods::{METHODS, Method, Setup};

/// A method that can be asked for by name.
pub struct MethodSpec {
    /// Its name in `--method` and in config.toml.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Its paper.
    pub reference: &'static str,
    /// What it learns by.
    pub kind: MethodKind,
    /// The layer of the network whose output its features are.
    pub embeds: Embeds,
    /// Whether it discovers neighbours.
    pub discovers: bool,
    /// What its network must see of colours, where it matters to it.
    pub colours: Option<ColoursChoice>,
    /// The settings of `[method]` that it reads.
    pub reads: &'static [&'static str],
    /// How many times a step passes an image through the network: its views, or tiles as large.
    pub passes_per_image: fn(&MethodConfig) -> usize,
    /// Whether several processes can train by it together, or a clause that says why not.
    pub multi_process: Result<(), &'static str>,
    /// Changes the preset's settings to its own; where they come from is said at the top of its
    /// file.
    pub recipe: fn(&mut RunConfig, Preset),
    /// Bytes of its networks, and of what it keeps of each image, before anything is built.
    pub memory_bytes: fn(&Setup, &RunConfig) -> Result<(usize, usize)>,
    /// Makes it at the beginning of a run.
    pub build: BuildMethod,
}

/// Makes a method of a configuration. Only one of the kind
/// [`Supervised`](MethodKind::Supervised) is given labels, the others none.
pub type BuildMethod = fn(Setup, &RunConfig, labels: &[u32]) -> Result<Box<dyn Method>>;

/// What a method learns by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodKind {
    /// A memory of all images' features.
    Memory,
    /// Views of an image that it compares, by heads on top of the network that embeds.
    Views,
    /// Targets for the network's own output, found without labels.
    Targets,
    /// A pretext task, done by heads: to guess a part of the image, or what it could be made of.
    Pretext,
    /// Labels.
    Supervised,
}

/// The layer whose output the features are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Embeds {
    /// The last one, of unit length.
    Output,
    /// The last linear layer, whatever its length.
    Fc,
    /// What the last linear layer would be given: heads stand in its place.
    BeforeFc,
}

impl MethodSpec {
    /// What most methods are, to begin from: one of a pretext task, with heads on top of the network
    /// that embeds, an image once in a step, and the preset's recipe. It cannot be built.
    pub const DEFAULT: MethodSpec = MethodSpec {
        name: "",
        summary: "",
        reference: "",
        kind: MethodKind::Pretext,
        embeds: Embeds::BeforeFc,
        discovers: false,
        colours: None,
        reads: &[],
        passes_per_image: |_| 1,
        multi_process: Ok(()),
        recipe: |_, _| (),
        memory_bytes: |_, config| Err(not_here(config)),
        build: |_, config, _| Err(not_here(config)),
    };

    /// Whether it compares views of an image, by heads on top of the network that embeds.
    pub fn compares_views(&self) -> bool {
        self.kind == MethodKind::Views
    }

    /// Whether heads stand on top of the network that embeds, which then ends below its last layer.
    pub fn has_heads(&self) -> bool {
        self.embeds == Embeds::BeforeFc
    }

    /// Whether the length of its features is a setting: under heads it is the network's own, and a
    /// classifier has a value for each class.
    pub fn has_features_to_choose(&self) -> bool {
        !self.has_heads() && self.kind != MethodKind::Supervised
    }

    /// Whether it remembers the features of all images, which can then be judged.
    pub fn remembers(&self) -> bool {
        self.kind == MethodKind::Memory
    }
}

impl Named for MethodSpec {
    fn name(&self) -> &str {
        self.name
    }
}

/// Names of methods in files are not longer.
const LONGEST_NAME: usize = 64;

/// Methods that files name and this program does not have.
static UNKNOWN: Mutex<Vec<&MethodSpec>> = Mutex::new(Vec::new());

impl MethodSpec {
    /// The one that a file names. Where this program does not have it, what it has learnt can be
    /// used, and not gone on with; see [`is_known`](Self::is_known).
    pub(crate) fn in_file(name: &str) -> Option<&'static MethodSpec> {
        METHODS.find(name).or_else(|| (name.len() <= LONGEST_NAME).then(|| unknown(name)))
    }

    /// Whether this program has it.
    pub fn is_known(&self) -> bool {
        METHODS.find(self.name).is_some()
    }
}

fn unknown(name: &str) -> &'static MethodSpec {
    let mut all = UNKNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.iter().find(|method| method.name == name) {
        return known;
    }
    let method = Box::leak(Box::new(MethodSpec {
        name: String::leak(name.into()),
        summary: "A method that this program does not have",
        ..MethodSpec::DEFAULT
    }));
    all.push(method);
    method
}

fn not_here(config: &RunConfig) -> Error {
    Error::Plan(format!("this program has no method called {}", config.method.name))
}

impl PartialEq for MethodSpec {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for MethodSpec {}

impl fmt::Display for MethodSpec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Debug for MethodSpec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SETTINGS;

    #[test]
    fn settings_that_are_read_exist() {
        for method in METHODS.all() {
            assert!(!method.summary.is_empty() && !method.summary.ends_with('.'), "{method}");
            for setting in method.reads {
                let name = format!("method.{setting}");
                assert!(SETTINGS.iter().any(|s| s.name == name), "{method}: {name}");
            }
        }
    }

    #[test]
    fn a_method_of_another_program_is_one_thing_and_unknown() {
        let [a, b] = ["vicreg", "vicreg"].map(|name| MethodSpec::in_file(name).unwrap());
        assert!(std::ptr::eq(a, b) && a.name == "vicreg" && !a.is_known());
        assert!(MethodSpec::in_file("and").unwrap().is_known());
        assert!(MethodSpec::in_file(&"a".repeat(1000)).is_none());
    }

    #[test]
    fn the_documents_table_has_each_once() {
        let page = std::fs::read_to_string("../../docs/reference/methods.md").unwrap();
        let rows = page.lines().skip_while(|l| !l.starts_with("| `--method` |")).skip(2);
        let name = |row: &str| row.split('`').nth(1).unwrap().to_owned();
        let named: Vec<String> = rows.take_while(|l| l.starts_with('|')).map(name).collect();
        let all = METHODS.all();
        let missing = all.iter().find(|m| !named.iter().any(|name| name == m.name));
        assert_eq!((missing, named.len()), (None, all.len()));
    }

    /// Every setting of `[method]` is some method's.
    #[test]
    fn every_setting_is_read() {
        for setting in SETTINGS.iter().filter_map(|s| s.name.strip_prefix("method.")) {
            let of_all = ["name", "own"].contains(&setting);
            assert!(
                of_all || METHODS.all().iter().any(|m| m.reads.contains(&setting)),
                "{setting}"
            );
        }
    }
}
