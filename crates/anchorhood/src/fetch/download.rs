//! One file over HTTP: into `FILE.part`, from where a broken download goes on; under its own name
//! only when its checksum is right.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anchorhood_storage::{AppendFile, Disk, FileSystem, move_file};
use ureq::Agent;
use ureq::http::Response;

use super::checksum::Checksum;
use super::{FetchEvent, OnFetch};
use crate::Error;

/// Attempts in a row that bring nothing before it gives up.
const ATTEMPTS: u32 = 5;
/// A server that says nothing for so long is taken to be gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// A file to get.
pub struct Download<'a> {
    /// Where it is.
    pub url: &'a str,
    /// What it is to be called.
    pub to: &'a Path,
    /// What its bytes must add up to.
    pub sum: Checksum<'a>,
    /// Before the first repetition; twice as long before each next.
    pub pause: Duration,
    /// How long it is, roughly.
    pub megabytes: u32,
    /// What to do where the server does not have it.
    pub otherwise: &'a str,
}

/// Why an attempt ended.
enum Trouble {
    /// Trying again may help.
    Passing(String),
    /// It will not.
    Lasting(String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble::Lasting(error.to_string())
    }
}

impl Download<'_> {
    /// Gets the file, unless it is there.
    pub fn run(&self, on_event: OnFetch) -> Result<(), Error> {
        if self.to.exists() {
            return self.check_old(on_event);
        }
        let part = self.part();
        let failed = |e: io::Error| self.failed(&part, &e.to_string());
        let mut file = AppendFile::open(Disk::shared(), &part).map_err(failed)?;
        if !file.hold().map_err(failed)? {
            return Err(self.failed(&part, "another program is downloading this file; wait for it"));
        }
        let had = file.length();
        if had > 0 {
            on_event(FetchEvent::Note(format!(
                "{}: going on after {} MB",
                self.to.display(),
                had / 1_000_000
            )));
        }
        if let Err(failure) = self.fill(&mut file, on_event) {
            if file.length() == 0 {
                let _ = Disk.remove(&part); // nothing to go on from
            }
            return Err(failure);
        }
        let mut sum = self.sum.of(&part).map_err(failed)?;
        if !self.sum.is(&sum) && had > 0 {
            // What was there before may have been of another file.
            on_event(FetchEvent::Note(format!(
                "{}: the checksum is wrong; once more from the start",
                self.to.display()
            )));
            file.truncate(0).map_err(failed)?;
            self.fill(&mut file, on_event)?;
            sum = self.sum.of(&part).map_err(failed)?;
        }
        if !self.sum.is(&sum) {
            let _ = Disk.remove(&part); // of no use to anyone
            return Err(Error::failed(format!(
                "{}: expected {}, found {sum}; what {} gave was thrown away",
                self.to.display(),
                self.sum,
                self.url
            )));
        }
        let finished = file.sync().and_then(|()| move_file(&Disk, &part, self.to));
        finished.map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => self.failed(
                self.to,
                &format!(
                    "something has taken this name meanwhile; what was fetched is whole in {}",
                    part.display()
                ),
            ),
            _ => self.failed(self.to, &e.to_string()),
        })
    }

    fn check_old(&self, on_event: OnFetch) -> Result<(), Error> {
        let sum = self.sum.of(self.to);
        let sum = sum.map_err(|e| self.failed(self.to, &e.to_string()))?;
        if self.sum.is(&sum) {
            on_event(FetchEvent::Note(format!("{}: is there already", self.to.display())));
            return Ok(());
        }
        let why = format!(
            "is there already, but its bytes add up to {sum} where they should have {}; move it \
             away to fetch it again",
            self.sum
        );
        Err(self.failed(self.to, &why))
    }

    fn part(&self) -> PathBuf {
        let name = self.to.file_name().unwrap_or_default().to_string_lossy();
        self.to.with_file_name(format!("{name}.part"))
    }

    fn failed(&self, path: &Path, why: &str) -> Error {
        Error::failed(format!("{}: {why}", path.display()))
    }

    /// Appends to the file until it is whole.
    fn fill(&self, file: &mut AppendFile, on_event: OnFetch) -> Result<(), Error> {
        let agent: Agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_resolve(Some(PATIENCE))
            .timeout_connect(Some(PATIENCE))
            .timeout_recv_response(Some(PATIENCE))
            .timeout_per_read(Some(PATIENCE))
            .user_agent(concat!("anchorhood/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        let name = self.to.file_name().unwrap_or_default().to_string_lossy();
        let (mut vain, mut pause) = (0, self.pause);
        loop {
            let before = file.length();
            let why = match self.attempt(&agent, file, on_event) {
                Ok(()) => return Ok(()),
                Err(Trouble::Lasting(why)) => {
                    return Err(Error::failed(format!("{}: {why}", self.url)));
                }
                Err(Trouble::Passing(why)) => why,
            };
            if file.length() > before {
                (vain, pause) = (0, self.pause);
            }
            vain += 1;
            if vain >= ATTEMPTS {
                return Err(Error::failed(format!(
                    "{}: {why}; gave up after {ATTEMPTS} attempts. Is this machine \
                     online? The same command goes on where it was; if that does not help, {}",
                    self.url, self.otherwise
                )));
            }
            on_event(FetchEvent::Note(format!("{name}: {why}; trying again")));
            std::thread::sleep(pause);
            pause *= 2;
        }
    }

    /// Asks for what is missing, and takes what comes.
    fn attempt(
        &self,
        agent: &Agent,
        file: &mut AppendFile,
        on_event: OnFetch,
    ) -> Result<(), Trouble> {
        let mut have = file.length();
        let mut request = agent.get(self.url);
        if have > 0 {
            request = request.header("Range", format!("bytes={have}-"));
        }
        let mut response = request.call().map_err(trouble)?;
        let total = match response.status().as_u16() {
            206 => match content_range(&response) {
                Some((start, total)) if start == have => total,
                _ => {
                    return Err(restart(
                        file,
                        "the server answered another range than was asked for",
                    )?);
                }
            },
            // The server knows no ranges: everything comes again.
            200 => {
                file.truncate(0)?;
                have = 0;
                response.body().content_length()
            }
            416 => {
                return match content_range(&response) {
                    Some((_, Some(total))) if total == have => Ok(()),
                    _ => Err(restart(file, "the server has less than was downloaded before")?),
                };
            }
            status @ (408 | 425 | 429 | 500..=599) => {
                return Err(Trouble::Passing(format!("the server answered {status}")));
            }
            status => return Err(Trouble::Lasting(refusal(status, self.otherwise))),
        };
        let shown = total.unwrap_or(u64::from(self.megabytes) * 1_000_000);
        let name = self.to.file_name().unwrap_or_default().to_string_lossy();
        let mut body = response.body_mut().as_reader();
        let mut buffer = vec![0; 1 << 16];
        loop {
            on_event(FetchEvent::Bytes { what: &name, done: have, total: shown.max(have) });
            let n = match body.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Trouble::Passing(format!("the connection broke ({e})"))),
            };
            file.append(&buffer[..n])?;
            have += n as u64;
        }
        match total {
            Some(total) if have < total => {
                Err(Trouble::Passing(format!("the connection ended after {have} of {total} bytes")))
            }
            _ => Ok(()),
        }
    }
}

/// Throws away what was downloaded, to begin again.
fn restart(file: &mut AppendFile, why: &str) -> Result<Trouble, Trouble> {
    file.truncate(0)?;
    Ok(Trouble::Passing(why.into()))
}

fn refusal(status: u16, otherwise: &str) -> String {
    let meaning = match status {
        401 | 403 => " (not allowed)",
        404 | 410 => " (not there)",
        _ => "",
    };
    format!("the server answered {status}{meaning}; {otherwise}")
}

fn trouble(error: ureq::Error) -> Trouble {
    use ureq::Error::*;
    match error {
        HostNotFound => Trouble::Passing("the server's name cannot be resolved".into()),
        ConnectionFailed => Trouble::Passing("no connection to the server".into()),
        Io(e) => Trouble::Passing(format!("no connection to the server ({e})")),
        Timeout(_) => Trouble::Passing("the server does not answer".into()),
        BadUri(_) | Http(_) | RequireHttpsOnly(_) => {
            Trouble::Lasting(format!("this is no address to download from ({error})"))
        }
        Tls(_) | Rustls(_) | TooManyRedirects | RedirectFailed => {
            Trouble::Lasting(error.to_string())
        }
        other => Trouble::Passing(other.to_string()),
    }
}

/// Start and whole length of `bytes 5-9/10`, `bytes 5-9/*` or `bytes */10`.
fn content_range<T>(response: &Response<T>) -> Option<(u64, Option<u64>)> {
    let value = response.headers().get("content-range")?.to_str().ok()?;
    let (range, total) = value.trim().strip_prefix("bytes")?.trim().split_once('/')?;
    let start = range.split('-').next()?.trim();
    let start = match start {
        "*" => 0,
        number => number.parse().ok()?,
    };
    Some((start, total.trim().parse().ok()))
}
