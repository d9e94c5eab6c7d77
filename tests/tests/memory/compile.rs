//! Programs whose code would grow with more than their length
//! (class A4).

use super::*;

/// Bytes that compiling and verifying may take for each byte of a source.
const COMPILE_BYTES_PER_BYTE: usize = 450;

/// Instructions for each byte of a source, and those that any may have.
const CODE_PER_BYTE: usize = 4;
const BASE_CODE: usize = 1 << 14;

/// An object of these members, which are moved into it: `json!` copies them, for
/// each level again.
fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
    let members = members.map(|(key, value)| (key.to_owned(), value));
    Json::Object(members.into_iter().collect())
}

/// Steps inside as many steps of another kind as `levels` says.
fn wrapped(levels: usize, core: Json, around: &dyn Fn(Vec<Json>, usize) -> Json) -> Json {
    let steps = |inner: Json| match inner {
        Json::Array(steps) => steps,
        step => vec![step],
    };
    (0..levels).fold(core, |inner, level| around(steps(inner), level))
}

/// Programs of about `size` steps whose code grows with something beside their
/// length, if that is not prevented.
fn hard_to_compile(size: usize) -> Vec<(&'static str, Json)> {
    let levels = 250;
    let maybe = |names: usize| {
        let sets: Vec<Json> = (0..names).map(|i| set(&format!("n{i}"), lit(1))).collect();
        json!({"op": "if", "condition": id("c"), "then": sets})
    };
    let looped = |form: &'static str, first: Json| {
        move |mut steps: Vec<Json>, level: usize| {
            steps.insert(0, first.clone());
            object([
                ("op", form.into()),
                ("items", "args.xs".into()),
                ("as", format!("i{level}").into()),
                ("accumulator", "acc".into()),
                ("initial", 0.into()),
                ("steps", steps.into()),
            ])
        }
    };
    let reads: Json = (0..size)
        .map(|i| set("z", json!(format!("n{}", i % 10))))
        .collect();
    let paths: Json = (0..size)
        .map(|i| set("z", json!(format!("n{}.a.b", i % 10))))
        .collect();
    let seals: Json = (0..size)
        .map(|_| json!({"op": "constSet", "key": "k", "value": 1}))
        .collect();
    let may_seal = json!({"op": "if", "condition": id("c"), "then": [
        {"op": "constSet", "key": "k", "value": 1}]});
    let sets: Vec<Json> = (0..size).map(|i| set(&format!("v{i}"), lit(i))).collect();
    let runs: Vec<Json> = (0..size)
        .map(|_| json!({"op": "runCode", "code": "x"}))
        .collect();
    let scoped_runs: Vec<Json> = (0..size)
        .map(|_| json!({"op": "scope", "steps": [{"op": "runCode", "code": "x"}]}))
        .collect();
    let big = list((0..size / 4).map(lit).collect());
    let plain =
        |steps: Vec<Json>, _: usize| object([("op", "memoize".into()), ("steps", steps.into())]);
    let tries = |steps: Vec<Json>, _: usize| {
        object([
            ("op", "try".into()),
            ("try", steps.into()),
            ("catch", json!([])),
        ])
    };
    let end = json!({"op": "if", "condition": id("c"), "then": [{"op": "return", "value": 1}]});
    let returns = |mut steps: Vec<Json>, _: usize| {
        steps.push(end.clone());
        object([
            ("op", "map".into()),
            ("items", "args.xs".into()),
            ("as", "i".into()),
            ("steps", steps.into()),
        ])
    };
    let names: Vec<String> = (0..60).map(|i| format!("p{i}")).collect();
    let calls: Json = (0..size)
        .map(|_| json!({"op": "callLocal", "name": "h"}))
        .collect();
    let texts: Json = (0..size).map(|i| json!(format!("n{}", i % 10))).collect();
    let mut deep = id("c");
    for _ in 0..2_000 {
        deep = Json::Array(vec![1.into(), deep]);
    }
    let schema: Json = json!({"type": "object", "properties":
        (0..size).map(|i| (format!("v{i}"), json!({"type": "number"}))).collect::<serde_json::Map<_, _>>()});
    vec![
        (
            "reads",
            wrapped(levels, reads.clone(), &looped("map", maybe(10))),
        ),
        (
            "reads in reduce",
            wrapped(levels, reads, &looped("reduce", maybe(10))),
        ),
        ("paths", wrapped(levels, paths, &looped("map", maybe(10)))),
        (
            "constants",
            wrapped(levels, seals, &looped("map", may_seal)),
        ),
        ("tables of names", [sets.clone(), runs].concat().into()),
        (
            "tables in scopes",
            [sets.clone(), scoped_runs].concat().into(),
        ),
        (
            "templates",
            json!({"op": "template", "tmpl": "{{a}}".repeat(size), "vars": {"a": big}}),
        ),
        ("memos", wrapped(levels, sets.clone().into(), &plain)),
        ("handlers", wrapped(200, sets.clone().into(), &tries)),
        ("returns", wrapped(levels, sets.clone().into(), &returns)),
        (
            "calls",
            json!([{"$helpers": {"h": {"paramNames": names, "steps": []}}}, calls]),
        ),
        (
            "names in literals",
            wrapped(20, json!([set("z", texts)]), &looped("map", maybe(10))),
        ),
        ("deep literals", json!(vec![set("z", deep); size / 500 + 1])),
        (
            "schemas",
            [sets, vec![json!({"op": "return", "schema": schema})]]
                .concat()
                .into(),
        ),
    ]
}

/// The text of a program of [`hard_to_compile`].
fn text_of(steps: Json) -> String {
    let mut root = json!({"op": "seq", "a99": 3, "steps": []});
    let mut list = match steps {
        Json::Array(steps) => steps,
        step => vec![step],
    };
    if let Some(helpers) = list.first().and_then(|step| step.get("$helpers")).cloned() {
        root["helpers"] = helpers;
        list = list[1].as_array().cloned().unwrap_or_default();
    }
    root["steps"] = list.into();
    root.to_string()
}

/// Runs a test with more stack than tests have, which serde_json takes for deep
/// programs where it is not optimised.
fn deep(test: fn()) {
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    thread
        .spawn(test)
        .expect("a thread")
        .join()
        .expect("no panic");
}

#[test]
fn a4_code_and_memory_of_compiling_are_bounded_by_the_source() {
    deep(code_and_memory_of_compiling_are_bounded_by_the_source);
}

fn code_and_memory_of_compiling_are_bounded_by_the_source() {
    let _turn = turn();
    let engine = Engine::new();
    for size in [100, 4_000] {
        for (name, steps) in hard_to_compile(size) {
            let text = text_of(steps);
            let bytes = text.len();
            let before = ALLOCATOR.forget();
            let compiled = engine.compile(text);
            let peak = ALLOCATOR.peak() - before;
            assert!(
                peak <= COMPILE_BYTES_PER_BYTE * bytes + (4 << 20),
                "{name}, {size}: {peak} bytes for {bytes}"
            );
            match compiled {
                Ok(agent) => {
                    let functions = &agent.artifact().program().functions;
                    let code: usize = functions.iter().map(|f| f.code.len()).sum();
                    assert!(
                        code <= BASE_CODE + CODE_PER_BYTE * bytes,
                        "{name}, {size}: {code} instructions for {bytes} bytes"
                    );
                }
                Err(refused) => {
                    let codes: Vec<&str> = refused.iter().map(|d| d.code).collect();
                    assert_eq!(codes, ["compile.too_large"], "{name}, {size}: {refused}");
                    let allowed = ["tables of names", "tables in scopes", "templates", "memos"];
                    assert!(allowed.contains(&name), "{name}, {size}: {refused}");
                    assert!(
                        refused
                            .iter()
                            .all(|d| d.help.is_some() && !d.pointer.is_empty())
                    );
                }
            }
        }
    }
}

#[test]
fn a4_a_program_at_run_time_counts_as_large_as_it_is() {
    deep(a_program_at_run_time_counts_as_large_as_it_is);
}

fn a_program_at_run_time_counts_as_large_as_it_is() {
    let _turn = turn();
    // 250 loops inside each other, each of which may bind ten names, and reads.
    let (_, steps) = hard_to_compile(3_000).swap_remove(0);
    let program = json!({"op": "seq", "steps": [steps]});
    let bytes = program.to_string().len();
    let outer = json!([
        {"op": "try", "try": [
            {"op": "agentRun", "agentId": program, "input": {"c": false, "xs": []}, "result": "x"}],
         "catch": [{"op": "return", "value": {"failed": id("error")}}]},
        {"op": "return", "value": {"ran": true}}]);
    for cap in [1 << 20, 2 << 20, 16 << 20, 64 << 20] {
        let (outcome, peak) = measured(&outer, options().heap_bytes(cap));
        assert!(
            peak <= cap + cap / 4 + (30 << 20),
            "{peak} bytes under {cap} for {bytes} bytes of program"
        );
        let ran = outcome.result.get("ran").is_some();
        assert_eq!(ran, cap >= 16 << 20, "{cap}: {outcome:?}");
    }
}
