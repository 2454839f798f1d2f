//! Training, and the runs that it leaves.

use std::path::PathBuf;
use std::time::Duration;

use anchorhood::research::RunDir;
use anchorhood::{
    Dataset, Error, Event, Images, Labels, METHODS, Pictures, Preset, Run, RunOptions, SETTINGS,
    Setting, Split, Summary, Trainer, find_run, open_device,
};
use anchorhood_report::{curve_svg, read_metrics};
use anchorhood_train::{Kind, embedding_path};
use numpy::{PyArray4, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::errors::exception;
use crate::model::machine;
use crate::warn::Warnings;
use crate::work::{compute, work};

/// Pictures to train on, and a class for each where there are some.
pub type OwnSplit<'py> = (Bound<'py, PyArray4<u8>>, Option<Vec<String>>);
/// A name, pictures to train on, and to test on.
pub type Own<'py> = (String, OwnSplit<'py>, Option<OwnSplit<'py>>);

/// What is asked for of a run.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Asked {
    data: Option<String>,
    preset: Option<String>,
    config: Option<PathBuf>,
    /// Each by its name in config.toml, as it could be typed.
    settings: Vec<(String, String)>,
    pub minutes: Option<f64>,
    pub runs: PathBuf,
    pub name: Option<String>,
    /// A run's name or folder.
    resume: Option<PathBuf>,
}

/// Trains as the command line does. `hear` is given each event as JSON. Gives the run's folder,
/// whether it came to its end, and what broke it off: after an exception of `hear`, or Ctrl-C, it
/// is saved first.
#[pyfunction]
pub fn train(
    py: Python<'_>,
    asked: Asked,
    own: Option<Own<'_>>,
    hear: Bound<'_, PyAny>,
) -> PyResult<(PathBuf, bool, Option<Py<PyAny>>)> {
    let own = own.map(dataset).transpose()?;
    let mut hear = |event: String| hear.call1((event,)).map(|_| ());
    let ended = work(py, Duration::MAX, &mut hear, move |worker| {
        let hear = |event: &Event| {
            worker.tell(serde_json::to_string(event).expect("events are plain values"));
        };
        let trainer = trainer(asked, own)?.on_event(hear).stop_when(worker.stop());
        let run = trainer.train()?;
        Ok((run.path().to_path_buf(), run.stopped_at().is_none()))
    });
    let ((run, finished), interrupted) = ended?;
    let interrupted = interrupted.map(|why| why.into_value(py).into_any());
    Ok((run, finished, interrupted))
}

/// Every setting of the run that would begin: its name in config.toml, its value, and who decided
/// about it.
#[pyfunction]
pub fn explain(
    py: Python<'_>,
    asked: Asked,
    own: Option<Own<'_>>,
) -> PyResult<Vec<(&'static str, String, String)>> {
    let own = own.map(dataset).transpose()?;
    compute(py, move |_| {
        let explained = trainer(asked, own)?.explain()?.into_iter();
        Ok(explained.map(|e| (e.setting, e.value, e.from)).collect())
    })
}

fn trainer<'a>(asked: Asked, own: Option<Dataset>) -> Result<Trainer<'a>, Error> {
    let (runs, name, minutes) = (asked.runs.clone(), asked.name.clone(), asked.minutes);
    let resumed = asked.resume.as_deref();
    let resumed = resumed.map(|run| find_run(&runs, &run.to_string_lossy())).transpose()?;
    let mut trainer = Trainer::with_options(asked_options(asked)?).runs(runs, name);
    if let Some(minutes) = minutes {
        trainer = trainer.minutes(minutes);
    }
    if let Some(run) = resumed {
        trainer = trainer.resumed(run);
    }
    Ok(match own {
        Some(own) => trainer.images(&Images::in_memory(own)),
        None => trainer,
    })
}

/// What is asked for, as the library takes it.
pub fn asked_options(asked: Asked) -> Result<RunOptions, Error> {
    let mut options =
        RunOptions { data: asked.data, config: asked.config, ..RunOptions::default() };
    if let Some(name) = &asked.preset {
        let known = || Preset::ALL.map(Preset::name).join(", ");
        let preset = Preset::ALL.into_iter().find(|preset| preset.name() == name);
        options.preset = Some(preset.ok_or_else(|| {
            Error::usage(format!("preset: there is no `{name}`; there are {}", known()))
        })?);
    }
    for (name, text) in &asked.settings {
        let unknown = || Error::usage(format!("`{name}` is no setting of a run"));
        let setting = Setting::named(name).ok_or_else(unknown)?;
        let wrong = |why| Error::usage(format!("--{}: {text:?}: {why}", shown(setting)));
        setting.understands(text).map_err(wrong)?;
        options.settings.add(setting, text);
    }
    Ok(options)
}

/// What the caller calls a setting.
fn shown(setting: &Setting) -> &'static str {
    setting.flag.map_or(setting.name, |flag| flag.long)
}

/// Pictures that Python gives as a data set.
pub fn dataset((name, train, test): Own) -> PyResult<Dataset> {
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
    let made = || -> Result<Split, Error> {
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
    let others = |flag: anchorhood_train::Flag| {
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

/// Writes the page about a run, and gives its file.
#[pyfunction]
pub fn run_report(
    py: Python<'_>,
    run: PathBuf,
    data: Option<String>,
    overwrite: bool,
) -> PyResult<PathBuf> {
    let (page, warnings) = compute(py, move |_| {
        let mut warnings = Warnings::default();
        let hear = &mut |event: &Event| warnings.hear(event);
        Ok((Run::open(&run)?.write_report(data.as_deref(), overwrite, hear)?, warnings))
    })?;
    warnings.say(py)?;
    Ok(page)
}

/// A strip for each of some training pictures: its number, a PNG file's bytes, what it shows.
type Strips = Vec<(usize, Vec<u8>, String)>;

/// Where a run's network looked in each round.
#[pyfunction]
pub fn run_attention(
    py: Python<'_>,
    run: PathBuf,
    pictures: Vec<usize>,
    layer: String,
    data: Option<String>,
    on: (String, String, usize),
) -> PyResult<Strips> {
    compute(py, move |_| {
        let machine = machine(&on.0, &on.1, on.2)?;
        let (run, device) = (Run::open(&run)?, open_device(&machine, &mut |_| {})?);
        let (layer, data) = (Some(&*layer), data.as_deref());
        let strips = run.attention(&pictures, layer, data, &device, &|_, _| {})?;
        Ok(strips.into_iter().map(|s| (s.picture, s.png, s.sentence)).collect())
    })
}
