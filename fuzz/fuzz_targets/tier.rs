//! See `a99_testkit::tier::agree`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    a99_testkit::tier::agree(data);
});
