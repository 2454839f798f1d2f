//! The program starts itself: this test's own binary as several processes.
#![cfg(unix)]

use std::io::ErrorKind;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anchorhood_distributed::{Launch, Processes, Reduce, join};
use anchorhood_testing::only;

/// What the processes are to do.
const TASK: &str = "ANCHORHOOD_TEST_TASK";

/// This test of this file, to do something.
fn command(test: &'static str, task: &'static str) -> impl Fn() -> Command {
    move || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(only(&format!("processes::{test}")));
        command.env(TASK, task);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

fn code_of(count: usize, test: &'static str, task: &'static str) -> u8 {
    let processes = Processes::start(count, command(test, task)).unwrap();
    processes.wait(&AtomicUsize::new(0)).unwrap()
}

/// What each process does; false in the one that starts them.
fn is_one_of_several() -> bool {
    let Ok(task) = std::env::var(TASK) else {
        return false;
    };
    let launch = Launch::from_environment().unwrap().unwrap();
    // Their port is taken before the first of them begins, so that nobody can come in between.
    let (host, port) = launch.master.clone().unwrap();
    let taken = TcpListener::bind((&*host, port)).map(drop);
    assert_eq!(taken.unwrap_err().kind(), ErrorKind::AddrInUse);
    assert!(!launch.secret.is_empty());
    let ranks = join(&launch, |late| panic!("{late}")).unwrap();
    assert_eq!((ranks.rank(), ranks.ranks()), (launch.rank, launch.ranks));
    assert_eq!(launch.local_rank, Some(launch.rank));
    let mut values = [ranks.rank() as f64];
    ranks.all_reduce_f64(&mut values, Reduce::Sum).unwrap();
    let last = launch.rank + 1 == launch.ranks;
    match (task.as_str(), last) {
        ("sum", _) => assert_eq!(values, [3.0]),
        ("fail", true) => ranks.abort(5),
        ("die", true) => std::process::abort(),
        _ => std::thread::sleep(Duration::from_secs(60)),
    }
    true
}

#[test]
fn they_find_each_other_and_end_well() {
    if !is_one_of_several() {
        assert_eq!(code_of(3, "they_find_each_other_and_end_well", "sum"), 0);
    }
}

#[test]
fn one_that_fails_ends_all_with_its_code() {
    let test = "one_that_fails_ends_all_with_its_code";
    if is_one_of_several() {
        return;
    }
    let began = Instant::now();
    assert_eq!(code_of(3, test, "fail"), 5);
    // By a signal: 128 and its number.
    assert_eq!(code_of(2, test, "die"), 128 + 6);
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_request_to_stop_is_passed_on() {
    if is_one_of_several() {
        return;
    }
    let test = "a_request_to_stop_is_passed_on";
    let (began, stops) = (Instant::now(), AtomicUsize::new(0));
    let processes = Processes::start(2, command(test, "wait")).unwrap();
    let code = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            stops.store(1, Ordering::Relaxed);
        });
        processes.wait(&stops).unwrap()
    });
    // Nobody listens for it here.
    assert_eq!(code, 128 + 15);
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn what_cannot_be_started_is_an_error() {
    let nothing = || Command::new("/no/such/program");
    assert!(Processes::start(2, nothing).is_err());
}
