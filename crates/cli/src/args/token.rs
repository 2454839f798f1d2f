//! The word that a server is to ask for: from a file, from the environment, from the command line,
//! where every user of the machine can read it while the program runs, or drawn.

use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anchorhood_serve::draw_token;
use anchorhood_storage::open_regular;
use clap::Args;

use crate::terminal::failure::Failure;

/// Read where neither flag is given.
pub const VARIABLE: &str = "ANCHORHOOD_TOKEN";
/// Bytes of a token file that are read, at most: a token is short, and some files have no end.
const MOST: u64 = 4096;

#[derive(Debug, Args)]
pub struct TokenArgs {
    /// A file with a word of at least 16 letters or digits, without which nothing is shown
    /// [default: the environment variable ANCHORHOOD_TOKEN, if set; else, where other machines can
    /// reach the address, a random one that is printed].
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    pub token_file: Option<PathBuf>,
    /// The word itself; other users of this machine can see it in the list of processes.
    #[arg(long, value_name = "WORD")]
    pub token: Option<String>,
}

/// A token, and whether it may be shown: one that was kept out of the command line stays out of
/// logs too.
#[derive(Debug, PartialEq)]
pub struct Token {
    pub word: String,
    pub shown: bool,
}

impl Token {
    fn shown(word: String) -> Token {
        Token { word, shown: true }
    }
}

impl TokenArgs {
    /// The token, if there is one; where other machines can reach `host` there always is.
    pub fn token(&self, host: IpAddr) -> Result<Option<Token>, Failure> {
        let hidden = |word| Token { word, shown: false };
        if let Some(word) = &self.token {
            return Ok(Some(Token::shown(word.clone())));
        }
        if let Some(file) = &self.token_file {
            return read(file).map(hidden).map(Some);
        }
        match from_environment()? {
            Some(word) => Ok(Some(hidden(word))),
            None if host.is_loopback() => Ok(None),
            None => match draw_token() {
                Ok(word) => Ok(Some(Token::shown(word))),
                Err(why) => Err(failed!("no token can be drawn: {why}")),
            },
        }
    }
}

fn from_environment() -> Result<Option<String>, Failure> {
    match std::env::var(VARIABLE) {
        Ok(word) if word.is_empty() => Ok(None),
        Ok(word) => Ok(Some(word)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(usage!(
            "{VARIABLE} is not text; a token has letters, digits, dashes and underscores"
        )),
    }
}

/// The file's text without the space around it.
fn read(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = open_regular(path).and_then(|file| file.take(MOST).read_to_string(&mut text));
    match read {
        Ok(_) => Ok(text.trim().to_string()),
        Err(why) => Err(usage!("{}: the token cannot be read: {why}", path.display())),
    }
}
