//! Agent whose events a program handles: untrusted JavaScript source, JSON or `.a99b`.

use super::builder::{ProgramAgentBuilder, ProgramConfig};
use super::journal::TurnJournal;
use super::kept::Kept;
use super::record::TurnRecord;
use super::stream;
use super::turn::{self, Changed, HostTurn};
use super::{AgentProgram, ProgramArgs, ProgramEnd, ProgramError, ProgramTurn, lock, turn_result};
use crate::agent::{Agent, Alarm, ConnectOptions, Identity, TurnOutcome};
use crate::error::{AgentError, codes};
use crate::log::LogLevel;
use crate::methods::{Method, MethodCall, Methods};
use crate::tables::Tables;
use crate::turn::{Turn, TurnClient};
use a99_capabilities::AgentTurn;
use a99_runtime_engine::{
    AgentKey, AgentStore, Event, EventOptions, Policy, Seq, StoreError, Trigger, TurnResult,
};
use agent99::{Engine, RunOptions, Value, event_channel};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// How much longer a turn may take than the run of its program.
const BEYOND: Duration = Duration::from_secs(5);

/// An agent whose events a program handles.
///
/// The program gets an object of `event`, `state`, `settings` and `identity`. It acts on its
/// turn through atoms (`agentSetState`, `agentSend`, `agentSetTimer` and others), and on the
/// world through granted capabilities. Its turn is an ordinary turn: state, messages and timers
/// are one commit, and answers of calls are steps. After a crash it continues at the
/// interrupted call, with the program that it began with (D91).
///
/// A clone is the same agent: a host's factory clones it for each key.
///
/// ```
/// use a99_runtime::program::ProgramAgent;
/// use a99_runtime::{AgentKey, Body, Host, Message, Publish, Sender};
/// use a99_runtime_stores::{SqliteRuntime, StoreOptions};
/// use agent99::Engine;
/// use serde_json::json;
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::new();
/// let program = engine.compile(r#"{"a99": 4, "op": "seq", "steps": [
///     {"op": "agentSetState", "state": {"heard": {"=": "(state.heard ?? 0) + 1"}}},
///     {"op": "agentSend", "content": {"=": "'You said: ' + event.content"}}
/// ]}"#)?;
/// let agent = ProgramAgent::builder(&engine, program).build()?;
///
/// let folder = tempfile::tempdir()?;
/// let store = SqliteRuntime::open(folder.path().join("agents.db"), StoreOptions::default())?;
/// let host = Host::builder().agent("parrot", move |_| agent.clone());
/// let host = host.start(Arc::new(store)).await?;
/// let parrot: AgentKey = "parrot/general/parrot".parse()?;
/// host.invite(&parrot, json!({})).await?;
///
/// let hello = Publish {
///     body: Body::Message(Message::text("hello")),
///     sender: Sender::default(),
///     key: None,
///     attachments: Vec::new(),
/// };
/// host.publish("general", hello).await?;
/// assert!(host.settled(Duration::from_secs(10)).await);
/// assert_eq!(host.inspect(&parrot).await?.state, Some(json!({"heard": 1})));
/// host.drain(Duration::from_secs(5)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ProgramAgent(Arc<Hosted>);

/// The parts that all agents of a program share.
struct Hosted {
    program: AgentProgram,
    settled: ProgramConfig,
    /// The store known to have the program.
    kept: Mutex<Option<Weak<dyn AgentStore>>>,
}

impl fmt::Debug for ProgramAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramAgent").finish_non_exhaustive()
    }
}

/// The end of a turn's run.
#[derive(Debug)]
#[non_exhaustive]
pub struct TurnRun<'a> {
    /// The agent.
    pub key: &'a AgentKey,
    /// The event, timer or hook that triggered the turn.
    pub trigger: &'a Trigger,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The run's outcome with the fuel used, or the error that prevented its end.
    pub end: &'a Result<ProgramEnd, ProgramError>,
}

impl ProgramAgent {
    /// A builder of agents of a program that an engine has compiled or loaded. It grants no
    /// capabilities.
    #[must_use]
    pub fn builder(engine: &Engine, program: agent99::Agent) -> ProgramAgentBuilder {
        ProgramAgentBuilder::new(engine, program)
    }

    pub(super) fn of(program: AgentProgram, settled: ProgramConfig) -> ProgramAgent {
        ProgramAgent(Arc::new(Hosted {
            program,
            settled,
            kept: Mutex::default(),
        }))
    }

    /// The program, with its hash.
    #[must_use]
    pub fn program(&self) -> &AgentProgram {
        &self.0.program
    }

    /// Stores the program, so that another process with a newer program can finish a turn that
    /// began with this one.
    async fn keep(&self, store: &Arc<dyn AgentStore>) -> Result<(), StoreError> {
        let wanted = Arc::downgrade(store);
        let is_kept = |kept: &Weak<dyn AgentStore>| Weak::ptr_eq(kept, &wanted);
        if lock(&self.0.kept).as_ref().is_some_and(is_kept) {
            return Ok(());
        }
        let program = &self.0.program;
        store
            .keep_program(*program.hash(), program.bytes().to_vec())
            .await?;
        *lock(&self.0.kept) = Some(wanted);
        Ok(())
    }

    /// Runs the program on an event or a method call. Gives the result if it is the state or an
    /// answer.
    async fn run(
        &self,
        turn: &mut Turn<'_, Self>,
        event: Json,
        is_answer: bool,
    ) -> Result<Json, AgentError> {
        let settled = &self.0.settled;
        let client = turn.client();
        let store = Arc::clone(client.0.shared.agents());
        self.keep(&store).await?;
        let (clock, random) = (settled.clock.as_ref(), settled.random.as_ref());
        let handler = settled.handler.hosted(&client.0.shared, clock, random);
        let journal = Arc::new(TurnJournal(client.clone()));
        let program = &self.0.program;
        let start = handler.start(program, &*journal).await;
        let began = start.as_ref().map_or(0.0, |start| start.now);
        let settings = Json::Object(turn.settings().clone());
        let args = ProgramArgs {
            event: Value::from(&event),
            state: Value::from(&Json::Object(turn.state().clone())),
            settings: Value::from(&settings),
            identity: Value::from(&turn::identity(&client)),
        };
        let (mut options, sizes) = self.sized_options(turn.state(), &settings);
        let keeps = client.0.keeps() > 0;
        let mut record = keeps.then(|| TurnRecord {
            kind: event["kind"].clone(),
            settings: settings.clone(),
            replays: client.0.replays,
            ..TurnRecord::default()
        });
        let guests = Arc::clone(&settled.guests);
        let state = turn.state().clone();
        let acts = HostTurn::new(client.clone(), began, state, settings, guests);
        let acts = Arc::new(acts);
        let program_turn = ProgramTurn {
            args: (settled.args)(args),
            journal,
            turn: Some(Arc::clone(&acts) as Arc<dyn AgentTurn>),
        };
        let end = match start {
            Ok(start) => {
                let events = settled.is_streaming.then(|| {
                    let (sink, events) = event_channel(stream::WAITING);
                    options = std::mem::take(&mut options).events(sink);
                    events
                });
                let to = record.as_mut();
                let run = handler.handle_from(start, program, program_turn, options, to);
                match events {
                    Some(events) => tokio::join!(run, stream::show(&client, events)).0,
                    None => run.await,
                }
            }
            Err(error) => Err(error),
        };
        self.tell(&client, &end);
        let ended = self.ended(end, &acts, sizes, is_answer);
        if let Some(mut record) = record {
            record.handles = acts.handles();
            let changed = ended.as_ref().ok();
            record.laid = changed.and_then(|(changed, _)| changed.laid.clone());
            *lock(&client.0.record) = Some(record);
        }
        let (changed, result) = ended?;
        if let Json::Object(state) = changed.state {
            *turn.state_mut() = state;
        }
        if let Some(laid) = changed.laid {
            turn.update_settings(&laid)?;
        }
        Ok(result)
    }

    /// Options of a run, and the limit of what its agent keeps.
    pub(super) fn sized_options(
        &self,
        state: &impl Serialize,
        settings: &Json,
    ) -> (RunOptions, (Kept, usize)) {
        let mut options = self.0.settled.handler.run_options();
        let kept = Kept::of(state, settings);
        let room = kept.room(&mut options);
        (options, (kept, room))
    }

    /// What a run changed, and its result where it is the state or an answer.
    pub(super) fn ended(
        &self,
        end: Result<ProgramEnd, ProgramError>,
        acts: &HostTurn,
        (kept, room): (Kept, usize),
        is_answer: bool,
    ) -> Result<(Changed, Json), AgentError> {
        let is_state = self.0.settled.is_state_of_result && !is_answer;
        match turn_result(&end) {
            TurnResult::Done => {
                let mut changed = acts.end();
                let result = match end {
                    Ok(end) if is_state || is_answer => turn::json_of(&end.outcome.result)
                        .map_err(|error| {
                            AgentError::new(codes::BAD_VALUE, error.to_string()).fatal()
                        })?,
                    _ => Json::Null,
                };
                if is_state && result.is_object() {
                    changed.state.clone_from(&result);
                }
                kept.check(&changed.state, &changed.settings, room)?;
                Ok((changed, result))
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

    /// The arguments of a run.
    pub(super) fn args(&self, args: ProgramArgs) -> Value {
        (self.0.settled.args)(args)
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.0.settled.handler.engine
    }

    fn tell(&self, client: &TurnClient, end: &Result<ProgramEnd, ProgramError>) {
        if let Some(told) = &self.0.settled.on_end {
            told(&TurnRun {
                key: &client.identity().key,
                trigger: client.trigger(),
                attempt: client.attempt(),
                end,
            });
        }
    }

    /// Runs the program on an event.
    async fn handle(&self, turn: &mut Turn<'_, Self>, event: Json) -> TurnOutcome {
        let result = self.run(turn, event, false).await?;
        if !self.0.settled.is_state_of_result {
            return Ok(());
        }
        match result {
            Json::Object(_) | Json::Null => {}
            _ => {
                let text = "the program gives its state, and this is no object";
                return Err(AgentError::new(codes::BAD_VALUE, text).fatal());
            }
        }
        Ok(())
    }

    /// Runs the program on a method call.
    async fn answer(
        &self,
        turn: &mut Turn<'_, Self>,
        name: &str,
        call: MethodCall,
    ) -> Result<Json, AgentError> {
        self.run(turn, turn::method_call(name, &call), true).await
    }
}

impl Agent for ProgramAgent {
    type State = Map<String, Json>;
    type Settings = Map<String, Json>;

    fn initial_state(&self) -> Self::State {
        self.0.settled.state.clone()
    }

    fn default_settings(&self) -> Self::Settings {
        self.0.settled.settings.clone()
    }

    fn tables(&self) -> Option<Tables> {
        self.0.settled.tables.clone()
    }

    fn connect_options(&self, _: &Identity, _: Seq) -> ConnectOptions {
        self.0.settled.connect.clone()
    }

    fn event_options(&self) -> EventOptions {
        self.0.settled.events
    }

    fn policy(&self) -> Policy {
        self.0.settled.policy
    }

    fn turn_timeout(&self) -> Duration {
        self.0.settled.time_of_turn.saturating_add(BEYOND)
    }

    fn methods(&self) -> Methods<ProgramAgent> {
        let mut methods = Methods::none();
        for (name, told) in &self.0.settled.methods {
            let called = name.clone();
            let method = Method::new(
                told.description.clone(),
                move |agent: &ProgramAgent, turn, call| {
                    let called = called.clone();
                    Box::pin(async move { agent.answer(turn, &called, call).await })
                },
            );
            methods = methods.with(name.clone(), told.lay_over(method));
        }
        methods
    }

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        self.handle(turn, turn::event(&event)).await
    }

    async fn on_lost(&self, turn: &mut Turn<'_, Self>, lost: Vec<Trigger>) -> TurnOutcome {
        if !self.0.settled.hears_lost {
            return Ok(());
        }
        let told = self.handle(turn, turn::lost(&lost)).await;
        if let Err(error) = told {
            // The agent continues: its dead letters hold the same information.
            let client = turn.client();
            client.0.give_up();
            let key = Some(&client.identity().key);
            let message = format!("the program failed on the event of lost turns: {error}");
            let log = &client.0.shared.log;
            log.say(LogLevel::Warn, key, error.code(), &message);
        }
        Ok(())
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
