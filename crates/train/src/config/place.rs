//! Where a run's pictures lie: what was typed in one folder, found again from any other.
//!
//! The typed words stay as they are, and the folder they were typed in is kept beside them: a project that moves as a whole,
//! or that goes to another machine, still finds its pictures from its own folder.

use std::path::{Path, PathBuf};

use anchorhood_data::facts_of;

use super::DataConfig;

impl DataConfig {
    /// For a new run: `set` is seen from the folder we are in, if anything is there, and from the folder that a
    /// configuration file names otherwise. Nothing is kept where the folder does not matter.
    pub fn settle(&mut self) {
        let here = std::env::current_dir().ok();
        // A name that is no text cannot be kept in a text.
        let Some(here) = here.and_then(|h| h.to_str().map(String::from)) else {
            return;
        };
        if let Some(there) = seen_from(&here, &self.set) {
            self.seen_from = (there != self.set).then_some(here);
        }
    }

    /// What to open: `set` as seen from where the run was started; as seen from here, if nothing is there any more.
    pub fn place(&self) -> String {
        let folder = self.seen_from.as_deref();
        let there = folder.and_then(|folder| seen_from(folder, &self.set));
        there.unwrap_or_else(|| self.set.clone())
    }

    /// What the run was trained on, for an error that says it is not found.
    pub fn describe_place(&self) -> String {
        let set = &self.set;
        match &self.seen_from {
            Some(folder) => format!("`{set}`, as seen from {folder}"),
            None if is_absolute(set) => format!("`{set}`"),
            None => format!("`{set}`, as seen from the folder it was started in"),
        }
    }
}

/// What to type in any folder for what `spec` means in this one; none where nothing is there, or it lies nowhere (`shapes`).
fn seen_from(folder: &str, spec: &str) -> Option<String> {
    let (name, path) = parts(spec);
    let path = match (name, path) {
        ("shapes", _) => return None,
        (_, Some(path)) => path.into(),
        (name, None) => match told(name) {
            Some(_) => return Some(spec.into()), // by its variable, whatever the folder
            None => PathBuf::from("data"),
        },
    };
    let path = Path::new(folder).join(path);
    let text = path.to_str().filter(|_| path.exists())?;
    Some(match name {
        "" => text.into(),
        name => format!("{name}:{text}"),
    })
}

/// The name of a published set, empty for others, and a path.
fn parts(spec: &str) -> (&str, Option<&str>) {
    let known = |name: &str| {
        let name = name.strip_suffix("+extra").unwrap_or(name);
        name == "shapes" || facts_of(name).is_some()
    };
    match spec.split_once(':') {
        Some((name, path)) if known(name) => (name, Some(path)),
        None if known(spec) => (spec, None),
        _ => ("", Some(spec)),
    }
}

fn is_absolute(spec: &str) -> bool {
    parts(spec).1.is_some_and(|p| Path::new(p).is_absolute())
}

/// Where the variable of a published set says that it lies.
fn told(name: &str) -> Option<std::ffi::OsString> {
    let facts = facts_of(name.strip_suffix("+extra").unwrap_or(name))?;
    std::env::var_os(facts.variable).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::Preset;
    use super::*;

    #[test]
    fn what_was_typed_in_one_folder_is_found_from_another() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().to_str().unwrap();
        for inside in ["pictures", "data"] {
            std::fs::create_dir(folder.path().join(inside)).unwrap();
        }
        let from = |spec: &str| seen_from(place, spec);
        assert_eq!(from("pictures"), Some(format!("{place}/pictures")));
        assert_eq!(from("svhn:data"), Some(format!("svhn:{place}/data")));
        assert_eq!(
            from("svhn+extra:data"),
            Some(format!("svhn+extra:{place}/data"))
        );
        let whole = format!("{place}/pictures");
        assert_eq!(from(&whole), Some(whole.clone()), "it is absolute already");
        // Nothing to find.
        assert_eq!(
            (from("shapes"), from("gone"), from("dogs:gone")),
            (None, None, None)
        );

        let mut config = Preset::Quick.config("pictures").data;
        assert_eq!(config.place(), "pictures", "a run from before it was kept");
        config.seen_from = Some(place.into());
        assert_eq!(config.place(), whole);
        std::fs::remove_dir(&whole).unwrap();
        assert_eq!(config.place(), "pictures", "it may lie here now");
    }

    #[test]
    fn only_what_depends_on_a_folder_keeps_one() {
        let kept = |set: &str| {
            let mut config = Preset::Quick.config(set).data;
            config.settle();
            config.seen_from
        };
        let here = std::env::current_dir().unwrap();
        let here = here.to_str().unwrap();
        assert_eq!(kept("src").as_deref(), Some(here));
        assert_eq!(
            (kept("shapes"), kept(here), kept("no/such")),
            (None, None, None)
        );
    }
}
