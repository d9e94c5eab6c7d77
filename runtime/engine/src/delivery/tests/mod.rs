//! Tests of the machine.

mod laws;

use super::{
    Command, CommitFault, Delivery, Input, Machine, OnDead, Policy, Progress, Recovered, Started,
    StopReason, TurnEnd, TurnId, TurnResult,
};
use crate::key::{Millis, Seq, Trigger};
use crate::retry::Retry;
use std::num::NonZeroU32;

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

fn failed(is_final: bool) -> TurnResult {
    TurnResult::Failed {
        code: "no".to_owned(),
        error: "not today".to_owned(),
        is_final,
    }
}
