//! Each builder method next to the hand-written step, including the order of keys.

use crate::{methods_io, methods_turn};
use agent99::builder::{Builder, RandomOptions, args, ident, val};
use agent99::{Params, all_atoms, json};
use std::collections::BTreeSet;

/// A chain with one call, and the hand-written step.
pub(crate) type Row = (Builder, &'static str);

pub(crate) fn new() -> Builder {
    Builder::new()
}

fn flow() -> Vec<Row> {
    vec![
        (
            new().seq(|b| b.uuid()),
            r#"{"op":"seq","steps":[{"op":"uuid"}]}"#,
        ),
        (
            new().if_("a > 1", [("a", args("x"))], |b| b.uuid()),
            r#"{"op":"if","condition":"a > 1","vars":{"a":{"$kind":"arg","path":"x"}},"then":[{"op":"uuid"}]}"#,
        ),
        (
            new().if_(ident("a"), (), |b| b),
            r#"{"op":"if","condition":{"$expr":"ident","name":"a"},"then":[]}"#,
        ),
        (
            new().if_else("a", [("a", "b.c")], |b| b, |b| b.uuid().as_("u")),
            r#"{"op":"if","condition":"a","vars":{"a":"b.c"},"then":[],"else":[{"op":"uuid","result":"u"}]}"#,
        ),
        (
            new().while_("a", [("a", true)], |b| b.uuid()),
            r#"{"op":"while","condition":"a","vars":{"a":true},"body":[{"op":"uuid"}]}"#,
        ),
        (
            new().for_each("xs", "x", |b| b.continue_()),
            r#"{"op":"forEach","items":"xs","as":"x","steps":[{"op":"continue"}]}"#,
        ),
        (
            new().for_each_indexed("xs", "x", "i", |b| b.break_()),
            r#"{"op":"forEach","items":"xs","as":"x","index":"i","steps":[{"op":"break"}]}"#,
        ),
        (new().break_(), r#"{"op":"break"}"#),
        (new().continue_(), r#"{"op":"continue"}"#),
        (
            new().while_(true, (), |b| b),
            r#"{"op":"while","condition":true,"body":[]}"#,
        ),
        (
            new().try_(|b| b.uuid()),
            r#"{"op":"try","try":[{"op":"uuid"}]}"#,
        ),
        (
            new().try_catch(|b| b, |b| b.uuid()),
            r#"{"op":"try","try":[],"catch":[{"op":"uuid"}]}"#,
        ),
        (
            new().try_catch_as("e", |b| b, |b| b),
            r#"{"op":"try","try":[],"catch":[],"catchParam":"e"}"#,
        ),
        (
            new().return_(json!({"type": "object", "properties": {"b": {}, "a": {}}})),
            r#"{"op":"return","schema":{"type":"object","properties":{"b":{},"a":{}}}}"#,
        ),
        (
            new().return_unfiltered(json!({"schema": {"properties": {}}})),
            r#"{"op":"return","schema":{"properties":{}},"filter":false}"#,
        ),
        (new().return_value("x"), r#"{"op":"return","value":"x"}"#),
        (
            new().scope(|b| b.uuid()),
            r#"{"op":"scope","steps":[{"op":"uuid"}]}"#,
        ),
        (
            new().call_local("h", [val("a"), 1.into()]),
            r#"{"op":"callLocal","name":"h","args":["a",1]}"#,
        ),
        (new().error("no"), r#"{"op":"Error","args":["no"]}"#),
        (new().error(()), r#"{"op":"Error"}"#),
        (
            new().step(json!({"op": "other", "x": 1})).as_("y"),
            r#"{"op":"other","x":1,"result":"y"}"#,
        ),
    ]
}

fn lists() -> Vec<Row> {
    vec![
        (
            new().map("xs", "x", |b| b.var_set("result", "x")).as_("ys"),
            r#"{"op":"map","items":"xs","as":"x","steps":[{"op":"varSet","key":"result","value":"x"}],"result":"ys"}"#,
        ),
        (
            new()
                .call_all((), |b| b.store_get("a").uuid())
                .as_("answers"),
            r#"{"op":"callAll","calls":[{"op":"storeGet","key":"a"},{"op":"uuid"}],"result":"answers"}"#,
        ),
        (
            new().call_each("urls", "url", 4, |b| b.store_get("url")),
            r#"{"op":"callAll","items":"urls","as":"url","call":{"op":"storeGet","key":"url"},"limit":4}"#,
        ),
        (
            new().filter("xs", "x", "x > n", [("n", 2)]),
            r#"{"op":"filter","items":"xs","as":"x","condition":"x > n","vars":{"n":2}}"#,
        ),
        (
            new().find([1, 2], "x", ident("x"), ()),
            r#"{"op":"find","items":[1,2],"as":"x","condition":{"$expr":"ident","name":"x"}}"#,
        ),
        (
            new().reduce("xs", "x", "sum", 0, |b| b),
            r#"{"op":"reduce","items":"xs","as":"x","accumulator":"sum","initial":0,"steps":[]}"#,
        ),
        (new().memoize((), |b| b), r#"{"op":"memoize","steps":[]}"#),
        (
            new().memoize("k", |b| b),
            r#"{"op":"memoize","key":"k","steps":[]}"#,
        ),
        (new().cache((), (), |b| b), r#"{"op":"cache","steps":[]}"#),
        (
            new().cache("k", 60_000, |b| b),
            r#"{"op":"cache","key":"k","steps":[],"ttlMs":60000}"#,
        ),
    ]
}

fn state() -> Vec<Row> {
    vec![
        (
            new().var_set("k", args("x")),
            r#"{"op":"varSet","key":"k","value":{"$kind":"arg","path":"x"}}"#,
        ),
        (
            new().const_set("k", 1.5),
            r#"{"op":"constSet","key":"k","value":1.5}"#,
        ),
        (new().var_get("k"), r#"{"op":"varGet","key":"k"}"#),
        (
            new().vars_import(["b", "a"]),
            r#"{"op":"varsImport","keys":["b","a"]}"#,
        ),
        (
            new().vars_let([("b", val("a")), ("a", 1.into())]).as_("r"),
            r#"{"op":"varsLet","b":"a","a":1,"result":"r"}"#,
        ),
        (
            new().vars_export([("x", "a.b")]),
            r#"{"op":"varsExport","keys":{"x":"a.b"}}"#,
        ),
        (new().eq("a", 1), r#"{"op":"eq","a":"a","b":1}"#),
        (new().neq("a", 1), r#"{"op":"neq","a":"a","b":1}"#),
        (new().gt("a", 1), r#"{"op":"gt","a":"a","b":1}"#),
        (new().lt("a", 1), r#"{"op":"lt","a":"a","b":1}"#),
        (new().and("a", "b"), r#"{"op":"and","a":"a","b":"b"}"#),
        (new().or("a", "b"), r#"{"op":"or","a":"a","b":"b"}"#),
        (new().not("a"), r#"{"op":"not","value":"a"}"#),
        (
            new().math_calc("1 + 1", ()),
            r#"{"op":"mathCalc","expr":"1 + 1"}"#,
        ),
        (
            new().math_calc("a", [("a", "b")]),
            r#"{"op":"mathCalc","expr":"a","vars":{"a":"b"}}"#,
        ),
    ]
}

fn data() -> Vec<Row> {
    vec![
        (new().push("l", 1), r#"{"op":"push","list":"l","item":1}"#),
        (new().len("l"), r#"{"op":"len","list":"l"}"#),
        (
            new().split("s", ","),
            r#"{"op":"split","str":"s","sep":","}"#,
        ),
        (
            new().sort("l", (), "desc").as_("l"),
            r#"{"op":"sort","items":"l","order":"desc","result":"l"}"#,
        ),
        (
            new().sort("l", "a.b", "asc"),
            r#"{"op":"sort","items":"l","by":"a.b","order":"asc"}"#,
        ),
        (
            new().member_set("o", "k", 1),
            r#"{"op":"memberSet","object":"o","key":"k","value":1}"#,
        ),
        (
            new().member_delete("o", "k"),
            r#"{"op":"memberDelete","object":"o","key":"k"}"#,
        ),
        (
            new().group_by("l", "kind"),
            r#"{"op":"groupBy","items":"l","by":"kind"}"#,
        ),
        (
            new().unique("l", "k"),
            r#"{"op":"unique","items":"l","by":"k"}"#,
        ),
        (
            new().sum("l", "price"),
            r#"{"op":"sum","items":"l","by":"price"}"#,
        ),
        (
            new().join("l", ","),
            r#"{"op":"join","list":"l","sep":","}"#,
        ),
        (
            new().template("{{a}}", [("a", "b")]),
            r#"{"op":"template","tmpl":"{{a}}","vars":{"a":"b"}}"#,
        ),
        (
            new().regex_match("^a", "s"),
            r#"{"op":"regexMatch","pattern":"^a","value":"s"}"#,
        ),
        (
            new().regex_find("s", "(a)", "i").as_("m"),
            r#"{"op":"regexFind","text":"s","pattern":"(a)","flags":"i","result":"m"}"#,
        ),
        (
            new().regex_find_all("s", "a", "i"),
            r#"{"op":"regexFindAll","text":"s","pattern":"a","flags":"i"}"#,
        ),
        (
            new().regex_replace("s", "a", (), "b"),
            r#"{"op":"regexReplace","text":"s","pattern":"a","replacement":"b"}"#,
        ),
        (
            new().regex_replace_all("s", "(a)", "i", "$1$1"),
            r#"{"op":"regexReplace","text":"s","pattern":"(a)","flags":"i","replacement":"$1$1","all":true}"#,
        ),
        (
            new().regex_split("s", "x", "i", 3),
            r#"{"op":"regexSplit","text":"s","pattern":"x","flags":"i","limit":3}"#,
        ),
        (
            new().pick("o", ["a"]),
            r#"{"op":"pick","obj":"o","keys":["a"]}"#,
        ),
        (
            new().omit("o", ["a"]),
            r#"{"op":"omit","obj":"o","keys":["a"]}"#,
        ),
        (new().merge("o", "p"), r#"{"op":"merge","a":"o","b":"p"}"#),
        (new().keys("o"), r#"{"op":"keys","obj":"o"}"#),
        (new().json_parse("s"), r#"{"op":"jsonParse","str":"s"}"#),
        (
            new().json_stringify("o"),
            r#"{"op":"jsonStringify","value":"o"}"#,
        ),
        (new().sleep(5), r#"{"op":"sleep","ms":5}"#),
        (new().random(RandomOptions::default()), r#"{"op":"random"}"#),
        (
            new().random(RandomOptions {
                min: 1.into(),
                max: 6.into(),
                format: "integer".into(),
                length: 4.into(),
            }),
            r#"{"op":"random","min":1,"max":6,"format":"integer","length":4}"#,
        ),
        (new().uuid(), r#"{"op":"uuid"}"#),
        (new().hash("s", ()), r#"{"op":"hash","value":"s"}"#),
        (
            new().hash("s", "SHA-1"),
            r#"{"op":"hash","value":"s","algorithm":"SHA-1"}"#,
        ),
        (
            new().hash_raw("s", "SHA-1"),
            r#"{"op":"hash","value":"s","algorithm":"SHA-1","raw":true}"#,
        ),
    ]
}

fn rows() -> Vec<Row> {
    [
        flow(),
        lists(),
        state(),
        data(),
        methods_io::io(),
        methods_io::batteries(),
        methods_io::shell(),
        methods_turn::rows(),
    ]
    .concat()
}

#[test]
fn every_method_writes_the_step_that_one_would_write() {
    for (program, by_hand) in rows() {
        assert_eq!(
            program.to_json_string().unwrap(),
            format!(r#"{{"op":"seq","steps":[{by_hand}]}}"#)
        );
    }
}

/// Every atom of the language has a method that gives all of its inputs in the
/// order of its signature; conditions also take `vars`.
#[test]
fn every_atom_has_a_method_with_all_of_its_inputs() {
    let mut written: Vec<(String, Vec<String>)> = Vec::new();
    for (program, _) in rows() {
        let step = program.steps()[0].as_object().unwrap();
        let keys = step.keys().map(ToString::to_string).collect();
        written.push((step.get("op").unwrap().as_str().unwrap().into(), keys));
    }
    for atom in all_atoms().iter() {
        let name = atom.sig.name.as_ref();
        if a99_atoms::is_internal(name) {
            continue;
        }
        let steps: Vec<_> = written.iter().filter(|(op, _)| op == name).collect();
        assert!(!steps.is_empty(), "{name} has no method");
        let Params::Named(params) = &atom.sig.params else {
            continue;
        };
        let order: Vec<&str> = params.iter().map(|param| param.name).collect();
        let mut given = BTreeSet::new();
        for (_, keys) in steps {
            let inputs: Vec<&str> = keys
                .iter()
                .map(String::as_str)
                .filter(|key| order.contains(key))
                .collect();
            let mut sorted = inputs.clone();
            sorted.sort_by_key(|key| order.iter().position(|name| name == key));
            assert_eq!(inputs, sorted, "{name}");
            given.extend(inputs);
        }
        assert_eq!(given.len(), order.len(), "{name} takes {order:?}");
    }
}
