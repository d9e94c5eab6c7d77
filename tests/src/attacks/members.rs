//! Objects that grow and shrink by members, and atoms that process whole lists and texts.

use super::terse::{bin, count, id, list, lit, seq, set, text};
use super::{Attack, CEILING, End};
use agent99::{RunOptions, json};
use serde_json::Value as Json;

const MANY: usize = 100_000_000;

/// A lower ceiling, which is reached sooner.
fn half(options: RunOptions) -> RunOptions {
    options.heap_bytes(CEILING / 2)
}

fn put(object: &str, key: Json) -> Json {
    json!({"op": "memberSet", "object": id(object), "key": key, "value": 1})
}

fn delete(object: &str, key: Json) -> Json {
    json!({"op": "memberDelete", "object": id(object), "key": key})
}

fn name(number: Json) -> Json {
    bin("+", lit("k"), number)
}

fn growing() -> Vec<Attack> {
    let start = [set("o", lit(json!({}))), set("l", lit(json!([])))];
    let run = |turns: usize, body: &[Json]| seq(&[&start, &count(turns, body)]);
    let pushed = json!({"op": "push", "list": id("l"), "item": id("v")});
    let mut many = vec![set("v", lit(json!({})))];
    many.extend((0..12).map(|n| put("v", bin("+", id("i"), lit(n)))));
    many.push(pushed.clone());
    let few = [set("v", lit(json!({}))), put("v", name(id("i"))), pushed];
    let walk = json!({"op": "keys", "obj": id("o"), "result": "n"});
    vec![
        Attack::new("a8_members_without_end", run(MANY, &[put("o", id("i"))]))
            .with(half)
            .ends(End::HeapLimit),
        Attack::new(
            "a8_named_members_without_end",
            run(MANY, &[put("o", name(id("i")))]),
        )
        .with(half)
        .ends(End::HeapLimit),
        Attack::new("a8_many_objects_that_grow", run(MANY, &many))
            .with(half)
            .ends(End::HeapLimit),
        Attack::new("a8_many_shapes_of_objects_that_grow", run(MANY, &few))
            .with(half)
            .ends(End::HeapLimit),
        Attack::new(
            "a8_a_hundred_thousand_members",
            run(100_000, &[put("o", name(id("i")))]),
        )
        .ends(End::Returns),
        Attack::new(
            "a8_members_that_come_and_go",
            run(
                400_000,
                &[
                    put("o", name(id("i"))),
                    delete("o", name(bin("-", id("i"), lit(1_000)))),
                ],
            ),
        )
        .with(half)
        .ends(End::Returns),
        Attack::new(
            "a8_members_deleted_from_the_front",
            seq(&[
                &start,
                &count(60_000, &[put("o", name(id("i")))]),
                &count(60_000, &[delete("o", name(id("i")))]),
                &[walk],
            ]),
        )
        .ends(End::Returns),
    ]
}

/// An atom on a list that doubles up to the ceiling.
fn of_lists() -> Vec<Attack> {
    let grow = |name: &'static str, item: Json, step: Json| {
        let twice = json!({"$expr": "methodCall", "object": id("v"), "method": "concat",
            "arguments": [id("v")]});
        let body = json!([step, set("x", Json::Null), set("v", twice)]);
        let steps = json!([
            set("v", list(json!([item.clone(), item]))),
            {"op": "while", "condition": lit(true), "body": body},
        ]);
        Attack::new(name, steps).ends(End::HeapLimit)
    };
    let item = || lit(json!({"k": "key", "n": 1}));
    let by = |op: &str, by: &str| json!({"op": op, "items": id("v"), "by": by, "result": "x"});
    vec![
        grow("a8_sorted_by_a_member", item(), by("sort", "k")),
        grow(
            "a8_sorted_by_many_members",
            item(),
            json!({"op": "sort", "items": id("v"), "by": ["k", "n", "k", "n"], "result": "x"}),
        ),
        grow("a8_grouped", item(), by("groupBy", "k")),
        grow("a8_unique", item(), by("unique", "k")),
        grow("a8_summed", item(), by("sum", "n")),
        grow("a8_sorted_numbers", lit(3), by("sort", "")),
    ]
}

/// Regular expressions that match at every place of the longest text.
fn of_patterns() -> Vec<Attack> {
    let long = 1_000_000;
    let run = |name: &'static str, step: Json| {
        let keep = json!({"op": "push", "list": id("l"), "item": id("x")});
        let steps = seq(&[
            &[set("t", text(long)), set("l", lit(json!([])))],
            &count(MANY, &[step, keep]),
        ]);
        Attack::new(name, steps).ends(End::HeapLimit)
    };
    vec![
        run(
            "a8_all_matches",
            json!({"op": "regexFindAll", "text": id("t"), "pattern": "(x)", "result": "x"}),
        ),
        run(
            "a8_split_everywhere",
            json!({"op": "regexSplit", "text": id("t"), "pattern": "", "result": "x"}),
        ),
        run(
            "a8_replaced_by_more",
            json!({"op": "regexReplace", "text": id("t"), "pattern": "x", "all": true,
                "replacement": lit("$&".repeat(200)), "result": "x"}),
        ),
    ]
}

pub(super) fn attacks() -> Vec<Attack> {
    [growing(), of_lists(), of_patterns()]
        .into_iter()
        .flatten()
        .collect()
}
