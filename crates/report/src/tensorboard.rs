//! A run as TensorBoard reads it: one file of records, each a protobuf message with a figure.
//!
//! A record is its length (8 bytes), a checksum of these, the message, and a checksum of it; checksums are CRC-32C, turned
//! and shifted as TensorFlow does. Steps are epochs, counted over all rounds.

use std::path::Path;

use anchorhood_train::{Event, Subject};
use prost::Message;

use crate::ReportError;

#[derive(Clone, PartialEq, Message)]
struct TensorEvent {
    #[prost(double, tag = "1")]
    wall_time: f64,
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(string, optional, tag = "3")]
    file_version: Option<String>,
    #[prost(message, optional, tag = "5")]
    summary: Option<Values>,
}

#[derive(Clone, PartialEq, Message)]
struct Values {
    #[prost(message, repeated, tag = "1")]
    value: Vec<Value>,
}

#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(string, tag = "1")]
    tag: String,
    // Said even where it is 0: a figure of 0 is a figure.
    #[prost(float, optional, tag = "2")]
    simple_value: Option<f32>,
}

/// Writes the figures of a run; `begun` is when it began, in seconds since 1970.
pub fn write_tensorboard(events: &[Event], begun: f64, path: &Path) -> Result<(), ReportError> {
    let bytes = records(events, begun);
    anchorhood_train::write_whole(path, &bytes).map_err(ReportError::io(path))
}

fn records(events: &[Event], begun: f64) -> Vec<u8> {
    let mut bytes = vec![];
    let first = TensorEvent {
        wall_time: begun,
        file_version: Some("brain.Event:2".into()),
        ..TensorEvent::default()
    };
    append(&mut bytes, &first);
    let epochs = events.iter().find_map(|e| match e {
        Event::EpochEnded(e) => Some(e.epochs),
        _ => None,
    });
    let step =
        |round: usize, epochs_done: usize| (round * epochs.unwrap_or(1) + epochs_done) as i64;
    let mut now = begun;
    for event in events {
        let (at, seconds, figures) = match event {
            Event::EpochEnded(e) => {
                let mut figures = vec![("loss", e.loss), ("learning_rate", e.rate)];
                figures.push(("pictures_per_second", e.pictures_per_second));
                (step(e.round, e.epoch + 1), e.seconds, figures)
            }
            Event::Discovered(d) => {
                let mut figures = vec![("anchors", d.anchors as f64), ("entropy", d.mean_entropy)];
                let share = d.consistency.and_then(|c| c.share());
                figures.extend(share.map(|s| ("consistency", s)));
                (step(d.round, 0), d.seconds, figures)
            }
            Event::Evaluated(e) => {
                let (tag, at) = match e.subject {
                    Subject::RawPixels => ("knn/raw_pixels", 0),
                    Subject::Untrained => ("knn/untrained", 0),
                    Subject::Trained { round, epoch } => ("knn/top1", step(round, epoch + 1)),
                };
                (at, e.seconds, vec![(tag, e.accuracy.top1)])
            }
            _ => continue,
        };
        now += seconds;
        let value = |(tag, v): (&str, f64)| Value {
            tag: tag.into(),
            simple_value: Some(v as f32),
        };
        let summary = Values {
            value: figures.into_iter().map(value).collect(),
        };
        let record = TensorEvent {
            wall_time: now,
            step: at,
            file_version: None,
            summary: Some(summary),
        };
        append(&mut bytes, &record);
    }
    bytes
}

fn append(bytes: &mut Vec<u8>, record: &TensorEvent) {
    let message = record.encode_to_vec();
    let length = (message.len() as u64).to_le_bytes();
    bytes.extend_from_slice(&length);
    bytes.extend_from_slice(&masked(&length).to_le_bytes());
    bytes.extend_from_slice(&message);
    bytes.extend_from_slice(&masked(&message).to_le_bytes());
}

fn masked(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Bit by bit: a run has thousands of records, not millions.
fn crc32c(bytes: &[u8]) -> u32 {
    let bit = |sum: u32, _| (sum >> 1) ^ (0x82f6_3b78 & (sum & 1).wrapping_neg());
    !bytes
        .iter()
        .fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), bit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::example;

    #[test]
    fn the_checksum_is_castagnolis() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn every_figure_is_read_back() {
        let bytes = records(&example(true), 1000.0);
        let (mut rest, mut tags) = (&bytes[..], vec![]);
        while !rest.is_empty() {
            let length = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
            assert_eq!(rest[8..12], masked(&rest[..8]).to_le_bytes());
            let message = &rest[12..12 + length];
            assert_eq!(
                rest[12 + length..16 + length],
                masked(message).to_le_bytes()
            );
            let record = TensorEvent::decode(message).unwrap();
            let values = record.summary.unwrap_or_default().value;
            tags.extend(values.into_iter().map(|v| (v.tag, record.step)));
            rest = &rest[16 + length..];
        }
        let steps = |tag: &str| {
            let of = tags.iter().filter(|t| t.0 == tag);
            of.map(|t| t.1).collect::<Vec<_>>()
        };
        assert_eq!(steps("loss"), [1, 2, 3, 4]);
        assert_eq!(steps("knn/top1"), [1, 2, 3, 4]);
        assert_eq!(steps("anchors"), [2]);
    }
}
