//! Operations whose time grows with their operands.

use a99_core::value::Value;
use serde_json::{Value as Json, json};

fn id(name: &str) -> Json {
    json!({"$expr": "ident", "name": name})
}

fn lit(value: impl Into<Json>) -> Json {
    json!({"$expr": "literal", "value": value.into()})
}

fn call(object: Json, method: &str, arguments: Json) -> Json {
    json!({"$expr": "methodCall", "object": object, "method": method, "arguments": arguments})
}

fn func(callee: &str, arguments: Json) -> Json {
    json!({"$expr": "call", "callee": callee, "arguments": arguments})
}

fn bin(op: &str, left: Json, right: Json) -> Json {
    json!({"$expr": "binary", "op": op, "left": left, "right": right})
}

fn set(key: &str, value: Json) -> Json {
    json!({"op": "varSet", "key": key, "value": value})
}

/// Arguments of the programs, of 1/`part` of the full size.
pub(crate) fn args(part: u32) -> Value {
    let numbers: Vec<u64> = (0..200_000 / u64::from(part))
        .map(|i| i.wrapping_mul(2_654_435_761) % 1_000_003)
        .collect();
    let pairs: Vec<Json> = (0..40_000 / part)
        .map(|i| json!([format!("key {i}"), i]))
        .collect();
    let names: Vec<String> = (0..20_000 / part).map(|i| format!("name {i}")).collect();
    json!({"numbers": numbers, "pairs": pairs, "names": names}).into()
}

/// The names of variables in a part of a program.
fn names_in(part: &Json, names: &mut Vec<String>) {
    match part {
        Json::Array(list) => list.iter().for_each(|part| names_in(part, names)),
        Json::Object(map) => {
            if let (Some("ident"), Some(name)) =
                (map.get("$expr").and_then(Json::as_str), map.get("name"))
            {
                names.extend(name.as_str().map(str::to_owned));
            }
            map.values().for_each(|part| names_in(part, names));
        }
        _ => {}
    }
}

/// Functions of the program; all of them are called by `caller`.
pub(crate) fn helpers(part: u32) -> Json {
    let helper = |i| json!({"steps": [{"op": "varSet", "key": "x", "value": i}]});
    let named = |i| (format!("helper {i}"), helper(i));
    Json::Object((0..2_000 / part).map(named).collect())
}

/// The preparations that an operation needs.
pub(crate) fn preparations(operation: &Json, part: u32) -> Vec<Json> {
    let mut names = Vec::new();
    names_in(operation, &mut names);
    let mut steps = Vec::new();
    for step in all_preparations(part).into_iter().rev() {
        let key = step["key"].as_str().unwrap_or_default();
        if names.iter().any(|name| name == key) {
            names_in(&step["value"], &mut names);
            steps.push(step);
        }
    }
    steps.push(json!({"op": "varsImport", "keys": ["numbers", "pairs", "names"]}));
    steps.reverse();
    steps
}

/// Long texts, lists and objects.
fn all_preparations(part: u32) -> Vec<Json> {
    let long = |text: &str, n: u32| call(lit(text), "repeat", json!([lit(n / part)]));
    vec![
        set(
            "text",
            long("the quick brown fox jumps over the lazy dog ", 100_000),
        ),
        set(
            "twin",
            bin(
                "+",
                long(
                    "the quick brown fox jumps over the lazy dog ",
                    100_000 - part,
                ),
                lit("the quick brown fox jumps over the lazy dog "),
            ),
        ),
        set("wide", long("größe 😀 ΟΔΟΣ\u{301} ", 150_000)),
        set("n", lit(3)),
        set("spaces", long(" ", 4_000_000)),
        set("digits", long("7", 4_000_000)),
        set(
            "page",
            call(id("text"), "slice", json!([lit(0), lit(50_000)])),
        ),
        set("words", call(id("page"), "split", json!([lit(" ")]))),
        set(
            "texts",
            json!({"$expr": "array", "elements": [id("text"), id("twin"), id("text"), id("twin")]}),
        ),
        set(
            "object",
            call(id("Object"), "fromEntries", json!([id("pairs")])),
        ),
        set(
            "keyed",
            call(
                id("Object"),
                "fromEntries",
                json!([
                    {"$expr": "array", "elements": [{"$expr": "array", "elements": [id("twin"), lit(1)]}]}
                ]),
            ),
        ),
        set(
            "document",
            call(id("JSON"), "stringify", json!([id("pairs")])),
        ),
        set(
            "program",
            lit(json!({"op": "seq", "steps": (0..4_000 / part)
                .map(|i| json!({"op": "varSet", "key": format!("v{}", i % 100), "value": {
                    "$expr": "binary", "op": "+",
                    "left": {"$expr": "literal", "value": i},
                    "right": {"$expr": "literal", "value": format!("text {i}")},
                }}))
                .collect::<Vec<Json>>()})),
        ),
        set(
            "caller",
            lit(json!({"op": "seq", "steps": (0..2_000 / part)
                .map(|i| json!({"op": "callLocal", "name": format!("helper {i}")}))
                .collect::<Vec<Json>>()})),
        ),
        set("set", func("Set", json!([id("numbers")]))),
        set(
            "schema",
            json!({"$expr": "literal", "value": {
                "type": "array",
                "items": {"type": "array", "items": {"anyOf": [{"type": "boolean"}, {"enum": ["x"]}, {}]}},
            }}),
        ),
    ]
}

/// Name and step of each operation.
pub(crate) fn operations() -> Vec<(String, Json)> {
    let mut all: Vec<(String, Json)> = Vec::new();
    let mut expr = |name: &str, value: Json| all.push((name.to_owned(), set("x", value)));
    for (op, right) in [
        ("==", "twin"),
        ("===", "twin"),
        ("<", "twin"),
        ("+", "twin"),
    ] {
        expr(op, bin(op, id("text"), id(right)));
    }
    expr("- of text", bin("-", id("digits"), lit(1)));
    expr("text of a list", bin("+", id("numbers"), lit("")));
    expr(
        "o[k]",
        json!({"$expr": "member", "object": id("keyed"), "property": id("text"), "computed": true}),
    );
    expr(
        "s[i]",
        json!({"$expr": "member", "object": id("wide"), "property": lit(1_000_000), "computed": true}),
    );
    for (method, arguments) in [
        ("at", json!([lit(1_000_000)])),
        ("charAt", json!([lit(1_000_000)])),
        ("charCodeAt", json!([lit(1_000_000)])),
        ("codePointAt", json!([lit(1_000_000)])),
        ("concat", json!([id("text")])),
        ("endsWith", json!([id("text")])),
        ("includes", json!([lit("zebra")])),
        ("indexOf", json!([lit("zebra")])),
        ("lastIndexOf", json!([lit("zebra")])),
        ("localeCompare", json!([bin("+", id("text"), lit("y"))])),
        ("normalize", json!([lit("NFKD")])),
        ("normalize", json!([lit("NFC")])),
        ("padEnd", json!([lit(8_000_000), lit("ab")])),
        ("padStart", json!([lit(8_000_000), lit("ab")])),
        ("repeat", json!([lit(2)])),
        ("replace", json!([lit("zebra"), lit("x")])),
        ("replaceAll", json!([lit("o"), lit("oo")])),
        ("slice", json!([lit(100_000), lit(1_200_000)])),
        ("split", json!([lit(" ")])),
        ("split", json!([lit("")])),
        ("startsWith", json!([id("text")])),
        ("substring", json!([lit(100_000), lit(1_200_000)])),
        ("toLowerCase", json!([])),
        ("toUpperCase", json!([])),
        ("toLocaleUpperCase", json!([])),
        ("trim", json!([])),
        ("isWellFormed", json!([])),
        ("toWellFormed", json!([])),
        ("bold", json!([])),
        ("anchor", json!([id("page")])),
    ] {
        for text in ["text", "wide"] {
            expr(
                &format!(
                    "{text}.{method}({})",
                    arguments.as_array().map_or(0, Vec::len)
                ),
                call(id(text), method, arguments.clone()),
            );
        }
    }
    expr("spaces.trim", call(id("spaces"), "trim", json!([])));
    expr(
        "text.localeCompare(twin)",
        call(id("text"), "localeCompare", json!([id("twin")])),
    );
    for (method, arguments) in [
        ("at", json!([lit(-1)])),
        ("concat", json!([id("numbers")])),
        ("entries", json!([])),
        ("every", json!([id("isFinite")])),
        ("filter", json!([id("Boolean")])),
        ("find", json!([id("isNaN")])),
        ("flat", json!([])),
        ("includes", json!([lit(-1)])),
        ("indexOf", json!([lit(-1)])),
        ("join", json!([lit(", ")])),
        ("keys", json!([])),
        ("lastIndexOf", json!([lit(-1)])),
        ("map", json!([id("String")])),
        ("reverse", json!([])),
        ("slice", json!([])),
        ("toReversed", json!([])),
        ("toSorted", json!([])),
        ("toSpliced", json!([lit(1), lit(1)])),
        ("with", json!([lit(1), lit(1)])),
        ("toString", json!([])),
        ("toLocaleString", json!([])),
    ] {
        expr(
            &format!("numbers.{method}"),
            call(id("numbers"), method, arguments),
        );
    }
    for (method, needle) in [
        ("includes", "twin"),
        ("indexOf", "twin"),
        ("toSorted", "twin"),
    ] {
        let arguments = if method == "toSorted" {
            json!([])
        } else {
            json!([id(needle)])
        };
        expr(
            &format!("texts.{method}"),
            call(id("texts"), method, arguments),
        );
    }
    expr(
        "names.includes",
        call(id("names"), "includes", json!([lit("name -1")])),
    );
    expr("words.toSorted", call(id("words"), "toSorted", json!([])));
    for method in ["keys", "values", "entries"] {
        expr(
            &format!("Object.{method}"),
            call(id("Object"), method, json!([id("object")])),
        );
    }
    expr(
        "Object.keys of text",
        call(id("Object"), "keys", json!([id("page")])),
    );
    expr(
        "Object.assign",
        call(id("Object"), "assign", json!([id("object"), id("object")])),
    );
    expr(
        "Object.fromEntries",
        call(id("Object"), "fromEntries", json!([id("pairs")])),
    );
    expr(
        "Object.hasOwn",
        call(id("Object"), "hasOwn", json!([id("keyed"), id("text")])),
    );
    expr(
        "hasOwnProperty",
        call(id("keyed"), "hasOwnProperty", json!([id("text")])),
    );
    expr(
        "Array.from text",
        call(id("Array"), "from", json!([id("page")])),
    );
    expr(
        "Array.from length",
        call(
            id("Array"),
            "from",
            json!([lit(json!({"length": 300_000}))]),
        ),
    );
    expr(
        "JSON.parse",
        call(id("JSON"), "parse", json!([id("document")])),
    );
    expr(
        "JSON.stringify",
        call(id("JSON"), "stringify", json!([id("pairs")])),
    );
    expr(
        "JSON.stringify text",
        call(id("JSON"), "stringify", json!([id("wide")])),
    );
    for function in [
        "encodeURI",
        "encodeURIComponent",
        "decodeURI",
        "decodeURIComponent",
    ] {
        expr(function, func(function, json!([id("wide")])));
    }
    for function in ["parseFloat", "parseInt", "Number", "isNaN"] {
        expr(function, func(function, json!([id("digits")])));
        expr(
            &format!("{function} of spaces"),
            func(function, json!([id("spaces")])),
        );
    }
    expr("Date", func("Date", json!([id("digits")])));
    expr("Date.parse", call(id("Date"), "parse", json!([id("text")])));
    expr("Set", func("Set", json!([id("numbers")])));
    expr("Set of texts", func("Set", json!([id("texts")])));
    expr(
        "set.union",
        call(id("set"), "union", json!([id("numbers")])),
    );
    expr("set.diff", call(id("set"), "diff", json!([id("numbers")])));
    expr("set.has", call(id("set"), "has", json!([lit(-1)])));
    expr("set.toArray", call(id("set"), "toArray", json!([])));
    expr("filter", func("filter", json!([id("pairs"), id("schema")])));
    expr(
        "filter by example",
        func("filter", json!([id("pairs"), id("pairs")])),
    );
    expr(
        "Schema.isValid",
        call(id("Schema"), "isValid", json!([id("pairs"), id("schema")])),
    );
    expr(
        "Schema.isValid of its names",
        call(
            id("Schema"),
            "isValid",
            json!([lit("x"), {
                "$expr": "object", "properties": [{"key": "enum", "value": id("names")}]
            }]),
        ),
    );
    for name in [
        "infer",
        "fromExample",
        "enum",
        "tuple",
        "union",
        "object",
        "const",
    ] {
        let of = if name == "object" { "object" } else { "pairs" };
        expr(
            &format!("Schema.{name}"),
            call(id("Schema"), name, json!([id(of)])),
        );
    }
    for format in ["email", "uri", "date-time", "ipv4", "uuid", "emoji"] {
        for text in ["text", "digits", "spaces"] {
            expr(
                &format!("{format} of {text}"),
                call(
                    id("Schema"),
                    "isValid",
                    json!([id(text), lit(json!({"type": "string", "format": format}))]),
                ),
            );
        }
    }
    let mut atom = |name: &str, step: Json| all.push((name.to_owned(), step));
    for (op, step) in [
        ("eq", json!({"a": "text", "b": "twin"})),
        ("lt", json!({"a": "text", "b": "twin"})),
        ("split", json!({"str": "text", "sep": " "})),
        ("join", json!({"list": "numbers", "sep": ", "})),
        ("push", json!({"list": "numbers", "item": "text"})),
        ("len", json!({"list": "numbers"})),
        (
            "template",
            json!({"tmpl": "{{text}} and {{twin}}", "vars": {"text": "text", "twin": "twin"}}),
        ),
        ("pick", json!({"obj": "object", "keys": "names"})),
        ("omit", json!({"obj": "object", "keys": "names"})),
        ("merge", json!({"a": "object", "b": "object"})),
        ("keys", json!({"obj": "object"})),
        (
            "memberSet",
            json!({"object": "object", "key": "more", "value": 1}),
        ),
        ("memberDelete", json!({"object": "object", "key": "more"})),
        ("jsonParse", json!({"str": "document"})),
        ("jsonStringify", json!({"value": "pairs"})),
        ("hash", json!({"value": "text"})),
        ("hash of data", json!({"value": "pairs"})),
        (
            "regexMatch",
            json!({"pattern": "(a|b|ab)*c$", "value": "page"}),
        ),
        (
            "regexMatch of many",
            json!({"pattern": "(?:\\s{1,50}|\\W{1,50}){9}qN", "value": "page"}),
        ),
        (
            "regexMatch of optionals",
            json!({"pattern": "(?:.?){900}zz", "value": "page"}),
        ),
    ] {
        let mut step = step;
        for value in step
            .as_object_mut()
            .into_iter()
            .flat_map(|map| map.values_mut())
        {
            if let Json::String(name) = value
                && [
                    "text", "twin", "numbers", "object", "names", "document", "pairs", "page",
                ]
                .contains(&name.as_str())
            {
                *value = id(name);
            }
        }
        step["op"] = json!(op.split(' ').next());
        step["result"] = json!("x");
        if op == "template" {
            step["vars"] = json!({"text": id("text"), "twin": id("twin")});
        }
        atom(op, step);
    }
    for (op, body) in [
        (
            "map",
            json!({"op": "map", "items": id("numbers"), "as": "n", "steps": [], "result": "x"}),
        ),
        (
            "memoize",
            json!({"op": "memoize", "key": id("pairs"), "steps": [], "result": "x"}),
        ),
    ] {
        atom(op, body);
    }
    for (name, value) in straight() {
        let steps = vec![set("x", value); STRAIGHT];
        let all_of_it = json!({"op": "seq", "steps": steps});
        all.push((format!("straight {name}"), all_of_it));
    }
    all
}

/// Steps in a row without a loop or branch: more than a block holds.
const STRAIGHT: usize = 1_000;

/// Cheap operations that take long only in great numbers: name and expression.
fn straight() -> Vec<(&'static str, Json)> {
    let member =
        |object: Json, key: &str| json!({"$expr": "member", "object": object, "property": key});
    let pair = json!({"key": "a", "value": lit(1)});
    vec![
        ("moves", id("n")),
        ("sums", bin("+", id("n"), bin("*", id("n"), lit(2)))),
        (
            "remainders",
            bin("%", bin("*", id("n"), lit(1e300)), lit(7.3)),
        ),
        ("powers", bin("**", lit(1.000_1), lit(1e5))),
        ("members", member(member(id("object"), "key 5"), "none")),
        ("texts", bin("+", lit("a"), id("n"))),
        ("literals", json!({"a": [1, 2], "b": "c"})),
        ("objects", json!({"$expr": "object", "properties": [pair]})),
        ("lists", json!({"$expr": "array", "elements": [id("n")]})),
        ("functions", func("isNaN", json!([id("n")]))),
        ("methods", call(lit("abc"), "charAt", json!([lit(1)]))),
    ]
}
