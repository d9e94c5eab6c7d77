//! See `a99_sandbox_oci::fuzz`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| a99_sandbox_oci::fuzz::archive(data));
