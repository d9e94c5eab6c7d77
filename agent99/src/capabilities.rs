//! Capabilities that a host grants to programs: one trait each, with in-memory and scripted
//! implementations and a conformance suite.
//!
//! Programs reach the world only through capabilities. [`Capabilities`] is the set that a run
//! is granted. Each is an implementation of a trait, or an `Arc` of one that the host keeps:
//!
//! | trait | purpose | provided implementations |
//! |---|---|---|
//! | [`Fetch`] | HTTP (`httpFetch`) | [`ScriptedFetch`] |
//! | [`Store`] | keys, values, queries, vectors (`storeGet` and its family) | [`MemoryStore`] |
//! | [`Embedder`] | texts as vectors | [`HashEmbedder`] |
//! | [`Llm`] | completion of a prompt (`llmPredict`) | [`ScriptedLlm`] |
//! | [`LlmBattery`] | chats with tools and images | [`ScriptedLlmBattery`] |
//! | [`AgentRunner`] | sub-agents (`agentRun`) | [`FnAgentRunner`] |
//! | [`AgentTurn`] | the turn of a long-lived agent (`agentState`, `agentSend` and others) | [`MemoryTurn`] |
//! | [`Xml`] | reading XML | [`ScriptedXml`] |
//! | [`Transpiler`] | source code as programs (`transpileCode`, `runCode`) | [`ScriptedTranspiler`] |
//! | [`Dom`], [`LocalStorage`] | a document and the storage of a browser | [`MemoryDom`], [`MemoryLocalStorage`] |
//! | [`Shell`] | a computer to run commands on | [`MemoryShell`] |
//! | [`Procedures`] | where `storeProcedure` keeps programs | [`MemoryProcedures`] |
//! | [`Clock`], [`Random`] | the time, and randomness | [`SystemClock`], [`FixedClock`], [`SystemRandom`], [`SeededRandom`] |
//!
//! # Your own capability
//!
//! Implement the trait, and run its suite in a test: the feature `testing` of `agent99`
//! provides it, for a dev-dependency. Values from programs arrive unchecked as
//! [`Value`](crate::Value), so validate them. The program sees the text of a
//! [`CapabilityError`]. The future may wait. It is dropped when the atom times out: after one
//! second, unless the atom sets another timeout
//! ([`RunOptions::atom_timeout`](crate::RunOptions::atom_timeout) changes it for a run).
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
//! // In your tests: the contract of every implementation.
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
//! Other services, for instance a connection to your database, belong to your own atoms:
//! [`RunOptions::host`](crate::RunOptions::host).

pub use a99_capabilities::ai;
pub use a99_capabilities::{
    AgentCall, AgentOutcome, AgentReply, AgentRunner, AgentTurn, AiCode, AiError, AiProvider,
    BoxFuture, Capabilities, CapabilityError, Clock, DEFAULT_MODE, DEFAULT_OUTPUT_LIMIT, Dom, Done,
    Embedder, Fetch, FixedClock, FnAgentRunner, Grant, HashEmbedder, Llm, LlmBattery, LocalStorage,
    MAX_KEY_BYTES, MAX_STATE_DEPTH, MAX_TOP_K, MODE_BITS, MemoryDom, MemoryLocalStorage,
    MemoryProcedures, MemoryShell, MemoryStore, MemoryTurn, MessageFailure, MessageUpdate, Page,
    ProcedureLimits, ProcedureMiss, Procedures, Query, Random, Reply, RequestHost, Requests,
    ScanMeter, Script, ScriptError, ScriptedAi, ScriptedFetch, ScriptedLlm, ScriptedLlmBattery,
    ScriptedTranspiler, ScriptedXml, Secret, SeededRandom, Selection, Shell, ShellCommand,
    ShellError, ShellErrorKind, ShellOutput, ShellReply, ShellRequest, Store, StoreMethod,
    StoredKey, StoredValue, TimerDue, Transpiler, TurnCall, TurnChange, TurnEvent, TurnGuest,
    TurnMessage, TurnPart, TurnQuery, TurnTimer, Xml, check_path, merge_state, request_methods,
    timer_name, uuid_v4, value_bytes,
};
#[cfg(feature = "testing")]
pub use a99_capabilities::{SuiteResult, suite};
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use a99_capabilities::{SystemClock, SystemRandom};
