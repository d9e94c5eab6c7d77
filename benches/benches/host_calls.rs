//! Calls of host functions from a loop: synchronous, and asynchronous but
//! ready at once. Subtract the empty loop's turn.

use a99_benches::{compiled, engine, limits, programs, run};
use agent99::Capabilities;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Calls in one run.
const CALLS: u32 = 10_000;

fn host_calls(c: &mut Criterion) {
    let engine = engine();
    let args = programs::turns(CALLS);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let mut group = c.benchmark_group("host call");
    group.throughput(Throughput::Elements(u64::from(CALLS)));
    let empty = compiled(&engine, &programs::empty_loop());
    group.bench_function("(empty loop)", |b| b.iter(|| run(&engine, &empty, &args)));
    let sync = compiled(&engine, &programs::host_call_loop("inc"));
    group.bench_function("synchronous", |b| b.iter(|| run(&engine, &sync, &args)));
    let later = compiled(&engine, &programs::host_call_loop("incLater"));
    group.bench_function("asynchronous", |b| {
        b.iter(|| {
            runtime.block_on(engine.run(&later, args.clone(), limits(), Capabilities::none()))
        });
    });
    group.finish();
}

criterion_group!(benches, host_calls);
criterion_main!(benches);
