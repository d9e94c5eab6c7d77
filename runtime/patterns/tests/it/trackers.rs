//! Trackers: what the channel shows when guards end in each way.

use crate::support::{
    Files, LONG, Script, builder, host, invite, lines, remote, say, sent_by, settle, text,
};
use a99_runtime::{AgentError, Body, Delivery, EventKind, Turn, TurnOutcome};
use a99_runtime_patterns::TrackerManager;
use std::time::Duration;

/// Works, and leaves all guards to their destructors.
async fn work(turn: &mut Turn<'_, Script>, about: a99_runtime::Uuid) -> TurnOutcome {
    let mut trackers = TrackerManager::new(&turn.client());
    trackers.set_reply_to(Some(about));
    let _typing = trackers.typing().await?;
    let thinking = trackers.thinking().await?;
    thinking.append("hm").await?;
    let use_id = Some("u1".to_owned());
    let _action = trackers.action("read", "Reads a file", use_id).await?;
    turn.send("done").await.map(drop)
}

fn worker(delivery: Delivery, fails: u32) -> Script {
    let script = Script::new(move |turn, event| {
        Box::pin(async move {
            if text(&event).is_none() {
                return Ok(());
            }
            work(turn, event.id).await?;
            match turn.attempt() > fails {
                true => Ok(()),
                false => Err(AgentError::from("again")),
            }
        })
    });
    Script { delivery, ..script }
}

const ACTION: &str =
    r#"{"type":"read","description":"Reads a file","toolUseId":"u1","status":"pending"}"#;

#[tokio::test]
async fn dropped_guards_complete_in_every_delivery_mode() {
    for delivery in [
        Delivery::ExactlyOnceState,
        Delivery::AtLeastOnce,
        Delivery::AtMostOnce,
    ] {
        let files = Files::new();
        let host = host(&files, builder(), &worker(delivery, 0)).await;
        settle(&host, "ann", "go").await;
        let events = sent_by(&host, "bot").await;
        let action = format!("action {ACTION}");
        let mut shown = lines(&events);
        // Guards end in reverse order, both after the message that was sent last.
        assert_eq!(
            shown.split_off(4),
            ["update !", "update !"],
            "{delivery:?}: {shown:?}"
        );
        assert_eq!(shown, ["thinking ", "update hm", &action, "text done"]);
        let ids = [0, 2].map(|at: usize| events[at].id);
        let ended: Vec<_> = events[4..]
            .iter()
            .map(|event| match &event.body {
                Body::UpdateMessage { id, .. } => *id,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(ended, [ids[1], ids[0]]);
        let Body::Message(thinking) = &events[0].body else {
            panic!("no message");
        };
        assert!(thinking.reply_to.is_some());
    }
}

#[tokio::test]
async fn a_retried_turn_completes_each_message_once() {
    for (delivery, count) in [(Delivery::ExactlyOnceState, 6), (Delivery::AtLeastOnce, 6)] {
        let files = Files::new();
        let host = host(&files, builder(), &worker(delivery, 2)).await;
        settle(&host, "ann", "go").await;
        let shown = lines(&sent_by(&host, "bot").await);
        assert_eq!(shown.len(), count, "{delivery:?}: {shown:?}");
        let ends = shown.iter().filter(|line| *line == "update !").count();
        assert_eq!(ends, 2, "{delivery:?}: {shown:?}");
    }
}

#[tokio::test]
async fn typing_is_ephemeral_and_stops() {
    let files = Files::new();
    let host = host(&files, builder(), &worker(Delivery::default(), 0)).await;
    let mut events = host.subscribe("c", None, true).await.expect("a channel");
    say(&host, "ann", "go").await;
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let event = tokio::time::timeout(Duration::from_secs(10), events.next()).await;
        let event = event.expect("in time").expect("an event");
        if event.kind == EventKind::Ephemeral {
            seen.push(event);
        }
    }
    let Body::Message(typing) = &seen[0].body else {
        panic!("no message");
    };
    assert_eq!(typing.content_type.as_deref(), Some("typing"));
    let Body::UpdateMessage {
        id, complete: true, ..
    } = &seen[1].body
    else {
        panic!("no end: {:?}", seen[1]);
    };
    assert_eq!(*id, typing.id);
}

#[cfg(unix)]
#[tokio::test]
async fn guards_of_an_agent_in_another_process_complete() {
    let files = Files::new();
    let (process, agents) = remote(&files, worker(Delivery::default(), 0));
    let builder = builder().process(process, ["bot"]);
    let host = builder.start(files.store().await).await.expect("a host");
    invite(&host, "bot").await;
    let mut events = host.subscribe("c", None, true).await.expect("a channel");
    settle(&host, "ann", "go").await;
    let shown = lines(&sent_by(&host, "bot").await);
    assert_eq!(shown[4..], ["update !", "update !"], "{shown:?}");
    let mut passing = Vec::new();
    while passing.len() < 2 {
        let event = tokio::time::timeout(Duration::from_secs(10), events.next()).await;
        let event = event.expect("in time").expect("an event");
        if event.kind == EventKind::Ephemeral {
            passing.push((*event).clone());
        }
    }
    assert_eq!(lines(&passing), ["typing ", "update !"]);
    host.drain(LONG).await.expect("drained");
    agents.await.expect("no panic").expect("ended");
}

#[tokio::test]
async fn guards_end_as_they_are_asked_to() {
    let script = Script::new(|turn, event| {
        Box::pin(async move {
            if text(&event).is_none() {
                return Ok(());
            }
            let trackers = TrackerManager::new(&turn.client());
            trackers.typing().await?.stop().await?;
            let thinking = trackers.thinking().await?;
            thinking.append("a").await?;
            thinking.end().await?;
            let mut action = trackers.action("run", "Runs", None).await?;
            action
                .update("running", Some("Still runs".to_owned()))
                .await?;
            let failed = AgentError::new("exit", "code 1");
            action.fail(&failed).await?;
            let left = trackers.thinking().await?;
            let _typing = trackers.typing().await?;
            let cleaned = trackers.cleanup_all().await?;
            let refused = left.append("late").await.expect_err("ended");
            turn.send(format!("{cleaned} {}", refused.code())).await?;
            drop(left);
            assert_eq!(trackers.cleanup_all().await?, 0);
            Ok(())
        })
    });
    let files = Files::new();
    let host = host(&files, builder(), &script).await;
    settle(&host, "ann", "go").await;
    let events = sent_by(&host, "bot").await;
    assert_eq!(
        lines(&events),
        [
            "thinking ",
            "update a",
            "update !",
            r#"action {"type":"run","description":"Runs","status":"pending"}"#,
            "update !",
            r#"action {"type":"run","description":"Still runs","status":"running"}"#,
            "error exit code 1",
            "thinking ",
            "update !",
            "text 2 turn.message_ended",
        ]
    );
}
