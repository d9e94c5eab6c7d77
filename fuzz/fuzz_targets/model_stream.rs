//! See `a99_models::fuzz::model_stream`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| a99_models::fuzz::model_stream(data));
