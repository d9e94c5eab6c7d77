//! Store of a simulation: agents' rows and one channel's log, changed in fenced transactions.

use super::Fault;
use crate::delivery::{CommitFault, Progress, Started, TurnEnd};
use crate::history::{Committed, Fact, Final, Origin, Send};
use crate::key::{Epoch, Millis, Seq, Trigger};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The sum that an agent computes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) sum: u64,
    pub(super) revision: u64,
}

/// The identity of a send: agent, trigger, operation, and a number that is zero unless a fault
/// changes identities.
pub(super) type Id = (usize, Trigger, Send, u64);

/// An agent's stored row.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) state: State,
    pub(super) progress: Progress,
    pub(super) started: Vec<(Trigger, u32)>,
    /// Steps that ended.
    pub(super) journal: BTreeSet<Trigger>,
    pub(super) timers: BTreeMap<String, Millis>,
    pub(super) outbox: VecDeque<Id>,
}

/// Changes of a handler's attempt.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    pub(super) run: u32,
    pub(super) value: u64,
    pub(super) state: State,
    pub(super) sends: Vec<(Send, u64)>,
    pub(super) timers: Vec<(String, Option<Millis>)>,
    pub(super) was_gone: bool,
    /// Whether the state must be written.
    pub(super) is_dirty: bool,
}

/// An event of the log.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    /// Published: the number that it adds.
    Published(u64),
    /// Sent by an agent.
    Sent,
}

/// The writing owner.
#[derive(Copy, Clone, Debug)]
pub(super) struct Owner {
    pub(super) agent: usize,
    pub(super) epoch: Epoch,
}

/// The store, and the facts about it.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub(super) epoch: Epoch,
    is_closed: bool,
    pub(super) rows: Vec<Row>,
    pub(super) log: Vec<Entry>,
    sent: BTreeSet<Id>,
    pub(super) facts: Vec<Fact>,
    /// Whether the channel's log is in another store: events go through an outbox.
    is_remote: bool,
    fault: Option<Fault>,
}

impl Store {
    pub(super) fn new(agents: usize, is_remote: bool, fault: Option<Fault>) -> Store {
        Store {
            epoch: Epoch::default(),
            is_closed: true,
            rows: vec![Row::default(); agents],
            log: Vec::new(),
            sent: BTreeSet::new(),
            facts: Vec::new(),
            is_remote,
            fault,
        }
    }

    /// Opens the store for a new owner. Gives the epoch, and whether the last owner was
    /// interrupted.
    pub(super) fn open(&mut self) -> (Epoch, bool) {
        self.epoch.0 += 1;
        self.facts.push(Fact::Opened(self.epoch));
        (self.epoch, !std::mem::replace(&mut self.is_closed, false))
    }

    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.facts.push(Fact::Closed(self.epoch));
    }

    pub(super) fn started(&self, agent: usize) -> Vec<Started> {
        let started = self.rows[agent].started.iter();
        let started = started.map(|(trigger, attempts)| Started {
            trigger: trigger.clone(),
            attempts: *attempts,
        });
        started.collect()
    }

    pub(super) fn head(&self) -> Seq {
        u64::try_from(self.log.len()).unwrap_or(u64::MAX)
    }

    pub(super) fn publish(&mut self, value: u64, agents: Vec<usize>) {
        self.log.push(Entry::Published(value));
        let origin = Origin::Published(value, agents);
        self.facts.push(Fact::Appended(self.head(), origin));
    }

    fn fenced(&self, owner: Owner) -> Result<(), CommitFault> {
        if owner.epoch < self.epoch && self.fault != Some(Fault::NoFence) {
            return Err(CommitFault::Fenced);
        }
        Ok(())
    }

    /// Appends an agent's immediate send.
    pub(super) fn send(&mut self, owner: Owner, id: Id) -> Result<(), CommitFault> {
        self.fenced(owner)?;
        self.append(id);
        Ok(())
    }

    fn append(&mut self, id: Id) {
        if self.sent.insert(id.clone()) {
            self.log.push(Entry::Sent);
            let (agent, trigger, send, _) = id;
            let origin = Origin::Sent(agent, trigger, send);
            self.facts.push(Fact::Appended(self.head(), origin));
        }
    }

    /// Appends the first event of an outbox; [`Self::relayed`] removes it.
    pub(super) fn relay(&mut self, agent: usize) -> Option<Id> {
        let id = self.rows[agent].outbox.front()?.clone();
        if self.fault == Some(Fault::OutboxForgets) {
            self.relayed(agent, &id);
        } else {
            self.append(id.clone());
        }
        Some(id)
    }

    /// Removes an event from an outbox.
    pub(super) fn relayed(&mut self, agent: usize, id: &Id) {
        self.rows[agent].outbox.retain(|other| other != id);
    }

    /// Appends an event late, after it already left the outbox.
    pub(super) fn append_late(&mut self, id: Id) {
        if self.fault == Some(Fault::OutboxForgets) {
            self.append(id);
        }
    }

    pub(super) fn record(
        &mut self,
        owner: Owner,
        trigger: &Trigger,
        attempt: u32,
        progress: Option<&Progress>,
    ) -> Result<(), CommitFault> {
        self.fenced(owner)?;
        let row = &mut self.rows[owner.agent];
        row.started.retain(|(other, _)| other != trigger);
        row.started.push((trigger.clone(), attempt));
        if let Some(progress) = progress {
            row.progress = progress.clone();
        }
        let (trigger, progress) = (trigger.clone(), progress.cloned());
        let fact = Fact::Recorded(owner.agent, owner.epoch, trigger, progress);
        self.facts.push(fact);
        Ok(())
    }

    pub(super) fn save(&mut self, owner: Owner, progress: &Progress) -> Result<(), CommitFault> {
        self.fenced(owner)?;
        self.rows[owner.agent].progress = progress.clone();
        let progress = progress.clone();
        self.facts
            .push(Fact::Saved(owner.agent, owner.epoch, progress));
        Ok(())
    }

    /// Begins a step; `None` if its answer is journaled.
    pub(super) fn begin_step(
        &mut self,
        owner: Owner,
        trigger: &Trigger,
    ) -> Result<bool, CommitFault> {
        self.fenced(owner)?;
        let is_kept = self.rows[owner.agent].journal.contains(trigger);
        if is_kept && self.fault != Some(Fault::JournalForgets) {
            return Ok(false);
        }
        self.facts.push(Fact::Step(owner.agent, trigger.clone()));
        Ok(true)
    }

    pub(super) fn keep_step(&mut self, owner: Owner, trigger: &Trigger) -> Result<(), CommitFault> {
        self.fenced(owner)?;
        self.rows[owner.agent].journal.insert(trigger.clone());
        self.facts
            .push(Fact::StepKept(owner.agent, trigger.clone()));
        Ok(())
    }

    /// Commits only the state, which a correct store never does.
    pub(super) fn commit_state(
        &mut self,
        owner: Owner,
        changes: &Changes,
    ) -> Result<(), CommitFault> {
        self.fenced(owner)?;
        self.judge_base(owner, changes)?;
        self.write_state(owner, changes);
        Ok(())
    }

    fn judge_base(&self, owner: Owner, changes: &Changes) -> Result<(), CommitFault> {
        let is_old = changes.state.revision != self.rows[owner.agent].state.revision;
        if changes.is_dirty && is_old {
            return Err(CommitFault::Conflict);
        }
        Ok(())
    }

    fn write_state(&mut self, owner: Owner, changes: &Changes) {
        if changes.is_dirty {
            let state = &mut self.rows[owner.agent].state;
            state.sum = changes.state.sum;
            state.revision += 1;
        }
    }

    /// Commits a whole turn.
    pub(super) fn commit(
        &mut self,
        owner: Owner,
        trigger: &Trigger,
        end: &TurnEnd,
        progress: Option<&Progress>,
        changes: Option<&Changes>,
    ) -> Result<(), CommitFault> {
        self.fenced(owner)?;
        let none = Changes::default();
        let changes = changes.unwrap_or(&none);
        self.judge_base(owner, changes)?;
        self.write_state(owner, changes);
        self.end_turn(owner, trigger, end, progress, changes);
        Ok(())
    }

    /// Commits several turns in one transaction, with the state of the last.
    pub(super) fn commit_joined(
        &mut self,
        owner: Owner,
        turns: &[(Trigger, Option<Progress>, Changes)],
    ) -> Result<(), CommitFault> {
        self.fenced(owner)?;
        let last = turns.iter().rev().find(|(.., changes)| changes.is_dirty);
        if let Some((.., changes)) = last {
            self.judge_base(owner, changes)?;
            self.write_state(owner, changes);
        }
        for (trigger, progress, changes) in turns {
            self.end_turn(owner, trigger, &TurnEnd::Done, progress.as_ref(), changes);
        }
        Ok(())
    }

    fn end_turn(
        &mut self,
        owner: Owner,
        trigger: &Trigger,
        end: &TurnEnd,
        progress: Option<&Progress>,
        changes: &Changes,
    ) {
        let agent = owner.agent;
        self.facts.push(Fact::Committed(Committed {
            agent,
            epoch: owner.epoch,
            trigger: trigger.clone(),
            end: end.clone(),
            run: changes.run,
            value: changes.value,
            progress: progress.cloned(),
            sends: changes.sends.iter().map(|(send, _)| *send).collect(),
            timers: changes.timers.clone(),
            was_gone: changes.was_gone,
        }));
        let row = &mut self.rows[agent];
        if let Some(progress) = progress {
            row.progress = progress.clone();
            if self.fault == Some(Fault::DoneDropped) {
                row.progress.done.clear();
            }
        }
        if self.fault != Some(Fault::StartedKept) {
            row.started.retain(|(other, _)| other != trigger);
        }
        row.journal.remove(trigger);
        if let Trigger::Timer(name, due) = trigger
            && row.timers.get(name) == Some(due)
            && self.fault != Some(Fault::TimerKept)
        {
            row.timers.remove(name);
        }
        for (name, due) in &changes.timers {
            match due {
                Some(due) => row.timers.insert(name.clone(), *due),
                None => row.timers.remove(name),
            };
        }
        for (send, number) in &changes.sends {
            let id = (agent, trigger.clone(), *send, *number);
            if self.is_remote {
                self.rows[agent].outbox.push_back(id);
            } else {
                self.append(id);
            }
        }
    }

    /// Removes a timer's occurrence too late.
    pub(super) fn remove_timer(&mut self, agent: usize, trigger: &Trigger) {
        let row = &mut self.rows[agent];
        if let Trigger::Timer(name, due) = trigger
            && row.timers.get(name) == Some(due)
        {
            row.timers.remove(name);
        }
    }

    pub(super) fn last(&self, agent: usize, is_stopped: bool) -> Final {
        Final {
            progress: self.rows[agent].progress.clone(),
            sum: self.rows[agent].state.sum,
            is_stopped,
        }
    }
}
