//! Training steps that a device takes by itself, batches included: the host says how many, and hears of the losses later.
//!
//! A step of the host's needs it at every turn: it prepares the pictures, waits for the loss, and asks for the next pass.
//! Where a device can hold the items and make batches of them, nothing of that is left, and a step is one launch.

use crate::optimiser::Sgd;
use crate::similarity::Positives;
use crate::{Error, Profile, Result};

/// A kernel that makes batches, in the language of the device (CUDA C++ is the only one so far).
///
/// It is started with a block for each item of the batch and six pointers: the words, the items' bytes, the epoch's order
/// (u32), two u64 (the step in the epoch, the epoch), where the batch goes, and null. Block b makes item
/// `order[step · blocks + b]`.
#[derive(Clone, Copy, Debug)]
pub struct BatchKernel {
    /// The text; it includes nothing.
    pub source: &'static str,
    /// The kernel's name in it, and the file's.
    pub name: &'static str,
    /// Threads of a block.
    pub threads: u32,
}

/// In which form a device wants batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchForm {
    /// Channels of a place; those beyond the items' own are zero.
    pub channels: usize,
    /// bf16, or else f32.
    pub bf16: bool,
    /// 0 where all items are on the device. Else batches take turns in so many places: that of step s is place
    /// s modulo this, with the items in the step's order.
    pub ring: usize,
}

/// Copies the bytes of some items, one after the other.
pub type Fetch<'a> = &'a (dyn Fn(&[u32], &mut [u8]) + Sync);

/// How batches come about.
#[derive(Clone, Copy)]
pub struct BatchMaker<'a> {
    /// The kernel.
    pub kernel: BatchKernel,
    /// What the kernel is told, for a form.
    pub words: &'a dyn Fn(BatchForm) -> Vec<u32>,
    /// How many items there are.
    pub items: usize,
    /// Bytes of an item.
    pub item_bytes: usize,
    /// The items.
    pub fetch: Fetch<'a>,
    /// Bytes of items that may lie on the device at once; `usize::MAX` for as many as fit.
    pub most_bytes: usize,
}

/// What a step does with a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepRule {
    /// Of the softmax over the keys.
    pub temperature: f32,
    /// How far a key moves to its item's output.
    pub blend: f32,
    /// How the weights move.
    pub sgd: Sgd,
}

/// Steps that a device takes by itself. One batch after the other: made, through the network, its loss over the keys,
/// gradients, weights moved, and the rows of `keys` that belong to its items blended with the network's outputs.
pub trait Steps: Send {
    /// The device's networks.
    type Network;
    /// The device's memory.
    type Buffer;

    /// What each item is drawn towards, from now on.
    fn set_positives(&mut self, positives: &Positives) -> Result<()>;

    /// The items' order in an epoch, and the step to go on with.
    fn begin_epoch(&mut self, epoch: u64, order: &[u32], first: usize) -> Result<()>;

    /// Asks for `count` steps, the first of them the `number`-th of all, and does not wait for them. Items that are not
    /// on the device are fetched as they are needed.
    fn run(
        &mut self,
        count: usize,
        number: u64,
        rule: &StepRule,
        fetch: Fetch,
        network: &mut Self::Network,
        keys: &mut Self::Buffer,
    ) -> Result<()>;

    /// Where a step's time goes, found by running its parts alone. Weights, keys and counters are not what they were
    /// afterwards.
    fn profile(
        &mut self,
        rule: &StepRule,
        network: &mut Self::Network,
        keys: &mut Self::Buffer,
    ) -> Result<Profile>;

    /// Waits for all steps asked for and gives the mean loss of each since the last time.
    fn losses(&mut self) -> Result<Vec<f32>>;
}

/// The steps of a device that takes none by itself.
pub enum NoSteps<N> {
    /// Cannot be.
    #[doc(hidden)]
    Never(std::convert::Infallible, std::marker::PhantomData<fn(N)>),
}

impl<N: crate::Network> Steps for NoSteps<N> {
    type Network = N;
    type Buffer = N::Buffer;

    fn set_positives(&mut self, _: &Positives) -> Result<()> {
        match *self {
            NoSteps::Never(never, _) => match never {},
        }
    }

    fn begin_epoch(&mut self, _: u64, _: &[u32], _: usize) -> Result<()> {
        match *self {
            NoSteps::Never(never, _) => match never {},
        }
    }

    fn run(
        &mut self,
        _: usize,
        _: u64,
        _: &StepRule,
        _: Fetch,
        _: &mut N,
        _: &mut N::Buffer,
    ) -> Result<()> {
        match *self {
            NoSteps::Never(never, _) => match never {},
        }
    }

    fn profile(&mut self, _: &StepRule, _: &mut N, _: &mut N::Buffer) -> Result<Profile> {
        match *self {
            NoSteps::Never(never, _) => match never {},
        }
    }

    fn losses(&mut self) -> Result<Vec<f32>> {
        match *self {
            NoSteps::Never(never, _) => match never {},
        }
    }
}

/// An order names items that there are.
pub(crate) fn check_order(order: &[u32], items: usize) -> Result<()> {
    match order.iter().find(|i| **i as usize >= items) {
        Some(i) => Err(Error::Plan(format!("item {i} of {items} items"))),
        None => Ok(()),
    }
}
