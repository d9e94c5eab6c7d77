//! See `a99_embed::fuzz::wheel`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| a99_embed::fuzz::wheel(data));
