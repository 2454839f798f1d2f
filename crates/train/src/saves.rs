//! When a run is saved: so often that little is lost to a crash, so seldom that it costs little.

use std::time::{Duration, Instant};

/// What may be lost to a crash anyway, where an epoch takes less.
const LEAST: Duration = Duration::from_secs(10);

/// How much longer a run trains between two checkpoints than it took to write one: a sixtieth of
/// the time is the most that saving takes.
const TIMES: u32 = 60;

/// The checkpoints of this process.
#[derive(Default)]
pub(crate) struct Saves {
    last: Option<(Instant, Duration)>,
}

impl Saves {
    /// Whether it is time for another one.
    pub(crate) fn due(&self) -> bool {
        self.last.is_none_or(|(at, took)| at.elapsed() >= pause_after(took))
    }

    /// One was written, begun at this time.
    pub(crate) fn written(&mut self, begun: Instant) {
        self.last = Some((Instant::now(), begun.elapsed()));
    }
}

/// How long a run trains after a checkpoint before the next.
pub(crate) fn pause_after(took: Duration) -> Duration {
    LEAST.max(TIMES * took)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_due_and_the_next_after_a_pause() {
        let mut saves = Saves::default();
        assert!(saves.due());
        saves.written(Instant::now());
        assert!(!saves.due());
    }

    #[test]
    fn what_takes_long_is_written_seldom() {
        assert_eq!(pause_after(Duration::from_millis(150)), LEAST);
        assert_eq!(pause_after(Duration::from_secs(2)), Duration::from_secs(120));
    }
}
