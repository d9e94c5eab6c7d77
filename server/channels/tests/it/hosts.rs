//! Hosts of agents over a channel server: the WebSocket target.

use crate::harness::{Counted, Echo, Proxy, Server, WAIT, connect, say, text};
use a99_channels::client::{ChannelTransport, Status};
use a99_channels::wire::Call;
use a99_runtime::{
    Agent, AgentKey, Alarm, Body, CallOptions, Event, Host, Message, Participant, Sender, Turn,
    TurnOutcome, Uuid,
};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

const HOST: &[&str] = &["read:*", "host:*", "write:*", "call:*"];

fn key(key: &str) -> AgentKey {
    key.parse().expect("a key")
}

/// Asks `@a` to double a number, and says the answer.
struct Asker;

impl Agent for Asker {
    type State = Counted;
    type Settings = Value;

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        if let Body::Message(message) = event.body
            && let Some(n) = message.content.strip_prefix("ask ")
        {
            turn.state_mut().messages += 1;
            let args = json!({"n": n.parse::<f64>().unwrap_or_default()});
            let call = turn.call_method("a", "double", args, CallOptions::default());
            let answer = call.await?.result().await?;
            turn.send(format!("answer {answer}")).await?;
        }
        Ok(())
    }
}

async fn host(file: &Path, server: SocketAddr, token: &str) -> Host {
    let options = StoreOptions {
        has_channels: false,
        ..StoreOptions::default()
    };
    let open = || SqliteRuntime::open(file, options.clone());
    // The last tasks of the host before it may still have the file.
    until("a store", async || open().is_ok()).await;
    let store = Arc::new(open().expect("a store"));
    let transport = ChannelTransport::new(connect(server, token).await);
    let host = Host::builder()
        .agent("echo", |_| Echo)
        .agent("asker", |_| Asker)
        .agent("clockwork", |_| Clockwork)
        .start_over(store, Arc::new(transport))
        .await;
    host.expect("a host")
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(WAIT, wait)
        .await
        .unwrap_or_else(|_| panic!("{what}"));
}

/// The texts that a participant sent, in order.
async fn said(server: &Server, who: &AgentKey) -> Vec<String> {
    let (mut after, mut all) = (0, Vec::new());
    loop {
        let events = server
            .host
            .channel_store()
            .read(who.channel(), after, 500)
            .await;
        let events = events.expect("events");
        let Some(last) = events.last().and_then(|event| event.seq) else {
            return all;
        };
        for (n, event) in events.iter().enumerate() {
            assert_eq!(event.seq, Some(after + 1 + n as u64), "the log has no gap");
            if event.sender.id == who.participant() && matches!(event.body, Body::Message(_)) {
                all.push(text(event).to_owned());
            }
        }
        after = last;
    }
}

fn answers(count: usize) -> Vec<String> {
    (1..=count).map(|n| format!("#{n}: echo {n}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_two_hosts_talk_while_connections_break_and_hosts_start_again() {
    const MESSAGES: usize = 300;
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let token = server.token(HOST);
    let (first, second) = (
        Proxy::start(server.address).await,
        Proxy::start(server.address).await,
    );
    let (a, b) = (key("echo/general/a"), key("echo/general/b"));
    let files = [folder.path().join("a.db"), folder.path().join("b.db")];
    let mut one = host(&files[0], first.address, &token).await;
    let two = host(&files[1], second.address, &token).await;
    one.invite(&a, json!({})).await.expect("invited");
    two.invite(&b, json!({})).await.expect("invited");
    let client = server.client(&["read:*", "write:*"]).await;
    for n in 1..=MESSAGES {
        client
            .publish(say("general", format!("echo {n}")), Vec::new())
            .await
            .expect("published");
        match n % 50 {
            10 => first.cut(),
            20 => second.cut(),
            30 => {
                first.cut();
                second.cut();
            }
            40 => {
                one.drain(Duration::from_secs(10)).await.expect("drained");
                drop(one);
                one = host(&files[0], first.address, &token).await;
            }
            _ => {}
        }
    }
    for agent in [&a, &b] {
        until("all are answered", async || {
            said(&server, agent).await.len() >= MESSAGES
        })
        .await;
        assert_eq!(said(&server, agent).await, answers(MESSAGES), "{agent}");
    }
    assert_eq!(
        one.inspect(&a).await.expect("a").state,
        Some(json!({"messages": MESSAGES}))
    );
    assert_eq!(
        two.inspect(&b).await.expect("b").state,
        Some(json!({"messages": MESSAGES}))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_find_and_call_each_other_across_hosts() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let token = server.token(HOST);
    let one = host(&folder.path().join("a.db"), server.address, &token).await;
    let two = host(&folder.path().join("b.db"), server.address, &token).await;
    let (a, asker) = (key("echo/general/a"), key("asker/general/b"));
    one.invite(&a, json!({})).await.expect("invited");
    two.invite(&asker, json!({})).await.expect("invited");
    let conflict = two
        .invite(&key("echo/general/A"), json!({}))
        .await
        .expect_err("refused");
    assert_eq!(conflict.code(), "handle-conflict");
    let sees = |roster: Vec<Participant>| {
        let mut handles: Vec<_> = roster.into_iter().map(|who| who.handle).collect();
        handles.sort();
        handles == ["a", "b"]
    };
    until("both hosts see both", async || {
        sees(one.roster("general")) && sees(two.roster("general"))
    })
    .await;
    let client = server.client(&["read:*", "write:*", "call:*"]).await;
    client
        .publish(say("general", "ask 21"), Vec::new())
        .await
        .expect("published");
    until("an answer", async || {
        !said(&server, &asker).await.is_empty()
    })
    .await;
    assert_eq!(said(&server, &asker).await, ["answer 42.0"]);
    let call = Call {
        channel: "general".into(),
        provider: "a".into(),
        method: "double".into(),
        args: json!({"n": 5}),
        participant: None,
        call_id: None,
        timeout_ms: None,
    };
    assert_eq!(client.call(call).await.expect("an answer"), json!(10.0));
    two.remove(&asker).await.expect("removed");
    until("it is gone", async || one.roster("general").len() == 1).await;
}

/// Sends a message each time that its timer fires.
struct Clockwork;

impl Agent for Clockwork {
    type State = Counted;
    type Settings = Value;

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        if let Body::Message(_) = event.body
            && turn.state().messages == 0
        {
            let due = event.ts + 1_000;
            turn.set_timer("tick", due, json!(null))?;
        }
        Ok(())
    }

    async fn on_alarm(&self, turn: &mut Turn<'_, Self>, _: Alarm) -> TurnOutcome {
        turn.state_mut().messages += 1;
        let n = turn.state().messages;
        turn.send(format!("tick {n}")).await?;
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_turn_sends_waits_in_the_outbox_while_there_is_no_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let token = server.token(HOST);
    let file = folder.path().join("a.db");
    let one = host(&file, server.address, &token).await;
    let a = key("clockwork/general/a");
    one.invite(&a, json!({})).await.expect("invited");
    let client = server.client(&["write:*"]).await;
    client
        .publish(say("general", "begin"), Vec::new())
        .await
        .expect("published");
    let has_timer = async || {
        one.inspect(&a)
            .await
            .is_ok_and(|info| !info.timers.is_empty())
    };
    until("a timer", has_timer).await;
    let (path, address) = server.stop().await;
    // The turn of the timer commits; its message waits.
    let ticked = async || {
        let row = one.agent_store().load(&a).await;
        row.is_ok_and(|row| row.is_some_and(|row| row.state == r#"{"messages":1}"#))
    };
    until("the turn", ticked).await;
    assert_eq!(
        one.agent_store().outbox(10).await.expect("an outbox").len(),
        1
    );
    let listen = a99_server::ListenOptions {
        address,
        ..Default::default()
    };
    let server = Server::start_with(&path, listen, Default::default()).await;
    until("the message", async || !said(&server, &a).await.is_empty()).await;
    assert_eq!(said(&server, &a).await, ["tick 1"]);
    let emptied = async || {
        one.agent_store()
            .outbox(10)
            .await
            .is_ok_and(|all| all.is_empty())
    };
    until("an empty outbox", emptied).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_host_of_an_agent_fences_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let token = server.token(HOST);
    let client = connect(server.address, &token).await;
    let append = |epoch: u64, n: u128, text: &str| {
        json!({"agent": "echo/general/a", "epoch": epoch, "events": [{
            "channel": "general", "id": Uuid::from_u128(n), "hops": 0,
            "body": {"type": "message", "content": text}}]})
    };
    let sent: Vec<Value> = client
        .request("append", &append(5, 1, "new"))
        .await
        .expect("appended");
    assert_eq!(sent[0]["isNew"], true);
    let fenced = client
        .request::<Value>("append", &append(4, 2, "old"))
        .await
        .expect_err("refused");
    assert_eq!(fenced.code(), "store.fenced");
    let again: Vec<Value> = client
        .request("append", &append(5, 1, "new"))
        .await
        .expect("appended");
    assert_eq!(
        (&again[0]["isNew"], &again[0]["seq"]),
        (&json!(false), &sent[0]["seq"])
    );
    assert_eq!(said(&server, &key("echo/general/a")).await, ["new"]);
    let status = client.status();
    assert!(matches!(&*status.borrow(), Status::Connected));
    // Appending as an agent that the request does not name.
    let person = Sender {
        id: Uuid::from_u128(9),
        ..Sender::default()
    };
    let body = Body::Message(Message::text("x"));
    let new =
        a99_runtime_engine::NewEvent::new("general", Uuid::from_u128(3), Arc::new(person), 0, body);
    let fence = a99_runtime_engine::Fence {
        key: key("echo/general/a"),
        epoch: a99_runtime_engine::Epoch(6),
    };
    let refused = server
        .host
        .append_of(fence, vec![new])
        .await
        .expect_err("refused");
    assert_eq!(refused.code(), "store.input");
}
