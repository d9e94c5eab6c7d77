//! See `a99_testkit::fuzz::artifact::mutated`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| a99_testkit::fuzz::artifact::mutated(data));
