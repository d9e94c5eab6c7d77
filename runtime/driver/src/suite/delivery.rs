//! Cases of delivery: order, restarts, kills, attempts, dead letters, steps.

use super::stage::{Stage, says, text};
use super::{Finding, Outcome, holds, list, same, store_options, until};
use a99_runtime_engine::{AgentStore as _, Body, Message, Progress};
use a99_runtime_stores::SqliteRuntime;
use serde_json::{Value, json};

list! {
    "events come in the order of their channel" => order,
    "a restart neither loses nor doubles an event" => restarts,
    "a turn that is killed runs again and left nothing" => killed,
    "events that come while the agents are down are handled" => down,
    "a message under a known key is not delivered again" => keyed,
    "what a turn sends keeps its order" => sends,
    "a turn that fails runs again" => again,
    "an event that always fails becomes a dead letter" => dead,
    "a final error is not tried again" => fatal,
    "a panic ends its turn only" => panics,
    "a turn ends at its time limit" => timeout,
    "dead letters are tried again" => retried,
    "dead letters are dropped" => dropped,
    "an agent that stops waits before its event" => stops,
    "at most once means no second attempt after a kill" => at_most_once,
    "at least once sends at once and not twice" => at_least_once,
    "what is sent at once has one identity" => at_once,
    "a step is made once for all attempts" => step,
    "the answer of a step survives a kill" => kept_step,
    "an answer of the model is recorded" => model,
    "a group of turns is committed whole and in order" => group,
    "an idempotency key is that of the event" => idempotency,
}

async fn order(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let wanted: Vec<_> = (0..20).map(|n| format!("say {n}")).collect();
    let mut last = None;
    for text in &wanted {
        last = Some(stage.say(text).await?);
    }
    if let Some(last) = last {
        stage.answered(&a, &last).await?;
    }
    stage.saw(&a, wanted).await?;
    let answers: Vec<_> = (0..20).map(|n| n.to_string()).collect();
    stage.spoke(&a, answers).await
}

async fn restarts(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let mut checkpoint = 0;
    for round in 1..=3 {
        for n in 1..=2 {
            let count = stage.ask(&a, "count").await?;
            same(count, ((round - 1) * 2 + n).to_string(), "the count")?;
        }
        stage.restart().await?;
        let now = stage.kept(&a).await?.checkpoint;
        holds(now > checkpoint, "a later checkpoint after each round")?;
        checkpoint = now;
    }
    let said = stage.said(&a).await?;
    same(said, ["1", "2", "3", "4", "5", "6"], "the answers")
}

async fn killed(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    for text in ["say one", "say two"] {
        stage.ask(&a, text).await?;
    }
    let third = stage.say("wait").await?;
    stage.say("say four").await?;
    stage.hears(&a, "waits").await?;
    stage.crash().await?;
    stage.spoke(&a, ["one", "two", "waits"]).await?;
    let kept = stage.kept(&a).await?;
    holds(
        kept.checkpoint < third.seq.unwrap_or(0),
        "a checkpoint before it",
    )?;
    stage.say("go").await?;
    same(stage.answered(&a, &third).await?, "went", "the answer")?;
    let last = stage.ask(&a, "count").await?;
    same(last, "6", "the count")?;
    let seen = ["say one", "say two", "wait", "say four", "go", "count"];
    stage.saw(&a, seen).await?;
    let said = ["one", "two", "waits", "half", "went", "four", "6"];
    stage.spoke(&a, said).await
}

async fn down(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    stage.ask(&a, "say up").await?;
    stage.target.stop().await?;
    stage.target.serve().await?;
    let first = stage.say("say one").await?;
    let second = stage.say("say two").await?;
    stage.target.start().await?;
    same(stage.answered(&a, &second).await?, "two", "an answer")?;
    same(stage.answered(&a, &first).await?, "one", "an answer")?;
    stage.spoke(&a, ["up", "one", "two"]).await
}

async fn keyed(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let mut publish = says(Body::Message(Message::text("say once")));
    publish.key = Some("k".to_owned());
    let first = stage.channels()?.publish("c", publish.clone()).await?;
    stage.answered(&a, &first.event).await?;
    stage.restart().await?;
    let second = stage.channels()?.publish("c", publish).await?;
    same(
        (first.is_new, second.is_new),
        (true, false),
        "whether each is new",
    )?;
    same(&second.event, &first.event, "the logged event")?;
    stage.ask(&a, "say last").await?;
    stage.spoke(&a, ["once", "last"]).await
}

async fn sends(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    stage.ask(&a, "sends 5").await?;
    let said = stage.said(&a).await?;
    same(said, ["m0", "m1", "m2", "m3", "m4", "5"], "the messages")
}

async fn again(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    stage.answers(&a, "fail 2", "attempt 3").await?;
    let said = ["half of fail 2", "attempt 3"];
    stage.spoke(&a, said).await?;
    let kept = stage.kept(&a).await?;
    same(kept.seen(), ["fail 2"], "what they changed")?;
    same(kept.timers, [], "the timers that they set")
}

async fn dead(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let bad = stage.say("fail 9").await?;
    stage.answers(&a, "say on", "on").await?;
    let kept = stage.kept(&a).await?;
    let dead = kept
        .dead
        .first()
        .ok_or_else(|| Finding("no dead letter".to_owned()))?;
    let found = (&*dead.code, &*dead.error, dead.attempts, dead.trigger.seq());
    same(
        found,
        ("test.fails", "it fails", 3, bad.seq),
        "the dead letter",
    )?;
    same(kept.seen(), ["say on"], "the state")?;
    let log = stage.log().await?;
    let told = log.iter().any(|event| {
        matches!(&event.body, Body::Error { id, code, .. }
            if *id == bad.id && code.as_deref() == Some("test.fails"))
    });
    holds(told, "an event that says which message failed")
}

async fn fatal(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    same(stage.fails(&a, "fatal").await?, "test.fails", "the code")?;
    let kept = stage.kept(&a).await?;
    let attempts: Vec<_> = kept.dead.iter().map(|dead| dead.attempts).collect();
    same(attempts, [1], "the attempts")
}

async fn panics(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    stage.answers(&a, "panic 1", "attempt 2").await?;
    same(stage.fails(&a, "panic 9").await?, "turn.panic", "the code")?;
    stage.answers(&a, "say on", "on").await
}

async fn timeout(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({"timeout": 500})).await?;
    let attempt = stage.ask(&a, "hang 1").await?;
    holds(attempt != "attempt 1", "another attempt")?;
    same(stage.fails(&a, "hang 9").await?, "turn.timeout", "the code")?;
    stage.answers(&a, "say on", "on").await
}

/// The store of the agents, while their host is stopped.
fn opened(stage: &Stage) -> Result<SqliteRuntime, Finding> {
    let options = store_options(false);
    Ok(SqliteRuntime::open_past_lock(
        stage.target.store(),
        options,
    )?)
}

async fn retried(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let bad = stage.say("need").await?;
    stage.answers(&a, "say between", "between").await?;
    stage.say("go").await?;
    stage.target.stop().await?;
    let store = opened(stage)?;
    let bad_seq = bad.seq.unwrap_or(0);
    let row = store.load(&a).await?;
    let row = row.ok_or_else(|| Finding("the store has no row".to_owned()))?;
    let done = (bad_seq + 1..=row.progress.checkpoint).collect();
    let checkpoint = bad_seq - 1;
    store
        .set_progress(&a, Progress { checkpoint, done })
        .await?;
    same(store.forget_dead(&a).await?, 1, "dead letters")?;
    drop(store);
    stage.target.start().await?;
    stage.answers(&a, "say last", "last").await?;
    let said = ["between", "went", "last"];
    stage.spoke(&a, said).await?;
    same(stage.kept(&a).await?.dead, [], "dead letters")
}

async fn dropped(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    stage.fails(&a, "fatal").await?;
    stage.target.stop().await?;
    let store = opened(stage)?;
    same(store.forget_dead(&a).await?, 1, "dead letters")?;
    drop(store);
    stage.target.start().await?;
    stage.ask(&a, "say on").await?;
    let kept = stage.kept(&a).await?;
    same(kept.seen(), ["say on"], "the state")?;
    same(&kept.dead[..], &[], "dead letters")
}

async fn stops(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({"stops": true})).await?;
    stage.ask(&a, "say one").await?;
    let bad = stage.say("fail 9").await?;
    for _ in 0..2 {
        stage.say("say two").await?;
        stage.quiet().await;
        let kept = stage.kept(&a).await?;
        same(kept.seen(), ["say one"], "the state")?;
        holds(
            kept.checkpoint < bad.seq.unwrap_or(0),
            "a checkpoint before the event",
        )?;
        stage.restart().await?;
    }
    stage.spoke(&a, ["one"]).await
}

async fn at_most_once(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({"delivery": "at-most-once"})).await?;
    stage.ask(&a, "say one").await?;
    let cut = stage.say("wait").await?;
    stage.hears(&a, "waits").await?;
    stage.crash().await?;
    stage.answers(&a, "say two", "two").await?;
    let kept = stage.kept(&a).await?;
    let dead: Vec<_> = kept
        .dead
        .iter()
        .map(|one| (&*one.code, one.trigger.seq()))
        .collect();
    same(dead, [("turn.lost", cut.seq)], "the dead letter")?;
    let hooks = kept.state["hooks"].as_array().cloned().unwrap_or_default();
    holds(hooks.contains(&json!("lost 1")), "a call of `on_lost`")?;
    same(kept.seen(), ["say one", "say two"], "the state")
}

async fn at_least_once(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({"delivery": "at-least-once"})).await?;
    stage.answers(&a, "fail 1", "attempt 2").await?;
    let said = ["half of fail 1", "attempt 2"];
    stage.spoke(&a, said).await?;
    let cut = stage.say("wait").await?;
    stage.hears(&a, "half").await?;
    stage.crash().await?;
    stage.say("go").await?;
    same(stage.answered(&a, &cut).await?, "went", "the answer")?;
    let all = [&said[..], &["waits", "half", "went"]].concat();
    stage.spoke(&a, all).await
}

async fn at_once(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    stage.answers(&a, "now hello", "2").await?;
    stage.spoke(&a, ["hello", "2"]).await
}

async fn step(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let made = stage.ask(&a, "step fail").await?;
    let said = [format!("made {made}"), made];
    stage.spoke(&a, said).await
}

async fn kept_step(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let cut = stage.say("step wait").await?;
    until!("the step", !stage.said(&a).await?.is_empty());
    stage.crash().await?;
    stage.say("go").await?;
    let made = stage.answered(&a, &cut).await?;
    let said = [format!("made {made}"), made];
    stage.spoke(&a, said).await
}

async fn model(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    // Each answer of the model is another one.
    let first = stage.ask(&a, "model fail").await?;
    let cut = stage.say("model wait").await?;
    until!("the answer", stage.said(&a).await?.len() == 3);
    stage.crash().await?;
    stage.say("go").await?;
    let second = stage.answered(&a, &cut).await?;
    let made = [&first, &second].map(|text| format!("made {text}"));
    stage
        .spoke(&a, [&made[0], &first, &made[1], &second])
        .await?;
    holds(first != second, "two answers")
}

async fn group(stage: &mut Stage) -> Outcome {
    stage.channels()?;
    let texts: Vec<_> = (0..40).map(|n| format!("say {n}")).collect();
    let mut last = stage.say("say first").await?;
    for text in &texts {
        last = stage.say(text).await?;
    }
    let a = stage.agent(json!({"group": 16})).await?;
    same(stage.answered(&a, &last).await?, "39", "the last answer")?;
    let mut said = stage.said(&a).await?;
    same(said.remove(0), "first", "the first answer")?;
    let answers: Vec<_> = (0..40).map(|n| n.to_string()).collect();
    same(said, answers, "the answers")?;
    stage.crash().await?;
    stage.answers(&a, "count", "42").await
}

async fn idempotency(stage: &mut Stage) -> Outcome {
    let a = stage.agent(json!({})).await?;
    let first = stage.json(&a, "key").await?;
    let second = stage.json(&a, "key").await?;
    holds(first[0] != second[0], "another key for another event")?;
    let log = stage.log().await?;
    let own = log
        .iter()
        .filter(|event| event.sender.id == a.participant());
    let ids: Vec<Value> = own
        .filter(|event| text(event).is_some())
        .map(|e| json!(e.id))
        .collect();
    holds(ids.len() == 2 && ids[0] != ids[1], "two messages")
}
