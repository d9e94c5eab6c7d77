//! Builder of agents of programs: what they are granted, their limits, how their events come.

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

/// How long a turn may take whose run has no time of its own.
const TIME_OF_TURN: Duration = Duration::from_secs(300);

/// A method of a program: what others on the channel may ask it to do.
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
    /// A method that takes any object.
    #[must_use]
    pub fn new(description: impl Into<String>) -> ProgramMethod {
        ProgramMethod {
            description: description.into(),
            parameters: json!({"type": "object", "properties": {}}),
            returns: None,
            timeout: None,
        }
    }

    /// The JSON Schema of its arguments. Those that do not fit are refused before the program
    /// runs.
    #[must_use]
    pub fn parameters(mut self, schema: Json) -> ProgramMethod {
        self.parameters = schema;
        self
    }

    /// The JSON Schema of its answer, for those who call; nothing is judged by it.
    #[must_use]
    pub fn returns(mut self, schema: Json) -> ProgramMethod {
        self.returns = Some(schema);
        self
    }

    /// How long callers wait for it, if they say nothing else.
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

/// What an agent of a program is, beside the program.
pub(super) struct Settled {
    /// Before the clock, the randomness and the store of a host.
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
    pub(super) time_of_turn: Duration,
}

/// Limits of each run that are laid over its options.
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

/// Makes [`ProgramAgent`]s.
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
        }
    }

    /// What the program is granted beside its turn ([`ProgramHandler::granted`]); nothing by
    /// default.
    #[must_use]
    pub fn granted(self, granted: Capabilities) -> ProgramAgentBuilder {
        ProgramAgentBuilder { granted, ..self }
    }

    /// Agents that the program calls by `agentRun`, whose calls are in the same journal.
    #[must_use]
    pub fn agents(self, agents: AgentRegistry) -> ProgramAgentBuilder {
        ProgramAgentBuilder {
            agents: Some(agents),
            ..self
        }
    }

    /// Says of an atom what becomes of its calls ([`ProgramHandler::class`]).
    #[must_use]
    pub fn class(mut self, atom: &str, class: CallClass) -> ProgramAgentBuilder {
        self.classes.push((atom.to_owned(), class));
        self
    }

    /// What becomes of calls of which nobody knows how they ended; they fail by default.
    #[must_use]
    pub fn on_unknown(self, on_unknown: OnUnknown) -> ProgramAgentBuilder {
        ProgramAgentBuilder { on_unknown, ..self }
    }

    /// The clock of turns; the host's by default.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> ProgramAgentBuilder {
        ProgramAgentBuilder {
            clock: Some(clock),
            ..self
        }
    }

    /// The randomness that seeds of turns are of; the host's by default.
    #[must_use]
    pub fn random(self, random: Arc<dyn Random>) -> ProgramAgentBuilder {
        ProgramAgentBuilder {
            random: Some(random),
            ..self
        }
    }

    /// Options of a turn's run, made for each: quotas, context, account, timeouts. What is
    /// said by [`fuel`](Self::fuel), [`memory`](Self::memory), [`deadline`](Self::deadline)
    /// and [`host`](Self::host) wins over them.
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

    /// Fuel of a turn's run, that of sub-agents included. A turn that runs out of it is a dead
    /// letter at once.
    #[must_use]
    pub fn fuel(mut self, fuel: Fuel) -> ProgramAgentBuilder {
        self.limits.fuel = Some(fuel);
        self
    }

    /// Bytes of a run's heap, at most.
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> ProgramAgentBuilder {
        self.limits.memory = Some(bytes);
        self
    }

    /// How long a turn's run may take, in steps of milliseconds. Without it that follows from
    /// its fuel, and a turn takes five minutes at most. Time that is up is an error that
    /// another attempt may mend.
    #[must_use]
    pub fn deadline(mut self, time: Duration) -> ProgramAgentBuilder {
        self.limits.time = Some(time);
        self
    }

    /// A value of the host's that its atoms ask for, by its type.
    #[must_use]
    pub fn host<T: ?Sized + Send + Sync + 'static>(mut self, value: Arc<T>) -> ProgramAgentBuilder {
        let host = self.limits.host.take().unwrap_or_default();
        self.limits.host = Some(host.with(value));
        self
    }

    /// Arguments of the program made otherwise, for one that was not written for this: the
    /// same each time for the same event, state and settings. By default they are an object of
    /// the members of [`ProgramArgs`].
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

    /// Is told of each run when it ended, before its turn is committed: for the fuel that was
    /// used, and its trace. A turn that runs again is told of again. It must not block.
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

    /// Gives the program a method.
    #[must_use]
    pub fn method(mut self, name: impl Into<String>, method: ProgramMethod) -> ProgramAgentBuilder {
        self.methods.insert(name.into(), method);
        self
    }

    /// The state of an agent that has none yet; an empty object by default.
    #[must_use]
    pub fn initial_state(self, state: Map<String, Json>) -> ProgramAgentBuilder {
        ProgramAgentBuilder { state, ..self }
    }

    /// Takes the object that a run on an event or a timer gives for the agent's new state. By
    /// default the atom `agentSetState` changes it and the result counts for nothing. A result
    /// that is null or undefined changes nothing; any other that is no object fails the turn
    /// (`turn.bad_value`). Results of methods are answers.
    #[must_use]
    pub fn state_of_result(self) -> ProgramAgentBuilder {
        ProgramAgentBuilder {
            is_state_of_result: true,
            ..self
        }
    }

    /// Settings that hold where neither configuration nor user says otherwise.
    #[must_use]
    pub fn settings(self, settings: Map<String, Json>) -> ProgramAgentBuilder {
        ProgramAgentBuilder { settings, ..self }
    }

    /// How events are delivered, and how often a turn is tried.
    #[must_use]
    pub fn policy(self, policy: Policy) -> ProgramAgentBuilder {
        ProgramAgentBuilder { policy, ..self }
    }

    /// The mode of delivery, [`Policy::delivery`].
    #[must_use]
    pub fn delivery(mut self, delivery: Delivery) -> ProgramAgentBuilder {
        self.policy.delivery = delivery;
        self
    }

    /// How often a turn that failed is tried, [`Policy::retry`].
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> ProgramAgentBuilder {
        self.policy.retry = retry;
        self
    }

    /// Which events the program sees.
    #[must_use]
    pub fn events(self, events: EventOptions) -> ProgramAgentBuilder {
        ProgramAgentBuilder { events, ..self }
    }

    /// How the agent joins its channel.
    #[must_use]
    pub fn connect(self, connect: ConnectOptions) -> ProgramAgentBuilder {
        ProgramAgentBuilder { connect, ..self }
    }

    /// Shows what models write, and what the program sends by `streamChunk`, on the channel
    /// while the program runs, to those who are there: the pieces of an answer are an
    /// ephemeral message of the content type [`PARTIAL`](super::PARTIAL) (`thinking` for
    /// what a model thinks) and its updates, and each chunk is an event of the type
    /// [`STREAM_CHUNK`](super::STREAM_CHUNK). They are in no log; a turn that runs again
    /// shows again what it asks for again.
    #[must_use]
    pub fn streaming(self, is_streaming: bool) -> ProgramAgentBuilder {
        ProgramAgentBuilder {
            is_streaming,
            ..self
        }
    }

    /// Runs the program on an event of the type `lost` when it wakes after turns were cut off that
    /// are not run again (delivery at most once). Its member `lost` lists them: `{"type":
    /// "event", "seq"}`, `{"type": "timer", "name", "due"}` or `{"type": "hook"}`. The run has the
    /// time of a hook, [`HostOptions::hook_timeout`](crate::HostOptions::hook_timeout); one
    /// that fails is logged, and the agent goes on. Without this the log and the dead letters
    /// name such turns.
    #[must_use]
    pub fn on_lost(self, hears_lost: bool) -> ProgramAgentBuilder {
        ProgramAgentBuilder { hears_lost, ..self }
    }

    /// Gives the agent SQL tables of its own, for `agentStorageRun` and its like.
    #[must_use]
    pub fn tables(self, tables: Tables) -> ProgramAgentBuilder {
        ProgramAgentBuilder {
            tables: Some(tables),
            ..self
        }
    }

    /// The agent.
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
        let settled = Settled {
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
            time_of_turn,
        };
        Ok(ProgramAgent::of(program, settled))
    }
}
