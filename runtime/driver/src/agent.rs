//! Agents: what a host runs, with state of a type of their own.

use crate::error::AgentError;
use crate::methods::Methods;
use crate::tables::Tables;
use crate::turn::Turn;
use a99_runtime_engine::{AgentKey, Event, EventOptions, Migration, Policy, Seq, Trigger};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;

/// How a hook or handler ends.
pub type TurnOutcome = Result<(), AgentError>;

/// An agent: a type whose values answer events, one turn at a time for each key.
///
/// A value has no state of its own that lasts: what must outlive a turn stands in
/// [`Agent::State`], which a turn changes and its commit keeps. One value serves an agent's
/// key for as long as it is awake.
///
/// Hooks come in this order: [`Agent::init`] once for each waking, [`Agent::on_lost`] if
/// turns were cut off that are not run again, [`Agent::on_wake`], then events and alarms, at
/// last [`Agent::on_sleep`]. Events that come meanwhile wait; none is lost.
///
/// ```
/// use a99_runtime::{Agent, Body, Event, Turn, TurnOutcome};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Default, Serialize, Deserialize)]
/// struct Counted {
///     messages: u64,
/// }
///
/// struct Echo;
///
/// impl Agent for Echo {
///     type State = Counted;
///     type Settings = serde_json::Value;
///
///     async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
///         if let Body::Message(message) = &event.body {
///             turn.state_mut().messages += 1;
///             let n = turn.state().messages;
///             turn.send(format!("Echo #{n}: {}", message.content)).await?;
///         }
///         Ok(())
///     }
/// }
/// ```
pub trait Agent: Send + Sync + Sized + 'static {
    /// What lasts. It is JSON in the store, an object.
    type State: Serialize + DeserializeOwned + Default + Clone + Send + Sync + 'static;
    /// What users may change: laid over [`Agent::default_settings`] and the host's
    /// configuration.
    type Settings: Serialize + DeserializeOwned + Default + Clone + Send + Sync + 'static;

    /// The version of [`Agent::State`]. States of earlier ones are led up by
    /// [`Agent::migrations`]; one of a later version is refused.
    const STATE_VERSION: u32 = 1;

    /// The steps that lead a state from each version to the next.
    fn migrations(&self) -> &[Migration] {
        &[]
    }

    /// The state of an agent that has none yet. What a state of before lacks has its default
    /// still, not what stands here.
    fn initial_state(&self) -> Self::State {
        Self::State::default()
    }

    /// Settings that hold where neither configuration nor user says otherwise.
    fn default_settings(&self) -> Self::Settings {
        Self::Settings::default()
    }

    /// How it joins its channel. `checkpoint` is the place up to which it has seen the log.
    fn connect_options(&self, identity: &Identity, checkpoint: Seq) -> ConnectOptions {
        let _ = (identity, checkpoint);
        ConnectOptions::default()
    }

    /// Which events it sees.
    fn event_options(&self) -> EventOptions {
        EventOptions::default()
    }

    /// What it can rely on when its process is killed, and how often a turn is tried.
    fn policy(&self) -> Policy {
        Policy::default()
    }

    /// How long a turn may take before it is cancelled.
    fn turn_timeout(&self) -> Duration {
        Duration::from_secs(300)
    }

    /// Methods that others on the channel may call.
    fn methods(&self) -> Methods<Self> {
        Methods::none()
    }

    /// SQL tables of its own, in a file of its own ([`TurnClient::storage`]); without them
    /// there is none. An agent with tables has one turn at a time.
    ///
    /// [`TurnClient::storage`]: crate::TurnClient::storage
    fn tables(&self) -> Option<Tables> {
        None
    }

    /// Called once it is on its channel, before everything else. It changes nothing.
    fn init(&self, identity: &Identity) -> TurnOutcome {
        let _ = identity;
        Ok(())
    }

    /// Called when it wakes, before the first event. What it changes is committed.
    fn on_wake(&self, turn: &mut Turn<'_, Self>) -> impl Future<Output = TurnOutcome> + Send {
        let _ = turn;
        ready(Ok(()))
    }

    /// Answers an event.
    fn on_event(
        &self,
        turn: &mut Turn<'_, Self>,
        event: Event,
    ) -> impl Future<Output = TurnOutcome> + Send;

    /// A timer that it set is due.
    fn on_alarm(
        &self,
        turn: &mut Turn<'_, Self>,
        alarm: Alarm,
    ) -> impl Future<Output = TurnOutcome> + Send {
        let _ = (turn, alarm);
        ready(Ok(()))
    }

    /// Called before it sleeps, after the last turn.
    fn on_sleep(&self, turn: &mut Turn<'_, Self>) -> impl Future<Output = TurnOutcome> + Send {
        let _ = turn;
        ready(Ok(()))
    }

    /// Turns that were cut off and are not run again (delivery at most once).
    fn on_lost(
        &self,
        turn: &mut Turn<'_, Self>,
        lost: Vec<Trigger>,
    ) -> impl Future<Output = TurnOutcome> + Send {
        let _ = (turn, lost);
        ready(Ok(()))
    }

    /// Its settings were changed from outside.
    fn on_settings_changed(
        &self,
        turn: &mut Turn<'_, Self>,
    ) -> impl Future<Output = TurnOutcome> + Send {
        let _ = turn;
        ready(Ok(()))
    }
}

/// Who an agent is, and with what it was configured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Agent, channel and handle.
    pub key: AgentKey,
    /// What the host configured.
    pub config: Arc<Value>,
}

/// How an agent joins its channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectOptions {
    /// Its name for people; the agent's name if there is none.
    pub name: Option<String>,
    /// What kind of participant it is; `agent` if there is none.
    pub kind: Option<String>,
    /// What else it says about itself.
    pub extra_metadata: Map<String, Value>,
    /// Where its stream begins when it is on the channel for the first time.
    pub replay: Replay,
}

/// Where the stream of an agent begins that has seen nothing yet.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Replay {
    /// With the first event of the log.
    #[default]
    All,
    /// After a place.
    After(Seq),
    /// With what comes.
    Skip,
}

/// A timer that is due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alarm {
    /// Its name.
    pub name: String,
    /// When it was due, in milliseconds since the Unix epoch.
    pub due: u64,
    /// What was given with it.
    pub payload: Value,
}
