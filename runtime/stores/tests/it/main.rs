//! Stores of agents and channels: what holds for all of them, and what becomes of a file.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod claims;
mod conformance;
mod cuts;
mod file;
mod model;
mod power;
mod processes;
mod restored;
mod table_limits;
mod tables;
mod two_files;

use a99_capabilities::block_on;
use a99_runtime_engine::{
    AgentKey, AgentStore, Body, ChannelStore, Fence, Message, NewEvent, NewState, Progress, Sender,
    Trigger, TurnCommit, derived,
};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use std::path::Path;
use std::sync::Arc;

/// A small generator of numbers (xorshift), so that a seed tells the whole run.
struct Dice(u64);

impl Dice {
    fn of(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn open(path: &Path) -> SqliteRuntime {
    SqliteRuntime::open(path, StoreOptions::default()).unwrap()
}

fn key(text: &str) -> AgentKey {
    text.parse().unwrap()
}

fn fence(store: &SqliteRuntime, key: &AgentKey) -> Fence {
    Fence {
        key: key.clone(),
        epoch: store.epoch(key),
    }
}

/// What an agent says, under the identity of some text.
fn event(key: &AgentKey, id: &str, text: &str) -> NewEvent {
    let (sender, body) = (
        Arc::new(Sender::agent(key)),
        Body::Message(Message::text(text)),
    );
    NewEvent::new(key.channel(), derived(&[id]), sender, 0, body)
}

/// The `n`th turn of an agent, from 1, which counts and says so: afterwards its state, its
/// checkpoint and the log of its channel are `n`.
fn turn(fence: Fence, n: u64) -> TurnCommit {
    let said = event(&fence.key, &format!("{} {n}", fence.key), &n.to_string());
    let mut commit = TurnCommit::new(fence, n);
    commit.trigger = Some(Trigger::Event(n));
    commit.progress = Some(Progress {
        checkpoint: n,
        ..Progress::default()
    });
    commit.state = Some(NewState {
        json: format!("{{\"n\":{n}}}"),
        version: 1,
        base: n - 1,
    });
    commit.outbox.push(said);
    commit
}

/// How many turns an agent had, of which its state, its checkpoint and the log agree.
fn counted(store: &SqliteRuntime, key: &AgentKey) -> u64 {
    let row = block_on(store.load(key)).unwrap();
    let head = block_on(store.head(key.channel())).unwrap();
    let Some(row) = row else {
        assert_eq!(head, 0);
        return 0;
    };
    let n = row.revision;
    assert_eq!(row.state, format!("{{\"n\":{n}}}"));
    assert_eq!((row.progress.checkpoint, head), (n, n));
    n
}
