//! From JSON text to a linked agent: read, compile, verify, link.

use a99_benches::pairs::PAIRS;
use a99_benches::{engine, programs};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn compile(c: &mut Criterion) {
    let engine = engine();
    c.bench_function("compile/ten steps", |b| {
        b.iter(|| engine.compile(programs::TEN_STEPS).expect("a good program"));
    });
    let mut group = c.benchmark_group("compile/steps");
    for steps in [10, 100, 1_000] {
        let text = programs::many_steps(steps);
        group.throughput(Throughput::Elements(steps as u64));
        group.bench_with_input(BenchmarkId::from_parameter(steps), &text, |b, text| {
            b.iter(|| engine.compile(text.as_str()).expect("a good program"));
        });
    }
    group.finish();
    for pair in PAIRS {
        let mut group = c.benchmark_group(format!("compile/{}", pair.name));
        for (side, mut work) in pair.sides.into_iter().zip(pair.work()) {
            group.bench_function(side, |b| b.iter(&mut work));
        }
        group.finish();
    }
}

criterion_group!(benches, compile);
criterion_main!(benches);
