//! Which pictures features are judged on: those the data set has for it, or some that training is
//! not given.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What features are judged on: `test`, or `train:N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
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
        match self {
            ValidateOn::Test => f.write_str("test"),
            ValidateOn::Train(pictures) => write!(f, "train:{pictures}"),
        }
    }
}

impl FromStr for ValidateOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let of_training = text.strip_prefix("train:").and_then(|n| n.parse().ok());
        match (text, of_training) {
            ("test", _) => Ok(ValidateOn::Test),
            (_, Some(pictures)) => Ok(ValidateOn::Train(pictures)),
            (_, None) => Err(format!(
                "{text:?} is neither test nor train:N, with a number of training pictures to hold out"
            )),
        }
    }
}

impl TryFrom<String> for ValidateOn {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ValidateOn> for String {
    fn from(on: ValidateOn) -> String {
        on.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Preset, RunConfig};
    use super::*;

    #[test]
    fn it_is_written_where_it_is_not_the_test_pictures() {
        let mut config = Preset::Quick.config("shapes");
        assert!(!config.to_toml().contains("validate_on"));
        config.set("data.validate_on", "train:50").unwrap();
        let text = config.to_toml();
        assert!(text.contains("validate_on = \"train:50\""), "{text}");
        assert_eq!(RunConfig::from_toml(&text, "a test").unwrap(), config);
        assert_eq!(config.data.load_options(0).validation, Some(50));
    }

    #[test]
    fn what_is_no_number_of_pictures_is_refused() {
        for text in ["", "train", "train:", "train:x", "train:-1", "test:5", "5000"] {
            assert!(text.parse::<ValidateOn>().is_err(), "{text}");
        }
        let mut config = Preset::Quick.config("shapes");
        config.set("data.validate_on", "train:0").unwrap();
        let said = config.check().unwrap_err().to_string();
        assert_eq!(said, "data.validate_on: must be at least 1, is 0");
    }
}
