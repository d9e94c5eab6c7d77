//! The client: subscriptions, publishing and calls across broken connections.

use crate::harness::{Proxy, Server, WAIT, connect, options, say, text};
use a99_channels::client::{Client, Status, UNDER_WAY};
use a99_channels::wire::{Call, Join, Publish, Published};
use a99_runtime::{Attachment, Body};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::timeout;

const ALL: &[&str] = &["read:*", "write:*", "call:*", "invite:*"];

fn call(method: &str, args: Value) -> Call {
    Call {
        channel: "general".into(),
        provider: "@echo".into(),
        method: method.into(),
        args,
        participant: None,
        call_id: None,
        timeout_ms: None,
    }
}

async fn with_echo(folder: &tempfile::TempDir) -> Server {
    let server = Server::start(folder.path()).await;
    let key = "echo/general/echo".parse().expect("a key");
    server.host.invite(&key, json!({})).await.expect("invited");
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn backlog_and_live_events_come_once_and_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let client = server.client(ALL).await;
    for n in 0..10 {
        client
            .publish(say("general", n.to_string()), Vec::new())
            .await
            .expect("published");
    }
    let mut events = client
        .subscribe("general", Some(3), false)
        .await
        .expect("subscribed");
    for n in 10..20 {
        client
            .publish(say("general", n.to_string()), Vec::new())
            .await
            .expect("published");
    }
    for n in 3..20_u64 {
        let event = timeout(WAIT, events.next())
            .await
            .expect("in time")
            .expect("an event");
        assert_eq!(
            (event.seq, text(&event)),
            (Some(n + 1), n.to_string().as_str())
        );
        assert_eq!(event.sender.name.as_deref(), Some("ann"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_publishes_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let client = server.client(ALL).await;
    let keyed = |text: &str| Publish {
        key: Some("k".into()),
        ..say("general", text)
    };
    let first = client
        .publish(keyed("one"), Vec::new())
        .await
        .expect("published");
    let again = client
        .publish(keyed("one"), Vec::new())
        .await
        .expect("published");
    assert!(first.is_new && !again.is_new);
    assert_eq!((first.id, first.seq), (again.id, again.seq));
    let other = client
        .publish(keyed("two"), Vec::new())
        .await
        .expect_err("refused");
    assert_eq!(other.code(), "store.changed_body");
    // Another token's key is another key.
    let other = server.client(ALL).await;
    assert!(
        other
            .publish(keyed("two"), Vec::new())
            .await
            .expect("published")
            .is_new
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_wait_for_no_answer_keep_their_order() {
    const EVENTS: u64 = 3 * UNDER_WAY as u64;
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let client = server.client(&["read:*", "write:general"]).await;
    let other = server.client(ALL).await;
    let mut events = other
        .subscribe("general", Some(0), false)
        .await
        .expect("subscribed");
    let sending = tokio::spawn({
        let client = client.clone();
        async move {
            let (mut under_way, mut placed) = (VecDeque::new(), Vec::new());
            for n in 0..EVENTS {
                // A refused one keeps no other out.
                let secret = (n % 100 == 0).then_some("secret");
                for channel in secret.into_iter().chain(["general"]) {
                    let sent = client.start_publish(say(channel, n.to_string()), Vec::new());
                    under_way.push_back(sent.await.expect("sent"));
                }
                if under_way.len() > UNDER_WAY / 2 || n + 1 == EVENTS {
                    for one in under_way.drain(..) {
                        let one = one.placed().await.map(|placed| placed.seq);
                        placed.push(one.map_err(|error| error.code().to_owned()));
                    }
                }
            }
            placed
        }
    });
    for n in 0..EVENTS {
        let event = timeout(WAIT, events.next()).await.expect("in time");
        let event = event.expect("an event");
        assert_eq!((event.seq, text(&event)), (Some(n + 1), &*n.to_string()));
    }
    let placed = timeout(WAIT, sending).await.expect("in time");
    let (placed, refused): (Vec<_>, Vec<_>) =
        placed.expect("sent").into_iter().partition(Result::is_ok);
    let expected: Vec<_> = (1..=EVENTS).map(|seq| Ok(Some(seq))).collect();
    assert_eq!(placed, expected);
    let expected = vec![Err("server.forbidden".to_owned()); refused.len()];
    assert!(refused.len() == 8 && refused == expected, "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_has_so_many_events_under_way_and_no_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let client = server.client(ALL).await;
    let mut under_way = Vec::new();
    for n in 0..UNDER_WAY {
        let sent = client.start_publish(say("general", n.to_string()), Vec::new());
        under_way.push(sent.await.expect("sent"));
    }
    // Credit comes back with an answer that was taken, or given up.
    let more = client.start_publish(say("general", "more"), Vec::new());
    let mut more = Box::pin(more);
    let waits = timeout(Duration::from_millis(100), &mut more).await;
    assert!(waits.is_err());
    drop(under_way.pop());
    let more = timeout(WAIT, more).await.expect("in time").expect("sent");
    assert!(more.placed().await.expect("published").seq.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn attachments_keep_their_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let client = server.client(ALL).await;
    let mut events = client
        .subscribe("general", None, false)
        .await
        .expect("subscribed");
    let file = |id: &str, data: Vec<u8>| Attachment {
        id: id.into(),
        mime_type: "application/octet-stream".into(),
        name: Some(format!("{id}.bin")),
        data,
    };
    let sent = vec![
        file("a", (0..=255).collect()),
        file("b", Vec::new()),
        file("c", vec![10; 300_000]),
    ];
    client
        .publish(say("general", "files"), sent.clone())
        .await
        .expect("published");
    let event = timeout(WAIT, events.next())
        .await
        .expect("in time")
        .expect("an event");
    assert_eq!(event.attachments, sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_while_connections_break() {
    const MESSAGES: u64 = 2_000;
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let proxy = Proxy::start(server.address).await;
    let token = server.token(ALL);
    let (writer, reader) = (
        connect(proxy.address, &token).await,
        connect(proxy.address, &token).await,
    );
    let mut events = reader
        .subscribe("general", Some(0), false)
        .await
        .expect("subscribed");
    let proxy = Arc::new(proxy);
    let breaking = Arc::clone(&proxy);
    let breaker = tokio::spawn(async move {
        for n in 0_u64.. {
            tokio::time::sleep(Duration::from_millis(40 + n % 7 * 11)).await;
            match n % 4 {
                3 => {
                    breaking.stall(true);
                    tokio::time::sleep(Duration::from_millis(60)).await;
                    breaking.stall(false);
                }
                _ => breaking.cut(),
            }
        }
    });
    let writing = tokio::spawn(async move {
        for n in 0..MESSAGES {
            let published = writer
                .publish(say("general", n.to_string()), Vec::new())
                .await;
            let Published { seq, .. } = published.expect("published");
            assert_eq!(seq, Some(n + 1), "in order and without gaps");
        }
    });
    for n in 0..MESSAGES {
        let event = timeout(WAIT, events.next())
            .await
            .expect("in time")
            .expect("an event");
        assert_eq!(
            (event.seq, text(&event)),
            (Some(n + 1), n.to_string().as_str())
        );
    }
    writing.await.expect("written");
    breaker.abort();
    assert!(
        proxy.accepted.load(Ordering::Relaxed) > 10,
        "connections broke"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_again_is_found_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let token = server.token(ALL);
    let client = connect(server.address, &token).await;
    let mut status = client.status();
    let mut events = client
        .subscribe("general", Some(0), false)
        .await
        .expect("subscribed");
    client
        .publish(say("general", "one"), Vec::new())
        .await
        .expect("published");
    assert_eq!(text(&events.next().await.expect("an event")), "one");
    let (folder, address) = server.stop().await;
    let down = status.wait_for(|status| matches!(status, Status::Reconnecting(_)));
    drop(
        timeout(WAIT, down)
            .await
            .expect("in time")
            .expect("a status"),
    );
    // Published while there is no server.
    let waiting = client.clone();
    let published =
        tokio::spawn(async move { waiting.publish(say("general", "two"), Vec::new()).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let listen = a99_server::ListenOptions {
        address,
        ..Default::default()
    };
    let server = Server::start_with(&folder, listen, Default::default()).await;
    let event = timeout(WAIT, events.next())
        .await
        .expect("in time")
        .expect("an event");
    assert_eq!((event.seq, text(&event)), (Some(2), "two"));
    assert!(published.await.expect("joined").expect("published").is_new);
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn participants_join_again_and_leave() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = with_echo(&folder).await;
    let proxy = Proxy::start(server.address).await;
    let client = connect(proxy.address, &server.token(ALL)).await;
    let join = |handle: &str| Join {
        channel: "general".into(),
        handle: handle.into(),
        kind: Some("panel".into()),
        ..Join::default()
    };
    let joined = client.join(join("@ann")).await.expect("joined");
    assert_eq!(joined.roster.len(), 2);
    let watcher = server.client(ALL).await;
    let events = watcher
        .subscribe("general", None, false)
        .await
        .expect("subscribed");
    let mut roster = events.roster();
    let has = |handle: &'static str| {
        move |roster: &Vec<a99_runtime::Participant>| roster.iter().any(|who| who.handle == handle)
    };
    drop(
        timeout(WAIT, roster.wait_for(has("ann")))
            .await
            .expect("in time")
            .expect("there"),
    );
    let conflict = watcher.join(join("ANN")).await.expect_err("refused");
    assert_eq!(conflict.code(), "handle-conflict");
    let before = proxy.accepted.load(Ordering::Relaxed);
    proxy.cut();
    // The server may notice the end of the old connection before the new one joins, or after.
    let again = async {
        while proxy.accepted.load(Ordering::Relaxed) == before
            || server.channels.connections() != 2
            || !has("ann")(&server.host.roster("general"))
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(WAIT, again).await.expect("joined again");
    client
        .leave("general", joined.participant)
        .await
        .expect("left");
    drop(
        timeout(WAIT, roster.wait_for(|roster| !has("ann")(roster)))
            .await
            .expect("in time")
            .expect("left"),
    );
    let events = server
        .host
        .channel_store()
        .read("general", 0, 100)
        .await
        .expect("events");
    let reasons: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::Presence { leave_reason, .. } => leave_reason.as_deref(),
            _ => None,
        })
        .collect();
    assert!(
        matches!(
            reasons.as_slice(),
            ["disconnect", "graceful"] | ["graceful"]
        ),
        "{reasons:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_runs_once_even_if_the_connection_breaks() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = with_echo(&folder).await;
    let proxy = Proxy::start(server.address).await;
    let client = connect(proxy.address, &server.token(ALL)).await;
    let calling = tokio::spawn(async move { client.call(call("double", json!({"n": 21}))).await });
    tokio::time::sleep(Duration::from_millis(150)).await;
    proxy.cut();
    let answer = timeout(WAIT, calling)
        .await
        .expect("in time")
        .expect("joined");
    assert_eq!(answer.expect("an answer"), json!(42.0));
    let events = server
        .host
        .channel_store()
        .read("general", 0, 100)
        .await
        .expect("events");
    assert_eq!(
        events
            .iter()
            .filter(|event| text(event) == "doubled")
            .count(),
        1
    );
    let client = server.client(ALL).await;
    let unknown = client
        .call(call("triple", json!({})))
        .await
        .expect_err("refused");
    assert_eq!(unknown.code(), "method-not-found");
    assert!(unknown.to_string().contains("double"), "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_answer_clients() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = with_echo(&folder).await;
    let client = server.client(ALL).await;
    let mut events = client
        .subscribe("general", Some(0), false)
        .await
        .expect("subscribed");
    client
        .publish(say("general", "echo hello"), Vec::new())
        .await
        .expect("published");
    loop {
        let event = timeout(WAIT, events.next())
            .await
            .expect("in time")
            .expect("an event");
        if event.sender.kind.as_deref() == Some("agent") && !text(&event).is_empty() {
            assert_eq!(text(&event), "#1: echo hello");
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_ends_the_connection_within_a_second() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let client = server.client(ALL).await;
    let mut events = client
        .subscribe("general", None, false)
        .await
        .expect("subscribed");
    let row = server.authority.list().expect("tokens").remove(0);
    // By another process, as the command does.
    let other = a99_server::Authority::open(folder.path().join("tokens.json")).expect("tokens");
    other.revoke(&row.id).expect("revoked");
    let ended = timeout(Duration::from_secs(1), events.next())
        .await
        .expect("in time");
    assert_eq!(ended.expect_err("refused").code(), "server.unauthorized");
    let refused = client
        .publish(say("general", "late"), Vec::new())
        .await
        .expect_err("refused");
    assert_eq!(refused.code(), "server.unauthorized");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_does_what_its_scopes_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = with_echo(&folder).await;
    let reader = server.client(&["read:general"]).await;
    let forbidden = |code: Option<String>| assert_eq!(code.as_deref(), Some("server.forbidden"));
    let code = |error: a99_runtime::AgentError| error.code().to_owned();
    let published = reader.publish(say("general", "x"), Vec::new()).await;
    forbidden(published.err().map(code));
    forbidden(reader.subscribe("other", None, false).await.err().map(code));
    forbidden(reader.call(call("double", json!({}))).await.err().map(code));
    let join = Join {
        channel: "general".into(),
        handle: "ann".into(),
        ..Join::default()
    };
    forbidden(reader.join(join.clone()).await.err().map(code));
    let invite = json!({"agent": "echo/general/second", "config": {}});
    forbidden(
        reader
            .request::<Value>("invite", &invite)
            .await
            .err()
            .map(code),
    );
    let append = json!({"agent": "echo/general/echo", "epoch": 9, "events": [{
        "channel": "general", "id": "00000000-0000-0000-0000-000000000001", "hops": 0,
        "body": {"type": "message", "content": "forged"}}]});
    let writer = server.client(&["read:general", "write:general"]).await;
    forbidden(
        writer
            .request::<Value>("append", &append)
            .await
            .err()
            .map(code),
    );
    let forged = Join {
        agent: Some("echo/general/echo".parse().expect("a key")),
        ..join
    };
    forbidden(writer.join(forged).await.err().map(code));
    let channels: Vec<(String, u64)> = reader
        .request("channels", &json!({}))
        .await
        .expect("a list");
    assert!(channels.iter().all(|(name, _)| name == "general"));
    let wrong = Client::connect(&server.url(), options("a99t_nobody_nothing")).await;
    assert_eq!(wrong.expect_err("refused").code(), "server.unauthorized");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_delays_no_other_and_loses_nothing() {
    const MESSAGES: u64 = 3_000;
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let (slow, quick, writer) = (
        server.client(ALL).await,
        server.client(ALL).await,
        server.client(ALL).await,
    );
    let mut late = slow
        .subscribe("general", Some(0), false)
        .await
        .expect("subscribed");
    let mut events = quick
        .subscribe("general", Some(0), false)
        .await
        .expect("subscribed");
    let writing = tokio::spawn(async move {
        for n in 0..MESSAGES {
            let text = format!("{n} {}", "x".repeat(1_000));
            writer
                .publish(say("general", text), Vec::new())
                .await
                .expect("published");
        }
    });
    for n in 0..MESSAGES {
        let event = timeout(WAIT, events.next())
            .await
            .expect("in time")
            .expect("an event");
        assert_eq!(event.seq, Some(n + 1));
    }
    writing.await.expect("written");
    for n in 0..MESSAGES {
        let event = timeout(WAIT, late.next())
            .await
            .expect("in time")
            .expect("an event");
        assert_eq!(event.seq, Some(n + 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ephemeral_events_are_in_no_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let client = server.client(ALL).await;
    let mut events = client
        .subscribe("general", Some(0), true)
        .await
        .expect("subscribed");
    let typing = Publish {
        persist: false,
        ..say("general", "typing")
    };
    let published = client.publish(typing, Vec::new()).await.expect("published");
    assert_eq!(published.seq, None);
    let event = timeout(WAIT, events.next())
        .await
        .expect("in time")
        .expect("an event");
    assert_eq!((event.seq, text(&event)), (None, "typing"));
    let head: u64 = client
        .request("head", &json!({"channel": "general"}))
        .await
        .expect("a head");
    assert_eq!(head, 0);
}
