//! Record of a program's turn: what a replay needs beside the state, the event in the channel's
//! log, and the sent events there.

use super::start::Start;
use super::{ProgramEnd, ProgramError};
use a99_runtime_engine::{TimerChange, TurnCommit, Uuid};
use agent99::Fuel;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// What a program got and did in a turn. Inputs of calls are kept as digests, because a program
/// may put into them what its host does not store.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct TurnRecord {
    /// The row of the journal about its start.
    pub(super) start: String,
    /// Names of the granted capabilities.
    pub(super) granted: Vec<String>,
    /// How the event reached the agent.
    pub(super) kind: Json,
    pub(super) settings: Json,
    /// The participants that it found by their handles.
    pub(super) handles: BTreeMap<String, Uuid>,
    pub(super) replays: u64,
    /// Changes of the settings.
    pub(super) laid: Option<Json>,
    /// Fuel in micro-units.
    pub(super) fuel: i64,
    pub(super) sent: Vec<Uuid>,
    pub(super) timers: Vec<TimerChange>,
    /// Code and text of the error for which it was given up.
    pub(super) dead: Option<(String, String)>,
    /// Lines of the calls; `None` if they are not kept.
    #[serde(skip)]
    pub(super) calls: Option<String>,
}

impl TurnRecord {
    /// Adds the end of the program's run.
    pub(super) fn ran(
        &mut self,
        start: &Start,
        granted: Vec<&str>,
        calls: Option<String>,
        end: &Result<ProgramEnd, ProgramError>,
    ) {
        self.start = start.encode().unwrap_or_default();
        self.granted = granted.into_iter().map(str::to_owned).collect();
        let used = end.as_ref().map(|end| end.outcome.fuel_used);
        self.fuel = used.unwrap_or(Fuel::ZERO).micro();
        self.calls = calls;
    }

    pub(super) fn fuel(&self) -> Fuel {
        Fuel::from_micro(self.fuel)
    }

    /// The text of a turn with this commit; `None` if it cannot be replayed.
    pub(crate) fn text(mut self, commit: &TurnCommit, at_once: Vec<Uuid>) -> Option<String> {
        let calls = self.calls.take()?;
        self.sent = at_once;
        self.timers.clone_from(&commit.timers);
        match &commit.dead {
            Some(dead) => self.dead = Some((dead.code.clone(), dead.error.clone())),
            None => self
                .sent
                .extend(commit.outbox.iter().map(|new| new.event.id)),
        }
        let head = serde_json::to_string(&self).ok()?;
        Some(format!("{head}\n{calls}"))
    }

    pub(super) fn read(text: &str) -> Option<TurnRecord> {
        let (head, calls) = text.split_once('\n')?;
        let record: TurnRecord = serde_json::from_str(head).ok()?;
        Some(TurnRecord {
            calls: Some(calls.to_owned()),
            ..record
        })
    }
}
