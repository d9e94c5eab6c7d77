//! `a99 agent send`: sends a message to a channel, and shows the answers.

use super::client::Client;
use super::error::{FAILED, GIVEN_UP, NOT_DONE};
use super::place::{Opened, Place, Reached};
use super::wire::{Call, SendCall};
use super::{known, line, show};
use crate::args::SendArgs;
use crate::duration::milliseconds;
use crate::failure::{Exit, Failure};
use crate::{input, output};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::time::Instant;

pub(crate) fn run(args: &SendArgs) -> Result<Exit, Failure> {
    let began = Instant::now();
    let place = Place::of(&args.place)?;
    let is_awaited = args.wait || args.stream;
    let mut call = SendCall {
        channel: args.channel.clone(),
        text: text(&args.text)?,
        sender: args.sender.clone(),
        at: args.at.clone(),
        key: args.key.clone(),
        wait_ms: None,
    };
    let is_json = args.place.json;
    let reached = match is_awaited {
        true => Reached::Host(Client::needed(&place, args.timeout, "`--wait`")?),
        false => place.change(true, args.timeout)?,
    };
    let mut client = match reached {
        Reached::Host(client) => client,
        Reached::Store(opened) => return queued(opened, &place, &call, is_json),
    };
    if is_awaited {
        call.wait_ms = Some(milliseconds(args.timeout.saturating_sub(began.elapsed())));
    }
    let mut pieces = show::Pieces::default();
    let result = client.ask(Call::Send(call), |event| match is_json {
        true => line(&json!({"event": event})),
        false => {
            let shown = args.stream.then(|| pieces.next(&event)).flatten();
            let shown = shown.or_else(|| Some(pieces.end() + &show::event(&event)?));
            output::out(&shown.unwrap_or_default());
        }
    })?;
    output::out(&pieces.end());
    sent(&result, is_json)
}

/// Reads the text of the message.
pub(super) fn text(text: &str) -> Result<String, Failure> {
    if text != input::STDIN {
        return Ok(text.to_owned());
    }
    let source = input::read(Path::new(input::STDIN))?;
    let text = String::from_utf8(source.bytes);
    let text = text.map_err(|_| Failure::about("standard input", "it is not UTF-8"))?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// Prints the host's result.
fn sent(result: &Json, is_json: bool) -> Result<Exit, Failure> {
    let list = |name: &str| result[name].as_array().map_or(&[][..], Vec::as_slice);
    let (failed, dead) = (list("failed"), list("givenUp"));
    let is_done = result["done"] != false;
    let is_ok = is_done && failed.is_empty() && dead.is_empty();
    if is_json {
        let mut result = result.clone();
        result["ok"] = is_ok.into();
        line(&result);
    }
    let member = |one: &Json, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    for one in failed {
        let [key, code, error] = ["key", "code", "error"].map(|name| member(one, name));
        let text = format!("{key} did not handle it: {code}: {error}");
        let help = "`a99 agent inspect KEY` shows how it is; the event waits for it";
        complain(is_json, FAILED, &text, help);
    }
    for one in dead {
        let (key, error) = (member(one, "key"), member(one, "error"));
        let text = format!("{key} gave {} up: {error}", show::trigger(&one["trigger"]));
        let help = "`a99 agent checkpoint KEY --retry-dead` tries again";
        complain(is_json, GIVEN_UP, &text, help);
    }
    let is_late = failed.is_empty() && dead.is_empty() && !is_done;
    if is_late {
        let text = "the agents were not done in time";
        let help = "wait longer, `--timeout 5m`, or look at the host's log";
        complain(is_json, NOT_DONE, text, help);
    }
    warn(result, is_json);
    if !is_json && result["isNew"] == false {
        output::note("note", "it was there already, under this key");
    }
    Ok(match is_late {
        true => Exit::Timeout,
        false if is_ok => Exit::Ok,
        false => Exit::Error,
    })
}

/// Prints the result's warning.
fn warn(result: &Json, is_json: bool) {
    if let (false, Some(text)) = (is_json, result["warning"].as_str()) {
        output::note("warning", text);
    }
}

fn complain(is_json: bool, code: &str, text: &str, help: &str) {
    if !is_json {
        let text = a99_core::text::escape_for_terminal(text);
        output::err(&format!("error[{code}]: {text}\n  = help: {help}\n"));
    }
}

/// Appends the message to the store, for the next host.
fn queued(opened: Opened, place: &Place, call: &SendCall, is_json: bool) -> Result<Exit, Failure> {
    let result = opened.with(async |store| {
        let mut keys = known::keys(store).await?;
        let described = place.file.iter().flat_map(|file| file.keys());
        keys.extend(described.map(|(key, _)| key.clone()));
        let sender = known::sender(&keys, &call.channel, &call.sender)?;
        let message = known::message(&keys, call)?;
        let (event, is_new) = known::append(store, call, sender, message).await?;
        store.check_place()?;
        let seq = event.seq.unwrap_or_default();
        let mut result =
            json!({"ok": true, "seq": seq, "id": event.id, "isNew": is_new, "queued": true});
        known::subscribers(&keys, &call.channel, &mut result);
        Ok(result)
    })?;
    warn(&result, is_json);
    if is_json {
        line(&result);
    } else {
        let seq = &result["seq"];
        let shown = &place.store;
        let text =
            format!("no host runs: the message is event {seq} of {shown}, for its next start");
        output::note("queued", &text);
    }
    Ok(Exit::Ok)
}
