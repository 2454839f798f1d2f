//! Which process of how many is this one, and how do several end?

use std::thread;
use std::time::Duration;

use anchorhood::research::Communicator;
use anchorhood_distributed::{Launch, ThreadRank};

use crate::terminal::failure::Failure;

/// How long a process other than the first waits before it says what went wrong: where the same
/// went wrong everywhere, the first has said so by then, and all have ended.
const AFTER_THE_FIRST: Duration = Duration::from_secs(4);

/// The processes that were started together.
pub struct Ranks {
    /// They, seen from this one.
    pub communicator: Communicator,
    /// What the launcher says; nothing of a process alone.
    pub launch: Option<Launch>,
}

impl Ranks {
    /// Finds the others, if there are any.
    pub fn join() -> Result<Ranks, Failure> {
        let launch = Launch::from_environment().map_err(|e| Failure::usage(e.to_string()))?;
        let communicator = match &launch {
            None => alone(),
            Some(launch) => {
                let others = anchorhood_distributed::join(launch, |late| {
                    eprintln!("error: {late}");
                    std::process::exit(1);
                });
                Communicator::of(others.map_err(|e| once(launch, Failure::failed(e.to_string())))?)
            }
        };
        Ok(Ranks { communicator, launch })
    }

    /// How a command ends that all of them have worked on. What went wrong is said once, and ends
    /// all of them: whoever is still at work would wait for this one for ever.
    pub fn ended<T>(self, outcome: Result<T, Failure>) -> Result<T, Failure> {
        let (Some(launch), Err(failure)) = (&self.launch, &outcome) else {
            return outcome;
        };
        let Some(message) = &failure.message else {
            return outcome; // stopped, everywhere, and told
        };
        if !launch.is_first() {
            thread::sleep(AFTER_THE_FIRST);
        }
        let message = message.replace('\n', "\n  ");
        match launch.is_first() {
            true => eprintln!("error: {message}"),
            false => eprintln!("error: rank {}: {message}", launch.rank),
        }
        self.communicator.abort(failure.code.into());
        Err(Failure { message: None, code: failure.code })
    }
}

/// A process on its own; where ANCHORHOOD_TOGETHER is set, by the ways of several, so that their
/// cost can be measured.
pub fn alone() -> Communicator {
    match std::env::var_os("ANCHORHOOD_TOGETHER") {
        None => Communicator::single(),
        Some(_) => Communicator::even_alone(ThreadRank::all(1).remove(0)),
    }
}

/// Refuses what only one process can do, where several were started.
pub fn refuse_several(command: &str) -> Result<(), Failure> {
    // Variables that no launcher meant are no concern of a command that would not use them.
    let Ok(Some(launch)) = Launch::from_environment() else {
        return Ok(());
    };
    let refused = usage!(
        "`anchorhood {command}` is work for one process, and this is {launch}; start it without a \
         launcher; train is work for several, and embed has --shard"
    );
    Err(once(&launch, refused))
}

/// Lets the first process speak first: its end ends the others.
fn once(launch: &Launch, failure: Failure) -> Failure {
    if !launch.is_first() {
        thread::sleep(AFTER_THE_FIRST);
    }
    failure
}
