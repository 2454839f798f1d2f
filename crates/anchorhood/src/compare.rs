//! Methods beside each other, each for as long as the others; and the paper's tables and figures.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anchorhood_engine::Device;
use anchorhood_reproduce::{
    Allowance, Comparison, Experiment, Lab, LabFolders, Results, Scale, Standings, Told,
};
use anchorhood_storage::{Disk, FileSystem};
use anchorhood_train::{
    FeatureSource, MachineConfig, MethodSpec, Preset, RunConfig, check_run_name, run_name_from,
};

use crate::device::largest_images;
use crate::error::usage;
use crate::{Error, RunOptions, open_device, refit};

/// How often every run is judged, about, where nobody says.
const EVALUATIONS: usize = 20;

/// Which methods are compared, and how.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    /// The methods.
    pub methods: Vec<&'static MethodSpec>,
    /// How much each is given.
    pub allowance: Allowance,
    /// The seeds that each is repeated with; that of the settings where there is none.
    pub seeds: Vec<u64>,
    /// What to call the comparison; `compare-` and the data set where nobody says.
    pub name: Option<String>,
    /// Where runs are kept.
    pub runs: PathBuf,
    /// What each run begins from: data set, preset, settings.
    pub start: RunOptions,
}

impl CompareOptions {
    /// These methods, each given so much; all else as `train` has it.
    pub fn new(methods: &[&'static MethodSpec], allowance: Allowance) -> Self {
        CompareOptions {
            methods: methods.into(),
            allowance,
            seeds: vec![],
            name: None,
            runs: "runs".into(),
            start: RunOptions::default(),
        }
    }

    /// The folder of the runs and of what comes of them.
    pub fn folder(&self) -> Result<PathBuf, Error> {
        let name = match &self.name {
            Some(name) => name.clone(),
            None => {
                let set = &self.configs()?[0].data.set;
                let last = set.rsplit(['/', '\\', ':']).find(|part| !part.is_empty());
                format!("compare-{}", run_name_from(last.unwrap_or(set)))
            }
        };
        check_run_name(&name)?;
        Ok(self.runs.join(name))
    }

    /// A configuration for each seed and method; all of a seed are of the same images.
    fn configs(&self) -> Result<Vec<RunConfig>, Error> {
        if let Some(flag) = self.start.settings.flag("evaluation.features") {
            return Err(usage!(
                "--{flag} says nothing here: features of all methods are recomputed to be \
                 judged; leave it out"
            ));
        }
        let by = |method: &&'static MethodSpec| {
            let mut config = self.start.configuration_by(method)?;
            config.evaluation.features = FeatureSource::Recomputed;
            Ok(config)
        };
        let methods: Vec<RunConfig> = self.methods.iter().map(by).collect::<Result<_, Error>>()?;
        let Some(first) = methods.first() else {
            return Err(Error::usage("--methods: give at least one"));
        };
        let seeds = if self.seeds.is_empty() { vec![first.seed] } else { self.seeds.clone() };
        let with = |config: &RunConfig, seed| RunConfig { seed, ..config.clone() };
        let of_seed = |seed: &u64| methods.iter().map(|c| with(c, *seed)).collect::<Vec<_>>();
        let all: Vec<RunConfig> = seeds.iter().flat_map(of_seed).collect();
        all.iter().try_for_each(RunConfig::check)?;
        Ok(all)
    }
}

/// Trains what is missing and puts all of it side by side; writes it, too. What is finished is
/// read, what was interrupted goes on. `tell` hears what happens; `device` is the settings' where
/// there is none.
pub fn compare(
    options: &CompareOptions,
    device: Option<&Device>,
    tell: &mut (dyn FnMut(Told) + Send),
    stop: &AtomicBool,
) -> Result<Standings, Error> {
    let (configs, folder) = (options.configs()?, options.folder()?);
    let machine = &configs[0].machine;
    let device = match device {
        Some(device) => device.clone(),
        None => open_device(machine, &mut |event| tell(Told::Event(event)))?,
    };
    let comparison = Comparison {
        folder,
        allowance: options.allowance,
        largest: Some(largest_images(machine)),
        evaluations: (!options.start.settings.has("evaluation.every")).then_some(EVALUATIONS),
        rounds_asked_for: options.start.rounds_are_asked_for(),
        configs,
    };
    let mut hear = |told: Told| match told {
        Told::Trained { run, data } => {
            refit::refit(run, data, &device, &mut |event| tell(Told::Event(event)));
        }
        other => tell(other),
    };
    Ok(comparison.carry_out(&device, &mut hear, stop)?)
}

/// How the paper's experiments are carried out.
#[derive(Clone, Debug)]
pub struct ReproduceOptions {
    /// How large.
    pub scale: Scale,
    /// How often, with the seeds from 0 on.
    pub seeds: u64,
    /// Only these rows; of others what is finished already is shown.
    pub only: Vec<String>,
    /// Where runs and results are kept.
    pub output: PathBuf,
    /// Where data sets lie; as for `train` where nobody says.
    pub data: Option<PathBuf>,
    /// Where it runs.
    pub machine: MachineConfig,
}

impl Default for ReproduceOptions {
    fn default() -> Self {
        ReproduceOptions {
            scale: Scale::Short,
            seeds: 1,
            only: vec![],
            output: "reproduced".into(),
            data: None,
            machine: Preset::Quick.config("shapes").machine,
        }
    }
}

impl ReproduceOptions {
    fn folders(&self) -> LabFolders {
        let (output, data) = (self.output.clone(), self.data.clone());
        LabFolders { output, data, scale: self.scale }
    }

    /// The folder of an experiment's results.
    pub fn results(&self, experiment: &Experiment) -> PathBuf {
        self.folders().results(experiment.name)
    }

    /// Whether all is as it can be, and there is a place to write to: found out now, not after
    /// hours of training.
    pub fn check(&self) -> Result<(), Error> {
        let mut config = Preset::Quick.config("shapes");
        config.machine = self.machine.clone();
        config.check()?;
        if let Some(folder) = self.data.as_ref().filter(|f| !f.is_dir()) {
            return Err(usage!("--data-folder {}: there is no such folder", folder.display()));
        }
        Disk.create_folders(&self.folders().runs()).map_err(|e| {
            let place = self.output.display();
            Error::failed(format!("{place}: cannot write there: {e}; give another folder with -o"))
        })
    }
}

/// Carries an experiment of the paper out and writes its results. Nothing is trained or judged that
/// has been already; `tell` hears what happens.
pub fn reproduce(
    experiment: &Experiment,
    options: &ReproduceOptions,
    device: &Device,
    tell: &mut (dyn FnMut(Told) + Send),
    stop: &AtomicBool,
) -> Result<Results, Error> {
    options.check()?;
    let (folders, seeds) = (options.folders(), Vec::from_iter(0..options.seeds));
    let mut lab = Lab::new(device, &folders, &options.machine, tell, stop);
    let results = lab.carry_out(experiment, &seeds, &options.only)?;
    results.write(experiment, &options.results(experiment))?;
    Ok(results)
}

/// The experiments that a name means: one of them, or `all`.
pub fn experiments(name: &str) -> Result<Vec<Experiment>, Error> {
    Ok(anchorhood_reproduce::find(name)?)
}
