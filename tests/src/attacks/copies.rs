//! Copies of values for the host, and work on them.

use super::terse::{bin, call, count, func, holes, id, list, lit, record, seq, set, text, times};
use super::{Attack, End};
use agent99::capabilities::{CapabilityError, Llm, MemoryStore, Reply};
use agent99::{Capabilities, CostModel, ErrorCode, RunOptions, Text, Value, json};
use serde_json::Value as Json;
use std::sync::LazyLock;

fn schema(name: &str, args: Vec<Json>) -> Json {
    call(id("Schema"), name, Json::Array(args))
}

/// `d`: a tree of 700,000 values in the space of two thousand.
fn tree() -> Vec<Json> {
    vec![set("d", holes(1_000)), set("d", times(700, id("d")))]
}

/// `o`: a tree of objects whose host copy is many times its JSON text.
fn objects() -> Vec<Json> {
    vec![
        set("o", times(1_000, record(&[]))),
        set("o", times(1_000, id("o"))),
    ]
}

/// `b`: the longest text that crosses the boundary.
fn long() -> Vec<Json> {
    vec![set("b", text((4 << 20) - 2))]
}

fn flat(options: RunOptions) -> RunOptions {
    options.cost_model(CostModel::Flat)
}

fn traced(options: RunOptions) -> RunOptions {
    options.trace(true)
}

/// A host whose model fails with a text of 30 MB, held by the host.
struct Verbose;

impl Llm for Verbose {
    fn predict(&self, _: Value, _: Value) -> Reply<'_> {
        static TEXT: LazyLock<Text> = LazyLock::new(|| "x".repeat(30_000_000).into());
        Box::pin(async { Err(CapabilityError::new(TEXT.clone())) })
    }
}

fn verbose() -> Capabilities {
    Capabilities::none().with_llm(Verbose)
}

fn stored() -> Capabilities {
    Capabilities::none().with_store(MemoryStore::new())
}

pub(super) fn attacks() -> Vec<Attack> {
    let of = |n: usize, v: &str| vec![id(v); n];
    let builder = |name: &str, v: &str, n: usize| set("r", schema(name, of(n, v)));
    let mut all = vec![
        Attack::new(
            "a1_shared_array_in_a_constant",
            seq(&[&tree(), &[builder("any", "d", 200)]]),
        )
        .ends(End::Returns),
        Attack::new(
            "a1_shared_array_in_a_union",
            seq(&[&tree(), &[builder("union", "d", 200)]]),
        ),
        Attack::new(
            "a1_shared_array_in_an_enum",
            seq(&[&tree(), &[builder("enum", "d", 200)]]),
        )
        .ends(End::Fails(ErrorCode::Boundary)),
        Attack::new(
            "a1_flat_shared_array_in_an_enum",
            seq(&[&tree(), &[builder("enum", "d", 200)]]),
        )
        .with(flat),
        Attack::new(
            "a1_shared_array_in_constants",
            seq(&[
                &tree(),
                &[set("l", list(json!([])))],
                &count(
                    50,
                    &[json!({"op": "push", "list": "l", "item": schema("const", of(1, "d"))})],
                ),
            ]),
        )
        .ends(End::HeapLimit),
        Attack::new(
            "a1_objects_of_an_example",
            seq(&[&objects(), &[builder("infer", "o", 1)]]),
        ),
        Attack::new(
            "a1_filter_of_objects",
            seq(&[
                &objects(),
                &[set("r", func("filter", json!([id("o"), id("o")])))],
            ]),
        ),
        Attack::new(
            "a1_validity_of_objects",
            seq(&[
                &objects(),
                &[
                    set("s", record(&[("anyOf", id("o"))])),
                    builder("isValid", "s", 2),
                ],
            ]),
        ),
        Attack::new(
            "a1_objects_in_a_store",
            seq(&[
                &objects(),
                &[json!({"op": "storeSet", "key": "k", "value": "o"})],
            ]),
        )
        .granted(stored),
        Attack::new(
            "a1_objects_in_the_runs_own_store",
            seq(&[
                &objects(),
                &count(40, &[json!({"op": "storeSet", "key": "i", "value": "o"})]),
            ]),
        ),
        Attack::new(
            "a1_objects_returned",
            seq(&[&objects(), &[json!({"op": "return", "value": {"o": "o"}})]]),
        ),
        Attack::new(
            "a1_objects_in_the_trace",
            seq(&[
                &objects(),
                &count(20, &[set("p", call(id("o"), "concat", json!([id("i")])))]),
            ]),
        )
        .with(traced),
        Attack::new(
            "a1_trees_in_the_trace",
            seq(&[
                &tree(),
                &count(20, &[set("p", call(id("d"), "concat", json!([id("i")])))]),
            ]),
        )
        .with(traced),
        Attack::new(
            "a2_long_text_in_constants",
            seq(&[&long(), &count(300, &[builder("email", "b", 50)])]),
        )
        .ends(End::Returns),
        Attack::new(
            "a2_long_text_in_patterns",
            seq(&[&long(), &count(30, &[builder("pattern", "b", 1)])]),
        )
        .ends(End::Returns),
        Attack::new(
            "a10_long_errors_of_a_capability",
            seq(&[&count(
                5,
                &[json!({"op": "try",
                    "try": [{"op": "llmPredict", "prompt": "p", "result": "r"}],
                    "catch": [set("e", bin("+", id("error"), lit("")))]})],
            )]),
        )
        .granted(verbose)
        .ends(End::Returns),
        Attack::new(
            "a10_long_errors_of_the_program",
            seq(&[
                &[set("b", text(20 << 20))],
                &count(
                    5,
                    &[json!({"op": "try",
                        "try": [{"op": "consoleError", "message": "b"}],
                        "catch": [set("e", id("error"))]})],
                ),
            ]),
        ),
        Attack::new(
            "a10_long_errors_of_an_expression",
            seq(&[
                &[set("b", text(20 << 20))],
                &count(
                    5,
                    &[json!({"op": "try",
                        "try": [set("x", func("Error", json!([id("b")])))],
                        "catch": [set("e", id("error"))]})],
                ),
            ]),
        ),
    ];
    for name in [
        "tuple",
        "record",
        "array",
        "object",
        "response",
        "fromExample",
        "const",
    ] {
        let steps = seq(&[&objects(), &[builder(name, "o", 2)]]);
        all.push(Attack::new(
            Box::leak(format!("a1_objects_in_{name}").into_boxed_str()),
            steps,
        ));
    }
    all
}
