//! Several results of one thing: their mean, and how far they lie from it.

use std::fmt;

use serde::Serialize;

/// Mean and standard deviation of a number of results.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Their mean.
    pub mean: f64,
    /// The sample standard deviation (n − 1 in the denominator); nothing of a single result.
    pub std: Option<f64>,
    /// How many there were.
    pub n: usize,
}

impl Spread {
    /// Of some results; nothing of none.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        Some(Spread { mean, std: (n > 1).then(|| (squares / (n - 1) as f64).sqrt()), n })
    }
}

impl fmt::Display for Spread {
    /// Shares as percentages: `77.6% ± 0.3 (n = 3)`, `77.6%`.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:.1}%", 100.0 * self.mean)?;
        match self.std {
            Some(std) => write!(f, " ± {:.1} (n = {})", 100.0 * std, self.n),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_of_one_and_of_none() {
        let three = Spread::of(&[0.70, 0.72, 0.74]).unwrap();
        assert!((three.mean - 0.72).abs() < 1e-12 && (three.std.unwrap() - 0.02).abs() < 1e-12);
        assert_eq!(three.to_string(), "72.0% ± 2.0 (n = 3)");
        assert_eq!(Spread::of(&[0.5]).unwrap().to_string(), "50.0%");
        assert_eq!(Spread::of(&[]), None);
    }
}
