//! What a few labels are worth, by a vote and by logistic regression, how long each takes, and how
//! many swapped labels `wrong_labels` finds.
//!
//! `cargo run --release -p anchorhood-search --example few_labels -- a.index b.index` for indices
//! of pictures in class folders: mean and standard deviation over all draws of all of them, and the
//! median of seconds.

use std::time::Instant;

use anchorhood_curate::{
    CurateError, Guess, LogisticOptions, VoteOptions, classify, classify_logistic, wrong_labels,
};
use anchorhood_engine::Device;
use anchorhood_random::{Draws, Stream};
use anchorhood_search::PictureIndex;

/// Draws of labelled pictures for each line and index.
const DRAWS: u64 = 5;
const COSTS: [f64; 3] = [0.1, 1.0, 10.0];
const SWAPPED: usize = 50;

struct Pictures {
    device: Device,
    vectors: Vec<f32>,
    dim: usize,
    classes: Vec<u32>,
    names: usize,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sets: Result<Vec<Pictures>, _> = std::env::args().skip(1).map(Pictures::open).collect();
    let sets = sets?;
    print!("| labels a class | vote, k 10 |");
    COSTS.iter().for_each(|c| print!(" logistic, C {c} |"));
    println!(" seconds of each |");
    for each in [1, 5, 20, 100] {
        let mut columns = vec![(vec![], vec![]); 1 + COSTS.len()];
        for (set, draw) in sets.iter().flat_map(|set| (0..DRAWS).map(move |d| (set, d))) {
            set.guessed(each, draw, &mut columns)?;
        }
        print!("| {each} |");
        for (shares, _) in &columns {
            let (mean, deviation) = spread(shares);
            print!(" {mean:.1} ± {deviation:.1} |");
        }
        for (_, seconds) in &mut columns {
            seconds.sort_by(f64::total_cmp);
            print!(" {:.2}", seconds[seconds.len() / 2]);
        }
        println!(" |");
    }
    sets.iter().try_for_each(Pictures::swapped)?;
    Ok(())
}

fn spread(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
    (mean, (squares / (n - 1.0)).sqrt())
}

/// Shares of right guesses, and seconds.
type Column = (Vec<f64>, Vec<f64>);

impl Pictures {
    fn open(path: String) -> Result<Pictures, Box<dyn std::error::Error>> {
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
        Ok(Pictures {
            device: Device::cpu(2),
            vectors: index.vectors()?.to_vec(),
            dim: index.parts().dim,
            classes: classes.ok_or("pictures without a class")?,
            names: names.len(),
        })
    }

    fn guessed(&self, each: usize, draw: u64, columns: &mut [Column]) -> Result<(), CurateError> {
        let labels = self.drawn(each, draw);
        let right = |guesses: &[Guess]| {
            let open: Vec<usize> = (0..labels.len()).filter(|i| labels[*i].is_none()).collect();
            let hits = open.iter().filter(|i| guesses[**i].class == self.classes[**i]);
            100.0 * hits.count() as f64 / open.len() as f64
        };
        let (vectors, dim, options) = (&self.vectors, self.dim, VoteOptions::default());
        let mut add = |column: usize, began: Instant, guesses: &[Guess]| {
            columns[column].1.push(began.elapsed().as_secs_f64());
            columns[column].0.push(right(guesses));
        };
        let began = Instant::now();
        let votes = classify(&self.device, vectors, dim, &labels, &options, &|_| {})?;
        add(0, began, &votes);
        for (column, c) in (1..).zip(COSTS) {
            let (began, options) = (Instant::now(), LogisticOptions { c });
            let guesses = classify_logistic(vectors, dim, &labels, &options, &votes)?;
            add(column, began, &guesses);
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
    fn swapped(&self) -> Result<(), CurateError> {
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
                let options = VoteOptions { k, ..VoteOptions::default() };
                let (vectors, dim) = (&self.vectors, self.dim);
                let found = wrong_labels(&self.device, vectors, dim, &labels, &options, &|_| {})?;
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
            println!("| {k} | {:.1} | {:.1} | {:.1} | {:.0} |", mean[0], mean[1], mean[2], mean[3]);
        }
        Ok(())
    }
}
