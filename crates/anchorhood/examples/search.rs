//! Finds the pictures of a folder that are most like one.
//!
//! ```sh
//! cargo run --release -p anchorhood --example search -- runs/stripes-1 ~/pictures query.jpg
//! ```
//!
//! The index is kept in `pictures.index`; from the second time on it is loaded, and made again if
//! another model made it.

use std::error::Error;

use anchorhood::engine::Device;
use anchorhood::search::{Model, PictureIndex};

fn main() -> Result<(), Box<dyn Error>> {
    let args = Vec::from_iter(std::env::args().skip(1));
    let [model, folder, query] = args.as_slice() else {
        return Err(
            "give a run's folder or a checkpoint, a folder of pictures, and a picture".into()
        );
    };

    let device = Device::cpu(2);
    let model = Model::load(model)?;
    let known = PictureIndex::load("pictures.index");
    let index = match known.ok().filter(|index| index.check_model(&model).is_ok()) {
        Some(index) => index,
        None => PictureIndex::build("pictures.index", &model, &device, folder)?,
    };
    let vector = model.embedder(&device, 1, None)?.embed_file(query)?;

    for hit in index.nearest(&vector, 10)? {
        println!("{:.4}  {}", hit.similarity, index.picture(hit.index).display());
    }
    Ok(())
}
