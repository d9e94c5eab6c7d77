//! Cases of state, settings, tables, hooks and timers.

use super::stage::{Stage, key};
use super::{Outcome, holds, list, same, until};
use serde_json::{Value, json};

list! {
    "an agent knows where it runs" => context,
    "an agent wakes and sleeps" => hooks,
    "a state is merged and reset" => merged,
    "settings are layers and are kept" => settings,
    "settings are changed from outside" => outside,
    "tables are of one agent" => tables,
    "tables are committed and rolled back with the turn" => rolled_back,
    "statements beyond the tables are refused" => pragma,
    "a timer wakes an agent that sleeps" => timer,
    "a timer that is due while nothing runs fires once" => due,
    "timers are replaced and cancelled" => cancelled,
    "a timer of a turn that fails is not set" => failed,
}

async fn context(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({"color": "red"})).await?;
    let mode = stage.target.mode();
    let wanted = json!([mode, "actor", "c", "a", "c:a", "red"]);
    same(stage.json(&a, "who").await?, wanted, "the context")
}

/// The hooks that were committed.
fn ran(state: &Value) -> Vec<&str> {
    let hooks = state["hooks"].as_array().into_iter().flatten();
    hooks.filter_map(Value::as_str).collect()
}

async fn hooks(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    for _ in 0..3 {
        stage.ask(&a, "say on").await?;
        until!(
            "its sleep",
            ran(&stage.kept(&a).await?.state).last() == Some(&"sleep")
        );
    }
    let kept = stage.kept(&a).await?;
    let hooks = ran(&kept.state);
    let pairs = hooks.chunks(2).all(|two| two == ["wake", "sleep"]);
    holds(
        pairs && hooks.len() >= 6,
        &format!("wakes and sleeps in turn: {hooks:?}"),
    )
}

async fn merged(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    stage
        .answers(&a, r#"merge {"padding": "p"}"#, "true")
        .await?;
    same(
        &stage.kept(&a).await?.state["padding"],
        &json!("p"),
        "the state",
    )?;
    stage.ask(&a, "reset").await?;
    let kept = stage.kept(&a).await?;
    same(
        (&kept.state["padding"], kept.seen()),
        (&json!(""), vec![]),
        "the state",
    )?;
    holds(kept.checkpoint > 0, "the checkpoint remains")
}

async fn settings(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({"tone": "warm", "unknown": 1})).await?;
    let first = json!({"tone": "warm", "size": {"w": 1}});
    same(stage.json(&a, "settings").await?, first, "the settings")?;
    let changed = json!({"tone": "warm", "size": {"w": 1, "h": 2}});
    let found = stage.json(&a, r#"settings {"size":{"h":2}}"#).await?;
    same(&found, &changed, "the settings of the turn")?;
    same(
        &stage.json(&a, "settings").await?,
        &changed,
        "the next turn's",
    )?;
    let users: Value = serde_json::from_str(&stage.kept(&a).await?.settings.unwrap_or_default())
        .unwrap_or_default();
    same(users, json!({"size": {"h": 2}}), "what users changed")?;
    same(
        &*stage.fails(&a, "settings 1").await?,
        "turn.bad_value",
        "the code",
    )?;
    stage.crash().await?;
    same(
        &stage.json(&a, "settings").await?,
        &changed,
        "those after a kill",
    )
}

async fn outside(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    // The hook is for an agent that is awake.
    let asked = stage.say("wait").await?;
    stage.hears(&a, "waits").await?;
    let wet = json!({"tone": "wet"});
    stage.host()?.update_settings(&a, &wet).await?;
    stage.say("go").await?;
    stage.answered(&a, &asked).await?;
    let found = stage.json(&a, "settings").await?;
    same(&found["tone"], &wet["tone"], "the tone")?;
    let hooks = stage.kept(&a).await?.state;
    holds(
        ran(&hooks).contains(&r#"settings "wet""#),
        "a call of the hook",
    )
}

async fn tables(stage: &mut Stage) -> Outcome {
    let with = json!({"tables": true});
    let a = stage.agent(with.clone()).await?;
    let b = stage.invite(key("b")?, with).await?;
    let asked = stage.say("note one").await?;
    for agent in [&a, &b] {
        same(
            stage.answered(agent, &asked).await?,
            r#"["one"]"#,
            "its rows",
        )?;
    }
    stage.crash().await?;
    same(
        stage.json(&a, "note two").await?,
        json!(["one", "two"]),
        "after a kill",
    )
}

async fn rolled_back(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({"tables": true})).await?;
    same(
        stage.json(&a, "note one").await?,
        json!(["one"]),
        "the rows",
    )?;
    same(
        stage.fails(&a, "note-fatal bad").await?,
        "test.fails",
        "the code",
    )?;
    same(
        stage.json(&a, "note two").await?,
        json!(["one", "two"]),
        "the rows",
    )
}

async fn pragma(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({"tables": true})).await?;
    stage.answers(&a, "pragma", "store.input").await
}

async fn timer(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    stage.ask(&a, "timer tea 400").await?;
    until!(
        "its sleep",
        ran(&stage.kept(&a).await?.state).last() == Some(&"sleep")
    );
    stage.hears(&a, r#"alarm tea "tea""#).await?;
    until!("its commit", stage.kept(&a).await?.timers.is_empty());
    let kept = stage.kept(&a).await?;
    same(
        kept.seen(),
        ["timer tea 400", r#"alarm tea "tea""#],
        "the state",
    )
}

async fn due(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    stage.ask(&a, "timer tea 300").await?;
    stage.target.stop().await?;
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    stage.target.start().await?;
    stage.hears(&a, r#"alarm tea "tea""#).await?;
    stage.restart().await?;
    stage.ask(&a, "say on").await?;
    let said = ["set", r#"alarm tea "tea""#, "on"];
    stage.spoke(&a, said).await
}

async fn cancelled(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    for text in [
        "timer x 60000",
        "timer y 60000",
        "cancel x",
        "cancel z",
        "timer y 50",
    ] {
        stage.ask(&a, text).await?;
    }
    stage.hears(&a, r#"alarm y "y""#).await?;
    until!("its commit", stage.kept(&a).await?.timers.is_empty());
    stage.ask(&a, "say on").await?;
    let alarms = stage.said(&a).await?.into_iter();
    same(
        alarms.filter(|text| text.starts_with("alarm")).count(),
        1,
        "alarms",
    )
}

async fn failed(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    same(stage.fails(&a, "fail 9").await?, "test.fails", "the code")?;
    same(stage.kept(&a).await?.timers, [], "timers")
}
