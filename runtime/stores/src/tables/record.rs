//! Record of a turn: its commit as JSON in the file of the agent's tables.

use a99_runtime_engine::{
    DeadLetter, Fence, Millis, NewEvent, NewState, Progress, StoreCode, StoreError, TimerChange,
    Trigger, TurnCommit,
};
use serde::{Deserialize, Serialize};

/// A commit without its fence: the process that applies it has another epoch.
#[derive(Serialize, Deserialize)]
struct Record {
    trigger: Option<Trigger>,
    progress: Option<Progress>,
    state: Option<NewState>,
    settings: Option<String>,
    outbox: Vec<NewEvent>,
    timers: Vec<TimerChange>,
    again: Option<Millis>,
    dead: Option<DeadLetter>,
    now: Millis,
}

/// Encodes a commit.
///
/// # Errors
/// [`StoreCode::Input`] if a part has no JSON form.
pub(super) fn encode(commit: &TurnCommit) -> Result<String, StoreError> {
    let commit = commit.clone();
    let record = Record {
        trigger: commit.trigger,
        progress: commit.progress,
        state: commit.state,
        settings: commit.settings,
        outbox: commit.outbox,
        timers: commit.timers,
        again: commit.again,
        dead: commit.dead,
        now: commit.now,
    };
    serde_json::to_string(&record)
        .map_err(|error| StoreError::new(StoreCode::Input, error.to_string()))
}

/// Decodes a record to a commit under a fence.
///
/// # Errors
/// [`StoreCode::Unreadable`] for anything that [`encode`] does not write.
pub(super) fn decode(record: &str, fence: Fence) -> Result<TurnCommit, StoreError> {
    let record: Record = serde_json::from_str(record).map_err(|error| {
        let text = format!(
            "the record of the last turn of {} is damaged: {error}",
            fence.key
        );
        StoreError::new(StoreCode::Unreadable, text)
    })?;
    let mut commit = TurnCommit::new(fence, record.now);
    commit.trigger = record.trigger;
    commit.progress = record.progress;
    commit.state = record.state;
    commit.settings = record.settings;
    commit.outbox = record.outbox;
    commit.timers = record.timers;
    commit.again = record.again;
    commit.dead = record.dead;
    Ok(commit)
}
