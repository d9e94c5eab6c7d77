//! What the inspector page asks of a host of agents.

use super::host::Live;
use super::wire::{Change, Refusal};
use a99_channels::server::{DeadLetters, Operator};
use a99_frame::WireError;
use a99_runtime::program::timeline;
use a99_runtime::{AgentKey, Trigger};
use a99_runtime_engine::{AgentStore as _, BoxFuture, StoreError};
use serde_json::{Value as Json, json};

/// Events of the outbox that are counted; reading them takes memory.
const MAX_OUTBOX: usize = 100;

fn refused(error: StoreError) -> WireError {
    Refusal::from(error).into()
}

impl Operator for Live {
    fn outbox(&self) -> BoxFuture<'_, Result<usize, WireError>> {
        Box::pin(async {
            let waiting = self.store.outbox(MAX_OUTBOX).await;
            Ok(waiting.map_err(refused)?.len())
        })
    }

    fn turns<'a>(&'a self, agent: &'a AgentKey) -> BoxFuture<'a, Result<Vec<Trigger>, WireError>> {
        Box::pin(async { self.store.kept_turns(agent).await.map_err(refused) })
    }

    fn turn<'a>(
        &'a self,
        agent: &'a AgentKey,
        trigger: &'a Trigger,
    ) -> BoxFuture<'a, Result<Option<Json>, WireError>> {
        Box::pin(async {
            let found = self
                .store
                .kept_turn(agent, trigger)
                .await
                .map_err(refused)?;
            Ok(found.and_then(|(turn, _)| Some(json!(timeline(&turn)?))))
        })
    }

    fn dead_letters<'a>(
        &'a self,
        agent: &'a AgentKey,
        action: DeadLetters,
    ) -> BoxFuture<'a, Result<Json, WireError>> {
        let change = match action {
            DeadLetters::Retry => Change::RetryDead,
            DeadLetters::Drop => Change::ForgetDead,
        };
        Box::pin(async move { Ok(self.change(agent, change).await?) })
    }
}
