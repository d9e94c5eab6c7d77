//! Runtime context: the services of an agent, by their names, whatever the target.
//!
//! A target is where agents run: `embedded` is this process. Another one is a folder with
//! storage, event bus, language model and a [`RuntimeFactory`]; agents do not notice.

use crate::agent::Identity;
use crate::error::AgentError;
use crate::event_bus::EventBus;
use crate::log::AgentLogger;
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

/// SQL tables of an agent's own. What a turn changes is committed with it; a query sees it
/// before. Parameters are positional, `?`; other statements than an agent's own tables allow
/// are refused (`store.input`): `ATTACH`, `PRAGMA`, the runtime's tables. [`Storage`](crate::Storage)
/// is the one of this process.
pub trait StorageApi: Send + Sync {
    /// Statements without parameters, for schemas.
    fn exec<'a>(&'a self, sql: &'a str) -> BoxFuture<'a, Result<(), AgentError>>;

    /// One statement that changes rows.
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

    /// Waits until what was committed is as durable as it will be. In a turn it does nothing:
    /// the turn is one commit, which is not made yet. Who must keep something before the
    /// handler ends makes a step of it.
    fn flush(&self) -> BoxFuture<'_, Result<(), AgentError>>;
}

/// Called when the checkpoint moves on.
pub type OnAdvance = Box<dyn Fn(Seq) + Send + Sync>;

/// The services of an agent.
#[derive(Clone)]
pub struct RuntimeContext {
    /// Who it is, and with what it was configured.
    pub identity: Arc<Identity>,
    /// Where it runs: [`EMBEDDED`] or another target's word.
    pub mode: &'static str,
    /// Its own tables, if it has some.
    pub storage: Option<Arc<dyn StorageApi>>,
    /// Its channel.
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

/// What a context is made of.
pub struct ContextParts {
    /// Who the agent is.
    pub identity: Arc<Identity>,
    /// The target's word.
    pub mode: &'static str,
    /// Its own tables.
    pub storage: Option<Arc<dyn StorageApi>>,
    /// Its channel.
    pub event_bus: Arc<dyn EventBus>,
    /// The language model.
    pub ai: Option<Arc<dyn AiProvider>>,
    /// The host's log.
    pub log: Option<Arc<dyn AgentLogger>>,
    /// The place up to which the log is done.
    pub initial_checkpoint: Seq,
    /// Called when that moves on.
    pub on_checkpoint_advance: Option<OnAdvance>,
}

/// A target: makes contexts for its agents.
pub trait RuntimeFactory: Send + Sync {
    /// The target's word.
    fn mode(&self) -> &'static str;

    /// The context of an agent.
    fn context(&self, identity: Arc<Identity>)
    -> BoxFuture<'_, Result<RuntimeContext, AgentError>>;
}

/// A context of its parts.
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
    /// The place up to which the log is done.
    #[must_use]
    pub fn checkpoint(&self) -> Seq {
        self.checkpoint.at.load(Ordering::Acquire)
    }

    /// Moves the checkpoint on, for whoever drives the agent; it never goes back.
    pub fn advance_checkpoint(&self, to: Seq) {
        if self.checkpoint.at.fetch_max(to, Ordering::AcqRel) < to
            && let Some(on_advance) = &self.checkpoint.on_advance
        {
            on_advance(to);
        }
    }
}

impl TurnClient {
    /// The services of the agent in this turn.
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
