//! What a host function may know of the run that calls it.

use crate::atom::{AtomError, Cancelled, HostCall};
use a99_core::fuel::Fuel;
use a99_core::text::Text;
use a99_core::value::Value;
use std::any::{Any, type_name};
use std::sync::Arc;
use std::time::Instant;

/// The run, as a function sees it that takes `cx: &AtomCx` first.
///
/// Nothing of it changes the run but [`AtomCx::warn`].
#[derive(Debug)]
pub struct AtomCx {
    call: HostCall,
}

impl AtomCx {
    /// Splits a call into what is known of the run and the arguments.
    pub fn split(mut call: HostCall) -> (AtomCx, Vec<Value>) {
        let args = std::mem::take(&mut call.args);
        (AtomCx { call }, args)
    }

    /// The atom's name.
    pub fn op(&self) -> &str {
        &self.call.op
    }

    /// The request context of the run, `undefined` if there is none.
    pub fn context(&self) -> &Value {
        &self.call.options.context
    }

    /// What the host grants, if it is a `T`. The facade grants its
    /// `Capabilities`.
    pub fn grants<T: Any>(&self) -> Option<&T> {
        self.call.options.grants.as_deref()?.downcast_ref()
    }

    /// The host's value of type `T` for this run or, if it has none, for the
    /// engine ([`RunOptions::host`](crate::RunOptions::host)).
    ///
    /// # Errors
    /// There is none: an error for the run (`capability.missing`), whose help
    /// names the type. Programs do not see the type.
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

    /// Fuel the run had left when the function was called.
    pub fn fuel_left(&self) -> Fuel {
        self.call.fuel_left
    }

    /// How deep the run is nested in sub-agents (D41).
    pub fn depth(&self) -> u32 {
        self.call.depth
    }

    /// Milliseconds since the Unix epoch when the function was called, by the
    /// run's clock.
    pub fn now_ms(&self) -> f64 {
        self.call.now_ms
    }

    /// When the answer comes too late: the end of the atom's time or of the
    /// run's (D22). A future that is late is dropped.
    pub fn deadline(&self) -> Option<Instant> {
        self.call.deadline
    }

    /// Whether the answer is no longer wanted, because the run was aborted,
    /// timed out or dropped. A waiting future is dropped then; work that goes
    /// on elsewhere asks a clone of [`AtomCx::cancelled`].
    pub fn is_cancelled(&self) -> bool {
        self.call.cancelled.is_set()
    }

    /// The abort signal, for work that outlives the function's future.
    pub fn cancelled(&self) -> Cancelled {
        self.call.cancelled.clone()
    }

    /// Sends the host of the run a chunk while the function runs, as `streamChunk` does, and
    /// waits until there is room for it ([`RunOptions::events`](crate::RunOptions::events)).
    /// Nothing happens where nobody listens.
    pub async fn send_chunk(&self, value: impl Into<Value>) {
        self.call.send_chunk(value.into()).await;
    }

    /// Adds a warning to the run's outcome.
    pub fn warn(&self, text: impl Into<Text>) {
        self.call.locals.warn(text);
    }
}
