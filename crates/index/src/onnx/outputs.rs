//! Which of a network's results is the vector of a picture, and how is it made of it?

use crate::onnx::session::Values;
use crate::onnx::{Header, Layout};

/// Outputs that are known by their names, the best first: CLIP's image tower projected, and what
/// Hugging Face's encoders make of their tokens.
const KNOWN: [&str; 2] = ["image_embeds", "pooler_output"];
/// Values of a vector, at most.
const LONGEST: usize = 1 << 16;

/// How a vector is made of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is the vector.
    Vector,
    /// Its first token, the class token of a transformer.
    ClassToken,
    /// The mean over all places of a map.
    MeanOverPlaces,
}

/// What a network gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorOutput {
    /// The output's name.
    pub name: String,
    /// How the vector is made of it.
    pub kind: Kind,
    /// Length of the vector.
    pub dim: usize,
}

impl VectorOutput {
    /// The output that is taken: the known one, or the only one.
    pub fn choose(header: &Header) -> Result<String, String> {
        let names: Vec<&str> = header.outputs.iter().map(|o| o.name.as_str()).collect();
        let known = KNOWN.iter().find(|known| names.contains(known));
        match (known, &names[..]) {
            (Some(name), _) => Ok(name.to_string()),
            (None, [only]) => Ok(only.to_string()),
            (None, _) => Err(format!(
                "it has {} outputs ({}), none of which is called {}; export it with the one that \
                 is meant",
                names.len(),
                names.join(", "),
                KNOWN.join(" or ")
            )),
        }
    }

    /// What an output is, by what it gave for `count` pictures.
    pub(crate) fn of(
        name: &str,
        count: usize,
        given: &Values,
        layout: Layout,
    ) -> Result<Self, String> {
        let (kind, dim) = match given.shape[..] {
            [n, dim] if n == count => (Kind::Vector, dim),
            [n, tokens, dim] if n == count && tokens > 0 => (Kind::ClassToken, dim),
            [n, c, h, w] if n == count && c * h * w > 0 => (
                Kind::MeanOverPlaces,
                match layout {
                    Layout::Nchw => c,
                    Layout::Nhwc => w,
                },
            ),
            _ => {
                return Err(format!(
                    "its output `{name}` is {:?} of {count} pictures, not a vector, tokens or a \
                     map of each",
                    given.shape
                ));
            }
        };
        match (2..=LONGEST).contains(&dim) {
            true => Ok(VectorOutput { name: name.into(), kind, dim }),
            false => Err(format!("its output `{name}` has {dim} values of a picture")),
        }
    }

    /// Appends a picture's vector, made of all that its output is.
    pub(crate) fn vector(&self, picture: &[f32], layout: Layout, to: &mut Vec<f32>) {
        match (self.kind, layout) {
            (Kind::Vector, _) => to.extend_from_slice(picture),
            (Kind::ClassToken, _) => to.extend_from_slice(&picture[..self.dim]),
            (Kind::MeanOverPlaces, Layout::Nchw) => {
                let maps = picture.chunks_exact(picture.len() / self.dim);
                to.extend(maps.map(|map| map.iter().sum::<f32>() / map.len() as f32));
            }
            (Kind::MeanOverPlaces, Layout::Nhwc) => {
                let places = (picture.len() / self.dim) as f32;
                let sum = |c: usize| picture.iter().skip(c).step_by(self.dim).sum::<f32>();
                to.extend((0..self.dim).map(|c| sum(c) / places));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::Value;

    fn header(names: &[&str]) -> Header {
        let value = |name: &&str| Value { name: name.to_string(), element: 1, shape: None };
        Header { outputs: names.iter().map(value).collect(), ..Header::default() }
    }

    #[test]
    fn the_known_output_or_the_only_one() {
        assert_eq!(VectorOutput::choose(&header(&["anything"])).unwrap(), "anything");
        let names = ["last_hidden_state", "pooler_output"];
        assert_eq!(VectorOutput::choose(&header(&names)).unwrap(), "pooler_output");
        let names = ["pooler_output", "image_embeds"];
        assert_eq!(VectorOutput::choose(&header(&names)).unwrap(), "image_embeds");
        assert!(VectorOutput::choose(&header(&["a", "b"])).unwrap_err().contains("(a, b)"));
    }

    fn made(shape: &[usize], layout: Layout) -> Result<Vec<f32>, String> {
        let values = (0..shape.iter().product()).map(|i| i as f32).collect();
        let given = Values { shape: shape.into(), values };
        let output = VectorOutput::of("y", 1, &given, layout)?;
        let mut vector = vec![];
        output.vector(&given.values, layout, &mut vector);
        assert_eq!(vector.len(), output.dim);
        Ok(vector)
    }

    #[test]
    fn vectors_tokens_and_maps() {
        assert_eq!(made(&[1, 3], Layout::Nchw).unwrap(), [0.0, 1.0, 2.0]);
        assert_eq!(made(&[1, 4, 2], Layout::Nchw).unwrap(), [0.0, 1.0]);
        assert_eq!(made(&[1, 2, 2, 2], Layout::Nchw).unwrap(), [1.5, 5.5]);
        assert_eq!(made(&[1, 2, 2, 2], Layout::Nhwc).unwrap(), [3.0, 4.0]);
        for shape in [&[1][..], &[2, 3], &[1, 0], &[1, 1], &[1, 0, 5], &[1, 2, 3, 4, 5]] {
            assert!(made(shape, Layout::Nchw).is_err(), "{shape:?}");
        }
    }
}
