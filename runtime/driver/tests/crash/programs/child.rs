//! The process of a scene: it says what it finds answered, hosts the agent, and writes down
//! what came of it, unless it is killed before.

use super::scene::Scene;
use super::world;
use a99_runtime::program::{AGAIN, TurnRun};
use a99_runtime::{
    AgentKey, Body, Event, Host, HostOptions, Message, Policy, Publish, Retry, Sender, Trigger,
    Uuid,
};
use a99_runtime_engine::{AgentStore, ChannelStore, JournalStatus};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use serde_json::{Value as Json, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const CHANNEL: &str = "scene";

pub(crate) fn live() {
    let folder = PathBuf::from(std::env::var_os("A99_PROGRAM_FOLDER").expect("a folder"));
    let scene = fs::read_to_string(folder.join("scene.json")).expect("a scene");
    let scene: Scene = serde_json::from_str(&scene).expect("a scene");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let path = folder.join("agents.db");
    let store = Arc::new(SqliteRuntime::open(path, StoreOptions::default()).expect("a store"));
    runtime.block_on(host(&scene, &folder, &store));
    drop(runtime);
    let store = Arc::into_inner(store).expect("nobody else has it");
    store.close().expect("closed");
}

fn append(path: &Path, line: &str) {
    let file = fs::OpenOptions::new().append(true).create(true).open(path);
    let line = format!("{line}\n");
    (file.expect("a file").write_all(line.as_bytes())).expect("written");
}

/// Identities of calls that were answered before this process began: those that it may not
/// make.
async fn answered(store: &SqliteRuntime, key: &AgentKey) -> Vec<String> {
    let head = store.head(CHANNEL).await.expect("a log");
    let mut found = Vec::new();
    for seq in 1..=head {
        let rows = store.journal(key, &Trigger::Event(seq)).await;
        for row in rows.expect("a journal") {
            let is_answer = match &row.status {
                JournalStatus::Done(_) => true,
                JournalStatus::Failed(code, _) => code != AGAIN,
                JournalStatus::Started => false,
            };
            if let (true, Some(id)) = (is_answer, row.name.strip_prefix("call:")) {
                found.push(id.to_owned());
            }
        }
    }
    found
}

/// What must be equal of two ends of a run.
fn shown(run: &TurnRun<'_>) -> Json {
    let end = run.end.as_ref().map(|end| {
        let outcome = &end.outcome;
        format!(
            "{:?} {:?} {:?} {:?}",
            outcome.result, outcome.error, outcome.fuel_used, outcome.warnings
        )
    });
    json!([run.trigger.to_string(), format!("{end:?}")])
}

fn publish(scene: &Scene) -> Publish {
    let body = match &scene.args {
        Some(_) => Body::Custom {
            name: "run".to_owned(),
            payload: Json::Null,
        },
        None => Body::Message(Message::text(&scene.message)),
    };
    Publish {
        body,
        sender: Sender {
            id: Uuid::from_u128(7),
            kind: Some("panel".to_owned()),
            handle: Some("ann".to_owned()),
            ..Sender::default()
        },
        key: Some("once".to_owned()),
        attachments: Vec::new(),
    }
}

async fn host(scene: &Scene, folder: &Path, store: &Arc<SqliteRuntime>) {
    let key: AgentKey = "program/scene/program".parse().expect("a key");
    let answered = answered(store, &key).await;
    let text = serde_json::to_string(&answered).expect("JSON");
    fs::write(folder.join("answered.json"), text).expect("written");
    let ends = folder.join("ends");
    let agent = world::agent(scene, folder)
        .await
        .policy(Policy {
            // Killed at the same place again, no turn is to be given up.
            max_deaths: 1_000_000,
            retry: Retry {
                max_attempts: 1,
                ..Retry::default()
            },
            ..Policy::default()
        })
        .on_end(move |run| append(&ends, &shown(run).to_string()))
        .build()
        .expect("an agent");
    let host = Host::builder()
        .options(HostOptions {
            idle_debounce: Duration::from_secs(60),
            ..HostOptions::default()
        })
        .agent("program", move |_| agent.clone())
        .start(Arc::clone(store))
        .await
        .expect("a host");
    host.invite(&key, json!({})).await.expect("invited");
    host.publish(CHANNEL, publish(scene))
        .await
        .expect("published");
    let wait = Duration::from_secs(60);
    assert!(host.settled(wait).await, "it does not settle");
    // Timers that the program set are due at once.
    for _ in 0..2_000 {
        if host.inspect(&key).await.expect("there").timers.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(host.settled(wait).await, "it does not settle");
    let info = host.inspect(&key).await.expect("an agent");
    let dead = info.dead_letters.iter();
    let dead: Vec<_> = dead
        .map(|dead| json!([dead.trigger.to_string(), dead.code, dead.error]))
        .collect();
    host.drain(wait).await.expect("drained");
    let log = store.read(CHANNEL, 0, 500).await.expect("a log");
    let left = json!({
        "state": info.state,
        "dead": dead,
        "timers": info.timers.len(),
        "log": log.iter().map(|event| said(event)).collect::<Vec<_>>(),
    });
    fs::write(folder.join("left.json"), left.to_string()).expect("written");
}

/// An event but for its time.
fn said(event: &Event) -> Json {
    json!([event.id, event.seq, event.sender, event.hops, event.body])
}
