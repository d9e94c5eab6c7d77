//! `a99 agent logs`: prints the log of a channel.

use super::client::Client;
use super::place::{PATIENCE, Place, Reached};
use super::wire::{Call, LogsCall, Refusal};
use super::{line, show};
use crate::args::LogsArgs;
use crate::failure::{Exit, Failure};
use crate::output;
use a99_core::diag::{excerpt, suggest};
use a99_runtime_engine::ChannelStore as _;
use a99_runtime_stores::SqliteRuntime;
use serde_json::Value as Json;

/// Events per read.
const PAGE: usize = 500;

pub(crate) fn run(args: &LogsArgs) -> Result<Exit, Failure> {
    let place = Place::of(&args.place)?;
    let is_json = args.place.json;
    let call = LogsCall {
        channel: args.channel.clone(),
        after: args.after,
        follow: args.follow,
    };
    let reached = match args.follow {
        true => Reached::Host(Client::needed(&place, PATIENCE, "`--follow`")?),
        false => place.read()?,
    };
    match reached {
        Reached::Host(mut client) => client
            .ask(Call::Logs(call), |event| print(&event, is_json))
            .map(|_| Exit::Ok),
        Reached::Store(opened) => opened
            .with(async |store| stored(store, &call, is_json).await)
            .map(|()| Exit::Ok),
    }
}

fn print(event: &Json, is_json: bool) {
    match is_json {
        true => line(event),
        false => output::out(&show::event(event).unwrap_or_default()),
    }
}

/// Prints the log of the store.
async fn stored(store: &SqliteRuntime, call: &LogsCall, is_json: bool) -> Result<(), Refusal> {
    let channels = store.channels().await?;
    known_channel(
        channels.iter().map(|(name, _)| name.as_str()),
        &call.channel,
    )?;
    let mut after = call.after;
    loop {
        let events = store.read(&call.channel, after, PAGE).await?;
        let Some(last) = events.last().and_then(|event| event.seq) else {
            return Ok(());
        };
        for event in events {
            let json = serde_json::to_value(&*event).unwrap_or_default();
            print(&json, is_json);
        }
        after = last;
    }
}

/// Refuses an unknown channel.
///
/// # Errors
/// With a similar channel as help.
pub(super) fn known_channel<'c>(
    names: impl Iterator<Item = &'c str> + Clone,
    wanted: &str,
) -> Result<(), Refusal> {
    if names.clone().any(|name| name == wanted) {
        return Ok(());
    }
    let help = match suggest(wanted, names.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let names: Vec<&str> = names.take(8).collect();
            format!("there are `{}`", names.join("`, `"))
        }
    };
    let text = format!("there is no channel `{}`", excerpt(wanted));
    Err(Refusal::new("store.not_found", text).helped(help))
}
