//! A folder of pictures to an index, by one call.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anchorhood_data::find_pictures;
use anchorhood_engine::Device;

use super::PictureIndex;
use crate::model::BATCH;
use crate::{EmbedOptions, Journal, JournalHeader, Model, SearchError, embed_files};

impl PictureIndex {
    /// Embeds every picture of a folder and saves the index at `path`, where one that is there already is replaced.
    /// Pictures that cannot be read are left out. What is done is kept beside `path`: broken off, the same call goes on.
    ///
    /// To be told how far it is, to stop it, or to choose a layer, take its parts: [`embed_files`] and
    /// [`PictureIndex::collect`].
    pub fn build(
        path: impl AsRef<Path>,
        model: &Model,
        device: &Device,
        folder: impl AsRef<Path>,
    ) -> Result<PictureIndex, SearchError> {
        let (path, folder) = (path.as_ref(), folder.as_ref());
        let files = find_pictures(folder)?.files;
        let mut embedder = model.embedder(device, files.len().min(BATCH), None)?;
        let dim = embedder.dim();
        let whole = std::path::absolute(folder).map_err(SearchError::io(folder))?;
        let job = JournalHeader::new(model.fingerprint(), None, dim, &whole, None);
        let (mut journal, _) = Journal::open(&Journal::place(path), &job)?;
        let options = EmbedOptions {
            threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
            thumbnail: None,
        };
        let never = AtomicBool::new(false);
        embed_files(
            &mut embedder,
            &files,
            &mut journal,
            &options,
            &mut |_, _| {},
            &never,
        )?;
        let mut index =
            PictureIndex::collect(path, model, None, folder, dim, &files, &mut journal)?;
        if index.is_large() {
            index.divide(device, &mut |_| {})?;
        }
        index.save()?;
        journal.remove()?;
        Ok(index)
    }
}
