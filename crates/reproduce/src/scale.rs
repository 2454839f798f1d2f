//! How large an experiment is run, and what is then smaller than in the paper.

use std::str::FromStr;

/// How large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scale {
    /// Seconds on a CPU: shows that everything runs, and nothing about the method.
    Smoke,
    /// Minutes on a GPU: the paper's data and networks, a tenth of its epochs.
    Short,
    /// The paper's settings.
    Paper,
}

impl Scale {
    /// All of them, smallest first.
    pub const ALL: [Scale; 3] = [Scale::Smoke, Scale::Short, Scale::Paper];

    /// What the user types.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Smoke => "smoke",
            Scale::Short => "short",
            Scale::Paper => "paper",
        }
    }

    /// Epochs a round where the paper has so many.
    pub fn epochs(self, paper: usize) -> usize {
        let part = match self {
            Scale::Smoke => 100,
            Scale::Short => 10,
            Scale::Paper => 1,
        };
        (paper / part).max(1)
    }

    /// What is smaller than in the paper, as sentences; nothing at the paper's own scale.
    pub fn smaller(self) -> &'static [&'static str] {
        match self {
            Scale::Paper => &[],
            Scale::Short => &[
                "Rounds have a tenth of the paper's epochs: 20 where it has 200.",
                "ImageNet is cut to 50,000 training and 10,000 test pictures of 64×64 pixels.",
            ],
            Scale::Smoke => &[
                "160 drawn shapes of 16×16 pixels (80 to test on) stand for every data set.",
                "Networks have width 2 where the paper's have 64, and heads a thirty-second of \
                 their values, too.",
                "Rounds have a hundredth of the paper's epochs: 2 where it has 200.",
                "The figures show that everything runs; they say nothing about the method.",
            ],
        }
    }
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Scale::ALL.into_iter().find(|s| s.name() == name);
        found.ok_or_else(|| format!("{name:?} is none of smoke, short, paper"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_shrink_and_never_vanish() {
        let all = |s: Scale| [50, 100, 200, 1000].map(|e| s.epochs(e));
        assert_eq!(all(Scale::Paper), [50, 100, 200, 1000]);
        assert_eq!(all(Scale::Short), [5, 10, 20, 100]);
        assert_eq!(all(Scale::Smoke), [1, 1, 2, 10]);
    }

    #[test]
    fn names_are_read_back() {
        for scale in Scale::ALL {
            assert_eq!(scale.name().parse(), Ok(scale));
        }
        assert!("tiny".parse::<Scale>().is_err());
        assert!(Scale::Paper.smaller().is_empty());
    }
}
