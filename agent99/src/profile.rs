//! Run profiles: options and grants shared by many runs.

use crate::agent::Agent;
use crate::engine::Engine;
use a99_capabilities::Capabilities;
use a99_core::error::RunError;
use a99_vm::{Args, Bound, Outcome, Run, RunOptions, SnapshotError, Vm};
use std::future::Future;
use std::sync::Arc;

/// Limits, prices, quotas, context and grants of many runs, resolved once
/// ([`Engine::profile`]). A run borrows them without copying.
///
/// A quota applies to each run. The signal, the account and the state of the capabilities are
/// shared by all runs.
///
/// A clone shares the signal, the account and the capabilities. Give each thread that runs
/// agents frequently its own clone of the profile and of the agents. The threads then write
/// no shared memory when a run begins or ends.
pub struct RunProfile {
    vm: Arc<Vm>,
    options: Arc<RunOptions>,
}

impl Clone for RunProfile {
    fn clone(&self) -> RunProfile {
        RunProfile {
            vm: Arc::new(self.vm.unshared()),
            options: Arc::new(RunOptions::clone(&self.options)),
        }
    }
}

impl std::fmt::Debug for RunProfile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunProfile")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Creates a profile for many runs, of one agent or of several.
    ///
    /// ```
    /// use agent99::{Engine, RunOptions, capabilities::Capabilities, json};
    ///
    /// let engine = Engine::new();
    /// let agent = engine.compile(r#"{"op": "seq", "steps": [
    ///     {"op": "varsImport", "keys": ["n"]},
    ///     {"op": "mathCalc", "expr": "n * 2", "result": "twice"},
    ///     {"op": "return", "schema": {"type": "object", "properties": {"twice": {}}}}
    /// ]}"#)?;
    /// let profile = engine.profile(RunOptions::new().timeout_ms(100), Capabilities::none())?;
    /// for n in [1, 2] {
    ///     let outcome = profile.run_sync(&agent, json!({"n": n}));
    ///     assert_eq!(outcome.result.to_json(), json!({"twice": n * 2}));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorCode::UnknownOp`](crate::ErrorCode::UnknownOp) if the options name an op that
    /// this engine lacks.
    pub fn profile(
        &self,
        options: RunOptions,
        granted: Capabilities,
    ) -> Result<RunProfile, RunError> {
        self.vm().check_options(&options)?;
        Ok(RunProfile {
            options: Arc::new(self.granted(options, granted)),
            vm: Arc::clone(self.vm()),
        })
    }
}

impl RunProfile {
    /// Runs an agent, as [`Engine::run`] does.
    pub fn run(
        &self,
        agent: &Agent,
        args: impl Into<Args>,
    ) -> impl Future<Output = Outcome> + Send {
        let options = self.options.for_a_run();
        self.vm.run(agent.for_a_run(), args, options)
    }

    /// Runs an agent on this thread, as [`Engine::run_sync`] does. An atom that would have to
    /// wait fails.
    pub fn run_sync(&self, agent: &Agent, args: impl Into<Args>) -> Outcome {
        let options = self.options.for_a_run();
        self.vm.run_sync(agent.for_a_run(), args, options)
    }

    /// Starts an agent that the host drives, as [`Engine::start`] does.
    pub fn start(&self, agent: &Agent, args: impl Into<Args>) -> Run {
        let options = self.options.for_a_run();
        self.vm.start(agent.for_a_run(), args, options)
    }

    /// Resumes a run from a snapshot, as [`Engine::restore`] does.
    ///
    /// # Errors
    /// As [`Engine::restore`].
    pub fn restore(&self, agent: &Agent, snapshot: &[u8]) -> Result<Run, SnapshotError> {
        let options = self.options.for_a_run();
        self.vm.restore(agent.for_a_run(), snapshot, options)
    }

    /// Binds an agent's arguments to positions, as [`Engine::bind`] does.
    ///
    /// # Errors
    /// As [`Engine::bind`].
    pub fn bind(&self, agent: &Agent, names: &[&str]) -> Result<Arc<Bound>, RunError> {
        let options = Arc::clone(&self.options);
        self.vm
            .bind(agent.for_a_run(), names, options)
            .map(Arc::new)
    }
}
