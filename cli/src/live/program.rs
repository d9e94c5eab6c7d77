//! Programs as agents: what a program of agents.toml needs to run, and its turns.

use super::config::AgentSpec;
use super::turn::{self, LiveTurn};
use super::wire::Refusal;
use crate::commands::run::{account_limits, check_ops, limits, with_env};
use crate::failure::Failure;
use crate::{agents, duration, embed, input, models, network, store};
use a99_runtime::program::{
    AgentProgram, ProgramArgs, ProgramHandler, ProgramSource, ProgramTurn, StoreJournal,
    turn_result,
};
use a99_runtime::{
    Agent, AgentError, Alarm, ConnectOptions, Event, EventOptions, HostBuilder, Identity, Policy,
    Seq, Turn, TurnOutcome, codes,
};
use a99_runtime_engine::{AgentStore, Fence, TurnResult};
use a99_runtime_stores::SqliteRuntime;
use agent99::account::Account;
use agent99::capabilities::{AgentTurn, Capabilities, SystemClock, SystemRandom};
use agent99::{Engine, RunOptions, Value};
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;
use std::time::Duration;

/// Time of a turn that may ask a network or a model, unless it is told.
const WITH_NETWORK: Duration = Duration::from_secs(600);

/// Time of any other.
const ALONE: Duration = Duration::from_secs(300);

/// How much longer a turn may take than its run.
const BEYOND: Duration = Duration::from_secs(5);

/// An agent that can run.
pub(super) struct Prepared {
    spec: Arc<AgentSpec>,
    program: AgentProgram,
    granted: Capabilities,
    engine: Engine,
    context: Option<Value>,
}

/// The agents of a file, and the stores that their programs have open.
#[derive(Default)]
pub(super) struct Programs {
    pub(super) all: Vec<Arc<Prepared>>,
    opened: Vec<store::Opened>,
}

impl Programs {
    /// Reads the programs, and opens what they are granted.
    ///
    /// # Errors
    /// A program that is rejected, a grant that cannot be given.
    pub(super) fn prepare(agents: &[Arc<AgentSpec>]) -> Result<Programs, Failure> {
        let mut programs = Programs::default();
        for spec in agents {
            let config = &spec.run;
            let engine = Engine::builder().build();
            check_ops(config, &engine)?;
            limits(config)?;
            let named = spec.program.display().to_string();
            let (agent, _) = match spec.program.exists() {
                true => input::agent(&engine, &spec.program)?,
                false => {
                    let why = format!("{}`program`: there is no file {named}", spec.place);
                    let help = "name a program or artifact beside this file";
                    return Err(Failure::coded(crate::config::BAD_VALUE, why, help));
                }
            };
            let program = AgentProgram::new(agent);
            let program = program.map_err(|error| Failure::about(&named, error))?;
            let opened = store::open(config, None)?;
            let granted = network::with_xml(network::grant(config, Capabilities::none())?);
            let granted = embed::grant(config, granted)?;
            let granted = models::grant(config, granted)?;
            let granted = opened.grant(config, granted)?;
            let inherited = limits(config)?;
            let granted = agents::grant(&engine, config, None, &inherited, granted)?;
            programs.opened.push(opened);
            programs.all.push(Arc::new(Prepared {
                context: with_env(None, config)?,
                spec: Arc::clone(spec),
                program,
                granted,
                engine,
            }));
        }
        Ok(programs)
    }

    /// Keeps the programs in the store, where turns that began with them find them, and makes
    /// them known to a host.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn add(
        &self,
        mut builder: HostBuilder,
        store: &Arc<SqliteRuntime>,
    ) -> Result<HostBuilder, Refusal> {
        for prepared in &self.all {
            let program = &prepared.program;
            store
                .keep_program(*program.hash(), program.bytes().to_vec())
                .await?;
            let (prepared, store) = (Arc::clone(prepared), Arc::clone(store));
            let name = prepared.spec.name.clone();
            builder = builder.agent(name, move |_| program_agent(&prepared, &store));
        }
        Ok(builder)
    }

    /// Waits until all that programs stored is in its files.
    pub(super) fn close(self) {
        self.opened.into_iter().for_each(store::Opened::close);
    }
}

/// The agent of a program: the seam to the host.
fn program_agent(prepared: &Arc<Prepared>, store: &Arc<SqliteRuntime>) -> ProgramAgent {
    let (spec, context) = (Arc::clone(&prepared.spec), prepared.context.clone());
    let clock = Arc::new(SystemClock);
    let handler = ProgramHandler::new(prepared.engine.clone(), clock, Arc::new(SystemRandom))
        .granted(prepared.granted.clone())
        .options(move || options(&spec, context.clone()))
        .programs(Arc::clone(store) as Arc<dyn ProgramSource>);
    ProgramAgent {
        prepared: Arc::clone(prepared),
        handler,
        store: Arc::clone(store),
    }
}

/// Options of a turn's run, made for each: what was wrong with them was told at the start.
fn options(spec: &AgentSpec, context: Option<Value>) -> RunOptions {
    let config = &spec.run;
    let mut options = limits(config).unwrap_or_default();
    if let Some(time) = spec.time_of_run() {
        options = options.timeout_ms(duration::milliseconds(time));
    }
    if let Some(context) = context {
        options = options.context(context);
    }
    match account_limits(config) {
        Ok(limits) => options.account(Account::new("", limits)),
        Err(_) => options,
    }
}

impl AgentSpec {
    /// The time of a turn's run, unless its fuel says it.
    fn time_of_run(&self) -> Option<Duration> {
        let set = &self.run.set;
        let waits = !set.allow.is_empty() || set.llm.is_some() || self.run.models.is_some();
        set.timeout.or(waits.then_some(WITH_NETWORK))
    }
}

/// An agent whose events a program handles.
struct ProgramAgent {
    prepared: Arc<Prepared>,
    handler: ProgramHandler,
    store: Arc<SqliteRuntime>,
}

impl ProgramAgent {
    async fn handle(&self, turn: &mut Turn<'_, Self>, event: Json) -> TurnOutcome {
        let client = turn.client();
        let fence = Fence {
            key: turn.key().clone(),
            epoch: self.store.epoch(turn.key()),
        };
        let store = Arc::clone(&self.store) as Arc<dyn AgentStore>;
        let journal = StoreJournal::load(store, fence, client.trigger().clone()).await?;
        let state = Json::Object(turn.state().clone());
        let settings = Json::Object(turn.settings().clone());
        let args = ProgramArgs {
            event: Value::from(&event),
            state: Value::from(&state),
            settings: Value::from(&settings),
            identity: Value::from(&turn::identity(&client)),
        };
        let live = Arc::new(LiveTurn::new(client, turn.state().clone(), settings));
        let program_turn = ProgramTurn {
            args: args.into(),
            journal: Arc::new(journal),
            turn: Some(Arc::clone(&live) as Arc<dyn AgentTurn>),
        };
        let end = self
            .handler
            .handle(&self.prepared.program, program_turn)
            .await;
        match turn_result(&end) {
            TurnResult::Done => {
                let changed = live.end();
                *turn.state_mut() = changed.state;
                match changed.laid {
                    Some(laid) => turn.update_settings(&laid),
                    None => Ok(()),
                }
            }
            TurnResult::Failed {
                code,
                error,
                is_final,
            } => {
                let error = AgentError::new(code, error);
                Err(if is_final { error.fatal() } else { error })
            }
            TurnResult::Cancelled => Err(AgentError::new(codes::TIMEOUT, "the run was cancelled")),
        }
    }
}

impl Agent for ProgramAgent {
    type State = Map<String, Json>;
    type Settings = Map<String, Json>;

    fn default_settings(&self) -> Self::Settings {
        let config = self.prepared.spec.config.as_object();
        config.cloned().unwrap_or_default()
    }

    fn connect_options(&self, _: &Identity, _: Seq) -> ConnectOptions {
        ConnectOptions {
            replay: self.prepared.spec.replay,
            ..ConnectOptions::default()
        }
    }

    fn event_options(&self) -> EventOptions {
        self.prepared.spec.events
    }

    fn policy(&self) -> Policy {
        self.prepared.spec.policy
    }

    fn turn_timeout(&self) -> Duration {
        self.prepared.spec.time_of_run().unwrap_or(ALONE) + BEYOND
    }

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        self.handle(turn, turn::event(&event)).await
    }

    async fn on_alarm(&self, turn: &mut Turn<'_, Self>, alarm: Alarm) -> TurnOutcome {
        let event = json!({
            "type": "timer",
            "name": alarm.name,
            "due": alarm.due,
            "payload": alarm.payload,
        });
        self.handle(turn, event).await
    }
}
