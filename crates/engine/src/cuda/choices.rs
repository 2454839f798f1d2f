//! Which of cuDNN's ways was the fastest, for each problem met so far: measured once, kept on disk, so that a later run on
//! the same kind of GPU starts at once and computes the same bits.

use std::collections::BTreeMap;

use super::cache;
use super::cudnn::{self, Algorithm, Direction, Problem};

/// What was chosen, by problem and direction in words; nothing where cuDNN cannot do it.
pub(super) struct Choices {
    file: String,
    made: BTreeMap<String, Option<Algorithm>>,
    saved: usize,
}

impl Choices {
    /// The choices made on GPUs of this name.
    pub(super) fn of(gpu: &str) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let gpu: String = gpu.chars().map(plain).collect();
        let file = format!("choices-{gpu}-cudnn{}", cudnn::version());
        let kept = cache::read(&file).and_then(|bytes| String::from_utf8(bytes).ok());
        let made = kept.map(|text| parse(&text)).unwrap_or_default();
        let saved = made.len();
        Choices { file, made, saved }
    }

    /// What was chosen for a problem, if it was met before.
    pub(super) fn get(&self, p: &Problem, direction: Direction) -> Option<Option<Algorithm>> {
        self.made.get(&words(p, direction)).copied()
    }

    pub(super) fn set(&mut self, p: &Problem, direction: Direction, choice: Option<Algorithm>) {
        self.made.insert(words(p, direction), choice);
    }

    /// Forgets a choice that turned out not to work.
    pub(super) fn forget(&mut self, p: &Problem, direction: Direction) {
        self.made.remove(&words(p, direction));
    }

    /// Writes the choices down if there are new ones.
    pub(super) fn keep(&mut self) {
        if self.made.len() == self.saved {
            return;
        }
        let line = |(problem, choice): (&String, &Option<Algorithm>)| {
            let choice = choice.map_or("none".into(), |a| a.to_words());
            format!("{problem} = {choice}\n")
        };
        let text: String = self.made.iter().map(line).collect();
        cache::write(&self.file, text.as_bytes());
        self.saved = self.made.len();
    }
}

fn words(p: &Problem, direction: Direction) -> String {
    let w = &p.window;
    format!(
        "{direction:?} {} batch {} {} to {} kernel {:?} stride {:?} padding {:?}",
        p.precision, p.batch, p.input, p.output, w.kernel, w.stride, w.padding
    )
}

fn parse(text: &str) -> BTreeMap<String, Option<Algorithm>> {
    let line = |line: &str| {
        let (problem, choice) = line.split_once(" = ")?;
        let choice = match choice {
            "none" => None,
            words => Some(Algorithm::from_words(words)?),
        };
        Some((problem.to_string(), choice))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::Precision;
    use crate::{Shape, Window};

    #[test]
    fn choices_are_read_as_they_were_written() {
        let p = Problem {
            batch: 128,
            input: Shape::new(32, 32, 8),
            output: Shape::new(32, 32, 64),
            window: Window::square(3, 1, 1),
            precision: Precision::Bf16,
        };
        let (forward, back) = (Direction::Forward, Direction::InputGradient);
        let algorithm = Algorithm::from_words("1 1 4096").unwrap();
        let text = format!(
            "{} = {}\n{} = none\nsomething else\nx = 9 9 9\n",
            words(&p, forward),
            algorithm.to_words(),
            words(&p, back)
        );
        let made = parse(&text);
        assert_eq!(made.len(), 2);
        let found = made[&words(&p, forward)].unwrap();
        assert_eq!(found.to_words(), "1 1 4096");
        assert!(made[&words(&p, back)].is_none());
        let other = Problem { batch: 64, ..p };
        assert!(!made.contains_key(&words(&other, forward)));
    }
}
