//! Pictures a second through an ONNX file, without reading or decoding any: `onnx_speed FILE.onnx
//! THREADS PICTURES`.
//!
//! `tools/onnx_speed.py` runs it beside ONNX Runtime in Python.

use std::path::Path;
use std::time::Instant;

use anchorhood_index::onnx::Encoder;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, file, threads, pictures] = &args[..] else {
        panic!("onnx_speed FILE.onnx THREADS PICTURES")
    };
    let (threads, pictures): (usize, usize) = (threads.parse().unwrap(), pictures.parse().unwrap());
    let encoder = Encoder::load(Path::new(file), 4 << 30).unwrap();
    let size = encoder.preprocessing().size();
    let bytes = encoder.step() * size * size * 3;
    let square: Vec<u8> = (0..bytes).map(|i| (i * 31 % 251) as u8).collect();
    let each = pictures.div_ceil(threads * encoder.step());
    let run = |times: usize| (0..times).for_each(|_| drop(encoder.vectors(&square).unwrap()));
    run(2);
    let (clock, before) = (Instant::now(), cpu_seconds());
    std::thread::scope(|scope| {
        (0..threads).for_each(|_| drop(scope.spawn(|| run(each))));
    });
    let (seconds, cpu) = (clock.elapsed().as_secs_f64(), cpu_seconds() - before);
    let done = (each * threads * encoder.step()) as f64;
    println!("{:.2} {:.3}", done / seconds, cpu / done * 1e3);
}

/// User and system time of this process, as Linux counts it: in hundredths of a second.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(") ").next().unwrap_or_default();
    let ticks = |i: usize| after.split(' ').nth(i).and_then(|t| t.parse::<f64>().ok());
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / 100.0
}
