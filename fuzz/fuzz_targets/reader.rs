#![no_main]

use std::sync::LazyLock;

/// The reader under attack, by the name that `ANCHORHOOD_FUZZ_TARGET` has.
static TARGET: LazyLock<String> = LazyLock::new(|| {
    std::env::var("ANCHORHOOD_FUZZ_TARGET").expect("ANCHORHOOD_FUZZ_TARGET names a reader")
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| anchorhood_fuzzing::run(&TARGET, bytes));
