//! Threats E01 to E10: escaping the language by names.

use crate::attack::{
    ENGINE, call, fails, func, id, index, list, lit, member, record, ret, run, seq, set, stopped,
    value,
};
use agent99::{ErrorCode, RunOptions, Value, json};

/// Names that JavaScript objects inherit.
const INHERITED: [&str; 9] = [
    "constructor",
    "valueOf",
    "toString",
    "hasOwnProperty",
    "__proto__",
    "prototype",
    "isPrototypeOf",
    "toLocaleString",
    "__defineGetter__",
];

/// Names that no access may use (D16).
const FORBIDDEN: [&str; 3] = ["__proto__", "constructor", "prototype"];

#[test]
fn e01_unset_prototype_names_are_undefined() {
    for name in INHERITED {
        let outcome = run(json!([ret(id(name))]), json!({}));
        assert_eq!(outcome.error, None, "{name}");
        assert!(
            outcome.result.get("r").is_none_or(Value::is_undefined),
            "{name}"
        );
        let typed = json!({"$expr": "unary", "op": "typeof", "argument": id(name)});
        assert_eq!(
            value(json!([ret(typed)]), json!({})),
            json!("undefined"),
            "{name}"
        );
        // As a bare string in a value position it is a name or a text, never
        // something of the host's.
        let bare = value(json!([set("x", json!(name)), ret(id("x"))]), json!({}));
        assert!(bare.is_null() || bare == json!(name), "{name}: {bare}");
    }
}

#[test]
fn e01_inherited_members_are_undefined() {
    for name in INHERITED.iter().filter(|n| !FORBIDDEN.contains(n)) {
        for object in [record(&[]), list(json!([])), lit("text"), lit(1), lit(true)] {
            let outcome = run(json!([ret(member(object.clone(), name))]), json!({}));
            assert_eq!(outcome.error, None, "{name} of {object}");
            assert!(
                outcome.result.get("r").is_none_or(Value::is_undefined),
                "{name} of {object}"
            );
        }
    }
}

#[test]
fn e02_computed_properties_are_not_coerced_to_forbidden_names() {
    for name in FORBIDDEN {
        let disguises = [
            lit(name),
            list(json!([lit(name)])),
            list(json!([list(json!([lit(name)]))])),
            call(lit(""), "concat", json!([lit(name)])),
            json!({"$expr": "binary", "op": "+", "left": lit(""), "right": lit(name)}),
            call(list(json!([lit(name)])), "join", json!([lit("")])),
        ];
        for disguise in disguises {
            for object in [record(&[]), list(json!([])), lit("x"), id("unset")] {
                let steps = json!([ret(index(object.clone(), disguise.clone()))]);
                let error = run(steps, json!({})).error.expect("a refusal");
                let refused =
                    error.message.to_string().contains(name) && error.code == ErrorCode::Security;
                // What is no text is no property; it is not made one.
                let odd = error.message == *"Property key must be a string or number";
                assert!(refused || odd, "{disguise}: {error:?}");
            }
        }
        fails(
            json!([ret(member(record(&[]), name))]),
            json!({}),
            ErrorCode::Security,
        );
        fails(
            json!([ret(call(record(&[]), name, json!([])))]),
            json!({}),
            ErrorCode::Security,
        );
    }
    let odd = json!([ret(index(
        record(&[]),
        record(&[("toString", lit("__proto__"))])
    ))]);
    assert!(run(odd, json!({})).error.is_some());
}

#[test]
fn e03_argument_paths_find_own_members_only() {
    for name in INHERITED {
        for path in [
            name.to_owned(),
            format!("o.{name}"),
            format!("o.{name}.{name}"),
        ] {
            let arg = json!({"$kind": "arg", "path": path});
            let outcome = run(json!([ret(arg)]), json!({"o": {"a": 1}}));
            let unset = outcome.result.get("r").is_none_or(Value::is_undefined);
            let refused = outcome
                .error
                .as_ref()
                .is_some_and(|e| e.code == ErrorCode::Security);
            assert!(
                refused || (outcome.error.is_none() && unset),
                "{path}: {outcome:?}"
            );
        }
    }
}

#[test]
fn e04_dotted_paths_find_own_members_only() {
    for path in [
        "o.constructor.constructor",
        "o.__proto__",
        "o.list.constructor",
        "args.o.__proto__.x",
    ] {
        let steps = json!([
            set("o", json!({"list": []})),
            set("x", json!(path)),
            ret(id("x"))
        ]);
        let outcome = run(steps, json!({"o": {"a": 1}}));
        let refused = outcome
            .error
            .as_ref()
            .is_some_and(|e| e.code == ErrorCode::Security);
        let found = outcome.result.get("r").filter(|v| !v.is_undefined());
        assert!(
            refused || found.is_none_or(|v| v.as_str() == Some(path)),
            "{path}: {outcome:?}"
        );
    }
}

#[test]
fn e05_no_chain_reaches_a_function() {
    let outcomes = [
        run(
            json!([ret(call(
                id("Math"),
                "constructor",
                json!([lit("return 1")])
            ))]),
            json!({}),
        ),
        run(json!([ret(member(id("Object"), "constructor"))]), json!({})),
        run(
            json!([ret(call(lit(""), "constructor", json!([])))]),
            json!({}),
        ),
        run(
            json!([ret(func("Function", json!([lit("return 1")])))]),
            json!({}),
        ),
        run(json!([ret(func("eval", json!([lit("1")])))]), json!({})),
        run(
            json!([ret(call(id("parseInt"), "constructor", json!([lit("x")])))]),
            json!({}),
        ),
        run(
            json!([ret(call(id("parseInt"), "call", json!([lit("x")])))]),
            json!({}),
        ),
        run(
            json!([ret(call(id("parseInt"), "apply", json!([lit("x")])))]),
            json!({}),
        ),
        run(
            json!([ret(call(id("parseInt"), "bind", json!([])))]),
            json!({}),
        ),
        run(
            json!([ret(call(id("Array"), "constructor", json!([])))]),
            json!({}),
        ),
    ];
    for outcome in outcomes {
        let error = outcome.error.expect("a refusal");
        assert!(
            matches!(error.code, ErrorCode::Program | ErrorCode::Security),
            "{error:?}"
        );
    }
    // Builtins do not leave the run (D35).
    let steps = json!([
        set("f", id("parseInt")),
        ret(list(json!([id("f"), id("Math")])))
    ]);
    let outcome = run(steps, json!({}));
    let shown = outcome.result.to_json().to_string();
    assert!(!shown.contains("native"), "{shown}");
}

#[test]
fn e06_no_shared_prototype_can_be_written() {
    for method in [
        "defineProperty",
        "setPrototypeOf",
        "getPrototypeOf",
        "create",
        "prototype",
    ] {
        let steps = json!([ret(call(
            id("Object"),
            method,
            json!([record(&[]), lit("x"), record(&[])])
        ))]);
        let error = run(steps, json!({})).error.expect("a refusal");
        assert!(
            matches!(error.code, ErrorCode::Program | ErrorCode::Security),
            "{method}: {error:?}"
        );
    }
    let steps = json!([
        set(
            "a",
            call(
                id("Object"),
                "assign",
                json!([id("Object"), record(&[("polluted", lit(true))])])
            )
        ),
        ret(member(record(&[]), "polluted")),
    ]);
    assert_eq!(value(steps, json!({})), json!(null));
}

#[test]
fn e07_forbidden_bound_names_reject_the_program() {
    for name in FORBIDDEN {
        let programs = [
            json!([{"op": "varSet", "key": name, "value": 1}]),
            json!([{"op": "constSet", "key": name, "value": 1}]),
            json!([{"op": "len", "list": [], "result": name}]),
            json!([{"op": "map", "items": [], "as": name, "steps": []}]),
            json!([{"op": "reduce", "items": [], "as": "x", "accumulator": name, "initial": 0, "steps": []}]),
            json!([{"op": "try", "try": [], "catch": [], "catchParam": name}]),
            json!([{"op": "varsImport", "keys": [name]}]),
        ];
        for steps in programs {
            match ENGINE.compile(seq(steps.clone())) {
                Err(refused) => assert!(!refused.iter().next().unwrap().pointer.is_empty()),
                Ok(agent) => {
                    let outcome = ENGINE.run_sync(&agent, json!({}), RunOptions::new());
                    let refused = outcome.error.is_some_and(|e| e.code == ErrorCode::Security);
                    assert!(refused, "{steps}");
                }
            }
        }
    }
}

#[test]
fn e08_proto_keys_are_plain_data_everywhere() {
    let evil =
        r#"{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"isAdmin":true}},"ok":1}"#;
    let through = [
        json!({"op": "jsonParse", "str": "args.text", "result": "o"}),
        json!({"op": "merge", "a": "args.data", "b": {}, "result": "o"}),
        json!({"op": "merge", "a": {}, "b": "args.data", "result": "o"}),
        json!({"op": "pick", "obj": "args.data", "keys": ["__proto__", "ok"], "result": "o"}),
        json!({"op": "omit", "obj": "args.data", "keys": ["constructor"], "result": "o"}),
        set(
            "o",
            call(id("Object"), "assign", json!([record(&[]), id("data")])),
        ),
        set("o", call(id("JSON"), "parse", json!([id("text")]))),
        set(
            "o",
            call(
                id("Object"),
                "fromEntries",
                json!([call(id("Object"), "entries", json!([id("data")]))]),
            ),
        ),
    ];
    let data: serde_json::Value = serde_json::from_str(evil).unwrap();
    for step in through {
        let steps = json!([
            step,
            ret(list(json!([
                member(id("o"), "isAdmin"),
                member(record(&[]), "isAdmin"),
                call(id("Object"), "keys", json!([id("o")])),
            ])))
        ]);
        let got = value(steps, json!({"text": evil, "data": data}));
        assert_eq!((&got[0], &got[1]), (&json!(null), &json!(null)), "{step}");
        let keys = got[2].as_array().expect("keys");
        assert!(
            keys.contains(&json!("__proto__")) || keys.is_empty(),
            "{step}: {got}"
        );
    }
}

#[test]
fn e09_inherited_op_names_are_unknown_atoms() {
    for name in INHERITED.iter().chain(&["varSett", "__lookupGetter__"]) {
        let agent = ENGINE
            .compile(seq(json!([{"op": name}])))
            .expect("a warning only (D44)");
        assert!(
            agent
                .warnings()
                .iter()
                .any(|w| w.pointer.starts_with("/steps/0")),
            "{name}"
        );
        let error = stopped(
            &ENGINE.run_sync(&agent, json!({}), RunOptions::new()),
            ErrorCode::Program,
        );
        assert!(error.message.to_string().contains(name), "{error:?}");
    }
    let agent = ENGINE
        .compile(seq(json!([{"op": "varSett", "key": "a", "value": 1}])))
        .unwrap();
    let shown = format!("{:?}", agent.warnings());
    assert!(shown.contains("varSet"), "a suggestion: {shown}");
}

#[test]
fn e10_unset_guards_are_false() {
    for name in INHERITED {
        for condition in [
            json!(name),
            id(name),
            json!(format!("!!{name}")),
            json!(format!("{name} != null")),
        ] {
            let steps = json!([
                {"op": "if", "condition": condition, "then": [set("hit", lit(true))], "else": [set("hit", lit(false))]},
                ret(id("hit")),
            ]);
            let Ok(agent) = ENGINE.compile(seq(steps)) else {
                continue;
            };
            let outcome = ENGINE.run_sync(&agent, json!({}), RunOptions::new());
            if outcome.error.is_none() {
                assert_eq!(
                    outcome.result.to_json()["r"],
                    json!(false),
                    "{name} {condition}"
                );
            }
        }
    }
    for name in ["Math", "Set", "JSON", "Object"] {
        let steps = json!([
            {"op": "if", "condition": format!("{name}.polluted"), "then": [set("hit", lit(1))], "else": [set("hit", lit(0))]},
            ret(id("hit")),
        ]);
        let outcome = run(steps, json!({}));
        assert!(
            outcome.error.is_some() || outcome.result.to_json()["r"] == json!(0),
            "{name}"
        );
    }
}
