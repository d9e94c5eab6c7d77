//! The names of the event bus about the channel, its agents and its history, one test each.

use crate::script::until;
use crate::stage::{Stage, a, b, bus, map, person, provides};
use crate::support::{LONG, key, say};
use a99_runtime::{Body, PresenceAction, SendOptions, UpdateOptions, Uuid};
use a99_runtime_engine::ChannelStore;
use serde_json::{Value, json};

#[tokio::test]
async fn set_channel_title() {
    let stage = Stage::new().await;
    let config = stage.turn(async |turn| {
        let bus = bus(&turn);
        bus.set_channel_title("Till".to_owned()).await?;
        bus.channel_config().await
    });
    assert_eq!(config.await.expect("set"), json!({"title": "Till"}));
}

#[tokio::test]
async fn on_title_change() {
    let stage = Stage::new().await;
    let titles = stage.turn(async |turn| {
        let bus = bus(&turn);
        bus.set_channel_title("before".to_owned()).await?;
        let mut titles = bus.on_title_change().await?;
        for title in ["one", "two"] {
            bus.set_channel_title(title.to_owned()).await?;
        }
        Ok::<_, a99_runtime::AgentError>([titles.next().await?, titles.next().await?])
    });
    assert_eq!(titles.await.expect("titles"), ["one", "two"]);
}

#[tokio::test]
async fn channel_config() {
    let stage = Stage::new().await;
    let config = stage
        .turn(async |turn| bus(&turn).channel_config().await)
        .await;
    assert_eq!(config.expect("an object"), json!({}));
}

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

/// The presence events of an agent in the log.
async fn presence(stage: &Stage, of: Uuid) -> Vec<(PresenceAction, Option<String>)> {
    let log = stage.log().await.into_iter();
    let own = log.filter(|event| event.sender.id == of);
    let told = own.filter_map(|event| match &event.body {
        Body::Presence {
            action,
            leave_reason,
            ..
        } => Some((*action, leave_reason.clone())),
        _ => None,
    });
    told.collect()
}

#[tokio::test]
async fn invite_agent() {
    let stage = Stage::new().await;
    let invited = stage.turn(async |turn| {
        let bus = bus(&turn);
        let key = bus.invite_agent("counter", "@Helper", json!({})).await?;
        let again = bus
            .invite_agent("counter", "Helper", json!({"n": 1}))
            .await?;
        assert_eq!(key, again);
        let taken = bus.invite_agent("counter", "B", json!({})).await;
        assert_eq!(taken.expect_err("taken").code(), "handle-conflict");
        Ok::<_, a99_runtime::AgentError>(key)
    });
    let invited = invited.await.expect("invited");
    assert_eq!(invited, key("counter/c/Helper"));
    assert!(stage.host.agents().contains(&invited));
    let told = presence(&stage, invited.participant()).await;
    assert_eq!(told, [(PresenceAction::Join, None)], "once");
}

#[tokio::test]
async fn remove_agent() {
    let stage = Stage::new().await;
    let was_there = stage.turn(async |turn| {
        let bus = bus(&turn);
        Ok::<_, a99_runtime::AgentError>([
            bus.remove_agent("b", "b").await?,
            bus.remove_agent("b", "b").await?,
        ])
    });
    assert_eq!(was_there.await.expect("removed"), [true, false]);
    let told = presence(&stage, b().participant()).await;
    let leave = (PresenceAction::Leave, Some("graceful".to_owned()));
    assert_eq!(told, [(PresenceAction::Join, None), leave]);
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

#[tokio::test]
async fn close() {
    let stage = Stage::new().await;
    let refused = stage.turn(async |turn| {
        let bus = bus(&turn);
        bus.send("last".to_owned(), SendOptions::default()).await?;
        bus.close().await?;
        assert!(!bus.connected());
        let late = bus.send("late".to_owned(), SendOptions::default()).await;
        Ok::<_, a99_runtime::AgentError>(late.expect_err("closed").code().to_owned())
    });
    assert_eq!(refused.await.expect("closed"), "connection-error");
    crate::script::is(&stage.host, &a(), "asleep").await;
    let last = stage.last().await;
    assert!(matches!(&last.body, Body::Message(m) if m.content == "last"));
    // The next event wakes it.
    assert!(stage.turn(async |turn| bus(&turn).connected()).await);
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
async fn history() {
    let stage = Stage::new().await;
    let history = stage.turn(async |turn| bus(&turn).history(Some(3), 5).await);
    let seqs: Vec<_> = history
        .await
        .expect("events")
        .iter()
        .filter_map(|e| e.seq)
        .collect();
    assert_eq!(seqs, [1, 2]);
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
async fn total_message_count() {
    let stage = Stage::new().await;
    let before = stage.log().await.len() as u64;
    let count = stage
        .turn(async |turn| bus(&turn).total_message_count().await)
        .await;
    assert_eq!(
        count.expect("a number"),
        before + 1,
        "with that of the turn"
    );
}

#[tokio::test]
async fn missed_messages() {
    let stage = Stage::new().await;
    let (go, gone) = tokio::sync::oneshot::channel();
    let missed = stage.begin(async move |turn| {
        let said: () = gone.await.expect("said");
        let () = said;
        turn.send_now("my own", SendOptions::default())
            .await
            .expect("sent");
        bus(&turn).missed_messages().await.expect("events")
    });
    let missed = missed.await;
    for text in ["one", "two"] {
        say(&stage.host, "c", text).await;
    }
    stage.joins(&person("cid", 9)).await;
    go.send(()).expect("it waits");
    let missed = missed.await.expect("events");
    let texts: Vec<_> = missed
        .iter()
        .filter_map(|e| crate::script::text(e))
        .collect();
    assert_eq!((texts, missed.len()), (vec!["one", "two"], 2));
    assert!(stage.host.settled(LONG).await);
    let none = stage
        .turn(async |turn| bus(&turn).missed_messages().await)
        .await;
    assert!(none.expect("events").is_empty(), "they were handled");
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

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bus_is_the_same_in_another_process() {
    let stage = Stage::there().await;
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let done = stage.begin(async move |turn| {
        assert_eq!(turn.context().mode, a99_runtime::PROCESS);
        let bus = bus(&turn);
        let mut roster = bus.on_roster().await?;
        let mut conflicts = bus.on_tool_role_conflict().await?;
        let first = roster.next().await?.participants.len();
        ready.send(()).expect("a listener");
        let second = roster.next().await?.participants.len();
        let conflict = conflicts.next().await?;
        bus.update_settings(json!({"tone": "wet"})).await?;
        bus.update_metadata(map(json!({"mood": "good"}))).await?;
        let settings = bus.get_settings().await?;
        let page = bus.get_messages_before(3, 1).await?;
        let head = bus.total_message_count().await?;
        assert!(bus.connected() && !bus.reconnecting());
        bus.close().await?;
        let late = bus.send("late".to_owned(), SendOptions::default()).await;
        Ok::<_, a99_runtime::AgentError>((
            (first, second),
            conflict.winner,
            settings,
            (page.events.len(), page.has_more),
            head,
            late.expect_err("closed").code().to_owned(),
        ))
    });
    let done = done.await;
    is_ready.await.expect("the turn runs");
    let [mut ann, mut bob] = [person("ann", 7), person("bob", 8)];
    ann.metadata = map(provides(None));
    bob.metadata = map(provides(Some(1.0)));
    stage.joins(&ann).await;
    stage.joins(&bob).await;
    let done = done.await.expect("no panic").expect("done");
    assert_eq!(done.0.0, 2);
    assert!(done.0.1 > 2);
    assert_eq!(done.1, bob.id);
    assert_eq!(done.2, json!({"tone": "wet"}));
    assert_eq!(
        (done.3, done.4, &*done.5),
        ((1, true), 5, "connection-error")
    );
    crate::script::is(&stage.host, &a(), "asleep").await;
    let info = stage.host.inspect(&a()).await.expect("an agent");
    assert_eq!(info.settings, Some(json!({"tone": "wet"})));
    let roster = stage.host.roster("c");
    assert_eq!(
        Value::Object(roster[0].metadata.clone()),
        json!({"mood": "good"})
    );
}
