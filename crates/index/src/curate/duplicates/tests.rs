use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anchorhood_data::{encode_jpeg, encode_png};
use anchorhood_storage::random::{Draws, Stream};
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

/// Writes a file; all of them at the same time.
fn written(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    set_time(&path, 0);
    path
}

fn png(folder: &Path, name: &str, picture: &RgbImage) -> PathBuf {
    let (width, height) = picture.dimensions();
    written(folder, name, &encode_png(width, height, picture).unwrap())
}

fn jpeg(folder: &Path, name: &str, picture: &RgbImage, quality: u8) -> PathBuf {
    let (width, height) = picture.dimensions();
    written(folder, name, &encode_jpeg(width, height, picture, quality).unwrap())
}

fn in_memory(picture: &RgbImage) -> Result<Look, String> {
    Look::of(&Picture::from_rgb(picture.width(), picture.height(), picture.to_vec())?)
}

fn find(paths: &[PathBuf], against_from: Option<usize>) -> Duplicates {
    find_with(paths, against_from, &DuplicateOptions::default(), &|_, _| false)
}

fn find_with(
    paths: &[PathBuf],
    against_from: Option<usize>,
    options: &DuplicateOptions,
    not_copies: &(dyn Fn(usize, usize) -> bool + Sync),
) -> Duplicates {
    let vectors = telling_nothing(paths.len());
    let look = |i: usize| Look::at(&paths[i]);
    let compared = Compared { against_from, not_copies, ..compared(&look, &vectors) };
    find_duplicates(&Device::cpu(1), &compared, options, &|_, _, _| {}).unwrap()
}

/// Vectors that tell nothing: each is everybody's neighbour.
fn telling_nothing(n: usize) -> Vec<f32> {
    [1.0, 0.0].repeat(n)
}

fn compared<'a>(
    look: &'a (dyn Fn(usize) -> Result<Look, String> + Sync),
    vectors: &'a [f32],
) -> Compared<'a> {
    let folder_rank = &|i| usize::from(i == 0);
    let not_copies = &|_, _| false;
    Compared { look, vectors, dim: 2, against_from: None, folder_rank, not_copies }
}

fn half(image: &RgbImage) -> RgbImage {
    let [width, height] = [image.width(), image.height()].map(|side| side / 2);
    imageops::resize(image, width, height, imageops::FilterType::Triangle)
}

fn set_time(path: &Path, seconds: u64) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
}

#[test]
fn every_kind_is_named_and_the_whole_large_picture_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let scene_0 = scene(0, 160, 120);
    let crop = imageops::crop_imm(&scene_0, 30, 10, 100, 90).to_image();
    let mut paths = vec![
        png(folder, "a crop.png", &crop),
        png(folder, "b.png", &scene_0),
        png(folder, "c the same file.png", &scene_0),
        folder.join("d the same pixels.bmp"),
        jpeg(folder, "e recompressed.jpg", &scene_0, 60),
        png(folder, "f small.png", &half(&scene_0)),
        png(folder, "g mirrored.png", &imageops::flip_horizontal(&scene_0)),
        png(folder, "h mirrored crop.png", &imageops::flip_horizontal(&crop)),
    ];
    scene_0.save(&paths[3]).unwrap();
    paths.extend((1..7).map(|n| png(folder, &format!("{n}.png"), &scene(n, 160, 120))));
    for (name, grey) in [("white.png", 255), ("nearly white.png", 254)] {
        paths.push(png(folder, name, &RgbImage::from_pixel(50, 50, image::Rgb([grey; 3]))));
    }
    let found = find(&paths, None);
    assert_eq!(found.groups.len(), 1, "{:?}", found.groups);
    let group = &found.groups[0];
    assert_eq!(group.keep, 1, "{group:?}");
    assert!(group.why.starts_with(&[Reason::Whole, Reason::Larger]), "{group:?}");
    let kind = |i: usize| group.others.iter().find(|d| d.picture == i).map(|d| d.kind);
    let kinds = [0, 2, 3, 4, 5, 6, 7].map(|i| kind(i).unwrap());
    use CopyKind::*;
    assert_eq!(kinds, [Crop, SameFile, SamePixels, Recompressed, Resized, Mirrored, MirroredCrop]);
    assert_eq!(group.others.len(), 7);
    assert!(group.others.iter().all(|d| d.score > 0.9), "{group:?}");
}

/// Of two sides, pairs are of one and the other, and those of the second are kept.
#[test]
fn what_leaked_from_one_side_to_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (one, two) = (scene(1, 100, 100), scene(2, 100, 100));
    let small = half(&one);
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
    assert_eq!((group.keep, &group.why), (4, &vec![Reason::SecondFolder]));
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
    set_time(&paths[0], 5);
    let found = find(&paths, None);
    assert_eq!(found.groups[0].keep, 1);
    assert_eq!(found.groups[0].why, [Reason::Older]);
    assert!(found.looks[2].is_err());
}

/// Pictures without files are compared, too.
#[test]
fn what_is_in_memory() {
    let pictures = [1, 2, 1].map(|n| scene(n, 32, 32));
    let look = |i: usize| in_memory(&pictures[i]);
    let (vectors, options) = (telling_nothing(3), DuplicateOptions::default());
    let compared = compared(&look, &vectors);
    let found = find_duplicates(&Device::cpu(1), &compared, &options, &|_, _, _| {}).unwrap();
    assert_eq!(found.groups.len(), 1);
    let Duplicate { picture, kind, .. } = found.groups[0].others[0];
    assert_eq!((picture, kind), (2, CopyKind::SamePixels));
}

/// Of all pixels a little: what a sensor adds, of its own for each number.
fn noisy(image: &RgbImage, number: u64) -> RgbImage {
    let mut noise = vec![0.0; image.len()];
    Draws::new(number, Stream::Test, 0, 0).fill_symmetric(&mut noise, 12.0);
    let values = image.iter().zip(noise).map(|(v, n)| (f32::from(*v) + n).clamp(0.0, 255.0) as u8);
    RgbImage::from_raw(image.width(), image.height(), values.collect()).unwrap()
}

fn around(image: &RgbImage, colour: u8, by: u32) -> RgbImage {
    let (width, height) = (image.width() + 2 * by, image.height() + 2 * by);
    let mut whole = RgbImage::from_pixel(width, height, image::Rgb([colour; 3]));
    imageops::replace(&mut whole, image, i64::from(by), i64::from(by));
    whole
}

/// A copy that comes first by its name, with its kind and what speaks for the original.
#[test]
fn the_original_is_kept_whatever_was_done_to_the_copy() {
    let original = noisy(&scene(5, 320, 240), 1);
    let size = |by: f32| [320.0 * by, 240.0 * by].map(|v| v as u32);
    let resized = |by: f32| {
        let [width, height] = size(by);
        imageops::resize(&original, width, height, imageops::FilterType::Lanczos3)
    };
    let mut marked = original.clone();
    for (x, y, pixel) in marked.enumerate_pixels_mut() {
        // Strokes across a corner.
        if (180..300).contains(&x) && (190..220).contains(&y) && (x / 5) % 2 == 0 {
            *pixel = image::Rgb([255; 3]);
        }
    }
    let mut faint = original.clone();
    for (pixel, other) in faint.pixels_mut().zip(marked.pixels()) {
        // Half as strong, and grey.
        if other[0] == 255 && other[1] == 255 && other[2] == 255 {
            *pixel = image::Rgb(pixel.0.map(|v| v / 2 + 100));
        }
    }
    let mut captioned = original.clone();
    for (x, y, pixel) in captioned.enumerate_pixels_mut() {
        if y >= 200 {
            let letter = (x / 6) % 2 == 0 && (208..232).contains(&y);
            *pixel = image::Rgb([if letter { 255 } else { 0 }; 3]);
        }
    }
    let mut grey = original.clone();
    grey.pixels_mut().for_each(|p| {
        let v =
            ((299 * u32::from(p[0]) + 587 * u32::from(p[1]) + 114 * u32::from(p[2])) / 1000) as u8;
        *p = image::Rgb([v; 3]);
    });
    let mut bright = grey.clone();
    bright.iter_mut().for_each(|v| *v = (u32::from(*v) * 3 / 2).min(255) as u8);
    let crop = imageops::crop_imm(&original, 40, 30, 250, 190).to_image();
    use CopyKind::*;
    let copies = [
        ("resized", resized(0.6), Resized, Reason::Larger),
        ("enlarged", resized(1.6), Resized, Reason::NotEnlarged),
        ("crop", crop, Crop, Reason::Whole),
        ("bordered", around(&original, 255, 20), Bordered, Reason::NoBorder),
        ("pasted", around(&original, 128, 130), Bordered, Reason::NoBorder),
        ("marked", marked, Retouched, Reason::Unmarked),
        ("faintly marked", faint, Retouched, Reason::Unmarked),
        ("captioned", captioned, Retouched, Reason::Unmarked),
        ("grey", grey.clone(), Recompressed, Reason::Coloured),
    ];
    let copies = copies.map(|(what, copy, kind, reason)| (what, &original, copy, kind, reason));
    let bright = ("bright", &grey, bright, Retouched, Reason::NotClipped);
    for (what, original, copy, kind, reason) in copies.into_iter().chain([bright]) {
        let folder = tempfile::tempdir().unwrap();
        let paths = [
            png(folder.path(), "a.png", &copy),
            png(folder.path(), "b.png", original),
            png(folder.path(), "c.png", &scene(9, 320, 240)),
        ];
        let found = find(&paths, None);
        assert_eq!(found.groups.len(), 1, "{what}: {found:?}", found = found.groups);
        let group = &found.groups[0];
        assert_eq!((group.keep, group.others.len()), (1, 1), "{what}: {group:?}");
        assert_eq!((group.others[0].picture, group.others[0].kind), (0, kind), "{what}: {group:?}");
        assert_eq!(group.why, [reason], "{what}");
    }
}

#[test]
fn a_jpeg_is_kept_rather_than_what_was_saved_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let picture = noisy(&scene(3, 160, 120), 1);
    let original = jpeg(folder, "b.jpg", &picture, 80);
    let (_, rgb) = Picture::read(&original).unwrap().fitted(1000).unwrap();
    let read = RgbImage::from_raw(160, 120, rgb).unwrap();
    for (copy, kind) in [
        (png(folder, "a.png", &read), CopyKind::SamePixels),
        (jpeg(folder, "again.jpg", &read, 97), CopyKind::Recompressed),
        (jpeg(folder, "worse.jpg", &read, 40), CopyKind::Recompressed),
    ] {
        let paths = [copy, original.clone()];
        let groups = find(&paths, None).groups;
        assert_eq!((groups[0].keep, groups[0].others[0].kind), (1, kind), "{groups:?}");
        assert_eq!(groups[0].why, [Reason::LessCompressed], "{:?}", paths[0]);
    }
}

#[test]
fn turned_copies_are_found_and_called_so() {
    let folder = tempfile::tempdir().unwrap();
    let picture = scene(5, 160, 120);
    let mirrored = imageops::flip_horizontal(&picture);
    let (a, b) = (&picture, &mirrored);
    use CopyKind::*;
    let turned = [
        (imageops::rotate90(a), Rotated90),
        (imageops::rotate180(a), Rotated180),
        (imageops::rotate270(a), Rotated270),
        (imageops::rotate90(b), MirroredRotated90),
        (imageops::rotate180(b), MirroredRotated180),
        (imageops::rotate270(b), MirroredRotated270),
        (mirrored.clone(), Mirrored),
    ];
    for (turned, kind) in turned {
        for copy in [half(&turned), turned] {
            let paths = [
                png(folder.path(), "a.png", &picture),
                png(folder.path(), "b.png", &scene(6, 160, 120)),
                png(folder.path(), "c.png", &copy),
            ];
            let groups = find(&paths, None).groups;
            assert_eq!(groups.len(), 1, "{kind}");
            assert_eq!((groups[0].keep, groups[0].others[0].picture), (0, 2), "{kind}");
            assert_eq!(groups[0].others[0].kind, kind);
        }
    }
}

/// A part that two images share makes neither a copy of the other.
#[test]
fn what_matches_only_another_copy_is_not_moved() {
    let folder = tempfile::tempdir().unwrap();
    let whole = scene(7, 400, 150);
    let cut = |left: u32, wide: u32| imageops::crop_imm(&whole, left, 0, wide, 150).to_image();
    let paths = [
        png(folder.path(), "left.png", &cut(0, 260)),
        png(folder.path(), "middle.png", &cut(110, 150)),
        png(folder.path(), "right.png", &cut(110, 290)),
    ];
    let groups = find(&paths, None).groups;
    assert_eq!(groups.len(), 1, "{groups:?}");
    let others: Vec<usize> = groups[0].others.iter().map(|other| other.picture).collect();
    assert_eq!(others, [1], "neither wide one is in the other: {groups:?}");
}

#[test]
fn photographs_of_a_burst_are_no_copies() {
    let folder = tempfile::tempdir().unwrap();
    let large = scene(4, 660, 500);
    let shot = |right: u32, down: u32, number: u64| {
        noisy(&imageops::crop_imm(&large, right, down, 640, 480).to_image(), number)
    };
    let paths = [
        png(folder.path(), "a.png", &shot(8, 8, 1)),
        png(folder.path(), "b.png", &shot(12, 5, 2)),
        png(folder.path(), "c.png", &scene(8, 640, 480)),
    ];
    let found = find(&paths, None);
    assert!(found.groups.is_empty(), "{:?}", found.groups);
    assert_eq!(found.bursts, [[0, 1]]);
    // Where one has a copy, the burst is still seen, with the kept one in it.
    let first = image::open(&paths[0]).unwrap().to_rgb8();
    let copied = [&paths[..], &[png(folder.path(), "a small.png", &half(&first))]].concat();
    let found = find(&copied, None);
    assert_eq!((found.groups.len(), found.groups[0].keep), (1, 0), "{:?}", found.groups);
    assert_eq!(found.bursts, [[0, 1]]);
}

/// Different things in the middle of one grey canvas.
#[test]
fn flat_surroundings_do_not_make_two_images_one() {
    let folder = tempfile::tempdir().unwrap();
    let image = |number: u32| {
        let thing = scene(number, 200, 200);
        let round = RgbImage::from_fn(200, 200, |x, y| {
            let far = (x as f32 - 100.0).hypot(y as f32 - 100.0);
            if far < 95.0 { *thing.get_pixel(x, y) } else { image::Rgb([128; 3]) }
        });
        around(&round, 128, 140)
    };
    let paths: Vec<PathBuf> =
        (0..8).map(|n| png(folder.path(), &format!("{n}.png"), &image(n))).collect();
    let found = find(&paths, None);
    assert!(found.groups.is_empty(), "{:?}", found.groups);
    let smaller = imageops::resize(&image(3), 300, 300, imageops::FilterType::Triangle);
    let paths = [paths[3].clone(), png(folder.path(), "small.png", &smaller)];
    assert_eq!(find(&paths, None).groups.len(), 1);
}

#[test]
fn rules_choose_what_is_kept_and_a_refused_pair_is_never_told() {
    let folder = tempfile::tempdir().unwrap();
    let picture = scene(2, 160, 120);
    let image = |name, image| png(folder.path(), name, image);
    let paths = [image("a.png", &picture), image("b.png", &half(&picture))];
    set_time(&paths[0], 5);
    let kept = |keep: &[KeepRule]| {
        let options = DuplicateOptions { keep: keep.to_vec(), ..DuplicateOptions::default() };
        let found = find_with(&paths, None, &options, &|_, _| false);
        (found.groups[0].keep, found.groups[0].why.clone())
    };
    assert_eq!(kept(&[KeepRule::Original]), (0, vec![Reason::Larger]));
    assert_eq!(kept(&[]), kept(&[KeepRule::Original]));
    let by_rule = |rule, keep| assert_eq!(kept(&[rule]), (keep, vec![Reason::Rule(rule)]));
    by_rule(KeepRule::Oldest, 1);
    by_rule(KeepRule::Newest, 0);
    by_rule(KeepRule::Largest, 0);
    by_rule(KeepRule::Smallest, 1);
    by_rule(KeepRule::FirstFolder, 1);
    by_rule(KeepRule::FirstName, 0);
    for rule in KeepRule::ALL {
        assert_eq!(rule.to_string().parse(), Ok(rule));
    }
    assert!("best".parse::<KeepRule>().is_err());
    let options = DuplicateOptions::default();
    let refused = |pair| find_with(&paths, None, &options, &move |i, j| (i, j) == pair).groups;
    assert!(refused((0, 1)).is_empty() && refused((1, 0)).is_empty());
    let same = [paths[0].clone(), folder.path().join("c.png")];
    std::fs::copy(&same[0], &same[1]).unwrap();
    let found = find_with(&same, None, &options, &|i, j| (i, j) == (1, 0));
    assert!(found.groups.is_empty(), "not even the same file: {:?}", found.groups);
}

/// One image, each time with a dot in another place.
fn dotted(base: &RgbImage) -> impl Fn(usize) -> Result<Look, String> + Copy {
    move |i| {
        let mut picture = base.clone();
        picture.put_pixel((i % 64) as u32, (i / 64) as u32, image::Rgb([1, 2, 3]));
        in_memory(&picture)
    }
}

/// Many scans that look nearly the same have as many pairs as there can be.
#[test]
fn pairs_of_near_hashes_come_in_batches() {
    let n = 500;
    let base = scene(1, 64, 64);
    let look = dotted(&base);
    let vectors = telling_nothing(n);
    let compared = compared(&look, &vectors);
    let looks: Vec<_> = (0..n).map(look).collect();
    let equal = Equal::find(&looks);
    let (device, options) = (Device::cpu(1), DuplicateOptions::default());
    let proposals =
        || Proposals::new(&device, &compared, &looks, &equal, &options, &|_| {}).unwrap();
    let (mut all, mut largest) = (vec![], 0);
    let mut some = proposals();
    while let Some(batch) = some.batch(|_, _| false) {
        largest = largest.max(batch.len());
        all.extend(batch);
    }
    assert!(all.len() <= n * most_proposed(&options), "{}", all.len());
    assert!(all.is_sorted_by(|a, b| a < b));
    assert!(largest <= (1 << 14) + 16 * most_proposed(&options), "{largest}");
    // What is settled takes no room at all.
    assert_eq!(proposals().batch(|_, _| true), None);
    let found = find_duplicates(&device, &compared, &options, &|_, _, _| {}).unwrap();
    assert_eq!(found.groups[0].others.len(), n - 1);
    assert!(found.judged < 1 << 15, "{}", found.judged);
}

/// Pairs of an image by hashes, vectors and colours.
fn most_proposed(options: &DuplicateOptions) -> usize {
    propose::MOST_NEAR + 2 * options.nearest
}

/// A camera that stands still, or scans of one form: all look the same, and none is a copy, so that
/// no pair settles another.
#[test]
fn images_that_look_alike_and_are_no_copies_need_few_comparisons() {
    let n = 120;
    let base = scene(1, 64, 64);
    let look = |i: usize| {
        let mut look = in_memory(&noisy(&base, (i % n) as u64 + 1))?;
        look.metadata.camera = Some("camera".into());
        look.metadata.taken = Some(1 + (i % n) as i64);
        Ok(look)
    };
    let options = DuplicateOptions { nearest: 1, ..DuplicateOptions::default() };
    let find = |n: usize, against_from: Option<usize>| {
        let vectors = telling_nothing(n);
        let compared = Compared { against_from, ..compared(&look, &vectors) };
        find_duplicates(&Device::cpu(1), &compared, &options, &|_, _, _| {}).unwrap()
    };
    let found = find(n, None);
    assert!(found.groups.is_empty());
    assert_eq!(found.bursts, [(0..n).collect::<Vec<_>>()]);
    assert!(found.judged <= n * most_proposed(&options), "{}", found.judged);
    // Among the second ones each has a copy, with equal pixels, and all others are of its burst.
    let found = find(2 * n, Some(n));
    assert_eq!(found.groups.len(), n);
    assert!(found.groups.iter().all(|group| group.others.len() == 1));
    // Nearest are asked for on both sides.
    let most = n * (most_proposed(&options) + 2 * options.nearest);
    assert!(found.judged <= most, "{} of {most}", found.judged);
}

/// What is among the others many times over is found all the same.
#[test]
fn copies_of_copies_among_others_need_few_comparisons() {
    let n = 90;
    let base = scene(1, 64, 64);
    let look = dotted(&base);
    let vectors = telling_nothing(2 * n);
    let compared = Compared { against_from: Some(n), ..compared(&look, &vectors) };
    let options = DuplicateOptions { nearest: 1, ..DuplicateOptions::default() };
    let found = find_duplicates(&Device::cpu(1), &compared, &options, &|_, _, _| {}).unwrap();
    let moved: usize = found.groups.iter().map(|group| group.others.len()).sum();
    assert_eq!(moved, n);
    // And of each at most two to choose the one that is kept.
    let most = n * (most_proposed(&options) + 2 * options.nearest + 2);
    assert!(found.judged <= most && most < n * (n - 1), "{} of {most}", found.judged);
}

#[test]
fn the_same_is_found_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let mut paths = vec![];
    for n in 0..6 {
        let picture = noisy(&scene(n, 200, 150), u64::from(n));
        let crop = imageops::crop_imm(&picture, 20, 10, 150, 120).to_image();
        paths.push(png(folder.path(), &format!("{n}.png"), &picture));
        paths.push(png(folder.path(), &format!("{n} border.png"), &around(&picture, 200, 15)));
        paths.push(png(folder.path(), &format!("{n} crop.png"), &crop));
    }
    let found = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| find(&paths, None))
    };
    let (one, four) = (found(1), found(4));
    assert_eq!((one.groups.len(), one.judged), (6, four.judged));
    assert_eq!((one.groups, one.bursts), (four.groups, four.bursts));
}
