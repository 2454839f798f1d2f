//! Processes that do not find each other say why, and one that is gone ends all.

use std::io::Write;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anchorhood_distributed::{Launch, Reduce, Secret, open_tcp};
use anchorhood_testing::only;

use crate::common::{Joined, free_place, launch, with_launches};

const SHORT: Duration = Duration::from_secs(1);

/// What all of these say.
fn said(launches: &[Launch]) -> Vec<String> {
    with_launches(launches, SHORT, |joined: Joined| match joined {
        Ok(_) => "joined".into(),
        Err(why) => why.to_string(),
    })
}

#[test]
fn a_rank_that_never_comes_is_named_everywhere() {
    let place = free_place();
    let three_of_four = [0, 1, 3].map(|rank| launch(rank, 4, &place));
    for said in said(&three_of_four) {
        assert!(said.contains("rank 2 of 4 did not come within 1 seconds"), "{said}");
    }
}

#[test]
fn a_first_rank_that_never_comes_is_named() {
    let place = free_place();
    let said = said(&[launch(1, 2, &place)]);
    let expected = format!("rank 0 did not answer at {}:{}", place.0, place.1);
    assert!(said[0].contains(&expected), "{said:?}");
}

#[test]
fn ranks_that_disagree_say_about_what() {
    let place = free_place();
    for said in said(&[launch(0, 2, &place), launch(1, 3, &place)]) {
        assert!(said.contains("rank 1 was told of 3 processes, and rank 0 of 2"), "{said}");
    }
    let place = free_place();
    let twice = [0, 1, 1].map(|rank| launch(rank, 3, &place));
    let said = said(&twice);
    let doubled = said.iter().filter(|s| s.contains("two processes say that they are rank 1"));
    assert!(doubled.count() >= 2, "{said:?}");
    assert!(said.iter().all(|s| s != "joined"), "{said:?}");
}

#[test]
fn a_place_that_nobody_names_or_that_is_taken_is_told() {
    let nowhere = Launch { master: None, ..launch(0, 2, &free_place()) };
    let why = open_tcp(&nowhere, SHORT).err().unwrap();
    assert!(why.to_string().contains("set MASTER_ADDR and MASTER_PORT"), "{why}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = ("127.0.0.1".to_string(), taken.local_addr().unwrap().port());
    let why = open_tcp(&launch(0, 2, &place), SHORT).err().unwrap();
    assert!(why.to_string().contains("cannot listen at 127.0.0.1"), "{why}");
}

/// Whoever speaks another language is let go, and the ranks meet all the same.
#[test]
fn strangers_are_let_go() {
    let place = free_place();
    let launches = [0, 1].map(|rank| launch(rank, 2, &place));
    let stranger = std::thread::spawn(move || {
        let until = Instant::now() + SHORT;
        while Instant::now() < until {
            if let Ok(mut stream) = TcpStream::connect((&*place.0, place.1)) {
                return stream.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").is_ok();
            }
        }
        false
    });
    let sums = with_launches(&launches, Duration::from_secs(60), |joined| {
        let mut values = [1.5];
        joined.unwrap().all_reduce_f64(&mut values, Reduce::Sum).unwrap();
        values
    });
    assert_eq!(sums, [[3.0]; 2]);
    // Whether it came in time is chance; that nobody minds is not.
    stranger.join().unwrap();
}

fn knowing(secret: &str, launch: Launch) -> Launch {
    Launch { secret: Secret::new(secret.into()), ..launch }
}

/// Somebody who speaks the language, and comes first as rank 1, is no rank without the secret.
#[test]
fn whoever_does_not_know_the_secret_is_let_go() {
    for wrong in ["", "open-sesamE", "open-sesame-and-more"] {
        let place = free_place();
        let stranger = knowing(wrong, launch(1, 2, &place));
        let ranks = [0, 1].map(|rank| knowing("open-sesame", launch(rank, 2, &place)));
        let sums = std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                with_launches(&ranks[..1], Duration::from_secs(60), |joined| {
                    let mut values = [1.5];
                    let ranks = joined.unwrap();
                    ranks.all_reduce_f64(&mut values, Reduce::Sum).unwrap();
                    values
                })
            });
            // It is told so, by a sentence that does not tell the secret.
            let why = open_tcp(&stranger, Duration::from_secs(60)).err().unwrap();
            let said = why.to_string();
            assert!(said.contains("ANCHORHOOD_SECRET") && !said.contains("sesame"), "{said}");
            let second = open_tcp(&ranks[1], Duration::from_secs(60)).unwrap();
            second.all_reduce_f64(&mut [2.0], Reduce::Sum).unwrap();
            first.join().unwrap()
        });
        assert_eq!(sums, [[3.5]]);
    }
}

/// An address that this machine does not have (RFC 5737 keeps it for documents).
fn elsewhere() -> (String, u16) {
    ("192.0.2.1".into(), free_place().1)
}

#[test]
fn all_addresses_are_listened_at_with_a_secret_alone() {
    let first = launch(0, 2, &elsewhere());
    let why = open_tcp(&first, SHORT).err().unwrap();
    assert!(why.to_string().contains("ANCHORHOOD_SECRET"), "{why}");
    let why = open_tcp(&knowing("open-sesame", first), SHORT).err().unwrap();
    assert!(why.to_string().contains("rank 1 of 2 did not come"), "{why}");
}

/// Wherever MASTER_ADDR points: nobody else can reach them there.
#[test]
fn processes_of_one_machine_meet_on_its_loopback_address() {
    let place = elsewhere();
    let launches = [0, 1].map(|rank| Launch { local_ranks: Some(2), ..launch(rank, 2, &place) });
    let joined = with_launches(&launches, Duration::from_secs(60), |joined| {
        joined.map(|ranks| ranks.barrier()).err()
    });
    assert_eq!(joined, [None, None]);
}

/// Ranks that make different calls are told so and do not wait.
#[test]
fn different_calls_are_noticed() {
    let place = free_place();
    let launches = [0, 1].map(|rank| launch(rank, 2, &place));
    let outcomes = with_launches(&launches, Duration::from_secs(60), |joined| {
        let ranks = joined.unwrap();
        let called = match ranks.rank() {
            0 => ranks.all_reduce(&mut [1.0], Reduce::Sum),
            _ => ranks.all_reduce_f64(&mut [1.0], Reduce::Sum),
        };
        called.err().map(|e| e.to_string())
    });
    let first = outcomes[0].as_ref().unwrap();
    assert!(first.contains("do not make the same calls"), "{first}");
}

/// This test's own binary as one of several processes.
fn process(test: &str, rank: usize, ranks: usize, place: &(String, u16)) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(only(&format!("tcp::{test}")));
    command.env("RANK", rank.to_string());
    command.env("WORLD_SIZE", ranks.to_string());
    command.env("MASTER_ADDR", &place.0);
    command.env("MASTER_PORT", place.1.to_string());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// A process that is killed ends all others, wherever they wait; one that aborts does, too, with
/// its own exit code.
#[test]
fn one_that_is_gone_ends_all() {
    let test = "one_that_is_gone_ends_all";
    if let Some(launch) = Launch::from_environment().unwrap() {
        let ranks = open_tcp(&launch, Duration::from_secs(60)).unwrap();
        let how = std::env::var("ANCHORHOOD_TEST_END").unwrap();
        ranks.barrier().unwrap();
        match (ranks.rank(), how.as_str()) {
            (2, "abort") => ranks.abort(7),
            // As one that is killed: nothing is said.
            (2, _) => std::process::abort(),
            _ => {
                // Not in a call of ours, as a process that waits for a GPU.
                std::thread::sleep(Duration::from_secs(60));
                unreachable!("it was to be ended");
            }
        }
    }
    for (how, code) in [("abort", 7), ("kill", 1)] {
        let (place, began) = (free_place(), Instant::now());
        let start = |rank| {
            let mut command = process(test, rank, 3, &place);
            command.env("ANCHORHOOD_TEST_END", how).spawn().unwrap()
        };
        let running: Vec<_> = (0..3).map(start).collect();
        let ended: Vec<_> = running.into_iter().map(|p| p.wait_with_output().unwrap()).collect();
        assert!(began.elapsed() < Duration::from_secs(20));
        let err: Vec<_> = ended.iter().map(|e| String::from_utf8_lossy(&e.stderr)).collect();
        assert_eq!(ended[0].status.code(), Some(code), "{how}: {err:?}");
        assert_eq!(ended[1].status.code(), Some(code), "{how}: {err:?}");
        let told = err[0].matches("rank 2 is gone without a word").count();
        assert_eq!(told, usize::from(how == "kill"), "{err:?}");
    }
}
