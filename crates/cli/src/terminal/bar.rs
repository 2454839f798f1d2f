//! How far is it? A bar with the time left on a terminal, a line at every tenth in a pipe. On
//! stderr: stdout holds results.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal::output::{duration, grouped, printable};

/// A bar in the program's style; hidden where asked, and where stderr is no terminal.
pub fn styled(hidden: bool) -> ProgressBar {
    let target = match hidden {
        true => ProgressDrawTarget::hidden(),
        // Hidden by indicatif itself when stderr is no terminal.
        false => ProgressDrawTarget::stderr_with_hz(10),
    };
    let bar = ProgressBar::with_draw_target(None, target);
    let template = "{prefix} {wide_bar:.cyan/238} {msg}";
    let style = ProgressStyle::with_template(template).expect("a fixed template");
    bar.set_style(style.progress_chars("━╸─"));
    bar
}

/// Progress through a number of things, or of bytes.
pub struct Bar {
    bar: ProgressBar,
    what: String,
    bytes: bool,
    quiet: bool,
    started: Instant,
    /// How much was done before it began.
    before: AtomicU64,
    /// The last tenth that got a line.
    told: AtomicU64,
}

impl Bar {
    /// `what` says what is done to the things. A quiet one shows nothing.
    pub fn new(what: impl Into<String>, quiet: bool) -> Bar {
        let (bar, what) = (styled(quiet), what.into());
        bar.set_prefix(printable(&what).into_owned());
        Bar {
            bar,
            what,
            bytes: false,
            quiet,
            started: Instant::now(),
            before: AtomicU64::new(0),
            told: AtomicU64::new(0),
        }
    }

    /// The same for bytes.
    pub fn of_bytes(what: impl Into<String>) -> Bar {
        let mut bar = Bar::new(what, false);
        bar.bytes = true;
        bar
    }

    /// So much was done before, and says nothing about the time left.
    pub fn goes_on_from(&self, before: usize) {
        self.before.store(before as u64, Ordering::Relaxed);
    }

    /// So much is done; a `total` of 0 is not known yet.
    pub fn at(&self, done: usize, total: usize) {
        self.with(done, total, "");
    }

    /// The same, and something to say of it.
    pub fn with(&self, done: usize, total: usize, word: &str) {
        let (done, total) = (done as u64, total as u64);
        if !self.bar.is_hidden() {
            self.bar.set_length(total);
            self.bar.set_position(done);
            self.bar.set_message(self.message(done, total, word));
        } else if !self.quiet && total > 0 {
            let tenth = done * 10 / total;
            let news = self.told.fetch_max(tenth, Ordering::Relaxed) < tenth;
            // What is over at once is worth one line, the last.
            if news && (tenth == 10 || self.started.elapsed().as_secs() >= 2) {
                eprintln!("{}: {}", self.what, self.message(done, total, word));
            }
        }
    }

    fn message(&self, done: u64, total: u64, word: &str) -> String {
        let seconds = self.started.elapsed().as_secs_f64();
        let new = done.saturating_sub(self.before.load(Ordering::Relaxed));
        let rate = new as f64 / seconds.max(1e-3);
        let mut message = match self.bytes {
            true => format!("{} of {} MB", done / 1_000_000, total.div_ceil(1_000_000)),
            false => format!("{}/{}", grouped(done as usize), grouped(total as usize)),
        };
        if rate > 0.0 && seconds >= 1.0 && done < total {
            let left = duration((total - done) as f64 / rate);
            message += &match self.bytes {
                true => format!(", {:.1} MB a second, {left} left", rate / 1e6),
                false if rate < 10.0 => format!(", {left} left"),
                false => format!(", {rate:.0} a second, {left} left"),
            };
        }
        if !word.is_empty() {
            message += ", ";
            message += word;
        }
        message
    }

    /// Says something beside the bar.
    pub fn say(&self, text: &str) {
        if self.bar.is_hidden() { eprintln!("{text}") } else { self.bar.println(printable(text)) }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A bar for each part of some work, one at a time.
pub struct Bars {
    quiet: bool,
    now: Mutex<Option<Bar>>,
}

impl Bars {
    /// Quiet ones show nothing.
    pub fn new(quiet: bool) -> Bars {
        Bars { quiet, now: Mutex::new(None) }
    }

    /// So much of a part is done, and something to say of it; from whichever thread gets there.
    pub fn at(&self, what: &str, done: usize, total: usize, word: &str) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if now.as_ref().is_some_and(|bar| bar.what != what) {
            *now = None; // its line is cleared before the next begins
        }
        now.get_or_insert_with(|| Bar::new(what, self.quiet)).with(done, total, word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages() {
        let mut bar = Bar::new("reading", true);
        assert_eq!(bar.message(1234, 10_000, ""), "1,234/10,000");
        assert_eq!(bar.message(50, 100, "loss 0.5"), "50/100, loss 0.5");
        bar.started -= std::time::Duration::from_secs(10);
        let said = bar.message(1000, 4000, "");
        assert_eq!(said, "1,000/4,000, 100 a second, 30 s left");
        assert_eq!(bar.message(4000, 4000, ""), "4,000/4,000");
        bar.goes_on_from(800);
        let said = bar.message(1000, 4000, "");
        assert_eq!(said, "1,000/4,000, 20 a second, 2 min 30 s left");
        let mut bar = Bar::of_bytes("a.tar");
        bar.started -= std::time::Duration::from_secs(10);
        let said = bar.message(50_000_000, 100_000_000, "");
        assert_eq!(said, "50 of 100 MB, 5.0 MB a second, 10 s left");
    }
}
