//! Soak: many agents under steady load for a long time, of which some are taken away and
//! invited again all the time, in a process that is killed now and then. At the end nothing is
//! left to do, each message was counted once, and memory did not grow.

use crate::parent::{Dice, process};
use a99_runtime::{
    Agent, AgentKey, Body, Event, Host, HostOptions, Message, Publish, Sender, Turn, TurnOutcome,
    Uuid,
};
use a99_runtime_engine::ChannelStore;
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a soak does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Soak {
    pub(crate) agents: u64,
    pub(crate) seconds: u64,
    pub(crate) messages_a_second: u64,
    /// How many times the process is killed.
    pub(crate) kills: u64,
}

/// Memory may grow by this much, in percent and in MiB, from a third of a process's life on.
const GROWTH: (u64, u64) = (20, 16);

/// How often memory is looked at.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Counted {
    count: u64,
    text: String,
}

struct Counter;

impl Agent for Counter {
    type State = Counted;
    type Settings = Value;

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        if let Body::Message(message) = event.body {
            turn.state_mut().count += 1;
            turn.state_mut().text = message.content;
            turn.send(format!("re {}", turn.state().count)).await?;
        }
        Ok(())
    }
}

fn key(n: u64) -> AgentKey {
    AgentKey::new("soak", &format!("channel-{n}"), "soak").expect("a key")
}

fn set(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().expect("a number"))
}

fn child(folder: &Path, soak: Soak, seed: u64) -> Command {
    let mut command = process(folder, "A99_SOAK_FOLDER");
    command.env("A99_SOAK_AGENTS", soak.agents.to_string());
    command.env("A99_SOAK_RATE", soak.messages_a_second.to_string());
    command.env("A99_SOAK_SEED", seed.to_string());
    command
}

/// Resident memory of a process, in MiB.
fn resident(child: &Child) -> u64 {
    let path = format!("/proc/{}/status", child.id());
    let status = std::fs::read_to_string(path).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.map_or(0, |kib| kib.trim().parse::<u64>().expect("a number") / 1024)
}

fn told(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("stderr")).unwrap_or_default()
}

/// Judges the memory of a life: from its first third on it is flat.
fn judge(samples: &[u64]) -> (u64, u64) {
    let early = samples.len() / 3;
    let begin = samples.get(early).copied().unwrap_or_default();
    let most = samples.iter().skip(early).max().copied().unwrap_or(begin);
    let limit = begin + begin * GROWTH.0 / 100 + GROWTH.1;
    assert!(
        most <= limit,
        "memory grew from {begin} to {most} MiB: {samples:?}"
    );
    (begin, most)
}

/// Runs a soak, and judges it.
pub(crate) fn run(soak: Soak, seed: u64) {
    let files = tempfile::tempdir().expect("a folder");
    let folder = files.path();
    let lives = soak.kills + 1;
    let life = Duration::from_secs(soak.seconds) / u32::try_from(lives).expect("few kills");
    let mut figures = Vec::new();
    for n in 0..lives {
        let mut running = child(folder, soak, seed + n).spawn().expect("a child");
        let begin = Instant::now();
        let mut samples = Vec::new();
        while begin.elapsed() < life {
            std::thread::sleep(LOOK);
            let ended = running.try_wait().expect("a child");
            assert!(ended.is_none(), "life {n}: {ended:?}: {}", told(folder));
            samples.push(resident(&running));
        }
        running.kill().expect("it runs");
        running.wait().expect("it ended");
        figures.push(judge(&samples));
    }
    let mut last = child(folder, soak, seed);
    let status = last.env("A99_SOAK_FINISH", "1").status().expect("a child");
    assert!(status.success(), "at the end: {status}: {}", told(folder));
    let messages = std::fs::read_to_string(folder.join("messages")).expect("figures");
    let figures = format!(
        "soak: {} agents, {} s, {} kills: {messages} messages, each counted once; memory of \
         each life, MiB, at a third and at most: {figures:?}",
        soak.agents, soak.seconds, soak.kills
    );
    writeln!(std::io::stderr(), "{figures}").expect("a place for figures");
}

/// The process that is killed.
pub(crate) fn live() {
    let folder = PathBuf::from(std::env::var_os("A99_SOAK_FOLDER").expect("a folder"));
    let agents = set("A99_SOAK_AGENTS").expect("agents");
    let rate = set("A99_SOAK_RATE").expect("a rate");
    let seed = set("A99_SOAK_SEED").expect("a seed");
    let finishes = set("A99_SOAK_FINISH").is_some();
    let path = folder.join("agents.db");
    let store = Arc::new(SqliteRuntime::open(path, StoreOptions::default()).expect("a store"));
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = { runtime }.worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let options = HostOptions {
            idle_debounce: Duration::from_secs(2),
            ..HostOptions::default()
        };
        let builder = Host::builder().options(options).agent("soak", |_| Counter);
        let host = builder.start(Arc::clone(&store)).await.expect("a host");
        for n in 0..agents {
            host.invite(&key(n), json!({})).await.expect("invited");
        }
        match finishes {
            true => finish(&folder, &host, &store, agents).await,
            false => load(&host, agents, rate, seed).await,
        }
    });
}

/// Publishes to agents by chance, and takes a tenth of them away each minute for a moment.
async fn load(host: &Host, agents: u64, rate: u64, seed: u64) {
    let mut dice = Dice::new(seed);
    let begin = Instant::now();
    for n in 0_u64.. {
        let until = Duration::from_secs_f64(n as f64 / rate as f64);
        tokio::time::sleep(until.saturating_sub(begin.elapsed())).await;
        let (one, other) = (key(dice.below(agents)), key(dice.below(agents)));
        let says = Publish {
            body: Body::Message(Message::text(format!("{n} {}", "x".repeat(100)))),
            sender: Sender {
                id: Uuid::from_u128(7),
                handle: Some("ann".to_owned()),
                ..Sender::default()
            },
            key: None,
            attachments: Vec::new(),
        };
        host.publish(one.channel(), says).await.expect("published");
        // As many in a minute as a tenth of all.
        if dice.below(rate * 600) < agents {
            assert!(host.remove(&other).await.expect("removed"));
            host.invite(&other, json!({})).await.expect("invited");
        }
    }
}

/// Lets all agents do what is left, and compares what they counted with the logs.
async fn finish(folder: &Path, host: &Host, store: &SqliteRuntime, agents: u64) {
    assert!(
        host.settled(Duration::from_secs(120)).await,
        "they do not settle"
    );
    let mut all = 0;
    for n in 0..agents {
        let key = key(n);
        let info = host.inspect(&key).await.expect("an agent");
        assert_eq!(info.dead_letters, [], "{key}");
        let (mut messages, mut answers, mut after) = (0_u64, 0_u64, 0);
        loop {
            let page = store.read(key.channel(), after, 500).await.expect("a log");
            let Some(last) = page.last().and_then(|event| event.seq) else {
                break;
            };
            after = last;
            for event in page {
                if let Body::Message(message) = &event.body {
                    match message.content.starts_with("re ") {
                        true => answers += 1,
                        false => messages += 1,
                    }
                }
            }
        }
        let counted = info.state.map_or(0, |state| {
            let state: Counted = serde_json::from_value(state).expect("a state");
            state.count
        });
        assert_eq!((counted, answers), (messages, messages), "{key}");
        all += messages;
    }
    std::fs::write(folder.join("messages"), all.to_string()).expect("written");
    host.drain(Duration::from_secs(20)).await.expect("drained");
}
