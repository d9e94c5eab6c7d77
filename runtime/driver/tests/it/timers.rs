//! Timers: each occurrence once, also over restarts, replaced, cancelled and missed.

use crate::script::{Call, Script, closed, text, until};
use crate::support::{Counter, Files, LONG, builder, counted, key, quick, say, store};
use a99_capabilities::Clock;
use a99_runtime::program::ProgramAgent;
use a99_runtime::{AgentKey, Delivery, Host};
use a99_runtime_stores::SqliteRuntime;
use agent99::Engine;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A clock that is set, and goes on from there.
#[derive(Clone)]
struct Set(Arc<AtomicU64>, Instant);

impl Clock for Set {
    #[allow(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit")]
    fn now_ms(&self) -> f64 {
        self.0.load(Ordering::SeqCst) as f64 + self.1.elapsed().as_millis() as f64
    }
}

const START: u64 = 1_800_000_000_000;
const HOUR: u64 = 3_600_000;

/// Does as it is told: `set NAME MILLISECONDS`, `cron NAME`, `cancel NAME`, `many`.
fn obedient(mode: Delivery) -> Script {
    let mut script = Script::new(|turn, call| {
        Box::pin(async move {
            match &call {
                Call::Event(event) => {
                    let words: Vec<&str> = text(event).unwrap_or_default().split(' ').collect();
                    match *words {
                        ["set", name, later] => {
                            let due = turn.now() + later.parse::<u64>().unwrap_or_default();
                            turn.set_timer(name, due, json!(later))?;
                        }
                        ["cron", name] => turn.set_cron(name, "0 * * * *", None, json!(0))?,
                        ["cancel", name] => turn.cancel_timer(name)?,
                        ["many", count] => {
                            for n in 0..count.parse().unwrap_or_default() {
                                let due = turn.now() + HOUR;
                                turn.set_timer(format!("t{n}"), due, json!(0))?;
                            }
                        }
                        _ => {}
                    }
                }
                Call::Alarm(alarm) => {
                    let told = format!("{} {}", alarm.name, alarm.payload);
                    turn.state_mut().seen.push(told.clone());
                    turn.send(told).await?;
                }
                Call::Lost(lost) => {
                    let told = format!("lost {}", lost.len());
                    turn.state_mut().seen.push(told);
                }
                _ => {}
            }
            Ok(())
        })
    });
    script.policy = quick(mode);
    script
}

async fn start(path: &Path, clock: &Set, mode: Delivery) -> (Host, Arc<SqliteRuntime>) {
    let store = store(path);
    let host = builder()
        .clock(clock.clone())
        .agent("a", move |_| obedient(mode));
    let host = host.start(Arc::clone(&store)).await.expect("a host");
    host.invite(&a(), json!({})).await.expect("invited");
    (host, store)
}

fn a() -> AgentKey {
    key("a/c/a")
}

async fn seen(host: &Host, expected: &[&str]) {
    until(&format!("{expected:?}"), async || {
        counted(host, &a()).await.seen == expected
    })
    .await;
}

#[tokio::test]
async fn a_timer_fires_once_in_each_mode_and_after_a_restart() {
    for mode in [
        Delivery::AtMostOnce,
        Delivery::AtLeastOnce,
        Delivery::ExactlyOnceState,
    ] {
        let files = Files::new();
        let clock = Set(Arc::new(AtomicU64::new(START)), Instant::now());
        let (host, first) = start(&files.path(), &clock, mode).await;
        say(&host, "c", "set now 0").await;
        say(&host, "c", "set later 3600000").await;
        seen(&host, &["now \"0\""]).await;
        closed(host, first).await;
        clock.0.fetch_add(HOUR, Ordering::SeqCst);
        let (host, second) = start(&files.path(), &clock, mode).await;
        seen(&host, &["now \"0\"", "later \"3600000\""]).await;
        closed(host, second).await;
        let (host, _third) = start(&files.path(), &clock, mode).await;
        assert!(host.settled(LONG).await);
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(counted(&host, &a()).await.seen.len(), 2);
        assert_eq!(host.inspect(&a()).await.expect("there").timers, []);
    }
}

#[tokio::test]
async fn occurrences_that_were_missed_fire_once_and_go_on() {
    let files = Files::new();
    let clock = Set(Arc::new(AtomicU64::new(START)), Instant::now());
    let (host, first) = start(&files.path(), &clock, Delivery::default()).await;
    say(&host, "c", "cron hourly").await;
    assert!(host.settled(LONG).await);
    let due = host.inspect(&a()).await.expect("there").timers[0].due;
    closed(host, first).await;
    clock.0.fetch_add(10 * HOUR, Ordering::SeqCst);
    let (host, _second) = start(&files.path(), &clock, Delivery::default()).await;
    seen(&host, &["hourly 0"]).await;
    until("the next one is set", async || {
        let timers = host.inspect(&a()).await.expect("there").timers;
        timers.len() == 1 && timers[0].due == due + 10 * HOUR
    })
    .await;
}

#[tokio::test]
async fn a_timer_that_comes_again_outlives_a_turn_that_was_cut_off() {
    // At most once: the turn began and is not run again. The timer goes on all the same.
    let files = Files::new();
    let clock = Set(Arc::new(AtomicU64::new(START)), Instant::now());
    let (host, first) = start(&files.path(), &clock, Delivery::AtMostOnce).await;
    say(&host, "c", "cron hourly").await;
    assert!(host.settled(LONG).await);
    let timer = host.inspect(&a()).await.expect("there").timers.remove(0);
    closed(host, first).await;
    let file = a99_sqlite::rusqlite::Connection::open(files.path()).expect("a file");
    let begun = format!("timer:{}:hourly", timer.due);
    file.execute(
        "INSERT INTO agent_inflight (key, trigger, attempt, started_at) VALUES ('a/c/a', ?1, 1, 0)",
        [begun],
    )
    .expect("a start");
    drop(file);
    clock.0.fetch_add(HOUR, Ordering::SeqCst);
    let (host, _second) = start(&files.path(), &clock, Delivery::AtMostOnce).await;
    seen(&host, &["lost 1"]).await;
    until("the next one is set", async || {
        let timers = host.inspect(&a()).await.expect("there").timers;
        timers.len() == 1 && timers[0].due == timer.due + HOUR
    })
    .await;
}

#[tokio::test]
async fn t9_a_cron_timer_comes_back_with_the_clock() {
    const TEN_YEARS: u64 = 10 * 365 * 24 * HOUR;
    let files = Files::new();
    let clock = Set(Arc::new(AtomicU64::new(START)), Instant::now());
    let (host, first) = start(&files.path(), &clock, Delivery::default()).await;
    say(&host, "c", "cron hourly").await;
    assert!(host.settled(LONG).await);
    let due = async |host: &Host| {
        let timers = host.inspect(&a()).await.expect("there").timers;
        timers.first().map_or(0, |timer| timer.due)
    };
    let wanted = due(&host).await;
    clock.0.fetch_add(TEN_YEARS, Ordering::SeqCst);
    // Whatever wakes the host lets it look at the clock.
    say(&host, "c", "set soon 0").await;
    until("an occurrence of ten years on", async || {
        due(&host).await > START + TEN_YEARS
    })
    .await;
    clock.0.fetch_sub(TEN_YEARS, Ordering::SeqCst);
    say(&host, "c", "set soon 0").await;
    until("the next occurrence", async || due(&host).await == wanted).await;
    // The same for a host that starts after the clock was set back.
    clock.0.fetch_add(TEN_YEARS, Ordering::SeqCst);
    say(&host, "c", "set soon 0").await;
    until("an occurrence of ten years on", async || {
        due(&host).await > START + TEN_YEARS
    })
    .await;
    closed(host, first).await;
    clock.0.fetch_sub(TEN_YEARS, Ordering::SeqCst);
    let (host, _second) = start(&files.path(), &clock, Delivery::default()).await;
    until("the next occurrence", async || due(&host).await == wanted).await;
}

#[tokio::test]
async fn t9_a_timer_that_was_set_from_then_on_comes_back_with_the_clock() {
    const TEN_YEARS: u64 = 10 * 365 * 24 * HOUR;
    let files = Files::new();
    let clock = Set(Arc::new(AtomicU64::new(START)), Instant::now());
    let engine = Engine::new();
    let text = r#"{"a99": 4, "op": "seq", "steps": [
        {"op": "agentSetTimer", "name": "later", "after": 3600000}
    ]}"#;
    let program = engine.compile(text).expect("a program");
    let program = ProgramAgent::builder(&engine, program).policy(quick(Delivery::default()));
    let program = program.build().expect("an agent");
    let start = async || {
        let (store, program) = (store(&files.path()), program.clone());
        let host = builder()
            .clock(clock.clone())
            .agent("p", move |_| program.clone())
            .agent("a", |_| obedient(Delivery::default()));
        let host = host.start(Arc::clone(&store)).await.expect("a host");
        host.invite(&key("p/d/p"), json!({}))
            .await
            .expect("invited");
        host.invite(&a(), json!({})).await.expect("invited");
        (host, store)
    };
    let due = async |host: &Host| {
        let info = host.inspect(&key("p/d/p")).await.expect("there");
        info.timers.first().map_or(0, |timer| timer.due)
    };
    let (host, first) = start().await;
    for is_restarted in [false, true] {
        clock.0.fetch_add(TEN_YEARS, Ordering::SeqCst);
        say(&host, "d", "go").await;
        until("ten years on", async || {
            due(&host).await > START + TEN_YEARS
        })
        .await;
        if is_restarted {
            break;
        }
        clock.0.fetch_sub(TEN_YEARS, Ordering::SeqCst);
        // Whatever wakes the host lets it look at the clock.
        say(&host, "c", "set soon 0").await;
        until("an hour on", async || due(&host).await < START + 2 * HOUR).await;
        assert!(due(&host).await > START + HOUR / 2);
    }
    closed(host, first).await;
    clock.0.fetch_sub(TEN_YEARS, Ordering::SeqCst);
    let (host, _second) = start().await;
    until("an hour on", async || due(&host).await < START + 2 * HOUR).await;
    assert!(due(&host).await > START + HOUR / 2);
}

#[tokio::test]
async fn t4_a_turn_is_tried_again_soon_though_the_clock_is_set_back() {
    let files = Files::new();
    let clock = Set(Arc::new(AtomicU64::new(START)), Instant::now());
    let set_back = Arc::clone(&clock.0);
    let mut counter = Counter {
        on_message: Arc::new(move |_, attempt| {
            if attempt > 1 {
                return Ok(());
            }
            let set_back = Arc::clone(&set_back);
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(100));
                set_back.fetch_sub(HOUR, Ordering::SeqCst);
            });
            Err("not yet".into())
        }),
        ..Counter::default()
    };
    (counter.policy.retry.first, counter.policy.retry.most) = (500, 500);
    let host = builder().clock(clock).agent("a", move |_| counter.clone());
    let host = host.start(store(&files.path())).await.expect("a host");
    host.invite(&a(), json!({})).await.expect("invited");
    let seq = say(&host, "c", "hello").await.event.seq.expect("a place");
    assert_eq!(host.handled("c", seq, LONG).await, Ok(Some(Vec::new())));
}
