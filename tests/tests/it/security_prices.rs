//! Threat A13 for the atoms that wait: what each pays for what goes to a
//! capability and comes from it. Atoms that do not wait are held to their
//! prices where they are written (`atoms/src/testing.rs`).

use crate::attack::{id, ret, rich, seq};
use a99_core::costs::{
    COMMAND_BYTE, FREE, MICRO, NODE_METERED, Sizes, XML, crossing_list, crossing_object,
    crossing_text, work,
};
use agent99::capabilities::{
    MAX_KEY_BYTES, MemoryDom, MemoryLocalStorage, MemoryProcedures, MemoryShell, MemoryTurn, Reply,
    Script, Shell, Store, StoreMethod,
};
use agent99::{
    AtomBody, AtomDef, Binding, Capabilities, CostModel, Engine, Params, Value, all_atoms, json,
};
use serde_json::Value as Json;
use std::pin::pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};

/// Units or elements of what is long.
const LONG: usize = 100_000;

/// An engine with every atom there is.
static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::builder().atoms(all_atoms()).build());

/// Asynchronous atoms that no program can name, and who holds them to a price.
const LEFT_OUT: &[(&str, &str)] = &[
    ("cache:get", "part of `cache`: vector metered-cache"),
    ("cache:put", "part of `cache`: vector metered-cache"),
    ("sleep", "waits for a timer: vectors own-sleep"),
];

/// A call of an atom.
struct Call {
    inputs: Json,
    granted: Capabilities,
    /// What is paid in both models besides the static price.
    bytes: usize,
}

impl Call {
    /// Answered by a script.
    fn scripted(inputs: Json, script: Json) -> Call {
        let script = Script::new(script.into()).expect("a script");
        Call::of(inputs, now(script.granted()).expect("a script"))
    }

    fn of(inputs: Json, granted: Capabilities) -> Call {
        Call {
            inputs,
            granted,
            bytes: 0,
        }
    }

    /// With bytes that a computer gets and gives.
    fn with_bytes(self, bytes: usize) -> Call {
        Call { bytes, ..self }
    }
}

/// A store that gives the same rows whatever it is asked.
struct Rows(Value);

impl Store for Rows {
    fn supports(&self, _: StoreMethod) -> bool {
        true
    }

    fn query(&self, _: Value) -> Reply<'_> {
        Box::pin(async { Ok(self.0.clone()) })
    }

    fn query_predicate(&self, _: Value) -> Reply<'_> {
        Box::pin(async { Ok(self.0.clone()) })
    }
}

/// A text of so many units.
fn text(n: usize) -> String {
    "7".repeat(n)
}

/// As many numbers, up to the largest vector that there is.
fn numbers(n: usize) -> Json {
    Json::from(vec![1.0; n.min(65_536)])
}

/// What needs no waiting.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing here waits"),
    }
}

/// A call whose inputs are this long, and whose answer is where its length is
/// not that of an input; nothing for an atom that has no call here.
fn call(op: &str, n: usize, answer: usize) -> Option<Call> {
    // Keys of one script that are both there.
    let key = text(n);
    let stored = text(n.min(MAX_KEY_BYTES));
    let by_key = |reply: Json| Json::Object([(key.clone(), reply)].into_iter().collect());
    let collection = json!({"k": [{"embedding": numbers(n), "body": text(answer)}]});
    let rows = || Capabilities::none().with_store(Rows(json!([text(answer)]).into()));
    let dom = || Capabilities::none().with_dom(MemoryDom::new().with(&key, &text(answer)));
    let storage = || Capabilities::none().with_local_storage(MemoryLocalStorage::new());
    let turn = || {
        let whole = || Value::from(json!({"a": text(answer)}));
        let rows = by_key(json!([text(answer)]));
        let turn = MemoryTurn::new().with_state(whole()).with_settings(whole());
        let turn = turn.with_identity(whole()).with_storage(rows.into());
        let turn = turn.with_roster(json!([text(answer)]).into());
        let turn = turn.with_methods(by_key(json!(text(answer))).into());
        Capabilities::none().with_agent_turn(turn)
    };
    let procedures = || Capabilities::none().with_procedures(MemoryProcedures::default());
    let store = || json!({"store": {}});
    Some(match op {
        "httpFetch" => Call::scripted(
            json!({"url": key, "method": key, "headers": {"a": key}, "body": [key],
                "responseType": key}),
            json!({"fetch": by_key(json!({"body": text(answer)}))}),
        ),
        "llmPredict" => Call::scripted(
            json!({"prompt": key, "options": [key]}),
            json!({"llm": [text(answer), text(answer)]}),
        ),
        "llmPredictBattery" => Call::scripted(
            json!({"system": key, "user": key, "tools": numbers(n), "responseFormat": key}),
            json!({"llmBattery": [[text(answer)], [text(answer)]]}),
        ),
        "llmChat" => Call::scripted(
            json!({"prompt": key, "messages": [{"role": "user", "content": key}],
                "tools": [{"name": "t", "description": key}], "system": key,
                "toolChoice": "auto", "responseFormat": {"type": "object", "title": key},
                "model": "scripted", "role": "fast", "maxTokens": 5, "temperature": 0, "seed": 1,
                "stop": [key], "topP": 1, "effort": "low", "repair": false}),
            json!({"ai": [text(answer), text(answer)]}),
        ),
        "llmVision" => Call::scripted(
            json!({"system": key, "prompt": key, "images": vec![key.clone(); 3],
                "responseFormat": key}),
            json!({"llmBattery": [text(answer), text(answer)]}),
        ),
        "sleep" => Call::scripted(json!({"ms": 0}), json!({})),
        "streamChunk" => Call::scripted(json!({"data": [key]}), json!({})),
        "agentRun" => Call::scripted(
            json!({"agentId": key, "input": {"a": key}}),
            json!({"agents": by_key(text(answer).into())}),
        ),
        "xmlParse" => Call::scripted(
            json!({"str": key}),
            json!({"xml": by_key(json!([text(answer)]))}),
        ),
        "transpileCode" => Call::scripted(
            json!({"code": key}),
            json!({"transpile": by_key(text(answer).into())}),
        ),
        "storeGet" => Call::scripted(
            json!({"key": stored}),
            json!({"store": {(stored): {"a": text(answer)}}}),
        ),
        "storeSet" => Call::scripted(
            json!({"key": stored, "value": numbers(n), "ttlMs": 1e6}),
            store(),
        ),
        "storeDelete" => Call::scripted(json!({"key": stored}), store()),
        "storeList" => {
            // The page of some keys, which start with the prefix and follow the cursor.
            let keys = (0..answer / 100).map(|at| (format!("{stored}{at:06}"), json!(1)));
            let keys: serde_json::Map<String, Json> = keys.collect();
            Call::scripted(
                json!({"prefix": stored, "cursor": stored, "limit": 1_000}),
                json!({"store": keys}),
            )
        }
        "storeCompareAndSet" => Call::scripted(
            json!({"key": stored, "expected": numbers(n), "value": numbers(n), "ttlMs": 1e6}),
            json!({"store": {(stored): numbers(n)}}),
        ),
        "storeQuery" => Call::of(json!({"query": key}), rows()),
        "storeQueryWhere" => Call::of(
            json!({"predicate": {"canonical": key}, "collection": key, "limit": 1}),
            rows(),
        ),
        "storeVectorSearch" => Call::scripted(
            json!({"collection": "k", "vector": numbers(n), "k": 5}),
            json!({"vectors": collection}),
        ),
        "storeSearch" => Call::scripted(
            json!({"collection": "k", "queryVector": numbers(n), "k": 5,
                "filter": {"body": text(answer)}}),
            json!({"vectors": collection}),
        ),
        "storeVectorize" => Call::scripted(
            json!({"text": key, "model": key}),
            json!({"embed": answer.min(65_536)}),
        ),
        "storeCreateCollection" => {
            Call::scripted(json!({"collection": stored, "dimension": 1}), store())
        }
        "storeVectorAdd" => Call::scripted(
            json!({"collection": "k", "doc": {"embedding": numbers(n), "body": text(answer)}}),
            json!({"vectors": collection}),
        ),
        "storeVectorUpsert" => Call::scripted(
            json!({"collection": "k",
                "doc": {"id": key, "embedding": numbers(n), "body": text(answer)}}),
            json!({"vectors": collection}),
        ),
        "storeVectorDelete" => Call::scripted(
            json!({"collection": "k", "id": key}),
            json!({"vectors": collection}),
        ),
        "storeProcedure" => Call::of(
            json!({"ast": {"op": "seq", "steps": [], "note": key}, "ttl": 1, "maxSize": 200_000}),
            procedures(),
        ),
        "releaseProcedure" => Call::of(json!({"token": key}), procedures()),
        "clearExpiredProcedures" => Call::of(json!({}), procedures()),
        "shellExec" => Call::scripted(
            json!({"command": key, "cwd": format!("/{key}"), "env": {"A": key}, "stdin": key,
                "timeoutMs": 1_000, "encoding": "utf8"}),
            json!({"shell": by_key(json!({"stdout": text(answer), "stderr": text(answer)}))}),
        )
        .with_bytes(4 * n + 2 + 2 * answer),
        "shellWriteFile" => Call::scripted(
            json!({"path": format!("/{key}"), "content": key, "encoding": "utf8", "mode": "600"}),
            json!({"shell": {}}),
        )
        .with_bytes(2 * n + 1),
        "shellReadFile" => {
            let path = format!("/{key}");
            let shell = MemoryShell::new();
            let file = text(answer).into_bytes();
            now(shell.write_file(path.clone(), file, 0o600)).expect("a file");
            let granted = Capabilities::none().with_shell(shell);
            Call::of(
                json!({"path": path, "encoding": "utf8", "maxBytes": answer}),
                granted,
            )
            .with_bytes(n + 1 + answer)
        }
        "domText" | "domValue" | "domClick" => Call::of(json!({"selector": key}), dom()),
        "domInput" => Call::of(json!({"selector": key, "value": text(n)}), dom()),
        "agentState" | "agentSettings" | "agentIdentity" => Call::of(json!({}), turn()),
        "agentSetState" => Call::of(json!({"state": {"a": text(n)}, "replace": true}), turn()),
        "agentSetSettings" => Call::of(json!({"settings": {"a": text(n)}}), turn()),
        "agentSend" => Call::of(
            json!({"content": key, "replyTo": key, "at": [key], "contentType": key,
                "metadata": {"a": key}, "partial": true}),
            turn(),
        ),
        "agentUpdate" => Call::of(
            json!({"id": key, "content": key, "contentType": key, "complete": true}),
            turn(),
        ),
        "agentFail" => Call::of(json!({"id": key, "error": key, "code": key}), turn()),
        "agentPublish" => Call::of(
            json!({"type": key, "payload": [key], "persist": true}),
            turn(),
        ),
        "agentSetTimer" => Call::of(
            json!({"name": "t", "at": null, "after": null, "cron": key, "zone": key,
                "payload": [key]}),
            turn(),
        ),
        "agentCancelTimer" => Call::of(json!({"name": text(n.min(128))}), turn()),
        "agentRoster" => Call::of(json!({}), turn()),
        "agentCallMethod" => Call::of(
            json!({"to": key, "method": key, "args": {"a": key}, "timeoutMs": 5}),
            turn(),
        ),
        "agentMethodResult" => Call::of(
            json!({"callId": key, "content": [key], "progress": 50}),
            turn(),
        ),
        "agentInvite" => Call::of(
            json!({"agent": key, "handle": key, "config": {"a": key}}),
            turn(),
        ),
        "agentRemove" => Call::of(json!({"agent": key, "handle": key}), turn()),
        "agentStorageExec" => Call::of(json!({"sql": key}), turn()),
        "agentStorageRun" | "agentStorageGet" | "agentStorageQuery" => {
            Call::of(json!({"sql": key, "params": numbers(n)}), turn())
        }
        "localStorageGet" => Call::of(json!({"key": key}), storage()),
        "localStorageSet" => Call::of(json!({"key": key, "value": text(n)}), storage()),
        _ => return None,
    })
}

/// What a copy between a program and its host costs.
fn crossing(value: &Json) -> i64 {
    match value {
        Json::String(text) => crossing_text(text.encode_utf16().count()),
        Json::Array(items) => crossing_list(items.len()) + items.iter().map(crossing).sum::<i64>(),
        Json::Object(map) => crossing_object(map.len()) + map.values().map(crossing).sum::<i64>(),
        _ => 0,
    }
}

/// What an atom pays for a call, besides its static price, the `seq` around it
/// and the literals of the step; and what copies and bytes cost.
fn paid_and_due(atom: &AtomDef, call: &Call) -> (i64, i64) {
    let op = &*atom.sig.name;
    let Params::Named(params) = &atom.sig.params else {
        panic!("{op}: without names of its inputs: tests/tests/it/security_prices.rs");
    };
    let mut step = json!({"op": op, "result": "y"});
    let mut literals = 0;
    for param in params.iter() {
        let name = param.name;
        assert!(call.inputs.get(name).is_some(), "{op}: {name} is not given");
        step[name] = match param.binding {
            Binding::Value => format!("args.{name}").into(),
            Binding::Literal => call.inputs[name].clone(),
            Binding::Vars => {
                literals += NODE_METERED;
                json!({"a": format!("args.{name}.a")})
            }
            other => panic!("{op}: {other:?} is not known here"),
        };
    }
    let run = |steps: Json| {
        let agent = ENGINE.compile(seq(steps)).expect("a program");
        let args = call.inputs.clone();
        let outcome = ENGINE.run_sync_with(&agent, args, rich(), call.granted.clone());
        assert_eq!(outcome.error, None, "{op}");
        outcome
    };
    let paid = run(json!([step])).fuel_used.micro();
    let answer = run(json!([step, ret(id("y"))])).result.to_json();
    let fixed = atom.sig.cost.fixed_in(CostModel::Metered);
    let root = work(MICRO / 10, CostModel::Metered);
    let inputs: i64 = params.iter().map(|p| crossing(&call.inputs[p.name])).sum();
    let copies = inputs + answer.get("r").map_or(0, crossing);
    let bytes = call.bytes as i64 * COMMAND_BYTE;
    let read = params.iter().filter_map(|p| call.inputs[p.name].as_str());
    let units = read.map(|text| text.encode_utf16().count()).sum();
    let read = atom.sig.metered.price(Sizes::units(units));
    (paid - fixed - root - literals, copies + bytes + read)
}

/// Inputs and answers are short, then long, each: what they cost is what the
/// pages say (`docs/costs.md`), to the micro-unit.
#[test]
fn a13_atoms_that_wait_charge_what_they_declare() {
    let mut wrong = Vec::new();
    for atom in all_atoms().iter() {
        let op = &*atom.sig.name;
        if !matches!(atom.body, AtomBody::Async(_)) || LEFT_OUT.iter().any(|(out, _)| *out == op) {
            continue;
        }
        // What a host declares for its own: security_fuel.rs. Of ours the parser of XML
        // has work of its own, over the one text that it gets.
        let declared = if op == "xmlParse" { XML } else { FREE };
        assert_eq!(atom.sig.metered, declared, "{op}: another price");
        for (n, answer) in [(1, 1), (LONG, 1), (1, LONG)] {
            let Some(call) = call(op, n, answer) else {
                wrong.push(format!(
                    "{op}: not called: tests/tests/it/security_prices.rs"
                ));
                continue;
            };
            let (paid, due) = paid_and_due(atom, &call);
            if paid != due {
                wrong.push(format!(
                    "{op} of {n} that gives {answer}: {paid} instead of {due}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}
