//! One network, three first layers: pictures of 32×32 would not survive a stem made for 224×224,
//! and the stem made for them takes four times as long at 64×64.

/// What a network's first layers are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Small pictures (32×32): a stem of stride 1, so that something is left for the later stages
    /// to look at.
    Small,
    /// Pictures in between (64×64), in little time: the same stem at stride 2, so that all that
    /// follows costs what it costs at half the size.
    Medium,
    /// Large pictures (224×224): the published stem, which shrinks the picture by four at once.
    Large,
}

impl Form {
    /// The least side of a large picture. A stage shrinks no more than it must: at this size conv5
    /// of a large ResNet has 4×4 places, as that of a small one has at 32.
    pub const LARGE_FROM: usize = 128;

    /// The size of pictures that weights of this form were most likely learnt on.
    pub fn usual_size(self) -> usize {
        match self {
            Form::Small => 32,
            Form::Medium => 64,
            Form::Large => 224,
        }
    }

    /// The least side of a picture for which the medium form is the quick choice.
    pub const MEDIUM_FROM: usize = 48;

    /// The form that takes little time for pictures of `size` pixels a side.
    pub fn fast_for_size(size: usize) -> Form {
        match Form::for_size(size) {
            Form::Small if size >= Form::MEDIUM_FROM => Form::Medium,
            form => form,
        }
    }

    /// The form for pictures of `size` pixels a side.
    pub fn for_size(size: usize) -> Form {
        if size >= Form::LARGE_FROM { Form::Large } else { Form::Small }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RESNET18;

    #[test]
    fn a_fast_form_is_the_published_one_but_in_between() {
        for (size, form) in [
            (32, Form::Small),
            (47, Form::Small),
            (48, Form::Medium),
            (96, Form::Medium),
            (128, Form::Large),
        ] {
            assert_eq!(Form::fast_for_size(size), form);
        }
    }

    /// Behind its stem a medium network is a small one for half the size.
    #[test]
    fn medium_costs_what_small_does_at_half_the_size() {
        let values = |form, size| -> Vec<usize> {
            let graph = RESNET18.graph_of(form, size, 4, 8).unwrap();
            let taps = graph.taps().iter();
            taps.map(|(_, node)| graph.shape(*node).len()).collect()
        };
        assert_eq!(values(Form::Medium, 64), values(Form::Small, 32));
    }
}
