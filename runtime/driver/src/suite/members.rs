//! Cases of participants: roster, presence, metadata, tool roles.

use super::stage::{Stage, ann, key, person, says};
use super::{Outcome, holds, list, same, until};
use crate::event_bus::CHANNEL_CONFIG;
use a99_runtime_engine::{AgentKey, Body, PresenceAction, Uuid};
use serde_json::{Map, Value, json};

list! {
    "an agent is a participant with its methods" => participant,
    "people who join and leave are in the roster" => people,
    "the agent hears who joins" => hears,
    "the log has who joins and leaves" => presence,
    "an agent that is removed gets no more events and keeps its state" => removed,
    "an agent that is invited again has its new configuration" => configured,
    "a handle has one participant" => handles,
    "an agent is a participant after restart and kill" => remains,
    "an agent invites and removes another" => invites,
    "an agent that is unknown cannot be invited" => unknown,
    "metadata are replaced and announced" => metadata,
    "the conflict of a tool role has a winner" => conflict,
    "tool roles are asked for, answered and handed over" => roles,
    "handles are resolved" => resolved,
}

async fn participant(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    until!("the agent", stage.channels()?.roster("c").len() == 1);
    let who = stage.channels()?.roster("c").remove(0);
    same(
        (who.id, &*who.handle, &*who.kind),
        (a.participant(), "a", "agent"),
        "the participant",
    )?;
    same(&who.metadata["first"], &json!(1), "its metadata")?;
    let names: Vec<_> = who.methods.as_array().into_iter().flatten().collect();
    let names: Vec<_> = names.iter().map(|method| &method["name"]).collect();
    same(names, ["back", "double", "draw", "wait"], "its methods")
}

/// Waits until the agent sees these handles.
async fn sees(stage: &Stage, a: &AgentKey, handles: Value) -> Outcome {
    until!(
        format!("{handles} in the roster"),
        stage.json(a, "roster").await? == handles
    );
    Ok(())
}

async fn people(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    sees(stage, &a, json!(["a"])).await?;
    stage.channels()?.join("c", person("bob", 8)).await?;
    sees(stage, &a, json!(["a", "bob"])).await?;
    let left = stage.channels()?.leave("c", Uuid::from_u128(8)).await?;
    holds(left, "a person to leave")?;
    sees(stage, &a, json!(["a"])).await
}

async fn hears(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let asked = stage.say("await-roster bob").await?;
    stage.hears(&a, "ready").await?;
    stage.channels()?.join("c", person("bob", 8)).await?;
    same(stage.answered(&a, &asked).await?, "2", "participants")
}

/// Whose presence the log has, and how.
async fn presences(stage: &Stage) -> Result<Vec<(String, PresenceAction)>, super::Finding> {
    let log = stage.log().await?;
    let of = log.iter().filter_map(|event| match &event.body {
        Body::Presence { action, .. } => Some((event.sender.handle.clone()?, *action)),
        _ => None,
    });
    Ok(of.collect())
}

async fn presence(stage: &mut Stage) -> Outcome {
    stage.channels()?.join("c", person("bob", 8)).await?;
    let a = stage.agent(json!({})).await?;
    stage.ask(&a, "say hi").await?;
    stage.target.remove(&a).await?;
    stage.channels()?.leave("c", Uuid::from_u128(8)).await?;
    let of = |handle: &str, action| (handle.to_owned(), action);
    let (join, leave) = (PresenceAction::Join, PresenceAction::Leave);
    let wanted = [
        of("bob", join),
        of("a", join),
        of("a", leave),
        of("bob", leave),
    ];
    same(presences(stage).await?, wanted, "presence")
}

async fn removed(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let b = stage.invite(key("b")?, json!({})).await?;
    stage.ask(&a, "say one").await?;
    stage.target.remove(&a).await?;
    until!(
        "its leaving",
        stage
            .channels()?
            .roster("c")
            .iter()
            .all(|who| who.handle != "a")
    );
    let two = stage.say("say two").await?;
    stage.answered(&b, &two).await?;
    stage.quiet().await;
    stage.saw(&a, ["say one"]).await?;
    stage.agent(json!({})).await?;
    stage.ask(&a, "say three").await?;
    stage.saw(&a, ["say one", "say two", "say three"]).await
}

async fn configured(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({"color": "blue"})).await?;
    same(
        &stage.json(&a, "who").await?[5],
        &json!("blue"),
        "the configuration",
    )?;
    stage.agent(json!({"color": "red"})).await?;
    until!("the new one", {
        // It has the new one at its next waking, and what it is asked keeps it awake.
        tokio::time::sleep(3 * super::IDLE).await;
        stage.json(&a, "who").await?[5] == "red"
    });
    stage.restart().await?;
    same(
        &stage.json(&a, "who").await?[5],
        &json!("red"),
        "after a restart",
    )
}

async fn handles(stage: &mut Stage) -> Outcome {
    stage.agent(json!({})).await?;
    let refused = stage.target.invite(&key("A")?, json!({})).await;
    let code = refused.err().map(|error| error.code().to_owned());
    same(code.as_deref(), Some("handle-conflict"), "a second one")?;
    let refused = stage.channels()?.join("c", person("a", 8)).await;
    let code = refused.err().map(|error| error.code().to_owned());
    same(code.as_deref(), Some("handle-conflict"), "a person")?;
    same(stage.channels()?.roster("c").len(), 1, "participants")
}

async fn remains(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    stage.ask(&a, "say one").await?;
    stage.restart().await?;
    sees(stage, &a, json!(["a"])).await?;
    stage.crash().await?;
    sees(stage, &a, json!(["a"])).await?;
    until!("the agent", stage.channels()?.roster("c").len() == 1);
    Ok(())
}

async fn invites(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let b = key("b")?;
    stage.answers(&a, "invite actor b", b.as_str()).await?;
    stage.answers(&b, "say here", "here").await?;
    sees(stage, &a, json!(["a", "b"])).await?;
    stage.answers(&a, "remove actor b", "true").await?;
    sees(stage, &a, json!(["a"])).await?;
    let of = |handle: &str, action| (handle.to_owned(), action);
    let (join, leave) = (PresenceAction::Join, PresenceAction::Leave);
    let wanted = [of("a", join), of("b", join), of("b", leave)];
    same(presences(stage).await?, wanted, "presence")
}

async fn unknown(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    stage
        .answers(&a, "invite sailor b", "agent.unknown")
        .await?;
    let sailor = AgentKey::new("sailor", "c", "s");
    let sailor = sailor.map_err(|error| super::Finding(error.to_string()))?;
    let refused = stage.target.invite(&sailor, json!({})).await;
    let code = refused.err().map(|error| error.code().to_owned());
    same(
        code.as_deref(),
        Some("agent.unknown"),
        "the code for the host",
    )?;
    same(stage.channels()?.roster("c").len(), 1, "participants")
}

async fn metadata(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    for new in [
        json!({"mood": "good", "deep": {"a": 1}}),
        json!({"deep": {"b": 2}}),
    ] {
        stage.ask(&a, &format!("metadata {new}")).await?;
        until!(format!("{new}"), {
            let roster = stage.channels()?.roster("c");
            roster
                .iter()
                .any(|who| Value::Object(who.metadata.clone()) == new)
        });
    }
    // Nor can it take the name of another one.
    stage.ask(&a, r#"metadata {"handle": "b", "x": 1}"#).await?;
    until!(
        "the last",
        stage.channels()?.roster("c")[0].metadata.contains_key("x")
    );
    same(&*stage.channels()?.roster("c")[0].handle, "a", "its handle")?;
    let updates = presences(stage).await?.into_iter();
    let updates = updates.filter(|(_, action)| *action == PresenceAction::Update);
    same(updates.count(), 3, "events")
}

async fn conflict(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let asked = stage.say("await-conflict").await?;
    stage.hears(&a, "ready").await?;
    for (handle, id, role) in [
        ("bob", 8, json!({"providing": true})),
        ("cid", 9, json!({"providing": true, "priority": 2})),
    ] {
        let mut who = person(handle, id);
        who.metadata = Map::from_iter([("toolRoles".to_owned(), json!({"git-ops": role}))]);
        stage.channels()?.join("c", who).await?;
    }
    let [bob, cid] = [8, 9].map(Uuid::from_u128);
    let wanted = json!(["git-ops", [bob, cid], cid]).to_string();
    same(stage.answered(&a, &asked).await?, wanted, "the conflict")
}

async fn roles(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    stage.ask(&a, "role git-ops").await?;
    let log = stage.log().await?;
    let names: Vec<_> = log.iter().map(|event| event.body.type_name()).collect();
    let names: Vec<_> = names
        .into_iter()
        .filter(|name| name.starts_with("tool"))
        .collect();
    let wanted = [
        "tool-role-request",
        "tool-role-response",
        "tool-role-handoff",
    ];
    same(names, wanted, "the events")
}

async fn resolved(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    stage.channels()?.join("c", person("bob", 8)).await?;
    sees(stage, &a, json!(["a", "bob"])).await?;
    let found = stage.json(&a, "resolve @BOB a").await?;
    same(
        found,
        json!([Uuid::from_u128(8), a.participant()]),
        "the participants",
    )?;
    stage
        .answers(&a, "resolve bob x", "provider-not-found")
        .await?;
    // A title that others announce changes no roster.
    let body = Body::Custom {
        name: CHANNEL_CONFIG.to_owned(),
        payload: json!({"title": "x"}),
    };
    let publish = crate::Publish {
        sender: ann(),
        ..says(body)
    };
    stage.channels()?.publish("c", publish).await?;
    sees(stage, &a, json!(["a", "bob"])).await
}
