//! How far is it? A bar on a terminal, a line at every tenth in a pipe.

use std::sync::Mutex;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::{duration, grouped};

/// Progress through a known number of things.
pub struct Bar {
    bar: ProgressBar,
    what: String,
    total: usize,
    quiet: bool,
    started: Instant,
    told: Mutex<usize>,
}

impl Bar {
    /// A bar for `total` things; `what` says what is done to them.
    pub fn new(what: &str, total: usize, quiet: bool) -> Bar {
        let target = match quiet {
            true => ProgressDrawTarget::hidden(),
            // Hidden by indicatif itself when stderr is no terminal.
            false => ProgressDrawTarget::stderr_with_hz(10),
        };
        let bar = ProgressBar::with_draw_target(Some(total as u64), target);
        let template = "{prefix} {wide_bar:.cyan/238} {msg}";
        let style = ProgressStyle::with_template(template).expect("a fixed template");
        bar.set_style(style.progress_chars("━╸─"));
        bar.set_prefix(what.to_string());
        Bar {
            bar,
            what: what.into(),
            total,
            quiet,
            started: Instant::now(),
            told: Mutex::new(0),
        }
    }

    /// So many are done, of which `before` were when it began.
    pub fn at(&self, done: usize, before: usize) {
        let seconds = self.started.elapsed().as_secs_f64();
        let rate = done.saturating_sub(before) as f64 / seconds.max(1e-3);
        let left = self.total.saturating_sub(done) as f64 / rate.max(1e-9);
        let message = || match rate > 0.0 {
            true => format!(
                "{}/{}, {rate:.0} a second, {} left",
                grouped(done),
                grouped(self.total),
                duration(left)
            ),
            false => format!("{}/{}", grouped(done), grouped(self.total)),
        };
        if !self.bar.is_hidden() {
            self.bar.set_position(done as u64);
            self.bar.set_message(message());
        } else if !self.quiet && self.total > 0 {
            // A pipe: seconds tell which jobs are worth a line.
            let tenth = done * 10 / self.total;
            let Ok(mut told) = self.told.lock() else {
                return;
            };
            if tenth > *told && seconds > 2.0 {
                eprintln!("{}: {}", self.what, message());
                *told = tenth;
            }
        }
    }

    /// Says something beside the bar.
    pub fn say(&self, text: &str) {
        match self.bar.is_hidden() {
            true => eprintln!("{text}"),
            false => self.bar.println(text),
        }
    }

    /// Takes the bar away; seconds since it began.
    pub fn finish(&self) -> f64 {
        self.bar.finish_and_clear();
        self.started.elapsed().as_secs_f64()
    }
}
