//! From a subject, a scale and a seed to the configuration of a run and its name.

use anchorhood_train::{MachineConfig, Preset, RunConfig};

use crate::small_set::{PICTURES, SIDE, TEST_PICTURES};
use crate::{SMALL_SET, Scale, Start, Subject, System};

/// A subject with all that decides its run.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Whose features.
    pub subject: Subject,
    /// How large.
    pub scale: Scale,
    /// Decides every random draw.
    pub seed: u64,
}

impl Job {
    /// The Instance run that an AND run begins from.
    pub fn before(&self) -> Job {
        Job { subject: Subject { method: System::Instance, ..self.subject }, ..self.clone() }
    }

    /// Epochs a round.
    pub fn epochs(&self) -> usize {
        self.scale.epochs(self.subject.epochs)
    }

    /// What `data` opens; `place` is what was found for the set.
    pub fn spec(&self, place: &str) -> String {
        match self.scale {
            Scale::Smoke => "shapes".into(),
            _ => place.into(),
        }
    }
}

/// The configuration of a job, on the data set that `spec` names. What a supervised run has instead
/// of features is known only once its classes are.
pub fn config_of(job: &Job, spec: &str, machine: &MachineConfig) -> RunConfig {
    let subject = &job.subject;
    let mut c = match subject.method {
        System::Rival(method) => Preset::Paper.config_for(spec, method),
        System::And { .. } | System::Instance | System::Untrained | System::Supervised => {
            Preset::Paper.config(spec)
        }
    };
    c.seed = job.seed;
    c.machine = machine.clone();
    c.network.architecture = subject.network;
    c.network.width = subject.network.width;
    c.training.epochs = job.epochs();
    c.training.rounds = 0;
    if let System::And { neighbours, rounds, curriculum, .. } = subject.method {
        c.discovery.neighbours = neighbours;
        c.discovery.curriculum = curriculum;
        c.training.rounds = rounds;
    }
    for (name, value) in subject.settings {
        c.set(name, value).expect("an experiment names settings and values there are");
    }
    // The headline is the last epoch's; judging every epoch would cost time and tempt to pick.
    c.evaluation.every = c.training.epochs;
    if subject.set == SMALL_SET {
        c.data.size = Some(SIDE);
        c.data.limit = Some(PICTURES);
        c.data.test_limit = Some(TEST_PICTURES);
    }
    match job.scale {
        Scale::Paper => {}
        Scale::Short => {
            if subject.set == "imagenet" {
                c.data.size = Some(64);
                c.data.limit = Some(50_000);
                c.data.test_limit = Some(10_000);
            }
        }
        Scale::Smoke => {
            c.data.shapes_train = 160;
            c.data.shapes_test = 80;
            c.data.size = Some(16);
            (c.data.limit, c.data.test_limit) = (None, None);
            c.network.width = 2;
            c.method.projector_width /= 32;
            c.network.features = 32;
            c.training.batch = 32;
            c.evaluation.k = 20;
        }
    }
    c
}

/// What a job's run is called: its data set, network, method, what is otherwise than in the paper,
/// and seed. Two jobs of one scale that are the same run have the same name, and are trained once.
pub fn name_of(job: &Job) -> String {
    let s = &job.subject;
    let set = match job.scale {
        Scale::Smoke => "shapes",
        _ => s.set,
    };
    let epochs = job.epochs();
    let method = match s.method {
        System::And { neighbours, rounds, curriculum, start } => {
            let curriculum = match curriculum {
                anchorhood_train::CurriculumChoice::Linear => "linear",
                anchorhood_train::CurriculumChoice::OneOff => "oneoff",
            };
            let start = match start {
                Start::Instance => "",
                Start::Random => "-random-start",
            };
            format!("and-r{rounds}-k{neighbours}-{curriculum}{start}-e{epochs}")
        }
        System::Instance => format!("instance-e{epochs}"),
        System::Untrained => "untrained".into(),
        System::Supervised => format!("supervised-e{epochs}"),
        System::Rival(method) => format!("{method}-e{epochs}"),
    };
    let otherwise = |(name, value): &(&str, &str)| {
        let name = name.split_once('.').map_or(*name, |(_, own)| own);
        format!("-{name}-{}", value.replace(',', "-"))
    };
    let settings: String = s.settings.iter().map(otherwise).collect();
    format!("{set}-{}-{method}{settings}-s{}", s.network, job.seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments;
    use std::collections::HashMap;

    fn jobs(scale: Scale) -> Vec<Job> {
        let all = experiments();
        let subjects = all.iter().flat_map(|e| &e.entries).filter_map(|e| e.ours);
        let jobs = subjects.map(|(subject, _)| Job { subject, scale, seed: 0 });
        jobs.collect()
    }

    fn machine() -> MachineConfig {
        Preset::Quick.config("shapes").machine
    }

    #[test]
    fn every_configuration_can_be() {
        for scale in Scale::ALL {
            for job in jobs(scale) {
                let spec = job.spec(job.subject.set);
                config_of(&job, &spec, &machine()).check().unwrap();
            }
        }
    }

    /// Runs are shared by name, so a name must stand for one configuration.
    #[test]
    fn one_name_is_one_configuration() {
        for scale in Scale::ALL {
            let mut seen = HashMap::new();
            for job in jobs(scale) {
                let spec = job.spec(job.subject.set);
                let config = config_of(&job, &spec, &machine());
                let before = seen.insert(name_of(&job), config.clone());
                assert!(before.is_none_or(|b| b == config), "{}", name_of(&job));
            }
            assert!(seen.len() > 15);
        }
    }

    #[test]
    fn the_papers_scale_is_the_papers() {
        let job = Job {
            subject: Subject {
                set: "imagenet",
                network: &anchorhood_models::ALEXNET,
                method: System::AND,
                epochs: 200,
                settings: &[],
            },
            scale: Scale::Paper,
            seed: 3,
        };
        let config = config_of(&job, "imagenet", &machine());
        assert_eq!(config.training.batch, 256);
        assert_eq!((config.training.rounds, config.training.epochs), (4, 200));
        assert_eq!((config.network.width, config.network.features), (64, 128));
        assert_eq!(config.data.limit, None);
        assert_eq!(name_of(&job), "imagenet-alexnet-and-r4-k1-linear-e200-s3");
        assert_eq!(name_of(&job.before()), "imagenet-alexnet-instance-e200-s3");
    }
}
