//! Commits of turns into the store of agents: 64 agents at the same time and one alone, each
//! turn with a state of 2 KiB, without and with an event that it sends; beside them the same
//! rows in plain transactions, one for each turn. What waits for the disk tells of the disk.

use a99_runtime_engine::{
    AgentKey, AgentStore, Body, Event, EventKind, Fence, Message, NewEvent, NewState, Progress,
    Sender, Trigger, TurnCommit, derived,
};
use a99_runtime_stores::{Durability, SqliteRuntime, StoreOptions};
use a99_sqlite::rusqlite::{Connection, params};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Runtime;

const AGENTS: usize = 64;

/// Turns of an agent between two looks at the clock.
const TURNS: u64 = 16;

const STATE_BYTES: usize = 2_048;

/// An agent, and how many turns it had.
struct Agent {
    fence: Fence,
    turns: u64,
}

impl Agent {
    fn all(store: &SqliteRuntime) -> Vec<Agent> {
        let agent = |n| {
            let key = AgentKey::new("echo", &format!("channel-{}", n % 8), &format!("agent-{n}"));
            let key = key.expect("a key");
            let epoch = store.epoch(&key);
            let fence = Fence { key, epoch };
            Agent { fence, turns: 0 }
        };
        (0..AGENTS).map(agent).collect()
    }

    fn turn(&mut self, sends: bool) -> TurnCommit {
        let base = self.turns;
        self.turns += 1;
        let mut commit = TurnCommit::new(self.fence.clone(), base);
        commit.trigger = Some(Trigger::Event(self.turns));
        commit.progress = Some(Progress {
            checkpoint: self.turns,
            ..Progress::default()
        });
        commit.state = Some(NewState {
            json: state(base),
            version: 1,
            base,
        });
        if sends {
            let key = &self.fence.key;
            commit.outbox.push(NewEvent {
                channel: key.channel().to_owned(),
                event: Event {
                    id: derived(&[key.as_str(), &base.to_string()]),
                    seq: None,
                    kind: EventKind::Persisted,
                    ts: 0,
                    sender: Arc::new(Sender::agent(key)),
                    hops: 1,
                    body: Body::Message(Message::text("y".repeat(80))),
                    attachments: Vec::new(),
                },
            });
        }
        commit
    }
}

fn state(n: u64) -> String {
    format!(
        "{{\"n\":{n:20},\"text\":\"{}\"}}",
        "x".repeat(STATE_BYTES - 42)
    )
}

/// The turns of some agents, all at the same time; each waits for its own.
async fn turns(store: &SqliteRuntime, agents: &mut Vec<Agent>, sends: bool) {
    let run = |mut agent: Agent| {
        let store = store.clone();
        tokio::spawn(async move {
            for _ in 0..TURNS {
                let commit = agent.turn(sends);
                store.commit(commit).await.expect("it is kept");
            }
            agent
        })
    };
    let tasks: Vec<_> = agents.drain(..).map(run).collect();
    for task in tasks {
        agents.push(task.await.expect("no panic"));
    }
}

/// A file of no run before.
fn fresh(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    for end in ["", "-wal", "-shm", ".lock"] {
        let mut name = path.clone().into_os_string();
        name.push(end);
        drop(fs::remove_file(name));
    }
    path
}

/// A turn in a transaction of its own, with the statements of the store.
fn plain(connection: &Connection, agent: &mut Agent) {
    let (base, key) = (agent.turns, agent.fence.key.as_str());
    agent.turns += 1;
    let run = |sql: &str, params: &[&dyn a99_sqlite::rusqlite::ToSql]| {
        let mut statement = connection.prepare_cached(sql).expect("a statement");
        statement.execute(params).expect("it runs")
    };
    run("BEGIN IMMEDIATE", &[]);
    let epoch = connection
        .prepare_cached("SELECT epoch FROM shard WHERE id = ?1")
        .and_then(|mut find| find.query_row([agent.fence.key.shard()], |row| row.get::<_, i64>(0)));
    assert_eq!(epoch.ok(), i64::try_from(agent.fence.epoch.0).ok());
    let changed = run(
        "INSERT INTO agent_state (key, shard, epoch, revision, version, checkpoint, created_at,
             updated_at, state)
         VALUES (?1, 0, 1, 1, 1, 1, 0, 0, ?2)
         ON CONFLICT (key) DO UPDATE SET revision = revision + 1, checkpoint = checkpoint + 1,
             state = excluded.state WHERE revision = ?3",
        params![key, state(base), base.cast_signed()],
    );
    assert_eq!(changed, 1);
    run("COMMIT", &[]);
}

fn open(durability: Durability, path: &Path) -> SqliteRuntime {
    let options = StoreOptions {
        durability,
        ..StoreOptions::default()
    };
    SqliteRuntime::open(path, options).expect("a store")
}

fn runtime(c: &mut Criterion) {
    let runtime: Runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    for durability in [Durability::Process, Durability::Power] {
        let mut group = c.benchmark_group(format!("runtime/{durability:?}"));
        for (name, sends) in [("commit", false), ("commit_and_send", true)] {
            for count in [AGENTS, 1] {
                let store = open(durability, &fresh(&format!("runtime-{durability:?}.db")));
                let mut agents = Agent::all(&store);
                agents.truncate(count);
                let elements = u64::try_from(count).expect("a count") * TURNS;
                group.throughput(Throughput::Elements(elements));
                group.bench_function(BenchmarkId::new(name, count), |b| {
                    b.iter(|| runtime.block_on(turns(&store, &mut agents, sends)));
                });
                store.close().expect("it is closed");
            }
        }
        let path = fresh("runtime-plain.db");
        let store = open(durability, &path);
        let mut agents = Agent::all(&store);
        store.close().expect("it is closed");
        let connection = Connection::open(&path).expect("the file");
        let synchronous = match durability {
            Durability::Power => "PRAGMA synchronous = FULL",
            _ => "PRAGMA synchronous = NORMAL",
        };
        connection.execute_batch(synchronous).expect("a setting");
        let elements = u64::try_from(AGENTS).expect("a count");
        group.throughput(Throughput::Elements(elements));
        group.bench_function("plain", |b| {
            b.iter(|| {
                agents
                    .iter_mut()
                    .for_each(|agent| plain(&connection, agent))
            });
        });
    }
}

criterion_group!(benches, runtime);
criterion_main!(benches);
