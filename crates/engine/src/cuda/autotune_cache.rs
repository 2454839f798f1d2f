//! Which of cuDNN's ways was the fastest, for each problem met so far: measured once, kept on disk,
//! so that a later run on the same kind of GPU starts at once and computes the same bits.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::autotune::Task;
use super::cache;
use super::cudnn::{self, Algorithm};
use super::cudnn_graph::PlanName;

/// What was chosen for a task.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Choice {
    /// Only plain loops can do it.
    None,
    /// A kernel of ours.
    Ours,
    Algorithm(Algorithm),
    Plan(PlanName),
}

/// What was chosen, by task in words.
pub(super) struct AutotuneCache {
    file: String,
    made: BTreeMap<String, Choice>,
    saved: bool,
}

impl AutotuneCache {
    /// The choices made on GPUs of this name.
    pub(super) fn of(gpu: &str) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let gpu: String = gpu.chars().map(plain).collect();
        let file = format!("choices-{gpu}-cudnn{}", cudnn::version());
        let kept = cache::read(&file).and_then(|bytes| parse(&bytes));
        let made = kept.unwrap_or_default();
        AutotuneCache { file, made, saved: true }
    }

    /// What was chosen for a task, if it was met before, and cuDNN can have meant it.
    pub(super) fn get(&self, task: &Task) -> Option<Choice> {
        let choice = self.made.get(&words(task)).copied();
        choice.filter(|choice| match choice {
            Choice::Algorithm(algorithm) => algorithm.is_of(task.direction),
            Choice::None | Choice::Ours | Choice::Plan(_) => true,
        })
    }

    pub(super) fn set(&mut self, task: &Task, choice: Choice) {
        self.made.insert(words(task), choice);
        self.saved = false;
    }

    /// Forgets a choice that turned out not to work.
    pub(super) fn forget(&mut self, task: &Task) {
        self.made.remove(&words(task));
    }

    /// Writes the choices down if there are new ones.
    pub(super) fn keep(&mut self) {
        if self.saved {
            return;
        }
        cache::write(&self.file, written(&self.made).as_bytes());
        self.saved = true;
    }
}

/// A file of choices, read as a device would and written again; nothing where it is broken.
pub fn reread(file: &Path) -> Option<String> {
    Some(written(&parse(&cache::read_file(file)?)?))
}

fn words(task: &Task) -> String {
    let (p, w) = (&task.problem, &task.problem.window);
    let added = if task.accumulate { " added" } else { "" };
    let used = match p.used == p.input.channels {
        true => String::new(),
        false => format!(" ({} used)", p.used),
    };
    format!(
        "{:?}{added} {} batch {} {}{used} to {} kernel {:?} stride {:?} padding {:?}",
        task.direction, p.precision, p.batch, p.input, p.output, w.kernel, w.stride, w.padding
    )
}

fn written(made: &BTreeMap<String, Choice>) -> String {
    serde_json::to_string_pretty(made).expect("a map of words to choices is JSON")
}

/// The choices of a file; none of one that is broken, or as earlier versions wrote it: it is then
/// made again.
fn parse(bytes: &[u8]) -> Option<BTreeMap<String, Choice>> {
    serde_json::from_slice(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::Precision;
    use crate::cuda::cudnn::{Direction, Problem};
    use crate::{Shape, Window};

    fn task(direction: Direction, accumulate: bool) -> Task {
        Task {
            problem: Problem {
                batch: 128,
                input: Shape::new(32, 32, 8),
                used: 8,
                output: Shape::new(32, 32, 64),
                window: Window::square(3, 1, 1),
                precision: Precision::Bf16,
            },
            direction,
            accumulate,
        }
    }

    fn cache(made: BTreeMap<String, Choice>) -> AutotuneCache {
        AutotuneCache { file: "choices".into(), made, saved: true }
    }

    fn algorithm(number: u32, math: u32) -> Choice {
        Choice::Algorithm((number, math, usize::MAX).try_into().unwrap())
    }

    fn reread(made: &BTreeMap<String, Choice>) -> BTreeMap<String, Choice> {
        parse(written(made).as_bytes()).unwrap()
    }

    /// Whatever cuDNN may choose is found again: in every direction each of its algorithms,
    /// Winograd's last of all.
    #[test]
    fn every_algorithm_is_read_as_it_was_written() {
        for (direction, count) in
            [(Direction::Forward, 8), (Direction::InputGradient, 6), (Direction::WeightGradient, 7)]
        {
            assert_eq!(direction.algorithm_count(), count, "{direction:?}");
            let task = task(direction, false);
            for (number, math) in (0..count).flat_map(|n| (0..4).map(move |math| (n, math))) {
                let mut given = cache(BTreeMap::new());
                given.set(&task, algorithm(number, math));
                let found = cache(reread(&given.made)).get(&task);
                assert_eq!(found, Some(algorithm(number, math)));
            }
            let mut beyond = cache(BTreeMap::new());
            beyond.set(&task, algorithm(count, 0));
            assert_eq!(beyond.get(&task), None, "{direction:?}");
        }
        assert!(Algorithm::try_from((0, 4, 0)).is_err());
    }

    #[test]
    fn choices_are_read_as_they_were_written() {
        let forward = task(Direction::Forward, false);
        let mut few = forward;
        few.problem.used = 3;
        let mut other = forward;
        other.problem.batch = 64;
        let plan: Choice = serde_json::from_str("{\"plan\": 3}").unwrap();
        let choices = [
            (forward, algorithm(1, 1)),
            (task(Direction::InputGradient, false), Choice::None),
            (task(Direction::InputGradient, true), plan),
            (few, Choice::Ours),
        ];
        let mut given = cache(BTreeMap::new());
        choices.iter().for_each(|(task, choice)| given.set(task, *choice));
        let read = cache(reread(&given.made));
        for (task, choice) in &choices {
            assert_eq!(read.get(task), Some(*choice));
        }
        assert_eq!(read.get(&other), None);
    }

    /// A file with a right checksum that is none of today's is not half read.
    #[test]
    fn damaged_and_older_files_hold_no_choice() {
        let mut given = cache(BTreeMap::new());
        let known = task(Direction::Forward, false);
        given.set(&known, algorithm(1, 1));
        let text = written(&given.made);
        let older = format!("{} = algorithm 1 1 4096\n", words(&known));
        let unknown = r#"{"Forward": {"algorithm": [0, 4, 0]}}"#;
        for bytes in [&text[..text.len() - 1], &older, unknown, ""] {
            assert_eq!(parse(bytes.as_bytes()), None, "{bytes}");
        }
    }
}
