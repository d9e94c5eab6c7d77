//! The view of a run for host functions.

use crate::atom::{AtomError, Cancelled, HostCall};
use a99_core::fuel::Fuel;
use a99_core::text::Text;
use a99_core::value::Value;
use std::any::{Any, type_name};
use std::sync::Arc;
use std::time::Instant;

/// The run that calls a function; functions take it as their first parameter, `cx: &AtomCx`.
///
/// It is read-only, except for [`AtomCx::warn`].
#[derive(Debug)]
pub struct AtomCx {
    call: HostCall,
}

impl AtomCx {
    /// Splits a call into its context and its arguments.
    pub fn split(mut call: HostCall) -> (AtomCx, Vec<Value>) {
        let args = std::mem::take(&mut call.args);
        (AtomCx { call }, args)
    }

    /// The atom's name.
    pub fn op(&self) -> &str {
        &self.call.op
    }

    /// The request context of the run, `undefined` if unset.
    pub fn context(&self) -> &Value {
        &self.call.options.context
    }

    /// The host's grants, if they are a `T`. The facade grants its `Capabilities`.
    pub fn grants<T: Any>(&self) -> Option<&T> {
        self.call.options.grants.as_deref()?.downcast_ref()
    }

    /// The host's value of type `T`, from the run's options or else from the engine
    /// ([`RunOptions::host`](crate::RunOptions::host)).
    ///
    /// # Errors
    /// The value is missing (`capability.missing`). The help names the type; programs do not
    /// see it.
    pub fn host<T: ?Sized + Send + Sync + 'static>(&self) -> Result<Arc<T>, AtomError> {
        self.call.options.host.get().ok_or_else(|| {
            let name = type_name::<T>();
            AtomError::missing(format!(
                "Atom '{}' needs state that its host did not give",
                self.call.op
            ))
            .with_help(format!(
                "give an `Arc<{name}>` to the run (`RunOptions::host`) or to the engine \
                 (`EngineBuilder::host`)"
            ))
        })
    }

    /// Fuel that the run had left at the call.
    pub fn fuel_left(&self) -> Fuel {
        self.call.fuel_left
    }

    /// Nesting depth of the run in sub-agents (D41).
    pub fn depth(&self) -> u32 {
        self.call.depth
    }

    /// Time of the call by the run's clock, in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> f64 {
        self.call.now_ms
    }

    /// Latest time of the answer: the timeout of the atom or the deadline of the run (D22). A
    /// late future is dropped.
    pub fn deadline(&self) -> Option<Instant> {
        self.call.deadline
    }

    /// Whether the answer is no longer wanted, because the run was aborted, timed out or
    /// dropped. The future is dropped then; work outside it can poll a clone of
    /// [`AtomCx::cancelled`].
    pub fn is_cancelled(&self) -> bool {
        self.call.cancelled.is_set()
    }

    /// The cancellation flag, for work that outlives the function's future.
    pub fn cancelled(&self) -> Cancelled {
        self.call.cancelled.clone()
    }

    /// Sends a chunk to the run's host, as `streamChunk` does, and waits for room
    /// ([`RunOptions::events`](crate::RunOptions::events)). Returns at once without a
    /// subscriber.
    pub async fn send_chunk(&self, value: impl Into<Value>) {
        self.call.send_chunk(value.into()).await;
    }

    /// Adds a warning to the run's outcome.
    pub fn warn(&self, text: impl Into<Text>) {
        self.call.locals.warn(text);
    }
}
