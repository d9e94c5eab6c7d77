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
//! assert_eq!(refused.code(), "A99-B0003");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod engine;
mod load;
mod tools;

pub use a99_atoms::{all_atoms, battery_atoms, browser_atoms, core_atoms};
pub use a99_capabilities as capabilities;
pub use a99_capabilities::Capabilities;
pub use a99_compiler::{CompileOptions, Dialect};
pub use a99_core::artifact;
pub use a99_core::costs::CostModel;
pub use a99_core::diag::{Diagnostic, Diagnostics, Severity};
pub use a99_core::error::{ErrorCode, RunError};
pub use a99_core::fuel::Fuel;
pub use a99_core::json::Limits as ReadLimits;
pub use a99_core::sig::{AtomSig, AtomTimeout, Binding, Effect, Param, Params};
pub use a99_core::text::{Text, escape_for_terminal};
pub use a99_core::value::{Map, Value};
pub use a99_core::verify::{Artifact, VerifyError};
pub use a99_core::{builtins, costs, docs};
pub use a99_vm as vm;
pub use a99_vm::atom::{AtomBody, AtomDef, AtomError, AtomSet, HostCall, HostReply};
pub use a99_vm::{
    AbortSignal, CostOverride, Equality, Limits, LinkError, OptionError, Outcome, Quota,
    RunOptions, TraceEvent,
};
pub use engine::{Agent, Engine, EngineBuilder, EnginePool, Refused};
pub use load::{LoadError, SourceCheck};
pub use serde_json::json;
pub use tools::ToolFilter;
