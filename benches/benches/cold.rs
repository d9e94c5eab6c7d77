//! Cold start: a new engine, or a known one, from JSON text to a result.

use a99_benches::{compiled, engine, programs, run};
use agent99::Engine;
use criterion::{Criterion, criterion_group, criterion_main};

fn cold(c: &mut Criterion) {
    let args = programs::ten_steps_args();
    c.bench_function("cold/engine", |b| b.iter(Engine::new));
    c.bench_function("cold/compile and run", |b| {
        let engine = engine();
        b.iter(|| run(&engine, &compiled(&engine, programs::TEN_STEPS), &args));
    });
    c.bench_function("cold/engine, compile and run", |b| {
        b.iter(|| {
            let engine = engine();
            run(&engine, &compiled(&engine, programs::TEN_STEPS), &args)
        });
    });
}

criterion_group!(benches, cold);
criterion_main!(benches);
