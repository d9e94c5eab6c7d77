//! Turns of a machine: which one begins, its retries, and when it is given up.

use super::machine::{Item, Machine};
use super::{Command, Delivery, OnDead, StopReason, TurnEnd, TurnId, TurnResult};
use crate::codes;
use crate::key::{Millis, Trigger};

/// Number of conflicts after which a turn fails.
pub(super) const MAX_CONFLICTS: u32 = 32;

/// Number of conflicts after which other turns wait for it.
const STARVATION_CONFLICTS: u32 = 3;

/// The phase of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its start must be recorded.
    Recording,
    /// Its handler runs.
    Running,
    /// It is retried at this time.
    Waiting(Millis),
    /// It must be committed with this end.
    Committing(TurnEnd),
}

/// A turn that began.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) id: TurnId,
    pub(super) trigger: Trigger,
    pub(super) phase: Phase,
    pub(super) runs: u32,
    /// Number of runs that failed.
    failed: u32,
    conflicts: u32,
    /// Crashes of the process during the turn.
    pub(super) deaths: u32,
    /// Whether it runs alone.
    is_alone: bool,
    /// Whether its start was recorded.
    is_recorded: bool,
    /// Whether its recorded start is being withdrawn: the next activation runs it, and it
    /// caused no crash.
    pub(super) is_leaving: bool,
}

impl Turn {
    /// Whether other commits caused too many conflicts for it. It runs, or ended and is written
    /// next.
    pub(super) fn is_starving(&self) -> bool {
        let goes_on = matches!(
            self.phase,
            Phase::Running | Phase::Committing(TurnEnd::Done)
        );
        goes_on && self.conflicts >= STARVATION_CONFLICTS
    }
}

impl Machine {
    /// Begins the turns that may begin, and retries those whose wait is over.
    pub(super) fn begin_turns(&mut self, now: Millis) {
        for at in 0..self.turns.len() {
            if matches!(self.turns[at].phase, Phase::Waiting(until) if until <= now) {
                self.run(at);
            }
        }
        if !self.lost.is_empty() || self.turns.iter().any(is_lost) {
            return;
        }
        while let Some(item) = self.queue.front() {
            if let Item::Event(seq, deliver) = *item
                && (!deliver || self.progress.has(seq))
            {
                self.queue.pop_front();
                self.events -= 1;
                if !self.progress.has(seq) {
                    self.progress.add(seq);
                    self.dirty_since.get_or_insert(now);
                }
                continue;
            }
            let slots = usize::try_from(self.policy.concurrency.get()).unwrap_or(usize::MAX);
            if self.turns.len() >= slots || self.turns.iter().any(|turn| turn.is_alone) {
                return;
            }
            let trigger = match item {
                Item::Event(seq, _) => Trigger::Event(*seq),
                Item::Trigger(trigger) => trigger.clone(),
            };
            let is_suspect = self.is_first || self.deaths.contains_key(&trigger);
            let is_ahead = self.policy.delivery == Delivery::AtMostOnce;
            if is_suspect && !is_ahead && !self.turns.is_empty() {
                return;
            }
            self.queue.pop_front();
            self.events -= usize::from(trigger.seq().is_some());
            self.is_first = false;
            let deaths = self.deaths.remove(&trigger).unwrap_or_default();
            let at = self.add_turn(trigger, Phase::Recording);
            self.turns[at].deaths = deaths;
            self.turns[at].is_alone = is_suspect && !is_ahead;
            if deaths >= self.policy.max_deaths.max(1) {
                let error = format!("the process was cut off {deaths} times while this turn ran");
                self.give_up(at, codes::KILLED_THE_PROCESS, error, deaths);
            } else if is_suspect || is_ahead {
                let id = self.turns[at].id;
                self.writes.push_back(id);
            } else {
                self.run(at);
            }
        }
    }

    /// Adds a turn, and gives its index.
    pub(super) fn add_turn(&mut self, trigger: Trigger, phase: Phase) -> usize {
        self.last_turn += 1;
        self.turns.push(Turn {
            id: TurnId(self.last_turn),
            trigger,
            phase,
            runs: 0,
            failed: 0,
            conflicts: 0,
            deaths: 0,
            is_alone: false,
            is_recorded: false,
            is_leaving: false,
        });
        self.turns.len() - 1
    }

    pub(super) fn place(&self, id: TurnId) -> Option<usize> {
        self.turns.iter().position(|turn| turn.id == id)
    }

    /// Runs the handler of a turn.
    pub(super) fn run(&mut self, at: usize) {
        let turn = &mut self.turns[at];
        turn.phase = Phase::Running;
        turn.runs = turn.runs.saturating_add(1);
        self.out.push(Command::Run {
            turn: turn.id,
            trigger: turn.trigger.clone(),
            attempt: turn.runs,
        });
    }

    /// Handles a recorded start: the turn runs, unless the agent is stopping.
    pub(super) fn recorded(&mut self, at: usize) {
        if self.turns[at].is_leaving {
            self.drop_turn(self.turns[at].id);
            return;
        }
        self.turns[at].is_recorded = true;
        let is_at_most_once = self.policy.delivery == Delivery::AtMostOnce;
        if is_at_most_once && self.is_halted {
            self.commit_cancelled(at);
        } else if !is_at_most_once && self.ending.is_some() {
            self.leave(at);
        } else {
            self.run(at);
        }
    }

    /// Leaves a turn to the next activation. A recorded start is withdrawn, so that it does not
    /// count as a crash.
    pub(super) fn leave(&mut self, at: usize) {
        let turn = &mut self.turns[at];
        if turn.is_recorded {
            turn.is_leaving = true;
            turn.phase = Phase::Recording;
            self.writes.push_back(turn.id);
        } else {
            self.drop_turn(self.turns[at].id);
        }
    }

    /// Handles the end of an attempt.
    pub(super) fn ended(&mut self, now: Millis, id: TurnId, attempt: u32, result: TurnResult) {
        let Some(at) = self.place(id) else { return };
        if self.turns[at].phase != Phase::Running || self.turns[at].runs != attempt {
            return;
        }
        match result {
            TurnResult::Done => self.commit(at, TurnEnd::Done),
            TurnResult::Failed {
                code,
                error,
                is_final,
            } => self.fail(now, at, &code, error, is_final),
            TurnResult::Cancelled if self.is_halted => {
                if self.is_tried_once(at) {
                    self.commit_cancelled(at);
                } else {
                    self.leave(at);
                }
            }
            TurnResult::Cancelled => {
                let error = "the turn was cancelled".to_owned();
                self.fail(now, at, codes::CANCELLED, error, false);
            }
        }
    }

    /// Gives a turn up because the agent stops. [`OnDead::Stop`] does not apply.
    fn commit_cancelled(&mut self, at: usize) {
        let end = TurnEnd::Dead {
            code: codes::CANCELLED.to_owned(),
            error: "the agent was stopped".to_owned(),
            attempts: 1,
        };
        self.commit(at, end);
    }

    /// Handles a conflict: the turn runs again at once.
    pub(super) fn conflict(&mut self, now: Millis, at: usize) {
        let turn = &mut self.turns[at];
        turn.conflicts += 1;
        let is_at_most_once = self.policy.delivery == Delivery::AtMostOnce;
        if is_at_most_once || turn.conflicts >= MAX_CONFLICTS {
            turn.conflicts = 0;
            let error = "the state was changed since the turn read it".to_owned();
            self.fail(now, at, codes::CONFLICT, error, false);
        } else if self.ending.is_some() {
            self.leave(at);
        } else {
            self.run(at);
        }
    }

    /// Handles a failed attempt: retries the turn or gives it up.
    pub(super) fn fail(
        &mut self,
        now: Millis,
        at: usize,
        code: &str,
        error: String,
        is_final: bool,
    ) {
        self.turns[at].failed += 1;
        let failed = self.turns[at].failed;
        let wait = if is_final || self.is_tried_once(at) {
            None
        } else {
            self.policy.retry.after(failed)
        };
        match wait {
            None => self.give_up(at, code, error, failed),
            Some(_) if self.ending.is_some() => self.leave(at),
            Some(wait) => self.turns[at].phase = Phase::Waiting(now.saturating_add(wait)),
        }
    }

    /// Whether a turn is tried only once.
    fn is_tried_once(&self, at: usize) -> bool {
        self.policy.delivery == Delivery::AtMostOnce
            || matches!(self.turns[at].trigger, Trigger::Once(_))
    }

    /// Gives a turn up.
    pub(super) fn give_up(&mut self, at: usize, code: &str, error: String, attempts: u32) {
        let is_once = matches!(self.turns[at].trigger, Trigger::Once(_));
        let stops = self.policy.on_dead == OnDead::Stop && !is_once;
        if stops && self.policy.delivery != Delivery::AtMostOnce {
            // The event remains the next one.
            self.leave(at);
        } else {
            let code = code.to_owned();
            self.commit(
                at,
                TurnEnd::Dead {
                    code,
                    error,
                    attempts,
                },
            );
        }
        if stops {
            self.end(StopReason::Dead);
        }
    }

    /// Queues the commit of a turn.
    pub(super) fn commit(&mut self, at: usize, end: TurnEnd) {
        self.turns[at].phase = Phase::Committing(end);
        self.writes.push_back(self.turns[at].id);
    }

    /// Removes a turn that is not being written.
    pub(super) fn drop_turn(&mut self, id: TurnId) {
        self.turns.retain(|turn| turn.id != id);
        self.writes.retain(|turn| *turn != id);
        if self
            .writing
            .as_ref()
            .is_some_and(|writing| writing.subject == Some(id))
        {
            self.writing = None;
        }
    }
}

/// Whether a turn is committed as lost.
pub(super) fn is_lost(turn: &Turn) -> bool {
    turn.phase == Phase::Committing(TurnEnd::Lost)
}
