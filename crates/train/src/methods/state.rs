//! What a method keeps beside its networks: named tensors.

use std::ops::Range;

use anchorhood_engine::{Error, Result};

/// A tensor's values.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Real numbers.
    F32(Vec<f32>),
    /// Whole numbers.
    U32(Vec<u32>),
    /// Flags.
    U8(Vec<u8>),
}

/// One named tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct StateTensor {
    /// Its name.
    pub name: String,
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// Its values.
    pub values: Values,
}

/// What the names of tensors begin with that have a row for each picture.
pub const BY_PICTURE: &str = "memory.";

impl StateTensor {
    /// Whether it has a row for each picture; of several processes, each then has those of its own
    /// pictures.
    pub fn is_by_picture(&self) -> bool {
        self.name.starts_with(BY_PICTURE)
    }

    /// Forgets all rows but some of them.
    fn keep_rows(&mut self, rows: &Range<usize>) {
        let Some((count, each)) = self.shape.split_first_mut() else {
            return;
        };
        let each: usize = each.iter().product();
        let (start, end) = (rows.start.min(*count), rows.end.min(*count));
        if end - start == *count {
            return;
        }
        *count = end - start;
        match &mut self.values {
            Values::F32(values) => keep(values, start * each..end * each),
            Values::U32(values) => keep(values, start * each..end * each),
            Values::U8(values) => keep(values, start * each..end * each),
        }
    }
}

fn keep<T: Copy>(values: &mut Vec<T>, range: Range<usize>) {
    *values = values[range].to_vec();
}

/// Named tensors, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StateDict {
    /// The tensors.
    pub tensors: Vec<StateTensor>,
}

impl StateDict {
    /// Forgets what it has of all pictures but some, by their places.
    pub fn keep_pictures(&mut self, places: &Range<usize>) {
        let mut by_picture = self.tensors.iter_mut().filter(|t| t.is_by_picture());
        by_picture.by_ref().for_each(|t| t.keep_rows(places));
    }

    /// Adds a tensor.
    pub fn push(&mut self, name: &str, shape: Vec<usize>, values: Values) {
        let name = name.into();
        self.tensors.push(StateTensor { name, shape, values });
    }

    /// A tensor by its name.
    pub fn get(&self, name: &str) -> Option<&StateTensor> {
        self.tensors.iter().find(|t| t.name == name)
    }

    /// A tensor of real numbers: its shape and values.
    pub fn floats(&self, name: &str) -> Option<(&[usize], &[f32])> {
        match self.get(name)? {
            StateTensor { shape, values: Values::F32(values), .. } => Some((shape, values)),
            _ => None,
        }
    }

    /// The values of a tensor of real numbers that must be there, of this shape.
    pub fn floats_of(&self, name: &str, wanted: &[usize]) -> Result<&[f32]> {
        of_shape(name, self.floats(name), wanted)
    }

    /// A tensor of whole numbers.
    pub fn words(&self, name: &str) -> Option<(&[usize], &[u32])> {
        match self.get(name)? {
            StateTensor { shape, values: Values::U32(values), .. } => Some((shape, values)),
            _ => None,
        }
    }

    /// The values of a tensor of whole numbers that must be there, of this shape and each below a
    /// limit.
    pub fn words_of(&self, name: &str, wanted: &[usize], below: usize) -> Result<&[u32]> {
        let values = of_shape(name, self.words(name), wanted)?;
        match values.iter().find(|value| **value as usize >= below) {
            Some(value) => {
                Err(Error::Plan(format!("its {name} names number {value}, and there are {below}")))
            }
            None => Ok(values),
        }
    }

    /// A tensor of flags.
    pub fn flags(&self, name: &str) -> Option<(&[usize], &[u8])> {
        match self.get(name)? {
            StateTensor { shape, values: Values::U8(values), .. } => Some((shape, values)),
            _ => None,
        }
    }
}

fn of_shape<'a, T>(
    name: &str,
    tensor: Option<(&[usize], &'a [T])>,
    wanted: &[usize],
) -> Result<&'a [T]> {
    match tensor {
        None => Err(Error::Plan(format!("it has no {name}"))),
        Some((found, values)) if found == wanted => Ok(values),
        Some((found, _)) => Err(Error::Plan(format!("its {name} is {found:?}, not {wanted:?}"))),
    }
}
