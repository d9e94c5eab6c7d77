//! `cargo xtask agents`: turns, wake-up, replay and memory of hosted agents.
//!
//! Each row is a separate process, so that memory figures include only its work.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]

use a99_benches::turns::{AGENTS, Agent as Turns, STATE_BYTES, open, plain, plain_connection};
use a99_runtime::program::ProgramAgent;
use a99_runtime::{
    Agent, AgentKey, Body, Event, Host, HostOptions, Message, Policy, Publish, Sender, Turn,
    TurnOutcome, Uuid,
};
use a99_runtime_engine::{AgentStore, ChannelStore, NewEvent, Registration, derived};
use a99_runtime_stores::{Durability, SqliteRuntime};
use agent99::Engine;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::error::Error;
use std::num::NonZeroU32;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;

const USAGE: &str = "usage: agents [--json] [ROW]";

type Done<T> = Result<T, Box<dyn Error>>;

/// Goal of a figure.
enum Goal {
    AtLeast(f64),
    AtMost(f64),
    /// At least this many times the figure of another row.
    Times(f64, &'static str),
    None,
}

/// A row: name, unit, goal, and measurement.
type Row = (&'static str, &'static str, Goal, fn(&Path) -> Done<f64>);

/// Agents in the rows about memory and start-up.
const MANY: usize = 10_000;

/// Turns of an agent in one commit, in rows with group commit.
const JOINED: u32 = 64;

/// Agents that are awake at once.
const AWAKE: usize = 2_000;

/// Events to replay.
const EVENTS: usize = 200_000;

fn rows() -> Vec<Row> {
    vec![
        ("turns of 64 agents", "1/s", Goal::AtLeast(12_000.0), |at| {
            turns(at, Durability::Process, (AGENTS, 600), 1)
        }),
        (
            "turns of one agent",
            "1/s",
            Goal::Times(1.0, "single commits"),
            |at| turns(at, Durability::Process, (1, 10_000), JOINED),
        ),
        (
            "turns of one agent, a commit each",
            "1/s",
            Goal::None,
            |at| turns(at, Durability::Process, (1, 10_000), 1),
        ),
        ("single commits", "1/s", Goal::None, |at| {
            single(at, Durability::Process, 300)
        }),
        (
            "turns of 64 agents, power",
            "1/s",
            Goal::Times(30.0, "single commits, power"),
            |at| turns(at, Durability::Power, (AGENTS, 200), JOINED),
        ),
        ("single commits, power", "1/s", Goal::None, |at| {
            single(at, Durability::Power, 10)
        }),
        (
            "turns of a program, each kept",
            "1/s",
            // A kept turn costs at most a tenth more.
            Goal::Times(1.0 / 1.1, "turns of a program"),
            |at| programs(at, 100),
        ),
        ("turns of a program", "1/s", Goal::None, |at| {
            programs(at, 0)
        }),
        ("wake to first turn", "us", Goal::AtMost(1_000.0), wake),
        ("replay", "events/s", Goal::AtLeast(200_000.0), replay),
        ("memory asleep", "bytes", Goal::AtMost(8_192.0), asleep),
        ("memory awake", "bytes", Goal::AtMost(65_536.0), awake),
        (
            "start with 10,000 asleep",
            "ms",
            Goal::AtMost(1_000.0),
            start,
        ),
    ]
}

fn main() -> ExitCode {
    let (mut is_json, mut only) = (false, None);
    for arg in std::env::args().skip(1) {
        match arg.as_str() {
            "--json" => is_json = true,
            text if text.starts_with('-') || only.is_some() => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
            _ => only = Some(arg),
        }
    }
    let done = match only {
        Some(name) => one(&name),
        None => all(is_json),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("agents: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures one row and prints its figure.
fn one(name: &str) -> Done<()> {
    let rows = rows();
    let Some(row) = rows.iter().find(|row| row.0 == name) else {
        let names: Vec<&str> = rows.iter().map(|row| row.0).collect();
        return Err(format!("no row `{name}`; there are: {}", names.join(", ")).into());
    };
    let folder = std::env::temp_dir().join(format!("a99-agents-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let figure = (row.3)(&folder);
    std::fs::remove_dir_all(&folder)?;
    println!("{}", figure?);
    Ok(())
}

/// Measures all rows, each in a process, and prints the table.
fn all(is_json: bool) -> Done<()> {
    let mut figures: Vec<(&str, f64)> = Vec::new();
    let mut out = Vec::new();
    for (name, unit, goal, _) in rows() {
        eprintln!("==> {name}");
        let done = Command::new(std::env::current_exe()?).arg(name).output()?;
        if !done.status.success() {
            let why = String::from_utf8_lossy(&done.stderr).into_owned();
            return Err(format!("{name}: {why}").into());
        }
        let figure: f64 = String::from_utf8(done.stdout)?.trim().parse()?;
        figures.push((name, figure));
        out.push((name, unit, figure, goal));
    }
    let of = |name: &str| figures.iter().find(|(other, _)| *other == name);
    let mut table = Vec::new();
    for (name, unit, figure, goal) in out {
        let (wanted, holds) = match goal {
            Goal::AtLeast(least) => (format!(">= {least}"), Some(figure >= least)),
            Goal::AtMost(most) => (format!("<= {most}"), Some(figure <= most)),
            Goal::Times(times, other) => {
                let than = of(other).map_or(f64::NAN, |(_, than)| *than);
                let text = format!(">= {times} x {other} ({:.1} x)", figure / than);
                (text, Some(figure >= times * than))
            }
            Goal::None => (String::new(), None),
        };
        table.push(json!({
            "row": name, "unit": unit, "figure": (figure * 10.0).round() / 10.0,
            "goal": wanted, "holds": holds,
        }));
    }
    if is_json {
        println!("{:#}", Value::from(table));
        return Ok(());
    }
    println!("{:<28}{:>12} {:<10}goal", "row", "figure", "unit");
    for row in table {
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let mark = if row["holds"] == json!(false) {
            "!"
        } else {
            ""
        };
        println!(
            "{:<28}{:>12} {:<10}{} {mark}",
            text("row"),
            format!("{:.0}", row["figure"].as_f64().unwrap_or_default()),
            text("unit"),
            text("goal"),
        );
    }
    Ok(())
}

/// An agent whose state changes with each message.
struct Counter {
    seen: Arc<Seen>,
    turns_per_commit: NonZeroU32,
}

/// Observations of the measuring side about all agents.
#[derive(Default)]
struct Seen {
    turns: AtomicU64,
    /// Start of the last turn, in nanoseconds after `begin`.
    last: AtomicU64,
}

#[derive(Clone, Serialize, Deserialize)]
struct Counted {
    n: u64,
    text: String,
}

impl Default for Counted {
    fn default() -> Counted {
        Counted {
            n: 0,
            text: "x".repeat(STATE_BYTES - 42),
        }
    }
}

/// Nanoseconds since the first call in this process.
fn now() -> u64 {
    static BEGIN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let elapsed = BEGIN.get_or_init(Instant::now).elapsed();
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

impl Agent for Counter {
    type State = Counted;
    type Settings = Value;

    fn policy(&self) -> Policy {
        Policy {
            turns_per_commit: self.turns_per_commit,
            ..Policy::default()
        }
    }

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        if let Body::Message(_) = event.body {
            self.seen.last.store(now(), Ordering::SeqCst);
            self.seen.turns.fetch_add(1, Ordering::SeqCst);
            turn.state_mut().n += 1;
        }
        Ok(())
    }
}

fn ann() -> Sender {
    Sender {
        id: Uuid::from_u128(1),
        name: Some("Ann".to_owned()),
        kind: Some("panel".to_owned()),
        handle: Some("ann".to_owned()),
    }
}

fn key(n: usize, channels: usize) -> Done<AgentKey> {
    let channel = format!("channel-{}", n % channels);
    Ok(AgentKey::new("counter", &channel, &format!("counter-{n}"))?)
}

/// A store with agents on channels, and the same number of messages on each channel.
async fn filled(
    store: &SqliteRuntime,
    agents: usize,
    channels: usize,
    messages: usize,
) -> Done<Vec<AgentKey>> {
    let mut keys = Vec::new();
    for n in 0..agents {
        let key = key(n, channels)?;
        let registration = Registration {
            key: key.clone(),
            config: json!({}),
            registered_at: 0,
            metadata: None,
        };
        store.register(registration).await?;
        keys.push(key);
    }
    let sender = Arc::new(ann());
    for channel in 0..channels.min(agents) {
        let name = format!("channel-{channel}");
        let mut events = Vec::new();
        for n in 0..messages {
            let id = derived(&[&name, &n.to_string()]);
            let body = Body::Message(Message::text("y".repeat(80)));
            events.push(NewEvent::new(&name, id, Arc::clone(&sender), 0, body));
            if events.len() == 500 || n + 1 == messages {
                store.append(std::mem::take(&mut events), None, 0).await?;
            }
        }
    }
    Ok(keys)
}

/// A host of counters on a store.
async fn host(store: Arc<SqliteRuntime>, seen: &Arc<Seen>, idle: Duration) -> Done<Host> {
    joining(store, seen, idle, 1).await
}

/// A host whose agents commit several turns at once.
async fn joining(
    store: Arc<SqliteRuntime>,
    seen: &Arc<Seen>,
    idle: Duration,
    turns_per_commit: u32,
) -> Done<Host> {
    let turns_per_commit = NonZeroU32::new(turns_per_commit).ok_or("no turns in a commit")?;
    let seen = Arc::clone(seen);
    let options = HostOptions {
        idle_debounce: idle,
        ..HostOptions::default()
    };
    let builder = Host::builder().options(options);
    let builder = builder.agent("counter", move |_| Counter {
        seen: Arc::clone(&seen),
        turns_per_commit,
    });
    Ok(builder.start(store).await?)
}

fn block_on<T>(work: impl Future<Output = Done<T>>) -> Done<T> {
    Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(work)
}

async fn until(seen: &Seen, turns: u64) -> Done<()> {
    let begin = Instant::now();
    while seen.turns.load(Ordering::SeqCst) < turns {
        if begin.elapsed() > Duration::from_secs(300) {
            return Err("the turns do not end".into());
        }
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
    Ok(())
}

/// Turns per second: agents, each on a separate channel full of messages.
fn turns(
    folder: &Path,
    durability: Durability,
    (agents, each): (usize, usize),
    joined: u32,
) -> Done<f64> {
    let path = folder.join("agents.db");
    block_on(async {
        let store = Arc::new(open(durability, &path));
        filled(&store, agents, agents, each).await?;
        let seen = Arc::new(Seen::default());
        let begin = Instant::now();
        let host = joining(store, &seen, Duration::from_secs(60), joined).await?;
        until(&seen, (agents * each) as u64).await?;
        if !host.settled(Duration::from_secs(60)).await {
            return Err("the host does not settle".into());
        }
        let seconds = begin.elapsed().as_secs_f64();
        host.drain(Duration::from_secs(5)).await?;
        Ok((agents * each) as f64 / seconds)
    })
}

/// Turns per second of a program that changes its state and sends a message.
fn programs(folder: &Path, keep_turns: u32) -> Done<f64> {
    const TURNS: usize = 5_000;
    let path = folder.join("agents.db");
    let engine = Engine::new();
    let program = engine.compile(
        r#"{"a99": 4, "op": "seq", "steps": [
            {"op": "agentSetState", "state": {"n": {"=": "state.n + 1"}}},
            {"op": "agentSend", "content": "counted"}
        ]}"#,
    )?;
    let Value::Object(state) = serde_json::to_value(Counted::default())? else {
        return Err("the state is no object".into());
    };
    let agent = ProgramAgent::builder(&engine, program)
        .initial_state(state)
        .build()?;
    block_on(async {
        let store = Arc::new(open(Durability::Process, &path));
        filled(&store, 1, 1, TURNS).await?;
        let options = HostOptions {
            keep_turns,
            ..HostOptions::default()
        };
        let begin = Instant::now();
        let builder = Host::builder().options(options);
        let host = builder
            .agent("counter", move |_| agent.clone())
            .start(store)
            .await?;
        if !host.settled(Duration::from_secs(300)).await {
            return Err("the turns do not end".into());
        }
        let seconds = begin.elapsed().as_secs_f64();
        let state = host.inspect(&key(0, 1)?).await?.state.unwrap_or_default();
        if state["n"] != TURNS {
            return Err(format!("{} turns", state["n"]).into());
        }
        host.drain(Duration::from_secs(5)).await?;
        Ok(TURNS as f64 / seconds)
    })
}

/// Turns per second of the same rows, with a transaction each.
fn single(folder: &Path, durability: Durability, each: usize) -> Done<f64> {
    let path = folder.join("plain.db");
    let store = open(durability, &path);
    let mut agents = Turns::all(&store);
    store.close()?;
    let connection = plain_connection(durability, &path);
    let begin = Instant::now();
    for _ in 0..each {
        for agent in &mut agents {
            plain(&connection, agent);
        }
    }
    Ok((agents.len() * each) as f64 / begin.elapsed().as_secs_f64())
}

/// Median time from publishing for a sleeping agent to the start of its turn.
fn wake(folder: &Path) -> Done<f64> {
    let path = folder.join("agents.db");
    block_on(async {
        let store = Arc::new(open(Durability::Process, &path));
        let keys = filled(&store, 200, 200, 1).await?;
        let seen = Arc::new(Seen::default());
        let host = host(store, &seen, Duration::from_millis(20)).await?;
        until(&seen, 200).await?;
        let mut times = Vec::new();
        for (n, key) in keys.iter().enumerate() {
            while host.inspect(key).await?.status != "asleep" {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            let publish = Publish {
                body: Body::Message(Message::text("wake")),
                sender: ann(),
                key: None,
                attachments: Vec::new(),
            };
            let begin = now();
            host.publish(key.channel(), publish).await?;
            until(&seen, 201 + n as u64).await?;
            times.push(seen.last.load(Ordering::SeqCst).saturating_sub(begin));
        }
        times.sort_unstable();
        host.drain(Duration::from_secs(5)).await?;
        Ok(times[times.len() / 2] as f64 / 1_000.0)
    })
}

/// Events per second of a subscription that reads a channel from its start.
fn replay(folder: &Path) -> Done<f64> {
    let path = folder.join("agents.db");
    block_on(async {
        let store = Arc::new(open(Durability::Process, &path));
        filled(&store, 0, 0, 0).await?;
        let sender = Arc::new(ann());
        for page in 0..EVENTS / 500 {
            let event = |n: usize| {
                let id = derived(&["replay", &page.to_string(), &n.to_string()]);
                let body = Body::Message(Message::text("y".repeat(80)));
                NewEvent::new("replay", id, Arc::clone(&sender), 0, body)
            };
            store.append((0..500).map(event).collect(), None, 0).await?;
        }
        let host = host(store, &Arc::default(), Duration::from_secs(60)).await?;
        let begin = Instant::now();
        let mut events = host.subscribe("replay", Some(0), false).await?;
        for n in 0..EVENTS {
            let event = events.next().await?;
            if event.seq != Some(n as u64 + 1) {
                return Err(format!("{:?} in place of {}", event.seq, n + 1).into());
            }
        }
        Ok(EVENTS as f64 / begin.elapsed().as_secs_f64())
    })
}

/// Resident bytes of the process.
fn resident() -> Done<f64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib: f64 = kib.ok_or("no VmRSS")?.parse()?;
    Ok(kib * 1_024.0)
}

/// Bytes of a host for each sleeping agent.
fn asleep(folder: &Path) -> Done<f64> {
    let path = folder.join("agents.db");
    block_on(async {
        let store = Arc::new(open(Durability::Process, &path));
        filled(&store, MANY, MANY, 0).await?;
        let before = resident()?;
        let host = host(store, &Arc::default(), Duration::from_secs(60)).await?;
        let after = resident()?;
        let count = host.agents().len();
        if count != MANY {
            return Err(format!("{count} agents").into());
        }
        Ok((after - before).max(0.0) / MANY as f64)
    })
}

/// Bytes of a host for each agent that is awake and idle.
fn awake(folder: &Path) -> Done<f64> {
    let path = folder.join("agents.db");
    block_on(async {
        let store = Arc::new(open(Durability::Process, &path));
        filled(&store, AWAKE, AWAKE, 1).await?;
        let seen = Arc::new(Seen::default());
        let before = resident()?;
        let host = host(store, &seen, Duration::from_secs(600)).await?;
        until(&seen, AWAKE as u64).await?;
        host.settled(Duration::from_secs(60)).await;
        let after = resident()?;
        Ok((after - before).max(0.0) / AWAKE as f64)
    })
}

/// Milliseconds from a store with sleeping agents to a ready host.
fn start(folder: &Path) -> Done<f64> {
    let path = folder.join("agents.db");
    block_on(async {
        let store = open(Durability::Process, &path);
        filled(&store, MANY, MANY, 1).await?;
        let store = Arc::new(store);
        let seen = Arc::new(Seen::default());
        let first = host(Arc::clone(&store), &seen, Duration::from_millis(100)).await?;
        until(&seen, MANY as u64).await?;
        first.settled(Duration::from_secs(60)).await;
        first.drain(Duration::from_secs(30)).await?;
        drop(first);
        let store = Arc::into_inner(store).ok_or("the store is in use")?;
        store.close()?;
        let begin = Instant::now();
        let store = Arc::new(open(Durability::Process, &path));
        let again = host(store, &seen, Duration::from_secs(60)).await?;
        let ms = begin.elapsed().as_secs_f64() * 1_000.0;
        let turns = seen.turns.load(Ordering::SeqCst);
        if (again.agents().len(), turns) != (MANY, MANY as u64) {
            return Err(format!("{} agents, {turns} turns", again.agents().len()).into());
        }
        Ok(ms)
    })
}
