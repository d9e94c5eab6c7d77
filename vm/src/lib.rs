//! The register machine: runs verified programs within limits.
//!
//! An [`Artifact`](a99_core::verify::Artifact) is linked with a host's
//! [`AtomSet`](atom::AtomSet) into an [`Executable`], which a [`Vm`] runs any number of
//! times. The machine itself is pure: it owns its heap, counts its fuel, and suspends
//! whenever it needs the outside world. [`run`] is a run that its host drives by hand.
//! `driver` builds on it and adds waiting, timers and signals.
//!
//! The crate has no atoms, reads no clock and opens no socket. The crate `agent99` assembles
//! these parts; a host can also do it directly:
//!
//! ```
//! use a99_compiler::{CompileOptions, compile};
//! use a99_core::json::{Document, Limits};
//! use a99_core::value::{Map, Value};
//! use a99_core::verify::verify;
//! use a99_vm::{Environment, RunOptions, Vm};
//! use std::sync::Arc;
//!
//! /// Nothing that depends on the machine.
//! struct Still;
//!
//! impl Environment for Still {
//!     fn now_ms(&self) -> f64 {
//!         0.0
//!     }
//!
//!     fn random(&self, out: &mut [u8]) {
//!         out.fill(4);
//!     }
//! }
//!
//! let vm = Vm::new(a99_atoms::core_atoms(), Arc::new(Still));
//! let text = r#"{"op": "seq", "steps": [
//!     {"op": "mathCalc", "expr": "n * 7", "vars": {"n": "args.n"},
//!      "result": "product"},
//!     {"op": "return", "schema": {"type": "object", "properties": {"product": {}}}}
//! ]}"#;
//! let source = Arc::new(Document::parse(text, &Limits::default())?);
//! let program = compile(&source, vm.atoms(), &CompileOptions::default())?;
//! let artifact = verify(program).expect("the compiler's work is sound");
//! let executable = vm.link(&artifact).expect("all of its atoms are there");
//!
//! let mut args = Map::new();
//! args.insert("n", 6.0);
//! let outcome = vm.run_sync(&executable, args, RunOptions::default());
//! assert_eq!(outcome.error, None);
//! assert_eq!(outcome.result.to_json_string(), r#"{"product":42}"#);
//! # Ok::<(), a99_core::diag::Diagnostics>(())
//! ```

#![warn(unreachable_pub)]

mod abort;
pub mod args;
pub mod atom;
pub mod bound;
pub mod builtins;
mod clock;
pub mod coerce;
pub mod console;
pub mod convert;
mod describe;
pub mod digest;
pub mod driver;
pub mod heap;
mod helpers;
mod host_state;
pub mod json;
pub mod link;
pub mod machine;
pub mod member;
mod mismatch;
pub mod native;
pub mod options;
mod pace;
pub mod progress;
pub mod regex;
pub mod run;
pub mod schema;
mod spare;
pub mod strict_schema;
#[cfg(feature = "jit")]
mod tier;
pub mod trace;
mod trace_lines;
#[cfg(feature = "typed")]
pub mod typed;
pub mod vm;
mod wire;

pub use a99_run::events::{
    CallEnd, EventLimits, EventSink, EventStream, LogLevel, LogLine, MAX_TEXT_BYTES, RunEvent,
    RunEventKind, event_channel,
};
pub use abort::AbortSignal;
pub use args::{Args, JsonText};
pub use bound::{Arg, Bound, Caller, Part, Reply, ResultSlot};
pub use clock::{Environment, RunClock};
pub use console::ConsoleSink;
pub use driver::{Pool, Timers};
pub use host_state::{Grants, HostState};
pub use link::{Executable, LinkError};
pub use options::{CostOverride, Equality, Limits, OptionError, Outcome, Quota, RunOptions};
pub use progress::{Progress, RunProgress};
pub use run::{Answer, Call, CallCharges, Next, Run, RunFault, RunMemory, StackFrame};
#[cfg(feature = "jit")]
pub use tier::CompiledTier;
pub use trace::{TraceCall, TraceCallEnd, TraceEvent, TraceSink, TraceStep};
pub use trace_lines::TraceLines;
pub use vm::{ProgramLoader, Vm};
pub use wire::SnapshotError;
