//! Conformance suite of [`AgentTurn`].

use super::{AgentTurn, TurnQuery};
use crate::error::{SuiteResult, ensure, expect, refused};
use a99_core::value::{Map, Value};

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().collect::<Map>())
}

/// Replaces and changes the state, sends to everybody, sets and cancels the timer `a99-suite`.
/// Do not commit the turn.
pub async fn conformance(turn: &dyn AgentTurn) -> SuiteResult {
    state(turn).await?;
    let settings = expect(turn.settings().await, "settings read")?;
    ensure(settings.as_object().is_some(), "settings are an object")?;
    let who = expect(turn.identity().await, "the identity reads")?;
    for name in ["agent", "channel", "handle", "id"] {
        let known = who.get(name).and_then(Value::as_text);
        ensure(known.is_some(), "the identity has its four texts")?;
    }
    messages(turn).await?;
    timers(turn).await?;
    refused(turn.call_method(object([])).await, "a call has a method")?;
    refused(turn.method_result(object([])).await, "a part has its call")?;
    refused(turn.invite(object([])).await, "a guest has a name")?;
    refused(turn.remove(object([])).await, "a guest has a name")?;
    let row = turn
        .storage(TurnQuery::Get, Value::Null, Value::Undefined)
        .await;
    refused(row, "a statement is a text")
}

async fn state(turn: &dyn AgentTurn) -> SuiteResult {
    let law = "a state can be set";
    let first = object([("a", object([("b", 1.0.into()), ("c", 2.0.into())]))]);
    expect(turn.set_state(first, true).await, law)?;
    let over = object([("a", object([("b", 3.0.into())])), ("d", Value::Null)]);
    expect(turn.set_state(over, false).await, law)?;
    let merged = object([
        ("a", object([("b", 3.0.into()), ("c", 2.0.into())])),
        ("d", Value::Null),
    ]);
    let read = expect(turn.state().await, "a state reads")?;
    ensure(read == merged, "a state is merged at every depth")?;
    refused(
        turn.set_state(Value::Null, false).await,
        "only an object is merged",
    )?;
    let read = expect(turn.state().await, "a state reads")?;
    ensure(read == merged, "what is refused changes nothing")?;
    let other = object([("x", true.into())]);
    expect(turn.set_state(other.clone(), true).await, law)?;
    let read = expect(turn.state().await, "a state reads")?;
    ensure(read == other, "a state is replaced as a whole")
}

async fn messages(turn: &dyn AgentTurn) -> SuiteResult {
    let send = || turn.send(object([("content", "hello".into())]));
    let one = expect(send().await, "a message is sent")?;
    let two = expect(send().await, "a message is sent")?;
    ensure(one.as_text().is_some(), "a message's identity is a text")?;
    ensure(one != two, "two messages have two identities")?;
    let more = object([
        ("id", one.clone()),
        ("content", "!".into()),
        ("complete", true.into()),
    ]);
    expect(turn.update(more).await, "a message is updated")?;
    let failure = object([("id", two), ("error", "tired".into())]);
    expect(turn.fail(failure).await, "a message fails")?;
    refused(
        turn.send(object([("content", 1.0.into())])).await,
        "content is a text",
    )?;
    refused(turn.update(object([])).await, "an update names its message")?;
    refused(turn.fail(object([])).await, "a failure names its message")?;
    let event = object([("type", "a99-suite".into()), ("payload", one)]);
    let id = expect(turn.publish(event).await, "an event is published")?;
    ensure(id.as_text().is_some(), "an event's identity is a text")?;
    refused(turn.publish(object([])).await, "an event has a type")
}

async fn timers(turn: &dyn AgentTurn) -> SuiteResult {
    let name = || ("name", Value::from("a99-suite"));
    let timer = object([name(), ("after", 60_000.0.into())]);
    expect(turn.set_timer(timer).await, "a timer is set")?;
    let again = object([name(), ("cron", "0 8 * * *".into())]);
    expect(turn.set_timer(again).await, "a timer is replaced")?;
    refused(
        turn.set_timer(object([name()])).await,
        "a timer is due at some time",
    )?;
    for _ in 0..2 {
        let cancelled = turn.cancel_timer("a99-suite".into()).await;
        expect(
            cancelled,
            "a timer is cancelled, whether it is there or not",
        )?;
    }
    refused(
        turn.cancel_timer(Value::Null).await,
        "a timer's name is a text",
    )
}
