//! Capabilities that a program may be given: one trait each, with versions in memory or from
//! a script, and the suites that another version proves itself with.
//!
//! A program reaches the world by capabilities only. [`Capabilities`] is the set of
//! those that a run is granted; each is an implementation of a trait, or an `Arc` of
//! one that the host keeps:
//!
//! | trait | what for | ready-made |
//! |---|---|---|
//! | [`Fetch`] | HTTP (`httpFetch`) | [`ScriptedFetch`] |
//! | [`Store`] | keys, values, queries, vectors (`storeGet` and its family) | [`MemoryStore`] |
//! | [`Embedder`] | texts as vectors | [`HashEmbedder`] |
//! | [`Llm`] | completion of a prompt (`llmPredict`) | [`ScriptedLlm`] |
//! | [`LlmBattery`] | chats with tools and images | [`ScriptedLlmBattery`] |
//! | [`AgentRunner`] | sub-agents (`agentRun`) | [`FnAgentRunner`] |
//! | [`AgentTurn`] | the turn of an agent that lives (`agentState`, `agentSend` and others) | [`MemoryTurn`] |
//! | [`Xml`] | reading XML | [`ScriptedXml`] |
//! | [`Transpiler`] | source code as programs (`transpileCode`, `runCode`) | [`ScriptedTranspiler`] |
//! | [`Dom`], [`LocalStorage`] | a document and the storage of a browser | [`MemoryDom`], [`MemoryLocalStorage`] |
//! | [`Shell`] | a computer to run commands on | [`MemoryShell`] |
//! | [`Procedures`] | where `storeProcedure` keeps programs | [`MemoryProcedures`] |
//! | [`Clock`], [`Random`] | the time, and randomness | [`SystemClock`], [`FixedClock`], [`SystemRandom`], [`SeededRandom`] |
//!
//! # A capability of your own
//!
//! Implement the trait, and run its suite in a test: `agent99` has it with the feature
//! `testing`, which a dev-dependency asks for. What a program gave arrives as a
//! [`Value`](crate::Value); check it, since nobody has done so before. The text of a
//! [`CapabilityError`] is what the program is told. The future may wait; it is
//! dropped when the time of the step's atom is over: a second, if the atom names
//! no other ([`RunOptions::atom_timeout`](crate::RunOptions::atom_timeout) changes it
//! for a run).
//!
//! ```
//! use agent99::capabilities::{Capabilities, CapabilityError, Llm, Reply, suite};
//! use agent99::{Engine, RunOptions, Value, json};
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicUsize, Ordering};
//!
//! /// Answers in capitals, and counts how often it is asked.
//! #[derive(Default)]
//! struct Loud {
//!     asked: AtomicUsize,
//! }
//!
//! impl Llm for Loud {
//!     fn predict(&self, prompt: Value, _options: Value) -> Reply<'_> {
//!         Box::pin(async move {
//!             let Some(text) = prompt.as_text() else {
//!                 return Err(CapabilityError::new("the prompt must be a text"));
//!             };
//!             self.asked.fetch_add(1, Ordering::Relaxed);
//!             Ok(text.to_string_lossy().to_uppercase().into())
//!         })
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let model = Arc::new(Loud::default());
//! // In a test of yours: what every implementation owes to programs.
//! suite::llm(&*model).await?;
//!
//! let engine = Engine::new();
//! let agent = engine.compile(r#"{"op": "seq", "steps": [
//!     {"op": "llmPredict", "prompt": "say hello", "result": "answer"},
//!     {"op": "return", "schema": {"type": "object", "properties": {"answer": {}}}}
//! ]}"#)?;
//! let before = model.asked.load(Ordering::Relaxed);
//! let granted = Capabilities::none().with_llm(model.clone());
//! let outcome = engine.run(&agent, json!({}), RunOptions::new(), granted).await;
//! assert_eq!(outcome.result.to_json(), json!({"answer": "SAY HELLO"}));
//! assert_eq!(model.asked.load(Ordering::Relaxed), before + 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What is no capability of the language, a connection to a database of yours for
//! instance, belongs to atoms of yours: [`RunOptions::host`](crate::RunOptions::host).

pub use a99_capabilities::ai;
pub use a99_capabilities::{
    AgentCall, AgentOutcome, AgentReply, AgentRunner, AgentTurn, AiCode, AiError, AiProvider,
    BoxFuture, Capabilities, CapabilityError, Clock, DEFAULT_MODE, DEFAULT_OUTPUT_LIMIT, Dom, Done,
    Embedder, Fetch, FixedClock, FnAgentRunner, Grant, HashEmbedder, Llm, LlmBattery, LocalStorage,
    MAX_KEY_BYTES, MAX_STATE_DEPTH, MAX_TOP_K, MODE_BITS, MemoryDom, MemoryLocalStorage,
    MemoryProcedures, MemoryShell, MemoryStore, MemoryTurn, MessageFailure, MessageUpdate, Page,
    ProcedureLimits, ProcedureMiss, Procedures, Query, Random, Reply, ScanMeter, Script,
    ScriptError, ScriptedAi, ScriptedFetch, ScriptedLlm, ScriptedLlmBattery, ScriptedTranspiler,
    ScriptedXml, Secret, SeededRandom, Selection, Shell, ShellCommand, ShellError, ShellErrorKind,
    ShellOutput, ShellReply, ShellRequest, Store, StoreMethod, StoredKey, StoredValue, TimerDue,
    Transpiler, TurnChange, TurnEvent, TurnMessage, TurnQuery, TurnTimer, Xml, check_path,
    merge_state, timer_name, uuid_v4, value_bytes,
};
#[cfg(feature = "testing")]
pub use a99_capabilities::{SuiteResult, suite};
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use a99_capabilities::{SystemClock, SystemRandom};
