//! Agent99 runs untrusted agent programs.
//!
//! An agent is a JSON program: steps in sequence, branches, loops, `try`,
//! expressions. A compiler lowers it to register bytecode, a verifier lets
//! only sound bytecode through, and a register machine runs it within limits
//! of fuel, time and memory. The host grants access to everything outside the program as
//! capabilities.
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
//! Invalid programs are rejected with every finding, each with its place and a suggestion:
//!
//! ```
//! # use agent99::Engine;
//! let refused = Engine::new()
//!     .compile(r#"{"op": "seq", "steps": [{"op": "if", "condition": "a = 1", "then": []}]}"#)
//!     .unwrap_err();
//! assert_eq!(refused.iter().next().unwrap().pointer, "/steps/0/condition");
//! ```
//!
//! Limits are on by default. An endless loop stops when its fuel is used up:
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
//! A program reaches the world only through granted capabilities. Without `fetch` there is no
//! network:
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
//! Capabilities are granted per run. [`Engine::run`] awaits asynchronous ones, and its future
//! is `Send`:
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
//! [`macro@atom`] turns a host function into an atom. Its parameters are the inputs of the
//! step, checked before the call. Programs can use it only if the host adds it to the atom
//! set. Async atoms time out after one second unless `timeout_ms` is set. Your own types of
//! parameters and answers need the derives of `serde` and `schemars`, which your `Cargo.toml`
//! lists next to `agent99`:
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
//! The compiler warns about a literal that the function could never accept:
//!
//! ```
//! # use agent99::{AtomSet, AtomSets, Engine, atom};
//! /// Waits for a number of days.
//! #[atom(cost = 1)]
//! fn postpone(days: u8) {}
//!
//! let engine = Engine::builder().atoms(AtomSet::core().with(POSTPONE)).build();
//! let agent = engine.compile(r#"{"op": "seq", "steps": [{"op": "postpone", "days": 400}]}"#)?;
//! let warning = agent.warnings().iter().next().expect("a finding");
//! assert_eq!(warning.pointer, "/steps/0/days");
//! assert_eq!(
//!     warning.message,
//!     "`days` of `postpone` cannot be this: expected u8, found the number 400",
//! );
//! # Ok::<(), agent99::Diagnostics>(())
//! ```
//!
//! Functions look up host services by type; the host gives them to the engine or to a run. A
//! failure may carry a code of the host, which programs cannot forge:
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
//! A run can be traced step by step. [`Outcome`], [`RunError`], [`Diagnostic`],
//! [`TraceEvent`] and [`Fuel`] implement `serde::Serialize`, in the format of
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
//! A compiled agent can be written to an `.a99b` file and loaded without its source. An
//! artifact gets no more trust than source:
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
//!
//! # Features
//!
//! The first two are on by default; disable them for faster builds.
//!
//! | feature | adds |
//! |---|---|
//! | `macros` | [`macro@atom`], and schemas of Rust types |
//! | `signing` | signatures of artifacts |
//! | `jit` | machine code for hot numeric loops, by Cranelift |

#![warn(unreachable_pub)]

mod agent;
mod answer;
pub mod capabilities;
pub mod cost;
#[cfg(feature = "source")]
mod declarations;
mod drive;
mod engine;
mod expression;
mod load;
#[cfg(feature = "source")]
mod nodes;
#[cfg(doctest)]
mod pages;
mod pool;
mod profile;
pub mod profiler;
mod prompt;
mod registry;
pub mod replay;
mod run;
mod schema;
#[cfg(feature = "source")]
mod source;
#[cfg(feature = "source")]
mod source_answer;
mod thinking;
mod tools;

pub use a99_atoms::{
    AtomSets, all_atoms, battery_atoms, browser_atoms, core_atoms, is_internal, shell_atoms,
    time_atoms, turn_atoms,
};
pub use a99_builder::{self as builder, Builder, Operand};
pub use a99_capabilities::Capabilities;
pub use a99_compiler::{CompileOptions, Dialect};
pub use a99_core::artifact;
pub use a99_core::call_id::{BadCallId, CallId};
pub use a99_core::costs::CostModel;
pub use a99_core::diag::{Diagnostic, Diagnostics, Severity};
pub use a99_core::error::{ErrorCode, HostCode, HostCodeError, RunError};
pub use a99_core::fuel::Fuel;
pub use a99_core::json::Limits as ReadLimits;
pub use a99_core::sig::{
    AtomInput, AtomInputs, AtomSig, AtomTimeout, Binding, Capability, Charging, Effect, JsonKinds,
    LiteralCheck, LiteralFault, Param, Params,
};
pub use a99_core::text::{Text, escape_for_terminal};
pub use a99_core::value::{Map, Value};
pub use a99_core::verify::{Artifact, VerifyError};
pub use a99_core::{builtins, codes, costs};
#[cfg(feature = "macros")]
pub use a99_macros::atom;
pub use a99_run::account;
#[cfg(feature = "source")]
pub use a99_source::form_of;
#[cfg(feature = "source")]
#[doc(hidden)]
pub use a99_source::{Outline, outline};
#[cfg(feature = "jit")]
pub use a99_vm::CompiledTier;
pub use a99_vm::atom::{
    AtomBody, AtomDef, AtomError, AtomSet, CallParts, Cancelled, DuplicateAtom, HostCall,
    HostReply, IntoAtom,
};
pub use a99_vm::console::MAX_KEPT as MAX_LOG_BYTES;
#[cfg(feature = "macros")]
#[doc(hidden)]
pub use a99_vm::typed;
#[cfg(feature = "macros")]
pub use a99_vm::typed::{AtomCx, AtomDecl};
pub use a99_vm::{
    AbortSignal, Answer, Arg, Args, Bound, Call, CallCharges, CallEnd, Caller, CostOverride,
    Environment, Equality, EventLimits, EventSink, EventStream, Executable, HostState, JsonText,
    Limits, LinkError, LogLevel, LogLine, Next, OptionError, Outcome, Part, Progress, Quota, Reply,
    ResultSlot, Run, RunClock, RunEvent, RunEventKind, RunFault, RunMemory, RunOptions,
    RunProgress, SnapshotError, StackFrame, Timers, TraceCall, TraceCallEnd, TraceEvent,
    TraceLines, TraceSink, TraceStep, Vm, event_channel,
};
pub use agent::Agent;
pub use answer::find_program;
pub use engine::{Engine, EngineBuilder, Refused};
pub use expression::expression;
pub use load::{LoadError, SourceCheck};
pub use pool::EnginePool;
pub use profile::RunProfile;
pub use prompt::PromptForm;
pub use registry::{
    AgentRegistry, AgentRegistryBuilder, RegistryError, RunDriver, Share, SubAgent,
};
pub use schema::SchemaForm;
pub use serde_json::json;
#[cfg(feature = "source")]
pub use source_answer::find_source;
pub use tools::{ToolCallError, ToolFilter, ToolForm, tool};
