//! Forms, operators, members, literals, conditions, schemas, regular
//! expressions and helpers.

use super::{Case, call, id, lit, method};
use a99_testkit::cost::Shape::{self, *};
use serde_json::{Value as Json, json};

pub(super) fn set(key: &str, value: Json) -> Json {
    json!({"op": "varSet", "key": key, "value": value})
}

pub(super) fn binary(op: &str, left: Json, right: Json) -> Json {
    json!({"$expr": "binary", "op": op, "left": left, "right": right})
}

fn object(members: &[(&str, Json)]) -> Json {
    let list: Vec<Json> = members
        .iter()
        .map(|(key, value)| json!({"key": key, "value": value}))
        .collect();
    json!({"$expr": "object", "properties": list})
}

/// All cases.
pub(crate) fn cases() -> Vec<Case> {
    let mut out = operators();
    out.extend(members());
    out.extend(own_members());
    out.extend(forms());
    out.extend(more_forms());
    out.extend(conditions());
    out.extend(schemas());
    out
}

const OPERANDS: [(Shape, Shape); 16] = [
    (Number, Number),
    (Text, Piece),
    (Text, Text),
    (Text, Other),
    (LongTexts, LongTexts),
    (Wide, Wide),
    (Wide, Piece),
    (Piece, Text),
    (Digits, Number),
    (Digits, Digits),
    (Spaces, Zero),
    (Numbers, Number),
    (Fractions, Piece),
    (Nested, Text),
    (Record, Number),
    (Texts, Text),
];

fn operators() -> Vec<Case> {
    let mut out = Vec::new();
    let ops = [
        "+", "-", "*", "/", "%", "**", "==", "!=", "===", "!==", "<", "<=", ">", ">=",
    ];
    for op in ops {
        for (l, r) in OPERANDS {
            let value = binary(op, id("a"), id("b"));
            let case = Case::expr("operators", op, &format!("{l:?} {r:?}"), &value);
            out.push(case.var("a", l).var("b", r));
        }
    }
    for op in ["&&", "||", "??"] {
        for (l, r) in [(Number, Text), (Zero, Number)] {
            let value = json!({"$expr": "logical", "op": op, "left": id("a"), "right": id("b")});
            let case = Case::expr("operators", op, &format!("{l:?} {r:?}"), &value);
            out.push(case.var("a", l).var("b", r));
        }
    }
    for op in ["!", "-", "+", "typeof"] {
        for shape in [
            Number, Text, Digits, Wide, Numbers, Fractions, Nested, Record,
        ] {
            let value = json!({"$expr": "unary", "op": op, "argument": id("a")});
            let row = format!("{op} (unary)");
            out.push(Case::expr("operators", &row, &format!("{shape:?}"), &value).var("a", shape));
        }
    }
    let choice = json!({"$expr": "conditional", "test": id("a"), "consequent": id("a"),
        "alternate": lit(1)});
    for shape in [Number, Text, Numbers] {
        out.push(Case::expr("operators", "?:", &format!("{shape:?}"), &choice).var("a", shape));
    }
    out
}

fn members() -> Vec<Case> {
    let mut out = Vec::new();
    let named = |property: &str, optional: bool| json!({"$expr": "member", "object": id("a"), "property": property, "optional": optional});
    let computed = json!({"$expr": "member", "object": id("a"), "property": id("b"),
        "computed": true});
    for shape in [Small, Record, Numbered, Numbers, Texts, Text, Wide] {
        for property in ["length", "id", "key50", "7", "none"] {
            for optional in [false, true] {
                let variant = format!("{shape:?} {property} {optional}");
                let case = Case::expr("members", "named", &variant, &named(property, optional));
                out.push(case.var("a", shape));
            }
        }
        for key in [
            Zero, Half, Last, Minus, Piece, Text, Wide, Digits, Number, Numbers,
        ] {
            let variant = format!("{shape:?} {key:?}");
            let case = Case::expr("members", "computed", &variant, &computed);
            out.push(case.var("a", shape).var("b", key));
        }
    }
    for field in ["year", "month", "timestamp"] {
        let value = json!({"$expr": "member", "object": id("d"), "property": field});
        let date = set("d", call("Date", vec![lit(0)]));
        out.push(Case::expr("members", "named", &format!("Date {field}"), &value).first(date));
    }
    let size = json!({"$expr": "member", "object": id("s"), "property": "size"});
    let make = set("s", call("Set", vec![id("a")]));
    out.push(
        Case::expr("members", "named", "Set size", &size)
            .var("a", Numbers)
            .first(make),
    );
    let array = json!({"$expr": "array", "elements": vec![id("a"); 100]});
    out.push(Case::expr("literals", "array", "100", &array).var("a", Number));
    let keys: Vec<String> = (0..100).map(|i| format!("k{i}")).collect();
    let list: Vec<(&str, Json)> = keys.iter().map(|k| (k.as_str(), id("a"))).collect();
    out.push(Case::expr("literals", "object", "100", &object(&list)).var("a", Number));
    let nested: Json = (0..100)
        .map(|i| json!({"n": i, "l": [1, "a", null]}))
        .collect();
    out.push(Case::expr("literals", "data", "100 objects", &nested));
    let nodes: Json = (0..100).map(|_| id("a")).collect();
    out.push(Case::expr("literals", "nodes in data", "100", &nodes).var("a", Number));
    let arg = json!({"$kind": "arg", "path": "a.id"});
    out.push(Case::expr("literals", "argument", "path", &arg).var("a", Small));
    out.push(Case::expr("literals", "path", "name", &json!("a.id")).var("a", Small));
    out
}

/// Members in programs of version 4: computed keys of objects, and names that older versions
/// refuse.
fn own_members() -> Vec<Case> {
    const REFUSED: &str = "constructor";
    let named = json!({"$expr": "member", "object": id("a"), "property": REFUSED});
    let computed = json!({"$expr": "member", "object": id("a"), "property": id("b"),
        "computed": true});
    let keyed = json!({"$expr": "object",
        "properties": [{"key": id("b"), "value": 1}, {"key": "k", "value": 2}]});
    let has = json!({"op": "memberSet", "object": id("a"), "key": REFUSED, "value": 1});
    let mut out = Vec::new();
    let mut add = |case: Case| {
        out.push(Case {
            root: Some(json!({"a99": 4})),
            ..case
        });
    };
    for shape in [Small, Record, Numbered] {
        let member = Case::expr("members", "own", &format!("{shape:?}"), &named);
        add(member.var("a", shape).first(has.clone()));
        let path = json!(format!("a.{REFUSED}"));
        let path = Case::expr("members", "own path", &format!("{shape:?}"), &path);
        add(path.var("a", shape).first(has.clone()));
    }
    for shape in [Small, Record, Numbered, Numbers, Text] {
        for key in [Zero, Last, Piece, Text, Wide, Number] {
            let variant = format!("{shape:?} {key:?}");
            let case = Case::expr("members", "own computed", &variant, &computed);
            add(case.var("a", shape).var("b", key));
        }
    }
    for key in [Zero, Piece, Text, Wide, Number] {
        let case = Case::expr("literals", "computed key", &format!("{key:?}"), &keyed);
        add(case.var("b", key));
    }
    out
}

/// Forms that are single steps, as atoms of the registry.
fn forms() -> Vec<Case> {
    let one = || vec![set("x", json!(1))];
    let form =
        |name: &str, variant: &str, step: Json| Case::steps("atoms", name, variant, vec![step]);
    let mut out = vec![
        form("seq", "one", json!({"op": "seq", "steps": one()})),
        form("seq", "none", json!({"op": "seq", "steps": []})),
        form(
            "if",
            "text",
            json!({"op": "if", "condition": "i >= 0", "then": one()}),
        ),
        form(
            "if",
            "node",
            json!({"op": "if", "condition": id("i"), "then": one(), "else": one()}),
        ),
        form(
            "if",
            "empty",
            json!({"op": "if", "condition": id("i"), "then": []}),
        ),
        form(
            "try",
            "ok",
            json!({"op": "try", "try": one(), "catch": one()}),
        ),
        form(
            "try",
            "caught",
            json!({"op": "try", "try": [{"op": "Error", "args": ["no"]}],
            "catch": one()}),
        ),
        form(
            "Error",
            "caught",
            json!({"op": "try", "try": [{"op": "Error", "args": ["no"]}],
            "catch": []}),
        ),
        form("scope", "one", json!({"op": "scope", "steps": one()})),
        form("varSet", "number", set("x", json!(1))),
        form("varSet", "node", set("x", id("i"))),
        form(
            "varGet",
            "name",
            json!({"op": "varGet", "key": "i", "result": "t"}),
        ),
        form(
            "varsImport",
            "one",
            json!({"op": "varsImport", "keys": ["turns"]}),
        ),
        form(
            "varsImport",
            "renamed",
            json!({"op": "varsImport", "keys": {"z": "turns"}}),
        ),
        form("varsLet", "one", json!({"op": "varsLet", "z": 1})),
        form(
            "varsExport",
            "one",
            json!({"op": "varsExport", "keys": ["i"], "result": "t"}),
        ),
        form(
            "mathCalc",
            "sum",
            json!({"op": "mathCalc", "expr": "i * 2 + 1", "result": "t"}),
        ),
        form(
            "mathCalc",
            "vars",
            json!({"op": "mathCalc", "expr": "sqrt(k) + max(k, 3)",
            "vars": {"k": id("i")}, "result": "t"}),
        ),
        form(
            "constSet",
            "in scope",
            json!({"op": "scope", "steps": [
            {"op": "constSet", "key": "c", "value": 1}]}),
        ),
        form(
            "while",
            "node",
            json!({"op": "seq", "steps": [set("k", json!(0)), {"op": "while",
            "condition": binary("<", id("k"), lit(100)),
            "body": [set("k", binary("+", id("k"), lit(1)))]}]}),
        ),
        form(
            "while",
            "text",
            json!({"op": "seq", "steps": [set("k", json!(0)), {"op": "while",
            "condition": "k < 100", "body": [set("k", binary("+", id("k"), lit(1)))]}]}),
        ),
        form(
            "while",
            "empty body",
            json!({"op": "seq", "steps": [set("k", json!([1])), {"op":
            "while", "condition": {"$expr": "methodCall", "object": id("k"), "method": "pop",
            "arguments": []}, "body": []}]}),
        ),
    ];
    for shape in [Numbers, Texts, Objects] {
        let name = format!("{shape:?}");
        let items = || id("a");
        let cases = [
            (
                "map",
                json!({"op": "map", "items": items(), "as": "it", "result": "t",
                "steps": [set("result", id("it"))]}),
            ),
            (
                "map",
                json!({"op": "map", "items": items(), "as": "it", "result": "t",
                "steps": []}),
            ),
            (
                "filter",
                json!({"op": "filter", "items": items(), "as": "it", "result": "t",
                "condition": id("it")}),
            ),
            (
                "filter",
                json!({"op": "filter", "items": items(), "as": "it", "result": "t",
                "condition": "it != 3"}),
            ),
            (
                "find",
                json!({"op": "find", "items": items(), "as": "it", "result": "t",
                "condition": "it == -1"}),
            ),
            (
                "reduce",
                json!({"op": "reduce", "items": items(), "as": "it", "accumulator": "acc",
                "initial": 0, "result": "t", "steps": [set("result", id("it"))]}),
            ),
        ];
        for (place, (row, step)) in cases.into_iter().enumerate() {
            out.push(form(row, &format!("{name} {place}"), step).var("a", shape));
        }
    }
    out
}

/// Loops over items in the surrounding scope, and concurrent calls.
fn loops() -> Vec<Case> {
    let mut out = Vec::new();
    let mut add = |row: &str, variant: &str, shape: Shape, step: Json| {
        let case = Case::steps("atoms", row, &format!("{shape:?} {variant}"), vec![step]);
        out.push(Case {
            root: Some(json!({"a99": 4})),
            ..case.var("a", shape)
        });
    };
    for shape in [Numbers, Texts, Objects] {
        for (row, variant, steps) in [
            ("forEach", "sets", json!([set("x", id("it"))])),
            ("forEach", "empty", json!([])),
            (
                "continue",
                "each",
                json!([{"op": "continue"}, set("x", id("it"))]),
            ),
            ("break", "first", json!([{"op": "break"}])),
        ] {
            let step = json!({"op": "forEach", "items": id("a"), "as": "it", "steps": steps});
            add(row, variant, shape, step);
        }
        for call in [
            json!({"op": "storeGet", "key": "k"}),
            json!({"op": "storeSet", "key": "k", "value": id("it")}),
            json!({"op": "template", "tmpl": "{{it}}", "vars": {"it": id("it")}}),
        ] {
            let variant = call["op"].as_str().unwrap_or_default().to_owned();
            let step = json!({"op": "callAll", "items": id("a"), "as": "it", "call": call,
                "result": "t"});
            add("callAll", &variant, shape, step);
        }
    }
    let calls: Json = (0..20)
        .map(|_| json!({"op": "storeGet", "key": "k"}))
        .collect();
    let step = json!({"op": "callAll", "calls": calls, "result": "t"});
    add("callAll", "listed", Number, step);
    out
}

/// Forms that need more than one step.
fn more_forms() -> Vec<Case> {
    let mut out = loops();
    let helpers = json!({"helpers": {
        "h": {"paramNames": ["n"], "steps": [{"op": "return", "value": id("n")}]},
        "deep": {"paramNames": ["n"], "steps": [
            {"op": "if", "condition": "n < 1", "then": [{"op": "return", "value": lit(0)}]},
            {"op": "callLocal", "name": "deep", "args": [binary("-", id("n"), lit(1))],
                "result": "m"},
            {"op": "return", "value": id("m")}]},
    }});
    for (variant, name, arg) in [("one", "h", 1), ("100 deep", "deep", 100)] {
        let step = json!({"op": "callLocal", "name": name, "args": [arg], "result": "t"});
        for (group, row) in [("atoms", "callLocal"), ("atoms", "return")] {
            let case = Case::steps(group, row, variant, vec![step.clone()]);
            out.push(Case {
                root: Some(helpers.clone()),
                ..case
            });
        }
    }
    for shape in [Piece, Text, Wide, Numbers, Record] {
        let name = format!("{shape:?}");
        for row in ["memoize", "cache"] {
            let step = json!({"op": row, "key": id("a"), "steps": [set("x", json!(1))],
                "result": "t"});
            out.push(Case::steps("atoms", row, &name, vec![step]).var("a", shape));
            let step = json!({"op": row, "steps": [set("x", id("a"))], "result": "t"});
            let variant = format!("{name} no key");
            out.push(Case::steps("atoms", row, &variant, vec![step]).var("a", shape));
        }
    }
    for (variant, steps) in [("empty", json!([])), ("one", json!([set("x", json!(1))]))] {
        for row in ["agentRun", "runCode"] {
            let key = if row == "agentRun" { "agentId" } else { "code" };
            let program = json!({"op": "seq", "steps": steps});
            let step = json!({"op": row, key: program, "input": {}, "args": {}, "result": "t"});
            let kept = json!({"op": row, key: id("prog"), "input": {}, "args": {}, "result": "t"});
            out.push(Case::steps("atoms", row, variant, vec![step]));
            let before = set("prog", json!({"op": "seq", "steps": steps}));
            let variant = format!("{variant} kept");
            out.push(Case::steps("atoms", row, &variant, vec![kept]).first(before));
        }
    }
    for row in ["agentRun", "runCode"] {
        let key = if row == "agentRun" { "agentId" } else { "code" };
        let many = method(
            method(lit("x"), "repeat", vec![id("n")]),
            "split",
            vec![lit("")],
        );
        let steps = set("many", many);
        let step = object(&[("op", lit("varSet")), ("key", lit("q")), ("value", lit(1))]);
        let fill = set("steps", method(id("many"), "fill", vec![step]));
        let program = set(
            "prog",
            object(&[("op", lit("seq")), ("steps", id("steps"))]),
        );
        let run = json!({"op": row, key: id("prog"), "input": {}, "args": {}, "result": "t"});
        let case = Case::steps("atoms", row, "n steps", vec![run]).var("n", Last);
        out.push(case.first(steps).first(fill).first(program));
    }
    out
}

fn conditions() -> Vec<Case> {
    let mut out = Vec::new();
    let texts = [
        "a",
        "!a",
        "a == b",
        "a != b",
        "a === b",
        "a < b",
        "a <= b",
        "a >= b",
        "a && b",
        "a || b",
        "a + b",
        "a - b",
        "a * b",
        "a / b",
        "a % b",
        "a ?? b",
        "a ? b : 1",
        "a.length",
        "a[0]",
        "a['id']",
        "a?.id",
        "typeof a",
        "-a",
        "+a",
        "a.length > 3 && b == 'x'",
    ];
    for text in texts {
        for (l, r) in OPERANDS {
            let step = json!({"op": "if", "condition": text, "then": []});
            let variant = format!("{l:?} {r:?}");
            let case = Case::steps("conditions", text, &variant, vec![step]);
            out.push(case.var("a", l).var("b", r));
        }
    }
    out
}

/// Schemas of one keyword, each with a value that makes the check expensive.
fn schemas() -> Vec<Case> {
    let member = |schema: &Json| json!({"type": "object", "properties": {"m": schema}});
    let list = |schema: Json| json!({"type": "array", "items": schema});
    let forms: Vec<(&str, Json, Shape)> = vec![
        ("type", json!({"type": "string"}), Text),
        ("type array", list(json!({"type": "number"})), Numbers),
        ("types", list(json!({"type": ["number", "null"]})), Numbers),
        ("items strings", list(json!({"type": "string"})), Texts),
        (
            "items nested",
            list(list(json!({"type": "number"}))),
            Nested,
        ),
        (
            "items each",
            json!({"type": "array", "items": [{"type": "number"}]}),
            Numbers,
        ),
        (
            "enum",
            list(json!({"enum": (0..100).collect::<Vec<i32>>()})),
            Numbers,
        ),
        ("enum texts", json!({"enum": ["a", "b"]}), Text),
        ("const", json!({"const": "lorem"}), Text),
        (
            "minimum",
            list(json!({"minimum": 0, "maximum": 1e9, "multipleOf": 1})),
            Numbers,
        ),
        ("length", json!({"minLength": 1, "maxLength": 1e9}), Wide),
        ("pattern", json!({"pattern": "^[a-z ,]*$"}), Text),
        (
            "pattern texts",
            list(json!({"pattern": "^[0-9a-f]{8}$"})),
            Texts,
        ),
        ("format email", json!({"format": "email"}), Text),
        ("format uuid", json!({"format": "uuid"}), Text),
        ("format uri", json!({"format": "uri"}), Text),
        ("format ipv4", json!({"format": "ipv4"}), Digits),
        ("format date-time", json!({"format": "date-time"}), Digits),
        ("format emoji", json!({"format": "emoji"}), Wide),
        (
            "required",
            json!({"type": "object", "required": ["key1", "key2"]}),
            Record,
        ),
        (
            "properties",
            json!({"type": "object", "properties": {"key1": {"type": "number"}}}),
            Record,
        ),
        (
            "additional",
            json!({"type": "object", "additionalProperties": {"type": "number"}}),
            Record,
        ),
        (
            "counts",
            json!({"type": "object", "minProperties": 1, "maxProperties": 1e9}),
            Record,
        ),
        (
            "item counts",
            json!({"type": "array", "minItems": 1, "maxItems": 1e9}),
            Numbers,
        ),
        (
            "anyOf",
            list(json!({"anyOf": [{"type": "string"}, {"type": "number"}]})),
            Numbers,
        ),
        (
            "objects",
            list(
                json!({"type": "object", "properties": {"id": {"type": "number"},
            "name": {"type": "string"}}, "required": ["id"]}),
            ),
            Objects,
        ),
        ("any", json!({}), Objects),
    ];
    let mut out = Vec::new();
    for (row, schema, shape) in &forms {
        let held = || set("schema", schema.clone());
        let variant = format!("{shape:?}");
        let filter = call("filter", vec![id("a"), id("schema")]);
        let case = Case::expr("schemas", row, &format!("filter {variant}"), &filter);
        out.push(case.var("a", *shape).first(held()));
        let valid = method(id("Schema"), "isValid", vec![id("a"), id("schema")]);
        let case = Case::expr("schemas", row, &format!("isValid {variant}"), &valid);
        out.push(case.var("a", *shape).first(held()));
        let helper = json!({"helpers": {"h": {"paramNames": ["m"], "steps": [
            {"op": "return", "schema": member(schema)}]}}});
        let step = json!({"op": "callLocal", "name": "h", "args": [id("a")], "result": "t"});
        let case = Case::steps("schemas", row, &format!("return {variant}"), vec![step]);
        out.push(Case {
            root: Some(helper),
            ..case.var("a", *shape)
        });
    }
    out
}
