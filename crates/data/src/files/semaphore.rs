//! Who may decode now? A semaphore counted in bytes, so that large pictures do not meet in memory.
//!
//! * One picture always gets through, however large: it waits until it is alone.
//! * Those who wait are served in their order, so that a large one is not passed for ever by
//!   smaller ones.
//! * A small one never waits: so many of them as there are cores take an eighth of the budget
//!   together.
//!
//! Whoever holds a permit asks for no other, nor waits for anybody who might: so nobody waits for
//! ever.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes that may be in use at a time.
pub(crate) struct Semaphore {
    budget: u64,
    small: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    used: u64,
    /// The number of the next that comes, and of the next that is served.
    coming: u64,
    served: u64,
}

/// The right to use some bytes, until it is dropped.
pub(crate) struct Permit<'a> {
    semaphore: &'a Semaphore,
    bytes: u64,
}

impl Semaphore {
    /// With so many bytes for so many cores.
    pub fn new(budget: u64, cores: usize) -> Self {
        Semaphore {
            budget,
            small: budget / (8 * cores.max(1) as u64),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Waits until so many bytes may be used.
    pub fn acquire(&self, bytes: u64) -> Permit<'_> {
        if bytes <= self.small {
            let semaphore = self;
            return Permit { semaphore, bytes: 0 };
        }
        let mut state = self.lock();
        let number = state.coming;
        state.coming += 1;
        let waits = |s: &mut State| {
            s.served != number || (s.used > 0 && s.used.saturating_add(bytes) > self.budget)
        };
        let waited = self.changed.wait_while(state, waits);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.used = state.used.saturating_add(bytes);
        state.served += 1;
        self.changed.notify_all();
        Permit { semaphore: self, bytes }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.semaphore.lock().used -= self.bytes;
            self.semaphore.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    /// Threads that ask for all sizes, more than the budget among them: all end, and never do two
    /// meet that do not fit.
    #[test]
    fn what_is_in_use_fits_or_is_one_alone() {
        let semaphore = Semaphore::new(1000, 1);
        let (used, holders) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8_u64 {
                let (semaphore, used, holders) = (&semaphore, &used, &holders);
                scope.spawn(move || {
                    for i in 0..200 {
                        let bytes = 126 + (thread * 7919 + i * 104_729) % 1500;
                        let _permit = semaphore.acquire(bytes);
                        let now = used.fetch_add(bytes, Ordering::SeqCst) + bytes;
                        let alone = holders.fetch_add(1, Ordering::SeqCst) == 0;
                        assert!(now <= 1000 || alone, "{now} bytes at once");
                        holders.fetch_sub(1, Ordering::SeqCst);
                        used.fetch_sub(bytes, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(semaphore.lock().used, 0);
    }

    #[test]
    fn small_ones_never_wait_and_large_ones_in_turn() {
        let semaphore = Semaphore::new(1000, 4);
        let large = semaphore.acquire(5000);
        let clock = Instant::now();
        drop(semaphore.acquire(1000 / 32));
        assert!(clock.elapsed() < Duration::from_secs(5), "it did not wait");
        std::thread::scope(|scope| {
            let second = scope.spawn(|| drop(semaphore.acquire(32)));
            while semaphore.lock().coming < 2 {
                std::thread::yield_now();
            }
            assert!(!second.is_finished(), "a middling one waits for its turn");
            drop(large);
        });
    }

    #[test]
    fn a_panic_gives_back_what_it_held() {
        let semaphore = Semaphore::new(10, 1);
        let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _permit = semaphore.acquire(100);
            panic!("a decoder");
        }));
        assert!(panics.is_err());
        assert_eq!(semaphore.lock().used, 0);
    }
}
