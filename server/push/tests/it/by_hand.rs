//! Requests written by hand.

use crate::harness::{Server, answer, answers, ask, code, init, key, push, seconds, serve, until};
use a99_push::reception::ReceptionOptions;
use a99_push::signature::{Secret, Signed};
use a99_push::transport::{HttpTransport, ServerOptions};
use a99_push::wire::{EVENTS, Events, SHUTDOWN, Shutdown};
use a99_runtime::{Attachment, Body, Event, EventKind, Message, Sender, Transport as _, Uuid};
use a99_runtime_engine::{AgentStore as _, ChannelStore as _, Epoch, Fence, NewEvent};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use a99_server::{NewToken, Scopes};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn batches_in_any_order_and_doubled_count_each_event_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let reception = server.reception(folder.path());
    let made = init(&reception).await;
    assert_eq!(made.checkpoint, 0);
    assert_eq!(made.participant.expect("a participant").handle, "counter");
    for n in 1..=6 {
        server.say(&format!("m{n}")).await;
    }
    let log = server.log(0).await;
    let first = answer(&push(&reception, &log[0..2]).await);
    assert_eq!(
        (first.checkpoint, first.accepted, first.duplicate),
        (2, 2, 0)
    );
    let again = answer(&push(&reception, &log[0..2]).await);
    assert_eq!(
        (again.checkpoint, again.accepted, again.duplicate),
        (2, 0, 2)
    );
    // A hole: the third and fourth are read from the server, which may give more.
    let hole = answer(&push(&reception, &log[4..5]).await);
    assert_eq!((hole.accepted, hole.duplicate), (1, 0));
    assert!(hole.checkpoint >= 5, "{}", hole.checkpoint);
    let late = answer(&push(&reception, &log[2..4]).await);
    assert_eq!((late.accepted, late.duplicate), (0, 2));
    let both = answer(&push(&reception, &log[3..6]).await);
    assert_eq!(both.accepted + both.duplicate, 3);
    assert!(both.checkpoint >= 6, "{}", both.checkpoint);
    assert_eq!(server.said().await, answers(6));

    // Its own answers wake it no more, and the store is closed.
    let own = server.log(6).await;
    let quiet = answer(&push(&reception, &own).await);
    assert_eq!(quiet.retry_after, None);
    assert_eq!(server.said().await, answers(6));
    let options = StoreOptions {
        has_channels: false,
        ..StoreOptions::default()
    };
    let store = SqliteRuntime::open(folder.path().join("agents.db"), options);
    let row = store.expect("free").load(&key()).await.expect("a row");
    assert_eq!(row.expect("a row").state, r#"{"messages":6}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_was_shut_down_is_unknown_and_keeps_its_state() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let reception = server.reception(folder.path());
    server.say("m1").await;
    let early = push(&reception, &server.log(0).await).await;
    assert_eq!((early.status, &*code(&early)), (404, "push.unknown_agent"));
    init(&reception).await;
    answer(&push(&reception, &server.log(0).await).await);
    let shutdown = Shutdown { agent: key() };
    assert!(answer(&ask(&reception, SHUTDOWN, &shutdown).await).checkpoint >= 1);
    server.say("m2").await;
    let late = push(&reception, &server.log(0).await).await;
    assert_eq!(code(&late), "push.unknown_agent");
    init(&reception).await;
    answer(&push(&reception, &server.log(0).await).await);
    until("both are answered", async || {
        server.said().await == answers(2)
    })
    .await;
    let strange = json!({"agent": "stranger/general/stranger"});
    let reply = ask(&reception, "/v1/push/init", &strange).await;
    assert_eq!((reply.status, &*code(&reply)), (404, "agent.unknown"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patient_request_waits_for_another_owner() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let options = || ReceptionOptions::new(folder.path().join("agents.db"));
    let one = server.reception_with(options());
    let two = server.reception_with(ReceptionOptions {
        patience: Duration::from_secs(30),
        agents: Some([key()].into()),
        ..options()
    });
    init(&one).await;
    server.say("m1").await;
    let log = server.log(0).await;
    let began = Instant::now();
    let (pushed, ()) = tokio::join!(push(&two, &log), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        one.close().await;
    });
    assert_eq!(answer(&pushed).accepted, 1);
    assert!(began.elapsed() >= Duration::from_millis(300));
    two.close().await;
    // Only these agents.
    let three = server.reception_with(ReceptionOptions {
        agents: Some([].into()),
        ..options()
    });
    let reply = ask(&three, "/v1/push/init", &json!({"agent": key()})).await;
    assert_eq!((reply.status, &*code(&reply)), (404, "agent.unknown"));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_owner_is_answered_with_503_until_it_is_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let one = server.reception_with(ReceptionOptions::new(folder.path().join("agents.db")));
    let two = server.reception(folder.path());
    init(&one).await;
    server.say("m1").await;
    let refused = push(&two, &server.log(0).await).await;
    assert_eq!((refused.status, refused.retry_after), (503, Some(1)));
    assert_eq!(code(&refused), "push.not_owner");
    assert_eq!(server.said().await, Vec::<String>::new());
    one.close().await;
    assert_eq!(answer(&push(&two, &server.log(0).await).await).accepted, 1);
    // The first takes over again.
    server.say("m2").await;
    answer(&push(&one, &server.log(0).await).await);
    assert_eq!(server.said().await, answers(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_is_closed_after_a_while() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let path = folder.path().join("agents.db");
    let reception = server.reception_with(ReceptionOptions {
        idle: Duration::from_millis(300),
        ..ReceptionOptions::new(&path)
    });
    init(&reception).await;
    let open = || SqliteRuntime::open(&path, StoreOptions::default());
    assert_eq!(open().expect_err("owned").code().name(), "store.locked");
    until("it is free", async || open().is_ok()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_turn_goes_on_after_its_request() {
    for idle in [0, 30_000] {
        let folder = tempfile::tempdir().expect("a folder");
        let server = Server::start(folder.path()).await;
        let reception = server.reception_with(ReceptionOptions {
            idle: Duration::from_millis(idle),
            request_time: Duration::from_millis(300),
            ..ReceptionOptions::new(folder.path().join("agents.db"))
        });
        init(&reception).await;
        let seq = server.say("slow").await;
        let began = Instant::now();
        let reply = push(&reception, &server.log(seq - 1).await).await;
        assert_eq!((reply.status, reply.retry_after), (202, Some(1)));
        assert!(began.elapsed() < Duration::from_millis(1_400));
        let present = answer(&reply);
        assert!(present.checkpoint < seq, "{}", present.checkpoint);
        until("it ends", async || {
            let reply = push(&reception, &server.log(seq - 1).await).await;
            reply.status == 200 && answer(&reply).checkpoint >= seq
        })
        .await;
        reception.close().await;
        assert_eq!(server.said().await, ["#1: slow"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_request_lets_a_timer_fire() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let reception = server.reception(folder.path());
    init(&reception).await;
    server.say("remind").await;
    let set = answer(&push(&reception, &server.log(0).await).await);
    let wake_at = set.wake_at.expect("a timer");
    assert!(wake_at > 1_000 * seconds() && wake_at <= 1_000 * seconds() + 3_000);
    let early = answer(&push(&reception, &[]).await);
    assert_eq!(early.wake_at, Some(wake_at));
    assert_eq!(server.said().await, ["#1: remind"]);
    tokio::time::sleep(Duration::from_millis(3_000)).await;
    let fired = answer(&push(&reception, &[]).await);
    assert_eq!(fired.wake_at, None);
    assert_eq!(server.said().await, ["#1: remind", "reminded"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_signed_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let reception = server.reception_with(ReceptionOptions {
        idle: Duration::ZERO,
        max_body_bytes: 1_000,
        ..ReceptionOptions::new(folder.path().join("agents.db"))
    });
    init(&reception).await;
    let secret = Secret::parse(crate::harness::SECRET).expect("a secret");
    let body = serde_json::to_vec(&json!({"agent": key()})).expect("JSON");
    let now = seconds();
    let send = async |id: &str, at: u64, signature: &str, body: &[u8]| {
        let signed = Signed {
            id,
            timestamp: &at.to_string(),
            signature,
        };
        let reply = reception.handle(EVENTS, signed, body.to_vec()).await;
        match reply.status {
            200 => (200, String::new()),
            status => (status, code(&reply)),
        }
    };
    let refused = |status: u16, code: &str| (status, format!("push.{code}"));
    let right = secret.sign("msg_1", now, &body);
    assert_eq!(
        send("msg_1", now, "v1,AAAA", &body).await,
        refused(401, "bad_signature")
    );
    assert_eq!(
        send("msg_1", now, &right, b"{}").await,
        refused(401, "bad_signature")
    );
    let old = secret.sign("msg_1", now - 400, &body);
    assert_eq!(
        send("msg_1", now - 400, &old, &body).await,
        refused(401, "old_timestamp")
    );
    let large = vec![b' '; 1_001];
    let signature = secret.sign("msg_1", now, &large);
    assert_eq!(
        send("msg_1", now, &signature, &large).await,
        refused(413, "body_too_large")
    );
    // A refused request may be sent again under its id.
    let strange = secret.sign("msg_1", now, b"[]");
    assert_eq!(
        send("msg_1", now, &strange, b"[]").await,
        refused(400, "bad_request")
    );
    assert_eq!(
        send("msg_1", now, &right, &body).await,
        (200, String::new())
    );
    assert_eq!(
        send("msg_1", now, &right, &body).await,
        refused(409, "replayed")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_refuses_bodies_that_are_too_large() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let reception = server.reception_with(ReceptionOptions {
        max_body_bytes: 1_000,
        ..ReceptionOptions::new(folder.path().join("agents.db"))
    });
    let address = serve(&reception).await;
    let mut stream = tokio::net::TcpStream::connect(address)
        .await
        .expect("connected");
    let head = format!(
        "POST {EVENTS} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 1001\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.write_all(&[b' '; 1_001]).await.expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("an answer");
    assert!(text.starts_with("HTTP/1.1 413"), "{text}");
    assert!(text.contains("push.body_too_large"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_without_the_form_of_a_log_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let reception = server.reception(folder.path());
    init(&reception).await;
    server.say("m1").await;
    let mut event = serde_json::to_value(&*server.log(0).await[0]).expect("JSON");
    let logged = json!({"agent": key(), "ephemeral": [event.clone()]});
    let reply = ask(&reception, EVENTS, &logged).await;
    assert_eq!((reply.status, &*code(&reply)), (400, "push.bad_request"));
    event.as_object_mut().expect("an object").remove("seq");
    let without = json!({"agent": key(), "events": [event.clone()]});
    assert_eq!(
        code(&ask(&reception, EVENTS, &without).await),
        "push.bad_request"
    );
    let many = json!({"agent": key(), "ephemeral": vec![event; 501]});
    assert_eq!(
        code(&ask(&reception, EVENTS, &many).await),
        "push.bad_request"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_run_while_the_channel_server_is_away_and_what_they_send_waits() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let reception = server.reception_with(ReceptionOptions {
        idle: Duration::ZERO,
        drain: Duration::from_secs(2),
        ..ReceptionOptions::new(folder.path().join("agents.db"))
    });
    init(&reception).await;
    server.say("m1").await;
    let log = server.log(0).await;
    let host = server.stop();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let away = answer(&push(&reception, &log).await);
    assert_eq!((away.checkpoint, away.accepted), (1, 1));
    assert!(away.wake_at.is_some(), "it asks to be called again");
    let head = host.channel_store().head("general").await;
    assert_eq!(head.expect("a head"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn attachments_go_with_the_events_of_all_senders() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let new = NewToken {
        name: "host".to_owned(),
        scopes: Scopes::parse(&["read:*", "write:*", "host:*"]).expect("scopes"),
        lifetime: None,
    };
    let token = server.authority.issue(&new).expect("a token").0;
    let address = format!("http://{}", server.address);
    let transport = HttpTransport::new(ServerOptions::new(address, token)).expect("a transport");
    let event = |id: u128, text: &str| {
        let (id, sender) = (Uuid::from_u128(id), Arc::new(Sender::agent(&key())));
        let mut new = NewEvent::new("general", id, sender, 0, Body::Message(Message::text(text)));
        new.event.attachments.push(Attachment {
            id: "a".to_owned(),
            mime_type: "image/png".to_owned(),
            name: Some(text.to_owned()),
            data: vec![0, 255, b'}'],
        });
        new
    };
    let fence = Fence {
        key: key(),
        epoch: Epoch(1),
    };
    let of_agent = transport.append(vec![event(1, "agent")], Some(fence), 0);
    of_agent.await.expect("appended");
    // The holder of the token has not joined as an agent.
    for _ in 0..2 {
        let of_holder = transport.append(vec![event(2, "holder")], None, 0);
        of_holder.await.expect("published, once");
    }
    let log = server.log(0).await;
    let sent: Vec<_> = log.iter().map(|one| one.attachments.clone()).collect();
    let expected = [event(1, "agent"), event(2, "holder")].map(|new| new.event.attachments);
    assert_eq!(sent, expected);
    // Clients send ephemeral events without attachments: refused, and not sent without them.
    let passed = transport.pass(event(3, "passes")).await;
    assert_eq!(passed.expect_err("refused").code(), "channels.bad_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_awake_gets_ephemeral_events() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let reception = server.reception_with(ReceptionOptions::new(folder.path().join("agents.db")));
    init(&reception).await;
    server.say("m1").await;
    let log = server.log(0).await;
    answer(&push(&reception, &log).await);
    let mut passing = Event::clone(&log[0]);
    (passing.seq, passing.kind) = (None, EventKind::Ephemeral);
    let events = Events {
        agent: key(),
        events: Vec::new(),
        head: 0,
        ephemeral: vec![Arc::new(passing)],
    };
    assert_eq!(answer(&ask(&reception, EVENTS, &events).await).accepted, 0);
    until("it is answered", async || {
        server.said().await == ["#1: m1", "#2: m1"]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_gets_the_answer_of_another_agent_within_its_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let doubler = "doubler/general/doubler".parse().expect("a key");
    server
        .host
        .invite(&doubler, json!({}))
        .await
        .expect("invited");
    let reception = server.reception(folder.path());
    init(&reception).await;
    let seq = server.say("ask").await;
    let reply = push(&reception, &server.log(seq - 1).await).await;
    assert_eq!(reply.status, 200);
    assert_eq!(server.said().await, ["the answer 42", "#1: ask"]);
}
