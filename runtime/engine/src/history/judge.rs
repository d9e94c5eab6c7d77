//! Judge of histories: one pass over the facts, then the conditions at the end.

use super::{Committed, Fact, History, Kind, Origin, Send, Setup, Violation};
use crate::codes;
use crate::delivery::{Delivery, OnDead, Progress, TurnEnd};
use crate::key::{Epoch, Millis, Seq, Trigger};
use std::collections::{BTreeMap, BTreeSet};

/// Observations about a turn.
#[derive(Default)]
struct Turn {
    /// The end of its first commit.
    end: Option<Ending>,
    began: u32,
    /// The newest run, with its epoch.
    newest: (Epoch, u32),
    /// Failures in that epoch, and whether one was permanent.
    failures: u32,
    is_final: bool,
    recorded: BTreeSet<Epoch>,
    effects: u32,
    step_kept: bool,
    sent: Vec<Send>,
    was_set: bool,
    /// Whether its commit was empty because its timer was gone.
    was_gone: bool,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Ending {
    Done,
    Dead,
    Lost,
}

/// Observations about an agent.
struct Agent {
    setup: Setup,
    turns: BTreeMap<Trigger, Turn>,
    kept: Progress,
    sum: u64,
    /// The last event that was committed.
    last: Seq,
    timers: BTreeMap<String, Millis>,
    /// Committed sends, and sends in the log, in order.
    owed: Vec<(Trigger, Send)>,
    replies: Vec<Trigger>,
}

struct Judge {
    agents: Vec<Agent>,
    /// Published events: the agents that see them.
    log: Vec<Option<Vec<usize>>>,
    epoch: Epoch,
    closed: BTreeSet<Epoch>,
    doubts: BTreeSet<(usize, Epoch)>,
    found: Vec<Violation>,
}

/// Finds all guarantees that a history breaks.
#[must_use]
pub fn check(history: &History) -> Vec<Violation> {
    let agents = history.agents.iter().map(|setup| Agent {
        setup: *setup,
        turns: BTreeMap::new(),
        kept: Progress::default(),
        sum: 0,
        last: 0,
        timers: BTreeMap::new(),
        owed: Vec::new(),
        replies: Vec::new(),
    });
    let mut judge = Judge {
        agents: agents.collect(),
        log: Vec::new(),
        epoch: Epoch::default(),
        closed: BTreeSet::new(),
        doubts: BTreeSet::new(),
        found: Vec::new(),
    };
    for fact in &history.facts {
        judge.fact(fact);
    }
    if history.is_settled {
        judge.end(history);
    } else {
        judge.say(Kind::Stuck, || "something never came to rest".to_owned());
    }
    judge.found
}

impl Judge {
    fn say(&mut self, kind: Kind, text: impl FnOnce() -> String) {
        let text = text();
        self.found.push(Violation { kind, text });
    }

    fn turn(&mut self, agent: usize, trigger: &Trigger) -> &mut Turn {
        let turns = &mut self.agents[agent].turns;
        turns.entry(trigger.clone()).or_default()
    }

    fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::Opened(epoch) => self.epoch = self.epoch.max(*epoch),
            Fact::Closed(epoch) => {
                self.closed.insert(*epoch);
            }
            Fact::InDoubt(agent, epoch) => {
                self.doubts.insert((*agent, *epoch));
            }
            Fact::Appended(seq, origin) => self.appended(*seq, origin),
            Fact::Recorded(agent, epoch, trigger, progress) => {
                self.owner(*agent, *epoch);
                self.turn(*agent, trigger).recorded.insert(*epoch);
                if let Some(progress) = progress {
                    self.claim(*agent, progress);
                }
            }
            Fact::Began(agent, epoch, trigger, run) => {
                let is_once = self.agents[*agent].setup.delivery == Delivery::AtMostOnce;
                let turn = self.turn(*agent, trigger);
                turn.began += 1;
                // A handler of an interrupted owner may continue for a while.
                if *epoch >= turn.newest.0 {
                    if *epoch > turn.newest.0 || *run == 1 {
                        (turn.failures, turn.is_final) = (0, false);
                    }
                    turn.newest = (*epoch, *run);
                }
                if is_once && turn.began > 1 {
                    self.say(Kind::RanTwice, || format!("agent {agent}: {trigger}"));
                }
            }
            Fact::Failed(agent, epoch, trigger, is_final) => {
                let turn = self.turn(*agent, trigger);
                if turn.newest.0 == *epoch {
                    turn.failures += 1;
                    turn.is_final |= is_final;
                }
            }
            Fact::Effect(agent, trigger) => self.turn(*agent, trigger).effects += 1,
            Fact::Step(agent, trigger) => {
                if self.turn(*agent, trigger).step_kept {
                    self.say(Kind::StepRepeated, || format!("agent {agent}: {trigger}"));
                }
                self.acts(*agent, trigger);
            }
            Fact::StepKept(agent, trigger) => self.turn(*agent, trigger).step_kept = true,
            Fact::Committed(commit) => self.committed(commit),
            Fact::Saved(agent, epoch, progress) => {
                self.owner(*agent, *epoch);
                self.claim(*agent, progress);
            }
        }
    }

    /// Checks that only the newest owner writes.
    fn owner(&mut self, agent: usize, epoch: Epoch) {
        if epoch < self.epoch {
            let newest = self.epoch;
            self.say(Kind::OldOwner, || {
                format!("agent {agent}: wrote in epoch {epoch} after {newest} began")
            });
        }
    }

    fn appended(&mut self, seq: Seq, origin: &Origin) {
        self.log.push(match origin {
            Origin::Published(_, agents) => Some(agents.clone()),
            Origin::Sent(..) => None,
        });
        if u64::try_from(self.log.len()) != Ok(seq) {
            self.say(Kind::LogHole, || format!("{seq} was not the next"));
        }
        let Origin::Sent(agent, trigger, send) = origin else {
            return;
        };
        let holds_back = self.agents[*agent].setup.delivery != Delivery::AtLeastOnce;
        let turn = self.turn(*agent, trigger);
        let (again, end) = (turn.sent.contains(send), turn.end);
        turn.sent.push(*send);
        if again {
            let what = || format!("agent {agent}: {send:?} of {trigger}");
            self.say(Kind::SendDuplicated, what);
        }
        if *send == Send::Now {
            self.acts(*agent, trigger);
        }
        if *send == Send::Reply {
            self.agents[*agent].replies.push(trigger.clone());
            if holds_back && end != Some(Ending::Done) {
                self.say(Kind::SentEarly, || format!("agent {agent}: {trigger}"));
            }
        }
    }

    /// Checks an immediate action: under sequential exactly-once turns all earlier turns have
    /// ended.
    fn acts(&mut self, agent: usize, trigger: &Trigger) {
        let setup = self.agents[agent].setup;
        let is_strict = setup.delivery == Delivery::ExactlyOnceState && setup.concurrency == 1;
        let Some(seq) = trigger.seq().filter(|_| is_strict) else {
            return;
        };
        let seen = self.log.iter().zip(1..seq).filter(|(event, _)| {
            let agents = event.as_ref();
            agents.is_some_and(|agents| agents.contains(&agent))
        });
        if let Some((_, last)) = seen.last()
            && self.turn(agent, &Trigger::Event(last)).end.is_none()
        {
            self.say(Kind::ActedAhead, || {
                format!("agent {agent}: {trigger} before {last} was committed")
            });
        }
    }

    fn committed(&mut self, commit: &Committed) {
        let (at, trigger) = (commit.agent, &commit.trigger);
        self.owner(at, commit.epoch);
        let setup = self.agents[at].setup;
        let is_event = trigger.seq().is_some();
        let end = match commit.end {
            TurnEnd::Done => Ending::Done,
            TurnEnd::Dead { .. } => Ending::Dead,
            TurnEnd::Lost => Ending::Lost,
        };
        let turn = self.turn(at, trigger);
        let before = turn.end;
        // A lost hook may come again.
        if before.is_none_or(|before| before == Ending::Lost) {
            turn.end = Some(end);
        }
        turn.was_gone |= commit.was_gone;
        let newest = turn.newest;
        if before.is_some() {
            let kind = match trigger {
                Trigger::Timer(..) => Kind::TimerTwice,
                _ => Kind::Duplicated,
            };
            self.say(kind, || format!("agent {at}: {trigger} ended twice"));
        }
        match &commit.end {
            TurnEnd::Done => {
                self.agents[at].sum = self.agents[at].sum.wrapping_add(commit.value);
                if !commit.was_gone && newest != (commit.epoch, commit.run) {
                    self.say(Kind::Outlived, || {
                        let (epoch, run) = newest;
                        format!(
                            "agent {at}: {trigger} run {} while {run} of {epoch} began",
                            commit.run
                        )
                    });
                }
                let owed = commit.sends.iter().map(|send| (trigger.clone(), *send));
                self.agents[at].owed.extend(owed);
            }
            TurnEnd::Dead { code, attempts, .. } => self.dead(commit, code, *attempts),
            TurnEnd::Lost if setup.delivery != Delivery::AtMostOnce && is_event => {
                self.say(Kind::LostAgain, || format!("agent {at}: {trigger}"));
            }
            TurnEnd::Lost => {}
        }
        if let (Some(seq), true) = (trigger.seq(), end != Ending::Lost) {
            let last = std::mem::replace(&mut self.agents[at].last, seq);
            if setup.concurrency == 1 && last > seq {
                self.say(Kind::OutOfOrder, || {
                    format!("agent {at}: {seq} after {last}")
                });
            }
        }
        self.timers(commit);
        if let Some(progress) = &commit.progress {
            self.claim(at, progress);
        }
    }

    /// Checks that a turn was tried, or crashed the process, often enough before it was given
    /// up.
    fn dead(&mut self, commit: &Committed, code: &str, attempts: u32) {
        let (at, trigger) = (commit.agent, &commit.trigger);
        let setup = self.agents[at].setup;
        let is_once = setup.delivery == Delivery::AtMostOnce || matches!(trigger, Trigger::Once(_));
        let turn = self.turn(at, trigger);
        let (failures, is_final) = (turn.failures, turn.is_final);
        let recorded = turn.recorded.clone();
        let is_enough = match code {
            codes::KILLED_THE_PROCESS => {
                let counts = |epoch: &&Epoch| {
                    !self.closed.contains(epoch) || self.doubts.contains(&(at, **epoch))
                };
                let deaths = recorded.iter().filter(counts).count();
                let deaths = u64::try_from(deaths).unwrap_or(u64::MAX);
                attempts >= setup.max_deaths && deaths >= attempts.into()
            }
            codes::CANCELLED if is_once => true,
            _ => (failures >= setup.max_attempts || is_final || is_once) && failures >= attempts,
        };
        let stops = setup.on_dead == OnDead::Stop && !is_once;
        if !is_enough || stops {
            self.say(Kind::DeadEarly, || {
                format!("agent {at}: {trigger}: {code} after {failures} failures, {attempts} said")
            });
        }
    }

    fn timers(&mut self, commit: &Committed) {
        let (at, trigger) = (commit.agent, &commit.trigger);
        let is_single = self.agents[at].setup.concurrency == 1;
        if let Trigger::Timer(name, due) = trigger {
            let stands = self.agents[at].timers.get(name) == Some(due);
            let was_set = self.turn(at, trigger).was_set;
            // A concurrent turn may remove the timer while this one runs, and the previous turn
            // before.
            let is_done = commit.end == TurnEnd::Done && !commit.was_gone;
            if is_done && !stands && (is_single || !was_set) {
                self.say(Kind::TimerUnset, || format!("agent {at}: {trigger}"));
            }
            if stands {
                self.agents[at].timers.remove(name);
            }
        }
        for (name, due) in &commit.timers {
            match due {
                Some(due) => {
                    self.turn(at, &Trigger::Timer(name.clone(), *due)).was_set = true;
                    self.agents[at].timers.insert(name.clone(), *due);
                }
                None => {
                    self.agents[at].timers.remove(name);
                }
            }
        }
    }

    /// Checks that progress never shrinks and claims only processed events.
    fn claim(&mut self, at: usize, progress: &Progress) {
        let before = std::mem::replace(&mut self.agents[at].kept, progress.clone());
        let is_back = progress.checkpoint < before.checkpoint;
        if is_back || !before.done.iter().all(|seq| progress.has(*seq)) {
            self.say(Kind::ProgressBack, || {
                format!("agent {at}: {before:?} to {progress:?}")
            });
        }
        let head = u64::try_from(self.log.len()).unwrap_or(u64::MAX);
        let last = progress.done.last().copied().unwrap_or_default();
        if progress.checkpoint.max(last) > head {
            self.say(Kind::BeyondHead, || {
                format!("agent {at}: {progress:?} of {head}")
            });
            return;
        }
        let new =
            (before.checkpoint + 1..=progress.checkpoint).chain(progress.done.iter().copied());
        for seq in new.filter(|seq| !before.has(*seq)) {
            if self.is_seen(at, seq) && !self.is_passed(at, seq) {
                self.say(Kind::ClaimsUndone, || format!("agent {at}: {seq}"));
            }
        }
    }

    /// Whether an agent sees an event.
    fn is_seen(&self, at: usize, seq: Seq) -> bool {
        let index = usize::try_from(seq).ok().and_then(|seq| seq.checked_sub(1));
        let event = index.and_then(|index| self.log.get(index));
        matches!(event, Some(Some(agents)) if agents.contains(&at))
    }

    /// Whether an event may be claimed: it has an end, or began in a mode that does not retry
    /// it.
    fn is_passed(&self, at: usize, seq: Seq) -> bool {
        let agent = &self.agents[at];
        let is_at_most_once = agent.setup.delivery == Delivery::AtMostOnce;
        let turn = agent.turns.get(&Trigger::Event(seq));
        turn.is_some_and(|turn| {
            turn.end.is_some() || (is_at_most_once && !turn.recorded.is_empty())
        })
    }

    fn end(&mut self, history: &History) {
        let head = u64::try_from(self.log.len()).unwrap_or(u64::MAX);
        for (at, last) in history.finals.iter().enumerate() {
            let agent = &self.agents[at];
            let (sum, kept) = (agent.sum, agent.kept.clone());
            if last.sum != sum {
                self.say(Kind::WrongState, || {
                    format!("agent {at}: {} where {sum} was committed", last.sum)
                });
            }
            if last.progress != kept || (!last.is_stopped && kept.checkpoint != head) {
                self.say(Kind::Lost, || {
                    format!(
                        "agent {at}: {:?}, {kept:?} was kept, of {head}",
                        last.progress
                    )
                });
            }
            for seq in 1..=head {
                let has_end = |turn: &Turn| turn.end.is_some();
                let turn = self.agents[at].turns.get(&Trigger::Event(seq));
                let is_lost = last.progress.has(seq) && !turn.is_some_and(has_end);
                if is_lost && self.is_seen(at, seq) {
                    self.say(Kind::Lost, || format!("agent {at}: {seq} has no end"));
                }
            }
            if !last.is_stopped && !self.agents[at].timers.is_empty() {
                let timers = self.agents[at].timers.clone();
                self.say(Kind::TimerNever, || format!("agent {at}: {timers:?}"));
            }
            self.sent(at);
        }
    }

    /// Checks that all committed sends are in the log, in order.
    fn sent(&mut self, at: usize) {
        let agent = &mut self.agents[at];
        let owed = std::mem::take(&mut agent.owed);
        let replies = std::mem::take(&mut agent.replies);
        let setup = agent.setup;
        for (trigger, send) in &owed {
            if !self.turn(at, trigger).sent.contains(send) {
                self.say(Kind::SendMissing, || {
                    format!("agent {at}: {send:?} of {trigger}")
                });
            }
        }
        if setup.concurrency == 1 && setup.delivery != Delivery::AtLeastOnce {
            let promised = owed.iter().filter(|(_, send)| *send == Send::Reply);
            let promised: Vec<_> = promised.map(|(trigger, _)| trigger).collect();
            let in_order = replies.iter().filter(|trigger| promised.contains(trigger));
            if !in_order.eq(promised.iter().copied()) {
                self.say(Kind::SendOutOfOrder, || format!("agent {at}: {replies:?}"));
            }
        }
        let turns = std::mem::take(&mut self.agents[at].turns);
        for (trigger, turn) in &turns {
            let is_done = turn.end == Some(Ending::Done) && turn.began > 0 && !turn.was_gone;
            if is_done && turn.effects == 0 {
                self.say(Kind::EffectMissing, || format!("agent {at}: {trigger}"));
            }
        }
        self.agents[at].turns = turns;
    }
}
