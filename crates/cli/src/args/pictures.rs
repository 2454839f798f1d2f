//! Which pictures, and by which model? Said in one way for all commands: folders, one or several, and `--model`, which is `base`
//! unless another is named. A first word that is a model counts as one where enough others follow it, so that `index MODEL FOLDER`
//! means what it always did; a notice says how it is said otherwise.

use std::path::{Path, PathBuf};

use anchorhood::data::find_pictures;
use anchorhood::files::OpenContainer;
use anchorhood::search::{Model, PictureIndex};
use anchorhood::train::{LabelsChoice, model_path, refitted_path};
use clap::Args;

use crate::args::model::load_model;
use crate::args::resolve::find_run;
use crate::terminal::failure::Failure;

/// Which model.
#[derive(Debug, Args)]
pub struct ModelFlag {
    /// The model: `base` (inside the program), a run's name or folder, a checkpoint or model file, or an ONNX model [default: base; of an
    /// index, the one that made it].
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Where runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub runs: PathBuf,
}

/// Words of a command line: the model where one was named, and the rest.
#[derive(Debug, PartialEq)]
pub struct Words<'a> {
    pub model: Option<String>,
    pub rest: &'a [PathBuf],
}

impl ModelFlag {
    /// Tells the model from pictures. It is the first word where that is `base`, a run or a model file, at least `after` words follow
    /// it, and there is no `--model`.
    pub fn words<'a>(&self, words: &'a [PathBuf], after: usize) -> Result<Words<'a>, Failure> {
        let first = words.first().and_then(|word| word.to_str());
        let named = first.filter(|word| self.model.is_none() && self.is_model(word));
        match named {
            Some(word) if words.len() > after => {
                notice(word);
                Ok(Words {
                    model: Some(word.into()),
                    rest: &words[1..],
                })
            }
            Some(word) if !Path::new(word).exists() => Err(Failure::usage(format!(
                "`{word}` is a model, and no pictures are named; say `--model {word}` and then which"
            ))),
            None if words.len() > after && self.is_nothing(&words[0]) => {
                let name = words[0].to_string_lossy();
                let failure = find_run(&self.runs, &name).map(|_| ());
                let why = failure.err().and_then(|f| f.message).unwrap_or_default();
                Err(Failure::usage(format!(
                    "{name}: there is no such folder or file, and {why}"
                )))
            }
            Some(_) | None => Ok(Words {
                model: self.model.clone(),
                rest: words,
            }),
        }
    }

    /// Neither a model nor pictures nor, by its name, an index.
    fn is_nothing(&self, word: &Path) -> bool {
        self.model.is_none() && !word.exists() && !is_index(word)
    }

    fn is_model(&self, word: &str) -> bool {
        let path = Path::new(word);
        word == Model::BASE
            || find_run(&self.runs, word).is_ok()
            || (path.is_file() && !holds_pictures(path) && !is_index(path))
    }

    /// The model that was named, else `base`.
    pub fn load(&self, named: Option<&str>) -> Result<Model, Failure> {
        load_model(&self.runs, named.unwrap_or(Model::BASE))
    }

    /// The model that was named, else the one that made an index, where it can be found.
    pub fn load_for(
        &self,
        index: &PictureIndex,
        named: Option<&str>,
    ) -> Result<Option<Model>, Failure> {
        match named {
            Some(named) => {
                let model = load_model(&self.runs, named)?;
                index.check_model(&model)?;
                Ok(Some(model))
            }
            None => Ok(maker(&self.runs, index)),
        }
    }
}

/// Says how a model is named, and which of two things of one name was taken.
fn notice(word: &str) {
    let also = match Path::new(word).is_dir() && !Path::new(word).join("config.toml").is_file() {
        true => " (there is a folder of this name, too; to mean it, name the model by --model)",
        false => "",
    };
    eprintln!(
        "note: `{word}` is taken as the model, which is otherwise said by --model {word}{also}"
    );
}

/// Whether a file is an archive of pictures, or a list of them.
fn holds_pictures(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default();
    ["tar", "txt"]
        .iter()
        .any(|e| ending.eq_ignore_ascii_case(e))
}

/// Whether a file is an index, whole or not.
pub fn is_index(path: &Path) -> bool {
    let named = path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("index"));
    let format = || {
        let open = OpenContainer::open(path, &anchorhood::files::Disk).ok()?;
        open.metadata().get("format").cloned()
    };
    named || format().as_deref() == Some("anchorhood-index")
}

/// Whether a word means pictures to look through, and not an index of them.
pub fn is_folder(path: &Path) -> bool {
    path.is_dir() || (path.is_file() && holds_pictures(path))
}

/// The model that made an index: the one inside the program, the one it names, or that of one of the runs.
fn maker(runs: &Path, index: &PictureIndex) -> Option<Model> {
    let fits = |model: &Model| index.check_model(model).is_ok();
    let load = |path: PathBuf| {
        let there = path.is_file().then(|| Model::load(&path).ok());
        there.flatten().filter(fits)
    };
    let named = || index.parts().model_path.as_ref().map(PathBuf::from);
    let runs = || {
        let folders = std::fs::read_dir(runs).into_iter().flatten().flatten();
        folders.flat_map(|folder| [refitted_path, model_path].map(|of| of(&folder.path())))
    };
    let base = Model::base().ok().filter(fits);
    base.or_else(|| named().and_then(load))
        .or_else(|| runs().find_map(load))
}

/// Pictures to ask about: files, and all that are in folders.
pub fn queries(words: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut all = vec![];
    for word in words {
        if is_folder(word) {
            let found = find_pictures(word, LabelsChoice::None.into())?;
            all.extend(found.files.into_iter().map(|file| file.path));
        } else if word.exists() {
            all.push(word.clone());
        } else {
            let word = word.display();
            return Err(Failure::usage(format!("{word}: there is no such picture")));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flag(model: Option<&str>, runs: &Path) -> ModelFlag {
        ModelFlag {
            model: model.map(String::from),
            runs: runs.into(),
        }
    }

    #[test]
    fn a_first_word_is_the_model_where_it_is_one_and_others_follow() {
        let place = tempfile::tempdir().unwrap();
        let runs = place.path().join("runs");
        std::fs::create_dir_all(runs.join("mine")).unwrap();
        std::fs::write(runs.join("mine/config.toml"), "").unwrap();
        let file = |name: &str| {
            std::fs::write(place.path().join(name), "x").unwrap();
            place.path().join(name)
        };
        let [weights, list, index] = ["w.pth", "l.txt", "a.index"].map(file);
        let pictures = place.path().to_owned();
        let model = |words: &[&Path], flagged, after| {
            let words: Vec<PathBuf> = words.iter().map(|w| w.to_path_buf()).collect();
            let flag = flag(flagged, &runs);
            let found = flag.words(&words, after);
            found
                .map(|found| (found.model, found.rest.len()))
                .map_err(|f| f.message.unwrap())
        };
        let some = |name: &str, rest| Ok((Some(name.to_string()), rest));
        let mine = Path::new("mine");
        assert_eq!(model(&[mine, &pictures], None, 1), some("mine", 1));
        assert_eq!(
            model(&[Path::new("base"), &pictures], None, 1),
            some("base", 1)
        );
        assert_eq!(
            model(&[&weights, &pictures], None, 1),
            some(weights.to_str().unwrap(), 1)
        );
        for first in [&list, &index, &pictures] {
            assert_eq!(
                model(&[first, &pictures], None, 1),
                Ok((None, 2)),
                "{first:?}"
            );
        }
        assert_eq!(
            model(&[&pictures, &pictures], Some("mine"), 1),
            some("mine", 2)
        );
        assert!(
            model(&[mine], None, 1)
                .unwrap_err()
                .contains("--model mine")
        );
        // An index and a query: no model among them.
        assert_eq!(model(&[&index, &weights], None, 2), Ok((None, 2)));
    }
}
