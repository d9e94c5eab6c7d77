//! Names that mean something elsewhere: `args` as a variable, names of prototypes as keys
//! of data, empty names. Machine, artifact and oracle agree, and the result is the one
//! that is stated.

use crate::attack::{ENGINE, call, func, id, index, lit, member, ret, rich, seq, set};
use a99_testkit::differential::difference_of;
use agent99::{ErrorCode, json};
use serde_json::Value as Json;

/// The names that programs may not bind.
const RESERVED: [&str; 3] = ["constructor", "prototype", "__proto__"];

/// What a program gives on all engines, or the message that it ends with.
fn outcome(program: &Json, args: &Json) -> Result<Json, String> {
    let vector = json!({
        "id": "names", "title": "", "generation": "v3", "ast": program, "args": args,
        "options": {"costModel": "metered"}, "expect": {},
    });
    let different = difference_of(&vector.into());
    assert_eq!(different, None, "{program}");
    let agent = ENGINE.compile(program.to_string()).expect("it compiles");
    let outcome = ENGINE.run_sync(&agent, args.clone(), rich());
    match outcome.error {
        Some(error) => Err(error.message.to_string()),
        None => Ok(serde_json::from_str(&outcome.result.to_json_string()).expect("JSON")),
    }
}

fn steps(steps: Json) -> Json {
    serde_json::from_str(&seq(steps)).expect("JSON")
}

fn newest(list: Json) -> Json {
    let mut program = steps(list);
    program["a99"] = json!(4);
    program
}

#[test]
fn e3_a_variable_args_hides_the_arguments_whatever_it_holds() {
    let args = json!({"p": "argument", "on": true});
    let nothing = json!({"$expr": "ident", "name": "undefined"});
    let read = |value: Json| json!([set("args", value), set("x", json!("args.p")), ret(id("x"))]);
    for (value, wanted) in [
        (nothing.clone(), json!({"r": "args.p"})),
        (json!({"p": "own"}), json!({"r": "own"})),
        (json!({"q": 1}), json!({})),
        (lit(Json::Null), json!({})),
        (lit(0), json!({})),
    ] {
        for program in [steps(read(value.clone())), newest(read(value.clone()))] {
            assert_eq!(outcome(&program, &args), Ok(wanted.clone()), "{program}");
        }
    }
    // Bound on one of two ways, and on none.
    for (on, wanted) in [(true, "args.p"), (false, "argument")] {
        let program = steps(json!([
            {"op": "if", "condition": "on", "then": [set("args", nothing.clone())]},
            set("x", json!("args.p")),
            ret(id("x")),
        ]));
        let args = json!({"p": "argument", "on": on});
        assert_eq!(outcome(&program, &args), Ok(json!({"r": wanted})), "{on}");
    }
}

#[test]
fn e3_a_mismatch_behind_an_empty_name_names_the_root() {
    let (data, example) = (json!({"": "x"}), json!({"": 1}));
    for (data, example) in [(json!("x"), json!(1)), (data, example)] {
        let kept = func("filter", json!([lit(data), lit(example)]));
        let wanted = Err("root: Expected integer".to_owned());
        assert_eq!(outcome(&steps(json!([ret(kept)])), &json!({})), wanted);
    }
}

#[test]
fn e3_undefined_meets_the_schema_of_null_nowhere() {
    let nothing = json!({"$expr": "ident", "name": "undefined"});
    let of = |schema: Json| steps(json!([ret(func("filter", json!([nothing, schema])))]));
    let refused = Err("root: Expected value, got undefined".to_owned());
    assert_eq!(outcome(&of(lit(Json::Null)), &json!({})), refused);
    for kind in [json!([]), json!([5]), json!("string"), json!("")] {
        let schema = lit(json!({"schema": {"type": kind}}));
        assert_eq!(outcome(&of(schema), &json!({})), refused, "{kind}");
    }
    for kind in [json!(["string", "null"]), json!(5)] {
        let schema = lit(json!({"schema": {"type": kind}}));
        assert_eq!(outcome(&of(schema), &json!({})), Ok(json!({})), "{kind}");
    }
}

#[test]
fn e4_words_of_foreign_text_end_no_count() {
    let words = json!([
        "tea",
        "constructor",
        "__proto__",
        "constructor",
        "prototype",
        "toString"
    ]);
    let wanted = json!({
        "tea": 1, "constructor": 2, "__proto__": 1, "prototype": 1, "toString": 1,
    });
    let count = json!({"=": "(n[w] ?? 0) + 1"});
    let program = newest(json!([
        set("n", json!({})),
        {"op": "forEach", "items": "args.words", "as": "w", "steps": [
            {"op": "memberSet", "object": "n", "key": "w", "value": count}]},
        ret(id("n")),
    ]));
    let args = json!({"words": words});
    assert_eq!(outcome(&program, &args), Ok(json!({"r": wanted})));
    for body in [
        "for (const w of words) { n[w] = (n[w] ?? 0) + 1; }",
        "for (const w of words) { n[w] ??= 0; n[w]++; }",
        "for (const w of words) { if (w in n) n[w] += 1; else n[w] = 1; }",
        "for (const w of words) { if (!n[w]) { n[w] = 0; } n[w] += 1; }",
        "n = words.reduce((all, w) => ({ ...all, [w]: (all[w] || 0) + 1 }), {});",
        "for (const w of words) { const { [w]: had, ...others } = n; n = { ...n, [w]: (had ?? 0) + 1 }; }",
        "const m = Object.fromEntries(words.map((w) => [w, 0])); for (const w of words) { m[w] += 1; } n = Object.assign({}, m);",
        "for (const w of words) { n[w] = (n?.[w] ?? 0) + 1; } n = JSON.parse(JSON.stringify(n));",
        "for (const w of words) { n[w] = 'x'; delete n[w]; n[w] = words.filter((v) => v === w).length; }",
    ] {
        let source =
            format!("function main({{ words }}) {{ let n = {{}}; {body} return {{ r: n }}; }}");
        let agent = ENGINE.compile_source(source.as_str()).expect(body);
        let outcome = ENGINE.run_sync(&agent, args.clone(), rich());
        assert_eq!(outcome.error, None, "{body}");
        let given: Json = serde_json::from_str(&outcome.result.to_json_string()).expect("JSON");
        assert_eq!(given, json!({"r": wanted}), "{body}");
    }
}

#[test]
fn e4_a_computed_key_is_data_of_every_value() {
    for name in RESERVED {
        for object in [
            json!({}),
            lit(json!([1])),
            lit("text"),
            lit(1),
            lit(Json::Null),
            func("Date", json!([lit(0)])),
            func("Set", json!([])),
        ] {
            let read = index(object.clone(), id("k"));
            let read = json!([set("k", lit(name)), ret(read)]);
            assert_eq!(
                outcome(&newest(read.clone()), &json!({})),
                Ok(json!({})),
                "{object}"
            );
            // Recorded programs of older versions keep what they gave.
            let refused = format!("Security Error: Access to '{name}' is forbidden");
            assert_eq!(outcome(&steps(read), &json!({})), Err(refused), "{object}");
        }
        // Names of the program's own text stay refused, and what is no data has no members.
        for value in [
            member(json!({}), name),
            index(id("Math"), id("k")),
            call(json!({}), name, json!([])),
        ] {
            let agent = newest(json!([set("k", lit(name)), ret(value)])).to_string();
            let agent = ENGINE.compile(agent).expect("it compiles");
            let error = ENGINE
                .run_sync(&agent, json!({}), rich())
                .error
                .expect("a refusal");
            assert_eq!(error.code, ErrorCode::Security, "{name}");
        }
    }
}
