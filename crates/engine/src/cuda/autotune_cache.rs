//! Which of cuDNN's ways was the fastest, for each problem met so far: measured once, kept on disk, so that a later run on
//! the same kind of GPU starts at once and computes the same bits.

use std::collections::BTreeMap;
use std::path::Path;

use super::autotune::Task;
use super::cache;
use super::cudnn::{self, Algorithm, Direction};
use super::cudnn_graph::PlanName;

/// What was chosen for a task.
#[derive(Clone, Copy, Debug)]
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
        let kept = cache::read(&file).and_then(|bytes| String::from_utf8(bytes).ok());
        let made = kept.map(|text| parse(&text)).unwrap_or_default();
        AutotuneCache {
            file,
            made,
            saved: true,
        }
    }

    /// What was chosen for a task, if it was met before.
    pub(super) fn get(&self, task: &Task) -> Option<Choice> {
        self.made.get(&words(task)).copied()
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
        let text = written(&self.made);
        cache::write(&self.file, text.as_bytes());
        self.saved = true;
    }
}

/// A file of choices, read as a device would and written again; nothing where it is broken.
pub fn reread(file: &Path) -> Option<String> {
    let text = String::from_utf8(cache::read_file(file)?).ok()?;
    Some(written(&parse(&text)))
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

/// A line for each choice.
fn written(made: &BTreeMap<String, Choice>) -> String {
    let line = |(task, choice): (&String, &Choice)| {
        let choice = match choice {
            Choice::None => "none".into(),
            Choice::Ours => "ours".into(),
            Choice::Algorithm(a) => format!("algorithm {}", a.to_words()),
            Choice::Plan(name) => format!("plan {}", name.to_words()),
        };
        format!("{task} = {choice}\n")
    };
    made.iter().map(line).collect()
}

/// The choices in such lines; a line that says none is left out.
fn parse(text: &str) -> BTreeMap<String, Choice> {
    let line = |line: &str| {
        let (task, choice) = line.split_once(" = ")?;
        let choice = match choice.split_once(' ') {
            None if choice == "none" => Choice::None,
            None if choice == "ours" => Choice::Ours,
            Some(("algorithm", words)) => {
                Choice::Algorithm(Algorithm::from_words(direction_of(task)?, words)?)
            }
            Some(("plan", words)) => Choice::Plan(PlanName::from_words(words)?),
            _ => return None,
        };
        Some((task.to_string(), choice))
    };
    text.lines().filter_map(line).collect()
}

/// The direction of a task in words.
fn direction_of(task: &str) -> Option<Direction> {
    let named = task.split(' ').next()?;
    Direction::ALL
        .into_iter()
        .find(|direction| format!("{direction:?}") == named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::Precision;
    use crate::cuda::cudnn::Problem;
    use crate::{Shape, Window};

    fn problem() -> Problem {
        Problem {
            batch: 128,
            input: Shape::new(32, 32, 8),
            used: 8,
            output: Shape::new(32, 32, 64),
            window: Window::square(3, 1, 1),
            precision: Precision::Bf16,
        }
    }

    /// Whatever cuDNN may choose is found again: in every direction each of its algorithms, Winograd's last of all.
    #[test]
    fn every_algorithm_is_read_as_it_was_written() {
        for (direction, count) in Direction::ALL.into_iter().zip([8, 6, 7]) {
            assert_eq!(direction.algorithm_count(), count, "{direction:?}");
            for number in 0..count {
                for math in 0..4 {
                    let task = Task {
                        problem: problem(),
                        direction,
                        accumulate: math == 0,
                    };
                    let text = format!("{} = algorithm {number} {math} 4096\n", words(&task));
                    let made = parse(&text);
                    assert!(
                        matches!(made.get(&words(&task)), Some(Choice::Algorithm(_))),
                        "{text} is not found again"
                    );
                    assert_eq!(written(&made), text);
                }
            }
            let beyond = format!("{direction:?} = algorithm {count} 0 0\n");
            assert!(parse(&beyond).is_empty(), "{beyond}");
        }
    }

    #[test]
    fn choices_are_read_as_they_were_written() {
        let problem = problem();
        let task = |direction, accumulate| Task {
            problem,
            direction,
            accumulate,
        };
        let forward = task(Direction::Forward, false);
        let back = task(Direction::InputGradient, false);
        let added = task(Direction::InputGradient, true);
        let mut few = forward;
        few.problem.used = 3;
        let text = format!(
            "{} = algorithm 1 1 4096\n{} = none\n{} = plan 3\n{} = ours\nsomething else\nx = algorithm 9 9 9\n",
            words(&forward),
            words(&back),
            words(&added),
            words(&few)
        );
        let made = parse(&text);
        assert_eq!(made.len(), 4);
        assert_eq!(parse(&written(&made)).len(), 4);
        assert!(matches!(made[&words(&few)], Choice::Ours));
        let found = |task| &made[&words(task)];
        assert!(matches!(found(&forward), Choice::Algorithm(a) if a.to_words() == "1 1 4096"));
        assert!(matches!(found(&back), Choice::None));
        assert!(matches!(found(&added), Choice::Plan(p) if p.to_words() == "3"));
        let other = Problem {
            batch: 64,
            ..problem
        };
        let other = Task {
            problem: other,
            ..forward
        };
        assert!(!made.contains_key(&words(&other)));
    }
}
