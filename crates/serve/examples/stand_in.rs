//! A server with a stand-in for a model: 200 small pictures and a large one in a folder of its own,
//! and a run without rounds. For [tools/load](../../../tools/load), where only the server is of
//! interest.
//!
//! ```sh
//! tools/load all --serve "$(pwd)/target/debug/examples/stand_in"
//! ```
//!
//! Prints its address and serves until it is ended. `--token-file FILE` is all that it takes of the
//! program's own flags.

use std::error::Error;
use std::path::Path;

use anchorhood_search::{IndexParts, PictureIndex};
use anchorhood_serve::{Catalog, ServeError, ServeOptions, Server, Stop, inference_queue};
use image::{Rgb, RgbImage};

const PICTURES: usize = 200;
const SIDE: usize = 16;
const DIM: usize = 8;

fn picture(number: usize, side: usize) -> RgbImage {
    // Noise, so that a large picture is a large file.
    let byte = |x: u32, y: u32, c: u32| {
        let mixed =
            (x * 7919 + y * 104_729 + c * 1_299_709 + number as u32).wrapping_mul(2_654_435_761);
        (mixed >> 13) as u8
    };
    RgbImage::from_fn(side as u32, side as u32, |x, y| {
        Rgb([byte(x, y, 0), byte(x, y, 1), byte(x, y, 2)])
    })
}

/// Sums over every so manyth byte, of unit length.
fn vector(square: &[u8]) -> Vec<f32> {
    let sum = |d: usize| square.iter().skip(d).step_by(DIM).map(|b| f32::from(*b) - 127.0).sum();
    let sums: Vec<f32> = (0..DIM).map(sum).collect();
    let length = sums.iter().map(|v| v * v).sum::<f32>().sqrt().max(1e-6);
    sums.iter().map(|v| v / length).collect()
}

fn shelf(folder: &Path) -> Result<Catalog, Box<dyn Error>> {
    let side = |i: usize| if i == PICTURES { 1500 } else { SIDE };
    let (mut names, mut vectors) = (vec![], vec![]);
    for i in 0..=PICTURES {
        let picture = picture(i, side(i));
        names.push(format!("{i:03}.png"));
        picture.save(folder.join(&names[i]))?;
        vectors.extend(vector(&picture));
    }
    let parts = IndexParts {
        folder: folder.into(),
        classes: vec![None; names.len()],
        names,
        dim: DIM,
        vectors: vectors.into(),
        ..IndexParts::default()
    };
    let index = PictureIndex::from_parts(Path::new("stand-in.index"), parts)?;
    Ok(Catalog::of_index("stand-in".into(), index, Some(folder))?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let file = args.iter().position(|a| a == "--token-file").map(|i| &args[i + 1]);
    let token = file.map(std::fs::read_to_string).transpose()?;
    let folder = tempfile::tempdir()?;
    let options =
        ServeOptions { port: 0, token: token.map(|t| t.trim().into()), ..ServeOptions::default() };
    let (asker, queue) = inference_queue(SIDE);
    let run = Some(folder.path().into());
    let shelf = shelf(folder.path())?;
    let server = Server::bind(&options, shelf, vec![], run, Some(asker), Stop::default())?;
    println!("http://{}", server.address());
    std::thread::scope(|threads| {
        let serving = threads.spawn(|| server.run());
        let embed = |squares: &[u8]| Ok(squares.chunks(SIDE * SIDE * 3).flat_map(vector).collect());
        queue.answer(16, embed, |_| Err("there is no run".into()));
        serving.join().unwrap_or(Err(ServeError::Ended))
    })?;
    Ok(())
}
