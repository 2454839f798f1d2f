//! A folder of pictures to an index, by one call.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anchorhood_engine::Device;

use super::PictureIndex;
use crate::{FolderJob, FolderOutcome, Model, SearchError};

impl PictureIndex {
    /// Embeds every picture of a folder and saves the index at `path`. One that is there already is
    /// brought up to date where it is of this model and folder, and else replaced. Pictures that
    /// cannot be read are left out. What is done is kept beside `path`: broken off, the same call
    /// goes on.
    ///
    /// To be told how far it is, to stop it, or to choose a layer, take its parts: a [`FolderJob`],
    /// and the index [of its vectors](crate::FolderVectors::index).
    pub fn build(
        path: impl AsRef<Path>,
        model: &Model,
        device: &Device,
        folder: impl AsRef<Path>,
    ) -> Result<PictureIndex, SearchError> {
        let path = path.as_ref();
        let folders = [folder.as_ref().to_path_buf()];
        let job = FolderJob::new(model, &folders, path);
        let known = PictureIndex::to_bring_up_to_date(path, &job).ok();
        let job = FolderJob { known: known.as_ref(), ..job };
        let never = AtomicBool::new(false);
        match job.run(device, &mut |_| {}, &never)? {
            FolderOutcome::Finished(done) => Ok(done.save(path, &job, device, false)?.0),
            FolderOutcome::Stopped { .. } => unreachable!("nobody asked it to stop"),
        }
    }
}
