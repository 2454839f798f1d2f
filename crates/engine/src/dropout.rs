//! What dropout's masks are drawn by, so that the way back draws them again and no device stores
//! one.

/// A dropout layer in a pass of a network. A mask's numbers depend on this, the step, and their
/// place among the values of all processes: other networks of a run are initialised by other seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropoutKey {
    /// The seed that the network was initialised by.
    pub seed: u64,
    /// The pass.
    pub pass: usize,
    /// The layer's index.
    pub layer: usize,
}

impl DropoutKey {
    /// Which block of a place's random words the layer draws in the pass.
    pub fn block(&self) -> u32 {
        ((self.pass as u32) << 16) + self.layer as u32
    }
}
