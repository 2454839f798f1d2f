//! Channels moved: channel c of a place of the output is channel c + `first` of the input where
//! there is one, else zero.

/// The output; places have `from` and `to` channels. The gradient of the input is the same of dy,
/// back: (to, −first, from).
pub fn forward(x: &[f64], from: usize, first: isize, to: usize) -> Vec<f64> {
    let place = |x: &[f64]| {
        let channel = |c: usize| {
            let at = c.checked_add_signed(first);
            at.and_then(|at| x.get(at)).copied().unwrap_or(0.0)
        };
        (0..to).map(channel).collect::<Vec<f64>>()
    };
    x.chunks(from).flat_map(place).collect()
}
