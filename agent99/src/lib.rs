//! Agent99 runs agent programs that nobody trusts.
//!
//! An agent is a JSON program: steps in sequence, branches, loops, `try`,
//! expressions. A compiler lowers it to register bytecode, a verifier lets
//! only sound bytecode through, and a register machine runs it within limits
//! of fuel, time and memory. Whatever lies outside the program is a capability
//! that the host grants.
//!
//! # A tour
//!
//! Compile once, run many times:
//!
//! ```
//! use agent99::{Engine, RunOptions, json};
//!
//! let engine = Engine::new();
//! let agent = engine.compile(
//!     r#"{"op": "seq", "steps": [
//!         {"op": "varSet", "key": "total",
//!          "value": {"$expr": "binary", "op": "*",
//!                    "left": {"$expr": "ident", "name": "price"},
//!                    "right": {"$expr": "ident", "name": "quantity"}}},
//!         {"op": "return", "schema": {"type": "object", "properties": {"total": {}}}}
//!     ]}"#,
//! )?;
//! let outcome = engine.run_sync(&agent, json!({"price": 2.5, "quantity": 4}), RunOptions::new());
//! assert_eq!(outcome.result.to_json(), json!({"total": 10}));
//! assert_eq!(outcome.error, None);
//! # Ok::<(), agent99::Diagnostics>(())
//! ```
//!
//! Programs can also be written as a chain of calls. [`builder`] has a method
//! for every atom; control forms take closures:
//!
//! ```
//! use agent99::{Agent, Engine, RunOptions, builder::ident, json};
//!
//! let engine = Engine::new();
//! let schema = json!({"type": "object", "properties": {"price": {}, "quantity": {}}});
//! let program = Agent::take(schema)
//!     .var_set("total", ident("price") * ident("quantity"))
//!     .if_("total > limit", [("limit", 100)], |then| {
//!         then.math_calc("total * 0.9", ()).as_("total")
//!     })
//!     .return_(json!({"type": "object", "properties": {"total": {}}}));
//! let agent = engine.compile_builder(&program)?;
//! let outcome = engine.run_sync(&agent, json!({"price": 50, "quantity": 4}), RunOptions::new());
//! assert_eq!(outcome.result.to_json(), json!({"total": 180}));
//! # Ok::<(), agent99::Diagnostics>(())
//! ```
//!
//! A program that cannot be is refused with every finding, each with its place
//! and a suggestion:
//!
//! ```
//! # use agent99::Engine;
//! let refused = Engine::new()
//!     .compile(r#"{"op": "seq", "steps": [{"op": "if", "condition": "a = 1", "then": []}]}"#)
//!     .unwrap_err();
//! assert_eq!(refused.iter().next().unwrap().pointer, "/steps/0/condition");
//! ```
//!
//! Limits are on by default. An endless loop costs its budget and no more:
//!
//! ```
//! # use agent99::{Engine, RunOptions, ErrorCode, json};
//! # let engine = Engine::new();
//! let agent = engine.compile(
//!     r#"{"op": "seq", "steps": [{"op": "while", "condition": "true", "body": []}]}"#,
//! )?;
//! let outcome = engine.run_sync(&agent, json!({}), RunOptions::new());
//! assert_eq!(outcome.error.unwrap().code, ErrorCode::OutOfFuel);
//! # Ok::<(), agent99::Diagnostics>(())
//! ```
//!
//! A program reaches the world only through what it is handed. Without a
//! `fetch` capability there is no network:
//!
//! ```
//! # use agent99::{Engine, RunOptions, json};
//! # let engine = Engine::new();
//! let agent = engine.compile(
//!     r#"{"op": "seq", "steps": [{"op": "httpFetch", "url": "https://example.com"}]}"#,
//! )?;
//! let outcome = engine.run_sync(&agent, json!({}), RunOptions::new());
//! assert!(outcome.error.unwrap().message.to_string().contains("Capability 'fetch' missing"));
//! # Ok::<(), agent99::Diagnostics>(())
//! ```
//!
//! Capabilities are granted for one run; [`Engine::run`] awaits those that
//! wait, and its future is `Send`:
//!
//! ```
//! # use agent99::{Engine, RunOptions, json, capabilities::{Capabilities, ScriptedLlm}};
//! # let engine = Engine::new();
//! let agent = engine.compile(
//!     r#"{"op": "seq", "steps": [
//!         {"op": "llmPredict", "prompt": "Say hello", "result": "answer"},
//!         {"op": "return", "schema": {"type": "object", "properties": {"answer": {}}}}
//!     ]}"#,
//! )?;
//! let granted = Capabilities::none().with_llm(ScriptedLlm::replies(["Hello!"]));
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let outcome = engine.run(&agent, json!({}), RunOptions::new(), granted).await;
//! assert_eq!(outcome.result.to_json(), json!({"answer": "Hello!"}));
//! # });
//! # Ok::<(), agent99::Diagnostics>(())
//! ```
//!
//! A function of the host becomes an atom by [`macro@atom`]. Its parameters
//! are the inputs of the step, checked before it is called; it exists for a
//! program only if the host puts it into the set. One that waits has a second for
//! it, unless it says otherwise (`timeout_ms`). Types of your own as parameters and
//! answers have the derives of `serde` and `schemars`, which your `Cargo.toml` names
//! beside `agent99`:
//!
//! ```
//! use agent99::{Agent, AtomSet, AtomSets, Engine, RunOptions, atom, builder::args, json};
//!
//! /// Counts the words of a text.
//! #[atom(cost = 0.5)]
//! fn count_words(text: &str, least: Option<usize>) -> usize {
//!     let words = text.split_whitespace();
//!     words.filter(|word| word.len() >= least.unwrap_or(0)).count()
//! }
//!
//! let engine = Engine::builder().atoms(AtomSet::core().with(COUNT_WORDS)).build();
//! let result = json!({"type": "object", "properties": {"n": {}}});
//! let program = Agent::take(json!({}))
//!     .count_words(args("text"), 4)
//!     .as_("n")
//!     .return_(result);
//! let agent = engine.compile_builder(&program)?;
//!
//! let outcome = engine.run_sync(&agent, json!({"text": "a word or three"}), RunOptions::new());
//! assert_eq!(outcome.result.to_json(), json!({"n": 2}));
//! let outcome = engine.run_sync(&agent, json!({"text": 5}), RunOptions::new());
//! assert_eq!(
//!     outcome.error.unwrap().message.to_string(),
//!     "Input validation failed for 'countWords': /text: expected a string, found the number 5",
//! );
//! # Ok::<(), agent99::Diagnostics>(())
//! ```
//!
//! What such functions need of the host is given to the engine or to a run, and
//! asked for by its type. A failure may carry a code of the host's own, which
//! programs cannot make up:
//!
//! ```
//! use agent99::{
//!     AtomCx, AtomError, AtomSet, AtomSets, Engine, HostCode, RunOptions, atom, json,
//! };
//! use std::sync::Arc;
//!
//! struct Accounts {
//!     limit: f64,
//! }
//!
//! const DECLINED: HostCode = HostCode::new("billing.declined");
//!
//! /// Charges the account of the user.
//! #[atom(cost = 5)]
//! fn charge(cx: &AtomCx, amount: f64) -> Result<f64, AtomError> {
//!     let accounts = cx.host::<Accounts>()?;
//!     if amount > accounts.limit {
//!         return Err(AtomError::new("the amount is too high").with_host_code(DECLINED));
//!     }
//!     Ok(accounts.limit - amount)
//! }
//!
//! let engine = Engine::builder()
//!     .atoms(AtomSet::core().with(CHARGE))
//!     .host(Arc::new(Accounts { limit: 100.0 }))
//!     .build();
//! let agent = engine.compile(r#"{"op": "seq", "steps": [{"op": "charge", "amount": 150}]}"#)?;
//! let error = engine.run_sync(&agent, json!({}), RunOptions::new()).error.unwrap();
//! assert_eq!(error.host_code, Some(DECLINED));
//! assert_eq!(error.to_json().get("hostCode").unwrap().to_string(), r#""billing.declined""#);
//! # Ok::<(), agent99::Diagnostics>(())
//! ```
//!
//! A run can be followed step by step; [`Outcome`], [`RunError`], [`Diagnostic`],
//! [`TraceEvent`] and [`Fuel`] have `serde::Serialize`, in the shapes of
//! `a99 run --json`:
//!
//! ```
//! # use agent99::{Engine, RunOptions, TraceEvent, json};
//! # let engine = Engine::new();
//! # let agent = engine.compile(r#"{"op": "seq", "steps": [{"op": "return", "value": {"a": 1}}]}"#)?;
//! let options = RunOptions::new().trace_to(|event: &TraceEvent| {
//!     println!("{}", serde_json::to_string(event).unwrap_or_default());
//! });
//! let outcome = engine.run_sync(&agent, json!({}), options);
//! assert_eq!(serde_json::to_value(&outcome)?["result"], json!({"a": 1}));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A compiled agent can be written to an `.a99b` file and loaded without its
//! source. A file is trusted no more than a program:
//!
//! ```
//! # use agent99::{Engine, RunOptions, artifact::EncodeOptions, json};
//! # let engine = Engine::new();
//! # let program = r#"{"op": "seq", "steps": [{"op": "return", "value": {"a": 1}}]}"#;
//! let bytes = engine.compile(program)?.to_bytes(&EncodeOptions::default())?;
//! let agent = engine.load(&bytes)?;
//! let outcome = engine.run_sync(&agent, json!({}), RunOptions::new());
//! assert_eq!(outcome.result.to_json(), json!({"a": 1}));
//!
//! let refused = engine.load(&bytes[..100]).unwrap_err();
//! assert_eq!(refused.code(), "artifact.wrong_length");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(unreachable_pub)]

mod engine;
mod load;
#[cfg(doctest)]
mod pages;
mod tools;

pub use a99_atoms::{AtomSets, all_atoms, battery_atoms, browser_atoms, core_atoms, shell_atoms};
pub use a99_capabilities::Capabilities;
pub use a99_compiler::{CompileOptions, Dialect};
pub use a99_core::artifact;
pub use a99_core::builder::{self, Builder, Operand};
pub use a99_core::costs::CostModel;
pub use a99_core::diag::{Diagnostic, Diagnostics, Severity};
pub use a99_core::error::{ErrorCode, HostCode, HostCodeError, RunError};
pub use a99_core::fuel::Fuel;
pub use a99_core::json::Limits as ReadLimits;
pub use a99_core::sig::{
    AtomInput, AtomInputs, AtomSig, AtomTimeout, Binding, Charging, Effect, JsonKinds, Param,
    Params,
};
pub use a99_core::text::{Text, escape_for_terminal};
pub use a99_core::value::{Map, Value};
pub use a99_core::verify::{Artifact, VerifyError};
pub use a99_core::{builtins, codes, costs, docs};
pub use a99_macros::atom;
pub use a99_vm::atom::{
    AtomBody, AtomDef, AtomError, AtomSet, DuplicateAtom, HostCall, HostReply, IntoAtom,
};
#[doc(hidden)]
pub use a99_vm::typed;
pub use a99_vm::typed::{AtomCx, AtomDecl};
pub use a99_vm::{
    AbortSignal, CostOverride, Equality, Executable, HostState, Limits, LinkError, OptionError,
    Outcome, Quota, RunOptions, TraceEvent, TraceSink, Vm,
};
pub use engine::{Agent, Engine, EngineBuilder, EnginePool, Refused};
pub use load::{LoadError, SourceCheck};
pub use serde_json::json;
pub use tools::{ToolCallError, ToolFilter, ToolForm, tool};

/// What a program may be given: one trait each, with versions in memory or from
/// a script, and the suites that another version proves itself with.
///
/// A program reaches the world by capabilities only. [`Capabilities`] is the set of
/// those that a run is granted; each is an implementation of a trait, or an `Arc` of
/// one that the host keeps:
///
/// | trait | what for | ready-made |
/// |---|---|---|
/// | [`Fetch`] | HTTP (`httpFetch`) | [`ScriptedFetch`] |
/// | [`Store`] | keys, values, queries, vectors (`storeGet` and its family) | [`MemoryStore`] |
/// | [`Embedder`] | texts as vectors | [`HashEmbedder`] |
/// | [`Llm`] | completion of a prompt (`llmPredict`) | [`ScriptedLlm`] |
/// | [`LlmBattery`] | chats with tools and images | [`ScriptedLlmBattery`] |
/// | [`AgentRunner`] | sub-agents (`agentRun`) | [`FnAgentRunner`] |
/// | [`Xml`] | reading XML | [`ScriptedXml`] |
/// | [`Transpiler`] | source code as programs (`transpileCode`, `runCode`) | [`ScriptedTranspiler`] |
/// | [`Dom`], [`LocalStorage`] | a document and the storage of a browser | [`MemoryDom`], [`MemoryLocalStorage`] |
/// | [`Shell`] | a computer to run commands on | [`MemoryShell`] |
/// | [`Procedures`] | where `storeProcedure` keeps programs | [`MemoryProcedures`] |
/// | [`Clock`], [`Random`] | the time, and randomness | [`SystemClock`], [`FixedClock`], [`SystemRandom`], [`SeededRandom`] |
///
/// # A capability of your own
///
/// Implement the trait. What a program gave arrives as a
/// [`Value`](crate::Value); check it, since nobody has done so before. The text of a
/// [`CapabilityError`] is what the program is told. The future may wait; it is
/// dropped when the time of the step's atom is over: a second, if the atom names
/// no other ([`RunOptions::atom_timeout`](crate::RunOptions::atom_timeout) changes it
/// for a run).
///
/// ```
/// use agent99::capabilities::{Capabilities, CapabilityError, Llm, Reply, suite};
/// use agent99::{Engine, RunOptions, Value, json};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// /// Answers in capitals, and counts how often it is asked.
/// #[derive(Default)]
/// struct Loud {
///     asked: AtomicUsize,
/// }
///
/// impl Llm for Loud {
///     fn predict(&self, prompt: Value, _options: Value) -> Reply<'_> {
///         Box::pin(async move {
///             let Some(text) = prompt.as_text() else {
///                 return Err(CapabilityError::new("the prompt must be a text"));
///             };
///             self.asked.fetch_add(1, Ordering::Relaxed);
///             Ok(text.to_string_lossy().to_uppercase().into())
///         })
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let model = Arc::new(Loud::default());
/// // In a test of yours: what every implementation owes to programs.
/// suite::llm(&*model).await?;
///
/// let engine = Engine::new();
/// let agent = engine.compile(r#"{"op": "seq", "steps": [
///     {"op": "llmPredict", "prompt": "say hello", "result": "answer"},
///     {"op": "return", "schema": {"type": "object", "properties": {"answer": {}}}}
/// ]}"#)?;
/// let before = model.asked.load(Ordering::Relaxed);
/// let granted = Capabilities::none().with_llm(model.clone());
/// let outcome = engine.run(&agent, json!({}), RunOptions::new(), granted).await;
/// assert_eq!(outcome.result.to_json(), json!({"answer": "SAY HELLO"}));
/// assert_eq!(model.asked.load(Ordering::Relaxed), before + 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// What is no capability of the language, a connection to a database of yours for
/// instance, belongs to atoms of yours: [`RunOptions::host`](crate::RunOptions::host).
pub mod capabilities {
    pub use a99_capabilities::{
        AgentCall, AgentReply, AgentRunner, BoxFuture, Capabilities, CapabilityError, Clock,
        DEFAULT_MODE, DEFAULT_OUTPUT_LIMIT, Dom, Embedder, Fetch, FixedClock, FnAgentRunner, Grant,
        HashEmbedder, Llm, LlmBattery, LocalStorage, MAX_KEY_BYTES, MAX_TOP_K, MODE_BITS,
        MemoryDom, MemoryLocalStorage, MemoryProcedures, MemoryShell, MemoryStore, ProcedureLimits,
        ProcedureMiss, Procedures, Random, Reply, Script, ScriptError, ScriptedFetch, ScriptedLlm,
        ScriptedLlmBattery, ScriptedTranspiler, ScriptedXml, SeededRandom, Shell, ShellCommand,
        ShellError, ShellErrorKind, ShellOutput, ShellReply, ShellRequest, Store, StoreMethod,
        SuiteResult, SystemClock, SystemRandom, Transpiler, Xml, check_path, suite, uuid_v4,
        value_bytes,
    };
}
