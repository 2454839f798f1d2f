//! What a few labels are worth, by a vote and by logistic regression, and how many swapped labels `wrong_labels` finds.
//!
//! `cargo run --release -p anchorhood-search --example few_labels -- pictures.index` for an index of pictures in class folders.

use anchorhood_engine::Device;
use anchorhood_random::{Draws, Stream};
use anchorhood_search::{
    LogisticOptions, PictureIndex, SearchError, VoteOptions, classify, classify_logistic,
    wrong_labels,
};

/// Draws of labelled pictures for each line.
const DRAWS: u64 = 10;
const COSTS: [f64; 4] = [0.01, 0.1, 1.0, 10.0];
const SWAPPED: usize = 50;

struct Pictures {
    device: Device,
    vectors: Vec<f32>,
    dim: usize,
    classes: Vec<u32>,
    names: usize,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args()
        .nth(1)
        .ok_or("an index of pictures in class folders")?;
    let index = PictureIndex::load(path)?;
    let named = &index.parts().classes;
    let mut names: Vec<&String> = named.iter().flatten().collect();
    names.sort();
    names.dedup();
    let number = |class: &Option<String>| {
        let class = class.as_ref()?;
        Some(names.binary_search(&class).ok()? as u32)
    };
    let classes: Option<Vec<u32>> = named.iter().map(number).collect();
    let pictures = Pictures {
        device: Device::cpu(2),
        vectors: index.vectors()?.to_vec(),
        dim: index.parts().dim,
        classes: classes.ok_or("pictures without a class")?,
        names: names.len(),
    };
    println!("{} pictures, {} classes", index.len(), names.len());
    pictures.few_labels()?;
    pictures.swapped()?;
    Ok(())
}

impl Pictures {
    fn few_labels(&self) -> Result<(), SearchError> {
        print!("| labels a class | vote, k 10 |");
        COSTS.iter().for_each(|c| print!(" logistic, C {c} |"));
        println!();
        for each in [1, 5, 20, 100] {
            let mut rows = vec![vec![]; 1 + COSTS.len()];
            for draw in 0..DRAWS {
                let labels = self.drawn(each, draw);
                let options = VoteOptions::default();
                let votes = classify(
                    &self.device,
                    &self.vectors,
                    self.dim,
                    &labels,
                    &options,
                    &|_| {},
                )?;
                let right = |guesses: &[anchorhood_search::Guess]| {
                    let open = (0..labels.len()).filter(|i| labels[*i].is_none());
                    let hits = open
                        .clone()
                        .filter(|i| guesses[*i].class == self.classes[*i]);
                    100.0 * hits.count() as f64 / open.count() as f64
                };
                rows[0].push(right(&votes));
                for (row, c) in rows[1..].iter_mut().zip(COSTS) {
                    let options = LogisticOptions { c };
                    let guesses =
                        classify_logistic(&self.vectors, self.dim, &labels, &options, &votes)?;
                    row.push(right(&guesses));
                }
            }
            print!("| {each} |");
            for row in rows {
                let n = row.len() as f64;
                let mean = row.iter().sum::<f64>() / n;
                let deviation =
                    (row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
                print!(" {mean:.1} ± {deviation:.1} |");
            }
            println!();
        }
        Ok(())
    }

    /// So many labels of each class.
    fn drawn(&self, each: usize, draw: u64) -> Vec<Option<u32>> {
        let order = Draws::new(7, Stream::Test, draw, each as u64).permutation(self.classes.len());
        let mut counts = vec![0; self.names];
        let mut labels = vec![None; self.classes.len()];
        for i in order {
            let class = self.classes[i as usize];
            if counts[class as usize] < each {
                counts[class as usize] += 1;
                labels[i as usize] = Some(class);
            }
        }
        labels
    }

    /// Labels of some pictures made wrong: which of them are among the first that are named?
    fn swapped(&self) -> Result<(), SearchError> {
        println!("| k | swapped among the first 50 | 100 | 200 | all contradicted |");
        for k in [10, 20, 50, 100] {
            let mut sums = [0; 4];
            for draw in 0..DRAWS {
                let order = Draws::new(8, Stream::Test, draw, 0).permutation(self.classes.len());
                let mut labels: Vec<Option<u32>> = self.classes.iter().map(|c| Some(*c)).collect();
                let chosen: Vec<usize> = order.iter().take(SWAPPED).map(|i| *i as usize).collect();
                for (at, i) in chosen.iter().enumerate() {
                    let by = 1 + at as u32 % (self.names as u32 - 1);
                    labels[*i] = Some((self.classes[*i] + by) % self.names as u32);
                }
                let options = VoteOptions {
                    k,
                    ..VoteOptions::default()
                };
                let found = wrong_labels(
                    &self.device,
                    &self.vectors,
                    self.dim,
                    &labels,
                    &options,
                    &|_| {},
                )?;
                let among = |first: usize| {
                    let found = found.iter().take(first);
                    found.filter(|w| chosen.contains(&w.picture)).count()
                };
                for (sum, first) in sums.iter_mut().zip([50, 100, 200]) {
                    *sum += among(first);
                }
                sums[3] += found.len();
            }
            let mean = sums.map(|s| s as f64 / DRAWS as f64);
            println!(
                "| {k} | {:.1} | {:.1} | {:.1} | {:.0} |",
                mean[0], mean[1], mean[2], mean[3]
            );
        }
        Ok(())
    }
}
