//! The names of the event bus, one test each: docs/runtime.md lists them.

use crate::stage::{Stage, a, b, bus, person, picture, provides};
use crate::support::LONG;
use a99_runtime::{
    Body, CallOptions, EventKind, SendOptions, ToolRoleConflict, UpdateOptions, Uuid,
};
use serde_json::json;

#[tokio::test]
async fn client_id() {
    let stage = Stage::new().await;
    let id = stage.turn(async |turn| bus(&turn).client_id()).await;
    assert_eq!(id, a().participant());
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
async fn participant_by_handle() {
    let stage = Stage::new().await;
    let found = stage.turn(async |turn| {
        let bus = bus(&turn);
        ["@B", "x"].map(|handle| bus.participant_by_handle(handle).map(|who| who.id))
    });
    assert_eq!(found.await, [Some(b().participant()), None]);
}

#[tokio::test]
async fn session_enabled() {
    let stage = Stage::new().await;
    assert!(stage.turn(async |turn| bus(&turn).session_enabled()).await);
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
