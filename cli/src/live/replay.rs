//! `a99 agent replay`: runs a kept turn again, and compares it with what was committed.

use super::error::NOT_KEPT;
use super::place::Place;
use super::wire::Refusal;
use super::{known, line, program};
use crate::args::ReplayTurnArgs;
use crate::commands::run::error_text;
use crate::failure::{Exit, Failure};
use crate::{input, output, recording};
use a99_core::text::escape_for_terminal;
use a99_runtime::program::{TurnDone, TurnReplay, program_of};
use a99_runtime::{AgentKey, Seq, Trigger};
use a99_runtime_engine::{AgentStore as _, KeptTurn};
use a99_runtime_stores::SqliteRuntime;
use agent99::replay::Departure;
use agent99::{Agent, Engine};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const DEPARTED: &str = "without `--program`, the command replays the program of the turn; the limits and \
                        the environment are those of agents.toml";

pub(crate) fn run(args: &ReplayTurnArgs) -> Result<Exit, Failure> {
    let place = Place::of(&args.place)?;
    let engine = Engine::builder().build();
    let new = args.program.as_deref();
    let new = new.map(|path| input::agent(&engine, path)).transpose()?;
    let (key, agent, replay) = place.reader()?.with(async |store| {
        let key = known::resolve(&known::keys(store).await?, &args.key)?;
        let (turn, after) = kept(store, &key, args.event).await?;
        let agent = match new {
            Some((agent, _)) => agent,
            None => program_of_turn(store, &engine, &turn).await?,
        };
        let specs = place.file.iter().flat_map(|file| file.keys());
        let spec = specs.into_iter().find(|(other, _)| **other == key);
        let replayed = program::replayed(&engine, agent.clone(), spec.map(|(_, spec)| spec));
        let replayed = replayed.map_err(|failure| Refusal::of(&failure))?;
        let store = Arc::new(store.clone());
        let replay = replayed
            .replay(&store, &key, &turn, after.as_deref())
            .await?;
        Ok((key, agent, replay))
    })?;
    let departed = replay.departure.as_ref();
    let departed = departed.map(|departure| {
        let mut error = recording::departed(departure, &agent);
        error.help = Some(DEPARTED.to_owned());
        error
    });
    let exit = match &departed {
        Some(_) => Exit::Error,
        None => Exit::Ok,
    };
    let error = departed.as_ref().or(replay.error.as_ref());
    if args.place.json {
        let mut json = told(&replay);
        json["key"] = json!(key);
        json["event"] = args.event.into();
        json["departure"] = json!(departed.as_ref().map(|error| error.to_json().to_json()));
        line(&json);
        return Ok(exit);
    }
    output::out(&text(&key, args.event, &replay));
    if let Some(error) = error {
        output::err(&error_text(error, None));
    }
    Ok(exit)
}

/// The kept turn of an event.
///
/// # Errors
/// [`NOT_KEPT`] with the oldest that is, and those of reading.
async fn kept(
    store: &SqliteRuntime,
    key: &AgentKey,
    seq: Seq,
) -> Result<(KeptTurn, Option<String>), Refusal> {
    if let Some(found) = store.kept_turn(key, &Trigger::Event(seq)).await? {
        return Ok(found);
    }
    let turns = store.kept_turns(key).await?;
    let events: BTreeSet<Seq> = turns.iter().filter_map(Trigger::seq).collect();
    let there = match (events.first(), events.last()) {
        (Some(first), Some(last)) => {
            format!("the oldest kept turn is that of event {first}, the newest that of {last}")
        }
        _ => "no turn of an event is kept".to_owned(),
    };
    let text = format!("no turn of event {seq} of {key} is kept: {there}");
    let help = "`keep-turns` of agents.toml is the number of kept turns, of at most 16 MiB";
    Err(Refusal::new(NOT_KEPT, text).helped(help))
}

/// The program that a turn began with.
///
/// # Errors
/// A program that the store lacks, or that this version does not read.
async fn program_of_turn(
    store: &SqliteRuntime,
    engine: &Engine,
    turn: &KeptTurn,
) -> Result<Agent, Refusal> {
    let help = "name a program, `--program FILE`";
    let lacks = |why: &str| Refusal::new("program.missing", why.to_owned()).helped(help);
    let hash = program_of(turn).ok_or_else(|| lacks("the kept turn cannot be read"))?;
    let bytes = store.program(hash).await?;
    let bytes = bytes.ok_or_else(|| lacks("the store lacks the program of the turn"))?;
    engine
        .load(&bytes)
        .map_err(|error| lacks(&error.to_string()))
}

/// A difference: JSON pointer, value when it was committed, value now.
type Difference = (String, Option<Json>, Option<Json>);

/// Adds the differences of two values. Recursion is bounded by the depth of stored JSON.
fn compare(path: &str, was: Option<&Json>, is: Option<&Json>, found: &mut Vec<Difference>) {
    match (was, is) {
        (Some(Json::Object(one)), Some(Json::Object(other))) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                compare(&path, one.get(name), other.get(name), found);
            }
        }
        (Some(Json::Array(one)), Some(Json::Array(other))) => {
            for at in 0..one.len().max(other.len()) {
                compare(&format!("{path}/{at}"), one.get(at), other.get(at), found);
            }
        }
        (was, is) if was != is => found.push((path.to_owned(), was.cloned(), is.cloned())),
        _ => {}
    }
}

/// The differences of one part.
fn part(was: &Json, is: &Json) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", Some(was), Some(is), &mut found);
    found
}

/// What a turn did, by part.
fn parts(done: &TurnDone) -> Vec<(&'static str, Json)> {
    let sent = done
        .sent
        .iter()
        .map(|(id, body)| json!({"id": id, "body": body}));
    vec![
        ("state", json!(done.state)),
        ("settings", json!(done.settings)),
        ("messages", sent.collect()),
        ("timers", json!(done.timers)),
        ("fuel", json!(done.fuel.to_f64())),
        ("error", json!(done.error)),
    ]
}

/// Parts that differ; none after another call than the kept one, which ends the run. A state that
/// is not kept differs from none.
fn differences(replay: &TurnReplay) -> Vec<(&'static str, Vec<Difference>)> {
    if is_cut(replay) {
        return Vec::new();
    }
    let pairs = parts(&replay.committed)
        .into_iter()
        .zip(parts(&replay.replayed));
    let pairs = pairs.filter(|((name, _), _)| *name != "state" || replay.committed.state.is_some());
    let found = pairs.map(|((name, was), (_, is))| (name, part(&was, &is)));
    found.filter(|(_, found)| !found.is_empty()).collect()
}

/// Whether the run was ended at a call that departs.
fn is_cut(replay: &TurnReplay) -> bool {
    matches!(replay.departure, Some(Departure::Call { .. }))
}

fn told(replay: &TurnReplay) -> Json {
    let object = |done| {
        Json::Object(
            parts(done)
                .into_iter()
                .map(|(n, v)| (n.to_owned(), v))
                .collect(),
        )
    };
    let differences = differences(replay);
    let shown = differences.iter().map(|(name, found)| {
        let found = found
            .iter()
            .map(|(path, was, is)| json!({"path": path, "committed": was, "replayed": is}));
        ((*name).to_owned(), found.collect())
    });
    json!({
        "same": differences.is_empty() && replay.departure.is_none(),
        "differences": Json::Object(shown.collect()),
        "committed": object(&replay.committed),
        "replayed": (!is_cut(replay)).then(|| object(&replay.replayed)),
    })
}

/// The comparison for people: a line for each part and each difference.
fn text(key: &AgentKey, event: Seq, replay: &TurnReplay) -> String {
    let differences = differences(replay);
    let mut out = format!("turn of event {event} of {key}\n");
    let shown = |value: &Option<Json>| match value {
        Some(value) => escape_for_terminal(&value.to_string()),
        None => "nothing".to_owned(),
    };
    if is_cut(replay) {
        return out;
    }
    for (name, value) in parts(&replay.replayed) {
        let found = differences.iter().find(|(other, _)| *other == name);
        let word = match found {
            Some(_) => "differs",
            None if name == "state" && replay.committed.state.is_none() => "not kept",
            None if value.is_null() || value.as_array().is_some_and(Vec::is_empty) => continue,
            None => "same",
        };
        out += &format!("{name:10}{word}\n");
        for (path, was, is) in found.into_iter().flat_map(|(_, found)| found) {
            let path = escape_for_terminal(path);
            out += &format!(
                "  {path}\n    committed  {}\n    replayed   {}\n",
                shown(was),
                shown(is)
            );
        }
    }
    out
}
