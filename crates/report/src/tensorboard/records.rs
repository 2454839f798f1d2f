//! The form of TensorBoard's files: records, each a protobuf message.
//!
//! A record is its length (8 bytes), a checksum of these, the message, and a checksum of it;
//! checksums are CRC-32C, turned and shifted as TensorFlow does.

use anchorhood_storage::protobuf;
use anchorhood_storage::protobuf::Message;

/// A session began, as TensorFlow numbers it.
const START: i32 = 1;

protobuf! {
    /// One message.
    pub struct Record {
        pub wall_time: f64 = 1,
        pub step: i64 = 2,
        pub file_version: Option<String> = 3,
        pub summary: Option<Values> = 5,
        pub session: Option<Session> = 7,
    }

    /// Figures of one step.
    pub struct Values {
        pub value: Vec<Value> = 1,
    }

    /// A figure.
    pub struct Value {
        pub tag: String = 1,
        // Said even where it is 0: a figure of 0 is a figure.
        pub simple_value: Option<f32> = 2,
    }

    /// Something about the program that writes.
    pub struct Session {
        status: i32 = 1,
    }
}

impl Record {
    /// The first of a file.
    pub fn version(wall_time: f64) -> Self {
        Record { wall_time, file_version: Some("brain.Event:2".into()), ..Record::default() }
    }

    /// Says that a run begins again: what was told of this step and of later ones no longer holds.
    pub fn restart(wall_time: f64, step: i64) -> Self {
        Record { wall_time, step, session: Some(Session { status: START }), ..Record::default() }
    }

    /// Figures of a step.
    pub fn figures(wall_time: f64, step: i64, figures: &[(String, f32)]) -> Self {
        let value = |(tag, v): &(String, f32)| Value { tag: tag.clone(), simple_value: Some(*v) };
        Record {
            wall_time,
            step,
            summary: Some(Values { value: figures.iter().map(value).collect() }),
            ..Record::default()
        }
    }

    /// As it lies in a file.
    pub fn bytes(&self) -> Vec<u8> {
        let message = self.encode();
        let length = (message.len() as u64).to_le_bytes();
        let mut bytes = Vec::with_capacity(message.len() + 16);
        bytes.extend_from_slice(&length);
        bytes.extend_from_slice(&masked(&length).to_le_bytes());
        bytes.extend_from_slice(&message);
        bytes.extend_from_slice(&masked(&message).to_le_bytes());
        bytes
    }
}

fn masked(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Bit by bit: a run has thousands of records, not millions.
fn crc32c(bytes: &[u8]) -> u32 {
    let bit = |sum: u32, _| (sum >> 1) ^ (0x82f6_3b78 & (sum & 1).wrapping_neg());
    !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), bit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_castagnolis() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }
}
