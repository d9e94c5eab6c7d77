//! Calls of methods: from agent to agent, answered, refused, in time or not.

use crate::script::{Call, Script, is, text};
use crate::support::{Counter, Files, LONG, ann, builder, key, say, store, texts};
use a99_runtime::{Body, CallOptions, Host, Method, Participant, Publish, Turn, TurnOutcome, Uuid};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Calls `HANDLE METHOD` of a message, and says what came of it.
async fn ask(turn: &mut Turn<'_, Script>, words: &str) -> TurnOutcome {
    let Some((handle, method)) = words.split_once(' ') else {
        return Ok(());
    };
    let options = CallOptions {
        timeout: method
            .starts_with("slow")
            .then_some(Duration::from_millis(40)),
        ..CallOptions::default()
    };
    let args = json!({"n": 20});
    let answer = match turn.call_method(handle, method, args, options).await {
        Ok(call) => call.result().await,
        Err(error) => Err(error),
    };
    let told = match answer {
        Ok(value) => format!("ok {value}"),
        Err(error) => format!("err {}", error.code()),
    };
    turn.send(told).await.map(drop)
}

fn asks() -> Script {
    Script::new(|turn, call| {
        Box::pin(async move {
            match &call {
                Call::Event(event) => match text(event) {
                    Some(words) if event.sender.handle.as_deref() == Some("ann") => {
                        ask(turn, words).await
                    }
                    _ => Ok(()),
                },
                _ => Ok(()),
            }
        })
    })
}

/// Has methods; the other agent is called back by `back`.
fn answers() -> Script {
    let mut script = Script::idle();
    script.methods = a99_runtime::Methods::<Script>::none()
        .with(
            "double",
            Method::<Script>::new("doubles", |_, turn, call| {
                Box::pin(async move {
                    turn.state_mut().count += 1;
                    Ok(json!(call.args["n"].as_u64().unwrap_or_default() * 2))
                })
            }),
        )
        .with(
            "endless",
            Method::<Script>::new("does not end", |_, turn, _| {
                Box::pin(async move {
                    turn.state_mut().count += 7;
                    std::future::pending().await
                })
            }),
        );
    script
}

#[tokio::test]
async fn h07_answers_of_others_are_no_answers() {
    let files = Files::new();
    let host = builder().agent("a", |_| asks());
    let host = host.start(store(&files.path())).await.expect("a host");
    host.invite(&key("a/c/a"), json!({}))
        .await
        .expect("invited");
    let bob = Uuid::from_u128(99);
    let joining = Participant {
        id: bob,
        handle: "bob".to_owned(),
        name: "Bob".to_owned(),
        kind: "panel".to_owned(),
        methods: Value::Null,
        agent: None,
        metadata: serde_json::Map::new(),
    };
    host.join("c", joining).await.expect("joined");
    let mut events = host.subscribe("c", None, false).await.expect("a log");
    say(&host, "c", "bob anything").await;
    let call = loop {
        let event = events.next().await.expect("an event");
        if let Body::MethodCall { call_id, .. } = &event.body {
            break *call_id;
        }
    };
    for (id, content) in [(Uuid::from_u128(7), "forged"), (bob, "true")] {
        let mut sender = ann();
        sender.id = id;
        sender.handle = Some("bob".to_owned());
        let body = Body::MethodResult {
            call_id: call,
            content: Some(json!(content)),
            content_type: None,
            complete: true,
            is_error: false,
            progress: None,
        };
        let publish = Publish {
            body,
            sender,
            key: None,
            attachments: Vec::new(),
        };
        host.publish("c", publish).await.expect("published");
    }
    assert!(host.settled(LONG).await);
    assert_eq!(texts(&host, "c").await, ["bob anything", "ok \"true\""]);
}

#[tokio::test]
async fn a_turn_that_runs_again_finds_the_answer() {
    let files = Files::new();
    let ran = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&ran);
    let asks = Script::new(|turn, call| {
        Box::pin(async move {
            if let Call::Event(event) = &call
                && text(event).is_some()
            {
                ask(turn, "b count").await?;
                if turn.attempt() < 3 {
                    return Err("again".into());
                }
            }
            Ok(())
        })
    });
    let mut answers = Script::idle();
    answers.methods = a99_runtime::Methods::none().with(
        "count",
        Method::new("counts", move |_, _, _| {
            let n = count.fetch_add(1, Ordering::SeqCst) + 1;
            Box::pin(async move { Ok(json!(n)) })
        }),
    );
    let host = builder()
        .agent("a", move |_| asks.clone())
        .agent("b", move |_| answers.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    for text in ["a/c/a", "b/c/b"] {
        host.invite(&key(text), json!({})).await.expect("invited");
    }
    say(&host, "c", "x").await;
    assert!(host.settled(LONG).await);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    assert_eq!(texts(&host, "c").await, ["x", "ok 1"]);
}

#[tokio::test]
async fn handles_belong_to_one_participant_of_a_channel() {
    let files = Files::new();
    let host = builder()
        .agent("a", |_| Counter::default())
        .agent("b", |_| Counter::default());
    let host = host.start(store(&files.path())).await.expect("a host");
    host.invite(&key("a/c/echo"), json!({}))
        .await
        .expect("invited");
    let joining = |handle: &str, id| Participant {
        id: Uuid::from_u128(id),
        handle: handle.to_owned(),
        name: handle.to_owned(),
        kind: "panel".to_owned(),
        methods: Value::Null,
        agent: None,
        metadata: serde_json::Map::new(),
    };
    let refused = host.invite(&key("b/c/Echo"), json!({})).await;
    assert_eq!(refused.expect_err("taken").code(), "handle-conflict");
    let refused = host.join("c", joining("ECHO", 1)).await;
    assert_eq!(refused.expect_err("taken").code(), "handle-conflict");
    host.join("c", joining("bob", 2)).await.expect("joined");
    let refused = host.invite(&key("b/c/Bob"), json!({})).await;
    assert_eq!(refused.expect_err("taken").code(), "handle-conflict");
    // Elsewhere, and when it is free, it may be had.
    host.invite(&key("b/d/bob"), json!({}))
        .await
        .expect("invited");
    assert!(host.leave("c", Uuid::from_u128(2)).await.expect("left"));
    assert!(!host.leave("c", Uuid::from_u128(2)).await.expect("gone"));
    host.invite(&key("b/c/bob"), json!({}))
        .await
        .expect("invited");
    let roster = host.roster("c");
    let mut handles: Vec<_> = roster.iter().map(|who| who.handle.as_str()).collect();
    handles.sort_unstable();
    assert_eq!(handles, ["bob", "echo"]);
    // Two that ask at the same time: one gets it.
    let (one, two) = tokio::join!(
        host.join("c", joining("eve", 3)),
        host.join("c", joining("Eve", 4))
    );
    assert!(one.is_ok() != two.is_ok());
}

#[tokio::test]
async fn handles_that_nobody_has_are_named() {
    let files = Files::new();
    let script = Script::new(|turn, call| {
        Box::pin(async move {
            if let Call::Event(_) = call {
                let found = turn.resolve_handles(&["@A"])?;
                assert_eq!(found, [turn.key().participant()]);
                let error = turn.resolve_handles(&["a", "@zoe"]).expect_err("unknown");
                turn.send(error.to_string()).await?;
            }
            Ok(())
        })
    });
    let host = builder().agent("a", move |_| script.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    host.invite(&key("a/c/a"), json!({}))
        .await
        .expect("invited");
    say(&host, "c", "x").await;
    assert!(host.settled(LONG).await);
    let said = texts(&host, "c").await;
    assert!(
        said[1].contains("zoe") && said[1].contains("@a"),
        "{said:?}"
    );
}

/// The code of the answer of a call, once it is there.
async fn code_of(host: &Host, call: Uuid) -> Option<String> {
    let mut events = host.subscribe("c", Some(0), false).await.expect("a log");
    loop {
        if let Body::MethodResult {
            call_id,
            content: Some(content),
            complete: true,
            ..
        } = &events.next().await.expect("an event").body
            && *call_id == call
        {
            return content["code"].as_str().map(str::to_owned);
        }
    }
}

#[tokio::test]
async fn a_cancelled_call_cuts_its_method_off() {
    let files = Files::new();
    let host = builder().agent("b", |_| answers());
    let host = host.start(store(&files.path())).await.expect("a host");
    let till = key("b/c/b");
    host.invite(&till, json!({})).await.expect("invited");
    let call = |method| host.call_method(ann(), &till, method, json!({}), None);
    let first = call("endless").await.expect("a call");
    let second = call("endless").await.expect("a call");
    let third = call("double").await.expect("a call");
    let ids = [first.call_id(), second.call_id()];
    is(&host, &till, "awake").await;
    // Nobody else cancels it.
    let mut bob = ann();
    bob.id = Uuid::from_u128(99);
    let forged = Publish {
        body: Body::MethodCancel { call_id: ids[0] },
        sender: bob,
        key: None,
        attachments: Vec::new(),
    };
    host.publish("c", forged).await.expect("published");
    // One that waits first: it must not begin.
    host.cancel_call(ann(), second).await.expect("cancelled");
    let early = tokio::time::timeout(Duration::from_millis(100), code_of(&host, ids[0]));
    assert!(early.await.is_err(), "a stranger cancelled it");
    host.cancel_call(ann(), first).await.expect("cancelled");
    for id in ids {
        let code = tokio::time::timeout(LONG, code_of(&host, id)).await;
        assert_eq!(code.expect("an answer").as_deref(), Some("cancelled"));
    }
    assert_eq!(third.result().await, Ok(json!(0)));
    assert!(host.settled(LONG).await);
    let state = host.inspect(&till).await.expect("an agent").state;
    assert_eq!(state.expect("a state")["count"], 1, "only the third counts");
    host.drain(LONG).await.expect("drained");
}
