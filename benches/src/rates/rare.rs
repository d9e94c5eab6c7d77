//! Growth, copies, steps of many parts, and rare program features.

use super::language::{binary, set};
use super::{Case, call, id, lit, method};
use a99_testkit::cost::Shape::*;
use serde_json::{Value as Json, json};

/// All cases.
pub(crate) fn cases() -> Vec<Case> {
    let mut out = growth();
    out.extend(copies());
    out.extend(found());
    out.extend(parts());
    out.extend(rare());
    out.extend(large());
    out
}

/// Work that is expensive only in great numbers or depth.
fn large() -> Vec<Case> {
    let mut out = Vec::new();
    // Nested arrays, and their siblings on each level.
    for (variant, item) in [
        ("one", json!([id("p")])),
        ("many", json!([1, id("p"), id("p")])),
    ] {
        let nest = json!({"op": "while", "condition": "d < 90", "body": [
            set("p", item.clone()),
            set("d", binary("+", id("d"), lit(1))),
        ]});
        let nest = match variant {
            "one" => nest,
            _ => json!({"op": "while", "condition": "d < 12", "body": nest["body"]}),
        };
        let flat = method(id("p"), "flat", vec![id("Infinity")]);
        let case = Case::expr("methods", "flat", &format!("deep {variant}"), &flat);
        out.push(
            case.first(set("p", json!([1])))
                .first(set("d", lit(0)))
                .first(nest),
        );
    }
    let mut template = |variant: &str, tmpl: Json, vars: Json, root: Option<Json>| {
        let step = json!({"op": "template", "tmpl": tmpl, "vars": vars, "result": "t"});
        let case = Case::steps("atoms", "template", variant, vec![step]);
        out.push(Case { root, ..case }.var("a", Holes).var("p", Piece));
    };
    let newest = Some(json!({"a99": 4}));
    template("any holes", id("a"), json!({"p": id("p")}), None);
    template(
        "any holes of paths",
        id("a"),
        json!({"p": id("p")}),
        newest.clone(),
    );
    template("holes of numbers", id("a"), json!({"p": 0.1}), None);
    for n in [60, 5_000] {
        let text = "{{p}}".repeat(n);
        template(
            &format!("{n} holes"),
            json!(text),
            json!({"p": id("p")}),
            None,
        );
        let text: String = (0..n).map(|i| format!("{{{{k{}}}}}", i % 200)).collect();
        let vars: Json = (0..200).map(|i| (format!("k{i}"), id("p"))).collect();
        template(&format!("{n} holes of 200"), json!(text), vars, None);
        let text = "{{p.length.x}}".repeat(n);
        template(
            &format!("{n} paths"),
            json!(text),
            json!({"p": id("p")}),
            newest.clone(),
        );
    }
    // Sub-agents that do almost nothing.
    let empty = json!({"op": "seq", "steps": []});
    let returns = json!({"op": "seq", "steps": [
        {"op": "return", "value": {"x": 1}}]});
    for (variant, program) in [("nothing", empty), ("returns", returns)] {
        let step = json!({"op": "agentRun", "agentId": program, "input": {}, "result": "t"});
        let name = format!("that does {variant}");
        out.push(Case::steps("atoms", "agentRun", &name, vec![step]));
        let stored = json!({"op": "storeProcedure", "ast": program, "result": "token"});
        let step = json!({"op": "agentRun", "agentId": "token", "input": {}, "result": "t"});
        let case = Case::steps("atoms", "agentRun", &format!("stored {name}"), vec![step]);
        out.push(case.first(stored));
    }
    // Objects whose shapes keep changing.
    let key = |n: usize| binary("+", lit("k"), binary("%", id("i"), lit(n)));
    for n in [7, 1_000, 1_000_000] {
        let member = json!({"$expr": "object", "properties": [{"key": key(n), "value": 1}]});
        let case = Case::steps(
            "growth",
            "shapes",
            &format!("{n}"),
            vec![
                set("t", member),
                set("n", method(id("l"), "push", vec![id("t")])),
            ],
        );
        let case = Case {
            root: newest.clone(),
            ..case
        };
        out.push(case.first(set("l", json!([]))));
    }
    out
}

/// Values that grow in the loop, and code that reads them meanwhile.
fn growth() -> Vec<Case> {
    let push = |name: &str| set("t", method(id(name), "push", vec![id("i")]));
    let plus = |name: &str| set(name, binary("+", id(name), lit("x")));
    let case = |row: &str, steps: Vec<Json>| Case::steps("growth", row, "", steps);
    let walk = |name: &str| method(id("a"), name, vec![binary("%", id("i"), lit(90))]);
    let mut out = vec![
        case("two arrays", vec![push("p"), push("q")])
            .first(set("p", json!([])))
            .first(set("q", json!([]))),
        case("two texts", vec![plus("p"), plus("q")])
            .first(set("p", json!("")))
            .first(set("q", json!(""))),
        Case::steps(
            "atoms",
            "storeList",
            "of keys in rising order",
            vec![
                set("p", binary("+", id("p"), lit("x"))),
                json!({"op": "storeSet", "key": "p", "value": 1}),
                json!({"op": "storeList", "limit": 1000}),
            ],
        )
        .first(set("p", json!(""))),
        case(
            "text in front",
            vec![set("p", binary("+", lit("x"), id("p")))],
        )
        .first(set("p", json!(""))),
    ];
    for name in ["charAt", "charCodeAt", "codePointAt", "at"] {
        out.push(Case::expr("growth", &format!("walk {name}"), "", &walk(name)).var("a", Wide));
    }
    out
}

/// Copies between the program and its host, and within the run: of stored, cached or remembered
/// values.
fn copies() -> Vec<Case> {
    let shapes = [
        Text, Wide, Numbers, Fractions, Texts, LongTexts, Nested, Pairs, Objects, Record, Numbered,
    ];
    let mut out = Vec::new();
    for shape in shapes {
        let variant = format!("{shape:?} that was stored");
        let step = json!({"op": "storeGet", "key": "k", "result": "t"});
        let store = json!({"op": "storeSet", "key": "k", "value": id("a")});
        let case = Case::steps("atoms", "storeGet", &variant, vec![step]);
        out.push(case.var("a", shape).first(store.clone()));
        let same = json!({"op": "storeCompareAndSet", "key": "k", "expected": id("a"),
            "value": id("a")});
        let variant = format!("{shape:?} that is the same");
        let case = Case::steps("atoms", "storeCompareAndSet", &variant, vec![same]);
        out.push(case.var("a", shape).first(store.clone()));
        let delete = json!({"op": "storeDelete", "key": "k"});
        let case = Case::steps("atoms", "storeDelete", &variant, vec![store, delete]);
        out.push(case.var("a", shape));
        for row in ["memoize", "cache"] {
            let variant = format!("{shape:?} that is kept");
            let step = json!({"op": row, "key": "k", "steps": [set("result", id("a"))],
                "result": "t"});
            out.push(Case::steps("atoms", row, &variant, vec![step]).var("a", shape));
        }
        let program = json!({"op": "seq", "steps": [
            {"op": "return", "value": {"t": {"$expr": "ident", "name": "a"}}}]});
        let step = json!({"op": "agentRun", "agentId": program, "input": {"a": id("a")},
            "result": "t"});
        let variant = format!("{shape:?} is returned");
        out.push(Case::steps("atoms", "agentRun", &variant, vec![step]).var("a", shape));
        let failing = call("Error", vec![id("a")]);
        let step = json!({"op": "try", "try": [set("t", failing)], "catch": []});
        let case = Case::steps(
            "functions",
            "Error",
            &format!("caught {shape:?}"),
            vec![step],
        );
        out.push(case.var("a", shape));
    }
    for list in [Texts, LongTexts, Numbers, Fractions] {
        for shape in [Objects, Record, Nested, Number] {
            let value = method(id("JSON"), "stringify", vec![id("a"), id("b")]);
            let variant = format!("{shape:?} by {list:?}");
            let case = Case::expr("functions", "JSON.stringify", &variant, &value);
            out.push(case.var("a", shape).var("b", list));
        }
    }
    out
}

/// Programs that `cargo xtask search` found above the bound.
fn found() -> Vec<Case> {
    let mut out = Vec::new();
    let date = || set("d", call("Date", vec![lit(0)]));
    for (group, row, value) in [
        ("functions", "decodeURI", call("decodeURI", vec![id("d")])),
        ("functions", "String", call("String", vec![id("d")])),
        ("operators", "+", binary("+", id("d"), lit("x"))),
    ] {
        out.push(Case::expr(group, row, "Date", &value).first(date()));
    }
    let value = method(id("a"), "toLocaleString", vec![]);
    out.push(Case::expr("methods", "toLocaleString", "Extremes ()", &value).var("a", Extremes));
    // An object that is not a schema is an example of one.
    for shape in [Record, Numbered, Objects] {
        let value = method(id("Schema"), "isValid", vec![lit(1), id("a")]);
        let variant = format!("by example {shape:?}");
        let case = Case::expr("functions", "Schema.isValid", &variant, &value);
        out.push(case.var("a", shape));
    }
    out
}

/// Steps and expressions with many parts that are not nodes.
fn parts() -> Vec<Case> {
    let mut out = Vec::new();
    for n in [3, 200] {
        let numbers: Vec<usize> = (0..n).collect();
        let variant = n.to_string();
        let array = json!({"$expr": "array", "elements": numbers});
        out.push(Case::expr(
            "literals",
            "untagged elements",
            &variant,
            &array,
        ));
        let names = || (0..n).map(|i| format!("k{i}"));
        let members: Vec<Json> = names().map(|k| json!({"key": k, "value": 1})).collect();
        let value = json!({"$expr": "object", "properties": members});
        out.push(Case::expr("literals", "untagged members", &variant, &value));
        let of = call("Set", vec![json!(numbers)]);
        out.push(Case::expr("literals", "untagged data", &variant, &of));
        let flat = |value: Json| -> Json { names().map(|k| (k, value.clone())).collect() };
        let mut nested = flat(json!(1));
        nested["x"] = id("i");
        out.push(Case::expr(
            "literals",
            "an expression in data",
            &variant,
            &nested,
        ));
        let mut list = vec![json!([1]); n];
        list.push(id("i"));
        out.push(Case::expr(
            "literals",
            "an expression in a list",
            &variant,
            &json!(list),
        ));
        let mut step = flat(json!(1));
        step["op"] = json!("varsLet");
        out.push(Case::steps("atoms", "varsLet", &variant, vec![step]));
        let keys: Vec<String> = names().collect();
        for row in ["varsImport", "varsExport"] {
            let step = json!({"op": row, "keys": keys, "result": "t"});
            out.push(Case::steps("atoms", row, &variant, vec![step]));
        }
        let args = vec![json!(1); n];
        let step = json!({"op": "callLocal", "name": "h", "args": args, "result": "t"});
        let helpers = json!({"helpers": {"h": {"paramNames": ["n"], "steps": []}}});
        out.push(Case {
            root: Some(helpers),
            ..Case::steps("atoms", "callLocal", &format!("{n} arguments"), vec![step])
        });
        let vars = flat(json!(1));
        let step = json!({"op": "if", "condition": "k1 == 1", "vars": vars, "then": []});
        out.push(Case::steps("atoms", "if", &format!("{n} vars"), vec![step]));
        let step = json!({"op": "mathCalc", "expr": "k1 + 1", "vars": vars, "result": "t"});
        out.push(Case::steps(
            "atoms",
            "mathCalc",
            &format!("{n} vars"),
            vec![step],
        ));
        let step = json!({"op": "template", "tmpl": "{{k1}}", "vars": vars, "result": "t"});
        out.push(Case::steps(
            "atoms",
            "template",
            &format!("{n} vars"),
            vec![step],
        ));
        let step = json!({"op": "template", "tmpl": id("text"), "vars": vars, "result": "t"});
        let case = Case::steps("atoms", "template", &format!("{n} vars of any"), vec![step]);
        out.push(case.first(set("text", lit("{{k1}}"))));
        let run = json!({"op": "agentRun", "agentId": {"op": "seq", "steps": []}, "input": vars,
            "result": "t"});
        out.push(Case::steps(
            "atoms",
            "agentRun",
            &format!("{n} inputs"),
            vec![run],
        ));
    }
    out
}

/// Rare features: hundreds of variables, many arguments, calls of unknown functions.
fn rare() -> Vec<Case> {
    let caught = |step: Json| vec![json!({"op": "try", "try": [step], "catch": []})];
    let many = || (0..30).map(|_| id("i")).collect::<Vec<Json>>();
    let mut out = Vec::new();
    let code = json!({"op": "runCode", "code": "c", "result": "t"});
    out.push(Case::steps("atoms", "runCode", "caught", caught(code)));
    let tool = json!({"name": "t", "description": "A tool.", "inputSchema": {"type": "object"},
        "as": "input", "call": {"op": "storeGet", "key": "k"}});
    for shape in [Piece, Text, Wide] {
        let step = json!({"op": "llmToolLoop", "prompt": id("a"), "tools": [tool],
            "result": "t"});
        let variant = format!("caught {shape:?}");
        out.push(Case::steps("atoms", "llmToolLoop", &variant, caught(step)).var("a", shape));
    }
    for name in ["push", "max", "nothing"] {
        let step = set("t", method(id("l"), name, many()));
        let case = Case::steps("rare", "method of 30 arguments", name, caught(step));
        out.push(case.first(set("l", json!([]))));
    }
    for (name, value) in [
        ("", method(id("Math"), "max", many())),
        ("Set", call("Set", many())),
        ("isNaN", call("isNaN", many())),
    ] {
        let steps = caught(set("t", value));
        out.push(Case::steps("rare", "function of 30 arguments", name, steps));
    }
    let step = json!({"op": "mathCalc", "expr": "nobody + 1", "result": "t"});
    out.push(Case::steps("rare", "unknown name", "", caught(step)));
    for op in ["<=", "==="] {
        let step = json!({"op": "if", "condition": binary(op, id("i"), lit(3)), "then": []});
        out.push(Case::steps("rare", "branch", op, vec![step]));
    }
    for op in ["!==", "<="] {
        let not = json!({"$expr": "unary", "op": "!", "argument": binary(op, id("i"), lit(3))});
        for (variant, test) in [("plain", binary(op, id("i"), lit(3))), ("not", not)] {
            let step = json!({"op": "if", "condition": test, "then": []});
            let variant = format!("{op} {variant}");
            out.push(Case::steps("rare", "branch", &variant, vec![step]));
        }
    }
    let refused = json!({"op": "varSet", "key": "t", "value": id("RegExp")});
    out.push(Case::steps("rare", "refused name", "", caught(refused)));
    let mut read: Vec<Json> = (0..300).map(|i| set(&format!("v{i}"), id("i"))).collect();
    read.extend((0..300).map(|i| set("t", id(&format!("v{i}")))));
    out.push(Case::steps("rare", "300 variables", "read", read));
    let wide: Vec<Json> = (0..300).map(|i| set(&format!("v{i}"), id("i"))).collect();
    out.push(Case::steps("rare", "300 variables", "", wide));
    let helper = json!({"helpers": {"h": {"paramNames": ["m"], "steps": [
        {"op": "return", "schema": {"type": "object", "properties": {"m": {"type": "number"}},
            "required": ["m"]}}]}}});
    let step = json!({"op": "callLocal", "name": "h", "args": [1], "result": "t"});
    let case = Case::steps("rare", "return by a schema", "", vec![step]);
    out.push(Case {
        root: Some(helper),
        ..case
    });
    out
}
