//! Capabilities that a host can grant: a trait per file, each with an in-memory or scripted
//! implementation and a conformance suite.
//!
//! A program reaches the world only through the capabilities in its host's [`Capabilities`];
//! nothing is ambient (security N01). Arguments and replies are [`a99_core::value::Value`]
//! wherever the language accepts any value. An implementation checks its arguments and answers
//! with a [`CapabilityError`], whose text the program sees unchanged. A [`Shell`] uses bytes,
//! and fails with a [`ShellError`].
//!
//! This crate has no network, file or database access; other crates implement these traits with
//! it and run the suites.
//!
//! # Custom capabilities
//!
//! An implementation checks the program's arguments, and a test runs the suite of its trait
//! (feature `testing`):
//!
//! ```
//! use a99_capabilities::{Capabilities, CapabilityError, Embedder, Reply, block_on, suite};
//! use a99_core::value::Value;
//!
//! /// A text as two numbers: its bytes and its words.
//! struct Counts;
//!
//! impl Embedder for Counts {
//!     fn embed(&self, text: Value) -> Reply<'_> {
//!         Box::pin(async move {
//!             let Some(text) = text.as_text() else {
//!                 return Err(CapabilityError::new("embed: the text must be a string"));
//!             };
//!             let bytes = text.as_bytes();
//!             let words = bytes.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
//!             Ok(vec![Value::from(bytes.len() as f64), Value::from(words.count() as f64)].into())
//!         })
//!     }
//! }
//!
//! // Any executor works.
//! block_on(suite::embedder(&Counts))?;
//!
//! let granted = Capabilities::none().with_embedder(Counts);
//! assert_eq!(granted.granted(), ["embedder"]);
//! # Ok::<(), String>(())
//! ```

#![warn(unreachable_pub)]

mod agent;
mod agent_turn;
pub mod ai;
mod clock;
mod dom;
mod embedder;
mod error;
mod fetch;
mod llm;
mod llm_battery;
mod local_storage;
mod procedures;
mod random;
mod requests;
mod script;
mod scripted;
mod secret;
mod set;
mod shell;
mod size;
mod store;
mod transpiler;
mod wait;
mod xml;

pub use agent::{AgentCall, AgentOutcome, AgentReply, AgentRunner, FnAgentRunner};
pub use agent_turn::{
    AgentTurn, Done, MAX_STATE_DEPTH, MemoryTurn, MessageFailure, MessageUpdate, TimerDue,
    TurnCall, TurnChange, TurnEvent, TurnGuest, TurnMessage, TurnPart, TurnQuery, TurnTimer,
    merge_state, timer_name,
};
pub use ai::{AiCode, AiError, AiProvider, ScriptedAi};
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use clock::SystemClock;
pub use clock::{Clock, FixedClock};
pub use dom::{Dom, MemoryDom};
pub use embedder::{Embedder, HashEmbedder, pay_for_text, pay_for_texts};
#[cfg(feature = "testing")]
pub use error::SuiteResult;
pub use error::{BoxFuture, CapabilityError, Reply};
pub use fetch::{Fetch, ScriptedFetch};
pub use llm::{Llm, ScriptedLlm};
pub use llm_battery::{LlmBattery, ScriptedLlmBattery};
pub use local_storage::{LocalStorage, MemoryLocalStorage};
pub use procedures::{MemoryProcedures, ProcedureLimits, ProcedureMiss, Procedures};
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use random::SystemRandom;
pub use random::{Random, SeededRandom, uuid_v4};
pub use requests::{RequestHost, Requests, request_methods};
pub use scripted::{Script, ScriptError};
pub use secret::Secret;
pub use set::{Capabilities, Grant};
pub use shell::{
    DEFAULT_MODE, DEFAULT_OUTPUT_LIMIT, MODE_BITS, MemoryShell, Shell, ShellCommand, ShellError,
    ShellErrorKind, ShellOutput, ShellReply, ShellRequest, check_path,
};
pub use size::value_bytes;
pub use store::{
    MAX_KEY_BYTES, MAX_PAGE, MAX_TOP_K, MemoryStore, Page, Query, ScanMeter, Selection, Store,
    StoreLimits, StoreMethod, StoreUsage, StoredKey, StoredValue, check_room, full_text, vectors,
};
pub use transpiler::{ScriptedTranspiler, Transpiler};
pub use wait::block_on;
pub use xml::{ScriptedXml, Xml};

/// Conformance suites: each checks an implementation of one trait and reports the first
/// violated law.
#[cfg(feature = "testing")]
pub mod suite {
    pub use crate::agent::suite::conformance as agent_runner;
    pub use crate::agent_turn::suite::conformance as agent_turn;
    pub use crate::ai::suite::Case as AiCase;
    pub use crate::clock::suite::conformance as clock;
    pub use crate::dom::suite::conformance as dom;
    pub use crate::embedder::suite::conformance as embedder;
    pub use crate::fetch::suite::conformance as fetch;
    pub use crate::llm::suite::conformance as llm;
    pub use crate::llm_battery::suite::conformance as llm_battery;
    pub use crate::local_storage::suite::conformance as local_storage;
    pub use crate::procedures::suite::conformance as procedures;
    pub use crate::random::suite::conformance as random;
    pub use crate::shell::suite::{APART as SHELL_APART, conformance as shell};
    pub use crate::store::suite::{documents, expiry, key_value, keys, vector_changes, vectors};
    pub use crate::transpiler::suite::conformance as transpiler;
    pub use crate::xml::suite::conformance as xml;
}

#[cfg(test)]
pub(crate) mod testing {
    use a99_core::json::{Document, Limits};
    use a99_core::value::Value;

    pub(crate) use crate::wait::block_on;

    pub(crate) fn value(json: &str) -> Value {
        let document = Document::parse(json, &Limits::default()).expect("JSON");
        document.to_value(document.root())
    }
}
