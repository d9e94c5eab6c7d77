//! Commits of turns into the store of agents: 64 agents at the same time and one alone, each
//! turn with a state of 2 KiB, without and with an event that it sends; beside them the same
//! rows in plain transactions, one for each turn. What waits for the disk tells of the disk.

use a99_benches::turns::{AGENTS, Agent, open, plain, plain_connection};
use a99_runtime_engine::AgentStore;
use a99_runtime_stores::{Durability, SqliteRuntime};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::fs;
use std::path::{Path, PathBuf};
use tokio::runtime::Runtime;

/// Turns of an agent between two looks at the clock.
const TURNS: u64 = 16;

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
        let connection = plain_connection(durability, &path);
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
