//! Linking alone: a verified program meets the atoms of a host.

use a99_benches::{compiled, engine, programs};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn link(c: &mut Criterion) {
    let engine = engine();
    let mut group = c.benchmark_group("link/steps");
    for steps in [10, 100, 1_000] {
        let agent = compiled(&engine, &programs::many_steps(steps));
        group.throughput(Throughput::Elements(steps as u64));
        group.bench_with_input(BenchmarkId::from_parameter(steps), &agent, |b, agent| {
            b.iter(|| engine.link(agent.artifact()).expect("all atoms are there"));
        });
    }
    group.finish();
}

criterion_group!(benches, link);
criterion_main!(benches);
