//! Group commit: turns that end at once are held, and stored in one commit.
//!
//! The delivery state machine treats a held turn as committed and begins the next one. Until
//! the commit is durable, no consequence leaves the activation: other writes and the operations
//! of later turns wait, and other agents see nothing. If the commit fails, the activation ends
//! and the agent is loaded again from the store, as after a crash before the first of these
//! turns committed. From then on its turns commit one by one.

use super::faults::fault;
use super::{Activation, Happened, Running};
use crate::error::AgentError;
use crate::kill;
use crate::metrics::Attempt;
use a99_runtime_engine::{
    Command, CommitFault, Policy, StopReason, StoreCode, StoreError, Trigger, TurnCommit, TurnEnd,
    TurnId,
};
use std::collections::VecDeque;
use tokio::sync::watch;

/// Maximum bytes of attachments, and events, that held turns send.
const MOST_BYTES: usize = 64 * 1024;
const MOST_EVENTS: usize = 64;

/// A barrier: earlier turns must be durable before a turn acts outside of its commit.
#[derive(Clone)]
pub(crate) struct Kept {
    /// Number of turns held before it.
    before: u64,
    /// Number of held turns that are durable.
    kept: watch::Receiver<u64>,
}

impl Kept {
    pub(crate) async fn wait(&self) -> Result<(), StoreError> {
        let mut kept = self.kept.clone();
        let before = self.before;
        match kept.wait_for(|kept| *kept >= before).await {
            Ok(_) => Ok(()),
            Err(_) => Err(StoreError::new(
                StoreCode::Unavailable,
                "the turn before it was not kept",
            )),
        }
    }
}

/// The part of an activation that is ahead of the store.
pub(super) struct GroupCommit {
    /// Maximum turns of one commit.
    most: usize,
    /// Turns still committed alone, because one of them may have crashed the process.
    commit_alone: usize,
    /// The turn whose start is recorded; it commits alone.
    recorded: Option<TurnId>,
    /// The group commit of the held turns.
    held: Option<Box<TurnCommit>>,
    bytes: usize,
    /// Turns held so far, and those that are durable.
    all: u64,
    kept: watch::Sender<u64>,
    /// Results that the machine has not received yet.
    pub(super) happened: VecDeque<Happened>,
    /// Commands that wait until the held turns are durable.
    later: VecDeque<Command>,
}

impl GroupCommit {
    /// For an agent that was loaded. After a crash a few turns commit alone; after a failed
    /// group commit all do.
    pub(super) fn new(policy: &Policy, was_cut_off: bool, commit_alone: bool) -> GroupCommit {
        let most = if commit_alone { 1 } else { policy.joined() };
        GroupCommit {
            most,
            commit_alone: if was_cut_off { most } else { 0 },
            recorded: None,
            held: None,
            bytes: 0,
            all: 0,
            kept: watch::Sender::new(0),
            happened: VecDeque::new(),
            later: VecDeque::new(),
        }
    }

    /// Whether turns may begin before earlier turns are durable.
    pub(super) fn is_on(&self) -> bool {
        self.most > 1
    }

    /// Whether nothing is ahead of the store.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_none() && self.happened.is_empty()
    }

    /// The barrier of a turn that begins now; `None` without group commit.
    pub(super) fn wait(&self) -> Option<Kept> {
        self.is_on().then(|| Kept {
            before: self.all,
            kept: self.kept.subscribe(),
        })
    }

    pub(super) fn record(&mut self, turn: TurnId) {
        self.recorded = Some(turn);
    }

    /// Records that a turn was committed alone.
    pub(super) fn committed(&mut self) {
        self.commit_alone = self.commit_alone.saturating_sub(1);
    }

    /// Whether the held turns must be stored now: a command waits for them, the group commit is
    /// full, or no turn can join it.
    pub(super) fn is_due(&self) -> bool {
        let Some(held) = &self.held else {
            return !self.later.is_empty();
        };
        !self.later.is_empty()
            || self.happened.is_empty()
            || held.earlier.len() + 1 >= self.most
            || held.outbox.len() >= MOST_EVENTS
            || self.bytes >= MOST_BYTES
    }

    /// Adds a turn to the group commit.
    fn join(&mut self, commit: TurnCommit) {
        self.all += 1;
        let attachments = commit.outbox.iter().flat_map(|new| &new.event.attachments);
        self.bytes += attachments.map(|one| one.data.len()).sum::<usize>();
        let Some(held) = &mut self.held else {
            self.held = Some(Box::new(commit));
            return;
        };
        let earlier = std::mem::replace(&mut held.trigger, commit.trigger);
        held.earlier.extend(earlier);
        held.now = commit.now;
        held.progress = commit.progress.or(held.progress.take());
        held.state = commit.state.or(held.state.take());
        // A turn of a program waits for the commit before it, so it is alone.
        held.kept = commit.kept.or(held.kept.take());
        held.outbox.extend(commit.outbox);
        held.timers.extend(commit.timers);
    }
}

impl Activation {
    /// Whether the commit of a turn may join the group commit.
    pub(super) fn may_hold(&self, turn: TurnId, trigger: &Trigger, end: &TurnEnd) -> bool {
        let ahead = &self.group_commit;
        let is_fit = ahead.is_on()
            && ahead.commit_alone == 0
            && ahead.recorded != Some(turn)
            && !self.has_tables
            && *end == TurnEnd::Done
            && trigger.seq().is_some();
        let running = self.running.get(&turn).filter(|_| is_fit);
        running.is_some_and(|running| {
            let output = running.output.as_ref();
            running.commit.is_none() && output.is_some_and(|output| output.settings.is_none())
        })
    }

    /// Whether a command must wait until the held turns are durable.
    pub(super) fn waits(&self, command: &Command) -> bool {
        let joins = match command {
            Command::Commit {
                turn, trigger, end, ..
            } => self.may_hold(*turn, trigger, end),
            _ => false,
        };
        let needs_kept = command.needs_kept() && !joins;
        !self.group_commit.later.is_empty() || (needs_kept && self.group_commit.held.is_some())
    }

    /// Queues commands until the held turns are durable.
    pub(super) fn put_off(&mut self, commands: impl Iterator<Item = Command>) {
        self.group_commit.later.extend(commands);
    }

    /// Holds the commit of a turn. Its changes apply to the agent from now on.
    pub(super) fn hold(&mut self, turn: TurnId, commit: TurnCommit) {
        let Some(running) = self.running.remove(&turn) else {
            return;
        };
        let Running {
            trigger,
            output,
            began,
            span,
            ..
        } = running;
        span.record("a99.outcome", Attempt::Done.name());
        self.counts.attempt(Attempt::Done, began.elapsed());
        self.forget(&trigger);
        if let (Some(output), true) = (output, commit.state.is_some()) {
            self.take_state(output.state, output.json);
        }
        self.status.send_modify(|status| status.turns += 1);
        self.group_commit.join(commit);
        self.group_commit.happened.push_back(Happened::Held(turn));
        kill::point("commit.held");
    }

    /// Stores the held turns, then executes the queued commands.
    pub(super) async fn settle(&mut self) -> Option<StopReason> {
        let stop = self.commit_held().await;
        if stop.is_some() {
            return stop;
        }
        let later = std::mem::take(&mut self.group_commit.later);
        self.execute(later)
    }

    /// Stores the held turns.
    async fn commit_held(&mut self) -> Option<StopReason> {
        let commit = self.group_commit.held.take()?;
        self.group_commit.bytes = 0;
        let (has_state, has_timers) = (commit.state.is_some(), !commit.timers.is_empty());
        kill::point("commit.before");
        let written = self.shared.agents().commit(*commit).await;
        kill::point("commit.after");
        match written {
            Ok(receipt) => {
                if has_state {
                    self.revision = receipt.revision;
                    self.tell_state();
                }
                if has_timers {
                    self.timers_changed.notify_one();
                }
                self.shared.hub().tell(&receipt.appended);
                kill::point("commit.told");
                self.group_commit.kept.send_replace(self.group_commit.all);
                self.show();
                None
            }
            Err(error) => {
                let reason = match fault(&error) {
                    CommitFault::Fenced => StopReason::Fenced,
                    _ => StopReason::Reload,
                };
                let error = AgentError::from(error);
                self.warn(&error, "turns were not committed");
                self.status.send_modify(|status| {
                    status.last_error = Some(error);
                    status.commit_alone = true;
                });
                Some(reason)
            }
        }
    }
}
