//! The data loader: batches prepared ahead of training, on threads of their own.
//!
//! Batch after batch, epoch after epoch without end, in an order that depends on the seed alone
//! ([`EpochOrder`]); view v of picture i in epoch e is augmented with [`view_draws`]`(seed, e, i,
//! v)`. Threads take batch numbers in turn and hand the batches over in that order, so the bytes
//! are the same for any number of threads, and starting at (epoch, batch) gives what an
//! uninterrupted run would have had. Pictures that are still in their files are decoded just before
//! they are augmented, once for all views, those of a batch by all cores. Where several processes
//! train together, each prepares its own part of every batch. The order of the next epoch is made
//! halfway through the current one. Buffers given back are used again.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use rayon::prelude::*;

use crate::augment::{Views, augment, view_draws};
use crate::{DataError, EpochOrder, Pictures};

/// Some pictures as the network sees them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Which epoch it belongs to, from 0.
    pub epoch: u64,
    /// Its number in the epoch, from 0.
    pub number: usize,
    /// Which pictures these are.
    pub indices: Vec<u32>,
    /// Their augmented, normalised values, NHWC: the first view of all of them, then the second of
    /// all, and so on.
    pub pixels: Vec<f32>,
}

/// Batches that wait at a time, at most.
const QUEUE: u64 = 4;

/// What batches are made of, and how many threads prepare them.
#[derive(Clone, Debug)]
pub struct DataLoader {
    /// The images.
    pub images: Pictures,
    /// How they are varied, for each view.
    pub views: Views,
    /// Subtracted from each channel …
    pub mean: [f32; 3],
    /// … which is then divided by this.
    pub std: [f32; 3],
    /// Decides order and variation.
    pub seed: u64,
    /// Images in a batch, of all processes together.
    pub batch: usize,
    /// The places of each batch that are prepared here; all of them unless several processes train
    /// together.
    pub part: Range<usize>,
    /// Threads that prepare batches.
    pub threads: usize,
}

/// Prepares a loader's batches ahead. An endless iterator; dropping it stops its threads.
pub struct Prefetcher {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    loader: DataLoader,
    state: Mutex<State>,
    /// A batch was taken (there is room), or the end has come.
    room: Condvar,
    /// A batch is ready, or a thread has died.
    ready: Condvar,
}

/// Batches are counted across epochs: ticket = epoch · batches per epoch + number.
struct State {
    /// The next ticket for a thread to work on.
    next: u64,
    /// The next ticket to hand out.
    wanted: u64,
    done: BTreeMap<u64, Batch>,
    spare: Vec<Batch>,
    orders: BTreeMap<u64, Arc<OnceLock<Vec<u32>>>>,
    stop: bool,
    failed: bool,
}

impl DataLoader {
    /// How many batches make an epoch; a last one that is not full is left out.
    pub fn batches_per_epoch(&self) -> usize {
        self.images.len() / self.batch.max(1)
    }

    /// In which order epochs go through the images in these places of the batches.
    pub fn order(&self) -> EpochOrder {
        EpochOrder {
            seed: self.seed,
            pictures: self.images.len(),
            batch: self.batch,
            part: self.part.clone(),
        }
    }

    /// Prepares batches from batch `number` of `epoch` on; `number` may lie beyond the epoch's end
    /// and then counts on in the next. Fails if the images do not fill one batch.
    pub fn prefetch(&self, epoch: u64, number: usize) -> Result<Prefetcher, DataError> {
        if self.batch == 0 {
            return Err(DataError::option("batch", "must be at least 1"));
        }
        if self.part.end > self.batch {
            return Err(DataError::option("part", "must lie within the batch"));
        }
        let batches_per_epoch = self.batches_per_epoch();
        if batches_per_epoch == 0 {
            return Err(DataError::Failed(format!(
                "{have} pictures do not fill a batch of {}; use a batch of at most {have}",
                self.batch,
                have = self.images.len()
            )));
        }
        let first = epoch * batches_per_epoch as u64 + number as u64;
        let shared = Arc::new(Shared {
            loader: self.clone(),
            state: Mutex::new(State {
                next: first,
                wanted: first,
                done: BTreeMap::new(),
                spare: Vec::new(),
                orders: BTreeMap::new(),
                stop: false,
                failed: false,
            }),
            room: Condvar::new(),
            ready: Condvar::new(),
        });
        let mut prefetcher = Prefetcher { shared, threads: Vec::new() };
        for i in 0..self.threads.max(1) {
            let shared = Arc::clone(&prefetcher.shared);
            let thread = std::thread::Builder::new().name(format!("loader-{i}"));
            let thread = thread.spawn(move || shared.run());
            let none = |e| format!("a thread could not be started: {e}");
            let thread = thread.map_err(|e| DataError::option("loader threads", none(e)))?;
            prefetcher.threads.push(thread);
        }
        Ok(prefetcher)
    }
}

impl Prefetcher {
    /// Whether its next batch is this one.
    pub fn is_at(&self, epoch: u64, number: usize) -> bool {
        let first = epoch * self.shared.loader.batches_per_epoch() as u64;
        self.shared.lock().wanted == first + number as u64
    }

    /// Gives a batch's memory back, to be filled again.
    pub fn recycle(&self, batch: Batch) {
        let mut state = self.shared.lock();
        if state.spare.len() as u64 <= QUEUE {
            state.spare.push(batch);
        }
    }
}

impl Iterator for Prefetcher {
    type Item = Batch;

    /// The next batch, waiting for it if need be. Never `None`. Panics if a loader thread did.
    fn next(&mut self) -> Option<Batch> {
        let mut state = self.shared.lock();
        loop {
            let wanted = state.wanted;
            if let Some(batch) = state.done.remove(&wanted) {
                state.wanted += 1;
                self.shared.room.notify_all();
                return Some(batch);
            }
            assert!(!state.failed, "a loader thread has died");
            state = wait(&self.shared.ready, state);
        }
    }
}

impl Drop for Prefetcher {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.room.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so already.
            let _ = thread.join();
        }
    }
}

fn wait<'a>(condition: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
    condition.wait(state).unwrap_or_else(PoisonError::into_inner)
}

/// What a thread does next.
struct Job {
    ticket: u64,
    batch: Batch,
    order: Arc<OnceLock<Vec<u32>>>,
    /// The order of the epoch after, when it is time to make it.
    after: Option<Arc<OnceLock<Vec<u32>>>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread's life.
    fn run(&self) {
        let _alarm = Alarm(self);
        let mut bytes = Vec::new();
        while let Some(mut job) = self.take_job() {
            self.loader.prepare(&mut job, &mut bytes);
            let (epoch, after) = (job.batch.epoch, job.after.take());
            self.lock().done.insert(job.ticket, job.batch);
            self.ready.notify_all();
            if let Some(order) = after {
                order.get_or_init(|| self.loader.order().of(epoch + 1));
            }
        }
    }

    fn take_job(&self) -> Option<Job> {
        let mut state = self.lock();
        while !state.stop && state.next >= state.wanted + QUEUE {
            state = wait(&self.room, state);
        }
        if state.stop {
            return None;
        }
        let ticket = state.next;
        state.next += 1;
        let per_epoch = self.loader.batches_per_epoch();
        let epoch = ticket / per_epoch as u64;
        let number = (ticket % per_epoch as u64) as usize;
        let order = Arc::clone(state.orders.entry(epoch).or_default());
        let halfway = number == per_epoch / 2;
        let after = halfway.then(|| Arc::clone(state.orders.entry(epoch + 1).or_default()));
        // Threads still in an older epoch hold its order themselves.
        state.orders.retain(|&e, _| e >= epoch);
        let mut batch = state.spare.pop().unwrap_or_default();
        (batch.epoch, batch.number) = (epoch, number);
        Some(Job { ticket, batch, order, after })
    }
}

impl DataLoader {
    fn prepare(&self, job: &mut Job, bytes: &mut Vec<u8>) {
        let batch = &mut job.batch;
        let order = job.order.get_or_init(|| self.order().of(batch.epoch));
        let own = &order[batch.number * self.part.len()..][..self.part.len()];
        batch.indices.clear();
        batch.indices.extend_from_slice(own);
        let (one, item) = (self.images.picture_len(), self.images.item_len());
        let views = self.views.count();
        batch.pixels.resize(views * self.part.len() * one, 0.0);
        if self.images.is_resident() {
            self.see_resident(batch, one);
        } else {
            self.decode(&batch.indices, item, bytes);
            self.see_decoded(batch, one, item, bytes);
        }
    }

    fn see_resident(&self, batch: &mut Batch, one: usize) {
        let (images, epoch) = (&self.images, batch.epoch);
        let views = batch.pixels.chunks_exact_mut(self.part.len() * one);
        let mut unused = vec![];
        for (view, outs) in views.enumerate() {
            for (&i, out) in batch.indices.iter().zip(outs.chunks_exact_mut(one)) {
                let item = images.item_in(i as usize, &mut unused);
                self.see(epoch, i, view, item, out);
            }
        }
    }

    /// Decoding takes many times as long as augmenting, and batches wait for each other: every core
    /// helps with each.
    fn decode(&self, indices: &[u32], item: usize, bytes: &mut Vec<u8>) {
        bytes.resize(indices.len() * item, 0);
        let outs = bytes.par_chunks_exact_mut(item);
        let pairs = indices.par_iter().zip(outs);
        pairs.for_each_init(Vec::new, |scratch, (&i, out)| {
            out.copy_from_slice(self.images.item_in(i as usize, scratch));
        });
    }

    fn see_decoded(&self, batch: &mut Batch, one: usize, item: usize, bytes: &[u8]) {
        let (epoch, indices) = (batch.epoch, &batch.indices);
        let outs = batch.pixels.par_chunks_exact_mut(one).enumerate();
        outs.for_each(|(k, out)| {
            let (view, b) = (k / indices.len(), k % indices.len());
            self.see(epoch, indices[b], view, &bytes[b * item..][..item], out);
        });
    }

    /// A view of item `i` in an epoch.
    fn see(&self, epoch: u64, i: u32, view: usize, item: &[u8], out: &mut [f32]) {
        let images = &self.images;
        let (from, pixels) = images.seen_of(item);
        augment(
            pixels,
            from,
            [images.height(), images.width()],
            &self.views.settings()[view],
            &view_draws(self.seed, epoch, i, view as u32),
            self.mean,
            self.std,
            out,
        );
    }
}

/// Tells the consumer when a thread panics, who would otherwise wait for ever.
struct Alarm<'a>(&'a Shared);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().failed = true;
            self.0.ready.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Augmentation, shapes};
    use anchorhood_storage::random::{Draws, Stream};
    use std::time::Duration;

    const MEAN: [f32; 3] = [0.5; 3];
    const STD: [f32; 3] = [0.25; 3];

    fn pictures(n: usize) -> Pictures {
        shapes::dataset(0, 8, n, 0).unwrap().train.pictures
    }

    fn loader(n: usize, threads: usize, batch: usize) -> DataLoader {
        DataLoader {
            images: pictures(n),
            views: Augmentation::default().into(),
            mean: MEAN,
            std: STD,
            seed: 7,
            batch,
            part: 0..batch,
            threads,
        }
    }

    fn started(n: usize, threads: usize, batch: usize) -> Prefetcher {
        loader(n, threads, batch).prefetch(0, 0).unwrap()
    }

    /// What the network sees of a picture.
    fn seen(pictures: &Pictures, i: u32, how: &Augmentation, draws: &Draws) -> Vec<f32> {
        let mut seen = vec![0.0; 8 * 8 * 3];
        let picture = pictures.picture(i as usize);
        augment(picture, [8; 2], [8; 2], how, draws, MEAN, STD, &mut seen);
        seen
    }

    #[test]
    fn same_batches_for_any_thread_count() {
        let expected: Vec<Batch> = started(50, 1, 8).take(20).collect();
        for threads in [2, 4] {
            let batches: Vec<Batch> = started(50, threads, 8).take(20).collect();
            assert!(batches == expected);
        }
    }

    #[test]
    fn batches_are_as_promised() {
        let pictures = pictures(50);
        for (k, batch) in started(50, 2, 8).take(15).enumerate() {
            assert_eq!((batch.epoch, batch.number), (k as u64 / 6, k % 6));
            let order = Draws::new(7, Stream::Order, batch.epoch, 0).permutation(50);
            assert_eq!(batch.indices, order[batch.number * 8..][..8]);
            for (&i, got) in batch.indices.iter().zip(batch.pixels.chunks_exact(192)) {
                let draws = Draws::new(7, Stream::Augment, batch.epoch, u64::from(i));
                assert_eq!(got, seen(&pictures, i, &Augmentation::default(), &draws));
            }
        }
    }

    #[test]
    fn views_follow_each_other() {
        let usual = Augmentation::default();
        let other = Augmentation { blur: 1.0, solarise: 0.5, ..usual };
        let settings = [usual, other, usual];
        let views = Views::new(settings.to_vec()).unwrap();
        let several = DataLoader { views, ..loader(20, 2, 5) }.prefetch(0, 0).unwrap();
        let pictures = pictures(20);
        let plain = started(20, 1, 5);
        for (one, three) in plain.zip(several).take(9) {
            assert_eq!(one.indices, three.indices);
            let views: Vec<&[f32]> = three.pixels.chunks_exact(5 * 192).collect();
            assert_eq!(views.len(), 3);
            assert_eq!(views[0], one.pixels);
            assert!(views[0] != views[2] && views[1] != views[2]);
            for (v, (how, pixels)) in settings.iter().zip(views).enumerate() {
                for (&i, got) in three.indices.iter().zip(pixels.chunks_exact(192)) {
                    let draws = view_draws(7, three.epoch, i, v as u32);
                    assert_eq!(got, seen(&pictures, i, how, &draws));
                }
            }
        }
    }

    #[test]
    fn resumes_exactly() {
        let whole: Vec<Batch> = started(50, 2, 8).take(20).collect();
        for start in [1, 5, 6, 13] {
            let (epoch, number) = (start as u64 / 6, start % 6);
            let rest = loader(50, 2, 8).prefetch(epoch, number).unwrap();
            assert!(rest.is_at(epoch, number));
            assert!(rest.take(20 - start).eq(whole[start..].iter().cloned()), "from {start}");
        }
        // A finished epoch's last position is the next one's first.
        let mut next = loader(50, 1, 8).prefetch(0, 6).unwrap();
        assert!(next.is_at(1, 0));
        assert!(next.next().as_ref() == Some(&whole[6]));
    }

    #[test]
    fn buffers_come_back() {
        let mut loader = started(64, 1, 16);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..50 {
            let batch = loader.next().unwrap();
            seen.insert(batch.pixels.as_ptr());
            loader.recycle(batch);
        }
        // Some wait, one is being filled, one is with the consumer.
        assert!(seen.len() as u64 <= QUEUE + 2, "{} buffers", seen.len());
    }

    #[test]
    fn works_ahead_but_not_too_far_and_stops_when_dropped() {
        let loader = started(64, 2, 16);
        let full = || loader.shared.lock().done.len() as u64 == QUEUE;
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while !full() && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(full());
        let shared = Arc::downgrade(&loader.shared);
        drop(loader);
        assert!(shared.upgrade().is_none(), "a thread is still alive");
    }

    #[test]
    fn one_batch_an_epoch() {
        let batches: Vec<Batch> = started(5, 3, 5).take(10).collect();
        assert!(batches.iter().enumerate().all(|(k, b)| b.epoch == k as u64));
    }

    #[test]
    fn too_few_pictures_are_an_error() {
        let start = |batch| loader(5, 1, batch).prefetch(0, 0).err();
        let message = start(6).unwrap().to_string();
        assert!(message.contains("5 pictures do not fill a batch of 6"), "{message}");
        assert!(start(0).is_some());
    }

    #[test]
    #[should_panic(expected = "a loader thread has died")]
    fn a_dead_thread_is_noticed() {
        let mut loader = started(64, 1, 16);
        {
            let mut state = loader.shared.lock();
            // An order too short for its batches makes the thread panic.
            for epoch in 0..100 {
                state.orders.insert(epoch, Arc::new(OnceLock::from(Vec::new())));
            }
        }
        for _ in 0..100 {
            loader.next();
        }
    }
}
