//! Writes the seeds as files, a folder for each target, for cargo-fuzz: `cargo run -p
//! anchorhood-fuzzing --example corpus -- fuzz/corpus`.

use std::path::PathBuf;

use anchorhood_fuzzing::TARGETS;

fn main() -> std::io::Result<()> {
    let root = PathBuf::from(std::env::args_os().nth(1).unwrap_or("fuzz/corpus".into()));
    for target in TARGETS {
        let folder = root.join(target.name);
        std::fs::create_dir_all(&folder)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}
