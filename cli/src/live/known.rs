//! Agents that a store knows: names, status and changes.

use super::error::{BAD_CHECKPOINT, UNKNOWN};
use super::wire::{Change, Refusal, SendCall};
use a99_core::diag::{excerpt, suggest};
use a99_runtime::{AgentInfo, AgentKey, Body, Event, Message, Sender, Seq, Uuid};
use a99_runtime_engine::{
    AgentStore, ChannelStore, NewEvent, Progress, StoreCode, check_part, derived, published, unique,
};
use a99_runtime_stores::SqliteRuntime;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Most events after a dead letter that are scanned.
const MAX_BEYOND: Seq = 1_000_000;

pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// The agents of all channels of a store.
///
/// # Errors
/// Those of reading.
pub(super) async fn keys(store: &SqliteRuntime) -> Result<Vec<AgentKey>, Refusal> {
    let found = store.registrations().await?;
    Ok(found.into_iter().map(|found| found.key).collect())
}

/// Resolves an agent by its key, or by its name if that is on one channel only.
///
/// # Errors
/// No match, or several.
pub(super) fn resolve(keys: &[AgentKey], text: &str) -> Result<AgentKey, Refusal> {
    if text.contains('/') {
        let key: AgentKey = text.parse().map_err(|error: a99_runtime::KeyError| {
            Refusal::new(error.code(), error.to_string())
                .helped("write AGENT/CHANNEL/HANDLE, as in `echo/general/echo`")
        })?;
        if keys.contains(&key) {
            return Ok(key);
        }
    }
    let named: Vec<&AgentKey> = keys.iter().filter(|key| key.agent() == text).collect();
    match named[..] {
        [key] => Ok(key.clone()),
        [] => {
            let words = keys.iter().flat_map(|key| [key.as_str(), key.agent()]);
            let help = match suggest(text, words) {
                Some(near) => format!("did you mean `{near}`?"),
                None if keys.is_empty() => "the store has no agents yet".to_owned(),
                None => format!("known are {}", joined(keys.iter())),
            };
            let text = format!("no agent is called `{}`", excerpt(text));
            Err(Refusal::new(UNKNOWN, text).helped(help))
        }
        _ => {
            let text = format!("`{text}` is on {} channels", named.len());
            let help = format!("write one of {}", joined(named.into_iter()));
            Err(Refusal::new(UNKNOWN, text).helped(help))
        }
    }
}

fn joined<'k>(keys: impl Iterator<Item = &'k AgentKey>) -> String {
    let mut shown: Vec<String> = keys.map(|key| format!("`{key}`")).take(9).collect();
    if shown.len() == 9 {
        shown[8] = "...".to_owned();
    }
    shown.join(", ")
}

/// The sender for a person's handle, which must not be an agent's.
///
/// # Errors
/// An invalid handle, or one of an agent.
pub(super) fn sender(keys: &[AgentKey], channel: &str, sender: &str) -> Result<Sender, Refusal> {
    let handle = sender.strip_prefix('@').unwrap_or(sender);
    check_part("handle", handle).map_err(|error| bad_part(&error))?;
    check_part("channel", channel).map_err(|error| bad_part(&error))?;
    let agent = on(keys, channel).find(|key| key.handle().eq_ignore_ascii_case(handle));
    if let Some(agent) = agent {
        let text = format!("the handle @{handle} is {agent}'s on this channel");
        return Err(
            Refusal::new("handle-conflict", text).helped("send under another, `--as HANDLE`")
        );
    }
    Ok(Sender {
        id: derived(&["panel", handle]),
        name: Some(handle.to_owned()),
        kind: Some("panel".to_owned()),
        handle: Some(handle.to_owned()),
    })
}

/// Adds the number of agents on the channel to a result, and a warning for a channel without
/// agents: its messages stay unhandled.
pub(super) fn subscribers(keys: &[AgentKey], channel: &str, result: &mut Json) {
    let count = on(keys, channel).count();
    result["subscribers"] = count.into();
    if count > 0 {
        return;
    }
    let channels: BTreeSet<&str> = keys.iter().map(AgentKey::channel).collect();
    let known = match suggest(channel, channels.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None if channels.is_empty() => String::new(),
        None => {
            let names: Vec<&str> = channels.into_iter().take(8).collect();
            format!("; agents are on `{}`", names.join("`, `"))
        }
    };
    result["warning"] = format!("no agent is on the channel `{}`{known}", excerpt(channel)).into();
}

fn bad_part(error: &a99_runtime::KeyError) -> Refusal {
    Refusal::new(error.code(), error.to_string()).helped("write another name, without `/`")
}

fn on<'k>(keys: &'k [AgentKey], channel: &'k str) -> impl Iterator<Item = &'k AgentKey> {
    keys.iter().filter(move |key| key.channel() == channel)
}

/// The message of a call.
///
/// # Errors
/// A recipient that is not on the channel.
pub(super) fn message(keys: &[AgentKey], call: &SendCall) -> Result<Message, Refusal> {
    let mut at: Vec<Uuid> = Vec::new();
    for written in &call.at {
        let handle = written.trim().trim_start_matches('@');
        let found = on(keys, &call.channel).find(|key| key.handle().eq_ignore_ascii_case(handle));
        let Some(found) = found else {
            let handles: Vec<&str> = on(keys, &call.channel).map(AgentKey::handle).collect();
            let help = match suggest(handle, handles.iter().copied()) {
                Some(near) => format!("did you mean `--at {near}`?"),
                None if handles.is_empty() => {
                    format!("no agent is on the channel `{}`", excerpt(&call.channel))
                }
                None => format!("there are @{}", handles.join(", @")),
            };
            let text = format!("no agent has the handle @{}", excerpt(handle));
            return Err(Refusal::new("provider-not-found", text).helped(help));
        };
        at.push(found.participant());
    }
    Ok(Message {
        at,
        ..Message::text(call.text.clone())
    })
}

/// Appends a message to the log of a store without a running host, as a host would.
///
/// # Errors
/// Those of the store.
pub(super) async fn append(
    store: &SqliteRuntime,
    call: &SendCall,
    sender: Sender,
    mut message: Message,
) -> Result<(Arc<Event>, bool), Refusal> {
    let id = match &call.key {
        Some(key) => published(&call.channel, sender.id, key),
        None => fresh()?,
    };
    message.id = id;
    let (sender, body) = (Arc::new(sender), Body::Message(message));
    let event = NewEvent::new(&call.channel, id, sender, 0, body);
    let appended = store.append(vec![event], None, now());
    let one = appended.await?.into_iter().next();
    let one = one.ok_or_else(|| Refusal::new("store.unavailable", "nothing was appended"))?;
    Ok((one.event, one.is_new))
}

fn fresh() -> Result<Uuid, Refusal> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Refusal::new("store.unavailable", format!("no randomness: {error}")))?;
    Ok(unique(bytes))
}

/// Status of an agent from a store without a running host.
///
/// # Errors
/// Those of reading; an unreadable agent gets the status `failed`.
pub(super) async fn info(store: &SqliteRuntime, key: &AgentKey) -> Result<AgentInfo, Refusal> {
    let (row, last_error) = match store.load(key).await {
        Ok(row) => (row, None),
        Err(error) if error.code() == StoreCode::Unreadable => {
            let said = (error.code().name().to_owned(), error.to_string());
            (None, Some(said))
        }
        Err(error) => return Err(error.into()),
    };
    let parsed = |text: &str| serde_json::from_str::<Json>(text).ok();
    let head = store.head(key.channel()).await?;
    let row = row.as_ref();
    let checkpoint = row.map_or(0, |row| row.progress.checkpoint);
    Ok(AgentInfo {
        key: key.clone(),
        status: match last_error {
            Some(_) => "failed",
            None => "asleep",
        },
        state: row.and_then(|row| parsed(&row.state)),
        version: row.map_or(0, |row| row.version),
        checkpoint,
        lag: head.saturating_sub(checkpoint),
        settings: row.and_then(|row| parsed(row.settings.as_deref()?)),
        timers: store.timers(key).await?,
        dead_letters: store.dead_letters(key).await?,
        turns: 0,
        failed: 0,
        hop_limited: 0,
        last_error,
    })
}

/// Changes the checkpoint or dead letters of a sleeping agent. Returns a summary.
///
/// # Errors
/// A checkpoint after the end of the log, no dead letter to retry, those of the store.
pub(super) async fn change(
    store: &SqliteRuntime,
    channels: &dyn ChannelStore,
    key: &AgentKey,
    change: Change,
) -> Result<Json, Refusal> {
    let head = channels.head(key.channel()).await?;
    let dead = store.dead_letters(key).await?;
    match change {
        Change::Set(seq) if seq > head => {
            let text = format!("the log of the channel `{}` ends at {head}", key.channel());
            let help = format!("write a place from 0 to {head}");
            Err(Refusal::new(BAD_CHECKPOINT, text).helped(help))
        }
        Change::Set(seq) => {
            let progress = Progress {
                checkpoint: seq,
                done: BTreeSet::new(),
            };
            let discarded = store.set_progress(key, progress).await?;
            Ok(json!({"key": key, "checkpoint": seq, "lag": head - seq, "discarded": discarded}))
        }
        Change::ForgetDead => {
            let forgotten = store.forget_dead(key).await?;
            Ok(json!({"key": key, "forgotten": forgotten}))
        }
        Change::RetryDead => {
            let again: BTreeSet<Seq> = dead.iter().filter_map(|one| one.trigger.seq()).collect();
            let row = store.load(key).await?;
            let (Some(first), Some(row)) = (again.first().copied(), row) else {
                let text = format!("{key} has given up no event");
                let help = "`a99 agent inspect KEY` lists what was given up; timers come again";
                return Err(Refusal::new(BAD_CHECKPOINT, text).helped(help));
            };
            let last = row.progress.checkpoint;
            if last.saturating_sub(first) > MAX_BEYOND {
                let text = format!(
                    "{} events follow on the first that was given up",
                    last - first
                );
                let help = format!("`--set {}` lets it handle all of them again", first - 1);
                return Err(Refusal::new(BAD_CHECKPOINT, text).helped(help));
            }
            let mut progress = Progress {
                checkpoint: first.saturating_sub(1),
                done: row.progress.done,
            };
            let others = (first..=last).filter(|seq| !again.contains(seq));
            progress.done.extend(others);
            progress.done.retain(|seq| !again.contains(seq));
            let checkpoint = progress.checkpoint;
            store.set_progress(key, progress).await?;
            store.forget_dead(key).await?;
            Ok(json!({"key": key, "again": again, "checkpoint": checkpoint}))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Vec<AgentKey> {
        let keys = ["echo/general/echo", "news/general/news", "news/other/news"];
        keys.iter().map(|key| key.parse().expect("a key")).collect()
    }

    #[test]
    fn agents_are_named_by_key_or_alone() {
        let name = |text: &str| resolve(&some(), text).map(|key| key.to_string());
        assert_eq!(name("echo").as_deref(), Ok("echo/general/echo"));
        assert_eq!(name("news/other/news").as_deref(), Ok("news/other/news"));
        let help = |text: &str| name(text).expect_err(text).help.unwrap_or_default();
        assert!(help("ecko").contains("`echo`"));
        assert!(help("news").contains("`news/general/news`"));
        assert!(help("news/othr/news").contains("news/other/news"));
    }

    #[test]
    fn nobody_sends_as_an_agent() {
        let mut call = SendCall {
            channel: "general".to_owned(),
            sender: "Echo".to_owned(),
            ..SendCall::default()
        };
        let code = sender(&some(), &call.channel, &call.sender)
            .expect_err("an agent's")
            .code;
        assert_eq!(code, "handle-conflict");
        call.sender = "ann".to_owned();
        assert!(sender(&some(), &call.channel, &call.sender).is_ok());
        call.at = vec!["@ECHO".to_owned()];
        assert_eq!(message(&some(), &call).map(|m| m.at.len()), Ok(1));
        call.at = vec!["nws".to_owned()];
        let help = message(&some(), &call).expect_err("nobody").help;
        assert!(help.is_some_and(|help| help.contains("--at news")));
    }
}
