//! Numbers that one owner appends to while others read those that were there. All share one memory.

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Numbers to be appended to. What was [shared](GrowingValues::share) stays as it is.
#[derive(Debug)]
pub struct GrowingValues(SharedValues);

/// The first of them, as they were when they were shared; clones are the same memory.
#[derive(Clone)]
pub struct SharedValues {
    storage: Arc<Storage>,
    len: usize,
}

/// Memory of which the capacity alone counts: which numbers are written, whoever holds it knows.
struct Storage(Vec<UnsafeCell<f32>>);

// SAFETY: a number is written by the one owner of `GrowingValues`, before anybody is given a range
// with it; or later, where nobody else has the storage.
unsafe impl Sync for Storage {}

impl GrowingValues {
    /// None yet, and memory for so many, where there is so much.
    pub fn with_capacity(numbers: usize) -> GrowingValues {
        GrowingValues(SharedValues { storage: Arc::new(Storage::of(0, numbers)), len: 0 })
    }

    /// Appends numbers. Only where they do not fit, all are copied.
    pub fn extend(&mut self, numbers: &[f32]) {
        let old = self.0.len;
        let needed = old + numbers.len();
        let capacity = self.0.storage.0.capacity();
        if needed > capacity {
            self.copy(Storage::of(needed, needed.max(2 * capacity)));
        }
        // SAFETY: up to the capacity, and beyond all ranges that were shared.
        unsafe { self.0.storage.write(old, numbers) };
        self.0.len = needed;
    }

    /// Writes numbers over some that are there. Where these are shared, all are copied.
    pub fn overwrite(&mut self, from: usize, numbers: &[f32]) {
        assert!(from + numbers.len() <= self.0.len, "they are not there");
        if Arc::get_mut(&mut self.0.storage).is_none() {
            let capacity = self.0.storage.0.capacity();
            self.copy(Storage::of(self.0.len, capacity));
        }
        // SAFETY: looked at above; nobody else has the storage.
        unsafe { self.0.storage.write(from, numbers) };
    }

    /// All that are there now, to be kept.
    pub fn share(&self) -> SharedValues {
        self.0.clone()
    }

    fn copy(&mut self, to: Storage) {
        // SAFETY: it is new, and large enough for them.
        unsafe { to.write(0, &self.0) };
        self.0.storage = Arc::new(to);
    }
}

impl Deref for GrowingValues {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.0
    }
}

impl Storage {
    /// Memory for as many as are wanted, or where there is not so much, for those that are needed.
    fn of(needed: usize, wanted: usize) -> Storage {
        let mut memory = vec![];
        if memory.try_reserve_exact(wanted).is_err() {
            memory.reserve_exact(needed);
        }
        Storage(memory)
    }

    /// Writes numbers at a place.
    ///
    /// # Safety
    ///
    /// The place is within the capacity, and nobody reads or writes there meanwhile.
    unsafe fn write(&self, from: usize, numbers: &[f32]) {
        debug_assert!(from + numbers.len() <= self.0.capacity());
        // SAFETY: as the caller promises; new memory and what is read for it are not the same.
        unsafe {
            let to = UnsafeCell::raw_get(self.0.as_ptr().add(from));
            std::ptr::copy_nonoverlapping(numbers.as_ptr(), to, numbers.len());
        }
    }
}

impl Deref for SharedValues {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: so many were written before this range was made, and nobody writes to them while
        // it is there.
        unsafe { std::slice::from_raw_parts(self.storage.0.as_ptr().cast(), self.len) }
    }
}

impl fmt::Debug for SharedValues {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} shared numbers", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_is_shared_and_nothing_is_copied() {
        let mut values = GrowingValues::with_capacity(1000);
        let shared: Vec<SharedValues> = (0..1000)
            .map(|i| {
                values.extend(&[i as f32]);
                values.share()
            })
            .collect();
        for (i, shared) in shared.iter().enumerate() {
            assert_eq!(shared.as_ptr(), values.as_ptr());
            assert!((0..=i).map(|v| v as f32).eq(shared.iter().copied()));
        }
    }

    #[test]
    fn what_was_shared_stays_as_it_was() {
        let mut values = GrowingValues::with_capacity(2);
        values.extend(&[1.0, 2.0]);
        let before = values.share();
        values.overwrite(1, &[5.0]);
        let (after, own) = (values.share(), values.as_ptr());
        values.extend(&[3.0, 4.0]);
        assert_eq!((&*before, &*after), (&[1.0, 2.0][..], &[1.0, 5.0][..]));
        assert_eq!(*values, [1.0, 5.0, 3.0, 4.0]);
        assert_ne!(values.as_ptr(), own, "there was no room");
        // Nobody else has it, so it is written to where it lies.
        let own = values.as_ptr();
        values.overwrite(0, &[7.0]);
        assert_eq!((values.as_ptr(), values[0]), (own, 7.0));
    }

    #[test]
    fn others_read_while_it_grows() {
        const MOST: usize = 20_000;
        let mut values = GrowingValues::with_capacity(MOST);
        let (send, receive) = std::sync::mpsc::channel::<SharedValues>();
        std::thread::scope(|scope| {
            let sums = scope.spawn(move || {
                let right = |v: &SharedValues| v.iter().zip(0..).all(|(v, i)| *v == i as f32);
                receive.iter().all(|values| right(&values))
            });
            for i in 0..MOST {
                values.extend(&[i as f32]);
                if i % 100 == 0 {
                    send.send(values.share()).unwrap();
                }
            }
            drop(send);
            assert!(sums.join().unwrap());
        });
    }
}
