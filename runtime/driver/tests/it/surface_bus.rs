//! The names of the event bus, one test each: docs/runtime.md lists them.

use crate::stage::{Stage, a, b, bus, map, person, picture, provides};
use crate::support::LONG;
use a99_runtime::{
    Body, CallOptions, EventKind, MethodResult, PresenceAction, SendOptions, ToolRoleConflict,
    UpdateOptions, Uuid,
};
use serde_json::{Value, json};

#[tokio::test]
async fn handle() {
    let stage = Stage::new().await;
    let handle = stage.turn(async |turn| bus(&turn).handle().to_owned());
    assert_eq!(handle.await, "a");
}

#[tokio::test]
async fn client_id() {
    let stage = Stage::new().await;
    let id = stage.turn(async |turn| bus(&turn).client_id()).await;
    assert_eq!(id, a().participant());
}

#[tokio::test]
async fn channel() {
    let stage = Stage::new().await;
    let channel = stage.turn(async |turn| bus(&turn).channel().to_owned());
    assert_eq!(channel.await, "c");
}

#[tokio::test]
async fn send() {
    let stage = Stage::new().await;
    let sent = stage.turn(async |turn| {
        let options = SendOptions {
            reply_to: Some(Uuid::from_u128(5)),
            at: turn.resolve_handles(&["@B"])?,
            content_type: Some("thinking".to_owned()),
            metadata: Some(json!({"k": 1})),
            ..SendOptions::default()
        };
        bus(&turn).send("hello".to_owned(), options).await
    });
    let sent = sent.await.expect("sent");
    assert_eq!(sent.pubsub_id, None, "it goes with the commit");
    let event = stage.last().await;
    let Body::Message(message) = &event.body else {
        panic!("{event:?}");
    };
    assert_eq!((message.id, &*message.content), (sent.message_id, "hello"));
    assert_eq!(message.at, [b().participant()]);
    assert_eq!(message.reply_to, Some(Uuid::from_u128(5)));
    assert_eq!(message.metadata, Some(json!({"k": 1})));
}

/// A message of the actor that is in the log.
async fn message(stage: &Stage) -> Uuid {
    let sent = stage.turn(async |turn| turn.send("a").await.expect("sent"));
    sent.await.message_id
}

#[tokio::test]
async fn update() {
    let stage = Stage::new().await;
    let id = message(&stage).await;
    let done = stage.turn(async move |turn| {
        let bus = bus(&turn);
        let plain = bus.update(id, "b".to_owned(), UpdateOptions::default());
        let plain = plain.await?;
        let options = UpdateOptions {
            complete: true,
            content_type: Some("thinking".to_owned()),
            attachments: vec![picture("p")],
            ephemeral: false,
        };
        bus.update(id, "c".to_owned(), options).await?;
        Ok::<_, a99_runtime::AgentError>(plain)
    });
    assert_eq!(
        done.await.expect("updated"),
        None,
        "it goes with the commit"
    );
    let expected = |content: &str, content_type: Option<&str>| Body::UpdateMessage {
        id,
        content: Some(content.to_owned()),
        complete: content_type.is_some(),
        content_type: content_type.map(str::to_owned),
    };
    let log = stage.log().await;
    let [.., plain, whole] = &*log else {
        panic!("{log:?}");
    };
    assert_eq!(plain.body, expected("b", None));
    assert_eq!(whole.body, expected("c", Some("thinking")));
    assert_eq!(whole.attachments, [picture("p")]);
    // Ephemeral ones are in no log.
    let mut live = stage.host.subscribe("c", None, true).await.expect("c");
    let done = stage.turn(async move |turn| {
        let bus = bus(&turn);
        let message = SendOptions {
            ephemeral: true,
            ..SendOptions::default()
        };
        let sent = bus.send("d".to_owned(), message).await?;
        let update = UpdateOptions {
            ephemeral: true,
            ..UpdateOptions::default()
        };
        bus.update(sent.message_id, "e".to_owned(), update).await?;
        Ok::<_, a99_runtime::AgentError>(sent)
    });
    assert_eq!(done.await.expect("sent").pubsub_id, None);
    let mut passed = Vec::new();
    while passed.len() < 2 {
        let event = live.next().await.expect("an event");
        if event.kind == EventKind::Ephemeral {
            passed.push(event.body.type_name());
        }
    }
    assert_eq!(passed, ["message", "update-message"]);
    // The message `act` that began the turn.
    assert_eq!(stage.log().await.len(), log.len() + 1);
}

#[tokio::test]
async fn complete() {
    let stage = Stage::new().await;
    let id = message(&stage).await;
    let done = stage.turn(async move |turn| bus(&turn).complete(id).await);
    done.await.expect("completed");
    let Body::UpdateMessage { complete, .. } = stage.last().await.body else {
        panic!("an update");
    };
    assert!(complete);
}

#[tokio::test]
async fn error() {
    let stage = Stage::new().await;
    let id = message(&stage).await;
    let code = Some("x.y".to_owned());
    let expected = Body::Error {
        id,
        error: "tired".to_owned(),
        code: code.clone(),
    };
    let done = stage.turn(async move |turn| bus(&turn).error(id, "tired".to_owned(), code).await);
    done.await.expect("failed");
    assert_eq!(stage.last().await.body, expected);
}

#[tokio::test]
async fn publish() {
    let stage = Stage::new().await;
    let mut live = stage.host.subscribe("c", None, true).await.expect("c");
    let done = stage.turn(async |turn| {
        let bus = bus(&turn);
        bus.publish("kept".to_owned(), json!(1), true).await?;
        bus.publish("passes".to_owned(), json!(2), false).await
    });
    done.await.expect("published");
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let event = live.next().await.expect("an event");
        if let Body::Custom { name, .. } = &event.body {
            seen.push((name.clone(), event.kind));
        }
    }
    let passes = ("passes".to_owned(), EventKind::Ephemeral);
    assert_eq!(seen, [passes, ("kept".to_owned(), EventKind::Persisted)]);
    let log = stage.log().await;
    let kept = log.iter().filter(|e| matches!(e.body, Body::Custom { .. }));
    assert_eq!(kept.count(), 1, "only one is in the log");
}

#[tokio::test]
async fn call_method() {
    let stage = Stage::new().await;
    let answers = stage.turn(async |turn| {
        let bus = bus(&turn);
        let call = bus.call_method("@B", "echo", json!({"n": 1}), CallOptions::default());
        let answer = call.await.expect("a call").result().await;
        let options = CallOptions::default;
        let nobody = bus.call_method("nobody", "echo", json!({}), options());
        let nothing = bus.call_method("b", "sing", json!({}), options());
        let codes = (nobody.await.err(), nothing.await.err());
        (answer.expect("an answer"), codes)
    });
    let (answer, (nobody, nothing)) = answers.await;
    assert_eq!(answer, json!({"n": 1}));
    assert_eq!(nobody.expect("refused").code(), "provider-not-found");
    assert_eq!(nothing.expect("refused").code(), "method-not-found");
}

#[tokio::test]
async fn cancel_call() {
    let stage = Stage::new().await;
    let answer = stage.turn(async |turn| {
        let bus = bus(&turn);
        let provider = b().participant().to_string();
        let call = bus.call_method(&provider, "hang", json!({}), CallOptions::default());
        let call = call.await.expect("a call, by the identity of its provider");
        let (id, before) = (call.call_id(), turn.checkpoint());
        let mut events = turn.subscribe(Some(before)).await.expect("events");
        bus.cancel_call(call).await.expect("cancelled");
        loop {
            let event = events.next().await.expect("an event");
            if let Body::MethodResult {
                call_id, content, ..
            } = &event.body
                && *call_id == id
            {
                break content.clone();
            }
        }
    });
    let answer = answer.await.expect("an answer");
    assert_eq!(answer["code"], "cancelled");
}

#[tokio::test]
async fn send_method_result() {
    let stage = Stage::new().await;
    let call_id = Uuid::from_u128(3);
    let done = stage.turn(async move |turn| {
        let part = MethodResult {
            content: Some(json!("half")),
            content_type: Some("text/plain".to_owned()),
            progress: Some(50.0),
            ..MethodResult::default()
        };
        bus(&turn).send_method_result(call_id, part).await
    });
    done.await.expect("sent");
    let expected = Body::MethodResult {
        call_id,
        content: Some(json!("half")),
        content_type: Some("text/plain".to_owned()),
        complete: false,
        is_error: false,
        progress: Some(50.0),
    };
    assert_eq!(stage.last().await.body, expected);
}

#[tokio::test]
async fn discover_method_defs() {
    let stage = Stage::new().await;
    let defs = stage
        .turn(async |turn| bus(&turn).discover_method_defs())
        .await;
    let names: Vec<_> = defs.iter().map(|def| &def["name"]).collect();
    assert_eq!(names, ["draw", "echo", "hang"], "its own are left out");
    assert_eq!(defs[0]["providerId"], json!(b().participant()));
}

#[tokio::test]
async fn discover_method_defs_from() {
    let stage = Stage::new().await;
    let [of_b, of_none] = [b().participant(), Uuid::from_u128(1)];
    let defs = stage.turn(async move |turn| {
        let bus = bus(&turn);
        [of_b, of_none].map(|id| bus.discover_method_defs_from(id).len())
    });
    assert_eq!(defs.await, [3, 0]);
}

#[tokio::test]
async fn roster() {
    let stage = Stage::new().await;
    stage.joins(&person("ann", 7)).await;
    let roster = stage.turn(async |turn| bus(&turn).roster()).await;
    let handles: Vec<_> = roster.iter().map(|who| &*who.handle).collect();
    assert_eq!(handles, ["a", "b", "ann"], "in the order of their coming");
    assert_eq!(roster[0].metadata["first"], 1);
    assert_eq!(roster[0].agent, Some(a()));
}

#[tokio::test]
async fn on_roster() {
    let stage = Stage::new().await;
    let mut seen = stage.host.on_roster("c").await.expect("a stream");
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let ended = stage.begin(async move |turn| {
        let mut roster = bus(&turn).on_roster().await.expect("a stream");
        ready.send(()).expect("a listener");
        for _ in 0..4 {
            let change = roster.next().await.expect("a roster");
            let handles = change.participants.into_iter().map(|who| who.handle);
            let _ = told.send(handles.collect::<Vec<_>>().join(","));
        }
        roster
    });
    let ended = ended.await;
    is_ready.await.expect("the turn runs");
    let (host, mut step) = (&stage.host, 0);
    for expected in ["a,b", "a,b,ann", "a,b,ann,bob", "a,b,bob"] {
        match step {
            0 => {}
            1 => stage.joins(&person("ann", 7)).await,
            2 => {
                stage.joins(&person("bob", 8)).await;
                // It changes no roster.
                stage.joins(&person("bob", 8)).await;
            }
            _ => drop(host.leave("c", Uuid::from_u128(7)).await.expect("left")),
        }
        step += 1;
        assert_eq!(heard.recv().await.as_deref(), Some(expected));
        let change = seen.next().await.expect("a roster");
        let handles = change.participants.into_iter().map(|who| who.handle);
        assert_eq!(handles.collect::<Vec<_>>().join(","), expected);
    }
    // A stream of a turn ends with it.
    let mut roster = ended.await.expect("the stream");
    assert!(stage.host.settled(LONG).await);
    stage.joins(&person("cid", 9)).await;
    assert_eq!(roster.next().await.expect_err("over").code(), "turn.over");
    let mut empty = stage.host.on_roster("nobody").await.expect("a stream");
    let soon = tokio::time::timeout(std::time::Duration::from_millis(50), empty.next()).await;
    assert!(soon.is_err(), "an empty roster is no news");
}

#[tokio::test]
async fn resolve_handles() {
    let stage = Stage::new().await;
    let found = stage.turn(async |turn| {
        let bus = bus(&turn);
        (
            bus.resolve_handles(&["@B", "a"]),
            bus.resolve_handles(&["b", "x"]),
        )
    });
    let (found, unknown) = found.await;
    assert_eq!(found.expect("both"), [b().participant(), a().participant()]);
    let unknown = unknown.expect_err("none is dropped");
    assert_eq!(unknown.code(), "provider-not-found");
}

#[tokio::test]
async fn participant_by_handle() {
    let stage = Stage::new().await;
    let found = stage.turn(async |turn| {
        let bus = bus(&turn);
        ["@B", "x"].map(|handle| bus.participant_by_handle(handle).map(|who| who.id))
    });
    assert_eq!(found.await, [Some(b().participant()), None]);
}

#[tokio::test]
async fn update_metadata() {
    let stage = Stage::new().await;
    let of_a = |roster: Vec<a99_runtime::Participant>| {
        let found = roster.into_iter().find(|who| who.handle == "a");
        Value::Object(found.expect("it is there").metadata)
    };
    assert_eq!(of_a(stage.host.roster("c")), json!({"first": 1}));
    for metadata in [
        json!({"mood": "good", "deep": {"a": 1}}),
        json!({"deep": {"b": 2}}),
    ] {
        let new = map(metadata.clone());
        let before = stage.turn(async move |turn| {
            let bus = bus(&turn);
            bus.update_metadata(new).await.expect("updated");
            bus.roster()
        });
        let before = of_a(before.await);
        assert_ne!(before, metadata, "it shows with the commit");
        assert_eq!(of_a(stage.host.roster("c")), metadata, "nothing is merged");
        let Body::Presence {
            action,
            metadata: told,
            ..
        } = stage.last().await.body.clone()
        else {
            panic!("a presence event");
        };
        assert_eq!(action, PresenceAction::Update);
        assert_eq!(
            (&told["deep"], &told["handle"]),
            (&metadata["deep"], &json!("a"))
        );
    }
    // Nor can it take the name of another one.
    let named = map(json!({"handle": "b", "x": 1}));
    stage
        .turn(async move |turn| bus(&turn).update_metadata(named).await.expect("updated"))
        .await;
    let roster = stage.host.roster("c");
    let handles: Vec<_> = roster.iter().map(|who| &*who.handle).collect();
    assert_eq!(handles, ["a", "b"]);
    assert_eq!(of_a(roster), json!({"x": 1}));
    // A host that starts again knows it; an agent that is invited again begins anew.
    let stage = stage.again().await;
    assert_eq!(of_a(stage.host.roster("c")), json!({"x": 1}));
    let config = json!({"changed": true});
    stage.host.invite(&a(), config).await.expect("invited");
    assert_eq!(of_a(stage.host.roster("c")), json!({"x": 1}));
    assert!(stage.host.remove(&a()).await.expect("removed"));
    stage.host.invite(&a(), json!({})).await.expect("invited");
    assert_eq!(of_a(stage.host.roster("c")), json!({"first": 1}));
    let stage = stage.again().await;
    assert_eq!(of_a(stage.host.roster("c")), json!({"first": 1}));
}

#[tokio::test]
async fn get_settings() {
    let stage = Stage::new().await;
    let settings = stage
        .turn(async |turn| bus(&turn).get_settings().await)
        .await;
    assert_eq!(settings.expect("settings"), json!({"tone": "dry"}));
}

#[tokio::test]
async fn update_settings() {
    let stage = Stage::new().await;
    let within = stage.turn(async |turn| {
        let bus = bus(&turn);
        bus.update_settings(json!({"deep": {"a": 1}})).await?;
        bus.update_settings(json!({"deep": {"b": 2}})).await?;
        bus.get_settings().await
    });
    let merged = json!({"tone": "dry", "deep": {"a": 1, "b": 2}});
    assert_eq!(within.await.expect("settings"), merged);
    let stage = stage.again().await;
    let later = stage
        .turn(async |turn| bus(&turn).get_settings().await)
        .await;
    assert_eq!(later.expect("settings"), merged, "they are kept");
    let refused = stage.turn(async |turn| bus(&turn).update_settings(json!(1)).await);
    assert_eq!(
        refused.await.expect_err("no object").code(),
        "turn.bad_value"
    );
}

#[tokio::test]
async fn session_enabled() {
    let stage = Stage::new().await;
    assert!(stage.turn(async |turn| bus(&turn).session_enabled()).await);
}

#[tokio::test]
async fn session_key() {
    let stage = Stage::new().await;
    let session = stage.turn(async |turn| bus(&turn).session_key()).await;
    assert_eq!(session.as_deref(), Some("c:a"));
}

#[tokio::test]
async fn on_tool_role_conflict() {
    let stage = Stage::new().await;
    // The smallest identity comes last: only the order of coming makes `ann` win over it.
    let (ann, bob, cid) = (person("ann", 7), person("bob", 8), person("cid", 1));
    for who in [&ann, &bob, &cid] {
        stage.joins(who).await;
    }
    let mut conflicts = stage
        .host
        .on_tool_role_conflict("c")
        .await
        .expect("a stream");
    stage.describes(&ann, provides(None)).await;
    stage.describes(&cid, provides(None)).await;
    let conflict = |providers: &[Uuid], winner| ToolRoleConflict {
        group: "file-ops".to_owned(),
        providers: providers.to_vec(),
        winner,
    };
    let seen = conflicts.next().await.expect("a conflict");
    assert_eq!(seen, conflict(&[ann.id, cid.id], ann.id), "who came first");
    stage.describes(&bob, provides(Some(9.0))).await;
    let seen = conflicts.next().await.expect("a conflict");
    let all = [ann.id, bob.id, cid.id];
    assert_eq!(seen, conflict(&all, bob.id), "any priority is before none");
    stage.describes(&cid, provides(Some(2.0))).await;
    let seen = conflicts.next().await.expect("a conflict");
    assert_eq!(seen, conflict(&all, cid.id), "the lowest priority");
    // A later listener hears of what there is, and an agent may give way.
    let within = stage.turn(async |turn| {
        let mut conflicts = bus(&turn).on_tool_role_conflict().await?;
        conflicts.next().await
    });
    assert_eq!(within.await.expect("a conflict"), seen);
    stage.describes(&cid, json!({})).await;
    stage.host.leave("c", bob.id).await.expect("left");
    // Only one is left: no conflict.
    let short = std::time::Duration::from_millis(50);
    let none = tokio::time::timeout(short, conflicts.next()).await;
    assert!(none.is_err(), "{none:?}");
}

#[tokio::test]
async fn request_tool_role() {
    let stage = Stage::new().await;
    let done = stage.turn(async |turn| bus(&turn).request_tool_role("git-ops".to_owned()).await);
    done.await.expect("asked");
    let expected = Body::ToolRoleRequest {
        group: "git-ops".to_owned(),
        requester_id: a().participant(),
        requester_type: "agent".to_owned(),
    };
    assert_eq!(stage.last().await.body, expected);
}

#[tokio::test]
async fn respond_tool_role() {
    let stage = Stage::new().await;
    let to = Some(b().participant());
    let done = stage.turn(async move |turn| {
        let bus = bus(&turn);
        bus.respond_tool_role("git-ops".to_owned(), true, to).await
    });
    done.await.expect("answered");
    let expected = Body::ToolRoleResponse {
        group: "git-ops".to_owned(),
        accepted: true,
        handoff_to: to,
    };
    assert_eq!(stage.last().await.body, expected);
}

#[tokio::test]
async fn announce_tool_role_handoff() {
    let stage = Stage::new().await;
    let [from, to] = [a(), b()].map(|key| key.participant());
    let done = stage.turn(async move |turn| {
        let bus = bus(&turn);
        let group = "git-ops".to_owned();
        bus.announce_tool_role_handoff(group, from, to).await
    });
    done.await.expect("announced");
    let group = "git-ops".to_owned();
    assert_eq!(
        stage.last().await.body,
        Body::ToolRoleHandoff { group, from, to }
    );
}

#[tokio::test]
async fn result_with_attachments() {
    let stage = Stage::new().await;
    let answers = stage.turn(async |turn| {
        let bus = bus(&turn);
        let draw = |args| bus.call_method("b", "draw", args, CallOptions::default());
        let mut call = draw(json!({})).await.expect("a call");
        let mut parts = Vec::new();
        while let Some(part) = call.next().await.expect("a part") {
            parts.push((part.content, part.complete, part.attachments));
        }
        let whole = draw(json!({})).await.expect("a call").answer().await;
        let failed = draw(json!({"fails": true})).await.expect("a call");
        (parts, whole.expect("an answer"), failed.answer().await)
    });
    let (parts, whole, failed) = answers.await;
    let part = |name: &str, complete| (Some(json!(name)), complete, vec![picture(name)]);
    assert_eq!(parts, [part("sketch", false), part("whole", true)]);
    assert_eq!(whole.content, json!("whole"));
    assert_eq!(whole.attachments, [picture("whole")]);
    assert_eq!(failed.expect_err("it fails").code(), "execution-error");
    // An error takes no attachments with it.
    let log = stage.log().await.into_iter();
    let errors =
        log.filter(|event| matches!(event.body, Body::MethodResult { is_error: true, .. }));
    let attached: Vec<_> = errors.map(|event| event.attachments.len()).collect();
    assert_eq!(attached, [0]);
}
