//! The paper: memory bank, neighbourhoods, entropy, curriculum, the loss and its gradient.
//!
//! Huang, Dong, Gong, Zhu: *Unsupervised Deep Learning by Neighbourhood Discovery*, ICML 2019. A
//! [`MemoryBank`] keeps what every picture looked like when it was last seen (Eq. 8). Before each
//! round, [`Neighbourhoods::discover`] finds every picture's nearest others in it (Eq. 1) and makes
//! anchors of those whose similarities are least spread out (Eq. 5), as many as the [`Curriculum`]
//! says (Eq. 6). [`neighbourhood_loss`] (Eq. 7) then draws an anchor towards its neighbourhood and
//! every other picture towards itself.
//!
//! Of very many pictures it looks through a few [`Lists`](anchorhood_engine::vectors::Lists) alone ([`DiscoverBy`]).
//!
//! ```
//! use anchorhood_train::discovery::{
//!     Curriculum, DiscoverBy, MemoryBank, Neighbourhoods, neighbourhood_loss,
//! };
//! use anchorhood_engine::{Device, Loss};
//!
//! let device = Device::cpu(1);
//! let mut stream = device.stream()?;
//! let mut bank = MemoryBank::new(&device, 100, 8, 0)?;
//! let share = Curriculum::Linear.share(1, 4);
//! let by = DiscoverBy::Auto;
//! let found = Neighbourhoods::discover(&device, &bank, by, 1, 0.1, share, &|_| {})?;
//! assert_eq!(found.anchor_count(), 25);
//!
//! let batch = device.upload_indices(&[3, 14, 15])?;
//! let features = device.upload(&[0.35; 3 * 8])?; // what the network makes of the pictures
//! let (mut rows, mut gradient) = (device.zeros(3)?, device.zeros(3 * 8)?);
//! let positives = device.positives(&found.positives(), bank.len())?;
//! let loss = Loss { rows: &mut rows, gradient: &mut gradient, weight: 1.0 };
//! neighbourhood_loss(&mut stream, &features, &bank, 0.1, &positives, &batch, None, loss)?;
//! bank.update(&mut stream, &batch, &features, 0.5)?;
//! # Ok::<(), anchorhood_engine::Error>(())
//! ```

mod approximate;
mod assignment;
mod curriculum;
mod loss;
mod memory_bank;
mod mutual_information;
mod neighbourhoods;
mod noise_targets;

pub use approximate::{DiscoverBy, EXACT_UP_TO};
pub use assignment::assign;
pub use curriculum::Curriculum;
pub use loss::neighbourhood_loss;
pub use memory_bank::MemoryBank;
pub use mutual_information::mutual_information;
pub use neighbourhoods::Neighbourhoods;
pub use noise_targets::{NoiseTargets, Reassigned};
