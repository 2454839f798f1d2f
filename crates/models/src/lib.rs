//! Which graph is which network?
//!
//! An [`Architecture`] is named by the user, and builds its graph for pictures of one size. Parameter names are
//! torchvision's where the network is torchvision's, so that weights can travel in both directions. Every network ends in
//! a feature vector of unit length, and its stages can be asked for by the names the paper gives them: conv1 … conv5, fc.

mod architecture;
mod resnet;

pub use architecture::{Architecture, UnknownArchitecture};
pub use resnet::resnet18;
