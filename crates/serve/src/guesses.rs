//! How fast may the token be guessed?
//!
//! A wrong guess is a debt that time forgives: an address may owe [`EACH`], all addresses together [`ALL`]. Whoever owes more
//! waits for a comparison, and where the wait would be long gets none, right or wrong: an answer to the right one alone would
//! tell as much as a comparison. So what a guesser does must not be counted against others:
//!
//! - debts are those of an address (of a /64 in IPv6), and the right token costs nothing;
//! - an address that has sent the right token is not kept waiting by what all together owe;
//! - a browser is known by its session cookie ([`guard`](crate::guard)), which cannot be guessed and is never throttled.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many wrong guesses may be owed, and how long it takes until one is forgiven.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    at_once: u32,
    every: Duration,
}

/// What an address may owe: two guesses a second in the long run.
const EACH: Allowance = Allowance {
    at_once: 10,
    every: Duration::from_millis(500),
};
/// What all together may owe: twenty a second.
const ALL: Allowance = Allowance {
    at_once: 100,
    every: Duration::from_millis(50),
};
/// Whoever would wait longer is sent away.
const PATIENCE: Duration = Duration::from_secs(2);
/// Addresses remembered, at most; further ones count among all alone.
const MOST_ADDRESSES: usize = 10_000;

/// Too many wrong guesses: nothing was compared.
#[derive(Debug, PartialEq)]
pub(crate) struct Throttled;

/// Who guessed wrong, and how often.
#[derive(Debug, Default)]
pub(crate) struct Guesses(Mutex<Ledger>);

impl Guesses {
    /// Compares, when `from` may; `right` says whether the guess is.
    pub async fn compare(&self, from: IpAddr, right: impl Fn() -> bool) -> Result<bool, Throttled> {
        let from = network(from);
        let wait = {
            let (mut ledger, now) = (self.ledger(), Instant::now());
            let wait = ledger.wait(from, now);
            if wait > PATIENCE {
                return Err(Throttled);
            }
            // It is owed before it is known to be wrong, so that many at once are counted.
            ledger.owe(from, now);
            wait
        };
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let right = right();
        if right {
            self.ledger().forgive(from);
        }
        Ok(right)
    }

    /// As if an address had guessed wrong so often.
    #[cfg(test)]
    pub fn owe_for_test(&self, from: IpAddr, times: usize) {
        for _ in 0..times {
            self.ledger().owe(network(from), Instant::now());
        }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whom a debt is counted against: in IPv6 one machine has a whole network of addresses.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let high = u128::from(v6) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(high))
        }
        plain => plain,
    }
}

/// When everything owed will be forgiven.
type Debt = Instant;

#[derive(Debug, Default)]
struct Ledger {
    each: HashMap<IpAddr, Debt>,
    all: Option<Debt>,
    /// Those that have sent the right token.
    trusted: HashSet<IpAddr>,
}

impl Ledger {
    fn wait(&self, from: IpAddr, now: Instant) -> Duration {
        let own = EACH.wait(self.each.get(&from), now);
        match self.trusted.contains(&from) {
            true => own,
            false => own.max(ALL.wait(self.all.as_ref(), now)),
        }
    }

    fn owe(&mut self, from: IpAddr, now: Instant) {
        if self.each.len() >= MOST_ADDRESSES {
            self.each.retain(|_, debt| *debt > now);
        }
        if self.each.len() < MOST_ADDRESSES || self.each.contains_key(&from) {
            let own = self.each.entry(from).or_insert(now);
            *own = (*own).max(now) + EACH.every;
        }
        self.all = Some(self.all.map_or(now, |debt| debt.max(now)) + ALL.every);
    }

    /// Takes back the last debt of an address that had the right token.
    fn forgive(&mut self, from: IpAddr) {
        if let Some(own) = self.each.get_mut(&from) {
            *own -= EACH.every;
        }
        if let Some(all) = &mut self.all {
            *all -= ALL.every;
        }
        if self.trusted.len() < MOST_ADDRESSES {
            self.trusted.insert(from);
        }
    }
}

impl Allowance {
    /// How long until one more may be owed.
    fn wait(&self, debt: Option<&Debt>, now: Instant) -> Duration {
        let owed = debt.map_or(Duration::ZERO, |debt| debt.saturating_duration_since(now));
        (owed + self.every).saturating_sub(self.every * self.at_once)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUESSER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const HONEST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    /// Guesses of so many seconds, as many as there may be, each made when it may.
    fn guesses(ledger: &mut Ledger, from: impl Fn(u32) -> IpAddr, seconds: u64) -> u32 {
        let begun = Instant::now();
        let (mut now, mut made) = (begun, 0);
        while now < begun + Duration::from_secs(seconds) {
            match ledger.wait(from(made), now) {
                Duration::ZERO => {
                    ledger.owe(from(made), now);
                    made += 1;
                }
                wait => now += wait,
            }
        }
        made
    }

    #[test]
    fn an_address_guesses_twice_a_second() {
        let made = guesses(&mut Ledger::default(), |_| GUESSER, 100);
        assert!((205..=211).contains(&made), "{made}");
    }

    #[test]
    fn many_addresses_guess_twenty_times_a_second() {
        let many = |i: u32| IpAddr::V4(std::net::Ipv4Addr::from(0x0a00_0000 + i));
        let made = guesses(&mut Ledger::default(), many, 100);
        assert!((2090..=2101).contains(&made), "{made}");
    }

    #[test]
    fn who_had_the_right_token_waits_for_no_guesser() {
        let (mut ledger, now) = (Ledger::default(), Instant::now());
        ledger.owe(HONEST, now);
        ledger.forgive(HONEST);
        for _ in 0..5000 {
            ledger.owe(GUESSER, now);
        }
        assert!(ledger.wait(GUESSER, now) > PATIENCE);
        assert_eq!(ledger.wait(HONEST, now), Duration::ZERO);
        // Its own mistakes count.
        for _ in 0..EACH.at_once {
            ledger.owe(HONEST, now);
        }
        assert_eq!(ledger.wait(HONEST, now), EACH.every);
    }

    #[test]
    fn the_right_token_costs_nothing() {
        let (mut ledger, now) = (Ledger::default(), Instant::now());
        for _ in 0..100_000 {
            assert_eq!(ledger.wait(HONEST, now), Duration::ZERO);
            ledger.owe(HONEST, now);
            ledger.forgive(HONEST);
        }
    }

    #[test]
    fn addresses_are_forgotten() {
        let (mut ledger, now) = (Ledger::default(), Instant::now());
        let other = |i: usize| IpAddr::V4(std::net::Ipv4Addr::from(i as u32));
        for i in 0..3 * MOST_ADDRESSES {
            ledger.owe(other(i), now);
        }
        assert_eq!(ledger.each.len(), MOST_ADDRESSES);
        ledger.owe(GUESSER, now + Duration::from_secs(3600));
        assert_eq!(ledger.each.len(), 1);
    }

    #[test]
    fn a_network_of_ipv6_is_one() {
        let parsed = |text: &str| network(text.parse().unwrap());
        assert_eq!(parsed("2001:db8:1:2:3::4"), parsed("2001:db8:1:2:ffff::"));
        assert_ne!(parsed("2001:db8:1:2::4"), parsed("2001:db8:1:3::4"));
        assert_eq!(parsed("::ffff:10.0.0.1"), GUESSER);
        assert_ne!(parsed("10.0.0.1"), parsed("10.0.0.2"));
    }
}
