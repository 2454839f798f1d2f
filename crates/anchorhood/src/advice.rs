//! What to try when something went wrong. The error of a part says what is the matter and carries
//! the figures; which setting helps is known here and nowhere else.

use std::error::Error as StdError;
use std::io::ErrorKind;
use std::path::Path;

use anchorhood_data::DataError;
use anchorhood_engine::{Error, Fits};
use anchorhood_export::ExportError;
use anchorhood_index::SearchError;
use anchorhood_report::ReportError;
use anchorhood_reproduce::ReproduceError;
use anchorhood_serve::ServeError;
use anchorhood_storage::data_folder;
use anchorhood_train::{CheckpointError, Setting, TrainError};

/// Below this, a temperature is a likelier reason of overflow than the learning rate; the published
/// one is 0.1.
const LOW_TEMPERATURE: f64 = 0.05;

/// The way out: a clause that follows the error's sentence.
pub fn advice(error: &(dyn StdError + 'static)) -> Option<String> {
    None.or_else(|| error.downcast_ref().and_then(engine))
        .or_else(|| error.downcast_ref().and_then(data))
        .or_else(|| error.downcast_ref().and_then(checkpoint))
        .or_else(|| error.downcast_ref().and_then(train))
        .or_else(|| error.downcast_ref().and_then(search))
        .or_else(|| error.downcast_ref().and_then(report))
        .or_else(|| error.downcast_ref().and_then(serve))
        .or_else(|| error.downcast_ref().and_then(reproduce))
        .or_else(|| error.downcast_ref().and_then(export))
}

fn engine(error: &Error) -> Option<String> {
    match error {
        Error::Memory { fits, .. } => Some(memory(*fits)),
        _ => None,
    }
}

fn memory(fits: Option<Fits>) -> String {
    match fits {
        None => "a smaller --batch needs less".into(),
        Some(Fits::Batch { pictures, halved }) => {
            let fewer = match pictures {
                0 => "not one picture fits: a smaller --width or --size needs less".into(),
                fits => format!("--batch {fits} would fit"),
            };
            let half = ", and --precision bf16 needs half as much";
            format!("{fewer}{}", if halved { half } else { "" })
        }
        Some(Fits::Rows { percent }) => format!(
            "{percent}% of the pictures (--limit), or features shorter by as much (--features), \
             would fit"
        ),
        Some(Fits::ShorterRows) => "--device cpu would fit".into(),
    }
}

fn data(error: &DataError) -> Option<String> {
    match error {
        DataError::PackSize { asked, .. } => {
            Some(format!("leave --size out, or pack again with --size {asked}"))
        }
        DataError::Validation { there, .. } if *there > 2 => {
            Some(format!("--validate-on train:{} is the most", there - 2))
        }
        DataError::ValidationWithoutLabels { .. } => {
            Some("leave --validate-on out, or put the pictures into a folder for each class".into())
        }
        DataError::PackExists { .. } => Some("give another name, or --force to replace it".into()),
        _ => None,
    }
}

fn checkpoint(error: &CheckpointError) -> Option<String> {
    match error {
        CheckpointError::Write { source, .. } => Some(written(source.kind()).into()),
        CheckpointError::OtherMemory { .. } => Some("judge with --features recomputed".into()),
        CheckpointError::Engine(error) => engine(error),
        _ => None,
    }
}

/// What to do where a checkpoint could not be written.
fn written(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            "the run's folder was moved or removed: put it back and go on with --resume, or start \
             a new run"
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "allow writing there and go on with --resume"
        }
        // A full disk says so in several ways.
        _ => "make room there and go on with --resume",
    }
}

/// What to do about a setting that the model of `--from` has decided.
fn other_than_model(setting: &str) -> String {
    match Setting::named(setting).and_then(|s| s.flag) {
        Some(flag) => format!("leave --{} out, or train without --from", flag.long),
        // By a file, or because the model has changed.
        None => "give --from the model as it was, or start a new run".into(),
    }
}

fn train(error: &TrainError) -> Option<String> {
    Some(match error {
        TrainError::TooManyNeighbours { .. } => "lower --neighbours".into(),
        TrainError::NeighboursBeyondCount { most, .. } => {
            format!("--neighbours {most} is the most")
        }
        TrainError::TooLittleTime { needed, .. } => format!(
            "give --minutes {:.1}, fewer --rounds, a smaller --width or fewer pictures (--limit)",
            (needed / 6.0).ceil() / 10.0
        ),
        TrainError::UnevenBatch { batch, ranks } => {
            format!("--batch {} would do", (batch / ranks).max(1) * ranks)
        }
        TrainError::NotTogether { .. } => {
            "start it without a launcher, or learn by another --method".into()
        }
        TrainError::NotSquare { .. } => "give --size".into(),
        TrainError::OtherThanModel { setting, .. } => other_than_model(setting),
        TrainError::NoModel { .. } => "put it back where it was, or start a new run".into(),
        TrainError::RunExists { name, .. } => {
            format!("go on with it by `--resume {name}`, or choose another --name")
        }
        TrainError::RunName { .. } => "give such a --name, and its place with --runs".into(),
        TrainError::Busy { .. } => "wait for it, or choose another --name".into(),
        TrainError::Diverged { rate, temperature, .. } => match temperature {
            // The gradient grows as the temperature falls.
            Some(tau) if *tau < LOW_TEMPERATURE => {
                format!(
                    "start a new run with a higher --tau than {tau:?}, or a lower --lr than \
                     {rate:?}"
                )
            }
            _ => format!("start a new run with a lower --lr than {rate:?}"),
        },
        TrainError::LoaderEnded => "go on with --resume".into(),
        TrainError::DeviceFailed { .. } => "go on with --resume once the device works".into(),
        TrainError::Engine(error) => return engine(error),
        TrainError::Data(error) => return data(error),
        TrainError::Checkpoint(error) => return checkpoint(error),
        _ => return None,
    })
}

fn search(error: &SearchError) -> Option<String> {
    match error {
        SearchError::OtherJob { .. } => {
            Some("finish it as it was begun, or give --restart to throw it away".into())
        }
        SearchError::UnconfirmedRecord { .. } => {
            Some("look at the list of moves, and say --trust-record where it is right".into())
        }
        SearchError::Io { path, source } if is_result(path) && unwritable(source.kind()) => {
            Some("nothing can be written there: choose another place with -o".into())
        }
        SearchError::Io { path, source } if is_data(path) && unwritable(source.kind()) => {
            Some("set XDG_DATA_HOME to a folder that can be written to".into())
        }
        SearchError::Data(error) => data(error),
        SearchError::Checkpoint(error) => checkpoint(error),
        SearchError::Engine(error) => engine(error),
        _ => None,
    }
}

/// Whether a file is one of the user's decisions and keys.
fn is_data(path: &Path) -> bool {
    data_folder().is_some_and(|folder| path.starts_with(folder))
}

/// Whether a file is an index, or the journal of a job that makes one.
fn is_result(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default();
    ["index", "journal"].iter().any(|e| ending == *e)
}

fn unwritable(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

fn report(error: &ReportError) -> Option<String> {
    match error {
        ReportError::Checkpoint(error) => checkpoint(error),
        ReportError::PageKept { .. } => Some(
            "say with --data where the pictures are, or replace it all the same with --overwrite"
                .into(),
        ),
        ReportError::Engine(error) => engine(error),
        _ => None,
    }
}

fn serve(error: &ServeError) -> Option<String> {
    match error {
        ServeError::Taken { .. } => {
            Some("choose another with --port, or --port 0 for any that is free".into())
        }
        ServeError::Open { .. } => Some(
            "give --token-file FILE with a word that they then need, or leave --host out".into(),
        ),
        ServeError::BadToken => Some(
            "give a longer one by --token-file, ANCHORHOOD_TOKEN or --token, such as `openssl \
                  rand -hex 16` prints; or none with --host, and one is made"
                .into(),
        ),
        ServeError::WideFolder { .. } => Some(
            "name a narrower folder; for an index say with --folder where its pictures are, \
                  also where it is this one"
                .into(),
        ),
        ServeError::OtherPictures { .. } => {
            Some("give the data it was trained on with --data".into())
        }
        ServeError::Search(error) => search(error),
        ServeError::Report(error) => report(error),
        ServeError::Engine(error) => engine(error),
        _ => None,
    }
}

fn reproduce(error: &ReproduceError) -> Option<String> {
    match error {
        ReproduceError::Io { .. } => Some("give another folder with -o, or make room there".into()),
        ReproduceError::OtherAllowance { .. } => {
            Some("give the same, or another --name for this one".into())
        }
        ReproduceError::Train(error) => train(error),
        ReproduceError::Data(error) => data(error),
        ReproduceError::Engine(error) => engine(error),
        ReproduceError::Report(error) => report(error),
        _ => None,
    }
}

fn export(error: &ExportError) -> Option<String> {
    match error {
        ExportError::NotThere(_) => Some("export --onnx or --safetensors instead".into()),
        ExportError::Table { .. } => {
            Some("what was computed is kept, the same command goes on from there".into())
        }
        ExportError::Search(error) => search(error),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(error: impl Into<crate::Error>) -> String {
        error.into().with_advice()
    }

    #[test]
    fn an_unwritable_place_of_an_index_is_told_another() {
        let failed = |path: &str, kind: ErrorKind| {
            advice(&SearchError::Io { path: path.into(), source: kind.into() })
        };
        let told = failed(".small.index.journal", ErrorKind::PermissionDenied);
        assert!(told.unwrap().contains("-o"));
        assert!(failed("a/b.index", ErrorKind::ReadOnlyFilesystem).is_some());
        assert_eq!(failed("b.index", ErrorKind::NotFound), None);
        assert_eq!(failed("a.png", ErrorKind::PermissionDenied), None);
    }

    fn too_large(fits: Option<Fits>) -> Error {
        Error::Memory {
            what: "activations of 1000 pictures".into(),
            asked: 4000 << 20,
            free: 1000 << 20,
            total: 2000 << 20,
            fits,
        }
    }

    #[test]
    fn out_of_memory_names_the_flags_that_help() {
        let batch = |pictures, halved| Some(Fits::Batch { pictures, halved });
        let error = TrainError::from(too_large(batch(200, true)));
        assert_eq!(
            sentence(error),
            "activations of 1000 pictures: 4000 MiB asked for, 1000 of the device's 2000 MiB are \
             free; \
             --batch 200 would fit, and --precision bf16 needs half as much"
        );
        let ends = |fits, end: &str| {
            let said = sentence(too_large(fits));
            assert!(said.ends_with(end), "{said}");
        };
        ends(batch(0, false), "not one picture fits: a smaller --width or --size needs less");
        ends(
            Some(Fits::Rows { percent: 45 }),
            "45% of the pictures (--limit), or features shorter by as much (--features), would fit",
        );
        ends(Some(Fits::ShorterRows), "--device cpu would fit");
        ends(None, "; a smaller --batch needs less");
    }

    #[test]
    fn what_is_likely_is_named() {
        let diverged = |temperature| {
            sentence(TrainError::Diverged {
                what: "the loss".into(),
                value: f64::INFINITY,
                position: anchorhood_train::Position::default(),
                rate: 0.03,
                temperature,
                checkpoint: None,
            })
        };
        let (tau, rate) = ("higher --tau than 0.01", "lower --lr than 0.03");
        assert!(diverged(Some(0.01)).ends_with(&format!("a {tau}, or a {rate}")));
        for temperature in [Some(0.1), None] {
            let said = diverged(temperature);
            assert!(said.ends_with(rate) && !said.contains("--tau"), "{said}");
        }
        let unwritten = |kind: ErrorKind| {
            sentence(CheckpointError::Write { path: "last".into(), source: kind.into() })
        };
        assert!(unwritten(ErrorKind::NotFound).contains("put it back"));
        assert!(unwritten(ErrorKind::PermissionDenied).contains("allow writing"));
        assert!(unwritten(ErrorKind::StorageFull).contains("make room"));
    }

    /// Wherever an error comes up to, the way out is the same.
    #[test]
    fn advice_is_found_through_what_wraps_it() {
        let error = || too_large(None);
        let wrapped: [Box<dyn StdError>; 5] = [
            Box::new(SearchError::from(error())),
            Box::new(SearchError::from(CheckpointError::from(error()))),
            Box::new(ServeError::from(SearchError::from(error()))),
            Box::new(ReproduceError::from(TrainError::from(error()))),
            Box::new(ReportError::from(error())),
        ];
        for error in wrapped {
            assert_eq!(
                advice(&*error).as_deref(),
                Some("a smaller --batch needs less"),
                "{error:?}"
            );
        }
        let none = DataError::NotFound("x: there is no such file or folder".into());
        assert_eq!(sentence(none), "x: there is no such file or folder");
    }
}
