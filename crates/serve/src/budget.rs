//! How many bytes may uploads hold together?
//!
//! An upload pays for what has come of it, piece by piece, and not for what its header promises:
//! else eight clients that promise 32 MB and send nothing would keep everybody out. When there is
//! nothing left an upload waits a while for others to end, and is then asked to come again: waiting
//! for ever, each with a half, none of them would end. Pieces are all of one size, so that what one
//! upload gives back is what the next one needs: a buffer that grows leaves holes, and took 433 MiB
//! where 256 were held. By hand: tower's limits count requests, not bytes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::error::Refusal;

/// Bytes of a piece; who has sent one byte holds so many.
const PIECE: usize = 16 << 10;
/// How long an upload waits for others to give back, over all its pieces.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes to be held, at most `u32::MAX`.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Semaphore>);

/// Bytes held; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    permit: Option<OwnedSemaphorePermit>,
    budget: Budget,
    /// How long it will wait for more, in all.
    patience: Duration,
}

impl Budget {
    pub fn new(bytes: usize) -> Budget {
        Budget(Arc::new(Semaphore::new(bytes.min(u32::MAX as usize))))
    }

    /// A place where bytes can be held, and none yet.
    pub fn nothing(&self) -> Held {
        Held { permit: None, budget: self.clone(), patience: PATIENCE }
    }
}

/// An upload as far as it has come.
#[derive(Debug)]
pub(crate) struct Pieces {
    pieces: Vec<Vec<u8>>,
    held: Held,
    /// What may come still.
    left: usize,
}

impl Pieces {
    /// Nothing yet, of `most` bytes.
    pub fn new(budget: &Budget, most: usize) -> Pieces {
        Pieces { pieces: vec![], held: budget.nothing(), left: most }
    }

    /// Adds what has come, at most [`left`](Self::left), when there is room.
    pub async fn add(&mut self, mut part: &[u8]) -> Result<(), Refusal> {
        while !part.is_empty() {
            let room = self.room().await?;
            let (now, later) = part.split_at(part.len().min(room.capacity() - room.len()));
            room.extend_from_slice(now);
            self.left -= now.len();
            part = later;
        }
        Ok(())
    }

    /// A piece that is not full.
    async fn room(&mut self) -> Result<&mut Vec<u8>, Refusal> {
        if self.pieces.last().is_none_or(|p| p.len() == p.capacity()) {
            let piece = PIECE.min(self.left.max(1));
            self.held.hold(self.held.bytes() + piece).await?;
            self.pieces.push(Vec::with_capacity(piece));
        }
        self.pieces.last_mut().ok_or_else(|| Refusal::failed("there is no room"))
    }

    /// What more may come.
    pub fn left(&self) -> usize {
        self.left
    }

    /// All of it in one, and what is held for it.
    pub fn joined(self) -> (Vec<u8>, Held) {
        (self.pieces.concat(), self.held)
    }
}

impl Held {
    pub fn bytes(&self) -> usize {
        self.permit.as_ref().map_or(0, |permit| permit.num_permits())
    }

    /// Holds `bytes` at least.
    pub async fn hold(&mut self, bytes: usize) -> Result<(), Refusal> {
        if bytes <= self.bytes() {
            return Ok(());
        }
        let full = || Refusal::busy("there are too many uploads at once; send it again in a while");
        let more = u32::try_from(bytes - self.bytes()).map_err(|_| full())?;
        let begun = Instant::now();
        let more = self.budget.0.clone().acquire_many_owned(more);
        let taken = timeout(self.patience, more).await;
        self.patience = self.patience.saturating_sub(begun.elapsed());
        // The semaphore is never closed.
        let taken = taken.map_err(|_| full())?.map_err(|_| full())?;
        match &mut self.permit {
            Some(held) => held.merge(taken),
            None => self.permit = Some(taken),
        }
        Ok(())
    }

    /// Gives back what is more than `bytes`.
    pub fn shrink(&mut self, bytes: usize) {
        let more = self.bytes().saturating_sub(bytes);
        // What is split off is given back at once.
        drop(self.permit.as_mut().and_then(|held| held.split(more)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::block_on;

    #[test]
    fn what_comes_is_paid_for_by_pieces() {
        block_on(async {
            let budget = Budget::new(1 << 20);
            let bytes: Vec<u8> = (0..3 * PIECE + 5).map(|i| i as u8).collect();
            let mut pieces = Pieces::new(&budget, bytes.len());
            assert_eq!(budget.0.available_permits(), 1 << 20);
            pieces.add(&bytes[..1]).await.unwrap();
            assert_eq!(pieces.held.bytes(), PIECE);
            pieces.add(&bytes[1..PIECE]).await.unwrap();
            assert_eq!(pieces.held.bytes(), PIECE);
            pieces.add(&bytes[PIECE..]).await.unwrap();
            assert_eq!((pieces.held.bytes(), pieces.left()), (bytes.len(), 0));
            let (joined, held) = pieces.joined();
            assert!(joined == bytes);
            assert_eq!(budget.0.available_permits(), (1 << 20) - bytes.len());
            drop(held);
            assert_eq!(budget.0.available_permits(), 1 << 20);
        });
    }

    #[test]
    fn what_is_not_needed_is_given_back() {
        block_on(async {
            let budget = Budget::new(1000);
            let mut held = budget.nothing();
            assert_eq!(held.bytes(), 0);
            held.hold(300).await.unwrap();
            held.hold(200).await.unwrap();
            assert_eq!((held.bytes(), budget.0.available_permits()), (300, 700));
            held.shrink(100);
            held.shrink(200);
            assert_eq!((held.bytes(), budget.0.available_permits()), (100, 900));
            drop(held);
            assert_eq!(budget.0.available_permits(), 1000);
        });
    }

    #[test]
    fn others_wait_until_something_is_given_back() {
        block_on(async {
            let budget = Budget::new(100);
            let (mut first, mut second) = (budget.nothing(), budget.nothing());
            first.hold(80).await.unwrap();
            let later = async {
                tokio::time::sleep(Duration::from_millis(30)).await;
                first.shrink(0);
            };
            let (held, ()) = tokio::join!(second.hold(50), later);
            held.unwrap();
            assert_eq!(second.bytes(), 50);
        });
    }
}
