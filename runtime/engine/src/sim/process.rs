//! Processes of a simulation: ownership of the store, crashes, and the next step.

use super::Fault;
use super::driver::{Active, World, is_seen};
use super::random::Random;
use super::store::{Id, Store};
use crate::delivery::{Delivery, Input, OnDead, Policy, StopReason};
use crate::history::{History, Setup};
use crate::key::{Epoch, Trigger};
use crate::retry::Retry;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use uuid::Uuid;

/// Turns of a group commit.
const JOINED: NonZeroU32 = NonZeroU32::new(3).unwrap();

/// A process that has opened the store.
#[derive(Debug)]
struct Process {
    epoch: Epoch,
    agents: Vec<Option<Active>>,
    /// Agents that were interrupted and not loaded since.
    cut_off: Vec<bool>,
    /// Agents that stopped before a turn that was given up.
    dead: Vec<bool>,
    is_ending: bool,
    /// Events that were relayed and are still in the outbox.
    relayed: Vec<(usize, Id)>,
}

/// A world with its processes: the owner, and stale owners that have not noticed yet.
#[derive(Debug)]
pub(super) struct Simulation {
    world: World,
    owner: Process,
    old: Option<Process>,
    to_publish: u64,
    steps: u64,
}

impl Process {
    fn open(world: &mut World) -> Process {
        let (epoch, was_cut_off) = world.store.open();
        let agents = world.policies.len();
        Process {
            epoch,
            agents: (0..agents).map(|_| None).collect(),
            cut_off: vec![was_cut_off; agents],
            dead: vec![false; agents],
            is_ending: false,
            relayed: Vec::new(),
        }
    }

    fn load(&mut self, world: &mut World, agent: usize) {
        if self.agents[agent].is_none() && !self.dead[agent] && !self.is_ending {
            let was_cut_off = std::mem::take(&mut self.cut_off[agent]);
            self.agents[agent] = Some(Active::load(world, agent, self.epoch, was_cut_off));
        }
        self.reap(agent);
    }

    /// Removes an agent that stopped.
    fn reap(&mut self, agent: usize) {
        let Some(reason) = self.agents[agent].as_ref().and_then(|active| active.stop) else {
            return;
        };
        self.agents[agent] = None;
        self.dead[agent] |= matches!(reason, StopReason::Dead | StopReason::Fenced);
    }

    /// Advances an agent. Gives whether that crashes the process.
    fn step(&mut self, world: &mut World, agent: usize, what: u64) -> bool {
        self.load(world, agent);
        let Some(active) = &mut self.agents[agent] else {
            return false;
        };
        let mut kills = false;
        match what {
            0 | 1 => active.read(world),
            2..=8 => kills = active.step_handler(world),
            _ => active.step_write(world),
        }
        self.reap(agent);
        kills
    }

    fn wake(&mut self, world: &mut World) {
        for agent in 0..self.agents.len() {
            if let Some(active) = &mut self.agents[agent] {
                active.wake(world);
            }
            self.reap(agent);
        }
    }

    fn relay(&mut self, world: &mut World, agent: usize) {
        if let Some((agent, id)) = self.relayed.pop() {
            world.store.append_late(id.clone());
            world.store.relayed(agent, &id);
        } else if let Some(id) = world.store.relay(agent) {
            self.relayed.push((agent, id));
        }
    }

    /// Gives all agents an input.
    fn tell(&mut self, world: &mut World, input: &Input) {
        self.is_ending = true;
        for agent in 0..self.agents.len() {
            if let Some(active) = &mut self.agents[agent] {
                active.input(world, input.clone());
            }
            self.reap(agent);
        }
    }

    fn cut_off(self, world: &mut World) {
        for active in self.agents.into_iter().flatten() {
            active.cut_off(world);
        }
    }
}

impl Simulation {
    pub(super) fn new(seed: u64, fault: Option<Fault>) -> Simulation {
        let mut random = Random::new(seed);
        let agents = 1 + random.place(3).unwrap_or_default();
        let policies: Vec<Policy> = (0..agents).map(|_| a_policy(&mut random)).collect();
        let is_remote = random.one_in(3);
        let has_poison = random.one_in(4);
        let mut world = World {
            store: Store::new(agents, is_remote, fault),
            now: 1_000_000,
            policies,
            fault,
            is_rough: true,
            has_poison,
            counter: 0,
            is_careful: BTreeSet::new(),
            random,
        };
        let owner = Process::open(&mut world);
        let to_publish = 2 + world.random.below(14);
        let steps = 40 + world.random.below(160);
        Simulation {
            world,
            owner,
            old: None,
            to_publish,
            steps,
        }
    }

    /// Runs the simulation until it rests.
    pub(super) fn history(mut self) -> History {
        for _ in 0..self.steps {
            self.step();
        }
        self.world.is_rough = false;
        if let Some(old) = self.old.take() {
            old.cut_off(&mut self.world);
        }
        while self.to_publish > 0 {
            self.publish();
        }
        let is_settled = self.settle();
        let world = &mut self.world;
        let setups = world.policies.iter().map(setup);
        let dead = self.owner.dead.iter().enumerate();
        History {
            agents: setups.collect(),
            finals: dead
                .map(|(agent, dead)| world.store.last(agent, *dead))
                .collect(),
            facts: std::mem::take(&mut world.store.facts),
            is_settled,
        }
    }

    fn publish(&mut self) {
        let value = 1 + self.world.random.below(1 << 30);
        let agents = 0..self.world.policies.len();
        let agents = agents.filter(|agent| is_seen(*agent, value)).collect();
        self.world.store.publish(value, agents);
        self.to_publish -= 1;
    }

    /// A random step.
    fn step(&mut self) {
        let what = self.world.random.below(32);
        let agent = self.world.random.place(self.owner.agents.len());
        let agent = agent.unwrap_or_default();
        let world = &mut self.world;
        match what {
            0..=14 if self.owner.step(world, agent, what) => self.crash(),
            0..=14 => {}
            15..=18 if self.old.is_some() => {
                let what = self.world.random.below(15);
                self.old_goes_on(agent, what);
            }
            19..=21 if self.to_publish > 0 => self.publish(),
            22..=25 => {
                world.now += world.random.below(1_500);
                self.owner.wake(world);
                if let Some(old) = &mut self.old {
                    old.wake(world);
                }
            }
            26 | 27 => self.owner.relay(world, agent),
            28 => {
                let id = Trigger::Once(Uuid::from_u64_pair(7, world.random.number()));
                if let Some(active) = &mut self.owner.agents[agent] {
                    active.input(world, Input::Trigger(id));
                }
                self.owner.reap(agent);
            }
            29 => {
                if let Some(active) = &mut self.owner.agents[agent]
                    && active.is_at_rest()
                {
                    active.input(world, Input::Drain);
                }
                self.owner.reap(agent);
            }
            30 => match world.random.below(6) {
                0 | 1 => self.crash(),
                2 => self.take_over(),
                3 => self.owner.tell(world, &Input::Drain),
                4 => self.owner.tell(world, &Input::Halt),
                _ => {}
            },
            _ => {}
        }
        self.close();
    }

    /// Closes the store of a process that was asked to end and whose agents have stopped.
    fn close(&mut self) {
        if self.owner.is_ending && self.owner.agents.iter().all(Option::is_none) {
            self.world.store.close();
            self.owner = Process::open(&mut self.world);
        }
    }

    fn crash(&mut self) {
        for active in std::mem::take(&mut self.owner.agents).into_iter().flatten() {
            active.cut_off(&mut self.world);
        }
        self.owner = Process::open(&mut self.world);
    }

    /// Another owner opens the store while this one continues.
    fn take_over(&mut self) {
        let new = Process::open(&mut self.world);
        let before = std::mem::replace(&mut self.owner, new);
        if let Some(old) = self.old.replace(before) {
            old.cut_off(&mut self.world);
        }
    }

    fn old_goes_on(&mut self, agent: usize, what: u64) {
        let Some(mut old) = self.old.take() else {
            return;
        };
        if old.step(&mut self.world, agent, what) || self.world.random.one_in(40) {
            old.cut_off(&mut self.world);
        } else {
            self.old = Some(old);
        }
    }

    /// Runs without faults until no work is left. Gives whether that point was reached.
    fn settle(&mut self) -> bool {
        let agents = self.owner.agents.len();
        for _ in 0..2_000 {
            self.close();
            let mut at_rest = true;
            for agent in 0..agents {
                let mut kills = false;
                for what in [0, 2, 9] {
                    kills |= self.owner.step(&mut self.world, agent, what);
                }
                if kills {
                    self.crash();
                }
                self.owner.relay(&mut self.world, agent);
                self.owner.relay(&mut self.world, agent);
            }
            let head = self.world.store.head();
            for agent in 0..agents {
                at_rest &= self.world.store.rows[agent].outbox.is_empty();
                at_rest &= match &self.owner.agents[agent] {
                    Some(active) => active.is_at_rest() && active.taken() == head,
                    None => self.owner.dead[agent],
                };
            }
            let wakes = self.owner.agents.iter().flatten();
            let wakes = wakes.filter_map(|active| active.wake);
            let rows = self.world.store.rows.iter().enumerate();
            let rows = rows.filter(|(agent, _)| !self.owner.dead[*agent]);
            let timers = rows.flat_map(|(_, row)| row.timers.values().copied());
            let now = self.world.now;
            at_rest &= timers.clone().all(|due| due > now);
            let next = wakes.chain(timers).filter(|at| *at > now).min();
            if at_rest && next.is_none() {
                return self.world.is_kept(&self.owner.dead);
            }
            self.world.now = next.unwrap_or(now);
            self.owner.wake(&mut self.world);
        }
        false
    }
}

impl World {
    /// Whether progress is stored up to the head: lazy progress is stored eventually.
    fn is_kept(&self, dead: &[bool]) -> bool {
        let head = self.store.head();
        let rows = self.store.rows.iter().zip(dead);
        rows.into_iter()
            .all(|(row, dead)| *dead || row.progress.checkpoint == head)
    }
}

fn a_policy(random: &mut Random) -> Policy {
    let delivery = match random.below(4) {
        0 => Delivery::AtMostOnce,
        1 => Delivery::AtLeastOnce,
        _ => Delivery::ExactlyOnceState,
    };
    let slots =
        1 + u32::try_from(random.below(3)).unwrap_or_default() * u32::from(random.one_in(2));
    let is_strict = random.one_in(10);
    Policy {
        delivery,
        concurrency: NonZeroU32::new(slots).unwrap_or(NonZeroU32::MIN),
        retry: Retry {
            max_attempts: 3,
            first: 500,
            most: 4_000,
        },
        on_dead: if is_strict {
            OnDead::Stop
        } else {
            OnDead::Continue
        },
        max_queued: if random.one_in(3) { 3 } else { 64 },
        turns_per_commit: if random.one_in(2) {
            JOINED
        } else {
            NonZeroU32::MIN
        },
        ..Policy::default()
    }
}

fn setup(policy: &Policy) -> Setup {
    Setup {
        delivery: policy.delivery,
        concurrency: policy.concurrency.get(),
        max_attempts: policy.retry.max_attempts,
        max_deaths: policy.max_deaths,
        on_dead: policy.on_dead,
    }
}
