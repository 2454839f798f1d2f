//! The paper: memory bank, neighbourhoods, entropy, curriculum, the loss and its gradient.
//!
//! Huang, Dong, Gong, Zhu: *Unsupervised Deep Learning by Neighbourhood Discovery*, ICML 2019. A [`MemoryBank`] keeps what
//! every picture looked like when it was last seen (Eq. 8). Before each round, [`Neighbourhoods::discover`] finds every
//! picture's nearest others in it (Eq. 1) and makes anchors of those whose similarities are least spread out (Eq. 5), as
//! many as the [`Curriculum`] says (Eq. 6). [`neighbourhood_loss`] (Eq. 7) then draws an anchor towards its neighbourhood
//! and every other picture towards itself.
//!
//! ```
//! use anchorhood_discover::{Curriculum, MemoryBank, Neighbourhoods, neighbourhood_loss};
//! use anchorhood_engine::{Cpu, Device, Positives};
//!
//! let device = Cpu::new(1);
//! let mut bank = MemoryBank::new(&device, 100, 8, 0)?;
//! let share = Curriculum::Linear.share(1, 4);
//! let found = Neighbourhoods::discover(&device, &bank, 1, 0.1, share, &|_| {})?;
//! assert_eq!(found.anchor_count(), 25);
//!
//! let batch = [3, 14, 15];
//! let features = device.upload(&[0.35; 3 * 8])?; // what the network makes of the pictures
//! let mut gradient = device.upload(&[0.0; 3 * 8])?;
//! let (mut positives, mut losses) = (Positives::default(), [0.0; 3]);
//! found.positives(&batch, &mut positives);
//! neighbourhood_loss(&device, &features, &bank, 0.1, &positives, &mut losses, &mut gradient)?;
//! bank.update(&device, &batch, &features, 0.5)?;
//! # Ok::<(), anchorhood_engine::Error>(())
//! ```

mod curriculum;
mod loss;
mod memory_bank;
mod neighbourhoods;

pub use curriculum::{Curriculum, lowest_entropy};
pub use loss::neighbourhood_loss;
pub use memory_bank::MemoryBank;
pub use neighbourhoods::{Neighbourhoods, PartsError};
