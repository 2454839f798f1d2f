//! Which of cuDNN's ways was chosen for each convolution, as it is kept between runs.

use anchorhood_engine::reread_autotune_cache;

use crate::repair;
use crate::scratch::with_file;

/// What was read is written, and read again it is written the same.
pub fn read(bytes: &[u8]) -> Option<()> {
    let written = with_file("choices", bytes, reread_autotune_cache)?;
    let again = with_file("choices", &entry(&written), reread_autotune_cache);
    assert_eq!(again, Some(written));
    Some(())
}

fn entry(text: &str) -> Vec<u8> {
    let unchecked = [&[0; 8], text.as_bytes()].concat();
    repair::cache_entry(&unchecked).expect("it has a checksum")
}

pub fn seeds() -> Vec<Vec<u8>> {
    let task =
        "bf16 batch 128 32×32×8 (3 used) to 32×32×64 kernel [3, 3] stride [1, 1] padding [1, 1]";
    let choices = [
        ("Forward", r#"{"algorithm": [1, 1, 4096]}"#),
        ("Forward added", r#"{"algorithm": [7, 3, 18446744073709551615]}"#),
        ("InputGradient", r#""none""#),
        ("InputGradient added", r#"{"plan": 3}"#),
        ("WeightGradient", r#""ours""#),
    ];
    let line = |(direction, choice): (&str, &str)| format!("\"{direction} {task}\": {choice}");
    let whole = format!("{{{}}}", choices.map(line).join(", "));
    let whole = entry(&whole);
    let read = with_file("choices", &whole, reread_autotune_cache);
    assert_eq!(read.map(|text| text.matches(" batch 128 ").count()), Some(choices.len()));
    vec![whole, entry("{}")]
}
