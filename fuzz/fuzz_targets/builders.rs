//! See `a99_testkit::fuzz::builders`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| a99_testkit::fuzz::builders(data));
