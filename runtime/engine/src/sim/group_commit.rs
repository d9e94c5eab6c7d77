//! Group commit in a simulation: the machine believes several turns committed before they are.

use super::Fault;
use super::driver::{Active, World};
use super::store::Changes;
use crate::delivery::{Command, CommitFault, Input, Progress, StopReason, TurnEnd, TurnId};
use crate::history::Fact;
use crate::key::Trigger;
use std::collections::VecDeque;

/// Turns that the machine believes committed, ahead of the store.
#[derive(Debug, Default)]
pub(super) struct GroupCommit {
    pub(super) most: usize,
    /// Turns that still commit alone.
    pub(super) one_by_one: usize,
    /// The turn whose start is recorded.
    pub(super) recorded: Option<TurnId>,
    pub(super) held: Vec<(Trigger, Option<Progress>, Changes)>,
    /// Commands that wait until the turns are durable.
    pub(super) later: VecDeque<Command>,
}

impl GroupCommit {
    /// For an agent that was loaded.
    pub(super) fn of(world: &mut World, agent: usize, was_cut_off: bool) -> GroupCommit {
        let most = match world.is_careful.remove(&agent) {
            true => 1,
            false => world.policies[agent].joined(),
        };
        GroupCommit {
            most,
            one_by_one: if was_cut_off { most } else { 0 },
            ..GroupCommit::default()
        }
    }
}

impl Active {
    /// Whether a command must wait until the held turns are durable.
    pub(super) fn waits(&self, command: &Command) -> bool {
        let joins = match command {
            Command::Commit {
                turn, trigger, end, ..
            } => self.may_hold(*turn, trigger, end),
            _ => false,
        };
        let needs_kept = command.needs_kept() && !joins;
        !self.ahead.later.is_empty() || (needs_kept && !self.ahead.held.is_empty())
    }

    pub(super) fn may_hold(&self, turn: TurnId, trigger: &Trigger, end: &TurnEnd) -> bool {
        self.ahead.most > 1
            && self.ahead.one_by_one == 0
            && self.ahead.recorded != Some(turn)
            && *end == TurnEnd::Done
            && trigger.seq().is_some()
            && self.changes_of(turn).is_some()
    }

    /// Holds the commit of a turn. Its changes apply to the agent from now on.
    pub(super) fn hold(
        &mut self,
        turn: TurnId,
        trigger: Trigger,
        progress: Option<Progress>,
    ) -> Option<Input> {
        let mut changes = self.changes_of(turn)?.clone();
        changes.state.revision = self.state.revision;
        self.state.sum = changes.state.sum;
        self.ended.retain(|(id, _)| *id != turn);
        self.newest.remove(&turn);
        self.ahead.held.push((trigger, progress, changes));
        Some(Input::Committed(turn))
    }

    /// Stores the held turns, then executes the queued commands.
    pub(super) fn keep_held(&mut self, world: &mut World) {
        let held = std::mem::take(&mut self.ahead.held);
        let fate = match world.is_rough && !held.is_empty() {
            true => world.random.below(24),
            false => 24,
        };
        let kept = match fate {
            0 => Err(CommitFault::Unavailable),
            1 => Err(CommitFault::InDoubt),
            2 => Err(CommitFault::Refused),
            3 => {
                let kept = world.store.commit_joined(self.owner, &held);
                kept.and(Err(CommitFault::InDoubt))
            }
            _ => world.store.commit_joined(self.owner, &held),
        };
        match kept {
            Err(_) if world.has(Fault::HeldForgotten) => {}
            Ok(()) => {
                let is_dirty = held.iter().any(|(.., changes)| changes.is_dirty);
                self.state.revision += u64::from(is_dirty);
            }
            Err(fault) => {
                if fault == CommitFault::InDoubt {
                    let fact = Fact::InDoubt(self.owner.agent, self.owner.epoch);
                    world.store.facts.push(fact);
                }
                self.ahead.later.clear();
                world.is_careful.insert(self.owner.agent);
                self.stop = Some(match fault {
                    CommitFault::Fenced => StopReason::Fenced,
                    _ => StopReason::Reload,
                });
                return;
            }
        }
        let later = Vec::from(std::mem::take(&mut self.ahead.later));
        self.execute(world, later);
    }

    /// Advances the part that is ahead of the store by a step.
    pub(super) fn step_ahead(&mut self, world: &mut World) {
        if !self.ahead.held.is_empty() || !self.ahead.later.is_empty() {
            self.keep_held(world);
        }
    }
}
