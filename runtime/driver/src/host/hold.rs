//! Changes of an agent while its host runs: new definitions, and agents held asleep meanwhile.

use super::slots::Slots;
use super::{Factory, Host, Inner};
use crate::activation::Signal;
use crate::activation::turns::panicked;
use crate::agent::{Agent, Identity};
use crate::error::{AgentError, codes};
use crate::hub::locked;
use crate::runner::Typed;
use a99_runtime_engine::{AgentKey, Fence, NewState, TurnCommit};
use std::sync::Arc;
use std::time::Duration;

/// Keeps an agent asleep until dropped: no turn runs, and its events queue. After that the
/// agent wakes if it has pending work.
#[derive(Debug)]
#[must_use = "the agent is held until this is dropped"]
pub struct Held {
    host: Host,
    key: AgentKey,
    was_cut: bool,
}

impl Held {
    /// Whether a turn was cancelled at the deadline.
    #[must_use]
    pub fn was_cut(&self) -> bool {
        self.was_cut
    }

    /// Replaces the agent's state by that of a new agent and clears its checkpoint: it handles
    /// the whole log again, under new identities. Settings, timers and tables remain. If it
    /// fails half-way, the state is new and the checkpoint old; call it again.
    ///
    /// # Errors
    /// `agent.unknown`; the agent's own error of making its first state; errors of the store.
    pub async fn reset(&self) -> Result<(), AgentError> {
        let inner = &self.host.0;
        let agents = inner.shared.agents();
        let Some(row) = agents.load(&self.key).await? else {
            return Ok(());
        };
        let identity = locked(&inner.slots).identity(&self.key);
        let made = identity.zip(inner.factory(self.key.agent()));
        let (identity, factory) = made.ok_or_else(|| {
            let message = format!("no agent is called '{}' here", self.key.agent());
            AgentError::new(codes::UNKNOWN_AGENT, message)
        })?;
        let make = std::panic::AssertUnwindSafe(|| factory(&identity));
        let runner = std::panic::catch_unwind(make).map_err(|panic| panicked(&*panic))?;
        runner.prepare().await?;
        let fence = Fence {
            epoch: agents.epoch(&self.key),
            key: self.key.clone(),
        };
        let mut commit = TurnCommit::new(fence, inner.shared.now());
        let json = runner.initial()?.json;
        commit.state = Some(NewState {
            json: json.clone(),
            version: runner.version(),
            base: row.revision,
        });
        agents.commit(commit).await?;
        agents.restart(&self.key).await?;
        let (states, log) = (&inner.shared.states, &inner.shared.log);
        states.tell(&self.key, &row.state, &json, log);
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let inner = Arc::clone(&self.host.0);
        let is_wanted = locked(&inner.slots).release(&self.key);
        inner.ended.send_modify(|n| *n += 1);
        inner.timers_changed.notify_one();
        let key = self.key.clone();
        inner.runtime.clone().spawn(async move {
            if is_wanted || inner.is_behind(&key).await {
                inner.wake(&key);
            }
        });
    }
}

impl Host {
    /// Defines an agent under a name from now on. An awake agent keeps its current value until
    /// it wakes again; [`Host::hold`] makes it sleep.
    pub fn define<A: Agent>(
        &self,
        name: impl Into<String>,
        make: impl Fn(&Identity) -> A + Send + Sync + 'static,
    ) {
        let name = name.into();
        locked(&self.0.slots).forget_made(&name);
        let factory: Factory = Arc::new(move |identity| Arc::new(Typed::new(make(identity))));
        locked(&self.0.factories).insert(name, factory);
    }

    /// Removes the definition of a name. Gives whether it existed. [`Host::remove`] its agents
    /// first: they cannot wake afterwards.
    pub fn undefine(&self, name: &str) -> bool {
        locked(&self.0.factories).remove(name).is_some()
    }

    /// Lets an agent's turns end and keeps it asleep, so that its definition, timers or
    /// checkpoint can change; other agents continue. Turns that run past the deadline are
    /// cancelled and retried as the policy says. If another caller holds the agent, this waits.
    ///
    /// # Errors
    /// `agent.not_registered`; `host.stopping`; `turn.timeout` if the cancelled turn does not
    /// end.
    pub async fn hold(&self, key: &AgentKey, deadline: Duration) -> Result<Held, AgentError> {
        loop {
            self.0.going_on()?;
            let mut ended = self.0.ended.subscribe();
            let began = locked(&self.0.slots).hold(key);
            match began {
                Some(true) => break,
                Some(false) => drop(ended.changed().await),
                None => {
                    let message = format!("{key} is on no channel of this host");
                    return Err(AgentError::new(codes::NOT_REGISTERED, message));
                }
            }
        }
        let mut held = Held {
            host: self.clone(),
            key: key.clone(),
            was_cut: false,
        };
        let is_asleep = |slots: &Slots| !slots.is_awake(key);
        if self.0.until(deadline, is_asleep).await {
            return Ok(held);
        }
        held.was_cut = true;
        locked(&self.0.slots).signal(key, Signal::Halt);
        let limit = self.0.shared.options.hook_timeout;
        match self.0.until(limit, is_asleep).await {
            true => Ok(held),
            false => {
                let message = format!("a turn of {key} goes on although it was cancelled");
                Err(AgentError::new(codes::TIMEOUT, message))
            }
        }
    }
}

impl Inner {
    /// The factory of an agent.
    pub(super) fn factory(&self, name: &str) -> Option<Factory> {
        locked(&self.factories).get(name).cloned()
    }

    /// Waits until the slots satisfy a condition. Gives whether they did within the limit.
    pub(super) async fn until(&self, limit: Duration, is_so: impl Fn(&Slots) -> bool) -> bool {
        let mut ended = self.ended.subscribe();
        let wait = async {
            while !is_so(&locked(&self.slots)) {
                drop(ended.changed().await);
            }
        };
        tokio::time::timeout(limit, wait).await.is_ok()
    }

    /// Whether the store has work that an agent did not handle.
    pub(super) async fn is_behind(&self, key: &AgentKey) -> bool {
        match self.shared.agents().load(key).await {
            Ok(Some(row)) => {
                !row.started.is_empty() || self.has_news(key, row.progress.checkpoint).await
            }
            Ok(None) => self.has_news(key, 0).await,
            // Wake it: the waking reports the error.
            Err(_) => true,
        }
    }
}
