//! What several processes that embed folders together tell each other. The first knows what is to be done and keeps what is done, in one
//! journal: a job goes on with any number of processes.

use anchorhood_data::PictureFile;
use anchorhood_engine::Communicator;
use anchorhood_files::checksum;

use crate::{Entry, SearchError};

/// Refuses processes that see other files than the first.
pub(crate) fn check_files(
    together: &Communicator,
    files: &[PictureFile],
) -> Result<(), SearchError> {
    let names = files.iter().flat_map(|f| f.name.bytes().chain([0]));
    let own = [
        files.len() as u64,
        checksum(&names.collect::<Vec<u8>>()) as u64,
    ];
    let mut all = vec![own; together.ranks()];
    together.gather(&[own], &mut all)?;
    match all.iter().position(|files| *files != all[0]) {
        None => Ok(()),
        Some(rank) => Err(SearchError::OtherFiles {
            first: all[0][0] as usize,
            rank,
            other: all[rank][0] as usize,
        }),
    }
}

/// What the first decides for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Todo {
    /// Which of the files.
    pub(crate) files: Vec<u32>,
    /// Pictures at a time, at most.
    pub(crate) batch: u64,
    /// Pixels a side of thumbnails; 0 for none.
    pub(crate) thumbnail: u64,
}

/// The first one's.
pub(crate) fn of_first(together: &Communicator, mut own: Todo) -> Result<Todo, SearchError> {
    let mut head = [own.files.len() as u64, own.batch, own.thumbnail];
    together.broadcast(&mut head, 0)?;
    own.files.resize(head[0] as usize, 0);
    together.broadcast(&mut own.files, 0)?;
    Ok(Todo {
        files: own.files,
        batch: head[1],
        thumbnail: head[2],
    })
}

/// Brings what has become of some files to the first, in rank order, and nothing to the others; and whether any process is to stop.
pub(crate) fn exchange(
    together: &Communicator,
    own: Vec<Entry>,
    stop: bool,
) -> Result<(Vec<Entry>, bool), SearchError> {
    if together.is_single() {
        return Ok((own, stop));
    }
    let mut bytes = vec![u8::from(stop)];
    for entry in &own {
        let entry = entry.to_bytes();
        bytes.extend((entry.len() as u64).to_le_bytes());
        bytes.extend(entry);
    }
    let (mut all, mut stopping) = (vec![], false);
    together.show_bytes(bytes, &mut |_, bytes| {
        let (stop, entries) = bytes.split_first().unwrap_or((&0, &[]));
        stopping |= *stop != 0;
        if together.is_first() {
            all.extend(read(entries));
        }
        Ok(())
    })?;
    Ok((all, stopping))
}

/// Entries from their bytes.
fn read(mut bytes: &[u8]) -> Vec<Entry> {
    let mut entries = vec![];
    while let Some((length, rest)) = bytes.split_first_chunk::<8>() {
        let length = u64::from_le_bytes(*length) as usize;
        let Some((entry, rest)) = rest.split_at_checked(length) else {
            break;
        };
        entries.extend(Entry::from_bytes(entry));
        bytes = rest;
    }
    entries
}
