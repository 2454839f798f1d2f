//! Methods beside each other, and the paper's experiments.

use std::path::PathBuf;
use std::time::Duration;

use anchorhood::{Allowance, CompareOptions, Error, Event, METHODS, ReproduceOptions, Scale, Told};
use pyo3::prelude::*;

use crate::model::machine;
use crate::train::{Asked, asked_options};
use crate::work::{Worker, compute, work};

/// What is told, as JSON; nothing of what is no news to the caller.
fn told(told: Told) -> Option<String> {
    let event = |event: &Event| serde_json::to_string(event).expect("events are plain values");
    match told {
        Told::Note(text) | Told::Training(text) => Some(event(&Event::note(text))),
        Told::Event(of) => Some(event(of)),
        Told::Step { what, done, total } => {
            let step =
                serde_json::json!({ "event": "step", "what": what, "done": done, "total": total });
            Some(step.to_string())
        }
        Told::Trained { .. } => None,
    }
}

/// Does a job that tells of several runs; stopped, it is saved, and the same call goes on.
fn long<T: Send + 'static>(
    py: Python<'_>,
    hear: &Bound<'_, PyAny>,
    job: impl FnOnce(&Worker<T, String>) -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let mut hear = |event: String| hear.call1((event,)).map(|_| ());
    let (done, interrupted) = work(py, Duration::MAX, &mut hear, job)?;
    interrupted.map_or(Ok(done), Err)
}

/// Trains methods, each for as long as the others. Gives what came of it as JSON, the table, and
/// the folder it is written to.
#[pyfunction]
pub fn compare(
    py: Python<'_>,
    asked: Asked,
    methods: Vec<String>,
    view_epochs: Option<usize>,
    seeds: Vec<u64>,
    hear: Bound<'_, PyAny>,
) -> PyResult<(String, String, PathBuf)> {
    long(py, &hear, move |worker| {
        let method = |name: &String| {
            let unknown = || {
                Error::usage(format!(
                    "methods: there is no `{name}`; there are {}",
                    METHODS.names()
                ))
            };
            METHODS.find(name).ok_or_else(unknown)
        };
        let methods: Vec<_> = methods.iter().map(method).collect::<Result<_, Error>>()?;
        let allowance = match (asked.minutes, view_epochs) {
            (Some(minutes), None) => Allowance::Minutes(minutes),
            (None, Some(views)) => Allowance::ViewEpochs(views),
            _ => return Err(Error::usage("give either minutes or view_epochs, for each method")),
        };
        let (runs, name) = (asked.runs.clone(), asked.name.clone());
        let start = asked_options(asked)?;
        let options =
            CompareOptions { seeds, name, runs, start, ..CompareOptions::new(&methods, allowance) };
        let mut tell = |news: Told| told(news).into_iter().for_each(|news| worker.tell(news));
        let found = anchorhood::compare(&options, None, &mut tell, worker.stop())?;
        let json = serde_json::to_string(&found).expect("standings are plain values");
        Ok((json, found.table(), options.folder()?))
    })
}

/// The experiments of the paper: name, title, place in the paper.
#[pyfunction]
pub fn experiments(py: Python<'_>) -> PyResult<Vec<(&'static str, &'static str, &'static str)>> {
    compute(py, |_| {
        let all = anchorhood::experiments("all")?;
        Ok(all.iter().map(|e| (e.name, e.title, e.place)).collect())
    })
}

/// Carries experiments out: of each what came of it as JSON, the table, and the folder it is
/// written to.
#[pyfunction]
#[pyo3(signature = (name, scale, seeds, only, output, data, on, hear))]
pub fn reproduce(
    py: Python<'_>,
    name: String,
    scale: String,
    seeds: u64,
    only: Vec<String>,
    output: PathBuf,
    data: Option<PathBuf>,
    on: (String, String, usize),
    hear: Bound<'_, PyAny>,
) -> PyResult<Vec<(String, String, PathBuf)>> {
    long(py, &hear, move |worker| {
        let scale: Scale = scale.parse().map_err(|why| Error::usage(format!("scale: {why}")))?;
        let machine = machine(&on.0, &on.1, on.2)?;
        let options = ReproduceOptions { scale, seeds, only, output, data, machine };
        let wanted = anchorhood::experiments(&name)?;
        options.check()?;
        let mut tell = |news: Told| told(news).into_iter().for_each(|news| worker.tell(news));
        let device =
            anchorhood::open_device(&options.machine, &mut |event| tell(Told::Event(event)))?;
        let one = |experiment| {
            let found =
                anchorhood::reproduce(experiment, &options, &device, &mut tell, worker.stop())?;
            let json = serde_json::to_string(&found).expect("results are plain values");
            Ok((json, found.table(), options.results(experiment)))
        };
        wanted.iter().map(one).collect()
    })
}
