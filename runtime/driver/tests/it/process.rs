//! Agents in another process: the same as in this one, and what becomes of them when either
//! side ends, hangs, or says what it may not.

use crate::support::{Files, LONG, builder, key, messages, quick, says, store};
mod faults;
mod kills;
mod raw;

use a99_capabilities::ScriptedAi;
use a99_capabilities::ai::TextRequest;
use a99_runtime::{
    Agent, AgentError, AgentProcess, Alarm, Body, CallOptions, Delivery, Event, Host, HostBuilder,
    Identity, Method, Methods, Migration, Policy, Process, Publish, SendOptions, Tables, Turn,
    TurnOutcome,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a handler that outlived its turn was told.
static LATE: Mutex<String> = Mutex::new(String::new());

/// Steps that were made in this process.
static STEPS: AtomicU64 = AtomicU64::new(0);

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
            "bad-sql" => {
                let storage = client.storage()?;
                let error = storage.exec("PRAGMA x").await.expect_err("refused");
                error.code().to_owned()
            }
            "step" => {
                let made = client.step("draw", async {
                    STEPS.fetch_add(1, Ordering::SeqCst);
                    Ok(turn.attempt())
                });
                let made: u32 = made.await?;
                if turn.attempt() == 1 {
                    return Err("after its step".into());
                }
                format!("made by attempt {made}")
            }
            "add" => {
                let args = json!({"a": 2, "b": 3});
                let call = client.call_method("other", "add", args, CallOptions::default());
                call.await?.result().await?.to_string()
            }
            "back" => {
                let call = client.call_method("other", "back", json!({}), CallOptions::default());
                let answer = call.await?.result().await;
                answer.map_or_else(|error| error.code().to_owned(), |value| value.to_string())
            }
            "ask" => {
                let answer = client.ai()?.generate_text(TextRequest::new(rest)).await;
                let answer = answer.map_err(|error| AgentError::new("ai", error.to_string()))?;
                format!("{} ({:?})", answer.text, answer.model)
            }
            "timer" => {
                client.set_timer("soon", client.now() + 400, json!({"text": rest}))?;
                "set".to_owned()
            }
            "settings" => {
                turn.update_settings(&json!({"tone": rest}))?;
                turn.settings().to_string()
            }
            "bus" => {
                let bus = client.context().event_bus;
                bus.publish("mood".to_owned(), json!({"is": rest}), true)
                    .await?;
                bus.set_channel_title(rest.to_owned()).await?;
                let config = bus.channel_config().await?;
                let sent = bus.send("first".to_owned(), SendOptions::default()).await?;
                bus.update(sent.message_id, " second".to_owned(), Default::default())
                    .await?;
                bus.complete(sent.message_id).await?;
                bus.error(sent.message_id, "no".to_owned(), Some("x.y".to_owned()))
                    .await?;
                client
                    .send_now("now", SendOptions::default())
                    .await
                    .map(drop)?;
                client
                    .send_ephemeral("passes", SendOptions::default())
                    .await?;
                let history = bus.history(None, 3).await?.len();
                let unknown = client.resolve_handles(&["nobody"]).expect_err("nobody");
                let names: Vec<_> = bus.roster().into_iter().map(|who| who.name).collect();
                json!([
                    config,
                    history,
                    unknown.to_string(),
                    names,
                    bus.list_agents()
                ])
                .to_string()
            }
            "invite" => {
                let bus = client.context().event_bus;
                let key = bus.invite_agent("worker", rest, json!({})).await?;
                let there = bus.channel_agents().len();
                let gone = bus.remove_agent("worker", rest).await?;
                json!([key, there, gone, bus.channel_agents().len()]).to_string()
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
            "panic" => {
                assert!(turn.attempt() > 1, "the first attempt");
                "panicked once".to_owned()
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

    fn default_settings(&self) -> Value {
        json!({"tone": "plain"})
    }

    fn tables(&self) -> Option<Tables> {
        Some(Tables::new().migration("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)"))
    }

    fn methods(&self) -> Methods<Self> {
        Methods::none()
            .with(
                "add",
                Method::new("Adds", |_, turn: &mut Turn<'_, Self>, call| {
                    Box::pin(async move {
                        turn.state_mut().count += 100;
                        let number = |name: &str| call.args[name].as_i64().unwrap_or_default();
                        Ok(json!(number("a") + number("b")))
                    })
                }),
            )
            .with(
                "back",
                Method::new("Calls back", |_, turn: &mut Turn<'_, Self>, _| {
                    Box::pin(async move {
                        let client = turn.client();
                        let call =
                            client.call_method("worker", "add", json!({}), CallOptions::default());
                        call.await?.result().await
                    })
                }),
            )
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

    async fn on_alarm(&self, turn: &mut Turn<'_, Self>, alarm: Alarm) -> TurnOutcome {
        let text = format!("{}: {}", alarm.name, alarm.payload["text"]);
        turn.send(text).await.map(drop)
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
    let model = ScriptedAi::replies(["Blue.", "Red."]);
    let host = of(builder().ai(model)).start(store(path)).await;
    host.expect("a host")
}

/// All events of a channel, but for the times of the host.
async fn log(host: &Host, channel: &str) -> Vec<Event> {
    let mut events = host
        .subscribe(channel, Some(0), false)
        .await
        .expect("a log");
    let mut found = Vec::new();
    while let Ok(event) = tokio::time::timeout(Duration::from_millis(200), events.next()).await {
        let event = Event::clone(&event.expect("an event"));
        found.push(Event { ts: 0, ..event });
    }
    found
}

async fn told(host: &Host, channel: &str, text: &str) {
    let publish = Publish {
        key: Some(text.to_owned()),
        ..says(text)
    };
    host.publish(channel, publish).await.expect("published");
    assert!(host.settled(LONG).await, "{text}");
}

const SCRIPT: [&str; 16] = [
    "say hello",
    "note one",
    "note two",
    "bad-sql",
    "step",
    "add",
    "back",
    "ask the sky",
    "settings loud",
    "bus happy",
    "invite third",
    "late",
    "late?",
    "panic",
    "what",
    "ask the rose",
];

async fn played(
    of: fn(HostBuilder) -> HostBuilder,
    delivery: Delivery,
) -> (Vec<Event>, [Value; 2]) {
    let files = Files::new();
    let host = started(&files.path(), of).await;
    let config = json!({"delivery": delivery});
    let [one, two] = ["worker/general/worker", "worker/general/other"].map(key);
    for agent in [&one, &two] {
        host.invite(agent, config.clone()).await.expect("invited");
    }
    for text in SCRIPT {
        told(&host, "general", text).await;
    }
    let looked = host.inspect(&one).await.expect("an agent");
    let log = log(&host, "general").await;
    host.drain(LONG).await.expect("drained");
    (
        log,
        [
            looked.state.unwrap_or_default(),
            looked.settings.unwrap_or_default(),
        ],
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_does_the_same_in_another_process() {
    for delivery in [Delivery::ExactlyOnceState, Delivery::AtLeastOnce] {
        let (local, remote) = (played(here, delivery).await, played(there, delivery).await);
        for (local, remote) in local.0.iter().zip(&remote.0) {
            assert_eq!(remote, local);
        }
        assert_eq!(remote.0.len(), local.0.len());
        assert_eq!(remote.1, local.1);
        let answers = local.0.iter().filter_map(|event| match &event.body {
            Body::Message(message) if event.sender.handle.as_deref() == Some("worker") => {
                Some(message.content.as_str())
            }
            _ => None,
        });
        let answers: Vec<_> = answers.collect();
        for wanted in [
            "made by attempt 1",
            "5",
            "call.would_deadlock",
            "Blue. (Some(\"scripted\"))",
            "turn.over",
            "panicked once",
        ] {
            assert!(answers.contains(&wanted), "{wanted}: {answers:#?}");
        }
    }
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
async fn timers_wake_it() {
    let files = Files::new();
    let host = started(&files.path(), there).await;
    invited(&host, json!({})).await;
    assert_eq!(answer(&host, "timer tea").await, "set");
    let began = std::time::Instant::now();
    let rang = ("worker".to_owned(), "soon: \"tea\"".to_owned());
    while !messages(&host, "general").await.contains(&rang) {
        assert!(began.elapsed() < LONG);
    }
    let timers = host.inspect(&key("worker/general/worker")).await;
    assert_eq!(timers.expect("an agent").timers, []);
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
