//! How does a network want its pictures?

use crate::onnx::Header;

/// Pixels a side, at most.
const LARGEST: usize = 4096;
/// Pictures that a file may insist on getting at a time.
const MOST_AT_A_TIME: usize = 1024;

/// In which order a picture's values lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All of red, then all of green, then all of blue.
    Nchw,
    /// Red, green and blue of each place side by side.
    Nhwc,
}

/// What a network takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureInput {
    /// The input's name.
    pub name: String,
    /// How values lie.
    pub layout: Layout,
    /// Pixels a side, where the file says it.
    pub size: Option<usize>,
    /// Pictures at a time, where any other number is refused.
    pub batch: Option<usize>,
}

impl PictureInput {
    /// The one input of a file, if it is a picture; the reason says what it is instead.
    pub fn of(header: &Header) -> Result<PictureInput, String> {
        let [input] = &header.inputs[..] else {
            let names: Vec<_> = header.inputs.iter().map(|i| i.name.as_str()).collect();
            return Err(format!(
                "it takes {} inputs ({}), not one picture; of a model of pictures and texts, give \
                 the part for pictures alone",
                names.len(),
                names.join(", ")
            ));
        };
        let name = &input.name;
        if input.element != 1 {
            return Err(format!("its input `{name}` is not of 32-bit floats"));
        }
        let Some([batch, a, b, c]) = input.shape.as_deref() else {
            return Err(format!(
                "its input `{name}` has not four dimensions (pictures, colours, rows, columns)"
            ));
        };
        let (layout, sides) = match (a, c) {
            (Some(3), _) => (Layout::Nchw, [*b, *c]),
            (_, Some(3)) => (Layout::Nhwc, [*a, *b]),
            (None, _) => (Layout::Nchw, [*b, *c]),
            (Some(n), _) => {
                return Err(format!("its input `{name}` has {n} colours, not three"));
            }
        };
        Ok(PictureInput {
            name: name.clone(),
            layout,
            size: side(name, sides)?,
            batch: match batch {
                Some(n) if *n > MOST_AT_A_TIME => {
                    return Err(format!("it takes {n} pictures at a time"));
                }
                other => *other,
            },
        })
    }

    /// The dimensions of `count` pictures of a size.
    pub fn shape(&self, count: usize, size: usize) -> [usize; 4] {
        match self.layout {
            Layout::Nchw => [count, 3, size, size],
            Layout::Nhwc => [count, size, size, 3],
        }
    }

    /// Writes a picture's bytes as the network wants them, each replaced by what its channel's
    /// table has for it.
    pub fn write(&self, bytes: &[u8], tables: &[[f32; 256]; 3], to: &mut [f32]) {
        let places = bytes.len() / 3;
        let value = |byte: u8, c: usize| tables[c][usize::from(byte)];
        match self.layout {
            Layout::Nhwc => {
                for (to, from) in to.chunks_exact_mut(3).zip(bytes.chunks_exact(3)) {
                    (0..3).for_each(|c| to[c] = value(from[c], c));
                }
            }
            Layout::Nchw => {
                for (c, plane) in to.chunks_exact_mut(places.max(1)).enumerate() {
                    for (to, from) in plane.iter_mut().zip(bytes.chunks_exact(3)) {
                        *to = value(from[c], c);
                    }
                }
            }
        }
    }
}

/// Pixels a side, where either side is told.
fn side(name: &str, sides: [Option<usize>; 2]) -> Result<Option<usize>, String> {
    if let [Some(h), Some(w)] = sides
        && h != w
    {
        return Err(format!("its input `{name}` is {h}×{w} pixels, and only squares are cut"));
    }
    let Some(size) = sides[0].or(sides[1]) else {
        return Ok(None);
    };
    match size <= LARGEST {
        true => Ok(Some(size)),
        false => Err(format!("its input `{name}` is {size} pixels a side; {LARGEST} are the most")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::Value;

    fn header(inputs: &[(&str, i32, &[Option<usize>])]) -> Header {
        let value = |(name, element, shape): &(&str, i32, &[Option<usize>])| Value {
            name: name.to_string(),
            element: *element,
            shape: Some(shape.to_vec()),
        };
        Header { inputs: inputs.iter().map(value).collect(), ..Header::default() }
    }

    fn of(shape: &[Option<usize>]) -> Result<PictureInput, String> {
        PictureInput::of(&header(&[("x", 1, shape)]))
    }

    #[test]
    fn layouts_sizes_and_batches_are_told_by_dimensions() {
        let told = |shape: &[Option<usize>]| {
            let input = of(shape).unwrap();
            (input.layout, input.size, input.batch)
        };
        assert_eq!(told(&[None, Some(3), Some(96), Some(96)]), (Layout::Nchw, Some(96), None));
        assert_eq!(
            told(&[Some(1), Some(96), Some(96), Some(3)]),
            (Layout::Nhwc, Some(96), Some(1))
        );
        assert_eq!(told(&[None, None, None, None]), (Layout::Nchw, None, None));
        assert_eq!(told(&[None, Some(3), None, Some(9)]), (Layout::Nchw, Some(9), None));
    }

    #[test]
    fn what_is_no_picture_is_named() {
        let refused = |said: Result<PictureInput, String>, why: &str| {
            let said = said.unwrap_err();
            assert!(said.contains(why), "{said:?} lacks {why:?}");
        };
        refused(of(&[None, Some(1), Some(28), Some(28)]), "1 colours");
        refused(of(&[None, Some(512)]), "four dimensions");
        refused(of(&[None, Some(3), Some(224), Some(384)]), "224×384");
        refused(of(&[None, Some(3), Some(1 << 20), None]), "a side");
        refused(of(&[Some(1 << 20), Some(3), None, None]), "at a time");
        let texts = header(&[("input_ids", 7, &[]), ("pixel_values", 1, &[])]);
        refused(PictureInput::of(&texts), "input_ids, pixel_values");
        refused(PictureInput::of(&header(&[("x", 10, &[None; 4])])), "32-bit");
    }

    #[test]
    fn values_lie_as_the_layout_says() {
        let mut input = of(&[None, Some(3), None, None]).unwrap();
        let bytes = [0, 1, 2, 255, 254, 253];
        let tables = [0.0, 1000.0, 2000.0].map(|c| std::array::from_fn(|byte| c + byte as f32));
        let mut to = [0.0; 6];
        input.write(&bytes, &tables, &mut to);
        assert_eq!(to, [0.0, 255.0, 1001.0, 1254.0, 2002.0, 2253.0]);
        assert_eq!(input.shape(2, 5), [2, 3, 5, 5]);
        input.layout = Layout::Nhwc;
        input.write(&bytes, &tables, &mut to);
        assert_eq!(to, [0.0, 1001.0, 2002.0, 255.0, 1254.0, 2253.0]);
        assert_eq!(input.shape(2, 5), [2, 5, 5, 3]);
    }
}
