//! Runs one agent on a dedicated host, from its start until it is asked to end.

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

/// Options of [`run_agent`].
#[derive(Debug)]
pub struct RunAgentOptions {
    /// Clock, language model, log and options, and further agents that this one may invite.
    pub host: HostBuilder,
    /// The agent's configuration.
    pub config: Value,
    /// How long running turns may continue at the end before they are cancelled.
    pub drain: Duration,
}

impl Default for RunAgentOptions {
    /// The defaults of [`Host::builder`], an empty configuration, and ten seconds for running
    /// turns.
    fn default() -> RunAgentOptions {
        RunAgentOptions {
            host: Host::builder(),
            config: Value::Object(Map::new()),
            drain: Duration::from_secs(10),
        }
    }
}

/// The end of a run that was asked to stop.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRunEnd {
    /// The agent's status; it is asleep.
    pub info: AgentInfo,
    /// Whether a turn was cancelled because it exceeded [`RunAgentOptions::drain`]. The next
    /// start retries it as the policy says.
    pub was_cut: bool,
}

/// Runs one agent in this process until `serve` ends: the `main` of a single-agent program.
///
/// The order is: the host reads the store's agents, and other agents that are behind wake if
/// the options define them; the agent joins its channel under `key`, or gets its new
/// configuration; its state is read, migrated and merged over the initial state; the hooks
/// `init`, `on_lost` and `on_wake` run; then `serve` is called with the host, and the agent
/// receives events from its checkpoint. No event in between is lost. When `serve` ends, no new
/// turn begins, running turns end, `on_sleep` runs, and everything acknowledged is durable. An
/// agent that sleeps meanwhile wakes when needed.
///
/// `serve` may wait for a signal, or do the agent's job:
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
/// An error that prevents the agent's start: its state, a hook, its policy, the store. An error
/// that stops it permanently while it runs: a dead letter where the policy says
/// [`OnDead::Stop`](crate::OnDead::Stop), or an unreadable state; `serve` is dropped then.
/// Errors of stopping. The host is drained in each of these cases.
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
    // The error of `serve` explains more than the error of draining.
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
        // An agent that was already on the channel stays asleep if it has no pending work.
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

    /// Waits until a woken agent has run its hooks.
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
                    // The activation ended early; the slot shows why once the host has
                    // processed it.
                    drop(ended.changed().await);
                }
            }
        }
    }
}
