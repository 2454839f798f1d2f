//! Over which rows of the memory a loss is: all of them, or some that stand for all.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The rows of a step's loss: `exact`, or `sampled:M`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum LossRows {
    /// All of them.
    Exact,
    /// So many that are drawn in each step, beside the positives of the batch.
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
        match self {
            LossRows::Exact => f.write_str("exact"),
            LossRows::Sampled(rows) => write!(f, "sampled:{rows}"),
        }
    }
}

impl FromStr for LossRows {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sampled = text.strip_prefix("sampled:").and_then(|n| n.parse().ok());
        match (text, sampled) {
            ("exact", _) => Ok(LossRows::Exact),
            (_, Some(rows)) => Ok(LossRows::Sampled(rows)),
            (_, None) => Err(format!(
                "{text:?} is neither exact nor sampled:M, with a number of rows to draw in each step"
            )),
        }
    }
}

impl TryFrom<String> for LossRows {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<LossRows> for String {
    fn from(rows: LossRows) -> String {
        rows.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Preset, RunConfig};
    use super::*;

    #[test]
    fn it_is_written_where_it_is_not_exact() {
        let mut config = Preset::Quick.config("shapes");
        assert!(!config.to_toml().contains("loss_rows"));
        config.set("discovery.loss_rows", "sampled:4096").unwrap();
        let text = config.to_toml();
        assert!(text.contains("loss_rows = \"sampled:4096\""), "{text}");
        assert_eq!(RunConfig::from_toml(&text, "a test").unwrap(), config);
        config.set("discovery.loss_rows", "sampled:0").unwrap();
        let said = config.check().unwrap_err().to_string();
        assert_eq!(said, "discovery.loss_rows: must be at least 1, is 0");
        for text in ["", "sampled", "sampled:x", "sampled:-1", "4096"] {
            assert!(text.parse::<LossRows>().is_err(), "{text}");
        }
    }
}
