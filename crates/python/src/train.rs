//! Training, and the runs that it leaves.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anchorhood::data::{Dataset, Labels, Pictures, Split};
use anchorhood::report::{Summary, curve_svg, read_metrics};
use anchorhood::train::methods::METHODS;
use anchorhood::train::{Event, Kind, Outcome, RunDir, SETTINGS, Setting, embedding_path};
use anchorhood_cli::{Failure, Viewer};
use numpy::{PyArray4, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::errors::exception;
use crate::work::{Worker, compute, work};

/// Pictures to train on, and a class for each where there are some.
type OwnSplit<'py> = (Bound<'py, PyArray4<u8>>, Option<Vec<String>>);
/// A name, pictures to train on, and to test on.
type Own<'py> = (String, OwnSplit<'py>, Option<OwnSplit<'py>>);

/// Trains as the command line does with these words. `hear` is given each event as JSON. Gives the
/// run's folder, whether it came to its end, and what broke it off: after an exception of `hear`,
/// or Ctrl-C, it is saved first.
#[pyfunction]
pub fn train(
    py: Python<'_>,
    words: Vec<OsString>,
    own: Option<Own<'_>>,
    hear: Bound<'_, PyAny>,
) -> PyResult<(PathBuf, bool, Option<Py<PyAny>>)> {
    let own = own.map(dataset).transpose()?;
    let mut hear = |event: String| hear.call1((event,)).map(|_| ());
    let ended = work(py, Duration::MAX, &mut hear, move |worker| {
        let mut told = ToPython(worker);
        let trained = anchorhood_cli::train(words, own, &mut told, worker.stop())?;
        let finished = matches!(trained.outcome, Outcome::Finished(_));
        Ok((trained.run, finished))
    });
    let ((run, finished), interrupted) = ended?;
    let interrupted = interrupted.map(|why| why.into_value(py).into_any());
    Ok((run, finished, interrupted))
}

/// Hands events to Python's thread.
struct ToPython<'a, T>(&'a Worker<T, String>);

impl<T: Send> Viewer for ToPython<'_, T> {
    fn event(&mut self, event: &Event) {
        self.0.tell(serde_json::to_string(event).expect("events are plain values"));
    }

    fn note(&mut self, text: &str) {
        self.0.tell(serde_json::json!({ "event": "note", "message": text }).to_string());
    }

    fn loading(&mut self, done: usize, total: usize) {
        let event = serde_json::json!({ "event": "loading", "done": done, "pictures": total });
        self.0.tell(event.to_string());
    }
}

fn dataset((name, train, test): Own) -> PyResult<Dataset> {
    let (train, test) = (split(train)?, test.map(split).transpose()?);
    let data = Dataset::new(name, train);
    let data = match test {
        Some(test) => data.with_test(test),
        None => Ok(data),
    };
    data.map_err(|e| exception(e.into()))
}

fn split((pictures, labels): OwnSplit) -> PyResult<Split> {
    let bytes = pictures.try_readonly()?.as_slice()?.to_vec();
    let shape = pictures.shape();
    let made = || -> Result<Split, Failure> {
        let split = Split::from(Pictures::new(shape[1], shape[2], bytes)?);
        Ok(match labels {
            Some(labels) => split.labelled(Labels::from_names(labels))?,
            None => split,
        })
    };
    made().map_err(exception)
}

/// A setting as it is declared: its name in config.toml, its flag, the flag's other names, what may
/// be its value, its help.
type Declared = (&'static str, Option<&'static str>, Vec<String>, String, String);

/// Every setting of a run.
#[pyfunction]
pub fn settings() -> Vec<Declared> {
    SETTINGS.iter().map(declared).collect()
}

fn declared(setting: &'static Setting) -> Declared {
    let kind = match setting.kind {
        Kind::Whole => "int".into(),
        Kind::Real => "float".into(),
        Kind::Bool => "bool".into(),
        Kind::Text => "str".into(),
        Kind::Pair => "two floats".into(),
        Kind::List => "floats".into(),
        Kind::Choice(names) => names.join(" | "),
        Kind::Method => METHODS.names().replace(", ", " | "),
    };
    let others = |flag: anchorhood::train::Flag| {
        let short = flag.short.map(String::from);
        short.into_iter().chain(flag.alias.map(String::from))
    };
    let others = setting.flag.into_iter().flat_map(others).collect();
    let flag = setting.flag.map(|flag| flag.long);
    (setting.name, flag, others, kind, setting.help())
}

/// The settings of a run by their names, as they could be typed.
#[pyfunction]
pub fn run_config(run: PathBuf) -> PyResult<Vec<(&'static str, String)>> {
    let config = RunDir::config_of(&run).map_err(|e| exception(e.into()))?;
    let value = |setting: &'static Setting| (setting.name, setting.text(&config));
    Ok(SETTINGS.iter().map(value).collect())
}

/// The file of a run's model.
#[pyfunction]
pub fn run_model(run: PathBuf) -> PathBuf {
    embedding_path(&run)
}

/// A run's events that are kept, as JSON, one each.
#[pyfunction]
pub fn run_events(py: Python<'_>, run: PathBuf) -> PyResult<Vec<String>> {
    compute(py, move |_| {
        let events = read_metrics(&run.join("metrics.jsonl"))?.events;
        let text = |event: &Event| serde_json::to_string(event).expect("events are plain values");
        Ok(events.iter().map(text).collect())
    })
}

/// A run's curve as SVG, and what it came to in words.
#[pyfunction]
pub fn run_summary(py: Python<'_>, run: PathBuf) -> PyResult<(String, String)> {
    compute(py, move |_| {
        let summary = Summary::of(&read_metrics(&run.join("metrics.jsonl"))?.events);
        let verdict = summary.verdict().map(|verdict| verdict.to_string());
        let words = [Some(summary.table()), verdict].into_iter().flatten();
        Ok((curve_svg(&summary)?, words.collect::<Vec<_>>().join("\n\n")))
    })
}
