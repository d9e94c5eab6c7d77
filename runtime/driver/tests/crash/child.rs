//! The process that is killed: it looks at what it finds, goes on from there, and publishes
//! numbers until it dies.

use crate::Mode;
use crate::agent::Killed;
use crate::check;
use a99_runtime::{AgentKey, Body, Host, HostOptions, Message, Publish, Sender, Uuid};
use a99_runtime_engine::ChannelStore;
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Numbers that are published ahead of the agent.
const AHEAD: u64 = 24;

pub(crate) fn key() -> AgentKey {
    "killed/numbers/killed".parse().expect("a key")
}

fn says(n: u64) -> Publish {
    Publish {
        body: Body::Message(Message::text(n.to_string())),
        sender: Sender {
            id: Uuid::from_u128(7),
            handle: Some("ann".to_owned()),
            ..Sender::default()
        },
        key: Some(n.to_string()),
        attachments: Vec::new(),
    }
}

/// The last number that stands in the log.
async fn last(store: &SqliteRuntime) -> u64 {
    let mut before = u64::MAX >> 1;
    loop {
        let page = store
            .read_before("numbers", before, 64)
            .await
            .expect("a log");
        let Some(first) = page.last().and_then(|event| event.seq) else {
            return 0;
        };
        let numbers = page.iter().find_map(|event| check::number(event));
        if let Some(n) = numbers {
            return n;
        }
        before = first;
    }
}

pub(crate) fn live() {
    let set = |name: &str| std::env::var(name).ok();
    let folder = PathBuf::from(set("A99_CRASH_FOLDER").expect("a folder"));
    let mode = set("A99_CRASH_MODE_OF_CHILD").and_then(|name| Mode::find(&name));
    let mode = mode.expect("a mode");
    let drain = set("A99_CRASH_DRAIN").map(|ms| ms.parse().expect("milliseconds"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let path = folder.join("agents.db");
    let store = Arc::new(SqliteRuntime::open(path, StoreOptions::default()).expect("a store"));
    let finish = set("A99_CRASH_FINISH").is_some();
    runtime.block_on(run(&folder, mode, &store, drain, finish));
    drop(runtime);
    let store = Arc::into_inner(store).expect("nobody else has it");
    store.close().expect("closed");
}

async fn run(
    folder: &Path,
    mode: Mode,
    store: &Arc<SqliteRuntime>,
    drain: Option<u64>,
    finish: bool,
) {
    check::check(folder, mode, store, false).await;
    let next = last(store).await + 1;
    let handled = Arc::new(AtomicU64::new(next.saturating_sub(AHEAD)));
    let (own, seen) = (folder.to_owned(), Arc::clone(&handled));
    let host = Host::builder()
        .options(HostOptions {
            idle_debounce: Duration::from_secs(60),
            ..HostOptions::default()
        })
        .agent("killed", move |_| Killed {
            mode,
            folder: own.clone(),
            handled: Arc::clone(&seen),
        })
        .start(Arc::clone(store))
        .await
        .expect("a host");
    host.invite(&key(), json!({})).await.expect("invited");
    if finish {
        finish_all(&host).await;
        check::check(folder, mode, store, true).await;
        return;
    }
    let publishing = publish(&host, next, &handled);
    if let Some(after) = drain {
        drop(tokio::time::timeout(Duration::from_millis(after), publishing).await);
        host.drain(Duration::from_millis(20))
            .await
            .expect("drained");
    } else {
        publishing.await;
    }
}

async fn publish(host: &Host, mut n: u64, handled: &AtomicU64) {
    loop {
        while n > handled.load(Ordering::Relaxed) + AHEAD {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        host.publish("numbers", says(n)).await.expect("published");
        n += 1;
    }
}

/// Lets the agent do all that is left.
async fn finish_all(host: &Host) {
    assert!(
        host.settled(Duration::from_secs(60)).await,
        "it does not settle"
    );
    for _ in 0..2_000 {
        let info = host.inspect(&key()).await.expect("an agent");
        if info.timers.iter().all(|timer| timer.cron.is_some()) && info.lag == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    host.drain(Duration::from_secs(20)).await.expect("drained");
}
