//! What checking costs: `cargo run --release -p anchorhood-files --example container_speed --
//! [MIB]`.
//!
//! Checksums over memory, then a container of one tensor: written, opened, checked, and read again
//! after that.

use std::time::Instant;

use anchorhood_files::{
    BLOCK, Container, Disk, Dtype, FileError, NamedTensor, OpenContainer, checksum, write,
};

fn told<T>(what: &str, bytes: usize, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = work();
    let seconds = begun.elapsed().as_secs_f64();
    let rate = bytes as f64 / seconds / 1e9;
    println!("{what}: {:.3} ms, {rate:.1} GB/s", seconds * 1e3);
    result
}

fn main() -> Result<(), FileError> {
    let mib: usize = std::env::args().nth(1).map_or(512, |n| n.parse().unwrap_or(512));
    let data: Vec<u8> = (0..mib << 20).map(|i| ((i * 31) >> 5) as u8).collect();
    let n = data.len();
    told("XXH3-128 in blocks", n, || {
        data.chunks(BLOCK).fold(0, |all, block| all ^ checksum(block))
    });
    told("CRC-32 in blocks", n, || {
        data.chunks(BLOCK).fold(0, |all, block| all ^ crc32fast::hash(block))
    });
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.safetensors");
    told("plain write and sync", n, || {
        anchorhood_files::AtomicFile::write(&path, &data)
            .map_err(|source| FileError::Io { path: path.clone(), source })
    })?;
    let container = Container {
        tensors: vec![NamedTensor::new("bank", Dtype::F32, &[n / 512, 128], &data)],
        ..Container::default()
    };
    told("write a container", n, || write(&container, &path, &Disk))?;
    let file = told("open it", n, || OpenContainer::open(&path, &Disk))?;
    told("touch all of it", n, || file.check_all())?;
    told("touch it again", n, || file.check_all())?;
    Ok(())
}
