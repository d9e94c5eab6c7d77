//! Runner: the type-erased interface of an agent for activations.

use crate::agent::{Agent, Alarm, ConnectOptions, Identity, TurnOutcome};
use crate::error::{AgentError, codes};
use crate::methods::{MethodCall, Methods};
use crate::tables::Tables;
use crate::turn::{Turn, TurnClient};
use a99_core::schema::{Schema, validate};
use a99_runtime_engine::{
    BoxFuture, Event, EventOptions, MAX_JSON_DEPTH, Policy, Seq, StateError, Trigger, deep_merge,
    deep_merge_into, json_depth, migrate, restricted,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::any::{Any, TypeId};
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

/// A state of an agent's type.
pub(crate) type AnyState = Arc<dyn Any + Send + Sync>;

/// The work of a turn.
#[derive(Serialize, Deserialize)]
pub(crate) enum Work {
    Wake,
    Sleep,
    Lost(Vec<Trigger>),
    SettingsChanged,
    Event(Event),
    Alarm(Alarm),
    Method(String, MethodCall),
}

/// The output of a handler.
pub(crate) struct Output {
    /// The state, and the same as JSON text.
    pub(crate) state: AnyState,
    pub(crate) json: String,
    /// Changes of the settings.
    pub(crate) settings: Option<Value>,
    /// The answer of a method.
    pub(crate) answer: Option<Value>,
}

impl Output {
    /// Adds changes of the settings.
    pub(crate) fn change_settings(&mut self, changes: Option<Value>) {
        match (&mut self.settings, changes) {
            (Some(before), Some(changes)) => deep_merge_into(before, &changes),
            (before, changes) => *before = before.take().or(changes),
        }
    }
}

/// A state of the agent's version, and the earlier states from which it was migrated, each with
/// its version.
pub(crate) type Migrated = (Output, Vec<(u32, Value)>);

pub(crate) trait Runner: Send + Sync {
    /// Fetches the declarations that the other methods return, for an agent in another process.
    fn prepare(&self) -> BoxFuture<'_, TurnOutcome> {
        Box::pin(ready(Ok(())))
    }

    fn policy(&self) -> Policy;
    fn turn_timeout(&self) -> Duration;
    fn event_options(&self) -> EventOptions;
    fn connect_options(&self, identity: &Identity, checkpoint: Seq) -> ConnectOptions;
    fn version(&self) -> u32;
    fn advertised(&self) -> Value;
    fn tables(&self) -> Option<Tables>;
    fn init<'a>(&'a self, identity: &'a Identity) -> BoxFuture<'a, TurnOutcome>;

    /// [`Runner::connect_options`] for an agent that wakes.
    fn connect<'a>(
        &'a self,
        identity: &'a Identity,
        checkpoint: Seq,
    ) -> BoxFuture<'a, Result<ConnectOptions, AgentError>> {
        Box::pin(ready(Ok(self.connect_options(identity, checkpoint))))
    }

    /// Reads a state of version `found` and migrates it to the agent's version.
    fn read<'a>(&'a self, json: &'a str, found: u32)
    -> BoxFuture<'a, Result<Migrated, AgentError>>;

    /// The state of a new agent.
    fn initial(&self) -> Result<Output, AgentError>;

    /// Reads a state of the agent's version.
    fn decode(&self, json: Value) -> Result<Output, AgentError>;

    /// Refuses a state that the agent's next start could not deserialize.
    fn check(&self, json: &str) -> TurnOutcome {
        let _ = json;
        Ok(())
    }

    /// Refuses settings that a turn could not deserialize.
    fn check_settings(&self, settings: &Value) -> TurnOutcome {
        let _ = settings;
        Ok(())
    }

    /// [`Agent::on_filtered`]; a panic has no effect.
    fn on_filtered(&self, event: &Event);

    /// Settings by default.
    fn default_settings(&self) -> Result<Value, AgentError>;

    fn run(
        self: Arc<Self>,
        work: Work,
        client: TurnClient,
        state: AnyState,
        settings: Arc<Value>,
    ) -> BoxFuture<'static, Result<Output, AgentError>>;
}

/// The effective settings: defaults, then configuration, then the users' changes.
pub(crate) fn settled(runner: &dyn Runner, identity: &Identity, saved: &Value) -> Value {
    let defaults = runner.default_settings().unwrap_or(Value::Null);
    let configured = restricted(&identity.config, &defaults);
    let settled = deep_merge(&defaults, &configured);
    match saved.is_object() {
        true => deep_merge(&settled, saved),
        false => settled,
    }
}

pub(crate) struct Typed<A: Agent> {
    agent: A,
    methods: Methods<A>,
}

impl<A: Agent> Typed<A> {
    pub(crate) fn new(agent: A) -> Typed<A> {
        Typed {
            methods: agent.methods(),
            agent,
        }
    }

    fn output(state: A::State) -> Result<Output, AgentError> {
        let json = serde_json::to_string(&state)?;
        if !json.starts_with('{') {
            let message = "a state is an object; this one is not";
            return Err(AgentError::new(codes::BAD_VALUE, message).fatal());
        }
        Ok(Output {
            json,
            state: Arc::new(state),
            settings: None,
            answer: None,
        })
    }

    /// Deserializes a state merged over the defaults: members that an older state lacks take
    /// their defaults, as settings do.
    fn state(json: &Value) -> Result<A::State, AgentError> {
        let defaults = serde_json::to_value(A::State::default())?;
        Ok(serde_json::from_value(deep_merge(&defaults, json))?)
    }

    async fn handle(
        &self,
        work: Work,
        turn: &mut Turn<'_, A>,
    ) -> Result<Option<Value>, AgentError> {
        let agent = &self.agent;
        match work {
            Work::Wake => agent.on_wake(turn).await?,
            Work::Sleep => agent.on_sleep(turn).await?,
            Work::Lost(lost) => agent.on_lost(turn, lost).await?,
            Work::SettingsChanged => agent.on_settings_changed(turn).await?,
            Work::Event(event) => agent.on_event(turn, event).await?,
            Work::Alarm(alarm) => agent.on_alarm(turn, alarm).await?,
            Work::Method(name, call) => {
                let Some(method) = self.methods.0.get(&name) else {
                    let message = format!("no method '{name}'");
                    return Err(AgentError::new(codes::NO_METHOD, message).fatal());
                };
                check_arguments(&name, &method.parameters, &call.args)?;
                return (method.execute)(agent, turn, call).await.map(Some);
            }
        }
        Ok(None)
    }
}

fn unreadable(version: u32, message: impl ToString) -> AgentError {
    let message = message.to_string();
    AgentError::from(StateError::Unreadable { version, message })
}

/// Refuses arguments that do not match a method's schema.
fn check_arguments(name: &str, parameters: &Value, args: &Value) -> Result<(), AgentError> {
    let schema = Schema::parse(&agent99::Value::from(parameters));
    validate(&agent99::Value::from(args), &schema).map_err(|fault| {
        let message = format!("the arguments of '{name}' do not fit: {fault}");
        AgentError::new(codes::BAD_ARGUMENTS, message).fatal()
    })
}

impl<A: Agent> Runner for Typed<A> {
    fn policy(&self) -> Policy {
        self.agent.policy()
    }

    fn turn_timeout(&self) -> Duration {
        self.agent.turn_timeout()
    }

    fn event_options(&self) -> EventOptions {
        self.agent.event_options()
    }

    fn connect_options(&self, identity: &Identity, checkpoint: Seq) -> ConnectOptions {
        self.agent.connect_options(identity, checkpoint)
    }

    fn version(&self) -> u32 {
        A::STATE_VERSION
    }

    fn advertised(&self) -> Value {
        self.methods.advertised()
    }

    fn tables(&self) -> Option<Tables> {
        self.agent.tables()
    }

    fn init<'a>(&'a self, identity: &'a Identity) -> BoxFuture<'a, TurnOutcome> {
        Box::pin(async move { self.agent.init(identity) })
    }

    fn on_filtered(&self, event: &Event) {
        let call = std::panic::AssertUnwindSafe(|| self.agent.on_filtered(event));
        drop(std::panic::catch_unwind(call));
    }

    fn read<'a>(
        &'a self,
        json: &'a str,
        found: u32,
    ) -> BoxFuture<'a, Result<Migrated, AgentError>> {
        let read = || {
            let json: Value = serde_json::from_str(json).map_err(|e| unreadable(found, e))?;
            let migrated = migrate(json, found, A::STATE_VERSION, self.agent.migrations())?;
            let output = self.decode(migrated.state);
            let output = output.map_err(|error| unreadable(A::STATE_VERSION, error))?;
            Ok((output, migrated.backups))
        };
        Box::pin(ready(read()))
    }

    fn initial(&self) -> Result<Output, AgentError> {
        Self::output(self.agent.initial_state())
    }

    fn decode(&self, json: Value) -> Result<Output, AgentError> {
        Self::output(Self::state(&json)?)
    }

    fn check(&self, json: &str) -> TurnOutcome {
        let refused = |why: String| Err(unreadable(A::STATE_VERSION, why));
        let depth = json_depth(json);
        if depth > MAX_JSON_DEPTH {
            return refused(format!(
                "it is nested {depth} levels deep, and {MAX_JSON_DEPTH} are allowed"
            ));
        }
        // JSON types always read back unchanged.
        let own = TypeId::of::<A::State>();
        if own == TypeId::of::<Map<String, Value>>() || own == TypeId::of::<Value>() {
            return Ok(());
        }
        let read = serde_json::from_str(json).map_err(AgentError::from);
        match read.and_then(|json| Self::state(&json)) {
            Ok(_) => Ok(()),
            Err(error) => refused(format!(
                "{error} (JSON has no NaN and no infinity, and keys are texts)"
            )),
        }
    }

    fn check_settings(&self, settings: &Value) -> TurnOutcome {
        A::Settings::deserialize(settings)?;
        Ok(())
    }

    fn default_settings(&self) -> Result<Value, AgentError> {
        Ok(serde_json::to_value(self.agent.default_settings())?)
    }

    fn run(
        self: Arc<Self>,
        work: Work,
        client: TurnClient,
        state: AnyState,
        settings: Arc<Value>,
    ) -> BoxFuture<'static, Result<Output, AgentError>> {
        Box::pin(async move {
            let Some(state) = state.downcast_ref::<A::State>() else {
                let message = "the state is of another type";
                return Err(AgentError::new(codes::BAD_VALUE, message).fatal());
            };
            client.0.settings.get_or_init(|| Arc::clone(&settings));
            let settings = match &*settings {
                Value::Null => A::Settings::default(),
                settings => serde_json::from_value(settings.clone())?,
            };
            let mut turn = Turn::new(&client, &self.agent, state, settings);
            let answer = self.handle(work, &mut turn).await?;
            let mut output = Self::output(turn.into_state())?;
            if client.has_new_settings() {
                // The bus of the turn does not know their type.
                let _: A::Settings = serde_json::from_value(client.settings_now()?)?;
            }
            output.answer = answer;
            Ok(output)
        })
    }
}
