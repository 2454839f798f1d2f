//! Finds the pictures of a folder that are most like one.
//!
//! ```sh
//! cargo run --release -p anchorhood --example search -- runs/stripes-1 ~/pictures query.jpg
//! ```
//!
//! The index is kept in the user's cache; from the second time on it is brought up to date.

use std::error::Error;

use anchorhood::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let args = Vec::from_iter(std::env::args().skip(1));
    let [model, folder, query] = args.as_slice() else {
        return Err("give a run's folder or a checkpoint, a folder of images, and an image".into());
    };
    let index = Index::build(&Images::open(folder)?, &Model::load(model)?)?;
    for hit in index.search_file(query, 10)? {
        println!("{hit}");
    }
    Ok(())
}
