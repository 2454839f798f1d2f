//! The pictures that are open: runs of the same ones share them.

use std::sync::{Arc, Mutex};

use anchorhood_data::{DataError, Dataset, LoadOptions, open_with_progress};

use crate::Told;

/// Pictures, and what they were opened with: the data set and all options.
#[derive(Default)]
pub(crate) struct Open(Option<(String, Arc<Dataset>)>);

impl Open {
    /// Those of a data set; others are closed first. Who listens hears how far it is.
    pub(crate) fn data(
        &mut self,
        spec: &str,
        options: LoadOptions,
        observer: &mut (dyn FnMut(Told) + Send),
    ) -> Result<Arc<Dataset>, DataError> {
        let asked = format!("{spec} {options:?}");
        if let Some((_, data)) = self.0.as_ref().filter(|(with, _)| *with == asked) {
            return Ok(data.clone());
        }
        self.0 = None; // its memory first
        let observer = Mutex::new(observer);
        let data = open_with_progress(spec, &options, &|done, total| {
            if let Ok(mut observer) = observer.try_lock() {
                observer(Told::Step { what: "reading pictures", done, total });
            }
        })?;
        let data = Arc::new(data);
        self.0 = Some((asked, data.clone()));
        Ok(data)
    }
}
