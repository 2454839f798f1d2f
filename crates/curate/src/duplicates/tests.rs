use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anchorhood_data::{encode_jpeg, encode_png};
use image::{RgbImage, imageops};

use super::*;

/// A picture full of detail: waves of several lengths and directions, of its own for each number.
fn scene(number: u32, width: u32, height: u32) -> RgbImage {
    let n = number as f32 + 1.0;
    RgbImage::from_fn(width, height, |x, y| {
        let (x, y) = (x as f32 / width as f32, y as f32 / height as f32);
        let mut v = 0.0;
        for k in 1..12 {
            let k = k as f32;
            let turn = (n * k * 1.7).sin() * 3.0;
            v += ((6.0 * k * (x * turn.cos() + y * turn.sin())) + n * k * k).sin() / k.sqrt();
        }
        let grey = (128.0 + 35.0 * v).clamp(0.0, 255.0) as u8;
        image::Rgb([grey, grey.wrapping_add((40.0 * x) as u8), 255 - grey])
    })
}

fn png(folder: &Path, name: &str, picture: &RgbImage) -> PathBuf {
    let bytes = encode_png(picture.width(), picture.height(), picture).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn find(paths: &[PathBuf], against_from: Option<usize>) -> Duplicates {
    // Vectors that tell nothing: each is everybody's neighbour.
    let vectors = [1.0, 0.0].repeat(paths.len());
    let compared = Compared {
        look: &|i| Look::at(&paths[i]),
        vectors: &vectors,
        dim: 2,
        against_from,
        folder_rank: &|_| 0,
        not_copies: &|_, _| false,
    };
    let options = DuplicateOptions::default();
    find_duplicates(&Device::cpu(1), &compared, &options, &|_, _, _| {}).unwrap()
}

#[test]
fn every_kind_is_named_and_the_whole_large_picture_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let scene_0 = scene(0, 160, 120);
    let crop = imageops::crop_imm(&scene_0, 30, 10, 100, 90).to_image();
    let small = imageops::resize(&scene_0, 80, 60, imageops::FilterType::Triangle);
    let mut paths = vec![
        png(folder, "a crop.png", &crop),
        png(folder, "b.png", &scene_0),
        folder.join("c the same file.png"),
        folder.join("d the same pixels.bmp"),
        folder.join("e recompressed.jpg"),
        png(folder, "f small.png", &small),
        png(
            folder,
            "g mirrored.png",
            &imageops::flip_horizontal(&scene_0),
        ),
        png(
            folder,
            "h mirrored crop.png",
            &imageops::flip_horizontal(&crop),
        ),
    ];
    std::fs::copy(&paths[1], &paths[2]).unwrap();
    scene_0.save(&paths[3]).unwrap();
    let jpeg = encode_jpeg(160, 120, &scene_0, 60).unwrap();
    std::fs::write(&paths[4], jpeg).unwrap();
    let others = (1..7).map(|n| png(folder, &format!("{n}.png"), &scene(n, 160, 120)));
    paths.extend(others);
    paths.push(png(
        folder,
        "white.png",
        &RgbImage::from_pixel(50, 50, image::Rgb([255; 3])),
    ));
    paths.push(png(
        folder,
        "nearly white.png",
        &RgbImage::from_pixel(50, 50, image::Rgb([254; 3])),
    ));
    let found = find(&paths, None);
    assert_eq!(found.groups.len(), 1, "{:?}", found.groups);
    let group = &found.groups[0];
    assert_eq!(group.keep, 1, "{group:?}");
    assert_eq!(group.why[..2], [Reason::Whole, Reason::Larger]);
    let kind = |i: usize| group.others.iter().find(|d| d.picture == i).map(|d| d.kind);
    let kinds = [0, 2, 3, 4, 5, 6, 7].map(|i| kind(i).unwrap());
    use CopyKind::*;
    assert_eq!(
        kinds,
        [
            Crop,
            SameFile,
            SamePixels,
            Recompressed,
            Resized,
            Mirrored,
            MirroredCrop
        ]
    );
    assert_eq!(group.others.len(), 7);
    assert!(group.others.iter().all(|d| d.score > 0.9), "{group:?}");
}

/// Of two sides, pairs are of one and the other, and those of the second are kept.
#[test]
fn what_leaked_from_one_side_to_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (one, two) = (scene(1, 100, 100), scene(2, 100, 100));
    let small = imageops::resize(&one, 50, 50, imageops::FilterType::Triangle);
    let paths = [
        png(folder, "train 1.png", &one),
        png(folder, "train 1 again.png", &one),
        png(folder, "train 2.png", &two),
        png(folder, "train 2 again.png", &two),
        png(folder, "test 1.png", &small),
        png(folder, "test 1 again.png", &small),
        png(folder, "test 3.png", &scene(3, 100, 100)),
    ];
    let found = find(&paths, Some(4));
    assert_eq!(found.groups.len(), 1, "{:?}", found.groups);
    let group = &found.groups[0];
    assert_eq!(group.keep, 4);
    let gone: Vec<usize> = group.others.iter().map(|d| d.picture).collect();
    assert_eq!(gone, [0, 1]);
    assert!(group.others.iter().all(|d| d.kind == CopyKind::Resized));
}

/// What cannot be read is told, and the older of two files is kept.
#[test]
fn unreadable_ones_and_older_ones() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let paths = [
        png(folder, "a.png", &scene(1, 64, 64)),
        png(folder, "b.png", &scene(1, 64, 64)),
        folder.join("gone.png"),
    ];
    let old = std::fs::File::options()
        .write(true)
        .open(&paths[1])
        .unwrap();
    old.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let found = find(&paths, None);
    assert_eq!(found.groups[0].keep, 1);
    assert_eq!(found.groups[0].why, [Reason::Older]);
    assert!(found.looks[2].is_err());
}

/// Pictures without files are compared, too.
#[test]
fn what_is_in_memory() {
    let pictures = [1, 2, 1].map(|n| scene(n, 32, 32));
    let look = |i: usize| Look::of(&Picture::from_rgb(32, 32, pictures[i].to_vec())?);
    let compared = Compared {
        look: &look,
        vectors: &[1.0, 0.0].repeat(3),
        dim: 2,
        against_from: None,
        folder_rank: &|_| 0,
        not_copies: &|_, _| false,
    };
    let options = DuplicateOptions::default();
    let found = find_duplicates(&Device::cpu(1), &compared, &options, &|_, _, _| {}).unwrap();
    assert_eq!(found.groups.len(), 1);
    let Duplicate { picture, kind, .. } = found.groups[0].others[0];
    assert_eq!((picture, kind), (2, CopyKind::SamePixels));
}
