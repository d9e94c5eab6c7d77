//! Commit of a turn: state, progress, events, timers and the removal of its start, in one
//! transaction.

use crate::encoded::EncodedEvent;
use crate::fault::{Fault, fault, unreadable};
use crate::kept;
use crate::log;
use crate::rows::{change, check_depth, int, json, one, uint};
use crate::runtime::Cx;
use crate::sql::params;
use crate::timers;
use a99_runtime_engine::{
    AgentKey, Appended, Body, Event, Fence, Millis, NewEvent, NewState, PresenceAction, Progress,
    Receipt, StoreCode, Trigger, TurnCommit,
};

/// What an agent says of itself, by its last update of its presence.
pub(crate) const METADATA: &str = "ALTER TABLE channel_agent ADD COLUMN metadata TEXT";

/// Approximate bytes that a commit writes.
pub(crate) fn size(commit: &TurnCommit, outbox: &[EncodedEvent]) -> usize {
    let state = commit.state.as_ref().map_or(0, |state| state.json.len());
    let settings = commit.settings.as_ref().map_or(0, String::len);
    let outbox: usize = outbox.iter().map(EncodedEvent::size).sum();
    let kept = commit.kept.as_ref();
    let kept = kept.map_or(0, |kept| kept.state.len() + kept.record.len());
    state + settings + outbox + kept
}

/// The columns of an agent that each commit reads.
struct Found {
    revision: u64,
    progress: Progress,
}

impl Found {
    fn read(cx: &Cx<'_>, key: &AgentKey) -> Result<Option<Found>, Fault> {
        let sql =
            "SELECT revision, checkpoint, done FROM agent_state WHERE key = ?1 /*FOR UPDATE*/";
        let row = one(cx, sql, [key.as_str()], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<Option<String>>(2)?))
        })?;
        let Some((revision, checkpoint, done)) = row else {
            return Ok(None);
        };
        Ok(Some(Found {
            revision: uint(revision)?,
            progress: progress(checkpoint, done.as_deref())?,
        }))
    }
}

/// Parses stored progress.
pub(crate) fn progress(checkpoint: i64, done: Option<&str>) -> Result<Progress, Fault> {
    Ok(Progress {
        checkpoint: uint(checkpoint)?,
        done: match done {
            None => Default::default(),
            Some(done) => serde_json::from_str(done)?,
        },
    })
}

/// The union of two progresses.
fn joined(mut one: Progress, other: &Progress) -> Progress {
    if other.checkpoint > one.checkpoint {
        one.checkpoint = other.checkpoint;
        one.done = one.done.split_off(&(one.checkpoint + 1));
    }
    let mut all = Progress {
        checkpoint: one.checkpoint,
        ..Progress::default()
    };
    let done = one.done.iter().chain(&other.done);
    done.for_each(|seq| all.add(*seq));
    // A number added later may close the gap before earlier ones.
    while all.done.remove(&(all.checkpoint + 1)) {
        all.checkpoint += 1;
    }
    all
}

/// Changes of an agent's row.
#[derive(Default)]
pub(crate) struct RowChange<'a> {
    pub(crate) progress: Option<&'a Progress>,
    pub(crate) state: Option<&'a NewState>,
    pub(crate) settings: Option<&'a str>,
}

/// Updates or inserts an agent's row, and gives the revision.
///
/// # Errors
/// [`StoreCode::Conflict`] if the state is not based on the stored revision;
/// [`StoreCode::TooLarge`]; [`StoreCode::Input`] for JSON that is nested too deeply.
pub(crate) fn put_row(
    cx: &Cx<'_>,
    fence: &Fence,
    change_of: &RowChange<'_>,
    now: Millis,
) -> Result<u64, Fault> {
    let key = &fence.key;
    let limit = cx.shared.options.limits.max_state_bytes;
    let fits = |what: &str, text: &str| match text.len() <= limit {
        true => Ok(()),
        false => Err(fault(
            StoreCode::TooLarge,
            format!(
                "the {what} of {key} have {} bytes of at most {limit}",
                text.len()
            ),
        )),
    };
    if let Some(state) = change_of.state {
        fits("members of the state", &state.json)?;
        check_depth("state", &state.json)?;
    }
    if let Some(settings) = change_of.settings {
        fits("settings", settings)?;
        check_depth("settings", settings)?;
    }
    let found = match Found::read(cx, key)? {
        Some(found) => Some(found),
        None => {
            insert(cx, key, now)?;
            Found::read(cx, key)?
        }
    };
    let found = found.ok_or_else(|| unreadable(format!("the row of {key} is gone")))?;
    let before = found.revision;
    let (mut revision, mut progress) = (before, None);
    if let Some(state) = change_of.state {
        if state.base != before {
            return Err(conflict(key, state.base, before));
        }
        revision += 1;
    }
    if let Some(new) = change_of.progress {
        progress = Some(joined(found.progress, new));
    }
    let done = match &progress {
        Some(progress) if !progress.done.is_empty() => Some(serde_json::to_string(&progress.done)?),
        _ => None,
    };
    let checkpoint = progress.as_ref().map(|progress| int(progress.checkpoint));
    let (json, version) = match change_of.state {
        Some(state) => (Some(state.json.as_str()), Some(state.version)),
        None => (None, None),
    };
    let (text, epoch) = (key.as_str(), int(fence.epoch.0));
    let (revision_now, now, settings) = (int(revision), int(now), change_of.settings);
    let changed = change(
        cx,
        "UPDATE agent_state SET
                 epoch = ?2, revision = ?3, version = coalesce(?4, version),
                 checkpoint = coalesce(?5, checkpoint),
                 done = CASE WHEN ?5 IS NULL THEN done ELSE ?6 END, updated_at = ?7,
                 settings = coalesce(?8, settings), state = coalesce(?9, state)
             WHERE key = ?1 AND revision = ?10",
        params![
            text,
            epoch,
            revision_now,
            version,
            checkpoint,
            done,
            now,
            settings,
            json,
            int(before)
        ],
    )?;
    match changed {
        1 => Ok(revision),
        // A commit must change exactly one row.
        _ => Err(conflict(key, before, before)),
    }
}

/// Inserts the row of an agent without a state, unless another transaction just did.
fn insert(cx: &Cx<'_>, key: &AgentKey, now: Millis) -> Result<(), Fault> {
    let sql = "INSERT INTO agent_state (key, shard, epoch, revision, version, checkpoint,
                   created_at, updated_at, state)
               VALUES (?1, ?2, 0, 0, 0, 0, ?3, ?3, '') ON CONFLICT (key) DO NOTHING";
    change(cx, sql, params![key.as_str(), key.shard(), int(now)]).map(drop)
}

fn conflict(key: &AgentKey, base: u64, found: u64) -> Fault {
    fault(
        StoreCode::Conflict,
        format!("the state of {key} was changed: it has revision {found}, not {base}"),
    )
}

/// Commits a turn.
///
/// # Errors
/// [`StoreCode::Fenced`], [`StoreCode::Conflict`], [`StoreCode::ChangedBody`],
/// [`StoreCode::TooLarge`], and those of the file. The store is then unchanged.
pub(crate) fn commit(
    cx: &Cx<'_>,
    commit: TurnCommit,
    outbox: Vec<EncodedEvent>,
) -> Result<Receipt, Fault> {
    let key = &commit.fence.key;
    cx.guard(&commit.fence)?;
    if !commit.earlier.is_empty() && has_begun(cx, key)? {
        let mut earlier = commit.earlier.iter();
        earlier.try_for_each(|trigger| end_turn(cx, key, trigger))?;
    }
    if let Some(trigger) = &commit.trigger {
        end_turn(cx, key, trigger)?;
        if let Trigger::Timer(name, due) = trigger
            && !timers::take(cx, key, name, *due, commit.again)?
        {
            let found = Found::read(cx, key)?;
            return Ok(Receipt {
                revision: found.map_or(0, |found| found.revision),
                is_gone: true,
                ..Receipt::default()
            });
        }
    }
    let row = RowChange {
        progress: commit.progress.as_ref(),
        state: commit.state.as_ref(),
        settings: commit.settings.as_deref(),
    };
    let revision = put_row(cx, &commit.fence, &row, commit.now)?;
    timers::change_all(cx, key, &commit.timers)?;
    if let Some(turn) = &commit.kept {
        // A turn that changed nothing may end beside others that did.
        let left = commit.state.as_ref().map_or(turn.base, |_| revision);
        kept::keep(cx, key, turn, left)?;
    }
    if let Some(dead) = &commit.dead {
        let sql = "INSERT INTO agent_dead (key, trigger, code, error, attempts, at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let trigger = dead.trigger.to_string();
        let row = params![
            key.as_str(),
            trigger,
            dead.code,
            // No server takes this character.
            dead.error.replace('\0', "\u{FFFD}"),
            dead.attempts,
            int(dead.at)
        ];
        change(cx, sql, row)?;
    }
    keep_metadata(cx, key, &outbox)?;
    Ok(Receipt {
        appended: send(cx, &commit.fence, outbox, commit.now)?,
        revision,
        is_gone: false,
    })
}

/// Keeps the metadata that an agent announces: a host that starts again has no other record.
fn keep_metadata(cx: &Cx<'_>, key: &AgentKey, events: &[EncodedEvent]) -> Result<(), Fault> {
    let announced = events.iter().rev().find_map(|one| match &one.event.body {
        Body::Presence {
            action: PresenceAction::Update,
            metadata,
            ..
        } => Some(metadata),
        _ => None,
    });
    let Some(metadata) = announced else {
        return Ok(());
    };
    let metadata = json("metadata", metadata)?;
    let most = cx.shared.options.limits.max_state_bytes;
    if metadata.len() > most {
        let message = format!("the metadata of {key} has more than {most} bytes");
        return Err(fault(StoreCode::TooLarge, message));
    }
    let sql = "UPDATE channel_agent SET metadata = ?2 WHERE key = ?1";
    change(cx, sql, params![key.as_str(), metadata]).map(drop)
}

/// Whether the store has starts or steps of an agent's turns.
fn has_begun(cx: &Cx<'_>, key: &AgentKey) -> Result<bool, Fault> {
    let sql = "SELECT EXISTS (SELECT 1 FROM agent_inflight WHERE key = ?1)
                   OR EXISTS (SELECT 1 FROM agent_journal WHERE key = ?1)";
    let found: Option<bool> = one(cx, sql, [key.as_str()], |row| row.get(0))?;
    Ok(found == Some(true))
}

/// Deletes the start and the steps of a turn.
fn end_turn(cx: &Cx<'_>, key: &AgentKey, trigger: &Trigger) -> Result<(), Fault> {
    let (key, trigger) = (key.as_str(), trigger.to_string());
    for sql in [
        "DELETE FROM agent_inflight WHERE key = ?1 AND trigger = ?2",
        "DELETE FROM agent_journal WHERE key = ?1 AND trigger = ?2",
    ] {
        change(cx, sql, params![key, trigger])?;
    }
    Ok(())
}

/// Appends events to channels of this store, and puts others into the outbox for forwarding.
fn send(
    cx: &Cx<'_>,
    fence: &Fence,
    events: Vec<EncodedEvent>,
    now: Millis,
) -> Result<Vec<Appended>, Fault> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    if cx.shared.options.has_channels {
        return log::append(cx, events, Some(fence), now);
    }
    for packed in events {
        let sql = "INSERT INTO agent_outbox (id, key, channel, event) VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT (id) DO NOTHING";
        let (id, key) = (packed.event.id, fence.key.as_str());
        let event = serde_json::to_string(&packed.event)?;
        let row = params![id.as_bytes(), key, packed.channel, event];
        if change(cx, sql, row)? == 1 {
            continue;
        }
        let find = "SELECT event FROM agent_outbox WHERE id = ?1 AND key = ?2 AND channel = ?3";
        let keys = params![id.as_bytes(), key, packed.channel];
        let found: Option<String> = one(cx, find, keys, |row| row.get(0))?;
        let is_same = |found: String| {
            found == event
                || serde_json::from_str::<Event>(&found).is_ok_and(|found| {
                    found.body.is_same(&packed.event.body)
                        && found.sender.id == packed.event.sender.id
                        && found.attachments == packed.event.attachments
                })
        };
        if !found.is_some_and(is_same) {
            let message = format!("something else stands under {id} in the outbox");
            return Err(fault(StoreCode::ChangedBody, message));
        }
    }
    Ok(Vec::new())
}

/// Parses an event of the outbox.
pub(crate) fn outgoing(channel: String, event: &str) -> Result<NewEvent, Fault> {
    Ok(NewEvent {
        channel,
        event: serde_json::from_str(event)?,
    })
}
