//! See `a99_testkit::fuzz::artifact::any_bytes`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| a99_testkit::fuzz::artifact::any_bytes(data));
