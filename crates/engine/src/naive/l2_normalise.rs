//! Each row divided by its Euclidean norm, as PyTorch's `F.normalize`: y = x / max(‖x‖, 1e-12).
//!
//! ```text
//! backward   dx = (dy − y·⟨y, dy⟩) / ‖x‖          (‖x‖ below 1e-12 is a constant: dx = dy / 1e-12)
//! ```

/// The smallest norm divided by.
pub const EPSILON: f64 = 1e-12;

/// The output; `dim` is a row's length.
pub fn forward(dim: usize, x: &[f64]) -> Vec<f64> {
    let unit = |row: &[f64]| {
        let norm = length(row).max(EPSILON);
        row.iter().map(|v| v / norm).collect::<Vec<f64>>()
    };
    x.chunks(dim).flat_map(unit).collect()
}

/// The gradient of the input.
pub fn backward(dim: usize, x: &[f64], dy: &[f64]) -> Vec<f64> {
    let mut dx = vec![];
    for (row, d) in x.chunks(dim).zip(dy.chunks(dim)) {
        let norm = length(row);
        if norm < EPSILON {
            dx.extend(d.iter().map(|d| d / EPSILON));
            continue;
        }
        let along: f64 = row.iter().zip(d).map(|(v, d)| v / norm * d).sum();
        dx.extend(row.iter().zip(d).map(|(v, d)| (d - v / norm * along) / norm));
    }
    dx
}

fn length(row: &[f64]) -> f64 {
    row.iter().map(|v| v * v).sum::<f64>().sqrt()
}
