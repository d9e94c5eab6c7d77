//! Runtime context: an agent's services by name, independent of the target.
//!
//! A target is where agents run: `embedded` is this process. Another target provides storage,
//! event bus and language model to the context of a turn; agents do not notice the difference.

use crate::agent::Identity;
use crate::error::AgentError;
use crate::event_bus::EventBus;
use crate::log::AgentLogger;
use crate::tables::SyncStorage;
use crate::turn::TurnClient;
use a99_capabilities::AiProvider;
use a99_runtime_engine::{BoxFuture, Row, RunResult, Seq};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The mode of agents in this process.
pub const EMBEDDED: &str = "embedded";

/// The mode of agents whose host is another process.
pub const PROCESS: &str = "process";

/// An agent's SQL tables. A turn's changes commit with the turn; its queries see them earlier.
/// Parameters are positional, `?`. Statements outside the agent's tables are refused
/// (`store.input`): `ATTACH`, `PRAGMA`, the runtime's tables. [`Storage`](crate::Storage) is
/// the implementation of this process.
pub trait StorageApi: Send + Sync {
    /// Runs statements without parameters, for schemas.
    fn exec<'a>(&'a self, sql: &'a str) -> BoxFuture<'a, Result<(), AgentError>>;

    /// Runs one statement that changes rows.
    fn run<'a>(
        &'a self,
        sql: &'a str,
        params: Vec<Value>,
    ) -> BoxFuture<'a, Result<RunResult, AgentError>>;

    /// The first row of a query.
    fn get<'a>(
        &'a self,
        sql: &'a str,
        params: Vec<Value>,
    ) -> BoxFuture<'a, Result<Option<Row>, AgentError>>;

    /// All rows of a query.
    fn query<'a>(
        &'a self,
        sql: &'a str,
        params: Vec<Value>,
    ) -> BoxFuture<'a, Result<Vec<Row>, AgentError>>;

    /// The same statements without waiting for a runtime, where the store is synchronous: in the
    /// embedded target. A statement then blocks its thread.
    fn synchronous(&self) -> Option<SyncStorage> {
        None
    }

    /// Waits until committed changes are durable. It does nothing during a turn, because the
    /// turn's single commit is still to come. To persist data before the handler ends, use a
    /// step.
    fn flush(&self) -> BoxFuture<'_, Result<(), AgentError>>;
}

/// Callback for each advance of the checkpoint.
pub type OnAdvance = Box<dyn Fn(Seq) + Send + Sync>;

/// The services of an agent.
#[derive(Clone)]
pub struct RuntimeContext {
    /// Key and configuration.
    pub identity: Arc<Identity>,
    /// The target: [`EMBEDDED`] or another target's name.
    pub mode: &'static str,
    /// The agent's SQL tables, if it declares any.
    pub storage: Option<Arc<dyn StorageApi>>,
    /// The agent's channel.
    pub event_bus: Arc<dyn EventBus>,
    /// The language model, if the host grants one.
    pub ai: Option<Arc<dyn AiProvider>>,
    /// The host's log.
    pub log: Option<Arc<dyn AgentLogger>>,
    checkpoint: Arc<Checkpoint>,
}

struct Checkpoint {
    at: AtomicU64,
    on_advance: Option<OnAdvance>,
}

/// The parts from which a context is created.
pub struct ContextParts {
    /// Key and configuration.
    pub identity: Arc<Identity>,
    /// The target's name.
    pub mode: &'static str,
    /// The agent's SQL tables.
    pub storage: Option<Arc<dyn StorageApi>>,
    /// The agent's channel.
    pub event_bus: Arc<dyn EventBus>,
    /// The language model.
    pub ai: Option<Arc<dyn AiProvider>>,
    /// The host's log.
    pub log: Option<Arc<dyn AgentLogger>>,
    /// The last sequence number that was processed.
    pub initial_checkpoint: Seq,
    /// Called when the checkpoint advances.
    pub on_checkpoint_advance: Option<OnAdvance>,
}

/// Creates a context from its parts.
#[must_use]
pub fn create_runtime_context(parts: ContextParts) -> RuntimeContext {
    RuntimeContext {
        identity: parts.identity,
        mode: parts.mode,
        storage: parts.storage,
        event_bus: parts.event_bus,
        ai: parts.ai,
        log: parts.log,
        checkpoint: Arc::new(Checkpoint {
            at: AtomicU64::new(parts.initial_checkpoint),
            on_advance: parts.on_checkpoint_advance,
        }),
    }
}

impl fmt::Debug for RuntimeContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("RuntimeContext");
        out.field("key", &self.identity.key)
            .field("mode", &self.mode);
        out.finish_non_exhaustive()
    }
}

impl RuntimeContext {
    /// The agent's name.
    #[must_use]
    pub fn agent_id(&self) -> &str {
        self.identity.key.agent()
    }

    /// The channel's name.
    #[must_use]
    pub fn channel(&self) -> &str {
        self.identity.key.channel()
    }

    /// The agent's handle, without `@`.
    #[must_use]
    pub fn handle(&self) -> &str {
        self.identity.key.handle()
    }

    /// The configuration that the host set.
    #[must_use]
    pub fn config(&self) -> &Value {
        &self.identity.config
    }

    /// The last sequence number that was processed.
    #[must_use]
    pub fn checkpoint(&self) -> Seq {
        self.checkpoint.at.load(Ordering::Acquire)
    }

    /// Advances the checkpoint; it never moves back. Drivers of an agent call this.
    pub fn advance_checkpoint(&self, to: Seq) {
        if self.checkpoint.at.fetch_max(to, Ordering::AcqRel) < to
            && let Some(on_advance) = &self.checkpoint.on_advance
        {
            on_advance(to);
        }
    }
}

impl TurnClient {
    /// The agent's services during this turn.
    #[must_use]
    pub fn context(&self) -> RuntimeContext {
        create_runtime_context(ContextParts {
            identity: Arc::clone(&self.0.identity),
            mode: self.0.shared.mode(),
            storage: self
                .storage()
                .ok()
                .map(|own| Arc::new(own) as Arc<dyn StorageApi>),
            event_bus: Arc::new(self.clone()),
            ai: self.0.shared.ai.clone(),
            log: self.0.shared.log.0.clone(),
            initial_checkpoint: self.0.checkpoint,
            on_checkpoint_advance: None,
        })
    }
}
