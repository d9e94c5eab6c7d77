//! Runs that the host drives, and agents bound for repeated calls.

use crate::agent::Agent;
use crate::engine::Engine;
use a99_capabilities::Capabilities;
use a99_core::error::RunError;
use a99_vm::{Args, Bound, Run, RunOptions, SnapshotError};
use std::sync::Arc;

impl Engine {
    /// Binds an agent's arguments to positions, for repeated calls such as a filter over the
    /// rows of a table.
    ///
    /// Limits, prices and grants are resolved once. Each thread creates its own
    /// [`Caller`](crate::Caller). Its calls look up no names, and allocate nothing if
    /// arguments and results are numbers and booleans. Fuel, heap, deadline and errors are
    /// those of [`Engine::run_sync`] with the same arguments.
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
    /// The options name an unknown op or ask for a trace, or a name occurs twice.
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

    /// Starts a run that the host drives, without runtime, thread or clock.
    ///
    /// [`Run::next`] returns the next request. The host answers a call itself
    /// ([`Run::answer`]), or lets the atom execute it with the capabilities granted here
    /// ([`Call::start`](a99_vm::Call::start)). Nothing runs before the first [`Run::next`].
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

    /// Resumes a run from a snapshot ([`Run::snapshot`]), in this process or another.
    /// Snapshots need no trust.
    ///
    /// The host passes its options again: limits, capabilities, context, prices, quotas,
    /// signal, timeouts. `options.fuel` is the most fuel that the run may have been given in
    /// total. Cost model, equality and trace come from the snapshot. An unanswered call is
    /// made again, with the same id.
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
    /// // Later, in another process: an engine with the same atoms, the same program.
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
    /// Any fault of the bytes, with a stable code: damage, another program, other atoms,
    /// impossible state, or more than the limits allow.
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
