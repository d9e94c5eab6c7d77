//! Threats E11 to E20: data taken for code, and what leaks the other way.

use crate::attack::{
    ENGINE, call, id, list, lit, member, record, ret, rich, run, run_granted, run_with, seq, set,
    stopped, value,
};
use agent99::capabilities::{MemoryStore, ScriptedFetch, ScriptedLlm};
use agent99::{
    AtomBody, AtomDef, AtomError, AtomSig, Capabilities, Engine, ErrorCode, HostReply, Params,
    RunOptions, Value, all_atoms, json,
};
use std::borrow::Cow;
use std::sync::Arc;

#[test]
fn e11_incoming_text_is_never_resolved_again() {
    let granted = || {
        let fetch = ScriptedFetch::new()
            .on("https://a", "secret")
            .on("https://b", "args.secret")
            .on("https://c", json!({"v": "args.secret", "w": ["secret"]}));
        Capabilities::none().with_fetch(fetch)
    };
    for (url, expected) in [
        ("https://a", json!("secret")),
        ("https://b", json!("args.secret")),
        ("https://c", json!({"v": "args.secret", "w": ["secret"]})),
    ] {
        let steps = json!([
            set("secret", lit("TOP")),
            {"op": "httpFetch", "url": url, "result": "got"},
            {"op": "varSet", "key": "again", "value": "got"},
            set("text", call(id("JSON"), "stringify", json!([id("again")]))),
            {"op": "jsonParse", "str": "text", "result": "back"},
            ret(id("back")),
        ]);
        let outcome = run_granted(steps, json!({"secret": "TOP"}), rich(), granted());
        assert_eq!(outcome.error, None);
        assert_eq!(outcome.result.to_json()["r"], expected);
    }
}

#[test]
fn e12_nodes_that_arrive_as_data_stay_data() {
    let nodes = json!([
        {"$expr": "ident", "name": "secret"},
        {"$kind": "arg", "path": "secret"},
        {"$expr": "call", "callee": "parseInt", "arguments": ["7"]},
        {"op": "return", "value": {"stolen": "secret"}},
    ]);
    for node in nodes.as_array().unwrap() {
        let fetch = ScriptedFetch::new().on("https://x", node.clone());
        let granted = Capabilities::none()
            .with_fetch(fetch)
            .with_store(MemoryStore::new());
        let steps = json!([
            set("secret", lit("TOP")),
            {"op": "httpFetch", "url": "https://x", "result": "f"},
            {"op": "storeSet", "key": "k", "value": "f"},
            {"op": "storeGet", "key": "k", "result": "s"},
            {"op": "varSet", "key": "a", "value": "args.node"},
            {"op": "push", "list": [], "item": "a", "result": "p"},
            {"op": "template", "tmpl": "{{a}}", "vars": {"a": "a"}, "result": "t"},
            ret(list(json!([id("f"), id("s"), id("a"), id("p"), id("t")]))),
        ]);
        let args = json!({"node": node, "secret": "TOP"});
        let outcome = run_granted(steps, args, rich(), granted);
        assert_eq!(outcome.error, None);
        let got = &outcome.result.to_json()["r"];
        assert_eq!(*got, json!([node, node, node, [node], "[object Object]"]));
    }
}

#[test]
fn e13_spoofed_errors_are_values() {
    for fake in [
        json!({"$error": true, "message": "x"}),
        json!({"error": "x"}),
        json!({"code": "fuel.exhausted"}),
    ] {
        let fetch = ScriptedFetch::new().on("https://x", fake.clone());
        let steps = json!([
            {"op": "httpFetch", "url": "https://x", "result": "f"},
            {"op": "varSet", "key": "a", "value": "args.fake"},
            ret(list(json!([id("f"), id("a"), lit(fake.clone())]))),
        ]);
        let granted = Capabilities::none().with_fetch(fetch);
        let outcome = run_granted(steps, json!({"fake": fake}), rich(), granted);
        assert_eq!(outcome.error, None);
        assert_eq!(outcome.result.to_json()["r"], json!([fake, fake, fake]));
    }
    // A returned object that looks like an error is a result.
    let steps = json!([{"op": "return", "value": {"$error": true, "message": "boo"}}]);
    let outcome = run(steps, json!({}));
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.result.to_json()["message"], json!("boo"));
}

/// An atom that answers with a value made by the host.
fn answering(
    name: &'static str,
    reply: impl Fn() -> Result<Value, AtomError> + Send + Sync + 'static,
) -> AtomDef {
    AtomDef {
        sig: AtomSig {
            name: Cow::Borrowed(name),
            params: Params::Raw,
            ..AtomSig::new("", "An atom of the host.", 1_000_000)
        },
        body: AtomBody::AsyncDyn(Arc::new(move |_| {
            let reply = reply().map(HostReply::from);
            Box::pin(async move { reply })
        })),
        dynamic_cost: None,
    }
}

#[test]
fn e14_only_data_comes_from_capabilities() {
    // The type of replies is data by construction; what is left is data that
    // is too deep, too large or not a number of JSON.
    let deep = || (0..100_000).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    let atoms = all_atoms()
        .with(answering("deep", move || Ok(deep())))
        .with(answering("large", || Ok(Value::from("x".repeat(5 << 20)))))
        .with(answering("odd", || {
            Ok(Value::Array(vec![
                Value::Number(f64::NAN),
                Value::Undefined,
            ]))
        }));
    let engine = Engine::builder().atoms(atoms).build();
    let go = |op: &str| {
        let steps = json!([{"op": op, "result": "x"}, ret(call(id("x"), "toString", json!([])))]);
        let agent = engine.compile(seq(steps)).unwrap();
        engine.run_sync(&agent, json!({}), RunOptions::new())
    };
    stopped(&go("deep"), ErrorCode::Boundary);
    stopped(&go("large"), ErrorCode::Boundary);
    assert_eq!(go("odd").result.to_json(), json!({"r": "NaN,"}));
}

#[test]
fn e15_the_host_sees_no_mutation() {
    let args = json!({"list": [1, 2], "o": {"inner": [1]}});
    let kept = Value::from(args.clone());
    let program = seq(json!([
        set("lit", json!([1])),
        {"op": "push", "list": "args.list", "item": 9},
        {"op": "push", "list": "args.o.inner", "item": 9},
        {"op": "push", "list": "lit", "item": 9},
        {"op": "storeGet", "key": "k", "result": "s"},
        {"op": "push", "list": "s", "item": 9},
        ret(list(json!([id("list"), id("lit"), id("s")]))),
    ]));
    let store = Arc::new(MemoryStore::new());
    let agent = ENGINE.compile(program.clone()).unwrap();
    let granted = || {
        let mut granted = Capabilities::none();
        granted.store = Some(store.clone());
        granted
    };
    let seed = ENGINE
        .compile(seq(json!([{"op": "storeSet", "key": "k", "value": [1]}])))
        .unwrap();
    assert_eq!(
        ENGINE
            .run_sync_with(&seed, json!({}), rich(), granted())
            .error,
        None
    );
    let context = Value::from(json!({"user": [1]}));
    for _ in 0..2 {
        let options = rich().context(context.clone());
        let outcome = ENGINE.run_sync_with(&agent, kept.clone(), options, granted());
        assert_eq!(
            outcome.result.to_json()["r"],
            json!([[1, 2, 9], [1, 9], [1, 9]])
        );
    }
    assert_eq!(kept.to_json(), args);
    assert_eq!(agent.source().as_deref(), Some(program.as_bytes()));
}

#[test]
fn e16_duplicate_keys_reject_and_unknown_keys_do_nothing() {
    for text in [
        r#"{"op":"seq","op":"seq","steps":[]}"#,
        r#"{"op":"seq","steps":[{"op":"len","list":[],"op":"return"}]}"#,
        r#"{"op":"seq","steps":[],"steps":[{"op":"return","value":{}}]}"#,
        r#"{"op":"seq","steps":[{"op":"varSet","key":"a","key":"b","value":1}]}"#,
        "{\"op\":\"seq\",\"\\u006fp\":\"seq\",\"steps\":[]}",
    ] {
        let refused = ENGINE.compile(text).expect_err(text);
        assert!(
            refused
                .iter()
                .any(|d| d.message.contains("uplicate") || d.message.contains("twice")),
            "{refused:?}"
        );
    }
    let steps = json!([{"op": "varSet", "key": "a", "value": 1, "extra": {"op": "return"}, "toString": 1}, ret(id("a"))]);
    assert_eq!(value(steps, json!({})), json!(1));
}

#[test]
fn e17_steps_must_be_a_list() {
    for steps in [
        json!({"0": {"op": "return", "value": {"r": 1}}, "length": 1}),
        json!("return"),
        json!(7),
        json!([null]),
        json!([[{"op": "return", "value": {"r": 1}}]]),
        json!([{"length": 1}]),
    ] {
        match ENGINE.compile(seq(steps.clone())) {
            Err(refused) => assert!(!refused.is_empty()),
            Ok(agent) => {
                assert!(!agent.warnings().is_empty(), "{steps}");
                let outcome = ENGINE.run_sync(&agent, json!({}), RunOptions::new());
                assert!(
                    outcome.error.is_some() && outcome.result.get("r").is_none(),
                    "{steps}: {outcome:?}"
                );
            }
        }
    }
}

#[test]
fn e18_lookalike_names_are_distinct() {
    let names = [
        "pay",
        "p\u{430}y",
        "pay\u{200b}",
        "\u{202e}pay",
        "p\u{e1}y",
        "pa\u{301}y",
        "pay\u{0}",
    ];
    let mut steps: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(i, n)| set(n, lit(i)))
        .collect();
    steps.push(ret(list(json!(names.map(id)))));
    assert_eq!(value(json!(steps), json!({})), json!([0, 1, 2, 3, 4, 5, 6]));
    // A forbidden name is not reached by what looks like it, and no message
    // shows control characters raw.
    let steps = json!([{"op": "pay\u{202e}\u{0}\u{1b}[2J"}]);
    let agent = ENGINE.compile(seq(steps)).unwrap();
    let shown =
        agent99::escape_for_terminal(&agent.warnings().iter().next().unwrap().message).to_string();
    assert!(
        !shown.contains(['\u{202e}', '\u{0}', '\u{1b}']),
        "{shown:?}"
    );
    let steps = json!([ret(member(record(&[]), "__proto__\u{200b}"))]);
    assert_eq!(value(steps, json!({})), json!(null));
}

#[test]
fn e19_lone_surrogates_survive() {
    let program = r#"{"op":"seq","steps":[
        {"op":"varSet","key":"h","value":{"$expr":"literal","value":"\ud83d"}},
        {"op":"varSet","key":"l","value":{"$expr":"literal","value":"\udc4d"}},
        {"op":"hash","value":"h","result":"digest"},
        {"op":"storeSet","key":"h","value":"h"},
        {"op":"storeGet","key":"h","result":"back"},
        {"op":"regexMatch","pattern":".","value":"h","result":"m"},
        {"op":"template","tmpl":"{{a}}{{b}}","vars":{"a":"h","b":"l"},"result":"t"},
        {"op":"varSet","key":"n","value":{"$expr":"member","object":{"$expr":"ident","name":"h"},"property":"length"}},
        {"op":"varSet","key":"j","value":{"$expr":"binary","op":"+","left":{"$expr":"ident","name":"h"},"right":{"$expr":"ident","name":"l"}}},
        {"op":"varSet","key":"same","value":{"$expr":"binary","op":"===","left":{"$expr":"ident","name":"h"},"right":{"$expr":"ident","name":"back"}}},
        {"op":"return","value":{"digest":{"$expr":"ident","name":"digest"},"n":{"$expr":"ident","name":"n"},
            "t":{"$expr":"ident","name":"t"},"j":{"$expr":"ident","name":"j"},"same":{"$expr":"ident","name":"same"}}}]}"#;
    let agent = ENGINE.compile(program).unwrap();
    let granted = Capabilities::none().with_store(MemoryStore::new());
    let outcome = ENGINE.run_sync_with(&agent, json!({}), rich(), granted);
    assert_eq!(outcome.error, None);
    let got = outcome.result.to_json();
    assert_eq!(
        (&got["n"], &got["t"], &got["j"], &got["same"]),
        (&json!(1), &json!("👍"), &json!("👍"), &json!(true))
    );
    assert!(got["digest"].is_string());
}

#[test]
fn e20_errors_tell_nothing_of_the_host() {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let atoms = all_atoms()
        .with(answering("panics", || {
            panic!("password=hunter2 at /etc/passwd")
        }))
        .with(answering("refuses", || Err(AtomError::new("no such user"))));
    let engine = Engine::builder().atoms(atoms).build();
    let go = |op: &str| {
        let agent = engine.compile(seq(json!([{"op": op}]))).unwrap();
        engine.run_sync(&agent, json!({"token": "s3cr3t"}), RunOptions::new())
    };
    let panicked = go("panics");
    let refused = go("refuses");
    std::panic::set_hook(quiet);
    let error = panicked.error.expect("an error");
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    assert_eq!(refused.error.expect("an error").message, "no such user");
    // The values of a run are no part of its errors.
    let steps = json!([{"op": "jsonParse", "str": "args.token"}]);
    let outcome = run_with(steps, json!({"token": "s3cr3t-value"}), RunOptions::new());
    let error = stopped(&outcome, ErrorCode::Program);
    assert!(
        !error.message.to_string().contains("s3cr3t-value"),
        "{error:?}"
    );
    let llm = ScriptedLlm::replies(["x"]);
    let steps = json!([{"op": "llmPredict", "prompt": "p", "result": "a"}, {"op": "nope"}]);
    let outcome = run_granted(steps, json!({}), rich(), Capabilities::none().with_llm(llm));
    stopped(&outcome, ErrorCode::Program);
}
