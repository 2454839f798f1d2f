//! Events as someone sees them: bars on a terminal, lines in a log, JSON for a program.
//!
//! Progress goes to stderr, so that stdout holds results alone: the table, or with `--json` the
//! events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anchorhood::{Accuracy, Event};
use anchorhood_train::{
    Discovered, LabelFreeEvaluated, PretextMeasured, PretextShare, RunStarted, Subject, TimeFitted,
};
use indicatif::ProgressBar;

use crate::terminal::bar::styled;
use crate::terminal::output::{self, duration, grouped};

/// How to show events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Bars on a terminal, lines otherwise.
    Human,
    /// The same for many runs: none of them has a line for each epoch.
    Brief,
    /// Events on stdout.
    Json,
    /// Warnings only.
    Quiet,
    /// Nothing: another process speaks.
    Silent,
}

/// Shows events.
pub struct Drawer {
    style: Style,
    bar: ProgressBar,
    stop: Arc<AtomicBool>,
    closed: bool,
}

impl Drawer {
    /// `stop` is set when nobody reads stdout any more.
    pub fn new(style: Style, stop: Arc<AtomicBool>) -> Self {
        let bar = styled(!matches!(style, Style::Human | Style::Brief));
        bar.set_prefix("getting ready");
        Drawer { style, bar, stop, closed: false }
    }

    /// Shows an event.
    pub fn event(&mut self, event: &Event) {
        match self.style {
            // What is said while a run gets ready is for people.
            Style::Json if matches!(event, Event::Note { .. } | Event::Loading { .. }) => {}
            Style::Json => self.json(event),
            Style::Quiet => {
                if let Event::Warning { message } = event {
                    eprintln!("warning: {message}");
                }
            }
            Style::Human | Style::Brief => self.human(event),
            Style::Silent => {}
        }
    }

    /// Says what is good to know.
    pub fn note(&mut self, text: &str) {
        self.event(&Event::note(text));
    }

    /// Whether stdout was closed under it.
    pub fn closed(&self) -> bool {
        self.closed
    }

    /// So much of something is done.
    pub fn step(&self, what: String, done: usize, total: usize, message: Option<String>) {
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
        self.bar.set_prefix(what);
        self.bar.set_message(message.unwrap_or_else(|| format!("{done}/{total}")));
    }

    fn say(&self, text: &str) {
        if self.bar.is_hidden() {
            eprintln!("{text}");
        } else {
            self.bar.println(output::printable(text));
        }
    }

    /// Takes the bar away until something happens again: a table is about to be printed.
    pub fn clear(&self) {
        self.bar.suspend(|| {});
        self.bar.reset();
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn json(&mut self, event: &Event) {
        if self.closed {
            return;
        }
        let text = serde_json::to_string(event).expect("events are plain values");
        if output::line(&text).is_err() {
            self.closed = true;
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn human(&mut self, event: &Event) {
        match event {
            Event::Progress(p) => {
                let left = duration(p.seconds_left);
                let message = format!(
                    "loss {:.4}, {:.0} pictures/s, {left} left",
                    p.loss, p.pictures_per_second
                );
                let what = format!("round {} epoch {}", p.round, p.epoch + 1);
                self.step(what, p.batch, p.batches, Some(message));
            }
            Event::Discovering { round, done, pictures } => {
                self.step(format!("round {round} discovery"), *done, *pictures, None)
            }
            Event::Loading { pictures: 0, .. } => {}
            Event::Loading { done, pictures } => {
                self.step("reading pictures".into(), *done, *pictures, None);
            }
            Event::EpochEnded(_) if self.style == Style::Brief => {}
            other => {
                if let Some(text) = sentence(other) {
                    self.say(&text);
                }
            }
        }
    }
}

/// An event as a line, if it is worth one.
fn sentence(event: &Event) -> Option<String> {
    Some(match event {
        Event::TimeFitted(t) => fitted(t),
        Event::RunStarted(s) => started(s),
        Event::Warning { message } => format!("warning: {message}"),
        Event::Note { message } => message.clone(),
        Event::RoundStarted { round: 0, .. } => "round 0: every picture on its own".into(),
        Event::Discovered(d) => discovered(d),
        Event::EpochEnded(e) => format!(
            "round {} epoch {}/{}: loss {:.4}, learning rate {:.2e}, {:.0} pictures/s, {:.1} s",
            e.round,
            e.epoch + 1,
            e.epochs,
            e.loss,
            e.rate,
            e.pictures_per_second,
            e.seconds
        ),
        Event::Evaluated(e) => {
            format!("{}: {}", subject(e.subject), accuracy(&e.accuracy))
        }
        Event::Pretext(p) => pretext(p),
        Event::LabelFree(e) => format!("{}: {}", subject(e.subject), label_free(e)),
        Event::StoppedEarly(e) => format!(
            "stopped early after round {} epoch {}: {} verdicts without labels in a row were \
             clearly worse than the best",
            e.round,
            e.epoch + 1,
            e.worse
        ),
        _ => return None,
    })
}

fn fitted(t: &TimeFitted) -> String {
    let minutes = match t.minutes {
        1.0 => "1 minute is".into(),
        minutes => format!("{minutes} minutes are"),
    };
    let rounds = match t.rounds {
        0 => String::new(),
        rounds => format!(" in each of {} rounds", rounds + 1),
    };
    let warm_up = match t.shortened {
        true => format!("; the warm-up is shortened to {:.1} of them", t.warm_up),
        false => String::new(),
    };
    let epochs = match t.epochs {
        1 => "1 epoch".into(),
        epochs => format!("{} epochs", grouped(epochs)),
    };
    format!(
        "{minutes} {epochs}{rounds}, at {} pictures a second{warm_up}",
        grouped(t.pictures_per_second.round() as usize)
    )
}

fn subject(of: Subject) -> String {
    match of {
        Subject::RawPixels => "raw pixels".into(),
        Subject::Untrained => "untrained network".into(),
        Subject::Before => "the model before".into(),
        Subject::Trained { round, epoch } => format!("round {round} epoch {}", epoch + 1),
        Subject::Model { size } => format!("the model, given {size}×{size}"),
    }
}

fn pretext(p: &PretextMeasured) -> String {
    let figure = |f: &PretextShare| {
        let chance = f.chance.map(|c| format!(" (by chance {:.1}%)", 100.0 * c));
        let chance = chance.unwrap_or_default();
        format!("{} {:.1}%{chance}", f.name, 100.0 * f.share)
    };
    let figures: Vec<String> = p.figures.iter().map(figure).collect();
    format!("round {} epoch {}, its own task: {}", p.round, p.epoch + 1, figures.join(", "))
}

fn label_free(e: &LabelFreeEvaluated) -> String {
    format!(
        "without labels {:.1}%: {:.1}% of changed copies find their original, {:.1}% of neighbours \
         are shared; effective rank {:.1}, \
         uniformity {:.2} ({} pictures)",
        100.0 * e.figures.score,
        100.0 * e.figures.found,
        100.0 * e.figures.agreement,
        e.figures.effective_rank,
        e.figures.uniformity,
        grouped(e.figures.pictures)
    )
}

fn started(s: &RunStarted) -> String {
    let test = match (s.test_pictures, s.validation) {
        (0, _) => "no labels".into(),
        (n, false) => format!("{} to test on", grouped(n)),
        (n, true) => format!("validated on {} training pictures held out", grouped(n)),
    };
    let mut text = format!(
        "{}: {} pictures of {}×{}, {test}; {}, {} weights; {} + 1 rounds of {} epochs, batch {}, \
         seed {}; {}",
        s.data,
        grouped(s.pictures),
        s.size,
        s.size,
        s.network,
        grouped(s.weights),
        s.rounds,
        s.epochs,
        s.batch,
        s.seed,
        s.device
    );
    if let Some(position) = s.resumed {
        text.push_str(&format!("; resumed at {position}"));
    }
    text
}

fn discovered(d: &Discovered) -> String {
    let mut text = format!(
        "round {}: {} of {} pictures are anchors",
        d.round,
        grouped(d.anchors),
        grouped(d.pictures)
    );
    if let Some(c) = d.consistency
        && let Some(share) = c.share()
    {
        text.push_str(&format!(
            ", {:.1}% of them with neighbours of their own class",
            share * 100.0
        ));
    }
    if let Some(recall) = d.recall {
        text.push_str(&format!(
            "; looked for approximately, {:.1}% of the true neighbours are found",
            recall * 100.0
        ));
    }
    text + &format!(
        "; entropy {:.3}, of anchors {:.3}; {:.2} s",
        d.mean_entropy, d.anchor_entropy, d.seconds
    )
}

/// An accuracy in words.
pub fn accuracy(a: &Accuracy) -> String {
    let top5 = a.top5.map(|t| format!(", top-5 {:.1}%", t * 100.0));
    format!(
        "kNN top-1 {:.1}%{} ({} pictures, k {}, τ {})",
        a.top1 * 100.0,
        top5.unwrap_or_default(),
        grouped(a.n),
        a.k,
        a.temperature
    )
}
