//! Turns as the agent store commits them, and the same rows in plain transactions.

use a99_runtime_engine::{
    AgentKey, AgentStore, Body, Fence, Message, NewEvent, NewState, Progress, Sender, Trigger,
    TurnCommit, derived,
};
use a99_runtime_stores::{Durability, SqliteRuntime, StoreOptions};
use a99_sqlite::rusqlite::{Connection, ToSql, params};
use std::path::Path;
use std::sync::Arc;

/// Agents with concurrent turns.
pub const AGENTS: usize = 64;

/// Bytes of each agent's state.
pub const STATE_BYTES: usize = 2_048;

/// An agent with its number of turns.
#[derive(Debug)]
pub struct Agent {
    fence: Fence,
    turns: u64,
}

impl Agent {
    /// All agents of a store, before their first turn.
    ///
    /// # Panics
    /// Never: the keys are valid.
    #[must_use]
    pub fn all(store: &SqliteRuntime) -> Vec<Agent> {
        let agent = |n| {
            let key = AgentKey::new("echo", &format!("channel-{}", n % 8), &format!("agent-{n}"));
            let key = key.expect("a key");
            let epoch = store.epoch(&key);
            let fence = Fence { key, epoch };
            Agent { fence, turns: 0 }
        };
        (0..AGENTS).map(agent).collect()
    }

    /// The commit of its next turn, which may send an event.
    pub fn turn(&mut self, sends: bool) -> TurnCommit {
        let base = self.turns;
        self.turns += 1;
        let mut commit = TurnCommit::new(self.fence.clone(), base);
        commit.trigger = Some(Trigger::Event(self.turns));
        commit.progress = Some(Progress {
            checkpoint: self.turns,
            ..Progress::default()
        });
        commit.state = Some(NewState {
            json: state(base),
            version: 1,
            base,
        });
        if sends {
            let key = &self.fence.key;
            let id = derived(&[key.as_str(), &base.to_string()]);
            let sender = Arc::new(Sender::agent(key));
            let body = Body::Message(Message::text("y".repeat(80)));
            commit
                .outbox
                .push(NewEvent::new(key.channel(), id, sender, 1, body));
        }
        commit
    }
}

/// A state of [`STATE_BYTES`].
#[must_use]
pub fn state(n: u64) -> String {
    format!(
        "{{\"n\":{n:20},\"text\":\"{}\"}}",
        "x".repeat(STATE_BYTES - 42)
    )
}

/// Commits a turn in a separate transaction, with the store's statements.
///
/// # Panics
/// If the file is not a store with this agent's turns so far.
pub fn plain(connection: &Connection, agent: &mut Agent) {
    let (base, key) = (agent.turns, agent.fence.key.as_str());
    agent.turns += 1;
    let run = |sql: &str, params: &[&dyn ToSql]| {
        let mut statement = connection.prepare_cached(sql).expect("a statement");
        statement.execute(params).expect("it runs")
    };
    run("BEGIN IMMEDIATE", &[]);
    let epoch = connection
        .prepare_cached("SELECT epoch FROM shard WHERE id = ?1")
        .and_then(|mut find| find.query_row([agent.fence.key.shard()], |row| row.get::<_, i64>(0)));
    assert_eq!(epoch.ok(), i64::try_from(agent.fence.epoch.0).ok());
    let changed = run(
        "INSERT INTO agent_state (key, shard, epoch, revision, version, checkpoint, created_at,
             updated_at, state)
         VALUES (?1, 0, 1, 1, 1, 1, 0, 0, ?2)
         ON CONFLICT (key) DO UPDATE SET revision = revision + 1, checkpoint = checkpoint + 1,
             state = excluded.state WHERE revision = ?3",
        params![key, state(base), base.cast_signed()],
    );
    assert_eq!(changed, 1);
    run("COMMIT", &[]);
}

/// A connection with the `synchronous` setting of a store.
///
/// # Panics
/// If the file cannot be opened.
#[must_use]
pub fn plain_connection(durability: Durability, path: &Path) -> Connection {
    let connection = Connection::open(path).expect("the file");
    let synchronous = match durability {
        Durability::Power => "PRAGMA synchronous = FULL",
        _ => "PRAGMA synchronous = NORMAL",
    };
    connection.execute_batch(synchronous).expect("a setting");
    connection
}

/// A store in a file.
///
/// # Panics
/// If it cannot be opened.
#[must_use]
pub fn open(durability: Durability, path: &Path) -> SqliteRuntime {
    let options = StoreOptions {
        durability,
        ..StoreOptions::default()
    };
    SqliteRuntime::open(path, options).expect("a store")
}
