//! Artifacts: from bytes to a result, and each part alone, beside compiling the
//! same agent of ten steps from JSON.

use a99_benches::{compiled, engine, programs, run};
use a99_core::artifact::decode;
use agent99::artifact::{DecodeOptions, EncodeOptions};
use agent99::{Agent, Artifact};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn bytes(agent: &Agent, strip: bool) -> Vec<u8> {
    agent.to_bytes(&EncodeOptions { strip }).expect("small")
}

fn artifact(c: &mut Criterion) {
    let engine = engine();
    let agent = compiled(&engine, programs::TEN_STEPS);
    let args = programs::ten_steps_args();
    let limits = DecodeOptions::default();
    let mut group = c.benchmark_group("artifact/ten steps");
    for (kind, strip) in [("whole", false), ("stripped", true)] {
        let file = bytes(&agent, strip);
        group.throughput(Throughput::Bytes(file.len() as u64));
        group.bench_function(format!("{kind}/decode"), |b| {
            b.iter(|| decode(&file, &limits).expect("whole"));
        });
        group.bench_function(format!("{kind}/decode, verify"), |b| {
            b.iter(|| Artifact::from_bytes(&file, &limits).expect("whole"));
        });
        group.bench_function(format!("{kind}/decode, verify, link"), |b| {
            b.iter(|| engine.load(&file).expect("whole"));
        });
        group.bench_function(format!("{kind}/decode, verify, link, run"), |b| {
            b.iter(|| run(&engine, &engine.load(&file).expect("whole"), &args));
        });
        group.bench_function(format!("{kind}/encode"), |b| {
            b.iter(|| bytes(&agent, strip));
        });
    }
    group.bench_function("compile, run", |b| {
        b.iter(|| run(&engine, &compiled(&engine, programs::TEN_STEPS), &args));
    });
    group.bench_function("run", |b| b.iter(|| run(&engine, &agent, &args)));
    group.finish();
}

criterion_group!(benches, artifact);
criterion_main!(benches);
