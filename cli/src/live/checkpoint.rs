//! `a99 agent checkpoint`: prints and changes the checkpoint of an agent.

use super::place::{PATIENCE, Place, Reached};
use super::wire::{Call, Change, CheckpointCall, InspectCall};
use super::{inspect, known, line};
use crate::args::CheckpointArgs;
use crate::failure::{Exit, Failure};
use crate::output;
use a99_core::text::escape_for_terminal;
use serde_json::{Value as Json, json};

pub(crate) fn run(args: &CheckpointArgs) -> Result<Exit, Failure> {
    let place = Place::of(&args.place)?;
    let change = match args {
        CheckpointArgs { set: Some(seq), .. } => Some(Change::Set(*seq)),
        CheckpointArgs {
            retry_dead: true, ..
        } => Some(Change::RetryDead),
        CheckpointArgs {
            forget_dead: true, ..
        } => Some(Change::ForgetDead),
        _ => None,
    };
    let agent = args.key.clone();
    let reached = match change {
        Some(_) => place.change(false, PATIENCE)?,
        None => place.read()?,
    };
    let done = match reached {
        Reached::Host(mut client) => client.ask(
            match change {
                Some(change) => Call::Checkpoint(CheckpointCall { agent, change }),
                None => Call::Inspect(InspectCall { agent: Some(agent) }),
            },
            |_| {},
        )?,
        Reached::Store(opened) => opened.with(async |store| {
            let key = known::resolve(&known::keys(store).await?, &agent)?;
            match change {
                Some(change) => known::change(store, store, &key, change).await,
                None => Ok(inspect::told(&known::info(store, &key).await?)),
            }
        })?,
    };
    let json = match change {
        Some(_) => done,
        None => shown(&done),
    };
    match args.place.json {
        true => line(&json),
        false => output::out(&text(&json)),
    }
    Ok(Exit::Ok)
}

/// The part of an agent's status about its checkpoint.
fn shown(agent: &Json) -> Json {
    let dead = agent["deadLetters"].as_array().map_or(0, Vec::len);
    json!({
        "key": agent["key"],
        "status": agent["status"],
        "checkpoint": agent["checkpoint"],
        "lag": agent["lag"],
        "givenUp": dead,
        "lastError": agent["lastError"],
    })
}

/// The checkpoint for people: a line for each member.
fn text(json: &Json) -> String {
    let members = json.as_object().into_iter().flatten();
    let members = members.filter(|(_, value)| !value.is_null());
    let lines = members.map(|(name, value)| {
        let shown = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        format!("{name:12}{}\n", escape_for_terminal(&shown))
    });
    lines.collect()
}
