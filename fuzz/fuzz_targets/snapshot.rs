//! See `a99_testkit::fuzz::snapshot::any_bytes`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| a99_testkit::fuzz::snapshot::any_bytes(data));
