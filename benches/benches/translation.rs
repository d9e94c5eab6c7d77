//! Translation of guest code while the guest runs, against AOT regions alone (those
//! compiled with the image) and against interpretation: how long commands take,
//! each in a guest that was just started.
//!
//! `cargo bench --profile sandbox -p a99-benches --features sandbox --bench
//! translation`, with an image built. The results stand in docs/sandbox.md.

use a99_sandbox::cache::{Cache, Event};
use a99_sandbox::{GuestJit, Image, Sandbox, block_on};
use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};
use std::time::{Duration, Instant};

const MODES: [(&str, GuestJit); 4] = [
    ("off", GuestJit::Off),
    ("aot", GuestJit::Aot),
    ("auto", GuestJit::Auto),
    ("eager", GuestJit::Eager),
];

/// What a guest runs: short, typical, and long enough for translation to pay.
const COMMANDS: [(&str, &str); 5] = [
    ("echo", "echo hello"),
    ("python start", "python3 -c 'print(1)'"),
    (
        "python loop",
        "python3 -c 'n = 0\nfor i in range(300_000): n += i * i % 7\nprint(n)'",
    ),
    (
        "awk loop",
        "awk 'BEGIN { for (i = 0; i < 300000; i++) n += i % 7; print n }'",
    ),
    ("gzip", "head -c 1000000 /dev/urandom | gzip -9 | wc -c"),
];

/// The time of a command alone, its guest being ready.
fn run(image: &Image, guest_jit: GuestJit, script: &str) -> Duration {
    let builder = Sandbox::builder().loaded_image(image).guest_jit(guest_jit);
    let sandbox = builder.start_blocking().expect("a sandbox");
    let start = Instant::now();
    let output = block_on(sandbox.exec(script)).expect("a command");
    let took = start.elapsed();
    assert_eq!(output.exit_code(), 0, "{}", output.stderr_text());
    took
}

fn translation(c: &mut Criterion) {
    let cache = Cache::of_user().expect("a cache");
    let image = Image::current(&cache, &mut |_: Event<'_>| {});
    let image = image.expect("an image: `a99 sandbox build` makes it");
    for (name, script) in COMMANDS {
        let mut group = c.benchmark_group(name);
        group.sampling_mode(SamplingMode::Flat).sample_size(10);
        group.warm_up_time(Duration::from_millis(1));
        for (mode, guest_jit) in MODES {
            group.bench_function(mode, |b| {
                b.iter_custom(|times| (0..times).map(|_| run(&image, guest_jit, script)).sum());
            });
        }
        group.finish();
    }
}

criterion_group!(benches, translation);
criterion_main!(benches);
