//! Settings that are a word, or another word with a number: over which rows of the memory a loss
//! is, and which pictures features are judged on.

use std::fmt;
use std::str::FromStr;

/// The rows of a step's loss: `exact`, or `sampled:M`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossRows {
    /// All of them.
    Exact,
    /// So many that are drawn in each step, beside the positives of the batch, and stand for all.
    Sampled(usize),
}

impl LossRows {
    /// How many are drawn, where some are.
    pub fn sampled(self) -> Option<usize> {
        match self {
            LossRows::Exact => None,
            LossRows::Sampled(rows) => Some(rows),
        }
    }
}

impl fmt::Display for LossRows {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write(f, "exact", "sampled", self.sampled())
    }
}

impl FromStr for LossRows {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let about = "neither exact nor sampled:M, with a number of rows to draw in each step";
        Ok(parse(text, "exact", "sampled:", about)?.map_or(LossRows::Exact, LossRows::Sampled))
    }
}

/// What features are judged on: `test`, or `train:N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidateOn {
    /// The test pictures.
    Test,
    /// So many of the training pictures, drawn by the seed and held out of training; the test
    /// pictures are not looked at. To choose settings by.
    Train(usize),
}

impl ValidateOn {
    /// How many training pictures are held out.
    pub fn held_out(self) -> Option<usize> {
        match self {
            ValidateOn::Test => None,
            ValidateOn::Train(pictures) => Some(pictures),
        }
    }
}

impl fmt::Display for ValidateOn {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write(f, "test", "train", self.held_out())
    }
}

impl FromStr for ValidateOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let about = "neither test nor train:N, with a number of training pictures to hold out";
        Ok(parse(text, "test", "train:", about)?.map_or(ValidateOn::Test, ValidateOn::Train))
    }
}

fn write(f: &mut fmt::Formatter, word: &str, other: &str, number: Option<usize>) -> fmt::Result {
    match number {
        None => f.write_str(word),
        Some(number) => write!(f, "{other}:{number}"),
    }
}

/// The number, where it is not the word.
fn parse(text: &str, word: &str, other: &str, about: &str) -> Result<Option<usize>, String> {
    if text == word {
        return Ok(None);
    }
    let number = text.strip_prefix(other).and_then(|n| n.parse().ok());
    number.map(Some).ok_or_else(|| format!("{text:?} is {about}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// That settings of them are written, read and checked is tested with all settings.
    #[test]
    fn numbers_must_be_where_they_belong() {
        assert_eq!("sampled:4096".parse(), Ok(LossRows::Sampled(4096)));
        assert_eq!("train:50".parse(), Ok(ValidateOn::Train(50)));
        for text in ["", "sampled", "train", "train:", "sampled:x", "train:-1", "test:5", "4096"] {
            assert!(text.parse::<LossRows>().is_err(), "{text}");
            assert!(text.parse::<ValidateOn>().is_err(), "{text}");
        }
    }
}
