//! How far something is: a bar on a terminal, a line for every tenth otherwise. On stderr: stdout holds results.

use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows how much is done of a known or unknown whole.
pub struct Meter {
    bar: ProgressBar,
    what: String,
    bytes: bool,
    /// The last tenth that got a line.
    told: AtomicU64,
}

impl Meter {
    /// Of things that are counted.
    pub fn of_things(what: &str) -> Self {
        Self::new(
            what,
            false,
            "{prefix} {wide_bar:.cyan/238} {human_pos}/{human_len}, {eta} left",
        )
    }

    /// Of bytes.
    pub fn of_bytes(what: &str) -> Self {
        Self::new(
            what,
            true,
            "{prefix} {wide_bar:.cyan/238} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left",
        )
    }

    fn new(what: &str, bytes: bool, template: &str) -> Self {
        // Hidden by indicatif itself when stderr is no terminal.
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(10));
        let style = ProgressStyle::with_template(template).expect("a fixed template");
        bar.set_style(style.progress_chars("━╸─"));
        bar.set_prefix(what.to_owned());
        Meter {
            bar,
            what: what.into(),
            bytes,
            told: AtomicU64::new(0),
        }
    }

    /// So much is done; a `total` of 0 is unknown.
    pub fn set(&self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        if !self.bar.is_hidden() || total == 0 {
            return;
        }
        let tenth = done * 10 / total;
        if self.told.fetch_max(tenth, Ordering::Relaxed) < tenth {
            let size = match self.bytes {
                true => format!("{} of {} MB", done / 1_000_000, total.div_ceil(1_000_000)),
                false => format!("{done} of {total}"),
            };
            eprintln!("{}: {size}", self.what);
        }
    }

    /// Says something beside the bar.
    pub fn say(&self, text: &str) {
        match self.bar.is_hidden() {
            true => eprintln!("{text}"),
            false => self.bar.println(text),
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
