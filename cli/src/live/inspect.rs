//! `a99 agent inspect`: lists the agents, or prints the status of one.

use super::place::{Place, Reached};
use super::wire::{Call, InspectCall, Refusal};
use super::{known, line, show};
use crate::args::InspectAgentArgs;
use crate::failure::{Exit, Failure};
use crate::output;
use a99_runtime::{AgentInfo, AgentKey};
use a99_runtime_stores::SqliteRuntime;
use serde_json::{Value as Json, json};

pub(crate) fn run(args: &InspectAgentArgs) -> Result<Exit, Failure> {
    let place = Place::of(&args.place)?;
    let agent = args.key.clone();
    let found = match place.read()? {
        Reached::Host(mut client) => {
            let (is_one, mut agents) = (agent.is_some(), Vec::new());
            let call = Call::Inspect(InspectCall { agent });
            let found = client.ask(call, |agent| agents.push(agent))?;
            match is_one {
                true => found,
                false => json!({"agents": agents, "host": found["host"]}),
            }
        }
        Reached::Store(opened) => {
            let opened = opened.for_states(&place)?;
            opened.with(async |store| stored(store, agent.as_deref()).await)?
        }
    };
    if args.place.json {
        line(&found);
        return Ok(Exit::Ok);
    }
    match found["agents"].as_array() {
        Some(agents) => {
            output::out(&show::list(agents));
            if found["host"].is_null() {
                output::note("note", "no host runs: this is what the store has");
            }
        }
        None => output::out(&show::agent(&found)),
    }
    Ok(Exit::Ok)
}

/// Status of all agents of a store, or of one.
async fn stored(store: &SqliteRuntime, agent: Option<&str>) -> Result<Json, Refusal> {
    let keys = known::keys(store).await?;
    if let Some(agent) = agent {
        let key = known::resolve(&keys, agent)?;
        return Ok(told(&known::info(store, &key).await?));
    }
    let mut agents = Vec::new();
    for key in &keys {
        agents.push(told(&known::info(store, key).await?));
    }
    Ok(json!({"agents": agents, "host": null}))
}

/// An agent's status as JSON.
pub(super) fn told(info: &AgentInfo) -> Json {
    serde_json::to_value(info).unwrap_or_default()
}

/// Status of an agent that could not be read.
pub(super) fn unread(key: &AgentKey, refusal: &Refusal) -> Json {
    json!({
        "key": key,
        "status": "failed",
        "checkpoint": 0,
        "lag": 0,
        "turns": 0,
        "failed": 0,
        "hopLimited": 0,
        "timers": [],
        "deadLetters": [],
        "lastError": [refusal.code, refusal.message],
    })
}
