//! Many threads that decode large pictures at once, in a process that has not memory enough for all
//! of them.

#![cfg(target_os = "linux")]

use std::io::Write;
use std::path::Path;
use std::process::Command;

use anchorhood_data::Picture;
use flate2::write::ZlibEncoder;

const SIDE: u32 = 4000; // 16 megapixels: 128 MB as 16-bit RGBA, and 64 MB as 8-bit
const THREADS: usize = 6;
/// Bytes that the process may address, in KiB. Threads' own heaps and stacks are in it.
const LIMIT: usize = 900 << 10;

/// A 16-bit RGBA picture of one colour.
fn write_png(path: &Path) {
    let mut pixels = ZlibEncoder::new(vec![], flate2::Compression::fast());
    let row = vec![0; 1 + SIDE as usize * 8];
    (0..SIDE).for_each(|_| pixels.write_all(&row).unwrap());
    let header = [&SIDE.to_be_bytes()[..], &SIDE.to_be_bytes(), &[16, 6, 0, 0, 0]].concat();
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let chunks = [(b"IHDR", header), (b"IDAT", pixels.finish().unwrap()), (b"IEND", vec![])];
    for (name, data) in chunks {
        let body = [&name[..], &data].concat();
        png.extend((data.len() as u32).to_be_bytes());
        png.extend(&body);
        png.extend(crc32fast::hash(&body).to_be_bytes());
    }
    std::fs::write(path, png).unwrap();
}

/// Run by the other test, in a process of its own.
#[test]
#[ignore = "run by `six_threads_fit_where_their_pictures_do_not`"]
fn decode_on_six_threads() {
    let path = anchorhood_testing::variable("ANCHORHOOD_TEST_PICTURE", "a large picture");
    let Some(path) = path else { return };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut square = [0; 8 * 8 * 3];
                Picture::read_for(&path, 8, |p| p.square(8, &mut square)).unwrap();
                assert_eq!(square, [255; 192], "transparent is white");
            });
        }
    });
}

#[test]
fn six_threads_fit_where_their_pictures_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.png");
    write_png(&path);
    let this = std::env::current_exe().unwrap();
    let script =
        format!("ulimit -v {LIMIT} && exec \"$0\" --ignored --exact decode_on_six_threads");
    let ran = Command::new("sh")
        .args(["-c", &script])
        .arg(this)
        .env("ANCHORHOOD_TEST_PICTURE", &path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr) + String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{:?}: {said}", ran.status);
    assert!(said.contains("1 passed"), "{said}");
}
