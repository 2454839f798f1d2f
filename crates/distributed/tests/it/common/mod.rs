//! Ranks that meet by TCP, each a thread of this process.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use anchorhood_distributed::{Collectives, Launch, Launcher, RanksError, Secret, open_tcp};

/// A place where nobody listens.
pub fn free_place() -> (String, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    ("127.0.0.1".into(), listener.local_addr().unwrap().port())
}

/// What a launcher tells one of several processes.
pub fn launch(rank: usize, ranks: usize, place: &(String, u16)) -> Launch {
    Launch {
        launcher: Launcher::Torchrun,
        rank,
        ranks,
        local_rank: None,
        local_ranks: None,
        master: Some(place.clone()),
        secret: Secret::default(),
        listener: None,
    }
}

/// What a rank meets.
pub type Joined = Result<Arc<dyn Collectives>, RanksError>;

/// Runs a body on a thread for each launch.
pub fn with_launches<R: Send>(
    launches: &[Launch],
    patience: Duration,
    body: impl Fn(Joined) -> R + Sync,
) -> Vec<R> {
    let body = &body;
    std::thread::scope(|scope| {
        let start = |launch| scope.spawn(move || body(open_tcp(launch, patience)));
        let threads: Vec<_> = launches.iter().map(start).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

/// The same for so many ranks that agree.
pub fn by_tcp<R: Send>(ranks: usize, body: impl Fn(Joined) -> R + Sync) -> Vec<R> {
    let place = free_place();
    let launches: Vec<_> = (0..ranks).map(|rank| launch(rank, ranks, &place)).collect();
    with_launches(&launches, Duration::from_secs(60), body)
}
