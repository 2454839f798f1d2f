//! Which graph is which network?
//!
//! A [`Backbone`] is named by the user, and builds its graph for pictures of one size.
//! Parameter names are torchvision's where the network is torchvision's, so that [`Weights`] can
//! travel in both directions. Every network ends in a feature vector of unit length, and its stages
//! can be asked for by the names the paper gives them: conv1 … conv5, fc.

#![forbid(unsafe_code)]

mod alexnet;
mod backbone;
mod colours;
mod form;
mod resnet;
mod torch_file;
mod weights;

pub use alexnet::ALEXNET;
pub use backbone::{BACKBONES, Backbone, Layers, Stages, Trunk, UnknownBackbone};
pub use colours::Colours;
pub use form::Form;
pub use resnet::{RESNET10, RESNET18, RESNET34, RESNET50, RESNET101};
pub use weights::{Fitted, Loaded, Recognised, Weights, WeightsError};
