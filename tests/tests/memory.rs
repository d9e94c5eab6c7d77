//! What attacks on memory really take: every byte that the process allocates
//! is counted here, not only those that the engine's own account knows of
//! (threats M01 to M07, C07, C12).
//!
//! The counting allocator is this binary's own; tests take turns.

#[path = "memory/compile.rs"]
mod compile;

use a99_testkit::cost::{Counting, HEAD, STEP, judge};
use agent99::{Capabilities, CostModel, Engine, ErrorCode, Outcome, RunOptions, json};
use serde_json::Value as Json;
use std::alloc::{GlobalAlloc, Layout};
use std::sync::{Mutex, MutexGuard};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

/// The ceiling that attacks run against.
const CAP: usize = 16 << 20;

/// What a run takes besides its heap: compiled code, stacks, tables of a
/// compaction, and the message of the error.
const BESIDES: usize = 10 << 20;

fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|e| e.into_inner())
}

fn id(name: &str) -> Json {
    json!({"$expr": "ident", "name": name})
}

fn lit(value: impl Into<Json>) -> Json {
    json!({"$expr": "literal", "value": value.into()})
}

fn call(object: Json, method: &str, arguments: Json) -> Json {
    json!({"$expr": "methodCall", "object": object, "method": method, "arguments": arguments})
}

fn bin(op: &str, left: Json, right: Json) -> Json {
    json!({"$expr": "binary", "op": op, "left": left, "right": right})
}

fn list(elements: Json) -> Json {
    json!({"$expr": "array", "elements": elements})
}

fn set(key: &str, value: Json) -> Json {
    json!({"op": "varSet", "key": key, "value": value})
}

fn forever(body: Json) -> Json {
    json!({"op": "while", "condition": lit(true), "body": body})
}

fn options() -> RunOptions {
    RunOptions::new()
        .fuel(1e10)
        .expect("a number")
        .timeout_ms(120_000)
        .heap_bytes(CAP)
}

/// On an allocator of its own, which no other thread uses; small enough for Miri,
/// which runs this one: `cargo xtask miri`.
#[test]
#[allow(unsafe_code, reason = "an allocator is called by hand")]
fn the_allocator_counts_what_it_hands_out() {
    let counting = Counting::new();
    let counts = || (counting.live(), counting.peak(), counting.largest());
    let small = Layout::from_size_align(100, 8).expect("a layout");
    let large = Layout::from_size_align(300, 8).expect("a layout");
    // SAFETY: the sizes are not zero; each block is written before it is read, used
    // within its bounds, and given back once with the layout that it has.
    unsafe {
        let first = counting.alloc(small);
        assert!(!first.is_null());
        first.write_bytes(7, 100);
        assert_eq!(counts(), (100, 100, 100));
        let first = counting.realloc(first, small, 300);
        assert!(!first.is_null());
        assert!((0..100).all(|at| first.add(at).read() == 7), "moved whole");
        assert_eq!(counts(), (300, 300, 300));
        let second = counting.alloc(small);
        assert_eq!(counts(), (400, 400, 300));
        counting.dealloc(first, large);
        counting.dealloc(second, small);
    }
    assert_eq!(counts(), (0, 400, 300));
    assert_eq!((counting.total(), counting.forget()), (400, 0));
    assert_eq!(counts(), (0, 0, 0));
}

/// Runs a program and gives its outcome, and how far the process went above
/// where it was.
fn measured(steps: &Json, options: RunOptions) -> (Outcome, usize) {
    let engine = Engine::new();
    let program = json!({"op": "seq", "steps": steps}).to_string();
    let agent = engine.compile(program).expect("a program");
    let before = ALLOCATOR.forget();
    let granted = Capabilities::none();
    let outcome = engine.run_sync_with(&agent, json!({}), options, granted);
    (outcome, ALLOCATOR.peak().saturating_sub(before))
}

/// Runs programs that must meet the ceiling and never pass it.
fn attack(programs: Vec<Json>) {
    let _turn = turn();
    for steps in programs {
        let (outcome, peak) = measured(&steps, options());
        let error = outcome.error.unwrap_or_else(|| panic!("{steps}"));
        assert_eq!(error.code, ErrorCode::HeapLimit, "{steps}: {error:?}");
        assert!(error.pointer.is_some(), "{error:?}");
        assert!(peak <= CAP + BESIDES, "{steps}: {} KiB", peak >> 10);
    }
}

#[test]
fn m01_text_doubling_stops_at_the_cap() {
    let start = set("s", lit("0123456789abcdef"));
    let doubled = [
        bin("+", id("s"), id("s")),
        call(id("s"), "concat", json!([id("s")])),
        call(id("s"), "repeat", json!([lit(2)])),
        call(list(json!([id("s"), id("s")])), "join", json!([lit("")])),
        call(id("s"), "replaceAll", json!([lit("0"), id("s")])),
        call(
            id("s"),
            "padEnd",
            json!([bin(
                "*",
                json!({"$expr": "member", "object": id("s"), "property": "length"}),
                lit(2)
            )]),
        ),
        call(
            id("JSON"),
            "stringify",
            json!([list(json!([id("s"), id("s")]))]),
        ),
    ];
    attack(
        doubled
            .into_iter()
            .map(|d| json!([start, forever(json!([set("s", d)]))]))
            .collect(),
    );
    attack(vec![json!([
        start,
        forever(
            json!([{"op": "template", "tmpl": "{{s}}{{s}}", "vars": {"s": "s"}, "result": "s"}])
        ),
    ])]);
}

#[test]
fn m02_list_doubling_stops_at_the_cap() {
    let start = set("l", list(json!([lit(1), lit(2)])));
    let doubled = [
        call(id("l"), "concat", json!([id("l")])),
        call(list(json!([id("l"), id("l")])), "flat", json!([])),
        call(id("l"), "toSpliced", json!([lit(0), lit(0), lit(1)])),
    ];
    let mut programs: Vec<Json> = doubled
        .into_iter()
        .map(|d| {
            json!([
                start,
                forever(json!([
                    set("k", list(json!([id("k"), id("l")]))),
                    set("l", d)
                ]))
            ])
        })
        .collect();
    programs.push(json!([
        start,
        forever(json!([set("l", list(json!([id("l"), id("l")])))]))
    ]));
    programs.push(json!([
        start,
        forever(json!([{"op": "push", "list": "l", "item": {"a": 1, "b": []}}]))
    ]));
    attack(programs);
}

#[test]
fn m03_many_values_below_any_single_limit_are_counted() {
    let keep = |value: Json| {
        json!([
            set("all", list(json!([]))),
            forever(json!([set("v", value), {"op": "push", "list": "all", "item": "v"}]))
        ])
    };
    attack(vec![
        keep(call(lit("x"), "repeat", json!([lit(1 << 20)]))),
        keep(call(lit("x"), "repeat", json!([lit(1_000)]))),
        keep(call(
            id("Array"),
            "from",
            json!([{"$expr": "object", "properties": [{"key": "length", "value": lit(1_000)}]}]),
        )),
        keep(list(json!([]))),
        keep(json!({"a": {"b": {"c": []}}})),
    ]);
}

#[test]
fn m03_garbage_is_not_held_against_a_run() {
    let _turn = turn();
    for body in [
        set("s", call(lit("ab"), "repeat", json!([lit(1 << 20)]))),
        set(
            "s",
            call(
                call(lit("ab"), "repeat", json!([lit(50_000)])),
                "split",
                json!([lit("")]),
            ),
        ),
        set(
            "s",
            call(
                id("JSON"),
                "parse",
                json!([lit("[1,[2,{\"a\":[3]}],\"text\"]")]),
            ),
        ),
    ] {
        let steps = json!([
            set("i", lit(0)),
            {"op": "while", "condition": bin("<", id("i"), lit(60)), "body": [set("i", bin("+", id("i"), lit(1))), body]},
        ]);
        let (outcome, peak) = measured(&steps, options());
        assert_eq!(outcome.error, None, "{body}");
        assert!(peak <= CAP + BESIDES, "{body}: {} KiB", peak >> 10);
    }
}

#[test]
fn m04_shared_items_are_counted_when_they_are_written_out() {
    let shared = json!([
        set("s", call(lit("x"), "repeat", json!([lit(1 << 20)]))),
        set("l", list(json!([]))),
        set("i", lit(0)),
        {"op": "while", "condition": bin("<", id("i"), lit(1_000)), "body": [
            set("i", bin("+", id("i"), lit(1))), {"op": "push", "list": "l", "item": "s"}]},
    ]);
    let with = |last: Json| {
        let mut steps = shared.clone();
        steps.as_array_mut().unwrap().push(last);
        steps
    };
    attack(vec![
        with(set("x", call(id("JSON"), "stringify", json!([id("l")])))),
        with(set("x", call(id("l"), "join", json!([])))),
        with(set("x", call(id("l"), "toString", json!([])))),
        with(set("x", bin("+", id("l"), lit("")))),
        with(json!({"op": "jsonStringify", "value": "l"})),
        with(json!({"op": "join", "list": "l", "sep": ","})),
        with(json!({"op": "template", "tmpl": "{{l}}", "vars": {"l": "l"}})),
    ]);
}

#[test]
fn m05_results_of_loops_are_counted() {
    let long = set(
        "l",
        call(
            id("Array"),
            "from",
            json!([{"$expr": "object", "properties": [{"key": "length", "value": lit(100_000)}]}]),
        ),
    );
    attack(vec![
        json!([long, {"op": "map", "items": "l", "as": "x", "steps": [set("result", call(lit("y"), "repeat", json!([lit(1_000)])))], "result": "m"}]),
        json!([long, {"op": "reduce", "items": "l", "as": "x", "accumulator": "acc", "initial": "", "steps": [
            set("result", list(json!([id("acc"), call(lit("y"), "repeat", json!([lit(1_000)]))])))], "result": "m"}]),
        json!([long, {"op": "map", "items": "l", "as": "x", "steps": [set("result", list(json!([id("l"), id("l"), id("l"), id("l"), id("l"), id("l"), id("l"), id("l")])))], "result": "m"}]),
    ]);
}

#[test]
fn m06_what_a_run_keeps_aside_is_counted() {
    let key = set("k", bin("+", id("k"), lit(1)));
    let big = call(lit("x"), "repeat", json!([lit(10_000)]));
    attack(vec![
        json!([
            set("k", lit(0)),
            forever(
                json!([key, {"op": "memoize", "key": "k", "steps": [set("result", big.clone())]}])
            )
        ]),
        json!([
            set("k", lit(0)),
            forever(json!([key, {"op": "memoize", "key": "k", "steps": [set("result", lit(1))]}]))
        ]),
        json!([
            set("k", lit(0)),
            forever(json!([key, {"op": "cache", "key": "k", "steps": [set("result", big)]}]))
        ]),
        json!([
            set("k", lit(0)),
            forever(json!([key, {"op": "storeSet", "key": "k", "value": {"big": [1, 2, 3]}}]))
        ]),
        json!([
            set("big", call(lit("x"), "repeat", json!([lit(1 << 20)]))),
            set("all", list(json!([]))),
            forever(json!([
            {"op": "consoleWarn", "message": "big"}, {"op": "push", "list": "all", "item": []}]))
        ]),
    ]);
}

#[test]
fn m06_programs_that_ran_inline_are_let_go() {
    let _turn = turn();
    let steps = json!([
        set("i", lit(0)),
        {"op": "while", "condition": bin("<", id("i"), lit(2_000)), "body": [
            set("i", bin("+", id("i"), lit(1))),
            {"op": "agentRun", "agentId": {"op": "seq", "steps": vec![json!({"op": "varSet", "key": "a", "value": 1}); 200]}, "input": {}},
        ]},
    ]);
    let (outcome, peak) = measured(&steps, options());
    assert_eq!(outcome.error, None);
    assert!(peak <= 8 << 20, "{} KiB", peak >> 10);
}

#[test]
fn m07_traces_are_bounded() {
    let _turn = turn();
    let state = json!([
        set("s", call(lit("x"), "repeat", json!([lit(1 << 20)]))),
        set("i", lit(0)),
        {"op": "while", "condition": bin("<", id("i"), lit(300)), "body": [
            set("i", bin("+", id("i"), lit(1))),
            set("s", call(id("s"), "concat", json!([lit("")]))),
            set("t", list(json!([id("s"), id("i")]))),
        ]},
    ]);
    let (outcome, peak) = measured(&state, options().trace(true));
    assert_eq!(outcome.error, None);
    assert!(peak <= CAP + 2 * BESIDES, "{} KiB", peak >> 10);
    let events = outcome.trace.expect("a trace");
    assert!(events.len() < 100, "{} events of a megabyte", events.len());
    assert!(
        outcome
            .warnings
            .iter()
            .any(|w| w.to_string().contains("dropped"))
    );
    // Deep steps among many variables: what they were is not kept for free.
    let mut core: Json = json!([]);
    for i in 0..100 {
        core = json!([{"op": "if", "condition": lit(true), "then": core}, set(&format!("w{i}"), lit(1))]);
    }
    let mut steps: Vec<Json> = (0..3_000).map(|i| set(&format!("v{i}"), lit(1))).collect();
    steps.extend(core.as_array().unwrap().clone());
    let (outcome, peak) = measured(&json!(steps), options().trace(true));
    assert!(outcome.error.is_none_or(|e| e.code == ErrorCode::HeapLimit));
    assert!(peak <= CAP + 3 * BESIDES, "{} KiB", peak >> 10);
}

#[test]
fn m08_no_buffer_is_larger_than_the_cap() {
    let _turn = turn();
    let bombs = [
        call(lit("x"), "repeat", json!([lit(2e9)])),
        call(lit("x"), "padStart", json!([lit(2e9), lit("ab")])),
        call(
            id("Array"),
            "from",
            json!([{"$expr": "object", "properties": [{"key": "length", "value": lit(2e8)}]}]),
        ),
        call(
            call(
                call(lit("ab"), "repeat", json!([lit(500_000)])),
                "split",
                json!([lit("")]),
            ),
            "join",
            json!([call(lit("x"), "repeat", json!([lit(1_000_000)]))]),
        ),
        call(
            call(lit("ab"), "repeat", json!([lit(500_000)])),
            "replaceAll",
            json!([lit("a"), call(lit("$'"), "repeat", json!([lit(1_000)]))]),
        ),
    ];
    for bomb in bombs {
        for model in [CostModel::Metered, CostModel::Flat] {
            let (outcome, peak) = measured(
                &json!([set("x", bomb.clone())]),
                options().cost_model(model),
            );
            assert!(outcome.error.is_some(), "{bomb}");
            assert!(
                ALLOCATOR.largest() <= CAP && peak <= CAP + BESIDES,
                "{bomb}: {} KiB",
                peak >> 10
            );
        }
    }
}

#[test]
fn m11_helpers_with_many_variables_cannot_pile_up() {
    let many: Vec<Json> = (0..20_000).map(|i| set(&format!("v{i}"), lit(1))).collect();
    let mut steps = many;
    steps.push(json!({"op": "callLocal", "name": "again", "args": []}));
    let _turn = turn();
    let engine = Engine::new();
    let program = json!({"op": "seq", "helpers": {"again": {"paramNames": [], "steps": steps}},
        "steps": [{"op": "callLocal", "name": "again", "args": []}]});
    let agent = engine.compile(program.to_string()).expect("a program");
    let before = ALLOCATOR.forget();
    let outcome = engine.run_sync(&agent, json!({}), options());
    let peak = ALLOCATOR.peak().saturating_sub(before);
    assert_eq!(outcome.error.expect("an error").code, ErrorCode::HeapLimit);
    assert!(peak <= CAP + BESIDES, "{} KiB", peak >> 10);
}

/// The fuzz target `cost`, which needs the allocator.
#[test]
fn stored_inputs_of_cost_are_met() {
    let _turn = turn();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz-inputs/cost");
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        eprintln!("{}", path.display());
        judge(&std::fs::read(&path).expect("an input"), &ALLOCATOR);
    }
}

#[test]
fn programs_that_try_to_be_dear_hold_and_allocate_what_they_may() {
    let _turn = turn();
    let mut state: u64 = 1;
    let mut byte = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    for steps in (1..=5).cycle().take(150) {
        let data: Vec<u8> = (0..HEAD + steps * STEP).map(|_| byte()).collect();
        eprintln!("{data:?}");
        judge(&data, &ALLOCATOR);
    }
}
