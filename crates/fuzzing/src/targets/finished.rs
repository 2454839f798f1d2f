//! What `reproduce` keeps of finished runs and judged features.

use anchorhood_reproduce::{
    DataRecord, FinishedRun, Judged, RoundRecord, read_record, write_record,
};
use anchorhood_train::{Accuracy, Preset, PretextMeasured, PretextShare};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::scratch::with_file;

pub fn read(bytes: &[u8]) -> Option<()> {
    let run = same_again::<FinishedRun>(bytes);
    run.or(same_again::<Judged>(bytes))
}

/// What was read is the same when it is written and read again.
fn same_again<T>(bytes: &[u8]) -> Option<()>
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let read = with_file("a.json", bytes, |path| {
        read_record::<T>(path).map(|record| record.expect("the file is there"))
    });
    let record = read.ok()?;
    let again = with_file("a.json", &json(&record), read_record::<T>);
    assert_eq!(again.expect("what was written is read"), Some(record));
    Some(())
}

fn json(record: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec_pretty(record).expect("records are plain values")
}

pub fn seeds() -> Vec<Vec<u8>> {
    let run = FinishedRun {
        name: "a".into(),
        version: "0.1.0".into(),
        device: "2 threads".into(),
        seconds: 1.5,
        seed: 7,
        data: DataRecord {
            name: "shapes".into(),
            train: 5000,
            test: 1000,
            size: 32,
            classes: 10,
            fingerprint: "0123".into(),
        },
        knn: Some(Accuracy { top1: 0.5, top5: None, n: 1000, k: 20, temperature: 0.07 }),
        rounds: vec![RoundRecord {
            round: 1,
            top1: Some(0.25),
            anchors: Some(10),
            consistent: None,
            inconsistent: Some(3),
        }],
        pretext: vec![PretextMeasured {
            round: 0,
            epoch: 3,
            figures: vec![PretextShare { name: "accuracy".into(), share: 0.5, chance: Some(0.1) }],
        }],
        config: Preset::Quick.config("shapes"),
    };
    let judged = Judged {
        protocol: "knn".into(),
        top1: 0.5,
        top5: Some(0.75),
        n: 1000,
        linear_epochs: Some(100),
        seconds: 2.5,
    };
    let kept = with_file("seed.json", b"", |path| {
        write_record(path, &run).expect("it is written");
        std::fs::read(path).expect("it is there")
    });
    vec![kept, json(&judged)]
}
