#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| anchorhood_fuzzing::run("decisions", bytes));
