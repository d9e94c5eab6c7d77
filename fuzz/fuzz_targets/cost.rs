//! See `a99_testkit::cost::judge`.

#![no_main]

use a99_testkit::cost::{Counting, judge};

#[global_allocator]
static COUNTING: Counting = Counting::new();

libfuzzer_sys::fuzz_target!(|data: &[u8]| judge(data, &COUNTING));
