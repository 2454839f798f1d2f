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
    let Some((host, port)) = &launch.master else {
        return Err(RanksError(format!(
            "{} processes are to work together, and no MPI launcher started them; set MASTER_ADDR \
             and MASTER_PORT to where rank 0 can be reached",
            launch.ranks
        )));
    };
    let place = format!("{host}:{port}");
    let meeting =
        Meeting { launch, place, port: *port, until: Instant::now() + patience, patience };
    if launch.is_first() { meeting.receive_all() } else { meeting.come() }
}

/// Where, and until when, the processes of a launch meet.
struct Meeting<'a> {
    launch: &'a Launch,
    place: String,
    port: u16,
    until: Instant,
    patience: Duration,
}

/// Those who have come by their rank, from 1: for work, and with a lifeline.
type Come = [Vec<Option<TcpStream>>; 2];

impl Meeting<'_> {
    /// The addresses of the place, should its name be known by now.
    fn addresses(&self) -> Vec<SocketAddr> {
        self.place.to_socket_addrs().map_or(vec![], Iterator::collect)
    }

    /// This machine's loopback address, where all processes are said to be of one machine.
    fn loopback(&self) -> Option<SocketAddr> {
        let one_machine = self.launch.local_ranks == Some(self.launch.ranks);
        one_machine.then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)))
    }

    /// The first process: listens until all have come.
    fn receive_all(self) -> Result<Met, RanksError> {
        let listener = self.listen()?;
        let nobody = || std::iter::repeat_with(|| None).take(self.launch.ranks - 1).collect();
        let mut come: Come = [nobody(), nobody()];
        let outcome = self.gather(&listener, &mut come);
        let said = outcome.as_ref().map_or_else(|e| e.to_string(), |()| String::new());
        for stream in come.iter_mut().flatten().flatten() {
            answer(stream, &said);
        }
        outcome?;
        let [connections, lifelines] = come.map(|of| of.into_iter().flatten().collect());
        Ok(Met { connections, lifelines, place: self.place })
    }

    /// Listens where the others look for the first process: on the socket that its starter handed
    /// over, else at the loopback address or at the one that MASTER_ADDR names. Where that is not
    /// this machine's to give (a name that is translated on the way), at all addresses, with a
    /// secret.
    fn listen(&self) -> Result<TcpListener, RanksError> {
        let failed = |why: String| {
            let at = format!("{} (MASTER_ADDR, MASTER_PORT)", self.place);
            RanksError(format!("the first process cannot listen at {at}: {why}"))
        };
        let bound = match self.launch.listener.and_then(|n| handed_over::take(n, self.port)) {
            Some(listener) => Ok(listener),
            None => {
                let own = self.loopback().map_or_else(|| self.addresses(), |own| vec![own]);
                TcpListener::bind(&own[..]).or_else(|e| match e.kind() {
                    ErrorKind::AddrInUse => Err(failed(e.to_string())),
                    _ if self.launch.secret.is_empty() => Err(failed(format!(
                        "{e}; if this machine has that address under another name, set {SECRET} \
                         to the same word for all processes, and it listens at all of its addresses"
                    ))),
                    _ => TcpListener::bind((Ipv4Addr::UNSPECIFIED, self.port))
                        .map_err(|e| failed(e.to_string())),
                })
            }
        }?;
        let ready = bound.set_nonblocking(true).map(|()| bound);
        ready.map_err(|e| failed(e.to_string()))
    }

    /// Takes in whoever comes until all are here.
    fn gather(&self, listener: &TcpListener, come: &mut Come) -> Result<(), RanksError> {
        while come.iter().flatten().any(Option::is_none) {
            if let Ok((mut stream, _)) = listener.accept() {
                let ready = stream.set_nonblocking(false).is_ok()
                    && stream.set_read_timeout(Some(SILENCE)).is_ok()
                    && stream.set_nodelay(true).is_ok();
                let hello = Hello::read(&mut stream).filter(|_| ready);
                match hello {
                    // It cannot end the launch of those who know it.
                    Some(hello) if hello.secret != self.launch.secret => answer(
                        &mut stream,
                        &format!(
                            "rank 0 was told another {SECRET}, or none; set it to the same word \
                             for all"
                        ),
                    ),
                    Some(hello) => self.take_in(&hello, stream, come)?,
                    None => {}
                }
                continue;
            }
            if Instant::now() >= self.until {
                let missing = (1..self.launch.ranks).filter(|r| come[0][r - 1].is_none());
                let missing: Vec<usize> = missing.collect();
                return Err(RanksError(format!(
                    "{} of {} did not come within {} seconds; all processes are started with the \
                     same MASTER_ADDR, MASTER_PORT and WORLD_SIZE",
                    named(&missing),
                    self.launch.ranks,
                    self.patience.as_secs()
                )));
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn take_in(
        &self,
        hello: &Hello,
        mut stream: TcpStream,
        come: &mut Come,
    ) -> Result<(), RanksError> {
        let (rank, ranks) = (hello.rank as usize, hello.ranks as usize);
        let expected = self.launch.ranks;
        let why = if ranks != expected {
            format!(
                "rank {rank} was told of {ranks} processes, and rank 0 of {expected} (WORLD_SIZE)"
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
        Err(RanksError(why))
    }

    /// Another process: comes twice, for work and with a lifeline.
    fn come(self) -> Result<Met, RanksError> {
        let mut both = vec![self.reach(0)?, self.reach(1)?];
        for stream in &mut both {
            welcomed(stream, self.until)?;
        }
        let lifelines = both.split_off(1);
        Ok(Met { connections: both, lifelines, place: self.place })
    }

    /// Tries until the first process listens.
    fn reach(&self, purpose: u32) -> Result<TcpStream, RanksError> {
        let Launch { rank, ranks, secret, .. } = self.launch;
        let (rank, ranks, secret) = (*rank as u32, *ranks as u32, secret.clone());
        let hello = Hello { rank, ranks, purpose, secret }.bytes();
        loop {
            let mut places = self.loopback().into_iter().chain(self.addresses());
            let tried = places.find_map(|address| {
                let mut stream = TcpStream::connect_timeout(&address, SILENCE).ok()?;
                stream.set_nodelay(true).ok()?;
                stream.write_all(&hello).ok()?;
                Some(stream)
            });
            match tried {
                Some(stream) => return Ok(stream),
                None if Instant::now() >= self.until => {
                    return Err(RanksError(format!(
                        "rank 0 did not answer at {} (MASTER_ADDR, MASTER_PORT) within {} seconds",
                        self.place,
                        self.patience.as_secs()
                    )));
                }
                None => thread::sleep(PAUSE),
            }
        }
    }
}

/// Ranks in words, the first few of many.
fn named(ranks: &[usize]) -> String {
    let some: Vec<String> = ranks.iter().take(8).map(usize::to_string).collect();
    let more = match ranks.len() > some.len() {
        true => format!(" and {} more", ranks.len() - some.len()),
        false => String::new(),
    };
    let rank = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{rank} {}{more}", some.join(", "))
}

/// Says that all is well, by nothing, or what is not.
fn answer(stream: &mut TcpStream, said: &str) {
    let len = (said.len() as u32).to_le_bytes();
    // Who has gone meanwhile is missed at the first call.
    let _ = stream.write_all(&len).and_then(|()| stream.write_all(said.as_bytes()));
    let _ = stream.set_read_timeout(None);
}

/// Waits for the answer of the first process, which waits for all.
fn welcomed(stream: &mut TcpStream, until: Instant) -> Result<(), RanksError> {
    let lost = |e: std::io::Error| {
        RanksError(format!("rank 0 was reached, and did not say that all processes are there: {e}"))
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
    let said = wait().map_err(lost)?;
    match said.is_empty() {
        true => Ok(()),
        false => Err(RanksError(String::from_utf8_lossy(&said).into_owned())),
    }
}
