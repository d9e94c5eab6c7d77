//! See `a99_embed::fuzz::safetensors`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| a99_embed::fuzz::safetensors(data));
