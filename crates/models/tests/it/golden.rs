//! Numbers that PyTorch computed, in files that scripts of tools/golden wrote.

use safetensors::SafeTensors;

/// The bytes of such a file.
pub struct Golden<'a>(pub &'a [u8]);

impl Golden<'_> {
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        let file = SafeTensors::deserialize(self.0).unwrap();
        let tensor = file.tensor(name).unwrap_or_else(|_| panic!("no {name}"));
        tensor.data().to_vec()
    }

    pub fn floats(&self, name: &str) -> Vec<f32> {
        self.integers(name).into_iter().map(f32::from_bits).collect()
    }

    pub fn integers(&self, name: &str) -> Vec<u32> {
        let value = |b: &[u8]| u32::from_le_bytes(b.try_into().unwrap());
        self.bytes(name).chunks_exact(4).map(value).collect()
    }
}
