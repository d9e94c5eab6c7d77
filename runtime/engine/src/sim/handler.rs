//! Handlers of a simulation: a turn's actions follow from its trigger.

use super::Fault;
use super::driver::World;
use super::random::mix;
use super::store::{Changes, Entry, Owner};
use crate::delivery::{Delivery, TurnId, TurnResult};
use crate::history::{Fact, Send};
use crate::key::Trigger;

/// The actions of a turn's handler.
#[derive(Copy, Clone)]
pub(super) struct Plan {
    value: u64,
    bits: u64,
    kills: bool,
}

impl World {
    pub(super) fn plan(&self, agent: usize, trigger: &Trigger) -> Plan {
        let at = u64::try_from(agent).unwrap_or_default();
        let (value, number) = match trigger {
            Trigger::Event(seq) => match self.entry(*seq) {
                Some(Entry::Published(value)) => (*value, *value),
                _ => (0, 0),
            },
            Trigger::Timer(_, due) => (1, *due),
            Trigger::Once(id) => {
                let low = u64::try_from(id.as_u128() & u128::from(u64::MAX)).unwrap_or_default();
                (1, low)
            }
        };
        let is_event = trigger.seq().is_some();
        Plan {
            value,
            bits: mix(number.wrapping_mul(31).wrapping_add(at)),
            kills: self.has_poison && is_event && value % 23 == 0,
        }
    }
}

/// A running handler.
#[derive(Debug)]
pub(super) struct Handler {
    pub(super) turn: TurnId,
    pub(super) trigger: Trigger,
    pub(super) phase: u8,
    pub(super) changes: Changes,
    pub(super) is_cancelled: bool,
    /// Whether its end was reported although it continues.
    pub(super) is_outlived: bool,
}

/// The result of a handler's step.
pub(super) enum Step {
    On,
    End(TurnResult),
    Kill,
}

impl Handler {
    /// Whether the next step acts immediately.
    pub(super) fn acts(&self, plan: Plan) -> bool {
        match self.phase {
            0 => plan.bits & 3 == 0,
            1 => !plan.kills && plan.bits & 4 != 0,
            2 => true,
            _ => false,
        }
    }

    pub(super) fn step(&mut self, world: &mut World, owner: Owner, plan: Plan) -> Step {
        let is_rough = world.is_rough;
        if is_rough && world.random.one_in(64) {
            return failed("turn.failed", false);
        }
        self.phase += 1;
        let held_back = world.policies[owner.agent].delivery != Delivery::AtLeastOnce;
        match self.phase {
            1 => {
                let state = &mut self.changes.state;
                state.sum = state.sum.wrapping_add(plan.value);
                self.changes.value = plan.value;
                self.changes.is_dirty = true;
                if plan.bits & 3 == 0 {
                    return self.send(world, owner, Send::Now);
                }
                Step::On
            }
            2 => {
                if plan.kills {
                    return Step::Kill;
                }
                if plan.bits & 4 == 0 {
                    self.phase = 3;
                    return Step::On;
                }
                if self.is_outlived {
                    return failed("turn.outlived", true);
                }
                match world.store.begin_step(owner, &self.trigger) {
                    Ok(true) => {}
                    Ok(false) => self.phase = 3,
                    Err(_) => return failed("store.fenced", true),
                }
                Step::On
            }
            3 if self.is_outlived => failed("turn.outlived", true),
            3 => match world.store.keep_step(owner, &self.trigger) {
                Ok(()) => Step::On,
                Err(_) => failed("store.fenced", true),
            },
            4 => {
                let fact = Fact::Effect(owner.agent, self.trigger.clone());
                world.store.facts.push(fact);
                if !held_back || world.has(Fault::SendsFirst) {
                    return self.send(world, owner, Send::Reply);
                }
                let number = if world.has(Fault::DoubtIgnored) {
                    world.counter += 1;
                    world.counter
                } else {
                    0
                };
                self.changes.sends.push((Send::Reply, number));
                Step::On
            }
            _ => {
                if plan.bits & 0xf0 == 0 {
                    world.counter += 1;
                    let wait = 1_000 * (1 + world.random.below(3)) + world.counter % 1_000;
                    let due = (world.now / 1_000) * 1_000 + wait;
                    let name = if plan.bits & 0x100 == 0 { "a" } else { "b" };
                    self.changes.timers.push((name.to_owned(), Some(due)));
                } else if plan.bits & 0xf0 == 0x10 {
                    self.changes.timers.push(("a".to_owned(), None));
                }
                let is_first = self.changes.run == 1;
                match (plan.bits >> 12) & 15 {
                    0 if is_first => failed("turn.failed", false),
                    1 => failed("turn.failed", false),
                    2 => failed("turn.failed", true),
                    _ => Step::End(TurnResult::Done),
                }
            }
        }
    }

    /// Sends immediately.
    fn send(&mut self, world: &mut World, owner: Owner, send: Send) -> Step {
        if self.is_outlived {
            // Its turn may have ended and its journal be deleted.
            return failed("turn.outlived", true);
        }
        let is_by_run = world.has(Fault::IdentityOfRun);
        let number = if is_by_run {
            self.changes.run.into()
        } else {
            0
        };
        let id = (owner.agent, self.trigger.clone(), send, number);
        match world.store.send(owner, id) {
            Ok(()) => {
                // It is sent already: committing it with the turn has no effect.
                self.changes.sends.push((send, number));
                Step::On
            }
            Err(_) => failed("store.fenced", true),
        }
    }
}

fn failed(code: &str, is_final: bool) -> Step {
    Step::End(TurnResult::Failed {
        code: code.to_owned(),
        error: String::new(),
        is_final,
    })
}
