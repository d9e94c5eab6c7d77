//! Run of one agent: alone on a host of its own, from its start until it is asked to end.

use super::slots::Standing;
use super::{AgentInfo, Host, HostBuilder};
use crate::agent::{Agent, Identity};
use crate::error::AgentError;
use crate::hub::locked;
use a99_runtime_engine::{AgentKey, AgentStore, ChannelStore};
use serde_json::{Map, Value};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// With what [`run_agent`] runs an agent.
#[derive(Debug)]
pub struct RunAgentOptions {
    /// Clock, language model, log, options; agents that this one may invite.
    pub host: HostBuilder,
    /// The agent's configuration.
    pub config: Value,
    /// How long turns that run at the end may go on before they are cancelled.
    pub drain: Duration,
}

impl Default for RunAgentOptions {
    /// What [`Host::builder`] gives, an empty configuration, ten seconds for turns that run.
    fn default() -> RunAgentOptions {
        RunAgentOptions {
            host: Host::builder(),
            config: Value::Object(Map::new()),
            drain: Duration::from_secs(10),
        }
    }
}

/// How a run of an agent ended that was asked to.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRunEnd {
    /// How the agent is now; it sleeps.
    pub info: AgentInfo,
    /// Whether a turn was cancelled because it took longer than
    /// [`RunAgentOptions::drain`]. It runs again at the next start, as the policy says.
    pub was_cut: bool,
}

/// Runs one agent in this process until `serve` ends: what stands in the `main` of a program
/// that is one agent.
///
/// In this order: the store's agents are read and those of other names that are behind wake,
/// if the options know them; the agent is put on its channel under `key`, or gets its new
/// configuration; its state is read, migrated and laid over what the agent starts with; its
/// hooks `init`, `on_lost` and `on_wake` run; then `serve` is called with the host, and the
/// agent has its events from where it stopped last. No event that comes in between is lost.
/// When `serve` ends, no turn begins any more, those that run end, `on_sleep` runs, and all
/// that was acknowledged is durable. An agent that sleeps meanwhile wakes by itself.
///
/// `serve` may wait for a signal, or do the work that the agent is for:
///
/// ```
/// # use a99_runtime::{Agent, Event, Publish, RunAgentOptions, Turn, TurnOutcome, run_agent};
/// # use a99_runtime_stores::{SqliteRuntime, StoreOptions};
/// # use std::sync::Arc;
/// # struct Quiet;
/// # impl Agent for Quiet {
/// #     type State = serde_json::Value;
/// #     type Settings = serde_json::Value;
/// #     fn initial_state(&self) -> Self::State { serde_json::json!({}) }
/// #     async fn on_event(&self, _: &mut Turn<'_, Self>, _: Event) -> TurnOutcome { Ok(()) }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let store = SqliteRuntime::open(folder.path().join("agent.db"), StoreOptions::default())?;
/// let key = "quiet/general/quiet".parse()?;
/// let ended = run_agent(&key, |_| Quiet, Arc::new(store), RunAgentOptions::default(), |host| async move {
///     // tokio::signal::ctrl_c().await
///     assert_eq!(host.agents().len(), 1);
/// })
/// .await?;
/// assert_eq!(ended.info.status, "asleep");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// What kept the agent from starting: its state, a hook, its policy, the store. What stopped
/// it for good while it ran: a dead letter where the policy says
/// [`OnDead::Stop`](crate::OnDead::Stop), a state that cannot be read any more; `serve` is
/// dropped then. Those of stopping. The host is drained in each of these cases.
///
/// # Panics
/// Outside of a tokio runtime.
pub async fn run_agent<A, S, F>(
    key: &AgentKey,
    make: impl Fn(&Identity) -> A + Send + Sync + 'static,
    store: Arc<S>,
    options: RunAgentOptions,
    serve: impl FnOnce(Host) -> F,
) -> Result<AgentRunEnd, AgentError>
where
    A: Agent,
    S: AgentStore + ChannelStore + 'static,
    F: Future,
{
    let builder = options.host.agent(key.agent(), make);
    let host = builder.start(store).await?;
    let served = host.serve(key, options.config, serve).await;
    let cut = host.drain(options.drain).await;
    // Why it ended says more than what came of that.
    served?;
    Ok(AgentRunEnd {
        info: host.inspect(key).await?,
        was_cut: cut?.contains(key),
    })
}

impl Host {
    async fn serve<F: Future>(
        &self,
        key: &AgentKey,
        config: Value,
        serve: impl FnOnce(Host) -> F,
    ) -> Result<(), AgentError> {
        self.invite(key, config).await?;
        // One that was there already sleeps if nothing is for it.
        self.wake(key)?;
        self.is_up(key).await?;
        let mut serving = pin!(serve(self.clone()));
        let mut ended = self.0.ended.subscribe();
        loop {
            let standing = locked(&self.0.slots).standing(key);
            if let Standing::Over(error) = standing {
                return Err(error);
            }
            tokio::select! {
                _ = &mut serving => return Ok(()),
                _ = ended.changed() => {}
            }
        }
    }

    /// Waits until an agent that was woken has run its hooks.
    async fn is_up(&self, key: &AgentKey) -> Result<(), AgentError> {
        let mut ended = self.0.ended.subscribe();
        loop {
            let standing = locked(&self.0.slots).standing(key);
            match standing {
                Standing::Failed(error) | Standing::Over(error) => return Err(error),
                Standing::Asleep => return Ok(()),
                Standing::Awake(mut status) => {
                    if status.wait_for(|status| status.is_up).await.is_ok() {
                        return Ok(());
                    }
                    // It ended before; how, is known when the host has taken note of it.
                    drop(ended.changed().await);
                }
            }
        }
    }
}
