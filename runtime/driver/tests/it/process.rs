//! Agents in another process: what becomes of them when either side ends, hangs, or says what it
//! may not. The suite shows that they are the same as in this one.

use crate::support::{Files, LONG, builder, key, messages, quick, says, store};
mod faults;
mod kills;
mod raw;

use a99_runtime::{
    Agent, AgentError, AgentProcess, Body, Delivery, Event, Host, HostBuilder, Identity, Migration,
    Policy, Process, Publish, Tables, Turn, TurnOutcome,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// What a handler that outlived its turn was told.
static LATE: Mutex<String> = Mutex::new(String::new());

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Seen {
    count: u64,
    texts: Vec<String>,
}

/// Does what a message says with all that a turn has.
#[derive(Clone, Copy, Default)]
struct Worker {
    delivery: Delivery,
    turn_timeout: Option<Duration>,
    attempts: Option<u32>,
}

impl Worker {
    async fn work(turn: &mut Turn<'_, Self>, word: &str, rest: &str) -> Result<String, AgentError> {
        let client = turn.client();
        Ok(match word {
            "say" => rest.to_owned(),
            "note" => {
                let storage = client.storage()?;
                let insert = "INSERT INTO notes (text) VALUES (?)";
                let done = storage.run(insert, vec![json!(rest)]).await?;
                let rows = storage.query("SELECT text FROM notes ORDER BY id", vec![]);
                json!([done.changes, rows.await?]).to_string()
            }
            "count" => {
                let storage = client.storage()?;
                let insert = "INSERT INTO notes (text) VALUES (?)";
                storage.run(insert, vec![json!(rest)]).await?;
                tokio::time::sleep(Duration::from_millis(4)).await;
                format!("counted {rest}")
            }
            "pid" => std::process::id().to_string(),
            "mode" => client.context().mode.to_owned(),
            "env" => {
                let mut names: Vec<_> = std::env::vars().map(|(name, _)| name).collect();
                names.sort();
                names.join(" ")
            }
            "late" => {
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    let error = client.send("late").await.map(drop);
                    let code =
                        error.map_or_else(|error| error.code().to_owned(), |()| "sent".to_owned());
                    *LATE.lock().expect("late") = code;
                });
                "gone".to_owned()
            }
            "late?" => {
                tokio::time::sleep(Duration::from_millis(60)).await;
                LATE.lock().expect("late").clone()
            }
            "hang" => {
                if turn.attempt() == 1 {
                    tokio::time::sleep(Duration::from_secs(600)).await;
                }
                format!("hung until attempt {}", turn.attempt())
            }
            "block" => {
                if turn.attempt() == 1 {
                    std::thread::sleep(Duration::from_secs(600));
                }
                format!("blocked until attempt {}", turn.attempt())
            }
            "die" => {
                client.send("never").await?;
                if turn.attempt() == 1 {
                    std::process::abort();
                }
                format!("died before attempt {}", turn.attempt())
            }
            other => format!("what is {other}?"),
        })
    }
}

impl Agent for Worker {
    type State = Seen;
    type Settings = Value;

    fn policy(&self) -> Policy {
        let mut policy = quick(self.delivery);
        policy.max_deaths = 100;
        policy.retry.max_attempts = self.attempts.unwrap_or(policy.retry.max_attempts);
        policy
    }

    fn turn_timeout(&self) -> Duration {
        self.turn_timeout.unwrap_or(Duration::from_secs(60))
    }

    fn tables(&self) -> Option<Tables> {
        Some(Tables::new().migration("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)"))
    }

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        let Body::Message(message) = event.body else {
            return Ok(());
        };
        // Agents talk with people only here.
        if event.sender.kind.as_deref() != Some("panel") || turn.key().handle() == "other" {
            return Ok(());
        }
        turn.state_mut().count += 1;
        turn.state_mut().texts.push(message.content.clone());
        let (word, rest) = message
            .content
            .split_once(' ')
            .unwrap_or((&message.content, ""));
        let answer = Worker::work(turn, word, rest).await?;
        turn.send(answer).await.map(drop)
    }
}

/// A later version of the worker.
struct Grown;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Counts {
    total: u64,
    #[serde(default)]
    last: String,
}

impl Agent for Grown {
    type State = Counts;
    type Settings = Value;

    const STATE_VERSION: u32 = 2;

    fn migrations(&self) -> &[Migration] {
        const STEPS: &[Migration] = &[Migration {
            from: 1,
            step: |old| match old["count"].as_u64() {
                Some(13) => Err("an unlucky number".to_owned()),
                count => Ok(json!({"total": count})),
            },
        }];
        STEPS
    }

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        if let (Body::Message(message), true) =
            (event.body, event.sender.handle.as_deref() != Some("worker"))
        {
            turn.state_mut().total += 1;
            turn.state_mut().last = message.content;
            let total = turn.state().total;
            turn.send(format!("total {total}")).await?;
        }
        Ok(())
    }
}

fn worker(identity: &Identity) -> Worker {
    let config = &identity.config;
    Worker {
        delivery: serde_json::from_value(config["delivery"].clone()).unwrap_or_default(),
        turn_timeout: config["timeout"].as_u64().map(Duration::from_millis),
        attempts: serde_json::from_value(config["attempts"].clone()).unwrap_or_default(),
    }
}

/// The process of agents.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by the others"]
async fn agents() {
    if let Some(file) = std::env::var_os("A99_TEST_PID") {
        std::fs::write(file, std::process::id().to_string()).expect("a file");
    }
    let process = match std::env::var_os("A99_TEST_GROWN") {
        Some(_) => AgentProcess::new().agent("worker", |_| Grown),
        None => AgentProcess::new().agent("worker", worker),
    };
    match std::env::var_os("A99_TEST_ATTACH") {
        Some(folder) => drop(process.attach(folder).await),
        None if std::env::var_os("A99_PROCESS_SOCKET").is_some() => drop(process.serve().await),
        None => return,
    }
    std::process::exit(0);
}

const ARGS: [&str; 4] = ["process::agents", "--exact", "--ignored", "--nocapture"];

fn process() -> Process {
    let program = std::env::current_exe().expect("this program");
    Process::command(program)
        .args(ARGS)
        .pauses(Duration::from_millis(5), Duration::from_millis(50))
}

fn there(builder: HostBuilder) -> HostBuilder {
    builder.process(process(), ["worker"])
}

fn here(builder: HostBuilder) -> HostBuilder {
    builder.agent("worker", worker)
}

async fn started(path: &Path, of: fn(HostBuilder) -> HostBuilder) -> Host {
    let host = of(builder()).start(store(path)).await;
    host.expect("a host")
}

async fn told(host: &Host, channel: &str, text: &str) {
    let publish = Publish {
        key: Some(text.to_owned()),
        ..says(text)
    };
    host.publish(channel, publish).await.expect("published");
    assert!(host.settled(LONG).await, "{text}");
}

/// What the agent answered, last.
async fn answer(host: &Host, text: &str) -> String {
    told(host, "general", text).await;
    let said = messages(host, "general").await;
    let mut by = said
        .into_iter()
        .rev()
        .filter(|(handle, _)| handle == "worker");
    by.next().map(|(_, text)| text).unwrap_or_default()
}

async fn invited(host: &Host, config: Value) {
    let worker = key("worker/general/worker");
    host.invite(&worker, config).await.expect("invited");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_is_led_up_where_its_code_is() {
    for (messages, said) in [(1, None), (13, Some("state.migration_failed"))] {
        let files = Files::new();
        let store = store(&files.path());
        let host = here(builder()).start(store.clone()).await.expect("a host");
        invited(&host, json!({})).await;
        for n in 0..messages {
            told(&host, "general", &format!("say {n}")).await;
        }
        crate::script::closed(host, store).await;
        let grown = process().env("A99_TEST_GROWN", "1");
        let path = files.path();
        let host = builder()
            .process(grown, ["worker"])
            .start(crate::support::store(&path));
        let host = host.await.expect("a host");
        told(&host, "general", "go on").await;
        let info = host
            .inspect(&key("worker/general/worker"))
            .await
            .expect("an agent");
        match said {
            None => {
                assert_eq!(info.version, 2);
                assert_eq!(info.state, Some(json!({"total": 2, "last": "go on"})));
            }
            Some(said) => assert_eq!(info.last_error.expect("an error").0, said),
        }
    }
}
