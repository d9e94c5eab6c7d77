//! The main path: an agent hears, answers, sleeps, and goes on where it was.

use crate::support::{Counter, Files, LONG, builder, counted, key, messages, say, store, texts};
use a99_runtime::HostOptions;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn an_agent_hears_and_answers() {
    let files = Files::new();
    let host = builder()
        .agent("echo", |_| Counter::default())
        .start(store(&files.path()));
    let host = host.await.expect("a host");
    let echo = key("echo/general/echo");
    host.invite(&echo, json!({})).await.expect("invited");
    for text in ["one", "two"] {
        say(&host, "general", text).await;
    }
    assert!(host.settled(LONG).await);
    // It does not hear itself.
    let said = messages(&host, "general").await;
    let of = |who: &str| -> Vec<&str> {
        let by = said.iter().filter(|(handle, _)| handle == who);
        by.map(|(_, text)| text.as_str()).collect()
    };
    assert_eq!(of("ann"), ["one", "two"]);
    assert_eq!(of("echo"), ["#1 one", "#2 two"]);
    assert_eq!(counted(&host, &echo).await.count, 2);
}

#[tokio::test]
async fn it_goes_on_after_a_restart_where_it_was() {
    let files = Files::new();
    let echo = key("echo/general/echo");
    for round in 0..3 {
        let store = store(&files.path());
        let host = builder()
            .agent("echo", |_| Counter::default())
            .start(store.clone());
        let host = host.await.expect("a host");
        if round == 0 {
            host.invite(&echo, json!({})).await.expect("invited");
        }
        say(&host, "general", &format!("m{round}")).await;
        assert!(host.settled(LONG).await);
        assert_eq!(counted(&host, &echo).await.count, round + 1);
        crate::script::closed(host, store).await;
    }
    let host = builder().start(store(&files.path())).await.expect("a host");
    assert_eq!(
        texts(&host, "general").await,
        ["m0", "#1 m0", "m1", "#2 m1", "m2", "#3 m2"]
    );
}

#[tokio::test]
async fn it_sleeps_and_wakes() {
    let files = Files::new();
    let host = builder()
        .options(HostOptions {
            idle_debounce: Duration::from_millis(10),
            ..HostOptions::default()
        })
        .agent("echo", |_| Counter::default())
        .start(store(&files.path()));
    let host = host.await.expect("a host");
    let echo = key("echo/general/echo");
    host.invite(&echo, json!({})).await.expect("invited");
    for round in 1..4 {
        say(&host, "general", "hello").await;
        assert!(host.settled(LONG).await);
        let asleep = async {
            while host.inspect(&echo).await.expect("there").status != "asleep" {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(LONG, asleep).await.expect("it sleeps");
        let info = host.inspect(&echo).await.expect("there");
        assert_eq!((info.turns, info.lag), (round, 0));
    }
}
