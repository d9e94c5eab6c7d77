//! What an agent does on its channel by the event bus: inviting others, history, title.

use crate::script::{Call, Script, text, until};
use crate::support::{Counter, Files, LONG, builder, key, say, store, texts};
use a99_runtime::{Body, CHANNEL_CONFIG, EventBus, Said, Speaker, Turn, TurnOutcome, conversation};
use serde_json::json;

/// Does what a message says by the event bus, and tells what came of it.
async fn obey(turn: &mut Turn<'_, Script>, words: &str) -> TurnOutcome {
    let bus = turn.client();
    let told = match words.split_once(' ') {
        Some(("invite", name)) => match bus.invite_agent(name, "@helper", json!({})).await {
            Ok(key) => key.to_string(),
            Err(error) => error.code().to_owned(),
        },
        Some(("remove", name)) => bus.remove_agent(name, "helper").await?.to_string(),
        Some(("title", title)) => {
            bus.set_channel_title(title.to_owned()).await?;
            bus.channel_config().await?["title"].to_string()
        }
        Some(("history", most)) => {
            let most = most.parse().unwrap_or(0);
            let said = conversation(&bus.history(None, most).await?);
            let line = |said: &Said| match said.speaker {
                Speaker::User => format!("u:{}", said.content),
                Speaker::Assistant => format!("a:{}", said.content),
            };
            said.iter().map(line).collect::<Vec<_>>().join("|")
        }
        _ => bus.list_agents().join(","),
    };
    turn.send(told).await.map(drop)
}

fn obeys() -> Script {
    Script::new(|turn, call| {
        Box::pin(async move {
            match &call {
                Call::Event(event) => match text(event) {
                    Some(words) if event.sender.handle.as_deref() == Some("ann") => {
                        obey(turn, words).await
                    }
                    _ => Ok(()),
                },
                _ => Ok(()),
            }
        })
    })
}

#[tokio::test]
async fn agents_invite_others_and_read_what_was_said() {
    let files = Files::new();
    let builder = builder()
        .agent("boss", |_| obeys())
        .agent("counter", |_| Counter::default());
    let host = builder.start(store(&files.path())).await.expect("a host");
    let boss = key("boss/c/boss");
    host.invite(&boss, json!({})).await.expect("invited");
    let mut events = host.subscribe("c", None, false).await.expect("a log");
    for (words, answer) in [
        ("who", "boss,counter"),
        ("invite nobody", "agent.unknown"),
        ("invite a/b", "agent.bad_key"),
        ("title Till", "\"Till\""),
        // Of four events one is no message.
        ("history 4", "u:title Till|a:\"Till\"|u:history 4"),
    ] {
        say(&host, "c", words).await;
        assert!(host.settled(LONG).await);
        let last = texts(&host, "c").await.pop();
        assert_eq!(last.as_deref(), Some(answer), "{words}");
    }
    let title = loop {
        if let Body::Custom { name, payload } = events.next().await.expect("an event").body.clone()
        {
            break (name, payload);
        }
    };
    assert_eq!(title, (CHANNEL_CONFIG.to_owned(), json!({"title": "Till"})));

    say(&host, "c", "invite counter").await;
    let helper = key("counter/c/helper");
    until("it is there", async || host.agents().contains(&helper)).await;
    assert!(host.settled(LONG).await);
    say(&host, "c", "remove counter").await;
    until("it is gone", async || !host.agents().contains(&helper)).await;
    assert!(host.settled(LONG).await);
    host.drain(LONG).await.expect("drained");
}
