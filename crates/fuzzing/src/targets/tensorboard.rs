//! TensorBoard's files, which a run that goes on reads back.

use anchorhood_report::{TensorBoard, read_records};
use anchorhood_train::{EpochEnded, Event};

use crate::scratch::with_file;
use crate::{Target, repair};

pub const TARGET: Target = Target {
    name: "tensorboard",
    read,
    repair: repair::records,
    seeds,
};

/// What is whole is read the same without what follows it.
fn read(bytes: &[u8]) {
    let (figures, whole) = read_records(bytes);
    assert_eq!(read_records(&bytes[..whole]), (figures, whole));
}

fn epoch(epoch: usize) -> Event {
    Event::EpochEnded(EpochEnded {
        round: 0,
        epoch,
        epochs: 9,
        loss: 7.25,
        rate: 0.03,
        pictures_per_second: 900.0,
        seconds: 5.5,
    })
}

/// A run of three epochs, of which the last was told twice.
fn seeds() -> Vec<Vec<u8>> {
    let file = with_file("seed.tfevents", b"", |path| {
        let events = [0, 1, 2].map(epoch);
        for known in [0, 2] {
            let open = TensorBoard::open(path, &events[..known], 1e9);
            let mut board = open.expect("a file to add to");
            let rest = events[known..].iter();
            rest.for_each(|e| board.event(e).expect("it is added"));
        }
        std::fs::read(path).expect("it is there")
    });
    vec![file]
}
