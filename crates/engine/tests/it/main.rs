//! Tests from outside, together in one program, since each program is linked anew.
//! Beside this folder: a test that counts allocations, and those whose processes share one GPU.

mod chains;
#[path = "../common/mod.rs"]
mod common;
mod convolution;
mod fused;
mod golden;
mod layers;
mod long;
mod losses;
mod messages;
mod naive_gradients;
mod network_optimisers;
mod not_finite;
mod optimisers;
mod passes;
mod random_graphs;
mod ranks;
mod rows;
mod sampled_loss;
mod similarity;
mod steps;
mod threads;
mod whole_networks;
