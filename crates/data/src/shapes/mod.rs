//! `shapes`: pictures drawn by code, told apart by their shape alone. The data set that needs no
//! download.
//!
//! A picture shows one of ten outlines, repeated side by side like the pattern of a cloth, so that
//! every crop shows the shape. Colour of shape and background, size, place, turn, background
//! texture and noise all vary, so that pixels say little about the class: what is left to learn is
//! the shape. Picture `i` depends on the seed and `i` alone: any number can be drawn, on any number
//! of threads, and more pictures never change the first ones.

mod outline;
mod scene;

pub use outline::Outline;

use anchorhood_storage::random::{Draws, Stream};
use rayon::prelude::*;

use crate::{DataError, Dataset, Labels, Pictures, Split, resize};
use scene::Scene;

/// Side of the pictures unless another is asked for.
pub const SIZE: usize = 32;
/// Mean of each channel: pictures 0 to 49,999 of seed 0, by `statistics::measure` (the test
/// `constants_are_what_pictures_have`).
pub const MEAN: [f32; 3] = [0.5004, 0.5002, 0.4999];
/// Standard deviation of each channel, likewise.
pub const STD: [f32; 3] = [0.2455, 0.2314, 0.2456];

/// Test pictures start here, beyond any training picture.
const TEST_START: u64 = 1 << 36;

/// Draws `train` pictures to learn from and `test` to evaluate on, `size`×`size`.
pub fn dataset(seed: u64, size: usize, train: usize, test: usize) -> Result<Dataset, DataError> {
    let train = split(seed, size, 0, train)?;
    let test = (test > 0).then(|| split(seed, size, TEST_START, test)).transpose()?;
    Ok(Dataset::of("shapes", train, test, (MEAN, STD)))
}

fn split(seed: u64, size: usize, start: u64, n: usize) -> Result<Split, DataError> {
    let mut pixels = resize::memory(n, size)?;
    let values = pixels
        .par_chunks_exact_mut(size * size * 3)
        .enumerate()
        .map(|(i, out)| {
            let draws = Draws::new(seed, Stream::Shapes, 0, start + i as u64);
            let scene = Scene::draw(&draws);
            scene.paint(&draws, size, out);
            scene.outline as u32
        })
        .collect();
    let classes = Outline::ALL.map(|o| o.name().to_owned()).to_vec();
    Split::from(Pictures::new(size, size, pixels)?).labelled(Labels::new(values, classes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics;

    fn train(seed: u64, n: usize) -> Split {
        dataset(seed, SIZE, n, 0).unwrap().train
    }

    #[test]
    fn constants_are_what_pictures_have() {
        let (mean, std) = statistics::measure(&train(0, 50_000).pictures);
        for c in 0..3 {
            assert!((mean[c] - MEAN[c]).abs() < 6e-5, "mean {mean:?}");
            assert!((std[c] - STD[c]).abs() < 6e-5, "std {std:?}");
        }
    }

    #[test]
    fn same_bytes_on_any_thread_count_and_for_any_n() {
        let few = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let many = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        let a = few.install(|| train(3, 300));
        let b = many.install(|| train(3, 500));
        assert_eq!(a.pictures.raw(), b.pictures.take(300).raw());
        assert_ne!(a.pictures.raw(), train(4, 300).pictures.raw());
    }

    #[test]
    fn test_pictures_are_others() {
        let data = dataset(0, SIZE, 200, 200).unwrap();
        let train: std::collections::HashSet<_> =
            (0..200).map(|i| data.train.pictures.picture(i).to_vec()).collect();
        let test = data.test.unwrap();
        assert!((0..200).all(|i| !train.contains(test.pictures.picture(i))));
    }

    #[test]
    fn classes_are_even() {
        let labels = train(0, 10_000).labels.unwrap();
        for class in 0..10 {
            let n = labels.values().iter().filter(|&&v| v == class).count();
            assert!((850..1150).contains(&n), "{}: {n}", labels.classes()[class as usize]);
        }
    }

    /// The point of the data set: raw pixels say little about the class.
    #[test]
    fn nearest_pixels_do_badly() {
        let data = dataset(0, SIZE, 5000, 300).unwrap();
        let test = data.test.unwrap();
        let unit = |p: &[u8]| {
            let v: Vec<f32> = p.iter().map(|&b| f32::from(b) - 127.5).collect();
            let norm = v.iter().map(|x| x * x).sum::<f32>().sqrt();
            v.into_iter().map(|x| x / norm).collect::<Vec<f32>>()
        };
        let bank: Vec<Vec<f32>> = (0..5000).map(|i| unit(data.train.pictures.picture(i))).collect();
        let right = (0..300)
            .into_par_iter()
            .filter(|&i| {
                let query = unit(test.pictures.picture(i));
                let near = |b: &[f32]| b.iter().zip(&query).map(|(a, b)| a * b).sum::<f32>();
                let best = bank.iter().map(|b| near(b)).enumerate();
                let best = best.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0;
                let truth = test.labels.as_ref().unwrap().get(i);
                data.train.labels.as_ref().unwrap().get(best) == truth
            })
            .count();
        assert!(right < 90, "{right} of 300");
        println!("nearest neighbour on pixels: {right} of 300");
    }

    #[test]
    fn other_sizes_show_the_same_scene() {
        let large = dataset(0, 64, 20, 0).unwrap().train;
        assert_eq!(large.labels, train(0, 20).labels);
        assert_eq!(large.pictures.height(), 64);
    }
}
