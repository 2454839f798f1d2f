//! Trains on pictures that no file holds: this program draws them, as yours may read them from a
//! camera or a database.
//!
//! ```sh
//! # Half a minute; leaves runs/stripes-1.
//! cargo run --release -p anchorhood --example train_own_data
//! # Epochs in a round, and where runs are kept.
//! cargo run --release -p anchorhood --example train_own_data -- 20 runs
//! ```

use std::error::Error;
use std::path::PathBuf;

use anchorhood::prelude::*;
use anchorhood::{Dataset, Labels, Pictures, Split};

const SIZE: usize = 16;
/// What the pictures show; training is never told.
const KINDS: [&str; 4] = ["level", "rising", "upright", "falling"];

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let epochs = args.next().map_or(Ok(50), |n| n.parse())?;
    let runs = args.next().map_or(PathBuf::from("runs"), PathBuf::from);

    // Pictures made when they are asked for. Those in memory already: `Pictures::new(height, width,
    // bytes)`.
    let pictures = Pictures::from_fn(SIZE, SIZE, 600, stripes)?;
    let labels = Labels::from_names((0..600).map(|i| KINDS[i % 4]));
    let part = |range: std::ops::Range<usize>| {
        let chosen = Vec::from_iter(range);
        Split::from(pictures.subset(&chosen)).labelled(labels.subset(&chosen))
    };
    let data = Dataset::new("stripes", part(0..500)?).with_test(part(500..600)?)?;

    let run = Trainer::new(&Images::in_memory(data))
        .configure(move |config| {
            config.network.width = 4;
            config.training.batch = 32;
            config.training.epochs = epochs;
            config.evaluation.every = epochs;
        })
        .runs(runs, None)
        .on_event(tell)
        .train()?;
    if let Some(end) = run.ended()? {
        let share = 100.0 * end.last.map_or(0.0, |accuracy| accuracy.top1);
        println!("{share:.1}% of 100 pictures were told by their nearest neighbours");
    }
    println!("the model is in {}", run.path().display());
    Ok(())
}

/// A line for what matters; a window or a web page would show the same events.
fn tell(event: &Event) {
    match event {
        Event::EpochEnded(e) => {
            println!("round {} epoch {}: loss {:.3}", e.round, e.epoch + 1, e.loss)
        }
        Event::Evaluated(e) => println!("{:?}: {:.0}%", e.subject, 100.0 * e.accuracy.top1),
        Event::Discovered(d) => println!("round {}: {} anchors", d.round, d.anchors),
        _ => {}
    }
}

/// Stripes in one of four directions; their place, width, colours and noise say nothing of it.
fn stripes(i: usize, pixels: &mut [u8]) {
    // Any number below 1, but the same for a picture every time.
    let draw = |n: usize| {
        let mixed = ((i << 16 | n) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 40) as f32 / (1 << 24) as f32
    };
    let angle = (i % KINDS.len()) as f32 * std::f32::consts::FRAC_PI_4;
    let (sin, cos) = angle.sin_cos();
    let (shift, width) = (20.0 * draw(0), 2.0 + 3.0 * draw(1));
    for (place, value) in pixels.iter_mut().enumerate() {
        let (x, y, colour) = (place / 3 % SIZE, place / 3 / SIZE, place % 3);
        let across = x as f32 * sin + y as f32 * cos + shift;
        let on = (across / width).rem_euclid(2.0) < 1.0;
        let ink = draw(if on { 2 } else { 5 } + colour);
        *value = (255.0 * (0.7 * ink + 0.3 * draw(8 + place))) as u8;
    }
}
