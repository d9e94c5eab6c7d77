//! Threats M08 to M13: memory that runs out, depth and cycles. What needs a
//! count of the allocator stands in `tests/memory.rs`.

use crate::attack::{
    ENGINE, bin, call, fails, forever, func, id, index, list, lit, record, ret, rich, run_with,
    seq, set, stopped, times, value, within,
};
use agent99::{
    Capabilities, Engine, ErrorCode, EventLimits, Outcome, RunOptions, Value, event_channel, json,
};
use serde_json::Value as Json;
use std::sync::Arc;

/// Programs that allocate in every way, to be run with little memory.
fn hungry() -> Vec<Json> {
    vec![
        crate::security_fuel::mixed(),
        json!([
            set("all", list(json!([]))),
            times(
                200,
                json!([
                    {"op": "push", "list": "all", "item": {"k": 1, "s": "text"}},
                    set("s", call(lit("abc"), "repeat", json!([lit(50)]))),
                    set("p", call(call(id("s"), "split", json!([lit("b")])), "join", json!([lit("-")]))),
                    set("o", call(id("JSON"), "parse", json!([lit("{\"a\":[1,{\"zz\":\"x\"}],\"b\":\"y\"}")]))),
                    set("keep", list(json!([id("p"), id("o"), call(id("p"), "slice", json!([lit(1), lit(20)]))]))),
                ])
            ),
            set(
                "t",
                call(
                    id("JSON"),
                    "stringify",
                    json!([list(json!([id("keep"), id("all")]))])
                )
            ),
            ret(id("t")),
        ]),
        json!([
            set("set", func("Set", json!([list(json!([]))]))),
            set("l", list(json!([]))),
            times(
                120,
                json!([
                    set("x", call(id("set"), "add", json!([bin("+", lit("k"), bin("%", id("i"), lit(40)))]))),
                    {"op": "push", "list": "l", "item": {"$expr": "binary", "op": "+", "left": lit("w"), "right": id("i")}},
                    {"op": "memoize", "key": bin("%", id("i"), lit(10)), "steps": [set("result", list(json!([id("i"), id("l")])))], "result": "m"},
                    set("o", call(id("Object"), "assign", json!([record(&[("l", call(id("l"), "slice", json!([lit(-5)])))]), call(id("l"), "slice", json!([lit(-3)]))]))),
                    {"op": "try", "try": [{"op": "Error", "args": ["e"]}], "catch": [set("z", bin("+", id("error"), id("i")))]},
                    set("sorted", call(call(id("l"), "toReversed", json!([])), "sort", json!([]))),
                ])
            ),
            ret(list(json!([
                call(id("set"), "toArray", json!([])),
                id("sorted"),
                id("z"),
                index(id("m"), lit(0))
            ]))),
        ]),
    ]
}

#[test]
fn m08_every_ceiling_gives_a_result_or_a_typed_error() {
    for steps in hungry() {
        let agent = ENGINE.compile(seq(steps)).unwrap();
        let full = ENGINE.run_sync(&agent, json!({"q": "arg"}), rich());
        let mut enough = 0;
        for bytes in (0..80)
            .map(|n| n * 307)
            .chain((0..80).map(|n| 24_000 + n * 5_101))
        {
            let outcome = ENGINE.run_sync(&agent, json!({"q": "arg"}), rich().heap_bytes(bytes));
            match &outcome.error {
                None => {
                    // Compaction at every turn changes nothing.
                    assert_eq!(outcome.result, full.result, "{bytes} bytes");
                    assert_eq!(outcome.fuel_used, full.fuel_used, "{bytes} bytes");
                    enough += 1;
                }
                Some(error) => {
                    assert_eq!(error.code, ErrorCode::HeapLimit, "{bytes} bytes: {error:?}")
                }
            }
        }
        assert_eq!(full.error, None);
        assert!(enough > 10, "{enough}");
    }
}

#[test]
fn m08_making_room_again_and_again_is_paid_for() {
    // What is held is looked through for every few rows that are dropped beside it. Where the
    // ceiling is near that is more work than the rows were.
    let row = list(json!(vec![lit(1); 100]));
    let steps = json!([
        set("held", list(json!([]))),
        times(
            10_000,
            json!([{"op": "push", "list": "held", "item": list(json!([]))}])
        ),
        times(500, json!([set("row", row)])),
        ret(lit(1))
    ]);
    let used = |bytes| {
        let outcome = run_with(steps.clone(), json!({}), rich().heap_bytes(bytes));
        outcome.error.is_none().then(|| outcome.fuel_used.micro())
    };
    let ample = used(64 << 20).expect("room for all");
    let near = (200..1_000).step_by(20).find_map(|kib| used(kib << 10));
    let near = near.expect("a ceiling that is enough");
    assert!(near > ample + 10_000_000, "{near} {ample}");
}

#[test]
fn m09_deep_values_are_dropped_without_recursion() {
    // Inside a run depth costs no stack, and so it is with what hosts give.
    let steps = json!([
        set("a", list(json!([]))),
        times(1_000_000, json!([set("a", list(json!([id("a")])))])),
        ret(lit(1))
    ]);
    let outcome = run_with(steps, json!({}), rich().timeout_ms(120_000));
    assert_eq!(outcome.error, None);
    let deep = (0..1_000_000).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    let agent = ENGINE.compile(seq(json!([ret(id("deep"))]))).unwrap();
    let mut args = agent99::Map::new();
    args.insert("deep", deep);
    let outcome = ENGINE.run_sync(&agent, Value::Object(args), rich());
    assert_eq!(outcome.error.expect("too deep").code, ErrorCode::Boundary);
}

#[test]
fn m10_cycles_are_allowed_and_refused_where_they_have_no_end() {
    let cycle = |last: Json| {
        json!([
            set("a", list(json!([lit(1)]))), {"op": "push", "list": "a", "item": "a"},
            set("o", record(&[("a", id("a"))])), {"op": "push", "list": "a", "item": "o"},
            last,
        ])
    };
    assert_eq!(
        value(
            cycle(ret(bin("===", index(id("a"), lit(1)), id("a")))),
            json!({})
        ),
        json!(true)
    );
    assert_eq!(
        value(cycle(ret(bin("==", id("a"), id("a")))), json!({})),
        json!(true)
    );
    for last in [
        ret(id("a")),
        ret(call(id("JSON"), "stringify", json!([id("a")]))),
        ret(bin("+", id("a"), lit(""))),
        ret(bin("==", id("a"), lit("x"))),
        ret(call(id("a"), "join", json!([]))),
        ret(call(id("a"), "flat", json!([bin("/", lit(1), lit(0))]))),
        json!({"op": "jsonStringify", "value": "a"}),
        json!({"op": "storeSet", "key": "k", "value": "a"}),
        json!({"op": "memoize", "key": "a", "steps": []}),
        json!({"op": "memoize", "steps": [set("result", index(id("a"), lit(0)))]}),
        json!({"op": "template", "tmpl": "{{a}}", "vars": {"a": "a"}}),
        json!({"op": "hash", "value": id("a")}),
        json!({"op": "agentRun", "agentId": "o", "input": {"a": "a"}}),
        json!({"op": "return", "schema": {"type": "object", "properties": {"a": {}}}}),
    ] {
        let outcome = within(2_000, || {
            run_with(cycle(last.clone()), json!({}), RunOptions::new())
        });
        let error = outcome.error.clone().unwrap_or_else(|| panic!("{last}"));
        let typed = [
            ErrorCode::Program,
            ErrorCode::Boundary,
            ErrorCode::Capability,
            ErrorCode::OutOfFuel,
            ErrorCode::HeapLimit,
        ];
        assert!(typed.contains(&error.code), "{last}: {error:?}");
        // A traced run shows what it can.
        run_with(cycle(last), json!({}), RunOptions::new().trace(true));
    }
}

#[test]
fn m11_results_are_capped() {
    let large = call(lit("x"), "repeat", json!([lit(20 << 20)]));
    fails(json!([ret(large.clone())]), json!({}), ErrorCode::Boundary);
    fails(
        json!([
            set("s", call(lit("x"), "repeat", json!([lit(1 << 20)]))),
            ret(list(json!(vec![id("s"); 100])))
        ]),
        json!({}),
        ErrorCode::Boundary,
    );
    // So is the text of an error.
    for steps in [
        json!([set(
            "x",
            json!({"$expr": "call", "callee": "Error", "arguments": [large.clone()]})
        )]),
        json!([set("s", large), {"op": "consoleError", "message": "s"}]),
    ] {
        let error = run_with(steps, json!({}), rich()).error.expect("an error");
        assert!(
            error.message.len_bytes() <= 4 << 20,
            "{}",
            error.message.len_bytes()
        );
    }
}

#[test]
fn m12_a_thousand_runs_at_their_cap_share_one_ceiling() {
    let engine = Arc::new(Engine::new());
    let pool = Arc::new(engine.pool(32 << 20));
    let agent = engine
        .compile(seq(json!([
            set("s", lit("0123456789")),
            forever(json!([set("s", bin("+", id("s"), id("s")))]))
        ])))
        .unwrap();
    let rt = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let outcomes: Vec<Outcome> = rt.block_on(async {
        let runs: Vec<_> = (0..1_000)
            .map(|_| {
                let (pool, agent) = (pool.clone(), agent.clone());
                let options = rich().heap_bytes(4 << 20).timeout_ms(120_000);
                tokio::spawn(async move {
                    pool.run(&agent, json!({}), options, Capabilities::none())
                        .await
                })
            })
            .collect();
        let mut outcomes = Vec::new();
        for run in runs {
            outcomes.push(run.await.expect("no panic"));
        }
        outcomes
    });
    assert_eq!(outcomes.len(), 1_000);
    for outcome in outcomes {
        stopped(&outcome, ErrorCode::HeapLimit);
    }
}

#[test]
fn m12_one_run_cannot_ask_for_more_than_the_pool_has() {
    let pool = Arc::new(Engine::new()).pool(1 << 20);
    let agent = ENGINE.compile(seq(json!([ret(lit(1))]))).unwrap();
    let rt = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    // A run whose ceiling is above it would take more than all.
    for (ceiling, error) in [
        (usize::MAX, Some(ErrorCode::Options)),
        ((1 << 20) + 1, Some(ErrorCode::Options)),
        (1 << 20, None),
    ] {
        let options = rich().heap_bytes(ceiling);
        let outcome = rt.block_on(pool.run(&agent, json!({}), options, Capabilities::none()));
        assert_eq!(outcome.error.map(|e| e.code), error, "{ceiling}");
    }
}

#[test]
fn m13_events_that_nobody_reads_are_bounded() {
    const LIMIT: usize = 1 << 20;
    let limits = EventLimits {
        events: 10_000,
        bytes: LIMIT,
    };
    for data in [json!("args.text"), json!("args.many")] {
        let sends = json!([{"op": "streamChunk", "data": data}]);
        let agent = ENGINE.compile(seq(json!([forever(sends)]))).unwrap();
        let (sink, mut stream) = event_channel(limits);
        let options = rich().timeout_ms(200).events(sink);
        let args = json!({"text": "x".repeat(100_000), "many": vec![1; 1_000]});
        let rt = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let outcome = rt.block_on(ENGINE.run(&agent, args, options, Capabilities::none()));
        stopped(&outcome, ErrorCode::RunTimeout);
        let waiting = stream.waiting_bytes();
        assert!(waiting > LIMIT / 2 && waiting < LIMIT + 1_000, "{waiting}");
        // The call that waits sent nothing, and the others all.
        let chunks = std::iter::from_fn(|| stream.try_next());
        let chunks = chunks.filter(|event| event.kind.name() == "chunk");
        assert!(chunks.count() > 5);
    }
}
