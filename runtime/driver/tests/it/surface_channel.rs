//! The names of the event bus about the channel, its agents and its history, one test each.

use crate::script::until;
use crate::stage::{Stage, a, b, bus, person};
use crate::support::{key, say};
use a99_runtime::{Body, SendOptions, UpdateOptions};
use a99_runtime_engine::ChannelStore;
use serde_json::json;

#[tokio::test]
async fn context_id() {
    let stage = Stage::new().await;
    let id = || stage.turn(async |turn| bus(&turn).context_id().await);
    assert_eq!(id().await.expect("none"), None);
    let config = json!({"contextId": "shop"});
    let set = stage.store.update_channel_config("c", config);
    set.await.expect("set");
    assert_eq!(id().await.expect("one").as_deref(), Some("shop"));
}

#[tokio::test]
async fn list_agents() {
    let stage = Stage::new().await;
    let known = stage.turn(async |turn| bus(&turn).list_agents()).await;
    assert_eq!(known, ["a", "b", "counter"]);
}

#[tokio::test]
async fn channel_agents() {
    let stage = Stage::new().await;
    stage.joins(&person("ann", 7)).await;
    let there = stage.turn(async |turn| bus(&turn).channel_agents()).await;
    assert_eq!(there, [a(), b()]);
}

#[tokio::test]
async fn agents_that_come_and_leave_wake_nobody_and_keep_nobody_awake() {
    let stage = Stage::new().await;
    crate::script::is(&stage.host, &b(), "asleep").await;
    let turns = stage.host.inspect(&b()).await.expect("b").turns;
    let other = key("counter/c/other");
    stage.host.invite(&other, json!({})).await.expect("invited");
    stage.host.remove(&other).await.expect("removed");
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let info = stage.host.inspect(&b()).await.expect("b");
    assert_eq!((info.status, info.turns), ("asleep", turns));
    // Nor do they when the host starts again.
    let stage = stage.again().await;
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    let info = stage.host.inspect(&b()).await.expect("b");
    assert_eq!((info.status, info.turns), ("asleep", 0));
    // An agent that is awake hears them, and sleeps in its time all the same.
    say(&stage.host, "c", "x").await;
    let end = tokio::time::Instant::now() + std::time::Duration::from_secs(5);
    let mut n = 0;
    until("it sleeps", async || {
        stage.host.inspect(&b()).await.expect("b").status == "awake"
    })
    .await;
    while stage.host.inspect(&b()).await.expect("b").status == "awake" {
        assert!(tokio::time::Instant::now() < end, "kept awake by {n} joins");
        stage.joins(&person("ann", 7)).await;
        n += 1;
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(n > 1);
}

#[tokio::test]
async fn connected() {
    let stage = Stage::new().await;
    let (during, turn) = stage
        .turn(async |turn| (bus(&turn).connected(), turn))
        .await;
    assert!(during);
    assert!(!bus(&turn).connected(), "the turn is over");
}

#[tokio::test]
async fn reconnecting() {
    let stage = Stage::new().await;
    assert!(!stage.turn(async |turn| bus(&turn).reconnecting()).await);
}

/// That no report of a connection comes in the embedded target.
async fn is_silent<T: std::fmt::Debug>(mut reports: a99_runtime::Reports<T>) {
    let short = std::time::Duration::from_millis(20);
    let report = tokio::time::timeout(short, reports.next()).await;
    assert!(report.is_err(), "{report:?}");
}

#[tokio::test]
async fn on_disconnect() {
    let stage = Stage::new().await;
    is_silent(stage.turn(async |turn| bus(&turn).on_disconnect()).await).await;
}

#[tokio::test]
async fn on_reconnect() {
    let stage = Stage::new().await;
    is_silent(stage.turn(async |turn| bus(&turn).on_reconnect()).await).await;
}

#[tokio::test]
async fn on_error() {
    let stage = Stage::new().await;
    is_silent(stage.turn(async |turn| bus(&turn).on_error()).await).await;
}

#[tokio::test]
async fn conversation() {
    let stage = Stage::new().await;
    say(&stage.host, "c", "How far?").await;
    let said = stage.turn(async |turn| {
        let whole = turn.send_now("Ten miles.", SendOptions::default()).await;
        let open = turn.send_now("hm", SendOptions::default()).await;
        let open = open.expect("sent").message_id;
        bus(&turn)
            .update(open, " ...".to_owned(), UpdateOptions::default())
            .await
            .expect("updated");
        whole.expect("sent");
        turn.settled().await.expect("going on");
        let history = bus(&turn).history(None, 10).await.expect("events");
        a99_runtime::conversation(&history)
    });
    let said = said.await;
    let said: Vec<_> = said
        .iter()
        .map(|one| (one.speaker, &*one.content))
        .collect();
    let user = a99_runtime::Speaker::User;
    let agent = a99_runtime::Speaker::Assistant;
    let expected = [
        (user, "How far?"),
        (user, "act"),
        (agent, "Ten miles."),
        (agent, "hm"),
    ];
    assert_eq!(said, expected);
}

#[tokio::test]
async fn get_messages_before() {
    let stage = Stage::new().await;
    for n in 0..8 {
        say(&stage.host, "c", &n.to_string()).await;
    }
    let pages = stage.turn(async |turn| {
        let bus = bus(&turn);
        let (mut before, mut pages) = (8, Vec::new());
        loop {
            let page = bus.get_messages_before(before, 3).await.expect("a page");
            let seqs: Vec<_> = page.events.iter().filter_map(|e| e.seq).collect();
            before = seqs[0];
            pages.push(seqs);
            if !page.has_more {
                return pages;
            }
        }
    });
    assert_eq!(pages.await, [vec![5, 6, 7], vec![2, 3, 4], vec![1]]);
}
#[tokio::test]
async fn get_missed_by_type() {
    let stage = Stage::new().await;
    let (go, gone) = tokio::sync::oneshot::channel::<()>();
    let missed = stage.begin(async move |turn| {
        gone.await.expect("said");
        let bus = bus(&turn);
        let mut counts = Vec::new();
        for name in ["message", "custom", "mood", "weather", "presence"] {
            counts.push(bus.get_missed_by_type(name).await.expect("events").len());
        }
        counts
    });
    let missed = missed.await;
    say(&stage.host, "c", "one").await;
    let mood = a99_runtime::Publish {
        body: Body::Custom {
            name: "mood".to_owned(),
            payload: json!(1),
        },
        sender: crate::support::ann(),
        key: None,
        attachments: Vec::new(),
    };
    stage.host.publish("c", mood).await.expect("published");
    go.send(()).expect("it waits");
    assert_eq!(missed.await.expect("counts"), [1, 1, 1, 0, 0]);
}
