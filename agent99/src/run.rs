//! Runs that a host drives itself, and runs of one agent again and again.

use crate::agent::Agent;
use crate::engine::Engine;
use a99_capabilities::Capabilities;
use a99_core::error::RunError;
use a99_vm::{Args, Bound, Run, RunOptions, SnapshotError};
use std::sync::Arc;

impl Engine {
    /// Binds arguments of an agent to places, for a host that runs it again and again, such as
    /// a condition over the rows of a table. Limits, prices and grants are said once. Each
    /// thread makes a [`Caller`](crate::Caller) of its own, whose calls look up no name, and
    /// allocate nothing where arguments and results are numbers and flags. Fuel, heap, deadline
    /// and errors are those of [`Engine::run_sync`] with the same arguments.
    ///
    /// ```
    /// use agent99::{Arg, Engine, Part, RunOptions, capabilities::Capabilities};
    ///
    /// let engine = Engine::new();
    /// let agent = engine.compile(r#"{"op": "seq", "steps": [
    ///     {"op": "if", "condition": "price * count > 10 && name == \"x\"",
    ///      "then": [{"op": "return", "value": {"ok": true}}]}
    /// ]}"#)?;
    /// let names = ["price", "count", "name"];
    /// let bound = engine.bind(&agent, &names, RunOptions::new(), Capabilities::none())?;
    /// let ok = bound.result("ok");
    /// let mut caller = bound.caller();
    /// for (price, count) in [(3.0, 4.0), (3.0, 2.0)] {
    ///     let reply = caller.call(&[price.into(), count.into(), "x".into()])?;
    ///     let expected = if price * count > 10.0 { Part::Bool(true) } else { Part::Undefined };
    ///     assert_eq!(reply.at(ok), expected);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Options that name an unknown op, ask for a trace, or names that stand there twice.
    pub fn bind(
        &self,
        agent: &Agent,
        names: &[&str],
        options: RunOptions,
        granted: Capabilities,
    ) -> Result<Arc<Bound>, RunError> {
        let options = self.granted(options, granted);
        let bound = self.vm().bind(agent.executable(), names, options)?;
        Ok(Arc::new(bound))
    }

    /// Starts an agent for a host that drives it itself: no runtime, no thread, no clock.
    /// [`Run::next`] says what is needed; the host answers a call itself
    /// ([`Run::answer`]), or lets the atom do it with what is granted here
    /// ([`Call::start`](a99_vm::Call::start)). Nothing runs before the first
    /// [`Run::next`].
    ///
    /// ```
    /// use agent99::{Engine, Next, RunOptions, Value, json, capabilities::Capabilities};
    /// use std::time::Duration;
    ///
    /// let engine = Engine::new();
    /// let agent = engine.compile(
    ///     r#"{"op": "seq", "steps": [
    ///         {"op": "httpFetch", "url": "https://example.com", "result": "page"},
    ///         {"op": "return", "schema": {"type": "object", "properties": {"page": {}}}}
    ///     ]}"#,
    /// )?;
    /// let mut run = engine.start(&agent, json!({}), RunOptions::new(), Capabilities::none());
    /// let outcome = loop {
    ///     match run.next(Duration::ZERO) {
    ///         Next::Call(call) => {
    ///             assert_eq!((call.id.to_string(), &*call.atom), ("0.0".into(), "httpFetch"));
    ///             assert_eq!(call.pointer().as_deref(), Some("/steps/0"));
    ///             assert_eq!(call.inputs().to_json(), json!({"url": "https://example.com"}));
    ///             run.answer(&call.id, Ok(Value::from("Hello!").into())).expect("it waits");
    ///         }
    ///         Next::Pause | Next::Wait(_) => {}
    ///         Next::Done(outcome) => break outcome,
    ///     }
    /// };
    /// assert_eq!(outcome.result.to_json(), json!({"page": "Hello!"}));
    /// # Ok::<(), agent99::Diagnostics>(())
    /// ```
    pub fn start(
        &self,
        agent: &Agent,
        args: impl Into<Args>,
        options: RunOptions,
        granted: Capabilities,
    ) -> Run {
        let options = self.granted(options, granted);
        self.vm().start(agent.for_a_run(), args, options)
    }

    /// Goes on with a snapshot of a run of this agent ([`Run::snapshot`]), in this
    /// process or another. Nobody has to trust it.
    ///
    /// What a host says of a run it says again: limits, capabilities, context, prices,
    /// quotas, signal, timeouts. `options.fuel` is the most that the run may have been
    /// given in all; cost model, equality and trace are as they were. A call that was not
    /// answered is made again, under the same identity.
    ///
    /// ```
    /// # use agent99::{Engine, Next, RunOptions, Value, json, capabilities::Capabilities};
    /// # use std::time::Duration;
    /// # let program = r#"{"op": "seq", "steps": [
    /// #     {"op": "httpFetch", "url": "https://example.com", "result": "page"},
    /// #     {"op": "return", "schema": {"type": "object", "properties": {"page": {}}}}
    /// # ]}"#;
    /// # let (engine, granted) = (Engine::new(), Capabilities::none);
    /// let agent = engine.compile(program)?;
    /// let mut run = engine.start(&agent, json!({}), RunOptions::new(), granted());
    /// let Next::Call(call) = run.next(Duration::ZERO) else { panic!("it fetches") };
    /// let bytes = run.snapshot()?;
    /// drop(run);
    ///
    /// // Later, elsewhere: an engine with the same atoms, the same program.
    /// let mut run = engine.restore(&agent, &bytes, RunOptions::new(), granted())?;
    /// run.answer(&call.id, Ok(Value::from("Hello!").into()))?;
    /// let Next::Done(outcome) = run.next(Duration::ZERO) else { panic!("it ends") };
    /// assert_eq!(outcome.result.to_json(), json!({"page": "Hello!"}));
    ///
    /// let refused = engine.restore(&agent, &bytes[..60], RunOptions::new(), granted());
    /// assert_eq!(refused.unwrap_err().code, "snapshot.wrong_length");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Whatever is wrong with the bytes, with a stable code: damage, another program,
    /// other atoms, content that no run has, more than the limits allow.
    pub fn restore(
        &self,
        agent: &Agent,
        snapshot: &[u8],
        options: RunOptions,
        granted: Capabilities,
    ) -> Result<Run, SnapshotError> {
        let options = self.granted(options, granted);
        self.vm().restore(agent.for_a_run(), snapshot, options)
    }
}
