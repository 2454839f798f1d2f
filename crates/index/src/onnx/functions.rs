//! How large is a graph once its functions are written out? A file of a kilobyte can hold functions
//! of functions that come to thousands of millions of nodes, and a runtime writes them all out.

use std::collections::BTreeMap;

/// Nodes, functions written out, at most; DINOv2's largest has about ten thousand.
const MOST_NODES: u64 = 1_000_000;
/// Functions that call functions, at most.
const DEEPEST: usize = 64;

/// Who calls whom, and how often.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    graph: Counts,
    functions: BTreeMap<String, Counts>,
}

type Counts = BTreeMap<String, u64>;

impl Calls {
    /// A function is there; its calls are those `within` what is returned.
    pub fn declare(&mut self, domain: &str, name: &str) -> String {
        let name = full_name(domain, name);
        self.functions.entry(name.clone()).or_default();
        name
    }

    /// A node of the graph or of a function.
    pub fn add(&mut self, within: &Option<String>, domain: &str, op: &str) {
        let counts = match within {
            Some(function) => self.functions.entry(function.clone()).or_default(),
            None => &mut self.graph,
        };
        *counts.entry(full_name(domain, op)).or_default() += 1;
    }

    /// Refuses what would be too much.
    pub fn check(&self) -> Result<(), String> {
        let mut known = BTreeMap::new();
        match self.written_out(&self.graph, &mut known, 0) {
            Some(nodes) if nodes <= MOST_NODES => Ok(()),
            _ => Err(format!(
                "its functions call each other in circles, or come to more than {MOST_NODES} nodes"
            )),
        }
    }

    /// Nodes of a body with everything it calls; nothing where calls are too deep.
    fn written_out(
        &self,
        body: &Counts,
        known: &mut BTreeMap<String, u64>,
        depth: usize,
    ) -> Option<u64> {
        if depth > DEEPEST {
            return None;
        }
        let mut sum = 0_u64;
        for (name, times) in body {
            let one = match (known.get(name), self.functions.get(name)) {
                (Some(nodes), _) => *nodes,
                (None, Some(function)) => {
                    let nodes = self.written_out(function, known, depth + 1)?;
                    known.insert(name.clone(), nodes);
                    nodes
                }
                (None, None) => 1,
            };
            sum = sum.saturating_add(one.saturating_mul(*times));
        }
        Some(sum)
    }
}

fn full_name(domain: &str, name: &str) -> String {
    format!("{domain}::{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_and_towers_are_refused() {
        let mut calls = Calls::default();
        let a = Some(calls.declare("", "a"));
        calls.add(&None, "", "a");
        calls.add(&a, "", "Conv");
        assert!(calls.check().is_ok());
        calls.add(&a, "", "a");
        assert!(calls.check().is_err());
    }
}
