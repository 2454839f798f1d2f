//! Every reader over its seeds and 500 mutations of them, or 10,000 where there is time: none
//! panics, takes more than 20 seconds for an input, or brings the process over 2 GB.
//!
//! `ANCHORHOOD_FUZZ` is the number of mutations of each, for longer runs; `ANCHORHOOD_FUZZ_TARGET`
//! names one reader. A failure names the reader and the mutation, and keeps its bytes in a file.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anchorhood_fuzzing::{TARGETS, Target, mutate};

const SAMPLE: u64 = 500;
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
        if !take(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !take(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
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

/// What each worker attacks, and since when.
static UNDER_WAY: Mutex<[Option<(Target, u64, Instant)>; WORKERS]> = Mutex::new([None; WORKERS]);
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

/// How many of each reader, unless somebody asks for another number.
fn mutations(usual: u64) -> u64 {
    let asked = std::env::var("ANCHORHOOD_FUZZ").ok();
    asked.map_or(usual, |n| n.parse().expect("ANCHORHOOD_FUZZ is a number"))
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
fn attack_all(target: &Target, mutations: u64, worker: usize) -> Vec<String> {
    let seeds = match catch_unwind(target.seeds) {
        Ok(seeds) => seeds,
        Err(_) => return vec![format!("{}: no seeds: {}", target.name, LAST_PANIC.take())],
    };
    let mut wrong = vec![];
    for number in 0..seeds.len() as u64 + mutations {
        let bytes = input(&seeds, number);
        UNDER_ATTACK.set((target.name, number));
        locked(&UNDER_WAY)[worker] = Some((*target, number, Instant::now()));
        if let Err(what) = attack(target, &bytes) {
            let kept = keep(target, number, &bytes);
            wrong.push(format!("{}, input {number}: {what} ({kept})", target.name));
        }
        if wrong.len() == 3 {
            break;
        }
    }
    locked(&UNDER_WAY)[worker] = None;
    wrong
}

/// Ends the process where an input takes too long: a thread that hangs cannot be stopped otherwise.
fn watch(done: &AtomicUsize) {
    while done.load(Ordering::Relaxed) < WORKERS {
        std::thread::sleep(Duration::from_millis(100));
        let attacked = *locked(&UNDER_WAY);
        let late = attacked.iter().flatten().find(|(.., begun)| begun.elapsed() > LONGEST);
        if let Some((target, number, _)) = late {
            let kept = keep(target, *number, &input(&(target.seeds)(), *number));
            let (name, mut said) = (target.name, std::io::stderr());
            let _ = writeln!(said, "{name}, input {number}: it takes longer than 20 s ({kept})");
            std::process::abort();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn no_reader_panics_hangs_or_takes_memory_without_bound() {
    attack_every_reader(mutations(SAMPLE));
}

mod long {
    #[test]
    #[ignore = "long: 10,000 mutations for each of 26 readers"]
    fn no_reader_panics_hangs_or_takes_memory_without_bound() {
        super::attack_every_reader(super::mutations(super::MUTATIONS));
    }
}

/// Panics, memory and time are those of the whole process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// So many mutations for each reader.
fn attack_every_reader(mutations: u64) {
    let _alone = locked(&ONE_AT_A_TIME);
    let only = std::env::var("ANCHORHOOD_FUZZ_TARGET").ok();
    let chosen = |target: &&Target| only.as_ref().is_none_or(|name| *name == target.name);
    let targets: Vec<&Target> = TARGETS.iter().filter(chosen).collect();
    assert!(!targets.is_empty(), "no reader is called {only:?}");
    keep_panics();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let wrong = Mutex::new(vec![]);
    let work = |worker: usize| {
        while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            let begun = Instant::now();
            let found = attack_all(target, mutations, worker);
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
        watch(&done);
    });
    drop(std::panic::take_hook());
    let wrong = wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("at most {} MB", PEAK.load(Ordering::Relaxed) / 1_000_000);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn seeds_reach_what_lies_behind_the_beginning_of_a_file() {
    let _alone = locked(&ONE_AT_A_TIME);
    for target in TARGETS {
        let Some(taken) = target.taken else { continue };
        let read = (target.seeds)().iter().filter_map(|seed| (target.read)(seed)).count();
        assert_eq!(read, taken, "{}", target.name);
    }
}

#[test]
fn the_same_number_makes_the_same_bytes_and_others_make_others() {
    let seeds = [b"[1, 22, 333] and more".to_vec(), vec![7; 300], vec![]];
    let all = || -> Vec<Vec<u8>> { (0..1000).map(|n| mutate::mutation(&seeds, n)).collect() };
    let bytes = all();
    assert_eq!(bytes, all());
    let different: std::collections::HashSet<&Vec<u8>> = bytes.iter().collect();
    assert!(different.len() > 700, "{}", different.len());
    let greatest = b"18446744073709551615";
    assert!(bytes.iter().any(|b| b.windows(greatest.len()).any(|w| w == greatest)));
}
