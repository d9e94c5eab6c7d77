//! Writes of a machine: one under way at a time, each with what it claims of the stream.

use super::machine::{Item, Machine};
use super::turns::Phase;
use super::{Command, CommitFault, Delivery, Progress, TurnEnd, TurnId};
use crate::codes;
use crate::key::{Millis, Trigger};
use crate::retry::Retry;

/// Waits before a write is made again: from a tenth of a second up, for ever.
const BACK_OFF: Retry = Retry {
    max_attempts: u32::MAX,
    first: 100,
    most: 30_000,
};

/// A write that is under way, or is made again.
#[derive(Clone, Debug)]
pub(super) struct Writing {
    /// The turn; none if only progress is kept.
    pub(super) subject: Option<TurnId>,
    /// What it claims.
    claimed: Option<Progress>,
    /// When it is made again; none while it is under way.
    pub(super) again: Option<Millis>,
}

impl Machine {
    /// Whether a turn is being written.
    pub(super) fn is_under_way(&self, id: TurnId) -> bool {
        let writing = self.writing.as_ref();
        writing.is_some_and(|writing| writing.subject == Some(id) && writing.again.is_none())
    }

    /// Begins the next write, if none is under way.
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

    /// The next turn to be written. Where one conflicted often, others that change the state
    /// wait for it: those that begin later would come first each time.
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

    /// Whether progress that no turn commits is to be kept now.
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
        // Of a start that is only written ahead, nothing is done.
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

    /// The write that is under way was made; what it claimed holds.
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

    /// After the first turn was committed: what is in no log and did not come by then, will
    /// not come.
    fn settle(&mut self) {
        // What is at most once was listed at once.
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

    /// Whether an answer is one to the write that is under way.
    fn is_answer(&self, subject: Option<TurnId>, is_record: bool) -> bool {
        let writing = self.writing.as_ref();
        let is_under_way =
            writing.is_some_and(|writing| writing.subject == subject && writing.again.is_none());
        let phase = subject
            .and_then(|id| self.place(id))
            .map(|at| &self.turns[at].phase);
        is_under_way && (phase == Some(&Phase::Recording)) == is_record
    }

    /// Makes the write again, later.
    fn write_again(&mut self, now: Millis) {
        self.write_faults = self.write_faults.saturating_add(1);
        let wait = BACK_OFF.after(self.write_faults).unwrap_or(BACK_OFF.most);
        if let Some(writing) = &mut self.writing {
            writing.again = Some(now.saturating_add(wait));
        }
    }

    /// A start was not recorded.
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

    /// A turn was not committed.
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

    /// Progress was not kept.
    pub(super) fn not_saved(&mut self, now: Millis, fault: CommitFault) {
        if !self.is_answer(None, false) || self.stops_for(fault) {
            return;
        }
        if self.ending.is_some() {
            // Events that are filtered again do no harm.
            self.gave_up_saving = true;
            self.writing = None;
        } else {
            self.write_again(now);
        }
    }
}
