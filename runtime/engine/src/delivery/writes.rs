//! Writes of a machine: one in flight at a time, each with the progress that it claims.

use super::machine::{Item, Machine};
use super::turns::Phase;
use super::{Command, CommitFault, Delivery, Progress, TurnEnd, TurnId};
use crate::codes;
use crate::key::{Millis, Trigger};
use crate::retry::Retry;

/// Back-off of writes: 0.1 to 30 s, without a limit of attempts.
const BACK_OFF: Retry = Retry {
    max_attempts: u32::MAX,
    first: 100,
    most: 30_000,
};

/// A write that is in flight or will be retried.
#[derive(Clone, Debug)]
pub(super) struct Writing {
    /// The turn; `None` if only progress is stored.
    pub(super) subject: Option<TurnId>,
    /// The claimed progress.
    claimed: Option<Progress>,
    /// The time of the retry; `None` while the write is in flight.
    pub(super) again: Option<Millis>,
}

impl Machine {
    /// Whether a turn is being written.
    pub(super) fn is_under_way(&self, id: TurnId) -> bool {
        let writing = self.writing.as_ref();
        writing.is_some_and(|writing| writing.subject == Some(id) && writing.again.is_none())
    }

    /// Begins the next write, if none is in flight.
    pub(super) fn write_next(&mut self, now: Millis) {
        let next = match &self.writing {
            Some(writing) if writing.again.is_some_and(|again| again <= now) => writing.subject,
            Some(_) => return,
            None => {
                if let Some(trigger) = self.lost.pop_front() {
                    let at = self.add_turn(trigger, Phase::Committing(TurnEnd::Lost));
                    self.writes.push_front(self.turns[at].id);
                }
                let next = self.pop_write();
                if next.is_none() && !self.must_save(now) {
                    return;
                }
                next
            }
        };
        match next {
            Some(id) => self.write_turn(id),
            None => {
                let progress = self.progress.clone();
                self.out.push(Command::Save(progress.clone()));
                self.writing = Some(Writing {
                    subject: None,
                    claimed: Some(progress),
                    again: None,
                });
            }
        }
    }

    /// The next turn to write. While a turn has conflicted often, other turns that change the
    /// state wait for it: later ones would overtake it every time.
    fn pop_write(&mut self) -> Option<TurnId> {
        let starving = self.turns.iter().filter(|turn| turn.is_starving());
        let starving = starving.map(|turn| turn.id).min();
        let waits = |id: TurnId| {
            let phase = self.place(id).map(|at| &self.turns[at].phase);
            let is_done = phase == Some(&Phase::Committing(TurnEnd::Done));
            is_done && starving.is_some_and(|first| first != id)
        };
        let at = self.writes.iter().position(|id| !waits(*id))?;
        self.writes.remove(at)
    }

    /// Whether progress without a turn must be stored now.
    fn must_save(&self, now: Millis) -> bool {
        let Some(since) = self.dirty_since else {
            return false;
        };
        match self.ending {
            Some(_) => self.turns.is_empty() && !self.gave_up_saving,
            None => since.saturating_add(self.policy.lazy) <= now,
        }
    }

    fn write_turn(&mut self, id: TurnId) {
        let Some(at) = self.place(id) else { return };
        let turn = &self.turns[at];
        let is_at_most_once = self.policy.delivery == Delivery::AtMostOnce;
        let is_ahead = turn.phase == Phase::Recording;
        // A start that is only recorded ahead claims no progress.
        let claimed = (!is_ahead || is_at_most_once).then(|| {
            let mut progress = self.progress.clone();
            if let Some(seq) = turn.trigger.seq() {
                progress.add(seq);
            }
            progress
        });
        let claimed = claimed.filter(|progress| *progress != self.kept);
        let (trigger, progress) = (turn.trigger.clone(), claimed.clone());
        self.out.push(match &turn.phase {
            Phase::Committing(end) => Command::Commit {
                turn: id,
                trigger,
                end: end.clone(),
                progress,
            },
            _ => Command::Record {
                turn: id,
                trigger,
                attempt: turn.deaths.saturating_add(u32::from(!turn.is_leaving)),
                progress,
            },
        });
        self.writing = Some(Writing {
            subject: Some(id),
            claimed,
            again: None,
        });
    }

    /// Handles a successful write; its claims now hold.
    pub(super) fn written(&mut self, now: Millis, subject: Option<TurnId>, is_record: bool) {
        if !self.is_answer(subject, is_record) {
            return;
        }
        let claimed = self.writing.take().and_then(|writing| writing.claimed);
        self.write_faults = 0;
        let place = subject.and_then(|id| self.place(id));
        if let Some(claimed) = claimed {
            if let Some(seq) = place.and_then(|at| self.turns[at].trigger.seq()) {
                self.progress.add(seq);
            }
            self.kept = claimed;
            self.dirty_since = (self.kept != self.progress).then_some(now);
        }
        match (place, is_record) {
            (Some(at), true) => self.recorded(at),
            (Some(at), false) => {
                self.turns.remove(at);
                self.settle();
            }
            (None, _) => {}
        }
    }

    /// Settles after the first committed turn: interrupted triggers without a sequence number
    /// that have not come by then will not come.
    fn settle(&mut self) {
        // Lost at-most-once turns were listed at loading.
        let is_listed = self.policy.delivery == Delivery::AtMostOnce;
        if std::mem::replace(&mut self.is_settled, true) || is_listed {
            return;
        }
        let comes = |trigger: &Trigger| {
            !matches!(trigger, Trigger::Once(_))
                || self.lost.contains(trigger)
                || self.queue.contains(&Item::Trigger(trigger.clone()))
        };
        let stale = self.deaths.keys().filter(|trigger| !comes(trigger));
        let stale: Vec<Trigger> = stale.cloned().collect();
        if !stale.is_empty() {
            self.deaths.retain(|trigger, _| !stale.contains(trigger));
            self.lost.extend(stale.iter().cloned());
            self.out.push(Command::Lost(stale));
        }
    }

    /// Whether a report belongs to the write in flight.
    fn is_answer(&self, subject: Option<TurnId>, is_record: bool) -> bool {
        let writing = self.writing.as_ref();
        let is_under_way =
            writing.is_some_and(|writing| writing.subject == subject && writing.again.is_none());
        let phase = subject
            .and_then(|id| self.place(id))
            .map(|at| &self.turns[at].phase);
        is_under_way && (phase == Some(&Phase::Recording)) == is_record
    }

    /// Schedules the write's retry.
    fn write_again(&mut self, now: Millis) {
        self.write_faults = self.write_faults.saturating_add(1);
        let wait = BACK_OFF.after(self.write_faults).unwrap_or(BACK_OFF.most);
        if let Some(writing) = &mut self.writing {
            writing.again = Some(now.saturating_add(wait));
        }
    }

    /// Handles a start that was not recorded.
    pub(super) fn not_recorded(&mut self, now: Millis, id: TurnId, fault: CommitFault) {
        let Some(at) = self.place(id) else { return };
        if !self.is_answer(Some(id), true) || self.stops_for(fault) {
            return;
        }
        if self.turns[at].is_leaving {
            self.write_again(now);
        } else if fault == CommitFault::Refused {
            self.writing = None;
            let error = "the store refused the turn's start".to_owned();
            self.give_up(at, codes::REFUSED, error, 1);
        } else if self.ending.is_some() {
            self.drop_turn(id);
        } else {
            self.write_again(now);
        }
    }

    /// Handles a turn that was not committed.
    pub(super) fn not_committed(&mut self, now: Millis, id: TurnId, fault: CommitFault) {
        let Some(at) = self.place(id) else { return };
        if !self.is_answer(Some(id), false) || self.stops_for(fault) {
            return;
        }
        let is_done = self.turns[at].phase == Phase::Committing(TurnEnd::Done);
        if fault == CommitFault::Unavailable || !is_done {
            self.write_again(now);
            return;
        }
        self.writing = None;
        self.write_faults = 0;
        if fault == CommitFault::Conflict {
            self.conflict(now, at);
        } else {
            let error = "the store refused what the turn changed".to_owned();
            self.fail(now, at, codes::REFUSED, error, false);
        }
    }

    /// Handles progress that was not stored.
    pub(super) fn not_saved(&mut self, now: Millis, fault: CommitFault) {
        if !self.is_answer(None, false) || self.stops_for(fault) {
            return;
        }
        if self.ending.is_some() {
            // Filtering events again is harmless.
            self.gave_up_saving = true;
            self.writing = None;
        } else {
            self.write_again(now);
        }
    }
}
