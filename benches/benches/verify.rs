//! The verifier alone: compiled programs of growing size.

use a99_benches::{compiled, engine, programs};
use a99_core::program::Program;
use a99_core::verify::verify;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn verifying(c: &mut Criterion) {
    let engine = engine();
    let mut group = c.benchmark_group("verify/steps");
    for steps in [10, 100, 1_000] {
        let agent = compiled(&engine, &programs::many_steps(steps));
        let program: &Program = agent.artifact().program();
        group.throughput(Throughput::Elements(steps as u64));
        group.bench_with_input(BenchmarkId::from_parameter(steps), program, |b, program| {
            b.iter_batched(|| program.clone(), verify, BatchSize::SmallInput);
        });
    }
    group.finish();
}

criterion_group!(benches, verifying);
criterion_main!(benches);
