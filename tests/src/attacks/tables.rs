//! Memory beside the heap: keys, shapes, memo, store, warnings, trace.

use super::terse::{bin, call, count, id, list, lit, seq, set, text};
use super::{Attack, CEILING, End};
use agent99::{RunOptions, json};
use serde_json::Value as Json;

fn key(prefix: &str, number: Json) -> Json {
    bin("+", lit(prefix), number)
}

fn floor(number: Json) -> Json {
    call(id("Math"), "floor", json!([number]))
}

fn push(value: Json) -> Vec<Json> {
    vec![
        set("v", value),
        json!({"op": "push", "list": "l", "item": "v"}),
    ]
}

fn object(pairs: Vec<Json>) -> Json {
    call(
        id("Object"),
        "fromEntries",
        json!([list(Json::Array(pairs))]),
    )
}

fn pair(key: Json) -> Json {
    list(json!([key, lit(1)]))
}

const MANY: usize = 100_000_000;

/// A lower ceiling, which is reached sooner.
fn half(options: RunOptions) -> RunOptions {
    options.heap_bytes(CEILING / 2)
}

pub(super) fn attacks() -> Vec<Attack> {
    let start = [set("l", list(json!([])))];
    let mixed = |n: usize| {
        object(vec![
            pair(key("a", bin("%", id("i"), lit(n)))),
            pair(key("b", floor(bin("/", id("i"), lit(n))))),
        ])
    };
    let wide: Vec<Json> = (0..12)
        .map(|n| {
            pair(key(
                "k",
                bin("%", bin("*", id("i"), lit(2 * n + 1)), lit(4099 - n)),
            ))
        })
        .collect();
    let forever = |body: &[Json]| seq(&[&start, &count(MANY, body)]);
    vec![
        Attack::new("a8_many_shapes", forever(&push(mixed(1_000))))
            .with(half)
            .ends(End::HeapLimit),
        Attack::new("a8_many_shapes_with_an_index", forever(&push(object(wide))))
            .with(half)
            .ends(End::HeapLimit),
        Attack::new(
            "a8_many_keys",
            forever(&push(object(vec![pair(key("key", id("i")))]))),
        )
        .with(half)
        .ends(End::HeapLimit),
        Attack::new(
            "a8_many_keys_in_one_object",
            seq(&[
                &start,
                &count(250_000, &push(pair(key("k", id("i"))))),
                &[set(
                    "o",
                    call(id("Object"), "fromEntries", json!([id("l")])),
                )],
                &[set(
                    "p",
                    call(id("Object"), "assign", json!([json!({}), id("o")])),
                )],
                &[json!({"op": "merge", "a": "o", "b": "p", "result": "q"})],
                &[json!({"op": "omit", "obj": "q", "keys": ["k1"], "result": "m"})],
                &[set("t", call(id("JSON"), "stringify", json!([id("q")])))],
                &[set("u", call(id("JSON"), "parse", json!([id("t")])))],
            ]),
        ),
        Attack::new(
            "a8_many_numbered_keys",
            forever(&push(object(vec![pair(call(
                id("i"),
                "toString",
                json!([]),
            ))]))),
        )
        .with(half)
        .ends(End::HeapLimit),
        Attack::new(
            "a8_small_store_entries",
            seq(&[&count(
                MANY,
                &[json!({"op": "storeSet", "key": "i", "value": 1})],
            )]),
        )
        .ends(End::HeapLimit),
        Attack::new(
            "a8_small_store_entries_with_text_keys",
            seq(&[&count(
                MANY,
                &[
                    set("k", key("k", id("i"))),
                    json!({"op": "storeSet", "key": "k", "value": "k"}),
                ],
            )]),
        )
        .ends(End::HeapLimit),
        Attack::new(
            "a8_small_objects_in_the_store",
            seq(&[&count(
                MANY,
                &[json!({"op": "storeSet", "key": "i", "value": {"a": {}, "b": []}})],
            )]),
        )
        .ends(End::HeapLimit),
        Attack::new(
            "a8_small_memo_entries",
            seq(&[&count(
                MANY,
                &[json!({"op": "memoize", "key": "i", "steps": [set("result", lit(1))]})],
            )]),
        )
        .ends(End::HeapLimit),
        Attack::new(
            "a8_small_cache_entries",
            seq(&[&count(
                MANY,
                &[json!({"op": "cache", "key": "i", "steps": [set("result", lit(1))]})],
            )]),
        )
        .ends(End::HeapLimit),
        Attack::new(
            "a8_small_trace_events",
            seq(&[&count(200_000, &[set("x", id("i"))])]),
        )
        .with(|options| options.trace(true))
        .ends(End::Returns),
        Attack::new(
            "a8_text_then_lists",
            seq(&[
                &[
                    set("s", text(50 << 20)),
                    set("s", lit(0)),
                    set("l", list(json!([]))),
                ],
                &count(MANY, &push(list(json!([id("i")])))),
            ]),
        )
        .ends(End::HeapLimit),
        Attack::new(
            "a8_lists_then_text",
            seq(&[
                &start,
                &count(400_000, &push(list(json!([id("i")])))),
                &[
                    set("l", lit(0)),
                    set("s", text(16 << 20)),
                    set("t", text(16 << 20)),
                ],
                &count(3, &[set("s", bin("+", id("s"), id("t")))]),
            ]),
        ),
        Attack::new(
            "a8_scattered_text",
            seq(&[
                &[
                    set("s", call(text(1 << 20), "split", json!([lit("")]))),
                    set("l", list(json!([]))),
                ],
                &count(
                    MANY,
                    &[
                        set("g", key("g", id("i"))),
                        set("v", key("", id("i"))),
                        json!({"op": "push", "list": "l", "item": "v"}),
                    ],
                ),
            ]),
        )
        .ends(End::HeapLimit),
    ]
}
