//! Draws a sheet of `shapes`, a row for each class, to look at; or its raw bytes for other tools.
//!
//! cargo run --release -p anchorhood-data --example shapes_sheet -- sheet.png

use std::time::Instant;

use anchorhood_data::shapes::{self, SIZE};

const COLUMNS: usize = 24;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "sheet.png".into());
    let start = Instant::now();
    let n = 20_000;
    let split = shapes::dataset(0, SIZE, n, 0)?.train;
    let micros = start.elapsed().as_secs_f64() * 1e6 / n as f64;
    println!(
        "{micros:.1} µs a picture on {} threads",
        rayon::current_num_threads()
    );
    let labels = split.labels.as_ref().ok_or("no labels")?;
    let rows = labels.classes().len();
    let mut sheet = image::RgbImage::new((COLUMNS * (SIZE + 2)) as u32, (rows * (SIZE + 2)) as u32);
    for class in 0..rows {
        let of_class = (0..n).filter(|&i| labels.get(i) as usize == class);
        for (column, i) in of_class.take(COLUMNS).enumerate() {
            for (p, pixel) in split.pictures.picture(i).chunks_exact(3).enumerate() {
                let x = column * (SIZE + 2) + p % SIZE;
                let y = class * (SIZE + 2) + p / SIZE;
                sheet.put_pixel(
                    x as u32,
                    y as u32,
                    image::Rgb([pixel[0], pixel[1], pixel[2]]),
                );
            }
        }
    }
    sheet.save(&path)?;
    println!("{path}: {}", labels.classes().join(", "));
    Ok(())
}
