//! Every reader over its seeds and 10,000 mutations of them: none panics, takes more than 20
//! seconds for an input, or brings the process over 2 GB.
//!
//! `ANCHORHOOD_FUZZ` is the number of mutations of each, for longer runs; `ANCHORHOOD_FUZZ_TARGET`
//! names one reader. A failure names the reader and the mutation, and keeps its bytes in a file.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anchorhood_fuzzing::{TARGETS, Target, mutate};

const MUTATIONS: u64 = 10_000;
const MOST_BYTES: usize = 2_000_000_000;
const LONGEST: Duration = Duration::from_secs(20);
/// Readers under attack at a time.
const WORKERS: usize = 2;

// ---- memory ----

/// Counts what is held; refuses what would be too much, as a machine does that has no more.
struct Bounded;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator with the arguments it came with; counting
// allocates nothing.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match take(layout.size()) {
            // SAFETY: the caller's promise is passed on.
            true => unsafe { System.alloc(layout) },
            false => std::ptr::null_mut(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match take(layout.size()) {
            // SAFETY: the caller's promise is passed on.
            true => unsafe { System.alloc_zeroed(layout) },
            false => std::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Bounded = Bounded;

fn take(bytes: usize) -> bool {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
    if held > MOST_BYTES {
        HELD.fetch_sub(bytes, Ordering::Relaxed);
        let (target, number) = UNDER_ATTACK.get();
        // What asked may be able to do without; if not, the process ends, and this line says why.
        let mut said = std::io::stderr();
        let _ = writeln!(said, "{target}, input {number}: {bytes} bytes more would be over 2 GB");
        return false;
    }
    PEAK.fetch_max(held, Ordering::Relaxed);
    true
}

// ---- one input ----

thread_local! {
    static UNDER_ATTACK: Cell<(&'static str, u64)> = const { Cell::new(("nothing", 0)) };
}

/// When each worker began its input, in milliseconds since the first; 0 where it has none.
static BEGUN: [AtomicU64; WORKERS] = [const { AtomicU64::new(0) }; WORKERS];
/// What panicked on another thread than that of the reader's caller.
static ELSEWHERE: Mutex<Vec<String>> = Mutex::new(Vec::new());

thread_local! {
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The name of the workers' threads; a panic there is caught and told.
const WORKER: &str = "worker";

/// Panics of our own code on threads of a server's or a pool's own are kept; decoders are others'
/// code, and theirs are caught.
fn keep_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let ours = |at: &Location| at.file().starts_with("crates/");
        if std::thread::current().name() == Some(WORKER) {
            LAST_PANIC.set(panic.to_string());
        } else if panic.location().is_some_and(ours) {
            let mut kept = locked(&ELSEWHERE);
            kept.push(panic.to_string());
        }
    }));
}

/// What went wrong with an input, if anything did.
fn attack(target: &Target, bytes: &[u8]) -> Result<(), String> {
    let run = catch_unwind(AssertUnwindSafe(|| target.run(bytes)));
    run.map_err(|_| LAST_PANIC.take())?;
    let mut kept = locked(&ELSEWHERE);
    match kept.pop() {
        Some(panic) => Err(panic),
        None => Ok(()),
    }
}

// ---- all inputs ----

fn mutations() -> u64 {
    let asked = std::env::var("ANCHORHOOD_FUZZ").ok();
    asked.map_or(MUTATIONS, |n| n.parse().expect("ANCHORHOOD_FUZZ is a number"))
}

/// Where the bytes of a failure are kept.
fn keep(target: &Target, number: u64, bytes: &[u8]) -> String {
    let name = format!("fuzz-{}-{number}", target.name);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).expect("there is room for a small file");
    path.display().to_string()
}

/// Input `number` of a reader: its seeds, then mutations of them.
fn input(seeds: &[Vec<u8>], number: u64) -> Vec<u8> {
    match seeds.get(number as usize) {
        Some(seed) => seed.clone(),
        None => mutate::mutation(seeds, number - seeds.len() as u64),
    }
}

/// All inputs of a reader. The errors are sentences, of which three are enough.
fn attack_all(target: &Target, worker: usize, since: Instant) -> Vec<String> {
    let seeds = match catch_unwind(target.seeds) {
        Ok(seeds) => seeds,
        Err(_) => return vec![format!("{}: no seeds: {}", target.name, LAST_PANIC.take())],
    };
    let (first, begun) = (seeds.len() as u64, &BEGUN[worker]);
    let mut wrong = vec![];
    for number in 0..first + mutations() {
        let bytes = input(&seeds, number);
        UNDER_ATTACK.set((target.name, number));
        locked(&INPUTS)[worker] = Some((*target, number));
        begun.store(since.elapsed().as_millis() as u64 + 1, Ordering::Relaxed);
        if let Err(what) = attack(target, &bytes) {
            let kept = keep(target, number, &bytes);
            wrong.push(format!("{}, input {number}: {what} ({kept})", target.name));
        }
        if wrong.len() == 3 {
            break;
        }
    }
    begun.store(0, Ordering::Relaxed);
    wrong
}

/// Ends the process where an input takes too long: a thread that hangs cannot be stopped otherwise.
fn watch(since: Instant, done: &AtomicUsize) {
    while done.load(Ordering::Relaxed) < WORKERS {
        std::thread::sleep(Duration::from_millis(100));
        let now = since.elapsed().as_millis() as u64;
        for (worker, begun) in BEGUN.iter().enumerate() {
            let begun = begun.load(Ordering::Relaxed);
            if begun > 0 && now.saturating_sub(begun) > LONGEST.as_millis() as u64 {
                give_up(worker);
            }
        }
    }
}

fn give_up(worker: usize) {
    let attacked = locked(&INPUTS)[worker];
    let (target, number) = attacked.expect("it has begun with one");
    let kept = keep(&target, number, &input(&(target.seeds)(), number));
    let name = target.name;
    let mut said = std::io::stderr();
    let _ = writeln!(said, "{name}, input {number}: it takes longer than 20 s ({kept})");
    std::process::abort();
}

/// What each worker attacks.
static INPUTS: Mutex<[Option<(Target, u64)>; WORKERS]> = Mutex::new([None; WORKERS]);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn no_reader_panics_hangs_or_takes_memory_without_bound() {
    let only = std::env::var("ANCHORHOOD_FUZZ_TARGET").ok();
    let chosen = |target: &&Target| only.as_ref().is_none_or(|name| *name == target.name);
    let targets: Vec<&Target> = TARGETS.iter().filter(chosen).collect();
    assert!(!targets.is_empty(), "no reader is called {only:?}");
    keep_panics();
    let (next, done, since) = (AtomicUsize::new(0), AtomicUsize::new(0), Instant::now());
    let wrong = Mutex::new(vec![]);
    let work = |worker: usize| {
        while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            let begun = Instant::now();
            let found = attack_all(target, worker, since);
            println!("{:12} {:6.1} s", target.name, begun.elapsed().as_secs_f64());
            locked(&wrong).extend(found);
        }
        done.fetch_add(1, Ordering::Relaxed);
    };
    let work = &work;
    std::thread::scope(|threads| {
        for worker in 0..WORKERS {
            let named = std::thread::Builder::new().name(WORKER.into());
            named.spawn_scoped(threads, move || work(worker)).expect("a thread");
        }
        watch(since, &done);
    });
    drop(std::panic::take_hook());
    let wrong = wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("at most {} MB", PEAK.load(Ordering::Relaxed) / 1_000_000);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
