//! Tests of the machine: a world of commands that wait for an answer.

mod clock;
mod laws;
mod rules;

use super::{
    Command, CommitFault, Delivery, Input, Machine, OnDead, Policy, Progress, Recovered, Started,
    StopReason, TurnEnd, TurnId, TurnResult,
};
use crate::key::{Millis, Seq, Trigger};
use crate::retry::Retry;
use std::num::NonZeroU32;

/// A machine under a clock that tests move.
struct World {
    machine: Machine,
    now: Millis,
}

fn policy(delivery: Delivery, concurrency: u32) -> Policy {
    Policy {
        delivery,
        concurrency: NonZeroU32::new(concurrency).expect("not zero"),
        retry: Retry {
            max_attempts: 3,
            first: 10,
            most: 1_000,
        },
        ..Policy::default()
    }
}

fn progress(checkpoint: Seq, done: &[Seq]) -> Progress {
    Progress {
        checkpoint,
        done: done.iter().copied().collect(),
    }
}

fn run(turn: u64, seq: Seq, attempt: u32) -> Command {
    let (turn, trigger) = (TurnId(turn), Trigger::Event(seq));
    Command::Run {
        turn,
        trigger,
        attempt,
    }
}

fn commit(turn: u64, seq: Seq, end: TurnEnd, progress: Option<Progress>) -> Command {
    Command::Commit {
        turn: TurnId(turn),
        trigger: Trigger::Event(seq),
        end,
        progress,
    }
}

fn record(turn: u64, trigger: Trigger, attempt: u32, progress: Option<Progress>) -> Command {
    Command::Record {
        turn: TurnId(turn),
        trigger,
        attempt,
        progress,
    }
}

fn dead(code: &str, error: &str, attempts: u32) -> TurnEnd {
    TurnEnd::Dead {
        code: code.to_owned(),
        error: error.to_owned(),
        attempts,
    }
}

fn failed(is_final: bool) -> TurnResult {
    TurnResult::Failed {
        code: "no".to_owned(),
        error: "not today".to_owned(),
        is_final,
    }
}

impl World {
    fn new(policy: Policy) -> World {
        let (world, commands) = World::load(policy, Recovered::default());
        assert_eq!(commands, []);
        world
    }

    fn load(policy: Policy, recovered: Recovered) -> (World, Vec<Command>) {
        let (machine, commands) = Machine::new(policy, recovered, 1_000);
        (
            World {
                machine,
                now: 1_000,
            },
            commands,
        )
    }

    fn input(&mut self, input: Input) -> Vec<Command> {
        self.machine.handle(self.now, input)
    }

    fn event(&mut self, seq: Seq) -> Vec<Command> {
        self.input(Input::Event { seq, deliver: true })
    }

    fn filtered(&mut self, seq: Seq) -> Vec<Command> {
        let deliver = false;
        self.input(Input::Event { seq, deliver })
    }

    fn ended(&mut self, turn: u64, attempt: u32, result: TurnResult) -> Vec<Command> {
        self.input(Input::Ended(TurnId(turn), attempt, result))
    }

    fn done(&mut self, turn: u64, attempt: u32) -> Vec<Command> {
        self.ended(turn, attempt, TurnResult::Done)
    }

    fn committed(&mut self, turn: u64) -> Vec<Command> {
        self.input(Input::Committed(TurnId(turn)))
    }

    fn fault(&mut self, turn: u64, fault: CommitFault) -> Vec<Command> {
        self.input(Input::NotCommitted(TurnId(turn), fault))
    }

    fn recorded(&mut self, turn: u64) -> Vec<Command> {
        self.input(Input::Recorded(TurnId(turn)))
    }

    fn later(&mut self, millis: Millis) -> Vec<Command> {
        self.now += millis;
        self.input(Input::Time)
    }

    /// The clock is set back.
    fn set_back(&mut self, millis: Millis) -> Vec<Command> {
        self.now -= millis;
        self.input(Input::Time)
    }
}
