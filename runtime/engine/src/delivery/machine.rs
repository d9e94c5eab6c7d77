//! Machine of one agent's delivery: its state and inputs.

use super::turns::{self, Phase, Turn};
use super::writes::Writing;
use super::{
    Command, CommitFault, Delivery, Input, Policy, Progress, Recovered, StopReason, TurnId,
};
use crate::key::{Millis, Seq, Trigger};
use std::collections::{BTreeMap, VecDeque};

/// A queued item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// An event, and whether it passes the agent's filter.
    Event(Seq, bool),
    /// A trigger without a sequence number.
    Trigger(Trigger),
}

/// The delivery of one agent's events, from loading to its stop.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(super) policy: Policy,
    /// The stored progress, plus the events filtered since.
    pub(super) progress: Progress,
    /// The stored progress.
    pub(super) kept: Progress,
    /// Since when progress differs from the stored one.
    pub(super) dirty_since: Option<Millis>,
    /// The last sequence number up to which every event was taken.
    taken: Seq,
    /// Events that skipped a sequence number.
    held: BTreeMap<Seq, bool>,
    pub(super) queue: VecDeque<Item>,
    /// Number of events in the queue.
    pub(super) events: usize,
    /// Turns that began, in that order.
    pub(super) turns: Vec<Turn>,
    pub(super) last_turn: u64,
    /// Interrupted turns still to be committed as lost.
    pub(super) lost: VecDeque<Trigger>,
    /// Crashes under turns that have not come again yet.
    pub(super) deaths: BTreeMap<Trigger, u32>,
    /// Whether the next turn is the first after a crash.
    pub(super) is_first: bool,
    /// Whether a turn was committed already.
    pub(super) is_settled: bool,
    /// Turns that wait to be written.
    pub(super) writes: VecDeque<TurnId>,
    /// The write in flight.
    pub(super) writing: Option<Writing>,
    /// Consecutive failures of the current write.
    pub(super) write_faults: u32,
    /// Why it will stop.
    pub(super) ending: Option<StopReason>,
    /// Whether running turns were cancelled for that.
    pub(super) is_halted: bool,
    /// Whether storing the last progress failed; it is not retried.
    pub(super) gave_up_saving: bool,
    pub(super) is_stopped: bool,
    /// The requested wake-up time.
    pub(super) wake: Option<Millis>,
    /// The time of the last input.
    last_now: Millis,
    /// Commands to emit.
    pub(super) out: Vec<Command>,
}

impl Machine {
    /// A machine for a loaded agent, and its first commands.
    #[must_use]
    pub fn new(policy: Policy, recovered: Recovered, now: Millis) -> (Machine, Vec<Command>) {
        let progress = recovered.progress;
        let mut machine = Machine {
            policy,
            kept: progress.clone(),
            dirty_since: None,
            taken: progress.checkpoint,
            held: BTreeMap::new(),
            queue: VecDeque::new(),
            events: 0,
            turns: Vec::new(),
            last_turn: 0,
            lost: VecDeque::new(),
            deaths: BTreeMap::new(),
            is_first: recovered.was_cut_off,
            is_settled: false,
            writes: VecDeque::new(),
            writing: None,
            write_faults: 0,
            ending: None,
            is_halted: false,
            gave_up_saving: false,
            is_stopped: false,
            wake: None,
            last_now: now,
            out: Vec::new(),
            progress,
        };
        machine.skip_done();
        for started in recovered.started {
            let is_done = |seq| machine.progress.has(seq);
            let is_lost = policy.delivery == Delivery::AtMostOnce
                || started.trigger.seq().is_some_and(is_done);
            if is_lost && !machine.lost.contains(&started.trigger) {
                machine.lost.push_back(started.trigger.clone());
            }
            // The last start was no crash if the process shut down cleanly, or is this one.
            let deaths = started.attempts;
            let deaths = deaths.saturating_sub(u32::from(!recovered.was_cut_off));
            if !is_lost || matches!(started.trigger, Trigger::Once(_)) {
                machine.deaths.insert(started.trigger, deaths);
            }
        }
        if !machine.lost.is_empty() {
            let lost = machine.lost.iter().cloned().collect();
            machine.out.push(Command::Lost(lost));
        }
        machine.go_on(now);
        let commands = std::mem::take(&mut machine.out);
        (machine, commands)
    }

    /// Handles an input, and gives the commands that follow.
    pub fn handle(&mut self, now: Millis, input: Input) -> Vec<Command> {
        if self.is_stopped {
            return Vec::new();
        }
        self.set_time(now);
        match input {
            Input::Event { seq, deliver } => self.take(seq, deliver),
            Input::Trigger(trigger) => self.take_trigger(trigger),
            Input::Recorded(turn) => self.written(now, Some(turn), true),
            Input::NotRecorded(turn, fault) => self.not_recorded(now, turn, fault),
            Input::Ended(turn, attempt, result) => self.ended(now, turn, attempt, result),
            Input::Committed(turn) => self.written(now, Some(turn), false),
            Input::NotCommitted(turn, fault) => self.not_committed(now, turn, fault),
            Input::Saved => self.written(now, None, false),
            Input::NotSaved(fault) => self.not_saved(now, fault),
            // If it was woken early, it asks again.
            Input::Time => self.wake = None,
            Input::Drain => self.end(StopReason::Drained),
            Input::Halt => self.halt(),
        }
        if !self.is_stopped {
            self.go_on(now);
        }
        std::mem::take(&mut self.out)
    }

    /// Sets the current time. If the clock was set back, deadlines move back too: waits are
    /// durations and must not become longer.
    fn set_time(&mut self, now: Millis) {
        let back = self.last_now.saturating_sub(now);
        self.last_now = now;
        if back == 0 {
            return;
        }
        let turns = self.turns.iter_mut();
        let retries = turns.filter_map(|turn| match &mut turn.phase {
            Phase::Waiting(at) => Some(at),
            _ => None,
        });
        let write = self.writing.iter_mut();
        let write = write.filter_map(|writing| writing.again.as_mut());
        for at in retries.chain(write).chain(self.dirty_since.as_mut()) {
            *at = at.saturating_sub(back);
        }
    }

    /// How many events after [`Self::taken`] to read now. It gives 0 while the queue is more
    /// than half full, so that a long log is read in large pages.
    #[must_use]
    pub fn wants(&self) -> usize {
        match self.events > self.most_queued() / 2 {
            true => 0,
            false => self.room(),
        }
    }

    /// How many events after [`Self::taken`] fit now, within [`Policy::max_queued`].
    #[must_use]
    pub fn room(&self) -> usize {
        if self.ending.is_some() {
            return 0;
        }
        self.most_queued().saturating_sub(self.events)
    }

    /// The last sequence number up to which every event was taken: reading continues after it.
    #[must_use]
    pub fn taken(&self) -> Seq {
        self.taken
    }

    /// Whether no turn runs or waits and no write is in flight. Progress that only waits to be
    /// stored does not count.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.is_stopped
            || (self.turns.is_empty()
                && self.queue.is_empty()
                && self.held.is_empty()
                && self.lost.is_empty()
                && self.writing.is_none())
    }

    /// The progress known to be stored, plus the events filtered since.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Maximum queued events. Processed events after the checkpoint count too, which bounds
    /// their number.
    fn most_queued(&self) -> usize {
        let most = self.policy.max_queued;
        most.saturating_sub(self.progress.done.len()).max(1)
    }

    fn take(&mut self, seq: Seq, deliver: bool) {
        let is_known = seq <= self.taken || self.progress.has(seq);
        if self.ending.is_some() || is_known || self.held.contains_key(&seq) {
            return;
        }
        let most = self.most_queued();
        if seq - 1 > self.taken {
            if self.events + self.held.len() < most {
                self.held.insert(seq, deliver);
            }
            return;
        }
        if self.events >= most {
            return;
        }
        if self.events + self.held.len() >= most {
            // Drop the furthest event; it is read again later.
            self.held.pop_last();
        }
        self.enqueue(seq, deliver);
    }

    /// Takes processed events and held-back events that are now in order.
    fn take_held(&mut self) {
        self.skip_done();
        while let Some((&seq, &deliver)) = self.held.first_key_value() {
            if seq.saturating_sub(1) > self.taken {
                return;
            }
            self.held.pop_first();
            if seq > self.taken {
                self.enqueue(seq, deliver);
                self.skip_done();
            }
        }
    }

    fn enqueue(&mut self, seq: Seq, deliver: bool) {
        self.taken = seq;
        self.queue.push_back(Item::Event(seq, deliver));
        self.events += 1;
    }

    /// Skips processed events.
    fn skip_done(&mut self) {
        while let Some(next) = self.taken.checked_add(1) {
            if !self.progress.has(next) {
                break;
            }
            self.taken = next;
        }
    }

    fn take_trigger(&mut self, trigger: Trigger) {
        // A lost hook may come again.
        let is_hook = matches!(trigger, Trigger::Once(_));
        let is_running = self
            .turns
            .iter()
            .any(|turn| turn.trigger == trigger && !(is_hook && turns::is_lost(turn)));
        let is_lost = self.lost.contains(&trigger) && !is_hook;
        // Events have a separate input, which skips none.
        let is_event = trigger.seq().is_some();
        let waiting = self.queue.len() - self.events;
        let item = Item::Trigger(trigger);
        let is_full = waiting >= self.policy.max_queued.max(1);
        let is_known = is_event || is_running || is_lost || self.queue.contains(&item);
        if self.ending.is_none() && !is_full && !is_known {
            self.queue.push_back(item);
        }
    }

    /// Begins to stop: no turn begins any more, and queued items are left to the next
    /// activation.
    pub(super) fn end(&mut self, reason: StopReason) {
        if self.ending != Some(StopReason::Dead) {
            self.ending = Some(reason);
        }
        self.queue.clear();
        self.events = 0;
        self.held.clear();
        let waits = |turn: &Turn| match turn.phase {
            Phase::Waiting(_) => true,
            Phase::Recording => !turn.is_leaving && !self.is_under_way(turn.id),
            _ => false,
        };
        let left = self.turns.iter().filter(|turn| waits(turn));
        let left: Vec<TurnId> = left.map(|turn| turn.id).collect();
        for turn in left {
            if let Some(at) = self.place(turn) {
                self.leave(at);
            }
        }
        if self
            .writing
            .as_ref()
            .is_some_and(|writing| writing.subject.is_none() && writing.again.is_some())
        {
            self.writing = None;
        }
    }

    fn halt(&mut self) {
        self.end(StopReason::Drained);
        if !self.is_halted {
            self.is_halted = true;
            self.cancel_all();
        }
    }

    fn cancel_all(&mut self) {
        let running = self
            .turns
            .iter()
            .filter(|turn| turn.phase == Phase::Running);
        self.out
            .extend(running.map(|turn| Command::Cancel(turn.id)));
    }

    /// Stops at once.
    pub(super) fn stop(&mut self, reason: StopReason) {
        self.cancel_all();
        self.out.push(Command::Stop(reason));
        self.is_stopped = true;
    }

    /// Stops at once if a write fault requires it.
    pub(super) fn stops_for(&mut self, fault: CommitFault) -> bool {
        match fault {
            CommitFault::Fenced => self.stop(StopReason::Fenced),
            CommitFault::InDoubt => self.stop(StopReason::Reload),
            CommitFault::Conflict | CommitFault::Unavailable | CommitFault::Refused => {
                return false;
            }
        }
        true
    }

    /// Makes all progress that is possible now.
    fn go_on(&mut self, now: Millis) {
        self.take_held();
        self.begin_turns(now);
        self.write_next(now);
        let is_empty = self.turns.is_empty() && self.lost.is_empty() && self.writing.is_none();
        if let (Some(reason), true) = (self.ending, is_empty) {
            self.stop(reason);
            return;
        }
        let retries = self.turns.iter().filter_map(|turn| match turn.phase {
            Phase::Waiting(at) => Some(at),
            _ => None,
        });
        let writes = match &self.writing {
            Some(writing) => writing.again,
            None => self
                .dirty_since
                .map(|since| since.saturating_add(self.policy.lazy)),
        };
        let next = retries.chain(writes).min();
        if next.is_some() && next != self.wake {
            self.wake = next;
            self.out.extend(next.map(Command::WakeAt));
        }
    }
}
