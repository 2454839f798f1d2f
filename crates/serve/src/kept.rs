//! Copies of pictures that were made already, up to so many bytes: making one may mean decoding a
//! photograph of many megapixels, and a page asks for dozens at a time, again and again the same.

use std::collections::{HashMap, VecDeque};
use std::hash::RandomState;
use std::sync::{Arc, Mutex, PoisonError};

/// What tells a copy from every other, made by the [hasher](Kept::hasher).
type Key = u64;

/// Keeps what came last.
#[derive(Debug)]
pub(crate) struct Kept {
    /// Its keys are drawn when the process starts, so that nobody can name files whose copies are
    /// taken for each other.
    pub hasher: RandomState,
    most_bytes: usize,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    bytes: usize,
    order: VecDeque<Key>,
    pictures: HashMap<Key, Arc<[u8]>>,
}

impl Kept {
    pub fn new(most_bytes: usize) -> Kept {
        Kept { hasher: RandomState::new(), most_bytes, inside: Mutex::default() }
    }

    pub fn get(&self, key: Key) -> Option<Arc<[u8]>> {
        self.inside().pictures.get(&key).cloned()
    }

    /// Keeps it; what was kept longest goes first.
    pub fn put(&self, key: Key, picture: Arc<[u8]>) {
        let mut inside = self.inside();
        inside.bytes += picture.len();
        if let Some(old) = inside.pictures.insert(key, picture) {
            // Two asked at the same time.
            inside.bytes -= old.len();
        } else {
            inside.order.push_back(key);
        }
        while inside.bytes > self.most_bytes {
            let Some(first) = inside.order.pop_front() else {
                break;
            };
            let gone = inside.pictures.remove(&first);
            inside.bytes -= gone.map_or(0, |p| p.len());
        }
    }

    fn inside(&self) -> std::sync::MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_first_goes_first() {
        let kept = Kept::new(10);
        let put = |i: u64, bytes: usize| kept.put(i, vec![i as u8; bytes].into());
        put(0, 4);
        put(1, 4);
        put(1, 5);
        assert!(kept.get(0).is_some() && kept.get(9).is_none());
        put(2, 4);
        assert!(kept.get(0).is_none());
        assert_eq!(kept.get(1).unwrap().len(), 5);
        put(3, 11);
        assert!((0..4).all(|i| kept.get(i).is_none()));
        assert_eq!(kept.inside().bytes, 0);
    }
}
