//! Messages of Protocol Buffers, with a field of every kind.

use anchorhood_storage::protobuf::Message;

anchorhood_storage::protobuf! {
    struct Part {
        a: i32 = 1,
        b: f32 = 2,
    }
    struct Whole {
        number: i32 = 1,
        text: String = 2,
        part: Option<Part> = 3,
        long: i64 = 4,
        ratio: f32 = 5,
        time: f64 = 6,
        raw: Vec<u8> = 7,
        set: Option<f32> = 8,
        parts: Vec<Part> = 9,
        numbers: Vec<i64> = 16,
        names: Vec<String> = 17,
    }
}

/// What was read is written, and read again it is written the same.
pub fn read(bytes: &[u8]) -> Option<()> {
    let whole = Whole::decode(bytes)?;
    let written = whole.encode();
    let again = Whole::decode(&written).expect("what was written is read");
    assert_eq!(again.encode(), written);
    Some(())
}

pub fn seeds() -> Vec<Vec<u8>> {
    let part = Part { a: 150, b: 0.5 };
    let whole = Whole {
        number: -2,
        text: "testing".into(),
        part: Some(part.clone()),
        long: 1 << 40,
        ratio: 1.5,
        time: -0.5,
        raw: vec![0; 20],
        set: Some(0.0),
        parts: vec![Part::default(), part],
        numbers: vec![3, 0, -1],
        names: vec!["".into(), "ü".into()],
    };
    vec![whole.encode()]
}
