//! Driver of a simulation: executes one agent's commands, one small step at a time.

use super::Fault;
use super::group_commit::GroupCommit;
use super::handler::{Handler, Step};
use super::random::{Random, mix};
use super::store::{Changes, Entry, Owner, State, Store};
use crate::delivery::{
    Command, CommitFault, Delivery, Input, Machine, Policy, Progress, Recovered, StopReason,
    TurnEnd, TurnId, TurnResult,
};
use crate::history::Fact;
use crate::key::{Epoch, Millis, Seq, Trigger};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// State shared by all processes of a simulation.
#[derive(Debug)]
pub(super) struct World {
    pub(super) store: Store,
    pub(super) random: Random,
    pub(super) now: Millis,
    pub(super) policies: Vec<Policy>,
    pub(super) fault: Option<Fault>,
    /// Whether disks, handlers and processes fail.
    pub(super) is_rough: bool,
    /// Whether some events crash the process.
    pub(super) has_poison: bool,
    pub(super) counter: u64,
    /// Agents whose last group commit failed.
    pub(super) is_careful: BTreeSet<usize>,
}

/// Whether an agent sees a published event.
pub(super) fn is_seen(agent: usize, value: u64) -> bool {
    let agent = u64::try_from(agent).unwrap_or_default();
    mix(value ^ (agent << 40)) & 3 != 0
}

impl World {
    pub(super) fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    pub(super) fn entry(&self, seq: Seq) -> Option<&Entry> {
        let index = usize::try_from(seq).ok()?.checked_sub(1)?;
        self.store.log.get(index)
    }
}

/// A write in flight.
#[derive(Debug)]
struct Write {
    command: Command,
    changes: Option<Changes>,
    /// Whether the state was written separately from the rest.
    is_half: bool,
    result: Option<Result<(), CommitFault>>,
}

/// An agent that is loaded.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) owner: Owner,
    pub(super) machine: Machine,
    handlers: Vec<Handler>,
    /// Changes of ended attempts.
    pub(super) ended: Vec<(TurnId, Changes)>,
    pub(super) newest: BTreeMap<TurnId, u32>,
    write: Option<Write>,
    pub(super) wake: Option<Millis>,
    pub(super) stop: Option<StopReason>,
    pub(super) state: State,
    pub(super) ahead: GroupCommit,
}

impl Active {
    pub(super) fn load(world: &mut World, agent: usize, epoch: Epoch, was_cut_off: bool) -> Active {
        let ahead = GroupCommit::of(world, agent, was_cut_off);
        let row = &world.store.rows[agent];
        let recovered = Recovered {
            progress: row.progress.clone(),
            started: world.store.started(agent),
            was_cut_off,
        };
        let (machine, commands) = Machine::new(world.policies[agent], recovered, world.now);
        let mut active = Active {
            ahead,
            owner: Owner { agent, epoch },
            machine,
            handlers: Vec::new(),
            ended: Vec::new(),
            newest: BTreeMap::new(),
            write: None,
            wake: None,
            stop: None,
            state: row.state,
        };
        active.execute(world, commands);
        active
    }

    pub(super) fn input(&mut self, world: &mut World, input: Input) {
        let commands = self.machine.handle(world.now, input);
        self.execute(world, commands);
    }

    pub(super) fn execute(&mut self, world: &mut World, commands: Vec<Command>) {
        let mut commands = VecDeque::from(commands);
        while let Some(command) = commands.pop_front() {
            if self.waits(&command) {
                self.ahead.later.push_back(command);
                continue;
            }
            let answer = match command {
                Command::Run {
                    turn,
                    trigger,
                    attempt,
                } => self.run(world, turn, trigger, attempt),
                Command::Record { turn, .. } if world.has(Fault::RunUnrecorded) => {
                    Some(Input::Recorded(turn))
                }
                Command::Commit {
                    turn,
                    trigger,
                    end,
                    progress,
                } if self.may_hold(turn, &trigger, &end) => self.hold(turn, trigger, progress),
                Command::Record { .. } | Command::Commit { .. } | Command::Save(_) => {
                    self.begin_write(world, command);
                    None
                }
                Command::Cancel(turn) => {
                    let handlers = self.handlers.iter_mut();
                    handlers
                        .filter(|handler| handler.turn == turn)
                        .for_each(|handler| handler.is_cancelled = true);
                    None
                }
                Command::WakeAt(at) => {
                    self.wake = Some(at);
                    None
                }
                Command::Lost(_) => None,
                Command::Stop(reason) => {
                    self.stop = Some(reason);
                    None
                }
            };
            if let Some(answer) = answer {
                commands.extend(self.machine.handle(world.now, answer));
            }
        }
    }

    /// The changes of a turn's newest attempt.
    pub(super) fn changes_of(&self, turn: TurnId) -> Option<&Changes> {
        let of_turn = self.ended.iter().filter(|(id, _)| *id == turn);
        let newest = of_turn.max_by_key(|(_, changes)| changes.run);
        newest.map(|(_, changes)| changes)
    }

    fn run(
        &mut self,
        world: &mut World,
        turn: TurnId,
        trigger: Trigger,
        run: u32,
    ) -> Option<Input> {
        let agent = self.owner.agent;
        let mut changes = Changes {
            run,
            state: self.state,
            ..Changes::default()
        };
        if let Trigger::Timer(name, due) = &trigger
            && world.store.rows[agent].timers.get(name) != Some(due)
        {
            changes.was_gone = true;
            self.ended.push((turn, changes));
            return Some(Input::Ended(turn, run, TurnResult::Done));
        }
        if let (Some(seq), true) = (trigger.seq(), world.has(Fault::ProgressFirst)) {
            let mut progress = self.machine.progress().clone();
            progress.add(seq);
            // The early write's result is ignored.
            let _ = world.store.save(self.owner, &progress);
        }
        let fact = Fact::Began(agent, self.owner.epoch, trigger.clone(), run);
        world.store.facts.push(fact);
        self.newest.insert(turn, run);
        self.handlers.push(Handler {
            turn,
            trigger,
            phase: 0,
            changes,
            is_cancelled: false,
            is_outlived: false,
        });
        None
    }

    fn begin_write(&mut self, world: &World, mut command: Command) {
        let mut changes = None;
        match &mut command {
            Command::Record { turn, .. } => self.ahead.recorded = Some(*turn),
            Command::Commit {
                turn,
                trigger,
                end,
                progress,
            } => {
                if *end == TurnEnd::Done {
                    changes = self.changes_of(*turn).cloned();
                    if let (Some(changes), true) = (&mut changes, self.ahead.most > 1) {
                        changes.state.revision = self.state.revision;
                    }
                }
                if let (Some(progress), Some(seq), true) =
                    (progress, trigger.seq(), world.has(Fault::ProgressJumps))
                {
                    *progress = up_to(progress.checkpoint.max(seq));
                }
            }
            Command::Save(progress) if world.has(Fault::SavesTaken) => {
                *progress = up_to(self.machine.taken());
            }
            _ => {}
        }
        self.write = Some(Write {
            command,
            changes,
            is_half: false,
            result: None,
        });
    }

    /// Advances the write in flight: executes it, or reports its result.
    pub(super) fn step_write(&mut self, world: &mut World) {
        self.step_ahead(world);
        let Some(mut write) = self.write.take() else {
            return;
        };
        if write.result.is_none() {
            let fate = if world.is_rough {
                world.random.below(48)
            } else {
                48
            };
            match fate {
                0 | 1 => write.result = Some(Err(CommitFault::Unavailable)),
                2 => write.result = Some(Err(CommitFault::InDoubt)),
                3 => {
                    self.apply(world, &mut write);
                    let is_made = write.result == Some(Ok(()));
                    write.result = is_made
                        .then_some(Err(CommitFault::InDoubt))
                        .or(write.result);
                }
                4 if matches!(
                    write.command,
                    Command::Commit {
                        end: TurnEnd::Done,
                        ..
                    }
                ) =>
                {
                    write.result = Some(Err(CommitFault::Refused));
                }
                _ => self.apply(world, &mut write),
            }
        }
        let is_told = write.result.is_some() && (!world.is_rough || world.random.one_in(2));
        if is_told {
            self.answer(world, write);
        } else {
            self.write = Some(write);
        }
    }

    /// A crash: the write in flight happens or not.
    pub(super) fn cut_off(mut self, world: &mut World) {
        if let Some(mut write) = self.write.take()
            && write.result.is_none()
            && world.random.one_in(2)
            && !write.is_half
        {
            self.apply(world, &mut write);
        }
    }

    fn apply(&self, world: &mut World, write: &mut Write) {
        let store = &mut world.store;
        let result = match &write.command {
            Command::Record {
                trigger,
                attempt,
                progress,
                ..
            } => store.record(self.owner, trigger, *attempt, progress.as_ref()),
            Command::Commit {
                trigger,
                end,
                progress,
                ..
            } => {
                if let (Some(changes), false, Some(Fault::CommitsApart)) =
                    (&mut write.changes, write.is_half, world.fault)
                {
                    write.is_half = true;
                    match store.commit_state(self.owner, changes) {
                        Ok(()) => {
                            changes.is_dirty = false;
                            return;
                        }
                        Err(fault) => Err(fault),
                    }
                } else {
                    let changes = write.changes.as_ref();
                    store.commit(self.owner, trigger, end, progress.as_ref(), changes)
                }
            }
            Command::Save(progress) => store.save(self.owner, progress),
            _ => Ok(()),
        };
        write.result = Some(result);
    }

    fn answer(&mut self, world: &mut World, write: Write) {
        let mut result = write.result.unwrap_or(Ok(()));
        if result == Err(CommitFault::InDoubt) {
            let fact = Fact::InDoubt(self.owner.agent, self.owner.epoch);
            world.store.facts.push(fact);
        }
        if result == Err(CommitFault::InDoubt) && world.has(Fault::DoubtIgnored) {
            result = Err(CommitFault::Unavailable);
        }
        if result.is_ok() && world.has(Fault::DirtyCleared) {
            let running = self.handlers.iter_mut().map(|handler| &mut handler.changes);
            let ended = self.ended.iter_mut().map(|(_, changes)| changes);
            running
                .chain(ended)
                .for_each(|changes| changes.is_dirty = false);
        }
        let input = match (write.command, result) {
            (Command::Record { turn, .. }, Ok(())) => Input::Recorded(turn),
            (Command::Record { turn, .. }, Err(fault)) => Input::NotRecorded(turn, fault),
            (Command::Commit { turn, trigger, .. }, Ok(())) => {
                self.ahead.one_by_one = self.ahead.one_by_one.saturating_sub(1);
                if let Some(changes) = write.changes.filter(|changes| !changes.was_gone) {
                    self.state = changes.state;
                    self.state.revision += 1;
                }
                self.ended.retain(|(id, _)| *id != turn);
                self.newest.remove(&turn);
                if world.has(Fault::TimerKept) {
                    world.store.remove_timer(self.owner.agent, &trigger);
                }
                Input::Committed(turn)
            }
            (Command::Commit { turn, trigger, .. }, Err(fault)) => {
                let agent = self.owner.agent;
                let is_once = world.policies[agent].delivery == Delivery::AtMostOnce;
                let is_conflict = fault == CommitFault::Conflict;
                if is_conflict {
                    self.state = world.store.rows[agent].state;
                }
                if is_conflict || fault == CommitFault::Refused {
                    self.ended.retain(|(id, _)| *id != turn);
                }
                if fault == CommitFault::Refused || (is_conflict && is_once) {
                    let fact = Fact::Failed(agent, self.owner.epoch, trigger, false);
                    world.store.facts.push(fact);
                }
                Input::NotCommitted(turn, fault)
            }
            (_, Ok(())) => Input::Saved,
            (_, Err(fault)) => Input::NotSaved(fault),
        };
        self.input(world, input);
    }

    /// Reads events of the log, some repeatedly, some too early.
    pub(super) fn read(&mut self, world: &mut World) {
        let taken = self.machine.taken();
        let head = world.store.head();
        let room = u64::try_from(self.machine.room()).unwrap_or(u64::MAX);
        let most = if world.is_rough {
            world.random.below(5)
        } else {
            64
        };
        let upto = taken + most.min(head.saturating_sub(taken)).min(room);
        if world.is_rough && world.random.one_in(6) && head > 0 {
            let any = 1 + world.random.below(head);
            self.event(world, any);
        }
        for seq in taken + 1..=upto {
            self.event(world, seq);
        }
    }

    fn event(&mut self, world: &mut World, seq: Seq) {
        let deliver = match world.entry(seq) {
            Some(Entry::Published(value)) => is_seen(self.owner.agent, *value),
            _ => false,
        };
        self.input(world, Input::Event { seq, deliver });
    }

    /// Wakes the machine, and reports due timers.
    pub(super) fn wake(&mut self, world: &mut World) {
        if self.wake.is_some_and(|at| at <= world.now) {
            self.wake = None;
            self.input(world, Input::Time);
        }
        let timers = world.store.rows[self.owner.agent].timers.iter();
        let due: Vec<Trigger> = timers
            .filter(|(_, due)| **due <= world.now)
            .map(|(name, due)| Trigger::Timer(name.clone(), *due))
            .collect();
        for trigger in due {
            self.input(world, Input::Trigger(trigger));
        }
    }

    /// Advances a handler. Gives whether it crashes the process.
    pub(super) fn step_handler(&mut self, world: &mut World) -> bool {
        let Some(at) = world.random.place(self.handlers.len()) else {
            return false;
        };
        let plan = world.plan(self.owner.agent, &self.handlers[at].trigger);
        let is_ahead = !self.ahead.held.is_empty() && !world.has(Fault::ActsAhead);
        if is_ahead && self.handlers[at].acts(plan) {
            self.keep_held(world);
            return false;
        }
        let handler = &mut self.handlers[at];
        let step = if handler.is_cancelled && !world.random.one_in(4) {
            Step::End(TurnResult::Cancelled)
        } else {
            handler.step(world, self.owner, plan)
        };
        let mut result = match step {
            Step::Kill => return true,
            Step::End(result) => Some(result),
            Step::On => None,
        };
        let is_late = world.is_rough && !handler.is_outlived && world.random.one_in(60);
        if is_late && result.is_none() {
            // It timed out. Some handlers do not notice.
            result = Some(TurnResult::Cancelled);
            handler.is_outlived = world.random.one_in(2);
            if handler.is_outlived {
                self.tell(world, at, TurnResult::Cancelled);
                return false;
            }
        }
        if let Some(result) = result {
            self.tell(world, at, result);
            // The report may begin other handlers; they are appended after this one.
            self.handlers.remove(at);
        }
        false
    }

    /// Reports the end of an attempt.
    fn tell(&mut self, world: &mut World, at: usize, result: TurnResult) {
        let handler = &self.handlers[at];
        let (turn, trigger, run) = (handler.turn, handler.trigger.clone(), handler.changes.run);
        let mut told = run;
        if result == TurnResult::Done {
            self.ended.push((turn, handler.changes.clone()));
            if world.has(Fault::OutlivedTold) {
                told = self.newest.get(&turn).copied().unwrap_or(run);
            }
        } else if self.newest.get(&turn) == Some(&run) {
            let is_final = matches!(result, TurnResult::Failed { is_final: true, .. });
            let fact = Fact::Failed(self.owner.agent, self.owner.epoch, trigger, is_final);
            world.store.facts.push(fact);
            if world.has(Fault::FailedStateKept) && handler.phase > 0 {
                self.state.sum = handler.changes.state.sum;
            }
        }
        self.input(world, Input::Ended(turn, told, result));
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.machine.is_idle()
            && self.handlers.is_empty()
            && self.write.is_none()
            && self.ahead.held.is_empty()
            && self.ahead.later.is_empty()
    }

    pub(super) fn taken(&self) -> Seq {
        self.machine.taken()
    }
}

fn up_to(checkpoint: Seq) -> Progress {
    Progress {
        checkpoint,
        ..Progress::default()
    }
}
