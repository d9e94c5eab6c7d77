//! See `a99_testkit::fuzz::riscv_decode`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| a99_testkit::fuzz::riscv_decode(data));
