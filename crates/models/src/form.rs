//! One network, two first layers: pictures of 32×32 would not survive a stem made for 224×224.

/// What a network's first layers are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Small pictures (32×32): a stem of stride 1, so that something is left for the later stages to look at.
    Small,
    /// Large pictures (224×224): the published stem, which shrinks the picture by four at once.
    Large,
}

impl Form {
    /// The least side of a large picture. A stage shrinks no more than it must: at this size conv5 of a large ResNet has
    /// 4×4 places, as that of a small one has at 32.
    pub const LARGE_FROM: usize = 128;

    /// The size of pictures that weights of this form were most likely learnt on.
    pub fn usual_size(self) -> usize {
        match self {
            Form::Small => 32,
            Form::Large => 224,
        }
    }

    /// The form for pictures of `size` pixels a side.
    pub fn for_size(size: usize) -> Form {
        match size >= Form::LARGE_FROM {
            true => Form::Large,
            false => Form::Small,
        }
    }
}
