//! What one execution of an atom costs, each in a loop of its own; subtract
//! the empty loop's turn.

use a99_benches::{compiled, engine, programs, run};
use agent99::{Value, json};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Turns of each loop: heap and window are warm, and a bench takes
/// milliseconds.
const TURNS: u32 = 10_000;

/// Name and step; the arguments stand in [`args`].
const STEPS: &[(&str, &str)] = &[
    ("varSet", r#"{"op": "varSet", "key": "x", "value": "text"}"#),
    (
        "varGet",
        r#"{"op": "varGet", "key": "text", "result": "x"}"#,
    ),
    (
        "mathCalc",
        r#"{"op": "mathCalc", "expr": "i * 2 + 1", "result": "x"}"#,
    ),
    ("if", r#"{"op": "if", "condition": "i > 5", "then": []}"#),
    ("scope", r#"{"op": "scope", "steps": []}"#),
    ("try", r#"{"op": "try", "try": []}"#),
    ("eq", r#"{"op": "eq", "a": "i", "b": 3, "result": "x"}"#),
    (
        "and",
        r#"{"op": "and", "a": "i", "b": true, "result": "x"}"#,
    ),
    ("len", r#"{"op": "len", "list": "list", "result": "x"}"#),
    (
        "split",
        r#"{"op": "split", "str": "text", "sep": ",", "result": "x"}"#,
    ),
    (
        "join",
        r#"{"op": "join", "list": "words", "sep": ",", "result": "x"}"#,
    ),
    (
        "template",
        r#"{"op": "template", "tmpl": "{{a}} of {{b}}", "vars": {"a": "i", "b": "text"}, "result": "x"}"#,
    ),
    (
        "regexMatch",
        r#"{"op": "regexMatch", "pattern": "b.*d", "value": "text", "result": "x"}"#,
    ),
    (
        "pick",
        r#"{"op": "pick", "obj": "record", "keys": ["id", "tag"], "result": "x"}"#,
    ),
    (
        "omit",
        r#"{"op": "omit", "obj": "record", "keys": ["tag"], "result": "x"}"#,
    ),
    (
        "merge",
        r#"{"op": "merge", "a": "record", "b": {"more": 1}, "result": "x"}"#,
    ),
    ("keys", r#"{"op": "keys", "obj": "record", "result": "x"}"#),
    (
        "jsonParse",
        r#"{"op": "jsonParse", "str": "source", "result": "x"}"#,
    ),
    (
        "jsonStringify",
        r#"{"op": "jsonStringify", "value": "record", "result": "x"}"#,
    ),
    ("hash", r#"{"op": "hash", "value": "text", "result": "x"}"#),
    ("random", r#"{"op": "random", "result": "x"}"#),
    (
        "map of 3",
        r#"{"op": "map", "items": "list", "as": "e",
            "steps": [{"op": "varSet", "key": "result", "value": "e"}], "result": "x"}"#,
    ),
    (
        "filter of 3",
        r#"{"op": "filter", "items": "list", "as": "e", "condition": "e > 1", "result": "x"}"#,
    ),
    (
        "method toUpperCase",
        r#"{"op": "varSet", "key": "x", "value": {"$expr": "methodCall",
            "object": {"$expr": "ident", "name": "text"}, "method": "toUpperCase",
            "arguments": []}}"#,
    ),
];

/// The arguments that the steps name.
const IMPORTS: &[&str] = &["text", "words", "list", "record", "source"];

fn args() -> Value {
    json!({
        "n": TURNS,
        "text": "a,b,c,d",
        "words": ["one", "two", "three"],
        "list": [1, 2, 3],
        "record": {"id": 7, "price": 1.5, "tag": "new"},
        "source": r#"{"id": 7, "price": 1.5, "tag": "new", "list": [1, 2, 3]}"#,
    })
    .into()
}

fn atoms(c: &mut Criterion) {
    let engine = engine();
    let args = args();
    let mut group = c.benchmark_group("atom");
    group
        .throughput(Throughput::Elements(u64::from(TURNS)))
        .sample_size(20);
    let empty = compiled(&engine, &programs::empty_loop());
    group.bench_function("(empty loop)", |b| b.iter(|| run(&engine, &empty, &args)));
    for (name, step) in STEPS {
        let agent = compiled(&engine, &programs::looped(step, IMPORTS));
        group.bench_function(*name, |b| b.iter(|| run(&engine, &agent, &args)));
    }
    group.finish();
}

criterion_group!(benches, atoms);
criterion_main!(benches);
