//! Cases of methods: calls of people and agents, errors, parts, attachments, kills.

use super::stage::{Stage, ann, key};
use super::{Outcome, holds, list, same, until};
use crate::bus::{CallOptions, MethodCallHandle};
use crate::error::AgentError;
use a99_runtime_engine::Body;
use serde_json::{Value, json};
use std::time::Duration;

list! {
    "a call is answered and changes the state once" => answered,
    "a call wakes an agent that sleeps" => wakes,
    "arguments that the schema refuses reach no method" => checked,
    "a method that fails answers with its error" => fails,
    "who or what is unknown cannot be called" => unknown,
    "a call ends at its time limit" => timeout,
    "answers have parts and attachments" => parts,
    "a call under a known identity is not made again" => repeated,
    "a call that is cancelled changes nothing" => cancelled,
    "a call is answered although the callee is killed" => killed,
    "agents call each other" => agents,
    "a call that would never end is refused" => deadlock,
    "the methods of others are listed" => listed,
}

async fn call(
    stage: &Stage,
    method: &str,
    args: Value,
    options: CallOptions,
) -> Result<MethodCallHandle, AgentError> {
    let channels = stage.target.channels();
    let channels = channels.ok_or_else(|| AgentError::new(super::NO_HOST, "no channels"))?;
    channels
        .call_participant("c", ann(), "a", method, args, options)
        .await
}

/// The code of a call that fails.
async fn code(stage: &Stage, method: &str, args: Value, options: CallOptions) -> String {
    let ended = match call(stage, method, args, options).await {
        Ok(call) => call.result().await,
        Err(error) => Err(error),
    };
    ended.map_or_else(|error| error.code().to_owned(), |value| value.to_string())
}

/// Waits until the agent can be called.
async fn there(stage: &Stage) -> Outcome {
    until!("the agent", {
        let roster = stage.channels()?.roster("c");
        roster.iter().any(|who| who.handle == "a")
    });
    Ok(())
}

async fn answered(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    there(stage).await?;
    let call = call(stage, "double", json!({"n": 4}), CallOptions::default()).await?;
    same(call.result().await?, json!(8), "the answer")?;
    until!(
        "its commit",
        stage
            .kept(&a)
            .await
            .is_ok_and(|kept| kept.seen() == ["double"])
    );
    Ok(())
}

async fn wakes(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    stage.ask(&a, "say one").await?;
    until!(
        "its sleep",
        stage.kept(&a).await?.state["hooks"]
            .to_string()
            .contains("sleep")
    );
    let call = call(stage, "double", json!({"n": 4}), CallOptions::default()).await?;
    same(call.result().await?, json!(8), "the answer")
}

async fn checked(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    there(stage).await?;
    let refused = code(
        stage,
        "double",
        json!({"n": "four"}),
        CallOptions::default(),
    )
    .await;
    same(refused, "validation-error", "the code")?;
    stage.ask(&a, "say on").await?;
    stage.saw(&a, ["say on"]).await
}

async fn fails(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    there(stage).await?;
    let failed = code(stage, "double", json!({"n": 13}), CallOptions::default()).await;
    same(failed, "test.unlucky", "the code")?;
    let panicked = code(stage, "double", json!({"n": 14}), CallOptions::default()).await;
    same(panicked, "execution-error", "the code of a panic")?;
    stage.ask(&a, "say on").await?;
    stage.saw(&a, ["say on"]).await
}

async fn unknown(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    there(stage).await?;
    let method = code(stage, "sing", json!({}), CallOptions::default()).await;
    same(method, "method-not-found", "an unknown method")?;
    stage.invite(key("b")?, json!({})).await?;
    until!(
        "the other one",
        stage.json(&a, "roster").await? == json!(["a", "b"])
    );
    stage.answers(&a, "call b sing", "method-not-found").await?;
    stage
        .answers(&a, "call zoe double", "provider-not-found")
        .await
}

async fn timeout(stage: &mut Stage) -> Outcome {
    stage.agent(json!({})).await?;
    there(stage).await?;
    let options = CallOptions {
        timeout: Some(Duration::from_millis(100)),
        ..CallOptions::default()
    };
    same(
        code(stage, "wait", json!({}), options).await,
        "timeout",
        "the code",
    )?;
    stage.say("go").await?;
    Ok(())
}

async fn parts(stage: &mut Stage) -> Outcome {
    stage.agent(json!({})).await?;
    there(stage).await?;
    let mut call = call(stage, "draw", json!({}), CallOptions::default()).await?;
    let mut parts = Vec::new();
    while let Some(part) = call.next().await? {
        let data = part.attachments.first().map(|one| one.data.clone());
        parts.push((part.content, part.progress, data, part.complete));
    }
    let part = |text: &str, progress, complete| {
        (
            Some(json!(text)),
            progress,
            Some(text.as_bytes().to_vec()),
            complete,
        )
    };
    let wanted = [part("sketch", Some(50.0), false), part("whole", None, true)];
    same(parts, wanted, "the parts")
}

async fn repeated(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    there(stage).await?;
    let options = || CallOptions {
        id: Some(a99_runtime_engine::Uuid::from_u128(77)),
        ..CallOptions::default()
    };
    for _ in 0..2 {
        let call = call(stage, "double", json!({"n": 4}), options()).await?;
        same(call.result().await?, json!(8), "the answer")?;
    }
    stage.ask(&a, "say on").await?;
    stage.saw(&a, ["double", "say on"]).await
}

async fn cancelled(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    there(stage).await?;
    let handle = call(stage, "wait", json!({}), CallOptions::default()).await?;
    let id = handle.call_id();
    stage.hears(&a, "waits").await?;
    stage.channels()?.cancel_call(ann(), handle).await?;
    until!("its answer", {
        let log = stage.log().await?;
        log.iter().any(|event| match &event.body {
            Body::MethodResult {
                call_id,
                content: Some(content),
                is_error: true,
                ..
            } => *call_id == id && content["code"] == "cancelled",
            _ => false,
        })
    });
    stage.ask(&a, "say on").await?;
    stage.saw(&a, ["say on"]).await
}

async fn killed(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    there(stage).await?;
    let id = call(stage, "wait", json!({}), CallOptions::default())
        .await?
        .call_id();
    stage.hears(&a, "waits").await?;
    stage.crash().await?;
    stage.say("go").await?;
    let mut answers: Vec<Value>;
    until!("its answer", {
        let log = stage.log().await?;
        let all = log.iter().filter_map(|event| match &event.body {
            Body::MethodResult {
                call_id, content, ..
            } if *call_id == id => content.clone(),
            _ => None,
        });
        answers = all.collect();
        !answers.is_empty()
    });
    same(answers, [json!("went")], "the answers")?;
    let count = stage.ask(&a, "count").await?;
    same(count, "3", "what changed the state")
}

async fn agents(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let b = stage.invite(key("b")?, json!({})).await?;
    until!(
        "the other one",
        stage.json(&a, "roster").await? == json!(["a", "b"])
    );
    stage.answers(&a, "call b double", "42").await?;
    until!(
        "its commit",
        stage.kept(&b).await?.seen().contains(&"double")
    );
    holds(
        !stage.kept(&a).await?.seen().contains(&"double"),
        "no change of the caller",
    )
}

async fn deadlock(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    stage.invite(key("b")?, json!({})).await?;
    until!(
        "the other one",
        stage.json(&a, "roster").await? == json!(["a", "b"])
    );
    stage
        .answers(&a, "call b back", "call.would_deadlock")
        .await?;
    stage.answers(&a, "say on", "on").await
}

async fn listed(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    stage.invite(key("b")?, json!({})).await?;
    let wanted = json!(["back", "double", "draw", "wait"]);
    until!("the methods", stage.json(&a, "defs").await? == wanted);
    Ok(())
}
