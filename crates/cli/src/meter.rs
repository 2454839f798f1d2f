//! How far a long computation is: a bar on a terminal, a line now and then in a pipe, nothing where it would disturb.

use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Lines in a pipe, at most.
const LINES: usize = 2;

/// Progress of one thing.
pub struct Meter {
    what: String,
    total: usize,
    bar: ProgressBar,
    quiet: bool,
    /// Which part was told last.
    told: AtomicUsize,
}

impl Meter {
    /// Of `what`, which is done when `total` is.
    pub fn new(what: impl Into<String>, total: usize, quiet: bool) -> Self {
        let target = match quiet {
            true => ProgressDrawTarget::hidden(),
            // Hidden by indicatif itself when stderr is no terminal.
            false => ProgressDrawTarget::stderr_with_hz(10),
        };
        let bar = ProgressBar::with_draw_target(Some(total as u64), target);
        let template = "{prefix} {wide_bar:.cyan/238} {pos}/{len} {msg}";
        let style = ProgressStyle::with_template(template).expect("a fixed template");
        bar.set_style(style.progress_chars("━╸─"));
        let what = what.into();
        bar.set_prefix(what.clone());
        Meter {
            what,
            total,
            bar,
            quiet,
            told: AtomicUsize::new(0),
        }
    }

    /// So much is done; `word` says what it looks like.
    pub fn at(&self, done: usize, word: &str) {
        self.bar.set_position(done as u64);
        self.bar.set_message(word.to_string());
        let part = done * LINES / self.total.max(1);
        let news = self.told.fetch_max(part, Ordering::Relaxed) < part;
        if news && !self.quiet && self.bar.is_hidden() {
            eprintln!("{}: {done}/{} {word}", self.what, self.total);
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
