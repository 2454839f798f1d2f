//! Messages of Protocol Buffers, with a field of every kind.

use anchorhood_storage::protobuf::Message;
use anchorhood_storage::protobuf::example::{Whole, whole};

/// What was read is written, and read again it is written the same.
pub fn read(bytes: &[u8]) -> Option<()> {
    let whole = Whole::decode(bytes)?;
    let written = whole.encode();
    let again = Whole::decode(&written).expect("what was written is read");
    assert_eq!(again.encode(), written);
    Some(())
}

pub fn seeds() -> Vec<Vec<u8>> {
    vec![whole().encode()]
}
