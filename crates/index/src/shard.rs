//! One of several parts of the files of a job, which separate processes embed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anchorhood_storage::checksum;

/// Part I of N, counted from 0. A file's name alone decides which part it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: u32,
    of: u32,
}

impl Shard {
    /// Whether a file of this name is in the part.
    pub fn holds(self, name: &str) -> bool {
        checksum(name.as_bytes()) % u128::from(self.of) == u128::from(self.number)
    }

    /// The file of this part: `v-00003-of-00128.parquet` for `v.parquet`.
    pub fn path(self, output: &Path) -> PathBuf {
        let mut name = output.file_stem().unwrap_or_default().to_owned();
        name.push(format!("-{self}"));
        if let Some(ending) = output.extension() {
            name.push(".");
            name.push(ending);
        }
        output.with_file_name(name)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text.split_once('/');
        let numbers = numbers.and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match numbers {
            Some((number, of)) if number < of => Ok(Shard { number, of }),
            _ => Err("a shard is I/N, with I from 0 to N - 1, such as 0/8".into()),
        }
    }
}

/// As part of a file's name: `00003-of-00128`.
impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:05}-of-{:05}", self.number, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_in_one_shard() {
        let all: Vec<Shard> = (0..7).map(|i| format!("{i}/7").parse().unwrap()).collect();
        let mut sizes = [0; 7];
        for name in (0..7000).map(|i| format!("a/{i}.jpg")) {
            let holders: Vec<usize> = (0..7).filter(|i| all[*i].holds(&name)).collect();
            assert_eq!(holders.len(), 1, "{name}");
            sizes[holders[0]] += 1;
        }
        assert!(sizes.iter().all(|n| (850..1150).contains(n)), "{sizes:?}");
        // Part of the format: other processes, versions and machines must agree.
        let of = |name: &str| all.iter().position(|s| s.holds(name));
        assert_eq!(["a.jpg", "b.jpg", "ü/1.png"].map(of), EXPECTED.map(Some));
    }

    /// By the Python package xxhash: `xxh3_128_intdigest(name) % 7`.
    const EXPECTED: [usize; 3] = [2, 1, 5];

    #[test]
    fn what_is_no_shard_is_refused() {
        for text in ["", "1", "1/1", "2/1", "0/0", "-1/3", "a/b", "1/2/3"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
        assert_eq!("3/128".parse::<Shard>().unwrap().to_string(), "00003-of-00128");
    }
}
