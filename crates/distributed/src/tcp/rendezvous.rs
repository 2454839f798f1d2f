//! How processes find each other: the first listens where MASTER_ADDR and MASTER_PORT say, the
//! others come and say who they are. Whoever says something that cannot be is told so, and so is
//! the first; strangers are let go. A stranger is also whoever does not know the secret, if there
//! is one.
//!
//! Processes of one machine meet on its loopback address. Others listen at the address that
//! MASTER_ADDR names; at all addresses of the machine only with a secret.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use crate::launch::{SECRET, Secret};
use crate::{Launch, RanksError, handed_over};

/// The first bytes of all that is said.
const MAGIC: [u8; 8] = *b"ANCHORH2";
/// Bytes of a secret, at most.
const LONGEST_SECRET: u32 = 1 << 10;
/// How long somebody who has come may be silent.
const SILENCE: Duration = Duration::from_secs(5);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Connections to all others in rank order, or to the first.
pub(super) struct Met {
    pub(super) connections: Vec<TcpStream>,
    pub(super) lifelines: Vec<TcpStream>,
    pub(super) place: String,
}

/// Who has come, and for what: work is 0, a lifeline 1.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hello {
    rank: u32,
    ranks: u32,
    purpose: u32,
    /// Empty where there is none.
    secret: Secret,
}

impl Hello {
    fn bytes(&self) -> Vec<u8> {
        let secret = self.secret.bytes();
        let numbers = [self.rank, self.ranks, self.purpose, secret.len() as u32];
        let numbers = numbers.map(u32::to_le_bytes);
        [&MAGIC[..], numbers.as_flattened(), secret].concat()
    }

    /// Of whoever speaks this language.
    fn read(from: &mut TcpStream) -> Option<Hello> {
        let mut bytes = [0; 24];
        from.read_exact(&mut bytes).ok()?;
        let number = |place: usize| {
            let bytes = bytes[8 + 4 * place..][..4].try_into();
            u32::from_le_bytes(bytes.expect("four bytes"))
        };
        if bytes[..8] != MAGIC || number(3) > LONGEST_SECRET {
            return None;
        }
        let mut secret = vec![0; number(3) as usize];
        from.read_exact(&mut secret).ok()?;
        Some(Hello {
            rank: number(0),
            ranks: number(1),
            purpose: number(2),
            secret: Secret::new(String::from_utf8(secret).ok()?),
        })
    }
}

/// Meets all other processes of a launch.
pub(super) fn meet(launch: &Launch, patience: Duration) -> Result<Met, RanksError> {
    let (host, port) =
        launch.master.as_ref().ok_or(RanksError::NoMaster { ranks: launch.ranks })?;
    let place = format!("{host}:{port}");
    let until = Instant::now() + patience;
    match launch.is_first() {
        true => receive_all(launch, &place, until, patience),
        false => come(launch, &place, until, patience),
    }
}

/// The addresses of a place, should its name be known by now.
fn addresses(place: &str) -> Vec<SocketAddr> {
    place.to_socket_addrs().map_or(vec![], Iterator::collect)
}

/// This machine's loopback address, where all processes are said to be of one machine.
fn loopback(launch: &Launch) -> Option<SocketAddr> {
    let (_, port) = launch.master.as_ref()?;
    let one_machine = launch.local_ranks == Some(launch.ranks);
    one_machine.then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, *port)))
}

/// The first process: listens until all have come.
fn receive_all(
    launch: &Launch,
    place: &str,
    until: Instant,
    patience: Duration,
) -> Result<Met, RanksError> {
    let listener = listen(launch, place)?;
    let mut come: [Vec<Option<TcpStream>>; 2] = [(); 2].map(|()| {
        let nobody = || None;
        std::iter::repeat_with(nobody).take(launch.ranks - 1).collect()
    });
    let outcome = gather(&listener, launch, until, patience, &mut come);
    let all = come.iter_mut().flatten().flatten();
    let said = outcome.as_ref().map_or_else(|e| e.to_string(), |()| String::new());
    for stream in all {
        answer(stream, &said);
    }
    outcome?;
    let [connections, lifelines] = come.map(|of| of.into_iter().flatten().collect());
    Ok(Met { connections, lifelines, place: place.into() })
}

/// Listens where the others look for the first process: on the socket that its starter handed over,
/// else at the loopback address or at the one that MASTER_ADDR names. Where that is not this
/// machine's to give (a name that is translated on the way), at all addresses, with a secret.
fn listen(launch: &Launch, place: &str) -> Result<TcpListener, RanksError> {
    let port = launch.master.as_ref().map_or(0, |(_, port)| *port);
    let failed = |why: String| RanksError::Meeting {
        why: format!(
            "the first process cannot listen at {place} (MASTER_ADDR, MASTER_PORT): {why}"
        ),
    };
    let bound = match launch.listener.and_then(|n| handed_over::take(n, port)) {
        Some(listener) => Ok(listener),
        None => {
            let own = loopback(launch).map_or_else(|| addresses(place), |own| vec![own]);
            TcpListener::bind(&own[..]).or_else(|e| match e.kind() {
                ErrorKind::AddrInUse => Err(failed(e.to_string())),
                _ if launch.secret.is_empty() => Err(failed(format!(
                    "{e}; if this machine has that address under another name, set {SECRET} \
                     to the same word for all processes, and it listens at all of its addresses"
                ))),
                _ => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))
                    .map_err(|e| failed(e.to_string())),
            })
        }
    }?;
    let ready = bound.set_nonblocking(true).map(|()| bound);
    ready.map_err(|e| failed(e.to_string()))
}

/// Takes in whoever comes until all are here.
fn gather(
    listener: &TcpListener,
    launch: &Launch,
    until: Instant,
    patience: Duration,
    come: &mut [Vec<Option<TcpStream>>; 2],
) -> Result<(), RanksError> {
    while come.iter().flatten().any(Option::is_none) {
        if let Ok((mut stream, _)) = listener.accept() {
            let ready = stream.set_nonblocking(false).is_ok()
                && stream.set_read_timeout(Some(SILENCE)).is_ok()
                && stream.set_nodelay(true).is_ok();
            let hello = Hello::read(&mut stream).filter(|_| ready);
            match hello {
                // It cannot end the launch of those who know it.
                Some(hello) if hello.secret != launch.secret => answer(
                    &mut stream,
                    &format!(
                        "rank 0 was told another {SECRET}, or none; set it to the same word for all"
                    ),
                ),
                Some(hello) => take_in(&hello, stream, launch, come)?,
                None => {}
            }
            continue;
        }
        if Instant::now() >= until {
            let missing = (1..launch.ranks).filter(|r| come[0][r - 1].is_none());
            return Err(RanksError::Missing {
                missing: missing.collect(),
                ranks: launch.ranks,
                seconds: patience.as_secs(),
            });
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

fn take_in(
    hello: &Hello,
    mut stream: TcpStream,
    launch: &Launch,
    come: &mut [Vec<Option<TcpStream>>; 2],
) -> Result<(), RanksError> {
    let (rank, ranks) = (hello.rank as usize, hello.ranks as usize);
    let why = if ranks != launch.ranks {
        format!(
            "rank {rank} was told of {ranks} processes, and rank 0 of {} (WORLD_SIZE)",
            launch.ranks
        )
    } else if rank == 0 || rank >= ranks || hello.purpose > 1 {
        format!(
            "a process came as rank {rank} of {ranks}, where ranks 1 to {} were expected",
            ranks - 1
        )
    } else if come[hello.purpose as usize][rank - 1].is_some() {
        format!("two processes say that they are rank {rank}")
    } else {
        come[hello.purpose as usize][rank - 1] = Some(stream);
        return Ok(());
    };
    answer(&mut stream, &why);
    Err(RanksError::Meeting { why })
}

/// Says that all is well, by nothing, or what is not.
fn answer(stream: &mut TcpStream, said: &str) {
    let len = (said.len() as u32).to_le_bytes();
    // Who has gone meanwhile is missed at the first call.
    let _ = stream.write_all(&len).and_then(|()| stream.write_all(said.as_bytes()));
    let _ = stream.set_read_timeout(None);
}

/// Another process: comes twice, for work and with a lifeline.
fn come(
    launch: &Launch,
    place: &str,
    until: Instant,
    patience: Duration,
) -> Result<Met, RanksError> {
    let mut both = vec![];
    for purpose in 0..2 {
        let hello = Hello {
            rank: launch.rank as u32,
            ranks: launch.ranks as u32,
            purpose,
            secret: launch.secret.clone(),
        };
        both.push(reach(launch, place, &hello, until, patience)?);
    }
    for stream in &mut both {
        welcomed(stream, until)?;
    }
    let lifelines = both.split_off(1);
    Ok(Met { connections: both, lifelines, place: place.into() })
}

/// Tries until the first process listens.
fn reach(
    launch: &Launch,
    place: &str,
    hello: &Hello,
    until: Instant,
    patience: Duration,
) -> Result<TcpStream, RanksError> {
    loop {
        let mut places = loopback(launch).into_iter().chain(addresses(place));
        let tried = places.find_map(|address| {
            let mut stream = TcpStream::connect_timeout(&address, SILENCE).ok()?;
            stream.set_nodelay(true).ok()?;
            stream.write_all(&hello.bytes()).ok()?;
            Some(stream)
        });
        match tried {
            Some(stream) => return Ok(stream),
            None if Instant::now() >= until => {
                return Err(RanksError::Meeting {
                    why: format!(
                        "rank 0 did not answer at {place} (MASTER_ADDR, MASTER_PORT) within {} \
                         seconds",
                        patience.as_secs()
                    ),
                });
            }
            None => thread::sleep(PAUSE),
        }
    }
}

/// Waits for the answer of the first process, which waits for all.
fn welcomed(stream: &mut TcpStream, until: Instant) -> Result<(), RanksError> {
    let lost = |why: String| RanksError::Meeting {
        why: format!("rank 0 was reached, and did not say that all processes are there: {why}"),
    };
    // The first one's patience may have begun later.
    let patience = until.saturating_duration_since(Instant::now()) + SILENCE;
    let mut wait = || {
        stream.set_read_timeout(Some(2 * patience))?;
        let mut len = [0; 4];
        stream.read_exact(&mut len)?;
        let mut said = vec![0; (u32::from_le_bytes(len) as usize).min(1 << 16)];
        stream.read_exact(&mut said)?;
        stream.set_read_timeout(None)?;
        std::io::Result::Ok(said)
    };
    let said = wait().map_err(|e| lost(e.to_string()))?;
    match said.is_empty() {
        true => Ok(()),
        false => Err(RanksError::Meeting { why: String::from_utf8_lossy(&said).into_owned() }),
    }
}
