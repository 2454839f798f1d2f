//! What a downloaded file must add up to.

use std::fmt;
use std::io;
use std::path::Path;

use anchorhood_storage::{Disk, FileSystem};
use md5::{Digest, Md5};
use ring::digest::{Context, SHA256};

/// What a file's bytes must add up to, in hexadecimal.
#[derive(Clone, Copy, Debug)]
pub enum Checksum<'a> {
    /// As data sets are published.
    Md5(&'a str),
    /// All of it.
    Sha256(&'a str),
    /// Its first digits, which is all that is published.
    Sha256Begins(&'a str),
}

impl Checksum<'_> {
    /// What a file adds up to: all digits.
    pub fn of(&self, path: &Path) -> io::Result<String> {
        let bytes = Disk.map(path)?;
        let chunks = bytes.chunks(1 << 20);
        Ok(match self {
            Checksum::Md5(_) => {
                let mut hash = Md5::new();
                chunks.for_each(|chunk| hash.update(chunk));
                hexadecimal(&hash.finalize())
            }
            Checksum::Sha256(_) | Checksum::Sha256Begins(_) => {
                let mut hash = Context::new(&SHA256);
                chunks.for_each(|chunk| hash.update(chunk));
                hexadecimal(hash.finish().as_ref())
            }
        })
    }

    /// Whether it is that.
    pub fn is(&self, sum: &str) -> bool {
        match self {
            Checksum::Md5(whole) | Checksum::Sha256(whole) => sum == *whole,
            Checksum::Sha256Begins(first) => sum.starts_with(first),
        }
    }
}

impl fmt::Display for Checksum<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Checksum::Md5(sum) => write!(f, "the MD5 sum {sum}"),
            Checksum::Sha256(sum) => write!(f, "the SHA-256 {sum}"),
            Checksum::Sha256Begins(sum) => write!(f, "a SHA-256 that begins with {sum}"),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
