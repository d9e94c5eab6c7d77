use crate::wire::{Message, decode};
use crate::{Failure, Host, Item, Op, Value};
use agent99::{Capability, json};
use agent99::{Map, Text};

fn call(host: &Host, op: Op, args: impl IntoIterator<Item = Value>) -> Result<Value, Failure> {
    let args = args.into_iter().map(Item::Value).collect();
    match host.call(op as u32, args)? {
        Item::Value(value) => Ok(value),
        Item::Bytes(bytes) => panic!("{} bytes", bytes.len()),
    }
}

fn value(json: serde_json::Value) -> Value {
    Value::from(json)
}

fn number(n: &Value) -> f64 {
    n.as_f64().expect("a number")
}

fn parts(event: &Value) -> &[Value] {
    event.as_array().expect("an event")
}

/// An engine with the host's atom `twice`, and the handle.
fn engine(host: &Host) -> Value {
    let config = json!({"atoms": [{"op": "twice", "cost": 2, "timeoutMs": 50}]});
    call(host, Op::Engine, [value(config)]).expect("an engine")
}

fn start(host: &Host, engine: &Value, program: serde_json::Value, options: Value) -> Value {
    let args = value(json!({"n": 4}));
    let start = [engine.clone(), value(program), args, options, 0.0.into()];
    call(host, Op::Start, start).expect("an event")
}

fn answer(host: &Host, event: &Value, ok: bool, answer: Value) -> Value {
    let [_, run, id, ..] = parts(event) else {
        panic!("{event}");
    };
    let none = Value::Undefined;
    let args = [run.clone(), id.clone(), ok.into(), answer, none, 1.0.into()];
    call(host, Op::Answer, args).expect("an event")
}

fn twice() -> serde_json::Value {
    json!({"a99": 4, "op": "seq", "steps": [
        {"op": "twice", "n": {"=": "n"}, "result": "m"},
        {"op": "return", "value": {"=": "m"}}
    ]})
}

#[test]
fn the_host_answers_its_atoms() {
    let host = Host::new();
    let engine = engine(&host);
    let event = start(&host, &engine, twice(), Value::Undefined);
    let [kind, _, id, op, input, fuel, ..] = parts(&event) else {
        panic!("{event}");
    };
    assert_eq!(
        (number(kind), id.as_str(), op.as_str()),
        (1.0, Some("0.0"), Some("twice"))
    );
    assert_eq!(*input, value(json!({"n": 4})));
    assert!(number(fuel) < 998.0, "{fuel}");
    let done = answer(&host, &event, true, 8.0.into());
    assert_eq!(
        (number(&parts(&done)[0]), number(&parts(&done)[1])),
        (0.0, 8.0)
    );
    // The handle of the run ended with it.
    let stale = call(&host, Op::Next, [parts(&event)[1].clone(), 0.0.into()]).unwrap_err();
    assert_eq!(stale.code, "binding.bad_handle");
}

#[test]
fn failures_of_the_host_are_errors_of_the_program() {
    let host = Host::new();
    let engine = engine(&host);
    let event = start(&host, &engine, twice(), Value::Undefined);
    let failure = json!({"message": "declined", "code": "billing.declined"});
    let done = answer(&host, &event, false, value(failure));
    let error = &parts(&done)[2];
    assert_eq!(error.get("message").unwrap().as_str(), Some("declined"));
    assert_eq!(
        error.get("hostCode").unwrap().as_str(),
        Some("billing.declined")
    );
}

#[test]
fn a_call_that_times_out_is_cancelled() {
    let host = Host::new();
    let engine = engine(&host);
    let event = start(&host, &engine, twice(), Value::Undefined);
    let run = parts(&event)[1].clone();
    let wait = call(&host, Op::Next, [run.clone(), 1.0.into()]).unwrap();
    assert_eq!(number(&parts(&wait)[0]), 3.0);
    // Some time passed between the start and the call.
    let until = number(&parts(&wait)[2]);
    assert!((50.0..5_000.0).contains(&until), "{until}");
    let done = call(&host, Op::Next, [run, (until + 1.0).into()]).unwrap();
    let code = parts(&done)[2].get("code").unwrap().as_str();
    assert_eq!(code, Some("time.atom_timeout"), "{done}");
}

#[test]
fn capabilities_are_asked_of_the_host() {
    let host = Host::new();
    let engine = engine(&host);
    let program = json!({"op": "seq", "steps": [
        {"op": "storeGet", "key": "a", "result": "a"},
        {"op": "return", "schema": {"type": "object", "properties": {"a": {}}}}
    ]});
    let options = value(json!({"capabilities": ["store.get"]}));
    let event = start(&host, &engine, program, options);
    let [kind, _, _, method, args, ..] = parts(&event) else {
        panic!("{event}");
    };
    assert_eq!((number(kind), method.as_str()), (2.0, Some("store.get")));
    assert_eq!(*args, value(json!(["a"])));
    let done = answer(&host, &event, true, "here".into());
    assert_eq!(parts(&done)[1], value(json!({"a": "here"})));

    let wrong = value(json!({"capabilities": ["store.gte"]}));
    let args = [engine, value(twice()), Value::Undefined, wrong];
    let failure = call(&host, Op::Start, args).unwrap_err();
    assert_eq!(failure.help.as_deref(), Some("offer `store.get`"));
}

#[test]
fn snapshots_go_on() {
    let host = Host::new();
    let engine = engine(&host);
    let compile = [engine.clone(), value(twice()), "value".into()];
    let compiled = call(&host, Op::Compile, compile).unwrap();
    let agent = compiled.get("agent").unwrap().clone();
    let args = [engine.clone(), agent.clone(), value(json!({"n": 1}))];
    let event = call(&host, Op::Start, args).unwrap();
    let run = Item::Value(parts(&event)[1].clone());
    let Item::Bytes(bytes) = host.call(Op::Snapshot as u32, vec![run]).unwrap() else {
        panic!("bytes");
    };
    let args = vec![engine.into(), agent.into(), Item::Bytes(bytes)];
    let Item::Value(event) = host.call(Op::Restore as u32, args).unwrap() else {
        panic!("an event");
    };
    let done = answer(&host, &event, true, 2.0.into());
    assert_eq!(number(&parts(&done)[1]), 2.0);
}

#[test]
fn refused_programs_have_diagnostics() {
    let host = Host::new();
    let engine = engine(&host);
    let program = json!({"op": "seq", "steps": [{"op": "varSet", "key": "__proto__", "value": 1}]});
    let args = [engine.clone(), value(program.clone()), "value".into()];
    let found = call(&host, Op::Compile, args).unwrap();
    let first = &found.get("diagnostics").unwrap().as_array().unwrap()[0];
    assert_eq!(first.get("pointer").unwrap().as_str(), Some("/steps/0/key"));
    let args = [engine, value(program), Value::Undefined];
    let failure = call(&host, Op::Start, args).unwrap_err();
    assert_eq!(failure.code, first.get("code").unwrap().as_str().unwrap());
    assert!(failure.diagnostics.is_some());
}

#[test]
fn unknown_options_are_refused() {
    let host = Host::new();
    let engine = engine(&host);
    let args = [
        engine,
        value(twice()),
        Value::Undefined,
        value(json!({"feul": 1})),
    ];
    let failure = call(&host, Op::Start, args).unwrap_err();
    assert_eq!(failure.code, "binding.bad_option");
    assert_eq!(failure.help.as_deref(), Some("did you mean `fuel`?"));
}

/// Capabilities that the engine has without the host, or that no host of another language grants.
const OF_THE_ENGINE: [&str; 3] = ["clock", "procedures", "random"];

#[test]
fn every_capability_can_be_offered() {
    let methods: Vec<String> = crate::granted::methods().map(str::to_owned).collect();
    let granted = crate::granted::granted(&methods, &crate::asks::Asks::default()).unwrap();
    let granted = granted.granted();
    for capability in Capability::ALL {
        let name = capability.name();
        let is_ours = OF_THE_ENGINE.contains(&name);
        assert!(
            granted.contains(&name) != is_ours,
            "{name}: capabilities/src/requests/mod.rs"
        );
    }
}

#[test]
fn operations_are_numbered_by_place() {
    assert!(
        Op::ALL
            .iter()
            .enumerate()
            .all(|(at, op)| at == *op as usize)
    );
    let failure = Host::new().call(99, Vec::new()).unwrap_err();
    assert_eq!(failure.code, "binding.bad_argument");
}

fn lone() -> Text {
    Text::copy_wtf8(&[b'a', 0xED, 0xA0, 0x80, b'b'])
}

#[test]
fn messages_carry_every_value() {
    let mut map = Map::new();
    map.insert("", Value::Undefined);
    map.insert("a", -0.0);
    map.insert(lone(), "\u{1F600} ä €");
    let nested = value(json!([{"a": 1, "b": [true, null]}, {"a": -134_217_728, "b": 134_217_728}]));
    let values = [
        Value::Object(map),
        nested,
        f64::NAN.into(),
        (-1.0).into(),
        0.5.into(),
        Value::Array(Vec::new()),
    ];
    for value in values {
        let mut message = Message::default();
        message.write(Ok(Item::Value(value.clone())));
        let Item::Value(back) = decode(&message.words, &message.text).unwrap().remove(0) else {
            panic!("a value");
        };
        assert_eq!(back.to_json_string(), value.to_json_string());
        assert_eq!(back, value);
        // A cut message is refused.
        for end in 1..message.words.len() {
            assert!(decode(&message.words[..end], &message.text).is_err());
        }
    }
    let mut message = Message::default();
    message.write(Ok(Item::Bytes(vec![1, 2, 3, 4, 5])));
    let Item::Bytes(bytes) = decode(&message.words, &[]).unwrap().remove(0) else {
        panic!("bytes");
    };
    assert_eq!(bytes, [1, 2, 3, 4, 5]);
}

#[test]
fn damaged_messages_are_refused() {
    let deep = vec![7 | 1 << 4; 20_000];
    for words in [
        vec![12],
        vec![6 | 1 << 4],
        vec![8 | 1 << 4, 10],
        vec![7 | 0x0FFF_FFFF << 4],
        deep,
    ] {
        let failure = decode(&words, &[]).unwrap_err();
        assert_eq!(failure.code, "binding.bad_message");
    }
}
