//! Whose something is: the CPU's or a GPU's.

/// A part of a device (itself, a network, a stream, batches), as the CPU and a GPU have it.
#[derive(Clone)]
pub(crate) enum Parts<C, G> {
    Cpu(C),
    Cuda(G),
}

/// What a part says, whosever it is.
macro_rules! either {
    ($part:expr, $it:ident => $does:expr) => {
        match $part {
            crate::backend::Parts::Cpu($it) => $does,
            crate::backend::Parts::Cuda($it) => $does,
        }
    };
}

/// What two parts of one device do.
macro_rules! both {
    ($part:expr, $other:expr, $it:ident, $its:ident => $does:expr) => {
        match ($part, $other) {
            (crate::backend::Parts::Cpu($it), crate::backend::Parts::Cpu($its)) => $does,
            (crate::backend::Parts::Cuda($it), crate::backend::Parts::Cuda($its)) => $does,
            _ => Err(crate::buffer::of_another_device()),
        }
    };
}

pub(crate) use {both, either};
