//! Which process of how many is this one? As the launcher says it by environment variables, and not
//! by anything else.

use std::fmt;

/// The variable of a word that all processes of a launch know and nobody else.
pub(crate) const SECRET: &str = "ANCHORHOOD_SECRET";
/// The variable of a listening socket that the first process inherits, by its number.
pub(crate) const LISTENER: &str = "ANCHORHOOD_LISTENER";

/// A word that is not shown. How long a comparison takes does not tell how much of it was right.
#[derive(Clone, Default)]
pub struct Secret(String);

impl Secret {
    /// Empty for none.
    pub fn new(word: String) -> Secret {
        Secret(word)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Secret) -> bool {
        let (a, b) = (self.bytes(), other.bytes());
        let differing = a.iter().zip(b).fold(0, |d, (a, b)| d | (a ^ b));
        a.len() == b.len() && std::hint::black_box(differing) == 0
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(if self.is_empty() { "none" } else { "a secret" })
    }
}

/// Who started the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// `torchrun`, or variables of its names set by hand.
    Torchrun,
    /// Open MPI's `mpirun`.
    OpenMpi,
    /// Slurm's `srun`.
    Slurm,
    /// MPICH's or Intel MPI's `mpirun` (Hydra), or another by PMI.
    Pmi,
}

impl Launcher {
    /// In the order in which they are asked.
    const ALL: [Launcher; 4] =
        [Launcher::Torchrun, Launcher::OpenMpi, Launcher::Slurm, Launcher::Pmi];

    /// The variables of rank and number of processes, then of the same among the processes of one
    /// machine; each by its names, of which the first that is set counts.
    fn variables(self) -> [&'static [&'static str]; 4] {
        match self {
            Launcher::Torchrun => {
                [&["RANK"], &["WORLD_SIZE"], &["LOCAL_RANK"], &["LOCAL_WORLD_SIZE"]]
            }
            Launcher::OpenMpi => [
                &["OMPI_COMM_WORLD_RANK"],
                &["OMPI_COMM_WORLD_SIZE"],
                &["OMPI_COMM_WORLD_LOCAL_RANK"],
                &["OMPI_COMM_WORLD_LOCAL_SIZE"],
            ],
            // A batch script that srun did not start has SLURM_PROCID and SLURM_NTASKS, too; of a
            // step only srun tells.
            Launcher::Slurm => {
                [&["SLURM_PROCID"], &["SLURM_STEP_NUM_TASKS"], &["SLURM_LOCALID"], &[]]
            }
            Launcher::Pmi => [
                &["PMI_RANK", "PMIX_RANK"],
                &["PMI_SIZE", "PMIX_SIZE"],
                &["MPI_LOCALRANKID", "PMI_LOCAL_RANK"],
                &["MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"],
            ],
        }
    }

    /// Whether half of its variables may be set by somebody else, and then say nothing.
    fn may_be_half(self) -> bool {
        match self {
            // Any program may call a variable RANK; two of them with a meaning are no accident.
            Launcher::Torchrun | Launcher::OpenMpi => false,
            Launcher::Slurm => true,
            // Open MPI's own processes have PMIX_RANK, and their number by other names.
            Launcher::Pmi => true,
        }
    }
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Launcher::Torchrun => "the environment (RANK, WORLD_SIZE)",
            Launcher::OpenMpi => "Open MPI's mpirun",
            Launcher::Slurm => "Slurm's srun",
            Launcher::Pmi => "the launcher (PMI)",
        })
    }
}

/// One of several processes that were started together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Who started them.
    pub launcher: Launcher,
    /// This one's number, from 0.
    pub rank: usize,
    /// How many there are.
    pub ranks: usize,
    /// Its number among those of this machine, where that is told.
    pub local_rank: Option<usize>,
    /// How many are on this machine, where that is told.
    pub local_ranks: Option<usize>,
    /// Where the first one can be reached, where that is told: host and port.
    pub master: Option<(String, u16)>,
    /// What each of them knows and nobody else; empty where no such word was given.
    pub secret: Secret,
    /// Of the first: the number of a socket that listens at `master` already, which it inherited.
    pub listener: Option<i32>,
}

/// Variables that cannot be what a launcher meant: a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LaunchError(String);

impl LaunchError {
    /// One without the other.
    fn half(set: &str, unset: &str) -> Self {
        LaunchError(format!(
            "{set} is set and {unset} is not: of processes that work together, each has both; \
             set {unset}, or neither"
        ))
    }

    /// No number.
    pub(crate) fn number(name: &str, value: &str) -> Self {
        LaunchError(format!("{name}={value}: not a whole number"))
    }
}

/// Looks a variable up.
type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Launch {
    /// What this process's environment says; nothing where it was started alone.
    pub fn from_environment() -> Result<Option<Launch>, LaunchError> {
        Launch::from_variables(&|name| std::env::var(name).ok())
    }

    /// The same of any environment. One process of one is alone.
    pub fn from_variables(get: Variables) -> Result<Option<Launch>, LaunchError> {
        let mut found: Vec<Launch> = vec![];
        for launcher in Launcher::ALL {
            found.extend(told_by(launcher, get)?);
        }
        let mut found = found.into_iter();
        let Some(mut launch) = found.next() else {
            return Ok(None);
        };
        // Slurm's step may be that of Open MPI's own servers, one for each machine.
        let mut others = found.filter(|l| l.launcher != Launcher::Slurm);
        let says = |l: &Launch| [l.rank, l.ranks];
        if let Some(other) = others.find(|other| says(other) != says(&launch)) {
            let ([a, b], [c, d]) = (says(&launch), says(&other));
            let (first, second) = (launch.launcher, other.launcher);
            return Err(LaunchError(format!(
                "{first} says that this is rank {a} of {b}, and {second} that it is rank {c} of \
                 {d}; unset the variables of one of them"
            )));
        }
        launch.master = master(get)?;
        launch.secret = Secret::new(get(SECRET).unwrap_or_default());
        launch.listener = listener(get)?.filter(|_| launch.rank == 0);
        Ok(Some(launch).filter(|launch| launch.ranks > 1))
    }

    /// Whether it is the one that writes and speaks.
    pub fn is_first(&self) -> bool {
        self.rank == 0
    }
}

impl fmt::Display for Launch {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "rank {} of {}", self.rank, self.ranks)?;
        if let (Some(local), Some(locals)) = (self.local_rank, self.local_ranks) {
            write!(f, ", {local} of {locals} on this machine")?;
        }
        write!(f, ", as {} says", self.launcher)
    }
}

/// What one launcher says, if it has started this process.
fn told_by(launcher: Launcher, get: Variables) -> Result<Option<Launch>, LaunchError> {
    let [rank, ranks, local_rank, local_ranks] = launcher.variables();
    let (Some(rank), Some(ranks)) = (number(rank, get)?, number(ranks, get)?) else {
        return if launcher.may_be_half() { Ok(None) } else { half(rank, ranks, get) };
    };
    if rank.1 >= ranks.1 {
        let last = ranks.1.saturating_sub(1);
        return Err(LaunchError(format!(
            "{}={} and {}={}: ranks are counted from 0, so the last is {last}",
            rank.0, rank.1, ranks.0, ranks.1
        )));
    }
    Ok(Some(Launch {
        launcher,
        rank: rank.1,
        ranks: ranks.1,
        local_rank: number(local_rank, get)?.map(|n| n.1),
        local_ranks: number(local_ranks, get)?.map(|n| n.1),
        master: None,
        secret: Secret::default(),
        listener: None,
    }))
}

/// None of two variables is set, or one is and the other is missed.
fn half(rank: &[&str], ranks: &[&str], get: Variables) -> Result<Option<Launch>, LaunchError> {
    let is_set = |name: &&&str| get(name).is_some();
    let (a, b) = (rank.iter().find(is_set), ranks.iter().find(is_set));
    match (a, b) {
        (Some(set), None) => Err(LaunchError::half(set, ranks[0])),
        (None, Some(set)) => Err(LaunchError::half(set, rank[0])),
        (Some(_), Some(_)) | (None, None) => Ok(None),
    }
}

/// The first variable that is set, and its number.
fn number<'a>(names: &[&'a str], get: Variables) -> Result<Option<(&'a str, usize)>, LaunchError> {
    let set = names.iter().find_map(|name| Some((*name, get(name)?)));
    let Some((name, value)) = set else {
        return Ok(None);
    };
    match value.trim().parse() {
        Ok(number) => Ok(Some((name, number))),
        Err(_) => Err(LaunchError::number(name, &value)),
    }
}

/// MASTER_ADDR and MASTER_PORT.
fn master(get: Variables) -> Result<Option<(String, u16)>, LaunchError> {
    let (Some(host), Some(port)) = (get("MASTER_ADDR"), get("MASTER_PORT")) else {
        return Ok(None);
    };
    // torchrun itself listens there where it says so, and leaves the next port.
    let taken = get("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|v| v == "True");
    match port.trim().parse::<u16>() {
        Ok(port) => Ok(Some((host, port.saturating_add(u16::from(taken))))),
        Err(_) => {
            let most = u16::MAX;
            Err(LaunchError(format!("MASTER_PORT={port}: not a whole number from 0 to {most}")))
        }
    }
}

fn listener(get: Variables) -> Result<Option<i32>, LaunchError> {
    let number = |value: String| value.parse().map_err(|_| LaunchError::number(LISTENER, &value));
    get(LISTENER).map(number).transpose()
}

/// An environment of `NAME=VALUE`s.
#[cfg(test)]
pub(crate) fn variables(all: &str) -> impl Fn(&str) -> Option<String> {
    move |name| {
        let value = all.split_whitespace().find_map(|v| v.strip_prefix(name)?.strip_prefix('='));
        value.map(String::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: &str) -> Result<Option<Launch>, LaunchError> {
        Launch::from_variables(&variables(all))
    }

    fn says(variables: &str) -> (Launcher, usize, usize, Option<usize>) {
        let launch = of(variables).unwrap().unwrap();
        (launch.launcher, launch.rank, launch.ranks, launch.local_rank)
    }

    fn refused(variables: &str) -> String {
        of(variables).unwrap_err().to_string()
    }

    #[test]
    fn nothing_said_is_a_process_alone() {
        for alone in [
            "",
            "RANK=0 WORLD_SIZE=1",
            "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1",
            // A batch script of Slurm, without srun.
            "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0",
            "PMIX_RANK=0",
            "MASTER_ADDR=a MASTER_PORT=1",
        ] {
            assert_eq!(of(alone), Ok(None), "{alone}");
        }
    }

    #[test]
    fn each_launcher_is_understood() {
        let torch = "RANK=3 WORLD_SIZE=8 LOCAL_RANK=1 MASTER_ADDR=node0 MASTER_PORT=29500";
        assert_eq!(says(torch), (Launcher::Torchrun, 3, 8, Some(1)));
        let launch = of(torch).unwrap().unwrap();
        assert_eq!(launch.master, Some(("node0".into(), 29500)));
        let elastic = format!("{torch} TORCHELASTIC_USE_AGENT_STORE=True");
        let launch = of(&elastic).unwrap().unwrap();
        assert_eq!(launch.master, Some(("node0".into(), 29501)));
        let ompi = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 \
                    PMIX_RANK=1";
        assert_eq!(says(ompi), (Launcher::OpenMpi, 1, 2, Some(0)));
        let slurm = "SLURM_PROCID=5 SLURM_NTASKS=6 SLURM_STEP_NUM_TASKS=6 SLURM_LOCALID=2";
        assert_eq!(says(slurm), (Launcher::Slurm, 5, 6, Some(2)));
        let hydra = "PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=4";
        assert_eq!(says(hydra), (Launcher::Pmi, 1, 4, Some(1)));
    }

    #[test]
    fn the_secret_is_compared_and_never_shown() {
        let told = "RANK=0 WORLD_SIZE=2 ANCHORHOOD_SECRET=open-sesame ANCHORHOOD_LISTENER=7";
        let launch = of(told).unwrap().unwrap();
        assert_eq!(launch.secret, Secret::new("open-sesame".into()));
        assert_ne!(launch.secret, Secret::new("open-sesamE".into()));
        assert_ne!(launch.secret, Secret::default());
        assert_eq!(launch.listener, Some(7));
        assert!(!format!("{launch:?} {launch}").contains("sesame"));
        assert_eq!(of(&told.replace("RANK=0", "RANK=1")).unwrap().unwrap().listener, None);
        assert!(refused("RANK=0 WORLD_SIZE=2 ANCHORHOOD_LISTENER=x").contains("whole number"));
    }

    #[test]
    fn the_first_in_order_counts() {
        let both =
            "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1";
        assert_eq!(says(both).0, Launcher::OpenMpi);
        let both = "RANK=1 WORLD_SIZE=2 PMI_RANK=1 PMI_SIZE=2";
        assert_eq!(says(both).0, Launcher::Torchrun);
    }

    #[test]
    fn what_cannot_be_is_a_sentence() {
        assert!(refused("RANK=0").contains("RANK is set and WORLD_SIZE is not"));
        assert!(refused("WORLD_SIZE=2").contains("WORLD_SIZE is set and RANK is not"));
        assert!(refused("RANK=x WORLD_SIZE=2").contains("RANK=x: not a whole number"));
        assert!(refused("RANK=2 WORLD_SIZE=2").contains("the last is 1"));
        let both = "RANK=0 WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4";
        let said = refused(both);
        assert!(said.contains("rank 0 of 2") && said.contains("rank 1 of 4"), "{said}");
        let port = "RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=70000";
        assert!(refused(port).contains("MASTER_PORT=70000: not a whole number from 0 to 65535"));
    }
}
