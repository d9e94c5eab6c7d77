//! Running compiled agents, metered and with every limit on: conditions,
//! loops, rows of objects, text, and one short agent in a fresh context.

use a99_benches::{compiled, engine, limits, programs, run};
use agent99::{Capabilities, CostModel, Value, json};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Turns of the loops.
const TURNS: u32 = 100_000;

/// Rows of the list that is mapped and filtered.
const ROWS: u32 = 10_000;

fn loops(c: &mut Criterion) {
    let engine = engine();
    let mut group = c.benchmark_group("run/turn");
    group.throughput(Throughput::Elements(u64::from(TURNS)));
    let programs = [
        ("count", programs::empty_loop(), programs::turns(TURNS)),
        (
            "sum of i*i",
            programs::sum_of_squares(),
            programs::turns(TURNS),
        ),
        (
            "sum of i*i % 7",
            programs::sum_of_remainders(),
            programs::turns(TURNS),
        ),
        (
            "condition",
            programs::CONDITION_LOOP.to_owned(),
            programs::condition_args(TURNS),
        ),
    ];
    for (name, text, args) in programs {
        let agent = compiled(&engine, &text);
        group.bench_function(name, |b| b.iter(|| run(&engine, &agent, &args)));
    }
    group.finish();
}

/// The cost of a turn must not grow with the length of the loop.
fn flat(c: &mut Criterion) {
    let engine = engine();
    let agent = compiled(&engine, &programs::sum_of_remainders());
    let mut group = c.benchmark_group("run/loop length");
    for turns in [10, 1_000, 100_000, 1_000_000] {
        group.throughput(Throughput::Elements(turns));
        let args = programs::turns(turns as u32);
        group.bench_with_input(BenchmarkId::from_parameter(turns), &args, |b, args| {
            b.iter(|| run(&engine, &agent, args));
        });
    }
    group.finish();
}

fn fresh(c: &mut Criterion) {
    let engine = engine();
    let short = [
        (
            "run/condition from arguments",
            programs::CONDITION,
            programs::condition_args(0),
        ),
        (
            "run/ten steps",
            programs::TEN_STEPS,
            programs::ten_steps_args(),
        ),
    ];
    for (name, text, args) in short {
        let agent = compiled(&engine, text);
        c.bench_function(name, |b| b.iter(|| run(&engine, &agent, &args)));
    }
    let agent = compiled(&engine, programs::TEN_STEPS);
    let args = programs::ten_steps_args();
    for (name, options) in [
        (
            "run/ten steps, flat prices",
            limits().cost_model(CostModel::Flat),
        ),
        ("run/ten steps, traced", limits().trace(true)),
    ] {
        c.bench_function(name, |b| {
            b.iter(|| engine.run_sync(&agent, args.clone(), options.clone()));
        });
    }
}

fn rows(c: &mut Criterion) {
    let engine = engine();
    let agent = compiled(
        &engine,
        r#"{"op": "seq", "steps": [
            {"op": "varsImport", "keys": ["rows"]},
            {"op": "map", "items": "rows", "as": "row", "steps": [
                {"op": "mathCalc", "expr": "row.price * row.quantity", "result": "total"},
                {"op": "varSet", "key": "result",
                 "value": {"id": "row.id", "total": {"$expr": "ident", "name": "total"}}}],
             "result": "totals"},
            {"op": "filter", "items": "totals", "as": "t", "condition": "t.total > 50",
             "result": "large"},
            {"op": "len", "list": "large", "result": "count"},
            {"op": "return", "schema": {"type": "object", "properties": {"count": {}}}}]}"#,
    );
    let rows: Vec<_> = (0..ROWS)
        .map(|i| json!({"id": i, "price": f64::from(i % 97) + 0.5, "quantity": i % 5, "tag": "a"}))
        .collect();
    let args = Value::from(json!({ "rows": rows }));
    let mut group = c.benchmark_group("run/row");
    group.throughput(Throughput::Elements(u64::from(ROWS)));
    group.bench_function("map and filter", |b| b.iter(|| run(&engine, &agent, &args)));
    group.finish();
}

/// The same runs with and without a profile: a flat loop, and 64 frames.
fn profiled(c: &mut Criterion) {
    let engine = engine();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let deep = r#"{"op": "seq", "helpers": {"deep": {"paramNames": ["n"], "steps": [
        {"op": "if", "condition": "n < 1", "then": [{"op": "return", "value": 0}]},
        {"op": "callLocal", "name": "deep", "result": "d", "args": [
            {"$expr": "binary", "op": "-", "left": {"$expr": "ident", "name": "n"}, "right": 1}]},
        {"op": "return", "value": "d"}]}},
        "steps": [{"op": "varsImport", "keys": ["n"]},
        {"op": "varSet", "key": "i", "value": 0},
        {"op": "while", "condition": "i < n", "body": [
            {"op": "callLocal", "name": "deep", "args": [64], "result": "d"},
            {"op": "mathCalc", "expr": "i + 1", "result": "i"}]}]}"#;
    let loops = programs::sum_of_remainders();
    for (name, text, args) in [
        (
            "a million turns",
            loops.as_str(),
            programs::turns(1_000_000),
        ),
        ("64 frames", deep, programs::turns(20_000)),
    ] {
        let agent = compiled(&engine, text);
        let mut group = c.benchmark_group(format!("run/profile of {name}"));
        group.bench_function("plain", |b| {
            b.iter(|| runtime.block_on(engine.run(&agent, args.clone(), limits(), none())));
        });
        group.bench_function("profiled", |b| {
            b.iter(|| {
                runtime.block_on(engine.run_profiled(&agent, args.clone(), limits(), none()))
            });
        });
        group.finish();
    }
}

fn none() -> Capabilities {
    Capabilities::none()
}

criterion_group!(benches, loops, flat, fresh, rows, profiled);
criterion_main!(benches);
