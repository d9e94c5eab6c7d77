//! Link: a host's access to a process of agents, across reconnects.

use super::Process;
use super::calls::Connection;
use super::runner::RemoteRunner;
use super::start::Listening;
use super::wire::Declared;
use crate::agent::Identity;
use crate::error::{AgentError, codes};
use crate::hub::locked;
use crate::runner::Runner;
use a99_runtime_engine::AgentKey;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Time limit of a process's shutdown.
const GOODBYE: Duration = Duration::from_secs(2);

/// A host's access to a process of agents.
pub(crate) struct Link {
    pub(super) process: Process,
    agents: Vec<String>,
    state: tokio::sync::Mutex<State>,
    /// Declarations of agents at their last waking, for views of the channel.
    declared: Mutex<HashMap<AgentKey, Arc<Declared>>>,
    next_agent: AtomicU64,
    is_stopping: watch::Sender<bool>,
    /// Why the last connection attempt was refused.
    refused: Mutex<Option<AgentError>>,
}

#[derive(Default)]
struct State {
    /// The socket for a process that connects by itself.
    listening: Option<Listening>,
    live: Option<Arc<Connection>>,
    /// Consecutive connections that failed or ended no turn.
    failures: u32,
    not_before: Option<Instant>,
}

impl Link {
    pub(crate) fn new(process: Process, agents: Vec<String>) -> Arc<Link> {
        Arc::new(Link {
            process,
            agents,
            state: tokio::sync::Mutex::default(),
            declared: Mutex::default(),
            next_agent: AtomicU64::new(1),
            is_stopping: watch::Sender::new(false),
            refused: Mutex::default(),
        })
    }

    /// The runner of an agent of the process.
    pub(crate) fn runner(self: &Arc<Link>, identity: &Identity) -> Arc<dyn Runner> {
        let declared = locked(&self.declared).get(&identity.key).cloned();
        Arc::new(RemoteRunner::new(
            Arc::clone(self),
            identity.clone(),
            declared,
        ))
    }

    /// A new number for an agent's value in the process.
    pub(super) fn number(&self) -> u64 {
        self.next_agent.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn learn(&self, key: &AgentKey, declared: &Arc<Declared>) {
        locked(&self.declared).insert(key.clone(), Arc::clone(declared));
    }

    /// The current connection; without one it starts the program and connects.
    ///
    /// # Errors
    /// `process.not_started`, `host.stopping`.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, AgentError> {
        let mut is_stopping = self.is_stopping.subscribe();
        tokio::select! {
            biased;
            _ = is_stopping.wait_for(|is| *is) => {
                Err(AgentError::new(codes::STOPPING, "the host is stopping"))
            }
            connection = self.connected() => connection,
        }
    }

    async fn connected(&self) -> Result<Arc<Connection>, AgentError> {
        let mut state = self.state.lock().await;
        if let Some(live) = &state.live {
            if !live.peer.has_ended() {
                return Ok(Arc::clone(live));
            }
            match live.has_ended_a_turn() {
                true => state.failures = 0,
                false => self.failed(&mut state),
            }
            state.live = None;
        }
        if let Some(at) = state.not_before.take() {
            tokio::time::sleep_until(at).await;
        }
        match self.connect(&mut state).await {
            Ok(live) => {
                state.live = Some(Arc::clone(&live));
                Ok(live)
            }
            Err(error) => {
                self.failed(&mut state);
                Err(error)
            }
        }
    }

    fn failed(&self, state: &mut State) {
        let (first, most) = self.process.pauses;
        let pause = first.saturating_mul(2_u32.saturating_pow(state.failures));
        state.failures = state.failures.saturating_add(1);
        state.not_before = Some(Instant::now() + pause.min(most));
    }

    async fn connect(&self, state: &mut State) -> Result<Arc<Connection>, AgentError> {
        let own;
        let listening = match (self.process.is_attached(), &mut state.listening) {
            (true, Some(listening)) => listening,
            (true, none) => none.insert(Listening::new(&self.process)?),
            // A started program connects once.
            (false, _) => {
                own = Listening::new(&self.process)?;
                &own
            }
        };
        *locked(&self.refused) = None;
        let refused = |error: &AgentError| *locked(&self.refused) = Some(error.clone());
        let connected = listening.connect(&self.process, &self.agents, refused);
        let connected = connected.await.map_err(|error| {
            match locked(&self.refused).take() {
                // The refusal explains more.
                Some(refused) => AgentError::new(
                    codes::NOT_STARTED,
                    format!("{error}; who connected was refused: {refused}"),
                ),
                None => error,
            }
        });
        let (stream, running) = connected?;
        Ok(Connection::over(stream, running))
    }

    /// Ends the process after the host has drained.
    pub(crate) async fn stop(&self) {
        self.is_stopping.send_replace(true);
        let mut state = self.state.lock().await;
        state.listening = None;
        if let Some(live) = state.live.take() {
            // A process that does not respond is killed.
            let goodbye = live.peer.notify("bye", &());
            drop(tokio::time::timeout(GOODBYE, goodbye).await);
            drop(tokio::time::timeout(GOODBYE, live.peer.ended()).await);
            let why = AgentError::new(codes::STOPPING, "the host is stopping");
            live.peer.end(why);
            live.finished().await;
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(live) = &self.state.get_mut().live {
            let why = AgentError::new(codes::STOPPING, "the host is gone");
            live.peer.end(why);
        }
    }
}
