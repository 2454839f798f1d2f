//! Loads a model and turns picture files into vectors: what a model knows of pictures, for programs
//! of your own.
//!
//! ```sh
//! cargo run --release -p anchorhood --example load_and_embed -- runs/stripes-1 a.png b.jpg c.webp
//! ```
//!
//! Prints each picture's first values, and how similar it is to the first picture.

use std::error::Error;

use anchorhood::{Device, Model, Picture, Pictures};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(model), files) = (args.next(), Vec::from_iter(args)) else {
        return Err("give a run's folder or a checkpoint, then picture files".into());
    };

    let model = Model::load(&model)?;
    let mut pictures = vec![];
    for file in &files {
        pictures.push(Picture::read(file).map_err(|why| format!("{file}: {why}"))?);
    }
    let pictures = Pictures::squares(model.input().size, &pictures)?;
    let vectors = model.embed(&Device::cpu(2), &pictures)?;

    for (i, file) in files.iter().enumerate() {
        let vector = vectors.row(i);
        let similar: f32 = vector.iter().zip(vectors.row(0)).map(|(a, b)| a * b).sum();
        println!("{file}: {:.3?} …, {similar:.4} like the first", &vector[..4]);
    }
    Ok(())
}
