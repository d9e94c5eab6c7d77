//! From JSON text to a linked agent: read, compile, verify, link.

use a99_benches::{engine, programs};
use agent99::Engine;
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
    let mut group = c.benchmark_group("compile/mixed steps");
    let text = programs::mixed_steps(1_000);
    let checking = Engine::builder().lint(true).build();
    for (name, engine) in [("compiled", &engine), ("checked", &checking)] {
        group.bench_with_input(name, &text, |b, text| {
            b.iter(|| engine.compile(text.as_str()).expect("a good program"));
        });
    }
    group.finish();
    // What the source form costs beside the JSON that it stands for.
    let source = programs::hundred_lines();
    let agent = engine
        .compile_source(source.as_str())
        .expect("a good source");
    let json = engine.program_json(&agent).expect("its JSON");
    let mut group = c.benchmark_group("compile/hundred lines");
    group.bench_function("source", |b| {
        b.iter(|| {
            engine
                .compile_source(source.as_str())
                .expect("a good source")
        });
    });
    group.bench_function("json", |b| {
        b.iter(|| engine.compile(json.as_slice()).expect("a good program"));
    });
    group.finish();
}

criterion_group!(benches, compile);
criterion_main!(benches);
