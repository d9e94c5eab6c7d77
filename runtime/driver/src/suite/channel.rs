//! Cases of events: filters, updates, ephemeral ones, the channel's title, its history.

use super::stage::{Stage, key, on, says, text};
use super::{Outcome, holds, list, same, until};
use crate::event_bus::CHANNEL_CONFIG;
use a99_runtime_engine::{Attachment, Body, EventKind, Message, PauseStatus};
use serde_json::{Map, json};

list! {
    "an agent does not get its own events" => own,
    "agents that answer each other stop" => hops,
    "only messages to the agent are delivered if it wants so" => targeted,
    "an agent that joins later gets what it missed" => missed_before,
    "an agent may begin with what comes" => skip,
    "what came during a turn is listed as missed" => missed,
    "agents of two channels are kept apart" => apart,
    "a message is updated and completed" => updated,
    "a message is marked as failed" => failed,
    "a pause is announced" => paused,
    "attachments arrive in both directions" => attached,
    "custom events are logged or pass" => custom,
    "typing is shown and not logged" => typing,
    "an ephemeral event reaches an agent that is awake" => ephemeral,
    "the agent sets the title" => sets_title,
    "the agent hears of a new title" => hears_title,
    "history and its pages" => history,
    "a closed bus refuses what comes later" => closed,
}

async fn own(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    for text in ["sends 3", "now x", "say y"] {
        stage.ask(&a, text).await?;
    }
    let kept = stage.kept(&a).await?;
    same(&kept.state["own"], &json!(0), "its own events")?;
    same(kept.seen(), ["sends 3", "now x", "say y"], "the state")
}

async fn hops(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({"chatty": true})).await?;
    let b = stage.invite(key("b")?, json!({"chatty": true})).await?;
    stage.say("say hello").await?;
    for agent in [&a, &b] {
        stage.hears(agent, "and you?").await?;
    }
    let mut count = 0;
    until!("their silence", {
        stage.quiet().await;
        stage.quiet().await;
        let now = stage.log().await?.len();
        std::mem::replace(&mut count, now) == now
    });
    let log = stage.log().await?;
    let most = log.iter().map(|event| event.hops).max();
    holds(most <= Some(5), "at most five hops")?;
    stage.answers(&a, "say on", "on").await
}

async fn targeted(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({"targeted": true})).await?;
    let b = stage.invite(key("b")?, json!({})).await?;
    let to = async |at: &[_], text: &str| {
        let message = Message {
            at: at.to_vec(),
            ..Message::text(text)
        };
        stage.publish("c", Body::Message(message)).await
    };
    let other = to(&[b.participant()], "say not you").await?;
    stage.answered(&b, &other.event).await?;
    let both = to(&[b.participant(), a.participant()], "say you").await?;
    stage.answered(&a, &both.event).await?;
    stage.saw(&a, ["say you"]).await
}

async fn missed_before(stage: &mut Stage) -> Outcome {
    for n in 0..3 {
        stage.say(&format!("say {n}")).await?;
    }
    let a = stage.agent(json!({})).await?;
    stage.ask(&a, "say last").await?;
    stage.spoke(&a, ["0", "1", "2", "last"]).await
}

async fn skip(stage: &mut Stage) -> Outcome {
    stage.say("say before").await?;
    let a = stage.agent(json!({"skip": true})).await?;
    stage.ask(&a, "say after").await?;
    let texts = stage.json(&a, "history").await?;
    same(&texts[0], &json!("say before"), "the history")?;
    same(
        stage.said(&a).await?[0].as_str(),
        "after",
        "the first answer",
    )
}

async fn missed(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let asked = stage.say("missed").await?;
    stage.say("say later").await?;
    same(
        stage.answered(&a, &asked).await?,
        r#"["say later"]"#,
        "what it missed",
    )?;
    stage.hears(&a, "later").await
}

async fn apart(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let other = stage.invite(on("d", "a")?, json!({})).await?;
    stage.say("say in c").await?;
    stage.answers(&other, "say in d", "in d").await?;
    stage.ask(&a, "count").await?;
    stage.spoke(&a, ["in c", "2"]).await?;
    stage.spoke(&other, ["in d"]).await?;
    stage.saw(&other, ["say in d"]).await?;
    holds(a.participant() != other.participant(), "two participants")
}

/// The events that an agent sent after a message, the message first.
macro_rules! sent {
    ($stage:expr, $agent:expr, $text:expr) => {{
        let log = $stage.log().await?;
        let own = log
            .iter()
            .filter(|event| event.sender.id == $agent.participant());
        let own = own.filter(|event| !matches!(event.body, Body::Presence { .. }));
        own.skip_while(|event| text(event) != Some($text))
            .map(|event| event.body.clone())
            .collect::<Vec<_>>()
    }};
}

async fn updated(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let id = stage.ask(&a, "draft Ten miles").await?;
    let sent = sent!(stage, a, "Ten");
    let [Body::Message(message), update, complete, ..] = &sent[..] else {
        return holds(false, &format!("a message and two updates: {sent:?}"));
    };
    same(&message.id.to_string(), &id, "its identity")?;
    let body = |content: Option<&str>, complete| Body::UpdateMessage {
        id: message.id,
        content: content.map(str::to_owned),
        complete,
        content_type: None,
    };
    same(update, &body(Some("miles"), false), "the update")?;
    same(complete, &body(None, true), "the end")?;
    let talk = stage.json(&a, "talk").await?;
    same(&talk[1], &json!("Tenmiles"), "the whole message")
}

async fn failed(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let id = stage.ask(&a, "blot Ten").await?;
    let sent = sent!(stage, a, "Ten");
    let is_it = matches!(&sent[1], Body::Error { id: of, error, code }
        if of.to_string() == id && error == "ink" && code.as_deref() == Some("test.blot"));
    holds(is_it, &format!("an error: {sent:?}"))
}

async fn paused(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let asked = stage.say("pause tea").await?;
    stage.answered(&a, &asked).await?;
    let wanted = Body::ExecutionPause {
        message_id: asked.id,
        status: PauseStatus::Paused,
        reason: Some("tea".to_owned()),
    };
    let log = stage.log().await?;
    holds(log.iter().any(|event| event.body == wanted), "a pause")
}

async fn attached(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let mut publish = says(Body::Message(Message::text("attach sun")));
    publish.attachments.push(Attachment {
        id: "1".to_owned(),
        mime_type: "text/plain".to_owned(),
        name: Some("a.txt".to_owned()),
        data: vec![0; 1_000],
    });
    let asked = stage.channels()?.publish("c", publish).await?;
    same(stage.answered(&a, &asked.event).await?, "1000", "bytes")?;
    let log = stage.log().await?;
    let sent = log.iter().find(|event| text(event) == Some("attached"));
    let data = sent.and_then(|event| event.attachments.first());
    same(
        data.map(|one| one.data.clone()),
        Some(b"sun".to_vec()),
        "the attachment",
    )
}

async fn custom(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let mut live = stage.channels()?.subscribe("c", None, true).await?;
    stage.ask(&a, "publish glad").await?;
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let event = live.next().await?;
        if let Body::Custom { name, payload } = &event.body {
            seen.push((name.clone(), payload.clone(), event.kind));
        }
    }
    let one = |name: &str, kind| (name.to_owned(), json!("glad"), kind);
    seen.sort_by(|one, two| one.0.cmp(&two.0));
    let wanted = [
        one("kept", EventKind::Persisted),
        one("passes", EventKind::Ephemeral),
    ];
    same(seen, wanted, "the events")?;
    let log = stage.log().await?;
    let logged = log
        .iter()
        .filter(|event| matches!(event.body, Body::Custom { .. }));
    same(logged.count(), 1, "logged ones")
}

async fn typing(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let mut live = stage.channels()?.subscribe("c", None, true).await?;
    stage.ask(&a, "type hm").await?;
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let event = live.next().await?;
        if event.kind == EventKind::Ephemeral {
            same(event.sender.id, a.participant(), "the sender")?;
            seen.push(event.body.type_name());
        }
    }
    same(
        seen,
        ["message", "update-message", "update-message"],
        "the events",
    )?;
    let log = stage.log().await?;
    holds(
        !log.iter().any(|event| text(event) == Some("hm")),
        "a log without it",
    )
}

async fn ephemeral(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({"ephemeral": true})).await?;
    let b = stage.invite(key("b")?, json!({})).await?;
    until!("the event", {
        let say = stage.say("slow 50").await?;
        for _ in 0..5 {
            let body = Body::Custom {
                name: "typing".to_owned(),
                payload: json!(1),
            };
            let sender = super::stage::ann();
            stage
                .channels()?
                .publish_ephemeral("c", body, sender)
                .await?;
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        stage.answered(&a, &say).await?;
        stage.answered(&b, &say).await?;
        stage.kept(&a).await?.seen().contains(&"passing custom")
    });
    let kept = stage.kept(&b).await?;
    holds(
        !kept.seen().contains(&"passing custom"),
        "none for who wants none",
    )
}

async fn sets_title(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let config = stage.json(&a, "title Tea").await?;
    same(&config["title"], &json!("Tea"), "the title")?;
    let wanted = Body::Custom {
        name: CHANNEL_CONFIG.to_owned(),
        payload: json!({"title": "Tea"}),
    };
    let log = stage.log().await?;
    holds(log.iter().any(|event| event.body == wanted), "its event")?;
    stage.restart().await?;
    let config = stage.json(&a, "config").await?;
    same(&config["title"], &json!("Tea"), "the title after a restart")
}

async fn hears_title(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let asked = stage.say("await-title").await?;
    stage.hears(&a, "ready").await?;
    let changes = Map::from_iter([("title".to_owned(), json!("Rain"))]);
    let sender = super::stage::ann();
    stage
        .channels()?
        .configure_channel("c", changes, sender)
        .await?;
    same(stage.answered(&a, &asked).await?, "Rain", "the title")
}

async fn history(stage: &mut Stage) -> Outcome {
    for text in ["say one", "say two"] {
        stage.say(text).await?;
    }
    let a = stage.agent(json!({})).await?;
    stage.hears(&a, "two").await?;
    let texts = stage.json(&a, "history").await?;
    let wanted = json!(["say one", "say two", "one", "two", "history"]);
    same(texts, wanted, "the history")?;
    let asked = stage.say("page 2").await?;
    let page = stage.answered(&a, &asked).await?;
    let page: serde_json::Value = serde_json::from_str(&page).unwrap_or_default();
    same(&page[0][0], &json!("history"), "the page")?;
    same(
        (&page[1], &page[2]),
        (&json!(true), &json!(asked.seq)),
        "whether there is more, and the head",
    )
}

async fn closed(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    stage.say("close").await?;
    until!(
        "its end",
        stage
            .kept(&a)
            .await
            .is_ok_and(|kept| kept.seen().contains(&"close"))
    );
    stage.answers(&a, "say on", "on").await?;
    let hooks = stage.kept(&a).await?.state["hooks"].to_string();
    holds(hooks.contains("connection-error"), "a refused operation")?;
    holds(
        !stage.said(&a).await?.contains(&"late".to_owned()),
        "no late message",
    )
}
