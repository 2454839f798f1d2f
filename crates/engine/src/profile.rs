//! Where the time of a training step goes.

/// A part of a step, run alone.
#[derive(Clone, Debug, PartialEq)]
pub struct PartTime {
    /// What it does.
    pub name: &'static str,
    /// How long it takes.
    pub milliseconds: f64,
    /// Multiplications and additions.
    pub flops: f64,
    /// Bytes it must read and write at least, if every kernel went to memory for its arguments
    /// once.
    pub bytes: f64,
}

/// A step's parts, and what the device can do at best.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The parts, in the step's order.
    pub parts: Vec<PartTime>,
    /// A whole step. Parts may run side by side in it, so that it takes less than their sum.
    pub step_milliseconds: f64,
    /// Multiplications and additions in a second, measured over a large matrix product.
    pub most_flops: f64,
    /// Bytes read and written in a second, measured over a large copy.
    pub most_bytes: f64,
}
