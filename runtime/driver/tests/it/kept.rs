//! What is kept can be read again: states, settings, answers of steps, and rows that another
//! wrote; what operators set; who is waited for.

use crate::script::{Call, Script, closed, is, text, until};
use crate::support::{Counter, Files, LONG, ann, builder, counted, key, quick, say, store, texts};
use a99_runtime::program::{ProgramAgent, ProgramAgentBuilder};
use a99_runtime::{
    Agent, AgentError, AgentInfo, AgentKey, Body, Delivery, Event, Host, LogEntry, Message, Policy,
    Publish, Step, Turn, TurnOutcome,
};
use a99_runtime_engine::{AgentStore, Progress, Trigger};
use agent99::Engine;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Odd {
    n: u64,
    mean: f64,
    tree: Value,
    by_pair: BTreeMap<Pair, u8>,
}

/// A key that is written as a text that it does not read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Pair(u8, u8);

impl Serialize for Pair {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str("pair")
    }
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!([inner]))
}

struct Keeps;

impl Agent for Keeps {
    type State = Odd;
    type Settings = Value;

    fn policy(&self) -> Policy {
        quick(Delivery::default())
    }

    fn default_settings(&self) -> Value {
        json!({})
    }

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        turn.state_mut().n += 1;
        match text(&event) {
            Some("nan") => turn.state_mut().mean = f64::NAN,
            Some("infinity") => turn.state_mut().mean = f64::NEG_INFINITY,
            Some("deep") => turn.state_mut().tree = nested(127),
            Some("deeper") => turn.state_mut().tree = nested(500),
            Some("key") => {
                turn.state_mut().by_pair.insert(Pair(1, 2), 3);
            }
            Some("settings") => turn.update_settings(&json!({"deep": nested(200)}))?,
            Some("timer") => turn.set_timer("t", turn.now() + 1_000_000, nested(200))?,
            Some("publish") => turn.publish("odd", nested(200), true).await?,
            Some("step") => {
                let mean = turn.step_as(Step::named("s").once(), async { Ok(f64::NAN) });
                mean.await?;
            }
            _ => {}
        }
        Ok(())
    }
}

async fn keeps(path: &Path) -> (Host, Arc<a99_runtime_stores::SqliteRuntime>) {
    let store = store(path);
    let host = builder().agent("k", |_| Keeps);
    let host = host.start(Arc::clone(&store)).await.expect("a host");
    host.invite(&key("k/c/k"), json!({}))
        .await
        .expect("invited");
    (host, store)
}

#[tokio::test]
async fn t1_what_could_not_be_read_again_is_not_kept() {
    let files = Files::new();
    let (host, first) = keeps(&files.path()).await;
    say(&host, "c", "plain").await;
    let odd = [
        "nan", "infinity", "deep", "deeper", "key", "settings", "timer", "publish", "step",
    ];
    for text in odd {
        say(&host, "c", text).await;
    }
    say(&host, "c", "plain").await;
    assert!(host.settled(LONG).await);
    let k = key("k/c/k");
    let dead = host.inspect(&k).await.expect("there").dead_letters;
    let told: Vec<_> = dead.iter().map(|one| &*one.error).collect();
    assert_eq!(dead.len(), odd.len(), "{told:?}");
    for (letter, text) in dead.iter().zip(odd) {
        assert!(
            [
                "state.unreadable",
                "store.input",
                "turn.refused",
                "turn.bad_value"
            ]
            .contains(&&*letter.code),
            "{text}: {letter:?}"
        );
    }
    assert!(
        told[0].contains("NaN") && told[2].contains("128 levels"),
        "{told:?}"
    );
    closed(host, first).await;
    // It starts, and goes on where it was.
    let (host, _second) = keeps(&files.path()).await;
    say(&host, "c", "plain").await;
    assert!(host.settled(LONG).await);
    let info = host.inspect(&k).await.expect("there");
    assert_eq!(
        info.state.expect("a state")["n"],
        3,
        "{:?}",
        info.last_error
    );
}

#[tokio::test]
async fn t1_settings_from_outside_are_such_as_the_agent_reads() {
    #[derive(Clone, Default, Serialize, Deserialize)]
    struct Speed {
        speed: u8,
    }
    struct Fast;
    impl Agent for Fast {
        type State = Value;
        type Settings = Speed;
        fn initial_state(&self) -> Value {
            json!({})
        }
        async fn on_event(&self, turn: &mut Turn<'_, Self>, _: Event) -> TurnOutcome {
            let speed = turn.settings().speed;
            turn.set_state(&json!({"speed": speed}))
        }
    }
    let files = Files::new();
    let host = builder().agent("f", |_| Fast);
    let host = host.start(store(&files.path())).await.expect("a host");
    let f = key("f/c/f");
    host.invite(&f, json!({})).await.expect("invited");
    for bad in [
        json!({"speed": "fast"}),
        json!({"speed": 300}),
        json!(7),
        json!({"deep": nested(200)}),
    ] {
        let refused = host.update_settings(&f, &bad).await;
        let error = refused.expect_err("no settings");
        assert!(
            ["turn.bad_value", "store.input"].contains(&error.code()),
            "{error:?}"
        );
    }
    host.update_settings(&f, &json!({"speed": 9}))
        .await
        .expect("settings");
    say(&host, "c", "go").await;
    assert!(host.settled(LONG).await);
    let info = host.inspect(&f).await.expect("there");
    assert_eq!(info.state, Some(json!({"speed": 9})));
}

fn program(text: &str) -> ProgramAgentBuilder {
    let engine = Engine::new();
    let program = engine.compile(text).expect("a program");
    ProgramAgent::builder(&engine, program).policy(quick(Delivery::default()))
}

async fn hosted(path: &Path, agent: ProgramAgent) -> Host {
    let host = builder().agent("p", move |_| agent.clone());
    let host = host.start(store(path)).await.expect("a host");
    host.invite(&key("p/c/p"), json!({}))
        .await
        .expect("invited");
    host
}

async fn told(host: &Host, said: &[&str]) -> AgentInfo {
    for text in said {
        say(host, "c", text).await;
        assert!(host.settled(LONG).await);
    }
    host.inspect(&key("p/c/p")).await.expect("there")
}

const GROWS: &str = r#"{"a99": 4, "op": "seq", "steps": [
    {"op": "if", "condition": "event.content == 'shrink'", "then": [
        {"op": "agentSetState", "state": {"text": "", "n": {"=": "(state.n ?? 0) + 1"}}}
    ], "else": [
        {"op": "agentSetState", "state": {"text": {"=": "(state.text ?? 'x'.repeat(500000)) + event.content"}, "n": {"=": "(state.n ?? 0) + 1"}}}
    ]}
]}"#;

#[tokio::test]
async fn t2_a_state_that_the_next_turn_could_not_take_in_is_not_kept() {
    let files = Files::new();
    let host = hosted(&files.path(), program(GROWS).build().expect("an agent")).await;
    let piece = "y".repeat(800_000);
    let said = [&*piece; 6];
    let info = told(&host, &said).await;
    let codes: Vec<_> = info.dead_letters.iter().map(|one| &*one.code).collect();
    assert_eq!(codes, ["state.too_large"; 3], "{:?}", info.last_error);
    assert_eq!(info.state.expect("a state")["n"], 3);
    // The one that shrinks it is handled.
    let info = told(&host, &["shrink"]).await;
    assert_eq!(info.state, Some(json!({"text": "", "n": 4})));
    assert_eq!(info.dead_letters.len(), 3);
}

#[tokio::test]
async fn t2_a_state_that_is_too_large_already_can_be_shrunk() {
    let files = Files::new();
    let agent = program(GROWS).build().expect("an agent");
    let host = hosted(&files.path(), agent.clone()).await;
    told(&host, &["a"]).await;
    host.drain(LONG).await.expect("drained");
    drop(host);
    let file = a99_sqlite::rusqlite::Connection::open(files.path()).expect("a file");
    let state = json!({"text": "z".repeat(9 << 20), "n": 7}).to_string();
    file.execute("UPDATE agent_state SET state = ?1", [state])
        .expect("a row");
    drop(file);
    let host = hosted(&files.path(), agent).await;
    let info = told(&host, &["shrink"]).await;
    assert!(info.dead_letters.is_empty(), "{:?}", info.dead_letters);
    assert_eq!(info.state, Some(json!({"text": "", "n": 8})));
}

#[tokio::test]
async fn t3_a_turn_that_is_lost_is_logged_and_has_a_dead_letter() {
    let files = Files::new();
    let said = Arc::new(Mutex::new(Vec::new()));
    let start = || {
        let agent = program(r#"{"a99": 4, "op": "seq", "steps": []}"#)
            .policy(quick(Delivery::AtMostOnce))
            .build()
            .expect("an agent");
        let log = Arc::clone(&said);
        let host = builder().agent("p", move |_| agent.clone());
        host.logger(move |entry: &LogEntry<'_>| {
            log.lock()
                .expect("a log")
                .push((entry.code.to_owned(), entry.message.to_owned()));
        })
    };
    let p = key("p/c/p");
    let first = store(&files.path());
    let host = start().start(Arc::clone(&first)).await.expect("a host");
    host.invite(&p, json!({})).await.expect("invited");
    told(&host, &["one", "two"]).await;
    closed(host, first).await;
    let file = a99_sqlite::rusqlite::Connection::open(files.path()).expect("a file");
    let begun = "INSERT INTO agent_inflight (key, trigger, attempt, started_at)
                 VALUES ('p/c/p', 'event:2', 1, 0)";
    file.execute(begun, []).expect("a start");
    drop(file);
    let second = store(&files.path());
    let host = start().start(Arc::clone(&second)).await.expect("a host");
    until("a dead letter", async || {
        let info = host.inspect(&p).await.expect("there");
        !info.dead_letters.is_empty()
    })
    .await;
    let dead = host
        .inspect(&p)
        .await
        .expect("there")
        .dead_letters
        .remove(0);
    assert_eq!(
        (&*dead.code, dead.trigger),
        ("turn.lost", Trigger::Event(2))
    );
    let said = said.lock().expect("a log").clone();
    assert!(
        said.iter()
            .any(|(code, text)| code == "turn.lost" && text.contains("event:2")),
        "{said:?}"
    );
}

#[tokio::test]
async fn t5_events_are_handled_anew_after_the_checkpoint_was_set_back() {
    for mode in [
        Delivery::AtMostOnce,
        Delivery::AtLeastOnce,
        Delivery::ExactlyOnceState,
    ] {
        let files = Files::new();
        let start = async || {
            let store = store(&files.path());
            let counter = Counter {
                policy: quick(mode),
                on_message: Arc::new(|text, attempt| match text {
                    "bad" => Err(format!("attempt {attempt}").into()),
                    _ => Ok(()),
                }),
                ..Counter::default()
            };
            let host = builder().agent("a", move |_| counter.clone());
            let host = host.start(Arc::clone(&store)).await.expect("a host");
            host.invite(&key("a/c/a"), json!({}))
                .await
                .expect("invited");
            (host, store)
        };
        let (host, first) = start().await;
        for text in ["one", "bad", "two"] {
            say(&host, "c", text).await;
            assert!(host.settled(LONG).await);
        }
        closed(host, first).await;
        let a = key("a/c/a");
        let store = store(&files.path());
        let fence = a99_runtime_engine::Fence {
            epoch: store.epoch(&a),
            key: a.clone(),
        };
        store
            .record_start(fence, Trigger::Event(1), 1, None)
            .await
            .expect("a start");
        let discarded = store.set_progress(&a, Progress::default()).await;
        assert_eq!(discarded, Ok(1), "{mode:?}");
        Arc::into_inner(store)
            .expect("alone")
            .close()
            .expect("closed");
        let (host, _second) = start().await;
        assert!(host.settled(LONG).await);
        let info = host.inspect(&a).await.expect("there");
        let codes: Vec<_> = info.dead_letters.iter().map(|one| &*one.code).collect();
        assert_eq!(
            codes, ["turn.failed"; 2],
            "{mode:?}: {:?}",
            info.dead_letters
        );
        assert_eq!(counted(&host, &a).await.count, 4, "{mode:?}");
        let texts = texts(&host, "c").await;
        assert!(texts.contains(&"#3 one".to_owned()), "{mode:?}: {texts:?}");
    }
}

#[tokio::test]
async fn t6_only_agents_that_an_event_concerns_are_waited_for() {
    const SLEEPING: u32 = 300;
    let files = Files::new();
    let slow = Counter {
        pause: LONG,
        ..Counter::default()
    };
    let host = builder()
        .agent("quick", |_| Counter::default())
        .agent("slow", move |_| slow.clone())
        .agent("idle", |_| Script::idle())
        .agent("broken", |_| {
            Script::new(|_, call| {
                Box::pin(async move {
                    match call {
                        Call::Wake => Err(AgentError::from("it cannot wake").fatal()),
                        _ => Ok(()),
                    }
                })
            })
        });
    let host = host.start(store(&files.path())).await.expect("a host");
    for n in 0..SLEEPING {
        let one: AgentKey = key(&format!("idle/far/i{n}"));
        host.invite(&one, json!({})).await.expect("invited");
    }
    for one in [
        "quick/c/quick",
        "slow/c/slow",
        "slow/d/slow",
        "broken/e/broken",
        "quick/e/quick",
    ] {
        host.invite(&key(one), json!({})).await.expect("invited");
    }
    say(&host, "d", "hold").await;
    let to = |name: &str| Publish {
        body: Body::Message(Message {
            at: vec![key(name).participant()],
            ..Message::text("hello")
        }),
        sender: ann(),
        key: None,
        attachments: Vec::new(),
    };
    let began = Instant::now();
    let one = host
        .publish("c", to("quick/c/quick"))
        .await
        .expect("published");
    let seq = one.event.seq.expect("a place");
    assert_eq!(host.handled("c", seq, LONG).await, Ok(Some(Vec::new())));
    assert_eq!(counted(&host, &key("quick/c/quick")).await.count, 1);
    let all = say(&host, "e", "all").await.event.seq.expect("a place");
    let never = host.handled("e", all, LONG).await;
    assert_eq!(never, Ok(Some(vec![key("broken/e/broken")])));
    assert!(began.elapsed() < LONG / 2, "{:?}", began.elapsed());
    // The slow one is concerned here.
    let late = host
        .publish("c", to("slow/c/slow"))
        .await
        .expect("published");
    let seq = late.event.seq.expect("a place");
    let short = Duration::from_millis(100);
    assert_eq!(host.handled("c", seq, short).await, Ok(None));
}

#[tokio::test]
async fn t6_an_agent_whose_start_is_tried_again_is_waited_for() {
    let files = Files::new();
    let fails = Arc::new(AtomicBool::new(true));
    let fails_still = Arc::clone(&fails);
    let host = builder().agent("late", move |_| {
        let fails = Arc::clone(&fails_still);
        Script::new(move |_, call| {
            let fails = matches!(call, Call::Wake) && fails.load(Ordering::Acquire);
            Box::pin(async move {
                match fails {
                    true => Err("the network is not up yet".into()),
                    false => Ok(()),
                }
            })
        })
    });
    let host = host.start(store(&files.path())).await.expect("a host");
    let late = key("late/c/late");
    host.invite(&late, json!({})).await.expect("invited");
    let seq = say(&host, "c", "hello").await.event.seq.expect("a place");
    let mut handling = host.handling("c", seq);
    is(&host, &late, "failed").await;
    let done = tokio::time::timeout(Duration::from_millis(100), handling.done()).await;
    assert!(done.is_err(), "{done:?}");
    assert_eq!(handling.failed(), std::slice::from_ref(&late));
    fails.store(false, Ordering::Release);
    assert_eq!(handling.done().await, Ok(Vec::new()));
    assert_eq!(handling.failed(), Vec::<AgentKey>::new());
    assert!(handling.includes(seq) && handling.newest_for(&late) == Some(seq));
}

#[tokio::test]
async fn t9_a_row_that_cannot_be_read_stops_nobody_else() {
    let files = Files::new();
    let a = key("a/c/a");
    let said = Arc::new(Mutex::new(Vec::new()));
    let start = async || {
        let (store, log) = (store(&files.path()), Arc::clone(&said));
        let host =
            builder()
                .agent("a", |_| Counter::default())
                .logger(move |entry: &LogEntry<'_>| {
                    log.lock()
                        .expect("a log")
                        .push((entry.code.to_owned(), entry.message.to_owned()));
                });
        let host = host.start(Arc::clone(&store)).await.expect("a host");
        (host, store)
    };
    let (host, first) = start().await;
    host.invite(&a, json!({})).await.expect("invited");
    host.invite(&key("a/d/a"), json!({}))
        .await
        .expect("invited");
    say(&host, "c", "one").await;
    assert!(host.settled(LONG).await);
    closed(host, first).await;
    let file = a99_sqlite::rusqlite::Connection::open(files.path()).expect("a file");
    file.execute_batch(
        "UPDATE channel_agent SET config = '{' WHERE key = 'a/d/a';
         INSERT INTO channel_agent (key, channel, config, registered_at)
             VALUES ('no key', 'c', '{}', 0);
         INSERT INTO agent_timers (key, name, due, payload) VALUES ('a/c/a', 't', 1, '[');
         INSERT INTO agent_timers (key, name, due, payload) VALUES ('nor this', 't', 1, '1')",
    )
    .expect("rows");
    drop(file);
    let (host, _second) = start().await;
    assert_eq!(host.agents(), std::slice::from_ref(&a));
    say(&host, "c", "two").await;
    assert!(host.settled(LONG).await);
    assert_eq!(counted(&host, &a).await.count, 2);
    let said = said.lock().expect("a log").clone();
    for row in ["a/d/a", "no key", "a/c/a", "nor this"] {
        let tells = |(code, text): &(String, String)| {
            code == "store.unreadable" && text.contains(&format!("{row:?}"))
        };
        assert!(said.iter().any(tells), "{row}: {said:?}");
    }
}

#[tokio::test]
async fn t10_lone_surrogates_are_refused_by_our_own_message() {
    let acts = [
        r#"{"op": "agentSetState", "state": {"=": "{ a: [bad] }"}}"#,
        r#"{"op": "agentSetState", "state": {"=": "{ [bad]: 1 }"}}"#,
        r#"{"op": "agentSetSettings", "settings": {"=": "{ a: [bad] }"}}"#,
        r#"{"op": "agentSetTimer", "name": "t", "after": 5, "payload": {"=": "bad"}}"#,
        r#"{"op": "agentPublish", "type": "x", "payload": {"=": "[bad]"}}"#,
        r#"{"op": "return", "value": {"=": "{ a: [bad] }"}}"#,
    ];
    for act in acts {
        let text = format!(
            r#"{{"a99": 4, "op": "seq", "steps": [
                {{"op": "varSet", "key": "bad", "value": {{"=": "'x😀'.slice(0, 2)"}}}}, {act}
            ]}}"#
        );
        let files = Files::new();
        let agent = program(&text).state_of_result().build().expect("an agent");
        let host = hosted(&files.path(), agent).await;
        let info = told(&host, &["go"]).await;
        let dead = info.dead_letters.first();
        let error = &dead.unwrap_or_else(|| panic!("{act}: {info:?}")).error;
        assert!(
            error.contains(r"\ud83d") && error.contains("toWellFormed"),
            "{act}: {error}"
        );
    }
    // A result that counts for nothing is not looked at.
    let text = r#"{"a99": 4, "op": "seq", "steps": [{"op": "return", "value": {"=": "{ a: '😀'.slice(0, 1) }"}}]}"#;
    let files = Files::new();
    let host = hosted(&files.path(), program(text).build().expect("an agent")).await;
    assert!(told(&host, &["go"]).await.dead_letters.is_empty());
}
