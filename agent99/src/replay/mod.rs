//! Recording of runs, and replay without the world.
//!
//! [`Engine::record`](crate::Engine::record) writes what a run got from its host: arguments, seed and
//! time, and the answer of each call, one line of JSON each.
//! [`Engine::replay`](crate::Engine::replay) runs the same or another program with these answers,
//! without capabilities, and reports the first call that departs from the recording.
//!
//! A recorded program sees time as it was at its start or at its last answer, so that a replay
//! sees the same.
//!
//! ```
//! use agent99::capabilities::Capabilities;
//! use agent99::replay::Recording;
//! use agent99::{Engine, RunOptions, json};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
//! # runtime.block_on(async {
//!
//! let engine = Engine::new();
//! let agent = engine.compile(
//!     r#"{"op": "seq", "steps": [
//!         {"op": "httpFetch", "url": "https://example.com", "result": "page"},
//!         {"op": "return", "schema": {"type": "object", "properties": {"page": {}}}}
//!     ]}"#,
//! )?;
//! let mut file = Vec::new();
//! let granted = Capabilities::none();
//! let first = engine.record(&agent, json!({}).into(), RunOptions::new(), granted, &mut file).await?;
//! let recording = Recording::read(&*file)?;
//! let again = engine.replay(&agent, &recording, RunOptions::new()).await;
//! assert_eq!(again.outcome.to_json(), first.to_json());
//! assert_eq!((recording.order.len(), again.departure), (1, None));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })
//! # }
//! ```

mod answer;
mod environment;
mod recording;
mod run;

pub use answer::{Answered, ModelUse, decode, encode, hex_bytes};
pub use environment::RunEnvironment;
pub use recording::{BadRecording, RecordedCall, Recording};
pub use run::{Departure, Replayed, inputs_digest, is_kept_for_replay, is_table};

use a99_capabilities::Capabilities;
use a99_core::sig::Capability;
use a99_core::value::Value;

/// Which state belongs to a run, because the host grants none: its calls run again at a replay.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnState {
    /// The store is private to the run.
    pub store: bool,
    /// The stored programs are private to the run.
    pub procedures: bool,
}

impl OwnState {
    /// The private state under these grants.
    #[must_use]
    pub fn of(granted: &Capabilities) -> OwnState {
        OwnState {
            store: granted.store.is_none(),
            procedures: granted.procedures.is_none(),
        }
    }

    /// Whether a call acts on the run itself, so that its answer is not recorded.
    #[must_use]
    pub fn has(self, atom: &str, args: &[Value], capability: Option<Capability>) -> bool {
        match atom {
            "streamChunk" => true,
            "agentRun" => {
                let id = args.first().and_then(Value::as_str);
                self.procedures && id.is_some_and(|id| id.starts_with("proc_"))
            }
            _ => match capability {
                Some(Capability::Store | Capability::Vectors) => self.store,
                Some(Capability::Procedures) => self.procedures,
                // Such atoms act on the turn (D91), unless they act on others.
                Some(Capability::AgentTurn) => {
                    !matches!(atom, "agentRoster" | "agentInvite" | "agentRemove")
                }
                _ => false,
            },
        }
    }
}
