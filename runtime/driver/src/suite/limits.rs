//! Cases of limits: what is too large is refused with the same code everywhere.

use super::stage::{Stage, says};
use super::{Outcome, list, same, until};
use a99_runtime_engine::{Body, Message};
use a99_runtime_stores::StoreLimits;
use serde_json::json;

list! {
    "a message that is too large is refused" => published,
    "an event of a turn that is too large is a dead letter" => event,
    "a state that is too large is a dead letter" => state,
    "too many timers are a dead letter" => timers,
}

async fn published(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let large = "x".repeat(StoreLimits::SMALL.max_blob_bytes + 1);
    let publish = says(Body::Message(Message::text(large)));
    let refused = stage.channels()?.publish("c", publish).await;
    let code = refused.err().map(|error| error.code().to_owned());
    same(code.as_deref(), Some("store.too_large"), "the code")?;
    stage.answers(&a, "say on", "on").await
}

async fn dies(stage: &Stage, text: &str) -> Outcome {
    let a = stage.agent(json!({})).await?;
    stage.ask(&a, "say one").await?;
    let bad = stage.say(text).await?;
    until!("a dead letter", !stage.kept(&a).await?.dead.is_empty());
    stage.answers(&a, "say two", "two").await?;
    let kept = stage.kept(&a).await?;
    let dead: Vec<_> = kept
        .dead
        .iter()
        .map(|one| (&*one.code, one.trigger.seq()))
        .collect();
    same(dead, [("turn.refused", bad.seq)], "the dead letter")?;
    same(kept.seen(), ["say one", "say two"], "the state")?;
    stage.spoke(&a, ["one", "two"]).await
}

async fn event(stage: &mut Stage) -> Outcome {
    dies(
        stage,
        &format!("large {}", StoreLimits::SMALL.max_blob_bytes + 1),
    )
    .await
}

async fn state(stage: &mut Stage) -> Outcome {
    dies(
        stage,
        &format!("grow {}", StoreLimits::SMALL.max_state_bytes + 1),
    )
    .await
}

async fn timers(stage: &mut Stage) -> Outcome {
    dies(
        stage,
        &format!("timers {}", StoreLimits::SMALL.max_timers + 1),
    )
    .await
}
