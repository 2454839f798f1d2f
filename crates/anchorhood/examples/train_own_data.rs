//! Trains on pictures that no file holds: this program draws them, as yours may read them from a camera or a database.
//!
//! ```sh
//! cargo run --release -p anchorhood --example train_own_data              # some ten seconds; leaves runs/stripes-1
//! cargo run --release -p anchorhood --example train_own_data -- 30 runs   # epochs in a round, and where runs are kept
//! ```

use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anchorhood::data::{Dataset, Labels, Pictures, Split};
use anchorhood::engine::Cpu;
use anchorhood::train::{Event, Outcome, Preset, RunDir, train};

const SIZE: usize = 32;
/// What the pictures show; training is never told.
const KINDS: [&str; 4] = ["level", "rising", "upright", "falling"];

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let epochs = args.next().map_or(Ok(10), |n| n.parse())?;
    let runs = args.next().map_or(PathBuf::from("runs"), PathBuf::from);

    // Pictures made when they are asked for. Those in memory already: `Pictures::new(height, width, bytes)`.
    let pictures = Pictures::from_fn(SIZE, SIZE, 600, stripes)?;
    let labels = Labels::from_names((0..600).map(|i| KINDS[i % 4]));
    let part = |range: std::ops::Range<usize>| {
        let chosen = Vec::from_iter(range);
        Split::from(pictures.subset(&chosen)).labelled(labels.subset(&chosen))
    };
    let data = Dataset::new("stripes", part(0..500)?).with_test(part(500..600)?)?;

    let mut config = Preset::Quick.config("stripes");
    config.network.width = 4;
    config.training.batch = 32;
    config.training.epochs = epochs;
    let mut run = RunDir::create_numbered(&runs, "stripes", &config)?;
    let threads = std::thread::available_parallelism()?.get();
    let never = AtomicBool::new(false);
    let outcome = train(&Cpu::new(threads), &mut run, &data, &mut tell, &never)?;

    if let Outcome::Finished(end) = outcome {
        let share = 100.0 * end.last.map_or(0.0, |accuracy| accuracy.top1);
        println!("{share:.1}% of 100 pictures were told by their nearest neighbours");
    }
    println!("the model is in {}", run.path().display());
    Ok(())
}

/// A line for what matters; a window or a web page would show the same events.
fn tell(event: &Event) {
    match event {
        Event::EpochEnded(e) => println!(
            "round {} epoch {}: loss {:.3}",
            e.round,
            e.epoch + 1,
            e.loss
        ),
        Event::Discovered(d) => println!("round {}: {} anchors", d.round, d.anchors),
        _ => {}
    }
}

/// Stripes in one of four directions; where they lie, how wide they are and their colours say nothing.
fn stripes(i: usize, pixels: &mut [u8]) {
    let draw = |n: usize| (i * 7919 + n * 104_729) % 251; // the same for a picture every time
    let angle = (i % 4) as f32 * std::f32::consts::FRAC_PI_4;
    let (sin, cos) = angle.sin_cos();
    let (shift, width) = (draw(1) as f32 / 10.0, 3.0 + draw(2) as f32 / 80.0);
    for (place, pixel) in pixels.chunks_exact_mut(3).enumerate() {
        let (x, y) = ((place % SIZE) as f32, (place / SIZE) as f32);
        let on = ((x * sin + y * cos + shift) / width).rem_euclid(2.0) < 1.0;
        for (c, value) in pixel.iter_mut().enumerate() {
            *value = draw(if on { 3 + c } else { 6 + c }) as u8;
        }
    }
}
