//! Agents: the trait that a host runs, with typed state.

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

/// The result of a hook or handler.
pub type TurnOutcome = Result<(), AgentError>;

/// An agent: a type whose values handle events, one turn at a time for each key.
///
/// A value keeps no durable state itself: data that must outlive a turn belongs in
/// [`Agent::State`], which a turn changes and its commit stores. One value serves an agent's
/// key for as long as the agent is awake.
///
/// Hooks run in this order: [`Agent::init`] once for each waking, [`Agent::on_lost`] if
/// interrupted turns will not be retried, [`Agent::on_wake`], then events and alarms, finally
/// [`Agent::on_sleep`]. Events that arrive meanwhile queue; none is dropped.
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
    /// The durable state. The store keeps it as a JSON object.
    type State: Serialize + DeserializeOwned + Default + Clone + Send + Sync + 'static;
    /// The settings that users may change, merged over [`Agent::default_settings`] and the
    /// host's configuration.
    type Settings: Serialize + DeserializeOwned + Default + Clone + Send + Sync + 'static;

    /// The version of [`Agent::State`]. [`Agent::migrations`] upgrade states of earlier
    /// versions; a state of a later version is refused.
    const STATE_VERSION: u32 = 1;

    /// The migrations that upgrade a state from each version to the next.
    fn migrations(&self) -> &[Migration] {
        &[]
    }

    /// The state of a new agent. Members that an older stored state lacks take their defaults,
    /// not the values given here.
    fn initial_state(&self) -> Self::State {
        Self::State::default()
    }

    /// Settings that apply where neither configuration nor user sets a value.
    fn default_settings(&self) -> Self::Settings {
        Self::Settings::default()
    }

    /// How the agent joins its channel. `checkpoint` is the last sequence number that it has
    /// processed.
    fn connect_options(&self, identity: &Identity, checkpoint: Seq) -> ConnectOptions {
        let _ = (identity, checkpoint);
        ConnectOptions::default()
    }

    /// Filters the events that the agent receives.
    fn event_options(&self) -> EventOptions {
        EventOptions::default()
    }

    /// Delivery guarantees after a crash, and how often a turn is retried.
    fn policy(&self) -> Policy {
        Policy::default()
    }

    /// The timeout of a turn.
    fn turn_timeout(&self) -> Duration {
        Duration::from_secs(300)
    }

    /// Methods that other participants of the channel may call.
    fn methods(&self) -> Methods<Self> {
        Methods::none()
    }

    /// The agent's SQL tables, in a separate file ([`TurnClient::storage`]). The default is no
    /// tables. An agent with tables runs one turn at a time.
    ///
    /// [`TurnClient::storage`]: crate::TurnClient::storage
    fn tables(&self) -> Option<Tables> {
        None
    }

    /// Called before every other hook, once the agent is on its channel. It changes nothing.
    fn init(&self, identity: &Identity) -> TurnOutcome {
        let _ = identity;
        Ok(())
    }

    /// Called when the agent wakes, before the first event. Its changes are committed.
    fn on_wake(&self, turn: &mut Turn<'_, Self>) -> impl Future<Output = TurnOutcome> + Send {
        let _ = turn;
        ready(Ok(()))
    }

    /// Handles an event.
    fn on_event(
        &self,
        turn: &mut Turn<'_, Self>,
        event: Event,
    ) -> impl Future<Output = TurnOutcome> + Send;

    /// Called with a message that [`EventOptions::targeted_only`] keeps from the agent. There is
    /// no turn: it counts as handled, and after a crash may be given again. For an agent in
    /// another process the call is lost if the connection has no room.
    fn on_filtered(&self, event: &Event) {
        let _ = event;
    }

    /// Called when one of the agent's timers is due.
    fn on_alarm(
        &self,
        turn: &mut Turn<'_, Self>,
        alarm: Alarm,
    ) -> impl Future<Output = TurnOutcome> + Send {
        let _ = (turn, alarm);
        ready(Ok(()))
    }

    /// Called after the last turn, before the agent sleeps.
    fn on_sleep(&self, turn: &mut Turn<'_, Self>) -> impl Future<Output = TurnOutcome> + Send {
        let _ = turn;
        ready(Ok(()))
    }

    /// Called with interrupted turns that will not be retried (at-most-once delivery).
    fn on_lost(
        &self,
        turn: &mut Turn<'_, Self>,
        lost: Vec<Trigger>,
    ) -> impl Future<Output = TurnOutcome> + Send {
        let _ = (turn, lost);
        ready(Ok(()))
    }

    /// Called after the settings were changed from outside.
    fn on_settings_changed(
        &self,
        turn: &mut Turn<'_, Self>,
    ) -> impl Future<Output = TurnOutcome> + Send {
        let _ = turn;
        ready(Ok(()))
    }
}

/// An agent's key and its configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Agent, channel and handle.
    pub key: AgentKey,
    /// The configuration that the host set.
    pub config: Arc<Value>,
}

/// How an agent joins its channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectOptions {
    /// The display name; defaults to the agent's name.
    pub name: Option<String>,
    /// The kind of participant; defaults to `agent`.
    pub kind: Option<String>,
    /// Further metadata that the agent publishes.
    pub extra_metadata: Map<String, Value>,
    /// The position at which the agent's first stream starts.
    pub replay: Replay,
}

/// The position at which a new agent starts to read its channel.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Replay {
    /// At the first event of the log.
    #[default]
    All,
    /// After this sequence number.
    After(Seq),
    /// With events appended after it joined.
    Skip,
}

/// A timer that is due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alarm {
    /// The timer's name.
    pub name: String,
    /// The due time in milliseconds since the Unix epoch.
    pub due: u64,
    /// The value given when the timer was set.
    pub payload: Value,
}
