//! Builder of program agents: capabilities, limits, and how events arrive.

use super::agent::{ProgramAgent, TurnRun};
use super::{AgentProgram, CallClass, MakeOptions, OnUnknown, ProgramArgs, ProgramHandler};
use crate::agent::ConnectOptions;
use crate::methods::Method;
use crate::tables::Tables;
use a99_capabilities::{Capabilities, Clock, Random, SystemClock, SystemRandom};
use a99_runtime_engine::{Delivery, EventOptions, Policy, Retry};
use agent99::artifact::ArtifactError;
use agent99::{AgentRegistry, Engine, Fuel, HostState, RunOptions, Value};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The timeout of a turn whose run has no deadline.
const TIME_OF_TURN: Duration = Duration::from_secs(300);

/// A method of a program that other participants of the channel may call.
///
/// The program runs with an event `{"type": "method-call", "callId", "methodName", "args",
/// "sender"}`, and its result is the answer (D95).
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramMethod {
    pub(super) description: String,
    parameters: Json,
    returns: Option<Json>,
    timeout: Option<Duration>,
}

impl ProgramMethod {
    /// A method that accepts any object.
    #[must_use]
    pub fn new(description: impl Into<String>) -> ProgramMethod {
        ProgramMethod {
            description: description.into(),
            parameters: json!({"type": "object", "properties": {}}),
            returns: None,
            timeout: None,
        }
    }

    /// The JSON Schema of the arguments. Arguments that do not match are refused before the
    /// program runs.
    #[must_use]
    pub fn parameters(mut self, schema: Json) -> ProgramMethod {
        self.parameters = schema;
        self
    }

    /// The JSON Schema of the answer, for callers; it is not enforced.
    #[must_use]
    pub fn returns(mut self, schema: Json) -> ProgramMethod {
        self.returns = Some(schema);
        self
    }

    /// The default timeout of callers.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> ProgramMethod {
        self.timeout = Some(timeout);
        self
    }

    pub(super) fn lay_over(&self, method: Method<ProgramAgent>) -> Method<ProgramAgent> {
        let mut method = method.parameters(self.parameters.clone());
        if let Some(returns) = &self.returns {
            method = method.returns(returns.clone());
        }
        match self.timeout {
            Some(timeout) => method.timeout(timeout),
            None => method,
        }
    }
}

type MakeArgs = dyn Fn(ProgramArgs) -> Value + Send + Sync;
type OnEnd = dyn Fn(&TurnRun<'_>) + Send + Sync;

/// The configuration of a program agent, apart from the program.
pub(super) struct ProgramConfig {
    /// The handler before it gets the clock, randomness and store of a host.
    pub(super) handler: ProgramHandler,
    pub(super) clock: Option<Arc<dyn Clock>>,
    pub(super) random: Option<Arc<dyn Random>>,
    pub(super) args: Arc<MakeArgs>,
    pub(super) on_end: Option<Arc<OnEnd>>,
    pub(super) methods: BTreeMap<String, ProgramMethod>,
    pub(super) state: Map<String, Json>,
    pub(super) is_state_of_result: bool,
    pub(super) settings: Map<String, Json>,
    pub(super) policy: Policy,
    pub(super) events: EventOptions,
    pub(super) connect: ConnectOptions,
    pub(super) tables: Option<Tables>,
    pub(super) is_streaming: bool,
    pub(super) hears_lost: bool,
    pub(super) guests: Arc<[String]>,
    pub(super) time_of_turn: Duration,
}

/// Limits of each run; they override its options.
#[derive(Clone, Default)]
struct Limits {
    fuel: Option<Fuel>,
    memory: Option<usize>,
    time: Option<Duration>,
    host: Option<HostState>,
}

impl Limits {
    fn lay_over(&self, mut options: RunOptions) -> RunOptions {
        if let Some(fuel) = self.fuel {
            options.fuel = fuel;
        }
        if let Some(bytes) = self.memory {
            options = options.heap_bytes(bytes);
        }
        if let Some(time) = self.time {
            options = options.timeout_ms(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        }
        if let Some(host) = &self.host {
            options.host = host.clone();
        }
        options
    }
}

/// Builds [`ProgramAgent`]s.
#[derive(Clone)]
pub struct ProgramAgentBuilder {
    program: agent99::Agent,
    engine: Engine,
    granted: Capabilities,
    agents: Option<AgentRegistry>,
    classes: Vec<(String, CallClass)>,
    on_unknown: OnUnknown,
    clock: Option<Arc<dyn Clock>>,
    random: Option<Arc<dyn Random>>,
    options: Arc<MakeOptions>,
    limits: Limits,
    args: Arc<MakeArgs>,
    on_end: Option<Arc<OnEnd>>,
    methods: BTreeMap<String, ProgramMethod>,
    state: Map<String, Json>,
    is_state_of_result: bool,
    settings: Map<String, Json>,
    policy: Policy,
    events: EventOptions,
    connect: ConnectOptions,
    tables: Option<Tables>,
    is_streaming: bool,
    hears_lost: bool,
    guests: Arc<[String]>,
}

impl fmt::Debug for ProgramAgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramAgentBuilder")
            .finish_non_exhaustive()
    }
}

impl ProgramAgentBuilder {
    pub(super) fn new(engine: &Engine, program: agent99::Agent) -> ProgramAgentBuilder {
        ProgramAgentBuilder {
            program,
            engine: engine.clone(),
            granted: Capabilities::none(),
            agents: None,
            classes: Vec::new(),
            on_unknown: OnUnknown::default(),
            clock: None,
            random: None,
            options: Arc::new(RunOptions::new),
            limits: Limits::default(),
            args: Arc::new(Value::from),
            on_end: None,
            methods: BTreeMap::new(),
            state: Map::new(),
            is_state_of_result: false,
            settings: Map::new(),
            policy: Policy::default(),
            events: EventOptions::default(),
            connect: ConnectOptions::default(),
            tables: None,
            is_streaming: false,
            hears_lost: false,
            guests: Arc::default(),
        }
    }

    /// The capabilities of the program, apart from its turn ([`ProgramHandler::granted`]); none
    /// by default.
    #[must_use]
    pub fn granted(self, granted: Capabilities) -> ProgramAgentBuilder {
        ProgramAgentBuilder { granted, ..self }
    }

    /// The agents that the program may call with `agentRun`. Their calls use the same journal.
    #[must_use]
    pub fn agents(self, agents: AgentRegistry) -> ProgramAgentBuilder {
        ProgramAgentBuilder {
            agents: Some(agents),
            ..self
        }
    }

    /// Sets the call class of an atom ([`ProgramHandler::class`]).
    #[must_use]
    pub fn class(mut self, atom: &str, class: CallClass) -> ProgramAgentBuilder {
        self.classes.push((atom.to_owned(), class));
        self
    }

    /// The handling of calls whose outcome is unknown; they fail by default.
    #[must_use]
    pub fn on_unknown(self, on_unknown: OnUnknown) -> ProgramAgentBuilder {
        ProgramAgentBuilder { on_unknown, ..self }
    }

    /// The clock of turns; defaults to the host's.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> ProgramAgentBuilder {
        ProgramAgentBuilder {
            clock: Some(clock),
            ..self
        }
    }

    /// The randomness for the seeds of turns; defaults to the host's.
    #[must_use]
    pub fn random(self, random: Arc<dyn Random>) -> ProgramAgentBuilder {
        ProgramAgentBuilder {
            random: Some(random),
            ..self
        }
    }

    /// Creates the options of each turn's run: quotas, context, account, timeouts. Values set
    /// by [`fuel`](Self::fuel), [`memory`](Self::memory), [`deadline`](Self::deadline) and
    /// [`host`](Self::host) override them.
    #[must_use]
    pub fn options(
        self,
        make: impl Fn() -> RunOptions + Send + Sync + 'static,
    ) -> ProgramAgentBuilder {
        ProgramAgentBuilder {
            options: Arc::new(make),
            ..self
        }
    }

    /// The fuel of a turn's run, including sub-agents. A turn that runs out of fuel becomes a
    /// dead letter at once.
    #[must_use]
    pub fn fuel(mut self, fuel: Fuel) -> ProgramAgentBuilder {
        self.limits.fuel = Some(fuel);
        self
    }

    /// Maximum bytes of a run's heap.
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> ProgramAgentBuilder {
        self.limits.memory = Some(bytes);
        self
    }

    /// The time limit of a turn's run, in steps of milliseconds. By default it follows from the
    /// fuel, and a turn takes at most five minutes. A timeout may be retried.
    #[must_use]
    pub fn deadline(mut self, time: Duration) -> ProgramAgentBuilder {
        self.limits.time = Some(time);
        self
    }

    /// A host value that the host's atoms look up by type.
    #[must_use]
    pub fn host<T: ?Sized + Send + Sync + 'static>(mut self, value: Arc<T>) -> ProgramAgentBuilder {
        let host = self.limits.host.take().unwrap_or_default();
        self.limits.host = Some(host.with(value));
        self
    }

    /// Replaces how the program's arguments are made, for a program not written for this
    /// interface. The function must be deterministic in event, state and settings. By default
    /// the arguments are an object with the members of [`ProgramArgs`].
    #[must_use]
    pub fn args(
        self,
        make: impl Fn(ProgramArgs) -> Value + Send + Sync + 'static,
    ) -> ProgramAgentBuilder {
        ProgramAgentBuilder {
            args: Arc::new(make),
            ..self
        }
    }

    /// Sets a callback for the end of each run, before its turn commits: for used fuel and the
    /// trace. It runs again when a turn is retried. It must not block.
    #[must_use]
    pub fn on_end(
        self,
        told: impl Fn(&TurnRun<'_>) + Send + Sync + 'static,
    ) -> ProgramAgentBuilder {
        ProgramAgentBuilder {
            on_end: Some(Arc::new(told)),
            ..self
        }
    }

    /// Adds a method.
    #[must_use]
    pub fn method(mut self, name: impl Into<String>, method: ProgramMethod) -> ProgramAgentBuilder {
        self.methods.insert(name.into(), method);
        self
    }

    /// The state of a new agent; defaults to an empty object.
    #[must_use]
    pub fn initial_state(self, state: Map<String, Json>) -> ProgramAgentBuilder {
        ProgramAgentBuilder { state, ..self }
    }

    /// Makes the result of a run on an event or a timer the agent's new state. By default the
    /// atom `agentSetState` changes the state and the result is ignored. A null or undefined
    /// result changes nothing; any other result that is not an object fails the turn
    /// (`turn.bad_value`). Results of methods are answers.
    #[must_use]
    pub fn state_of_result(self) -> ProgramAgentBuilder {
        ProgramAgentBuilder {
            is_state_of_result: true,
            ..self
        }
    }

    /// Settings that apply where neither configuration nor user sets a value.
    #[must_use]
    pub fn settings(self, settings: Map<String, Json>) -> ProgramAgentBuilder {
        ProgramAgentBuilder { settings, ..self }
    }

    /// Delivery guarantees and retries.
    #[must_use]
    pub fn policy(self, policy: Policy) -> ProgramAgentBuilder {
        ProgramAgentBuilder { policy, ..self }
    }

    /// The delivery mode, [`Policy::delivery`].
    #[must_use]
    pub fn delivery(mut self, delivery: Delivery) -> ProgramAgentBuilder {
        self.policy.delivery = delivery;
        self
    }

    /// The retries of a failed turn, [`Policy::retry`].
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> ProgramAgentBuilder {
        self.policy.retry = retry;
        self
    }

    /// Filters the events that the program receives.
    #[must_use]
    pub fn events(self, events: EventOptions) -> ProgramAgentBuilder {
        ProgramAgentBuilder { events, ..self }
    }

    /// How the agent joins its channel.
    #[must_use]
    pub fn connect(self, connect: ConnectOptions) -> ProgramAgentBuilder {
        ProgramAgentBuilder { connect, ..self }
    }

    /// Streams model output and `streamChunk` values to present participants while the program
    /// runs. The pieces of an answer are an ephemeral message of the content type
    /// [`PARTIAL`](super::PARTIAL) (`thinking` for a model's reasoning) and its updates; each
    /// chunk is an event of the type [`STREAM_CHUNK`](super::STREAM_CHUNK). The log has none of
    /// them. A retried turn streams again the answers that it requests again.
    #[must_use]
    pub fn streaming(self, is_streaming: bool) -> ProgramAgentBuilder {
        ProgramAgentBuilder {
            is_streaming,
            ..self
        }
    }

    /// Runs the program on an event of the type `lost` when it wakes after interrupted turns
    /// that will not be retried (at-most-once delivery). Its member `lost` lists them:
    /// `{"type": "event", "seq"}`, `{"type": "timer", "name", "due"}` or `{"type": "hook"}`.
    /// The run has the timeout of a hook,
    /// [`HostOptions::hook_timeout`](crate::HostOptions::hook_timeout). If it fails, the error
    /// is logged and the agent continues. Without this option only the log and the dead letters
    /// name such turns.
    #[must_use]
    pub fn on_lost(self, hears_lost: bool) -> ProgramAgentBuilder {
        ProgramAgentBuilder { hears_lost, ..self }
    }

    /// Names of the agents that the program may invite to its channel and remove from it
    /// (`agentInvite`, `agentRemove`); none by default.
    #[must_use]
    pub fn invites<N: Into<String>>(
        self,
        names: impl IntoIterator<Item = N>,
    ) -> ProgramAgentBuilder {
        ProgramAgentBuilder {
            guests: names.into_iter().map(Into::into).collect(),
            ..self
        }
    }

    /// Gives the agent SQL tables, for `agentStorageRun` and related atoms.
    #[must_use]
    pub fn tables(self, tables: Tables) -> ProgramAgentBuilder {
        ProgramAgentBuilder {
            tables: Some(tables),
            ..self
        }
    }

    /// Builds the agent.
    ///
    /// # Errors
    /// A program of 4 GiB or more.
    pub fn build(self) -> Result<ProgramAgent, ArtifactError> {
        let program = AgentProgram::new(self.program)?;
        let time_of_turn = self.limits.time.unwrap_or(TIME_OF_TURN);
        let (make, limits) = (self.options, self.limits);
        let (clock, random) = (Arc::new(SystemClock), Arc::new(SystemRandom));
        let mut handler = ProgramHandler::new(self.engine, clock, random)
            .granted(self.granted)
            .options(move || limits.lay_over(make()))
            .on_unknown(self.on_unknown);
        for (atom, class) in &self.classes {
            handler = handler.class(atom, *class);
        }
        if let Some(agents) = self.agents {
            handler = handler.agents(agents);
        }
        let settled = ProgramConfig {
            handler,
            clock: self.clock,
            random: self.random,
            args: self.args,
            on_end: self.on_end,
            methods: self.methods,
            state: self.state,
            is_state_of_result: self.is_state_of_result,
            settings: self.settings,
            policy: self.policy,
            events: self.events,
            connect: self.connect,
            tables: self.tables,
            is_streaming: self.is_streaming,
            hears_lost: self.hears_lost,
            guests: self.guests,
            time_of_turn,
        };
        Ok(ProgramAgent::of(program, settled))
    }
}
