//! Where a run's pictures lie: what was typed in one folder, found again from any other.
//!
//! The typed words stay as they are, and the folder they were typed in is kept beside them: a
//! project that moves as a whole, or that goes to another machine, still finds its pictures from
//! its own folder.

use std::path::Path;

use anchorhood_data::{path_of, seen_from};

use super::DataConfig;

impl DataConfig {
    /// For a new run: `set` is seen from the folder we are in, if anything is there, and from the
    /// folder that a configuration file names otherwise. Nothing is kept where the folder does not
    /// matter.
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

    /// What to open: `set` as seen from where the run was started; as seen from here, if nothing is
    /// there any more.
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
            None if path_of(set).is_some_and(Path::is_absolute) => format!("`{set}`"),
            None => format!("`{set}`, as seen from the folder it was started in"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Preset;

    #[test]
    fn what_was_typed_in_one_folder_is_found_from_another() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().to_str().unwrap();
        let whole = format!("{place}/pictures");
        std::fs::create_dir(&whole).unwrap();
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
        assert_eq!((kept("shapes"), kept(here), kept("no/such")), (None, None, None));
    }
}
