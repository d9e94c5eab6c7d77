//! See `a99_sandbox_net::fuzz::net_frames`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| a99_sandbox_net::fuzz::net_frames(data));
