//! How a checkpoint gets into its file, where several processes have its parts.
//!
//! The first process writes one file, as it does alone. What has a row for each picture lies on all
//! processes: each shows its rows, in rank order and a few megabytes at a time, while the first
//! writes them down, twice, since checksums come before the data. So the first needs no more memory
//! than the others.

use std::io;
use std::path::Path;

use anchorhood_engine::Communicator;
use anchorhood_storage::{Container, FileProblem, FileSystem, write_with};

use super::{Checkpoint, CheckpointError, format};

/// How often the rows are asked for.
const PASSES: usize = 2;

impl Checkpoint {
    /// Writes the file by the first of several processes, all of which must ask for it; whole or
    /// not at all.
    pub(crate) fn save_among(
        &self,
        together: &Communicator,
        disk: &dyn FileSystem,
        path: &Path,
    ) -> Result<(), CheckpointError> {
        let container = format::container(self)
            .map_err(|reason| CheckpointError::Mismatch { path: path.into(), reason })?;
        let mut rows = Rows::new(together, &container, self.rows[1] as usize);
        if !together.is_first() {
            return Ok(rows.show_rest()?);
        }
        let written =
            write_with(&container, path, disk, &mut |name, see| rows.show_next(name, see));
        // The others show all of theirs, whatever becomes of the file.
        rows.show_rest()?;
        written.map_err(|error| match error.problem {
            FileProblem::Io(source) => CheckpointError::Write { path: error.path, source },
            other => CheckpointError::Mismatch { path: path.into(), reason: other.to_string() },
        })
    }
}

/// Rows that are shown, tensor after tensor.
struct Rows<'a> {
    together: &'a Communicator,
    container: &'a Container<'a>,
    pictures: usize,
    /// The tensors that are yet to be shown, the next one last.
    left: Vec<&'a str>,
}

impl<'a> Rows<'a> {
    fn new(together: &'a Communicator, container: &'a Container, pictures: usize) -> Self {
        let mut left = vec![];
        if together.ranks() > 1 {
            let mut order = container.order();
            order.retain(|name| format::is_by_picture(name));
            left = order.repeat(PASSES);
            left.reverse();
        }
        Rows { together, container, pictures, left }
    }

    /// Shows the others' rows of the tensor whose turn it is.
    fn show_next(&mut self, name: &str, see: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        if self.left.pop() != Some(name) {
            return Err(io::Error::other(format!("{name} out of its turn")));
        }
        self.show(name, see).map_err(io::Error::other)
    }

    fn show_rest(&mut self) -> Result<(), anchorhood_engine::Error> {
        while let Some(name) = self.left.pop() {
            self.show(name, &mut |_| {})?;
        }
        Ok(())
    }

    fn show(&self, name: &str, see: &mut dyn FnMut(&[u8])) -> Result<(), anchorhood_engine::Error> {
        let tensors = &self.container.tensors;
        let Some(tensor) = tensors.iter().find(|t| t.name == name) else {
            return Ok(());
        };
        let row = tensor.shape[1..].iter().product::<usize>() * tensor.dtype.bitsize() / 8;
        let (own, n) = (&tensor.data[..], self.pictures);
        self.together.show_parts(own, n, row, &mut |rank, piece| {
            // What is the writer's own it has written.
            if rank > 0 {
                see(piece);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::small_checkpoint;
    use anchorhood_distributed::ThreadRank;
    use anchorhood_storage::{Forgetful, attack};

    /// What each of several processes has of a checkpoint.
    fn part(whole: &Checkpoint, together: &Communicator) -> Checkpoint {
        let mut own = whole.clone();
        own.keep_pictures(together.part(whole.rows[1] as usize));
        own
    }

    /// Saves by so many processes; what the first says, after all have come to an end.
    fn save(ranks: usize, whole: &Checkpoint, disk: &dyn FileSystem, path: &Path) -> bool {
        let saved = ThreadRank::run(ranks, |rank| {
            let together = Communicator::of(rank);
            let saved = part(whole, &together).save_among(&together, disk, path);
            together.barrier().unwrap();
            saved.is_ok()
        });
        assert!(saved[1..].iter().all(|ok| *ok));
        saved[0]
    }

    #[test]
    fn several_processes_write_the_bytes_of_one() {
        let (whole, folder) = (small_checkpoint(), tempfile::tempdir().unwrap());
        let path = |ranks: usize| folder.path().join(ranks.to_string());
        for ranks in [1, 2, 3, 5] {
            assert!(save(ranks, &whole, &anchorhood_storage::Disk, &path(ranks)));
            let bytes = |ranks| std::fs::read(path(ranks)).unwrap();
            assert_eq!(bytes(ranks), bytes(1), "{ranks} processes");
        }
        assert_eq!(Checkpoint::load(&path(3)).unwrap(), whole);
    }

    /// Whatever happens to the disk, nobody waits for ever, and the checkpoint before or the new
    /// one is there, whole.
    #[test]
    fn a_disk_that_fails_leaves_a_whole_checkpoint_and_nobody_waiting() {
        let path = Path::new("/here/last.safetensors");
        let (before, mut after) = (small_checkpoint(), small_checkpoint());
        after.standing.loss_sum = 7.0;
        let start = Forgetful::new();
        start.create_folders(Path::new("/here")).unwrap();
        before.save_on(&start, path).unwrap();
        let faults = attack(
            &start,
            |disk| save(3, &after, &*disk, path),
            |left, saved, what| {
                let found = Checkpoint::load_from(left, path);
                let found = found.unwrap_or_else(|e| panic!("{what}: {e}"));
                let whole = found == after || (!saved && found == before);
                assert!(whole, "{what}");
            },
        );
        assert!(faults > 20, "{faults}");
    }
}
