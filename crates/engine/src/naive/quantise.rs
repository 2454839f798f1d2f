//! Rows told by their nearest entry of a codebook (vector quantisation), and how often a classifier
//! is right, as plain loops.

/// For each row of `dim` the number of the entry nearest to it; of equally near ones the first. A
/// row that is not a number has entry 0.
pub fn quantise(rows: &[f64], codebook: &[f64], dim: usize) -> Vec<u32> {
    let nearest = |row: &[f64]| {
        let mut best = (f64::INFINITY, 0);
        for (entry, code) in codebook.chunks(dim).enumerate() {
            let distance: f64 = row.iter().zip(code).map(|(a, b)| (a - b).powi(2)).sum();
            if distance < best.0 {
                best = (distance, entry as u32);
            }
        }
        best.1
    };
    rows.chunks(dim).map(nearest).collect()
}

/// Row b's class is `labels[items[b]]`, its guess the greatest logit, the first of equal ones.
/// `tally[0]` += right guesses, `tally[1 + c]` += rows of class c.
pub fn tally(logits: &[f64], classes: usize, labels: &[u32], items: &[u32], tally: &mut [u32]) {
    for (row, item) in logits.chunks(classes).zip(items) {
        let mut guess = 0;
        for c in 1..classes {
            if row[c] > row[guess] {
                guess = c;
            }
        }
        let class = labels[*item as usize];
        tally[0] += u32::from(guess as u32 == class && !row[guess].is_nan());
        tally[1 + class as usize] += 1;
    }
}
