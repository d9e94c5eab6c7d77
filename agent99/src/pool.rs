//! Pools: concurrent runs of an engine under one memory ceiling.

use crate::agent::Agent;
use crate::engine::Engine;
use a99_capabilities::Capabilities;
use a99_vm::{Args, Outcome, Pool, RunOptions};

/// Bounds the memory of concurrent runs; see [`Engine::pool`].
#[derive(Debug)]
pub struct EnginePool {
    engine: Engine,
    pool: Pool,
}

impl EnginePool {
    /// Runs an agent as soon as there is room for its heap ceiling.
    pub async fn run(
        &self,
        agent: &Agent,
        args: impl Into<Args>,
        options: RunOptions,
        granted: Capabilities,
    ) -> Outcome {
        let options = self.engine.granted(options, granted);
        self.pool.run(agent.for_a_run(), args, options).await
    }
}

impl Engine {
    /// Creates a pool whose runs together hold at most `heap_bytes`.
    pub fn pool(&self, heap_bytes: usize) -> EnginePool {
        EnginePool {
            engine: self.clone(),
            pool: Pool::new(self.0.vm.clone(), heap_bytes),
        }
    }
}
