//! Hosts that share a store, each with shards of its own.

#![allow(clippy::print_stdout, reason = "what processes tell the test")]

use crate::script::{Call, Script, text, until};
use crate::support::{Counted, Files, LONG, builder, counted, key, messages, say};
use a99_runtime::{AgentKey, Event, Host, HostShards, LogEntry, SendOptions, Shards};
use a99_runtime_engine::{AgentStore, ChannelStore, Claim, TakeOver};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

const LEASE: Duration = Duration::from_millis(900);

fn shared(path: &Path) -> Arc<SqliteRuntime> {
    let options = StoreOptions {
        is_shared: true,
        ..StoreOptions::default()
    };
    Arc::new(SqliteRuntime::open(path, options).expect("a store"))
}

fn of(keys: &[&AgentKey]) -> Shards {
    keys.iter().map(|key| key.shard()).collect()
}

fn shards(owner: &str, shards: Shards) -> HostShards {
    HostShards {
        lease: LEASE,
        ..HostShards::new(owner, shards)
    }
}

fn is_of_ann(event: &Event) -> bool {
    event.sender.handle.as_deref() == Some("ann")
}

/// Counts what Ann says, and answers it.
fn counts() -> Script {
    Script::new(|turn, call| {
        Box::pin(async move {
            if let Call::Event(event) = &call
                && let Some(said) = text(event).filter(|_| is_of_ann(event))
            {
                turn.state_mut().count += 1;
                turn.state_mut().seen.push(said.to_owned());
                turn.send(format!("{said} counted")).await?;
            }
            Ok(())
        })
    })
}

/// A host of agents `a`, and the codes of its log.
async fn host(
    store: &Arc<SqliteRuntime>,
    script: Script,
    shards: HostShards,
) -> (Host, Arc<Mutex<Vec<String>>>) {
    let codes = Arc::<Mutex<Vec<String>>>::default();
    let told = Arc::clone(&codes);
    let host = builder()
        .agent("a", move |_| script.clone())
        .logger(move |entry: &LogEntry<'_>| {
            told.lock().expect("codes").push(entry.code.to_owned());
        })
        .shards(shards);
    let host = host.start(Arc::clone(store)).await.expect("a host");
    (host, codes)
}

async fn has_seen(store: &SqliteRuntime, key: &AgentKey, seen: &[&str]) {
    until("it has seen them", async || {
        let row = store.load(key).await.expect("readable");
        let state = row.and_then(|row| serde_json::from_str::<Counted>(&row.state).ok());
        state.is_some_and(|state| state.seen == seen)
    })
    .await;
}

#[tokio::test]
async fn hosts_on_one_store_run_their_own_agents() {
    let files = Files::new();
    let (x, y) = (key("a/c/x"), key("a/c/y"));
    let (first, second) = (shared(&files.path()), shared(&files.path()));
    // Without shards the host would run no agent.
    let none = builder()
        .start(Arc::clone(&first))
        .await
        .expect_err("refused");
    assert_eq!(none.code(), "host.not_owner");
    // An owner that does not share waits for those that do.
    let alone = SqliteRuntime::open(files.path(), StoreOptions::default()).expect_err("locked");
    assert!(alone.to_string().contains("which shares it"), "{alone}");

    let (one, _) = host(&first, counts(), shards("one", of(&[&x]))).await;
    let (two, _) = host(&second, counts(), shards("two", Shards::ALL - of(&[&x]))).await;
    assert_eq!(one.shards() | two.shards(), Shards::ALL);
    assert_eq!(one.shards() & two.shards(), Shards::NONE);
    let refused = one.invite(&y, json!({})).await.expect_err("another's");
    assert_eq!(refused.code(), "host.not_owner");
    let refused = one.remove(&y).await.expect_err("another's");
    assert_eq!(refused.code(), "host.not_owner");
    one.invite(&x, json!({})).await.expect("invited");
    two.invite(&y, json!({})).await.expect("invited");
    // Each agent handles each event of either host once, awake or asleep.
    say(&one, "c", "1").await;
    say(&two, "c", "2").await;
    has_seen(&first, &x, &["1", "2"]).await;
    has_seen(&first, &y, &["1", "2"]).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    say(&two, "c", "3").await;
    has_seen(&first, &x, &["1", "2", "3"]).await;
    has_seen(&first, &y, &["1", "2", "3"]).await;
    assert_eq!(
        (one.agents(), two.agents()),
        (vec![x.clone()], vec![y.clone()])
    );
    assert_eq!(one.inspect(&y).await.expect("readable").status, "unknown");
    let answers = messages(&one, "c").await.into_iter();
    let mut answers: Vec<_> = answers.filter(|(who, _)| who != "ann").collect();
    answers.sort();
    let expected = ["x", "y"].map(|who| ["1", "2", "3"].map(|n| (who, format!("{n} counted"))));
    let expected = expected.concat().into_iter();
    let expected: Vec<_> = expected.map(|(who, text)| (who.to_owned(), text)).collect();
    assert_eq!(answers, expected);

    // What a host gives back needs no lease to end, and nothing was cut off.
    one.drain(LONG).await.expect("drained");
    assert_eq!(one.shards(), Shards::NONE);
    let (next, _) = host(&first, counts(), shards("next", of(&[&x]))).await;
    assert_eq!(
        (next.shards(), first.was_cut_off()),
        (of(&[&x]), Shards::NONE)
    );
    say(&next, "c", "4").await;
    has_seen(&first, &x, &["1", "2", "3", "4"]).await;
    for host in [next, two] {
        host.drain(LONG).await.expect("drained");
    }
}

#[tokio::test]
async fn a_shard_that_is_lost_in_a_turn_ends_there_and_the_others_go_on() {
    let files = Files::new();
    let (x, y) = (key("a/c/x"), key("a/d/y"));
    let gate = Arc::new(Notify::new());
    let told = Arc::<Mutex<Vec<String>>>::default();
    let (open, codes) = (Arc::clone(&gate), Arc::clone(&told));
    let waits = Script::new(move |turn, call| {
        let (open, codes) = (Arc::clone(&open), Arc::clone(&codes));
        Box::pin(async move {
            if let Call::Event(event) = &call
                && let Some(said) = text(event)
            {
                turn.state_mut().seen.push(said.to_owned());
                if said == "wait" {
                    turn.send("of the earlier one").await?;
                    let client = turn.client();
                    // What the turn leaves behind is refused, too.
                    tokio::spawn(async move {
                        open.notified().await;
                        let sent = client.send_now("late", SendOptions::default()).await;
                        let code = sent.map_err(|error| error.code().to_owned());
                        codes.lock().expect("codes").push(code.expect_err("late"));
                    });
                    std::future::pending::<()>().await;
                }
            }
            Ok(())
        })
    });
    let (first, second) = (shared(&files.path()), shared(&files.path()));
    let calls = waits.clone();
    let (one, log) = host(&first, waits, shards("one", Shards::ALL)).await;
    one.invite(&x, json!({})).await.expect("invited");
    one.invite(&y, json!({})).await.expect("invited");
    say(&one, "c", "wait").await;
    until("it runs", async || {
        calls.called().contains(&"event wait".to_owned())
    })
    .await;

    let mut by_force = shards("two", of(&[&x]));
    by_force.takes_over = true;
    let (two, _) = host(&second, counts(), by_force).await;
    has_seen(&first, &x, &["wait"]).await;
    until("it says so", async || {
        log.lock()
            .expect("codes")
            .contains(&"host.shard_lost".to_owned())
    })
    .await;
    assert_eq!(
        (one.agents(), two.agents()),
        (vec![y.clone()], vec![x.clone()])
    );
    gate.notify_one();
    until("the late one is refused", async || {
        !told.lock().expect("codes").is_empty()
    })
    .await;
    say(&one, "d", "on").await;
    has_seen(&first, &y, &["on"]).await;
    let said = messages(&two, "c").await;
    let said: Vec<_> = said.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(said, ["wait", "wait counted"]);

    // It wants the shard still, and gets it when the other one gives it back.
    two.drain(LONG).await.expect("drained");
    until("it comes back", async || one.agents().contains(&x)).await;
    say(&one, "c", "again").await;
    has_seen(&first, &x, &["wait", "again"]).await;
    one.drain(LONG).await.expect("drained");
}

#[tokio::test]
async fn the_clock_of_a_host_may_jump() {
    let files = Files::new();
    let (x, store) = (key("a/c/x"), shared(&files.path()));
    let (one, log) = host(&store, counts(), shards("one", Shards::ALL)).await;
    one.invite(&x, json!({})).await.expect("invited");
    // For an owner with a clock that is far ahead, each lease has ended.
    let ahead = shared(&files.path());
    let claim = Claim {
        shards: of(&[&x]),
        owner: "ahead".to_owned(),
        until: Some(u64::MAX >> 2),
        take_over: TakeOver::Never,
        now: u64::MAX >> 3,
    };
    assert_eq!(ahead.acquire(claim).await.expect("acquired"), of(&[&x]));
    say(&one, "c", "1").await;
    until("it says so", async || {
        log.lock()
            .expect("codes")
            .contains(&"host.shard_lost".to_owned())
    })
    .await;
    assert_eq!(counted(&one, &x).await.count, 0);
    // One whose clock is far behind keeps its shards, as it renews the lease all the time.
    ahead.release(Shards::ALL).await.expect("released");
    until("it comes back", async || one.agents().contains(&x)).await;
    has_seen(&store, &x, &["1"]).await;
    // Both endings of a host release once; the second takes nothing from the next owner.
    one.drain(LONG).await.expect("drained");
    let (two, _) = host(&ahead, counts(), shards("two", Shards::ALL)).await;
    one.drain(LONG).await.expect("drained");
    say(&two, "c", "2").await;
    has_seen(&store, &x, &["1", "2"]).await;
    assert_eq!(two.shards(), Shards::ALL);
    two.drain(LONG).await.expect("drained");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_cannot_renew_its_lease_stops_its_agents() {
    let files = Files::new();
    let (x, store) = (key("a/c/x"), shared(&files.path()));
    let (one, log) = host(&store, counts(), shards("one", Shards::ALL)).await;
    one.invite(&x, json!({})).await.expect("invited");
    let before = store.epoch(&x);
    // Another program writes for longer than a lease.
    let hangs = store.database().expect("a file").write(|_| {
        std::thread::sleep(LEASE * 3);
        Ok(())
    });
    until("it says so", async || {
        log.lock()
            .expect("codes")
            .contains(&"host.shard_lost".to_owned())
    })
    .await;
    assert_eq!((one.shards(), one.agents()), (Shards::NONE, vec![]));
    hangs.await.expect("it ended");
    until("it comes back", async || one.agents().contains(&x)).await;
    assert!(store.epoch(&x) > before, "as another owner would come");
    say(&one, "c", "1").await;
    has_seen(&store, &x, &["1"]).await;
    one.drain(LONG).await.expect("drained");
}

/// What a child does: the file of its store, and its name and parts.
const FILE: &str = "A99_SHARDS_FILE";
const ROLE: &str = "A99_SHARDS_ROLE";

const AGENTS: usize = 8;
const MESSAGES: usize = 150;

fn agent(n: usize) -> AgentKey {
    key(&format!("a/channel-{}/agent-{n}", n % 3))
}

fn start(name: &str, part: &str, file: &Path) -> Child {
    let exe = std::env::current_exe().expect("this program");
    let mut command = Command::new(exe);
    let args = [
        "--exact",
        "shards::child",
        "--include-ignored",
        "--nocapture",
        "--quiet",
    ];
    command
        .args(args)
        .env(FILE, file)
        .env(ROLE, format!("{name} {part}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("a process");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    while lines.next().expect("it starts").expect("a line") != "up" {}
    child
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "what another test starts as processes"]
async fn child() {
    let (Ok(role), Some(file)) = (std::env::var(ROLE), std::env::var_os(FILE)) else {
        return;
    };
    let mut words = role.split(' ');
    let name = words.next().expect("a name");
    let mut number = || {
        words
            .next()
            .and_then(|word| word.parse().ok())
            .expect("a number")
    };
    let part = Shards::part(number(), number());
    let store = shared(file.as_ref());
    let (host, _) = host(&store, counts(), shards(name, part)).await;
    for n in 0..AGENTS {
        if host.shards().contains(agent(n).shard()) {
            host.invite(&agent(n), json!({})).await.expect("invited");
        }
    }
    println!("\nup");
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_of_one_store_are_killed_and_replaced() {
    let files = Files::new();
    let path = files.path();
    let store = shared(&path);
    // Without shards: it only publishes and reads.
    let (reader, _) = host(&store, counts(), shards("reader", Shards::NONE)).await;
    let names = ["left", "right"];
    let mut hosts = [0, 1].map(|n| start(names[n], &format!("{n} 2"), &path));
    let of_left = (0..AGENTS).filter(|n| Shards::part(0, 2).contains(agent(*n).shard()));
    assert!((1..AGENTS).contains(&of_left.count()), "both have agents");
    let mut dice = 0x9e37_79b9_u32;
    for n in 0..MESSAGES {
        for channel in 0..3 {
            say(&reader, &format!("channel-{channel}"), &n.to_string()).await;
        }
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        tokio::time::sleep(Duration::from_millis(u64::from(dice >> 28))).await;
        if n % 15 == 14 {
            // Under its own name it does not wait for the lease of the killed one.
            let which = n / 15 % 2;
            hosts[which].kill().expect("killed");
            hosts[which].wait().expect("it ended");
            hosts[which] = start(names[which], &format!("{which} 2"), &path);
        }
    }
    // In the end another one takes everything up when the leases have ended.
    for host in &mut hosts {
        host.kill().expect("killed");
        host.wait().expect("it ended");
    }
    let mut heir = start("heir", "0 1", &path);
    let all: Vec<String> = (0..MESSAGES).map(|n| n.to_string()).collect();
    let seen: Vec<&str> = all.iter().map(String::as_str).collect();
    for n in 0..AGENTS {
        has_seen(&store, &agent(n), &seen).await;
    }
    heir.kill().expect("killed");
    heir.wait().expect("it ended");
    // Each answer is in the log once.
    for channel in 0..3 {
        let name = format!("channel-{channel}");
        let mut answers = Vec::new();
        let (mut after, head) = (0, store.head(&name).await.expect("a head"));
        while after < head {
            let events = store.read(&name, after, 500).await.expect("a log");
            after += events.len() as u64;
            let of_agents = events.iter().filter(|event| !is_of_ann(event));
            let said = of_agents.filter_map(|event| Some((event.sender.id, text(event)?)));
            answers.extend(said.map(|(who, said)| (who, said.to_owned())));
        }
        let there = (0..AGENTS).filter(|n| n % 3 == channel).count();
        assert_eq!(answers.len(), there * MESSAGES);
        answers.sort();
        answers.dedup();
        assert_eq!(answers.len(), there * MESSAGES);
    }
    reader.drain(LONG).await.expect("drained");
}
