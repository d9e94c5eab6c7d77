//! Agents of a process: the agents that it runs for a host in another process.

use super::ai::{Piece, RemoteAi, Streams};
use super::calls::unknown;
use super::frame::{self, Body, Envelope, parsed};
use super::peer::{Peer, Serve};
use super::remote::{HostClock, RemotePresence, RemoteStore, RemoteTurn};
use super::start::{SOCKET_FILE, TOKEN_FILE};
use super::wire::{Declared, Head, Hello, Make, PROTOCOL, ReadState, RunTurn, Sending, TurnEnd};
use super::{SOCKET, TOKEN};
use crate::activation::turns::panicked;
use crate::agent::{Agent, Identity};
use crate::connection::ConnectionStatus;
use crate::error::{AgentError, codes};
use crate::hub::locked;
use crate::log::{AgentLogger, Log};
use crate::options::HostOptions;
use crate::runner::{Runner, Typed};
use crate::shared::{HostLink, Shared};
use crate::trace::Tracer;
use crate::turn::{TurnClient, TurnInner};
use a99_capabilities::{AiProvider, SystemRandom};
use a99_runtime_engine::{BoxFuture, Event, Fence, Seq, Uuid};
use futures_util::FutureExt;
use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::watch;

/// How long a started process may outlive its host.
const GRACE: Duration = Duration::from_secs(5);

type Factory = Box<dyn Fn(&Identity) -> Arc<dyn Runner> + Send + Sync>;

/// The agents that this process runs for a host in another process
/// ([`Process`](crate::Process)), by name, as in
/// [`HostBuilder::agent`](crate::HostBuilder::agent). The same types run in both places.
///
/// ```no_run
/// # use a99_runtime::{Agent, AgentError, AgentProcess, Event, Turn, TurnOutcome};
/// # struct Echo;
/// # impl Agent for Echo {
/// #     type State = std::collections::BTreeMap<String, u64>;
/// #     type Settings = serde_json::Value;
/// #     async fn on_event(&self, _: &mut Turn<'_, Self>, _: Event) -> TurnOutcome { Ok(()) }
/// # }
/// #[tokio::main]
/// async fn main() -> Result<(), AgentError> {
///     AgentProcess::new().agent("echo", |_| Echo).serve().await
/// }
/// ```
#[derive(Default)]
pub struct AgentProcess {
    factories: BTreeMap<String, Factory>,
}

impl std::fmt::Debug for AgentProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.factories.keys()).finish()
    }
}

impl AgentProcess {
    /// A process without agents.
    #[must_use]
    pub fn new() -> AgentProcess {
        AgentProcess::default()
    }

    /// Defines an agent under a name. `make` creates a value each time that one of the agent's
    /// keys wakes.
    #[must_use]
    pub fn agent<A: Agent>(
        mut self,
        name: impl Into<String>,
        make: impl Fn(&Identity) -> A + Send + Sync + 'static,
    ) -> AgentProcess {
        let factory: Factory = Box::new(move |identity| Arc::new(Typed::new(make(identity))));
        self.factories.insert(name.into(), factory);
        self
    }

    /// Serves the host that started this process until the host stops. If a handler blocks the
    /// end, the process exits five seconds later.
    ///
    /// # Errors
    /// `process.not_started` if no host started it; `process.refused`; `process.lost` if the
    /// host is gone.
    pub async fn serve(self) -> Result<(), AgentError> {
        let (Some(socket), Ok(token)) = (std::env::var_os(SOCKET), std::env::var(TOKEN)) else {
            let message = format!(
                "no host started this process ({SOCKET} and {TOKEN} are not set): \
                 `AgentProcess::attach` connects with one that waits for it"
            );
            return Err(AgentError::new(codes::NOT_STARTED, message));
        };
        let served = self.over(Path::new(&socket), token).await;
        std::thread::spawn(|| {
            std::thread::sleep(GRACE);
            std::process::exit(1);
        });
        served
    }

    /// Serves a host that waits for this process
    /// ([`Process::attached`](crate::Process::attached)), until the host stops.
    ///
    /// # Errors
    /// `process.not_started` if no host waits in the folder; those of [`AgentProcess::serve`].
    pub async fn attach(self, folder: impl AsRef<Path>) -> Result<(), AgentError> {
        let folder = folder.as_ref();
        let token = std::fs::read_to_string(folder.join(TOKEN_FILE));
        let token = token.map_err(|error| not_there(folder, &error))?;
        self.over(&folder.join(SOCKET_FILE), token).await
    }

    async fn over(self, socket: &Path, token: String) -> Result<(), AgentError> {
        let stream = UnixStream::connect(socket).await;
        let mut stream = stream.map_err(|error| not_there(socket, &error))?;
        let hello = Hello {
            protocol: PROTOCOL,
            token,
            agents: self.factories.keys().cloned().collect(),
        };
        let lost = |error: std::io::Error| AgentError::new(codes::LOST, error.to_string());
        let hello = frame::request(0, "hello", &hello)?;
        stream.write_all(&hello).await.map_err(lost)?;
        // A host that needs none of the agents yet answers later.
        match frame::read(&mut stream).await?.map(|frame| frame.envelope) {
            Some(Envelope::Answer(_)) => {}
            Some(Envelope::Failed(_, error)) => return Err(error.into()),
            _ => return Err(AgentError::new(codes::LOST, "the host has gone")),
        }
        let (peer, queue) = Peer::new();
        let agents = Arc::new(Agents(Arc::new(Running {
            factories: self.factories,
            made: Mutex::default(),
            turns: Mutex::default(),
            streams: Arc::default(),
            peer: Arc::clone(&peer),
        })));
        let running = Arc::clone(&agents.0);
        let why = peer.run(queue, stream.into_split(), agents).await;
        for turn in locked(&running.turns).values() {
            let connection = &turn.client.0.shared.connection;
            if why.code() != codes::STOPPING {
                connection.fault(why.clone());
            }
            connection.set(ConnectionStatus::Closed);
            turn.client.0.give_up();
        }
        match why.code() {
            codes::STOPPING => Ok(()),
            _ => Err(why),
        }
    }
}

fn not_there(path: &Path, error: &std::io::Error) -> AgentError {
    let message = format!("{}: {error}", path.display());
    AgentError::new(codes::NOT_STARTED, message)
}

/// The state of this process.
struct Running {
    factories: BTreeMap<String, Factory>,
    /// Agents' values, by the numbers that the host gave them.
    made: Mutex<HashMap<u64, Made>>,
    turns: Mutex<HashMap<Uuid, Arc<Turning>>>,
    streams: Arc<Streams>,
    peer: Arc<Peer>,
}

#[derive(Clone)]
struct Made {
    identity: Arc<Identity>,
    runner: Arc<dyn Runner>,
}

/// A running turn.
struct Turning {
    client: TurnClient,
    has_ended: watch::Sender<bool>,
}

/// Marks a handler as ended when dropped, also after an abort.
struct Ending<'a>(&'a Running, Uuid);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let turn = locked(&self.0.turns).remove(&self.1);
        if let Some(turn) = turn {
            turn.client.0.give_up();
            turn.has_ended.send_replace(true);
        }
    }
}

struct Agents(Arc<Running>);

impl Serve for Agents {
    fn request(
        &self,
        id: u64,
        method: String,
        body: Body,
    ) -> BoxFuture<'static, Result<Vec<u8>, AgentError>> {
        let running = Arc::clone(&self.0);
        Box::pin(async move { running.answer(id, &method, &body).await })
    }

    fn notice(&self, method: &str, params: &Body) -> Result<(), AgentError> {
        match method {
            "channel.head" => {
                let head: Head = parsed(params, method)?;
                let turn = locked(&self.0.turns).get(&head.turn).cloned();
                if let Some(turn) = turn {
                    let inner = &turn.client.0;
                    inner
                        .shared
                        .hub()
                        .goes_on(inner.fence.key.channel(), head.seq);
                }
                Ok(())
            }
            "ai.event" => {
                let (stream, piece): (u64, Piece) = parsed(params, method)?;
                self.0.streams.take(stream, piece);
                Ok(())
            }
            "agent.drop" => {
                let agent: u64 = parsed(params, method)?;
                let made = locked(&self.0.made).remove(&agent);
                drop(made);
                Ok(())
            }
            "agent.filtered" => {
                let (agent, event): (u64, Event) = parsed(params, method)?;
                if let Ok(made) = self.0.made(agent) {
                    made.runner.on_filtered(&event);
                }
                Ok(())
            }
            "bye" => Err(AgentError::new(codes::STOPPING, "the host stops")),
            _ => Err(unknown(method)),
        }
    }
}

/// Runs an agent's code and converts its panic to an error.
fn guarded<T>(work: impl FnOnce() -> Result<T, AgentError>) -> Result<T, AgentError> {
    let done = std::panic::catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|panic| Err(panicked(&*panic)))
}

impl Running {
    async fn answer(&self, id: u64, method: &str, body: &Body) -> Result<Vec<u8>, AgentError> {
        match method {
            "agent.make" => frame::answer(id, &self.make(parsed(body, method)?)?),
            "agent.connect" => {
                let (agent, checkpoint): (u64, Seq) = parsed(body, method)?;
                let made = self.made(agent)?;
                let connect =
                    guarded(|| Ok(made.runner.connect_options(&made.identity, checkpoint)));
                frame::answer(id, &connect?)
            }
            "agent.init" => {
                let made = self.made(parsed(body, method)?)?;
                let done = AssertUnwindSafe(made.runner.init(&made.identity)).catch_unwind();
                done.await.unwrap_or_else(|panic| Err(panicked(&*panic)))?;
                frame::answer(id, &())
            }
            "agent.read" => {
                let (agent, json, found): (u64, String, u32) = parsed(body, method)?;
                let made = self.made(agent)?;
                let read = AssertUnwindSafe(async { made.runner.read(&json, found).await });
                let read = read.catch_unwind().await;
                let (output, backups) = read.unwrap_or_else(|panic| Err(panicked(&*panic)))?;
                let state = output.json;
                frame::answer(id, &ReadState { state, backups })
            }
            "turn.run" => frame::answer(id, &self.run(parsed(body, method)?).await?),
            "turn.cancel" => {
                let token: Uuid = parsed(body, method)?;
                let turn = locked(&self.turns).get(&token).cloned();
                if let Some(turn) = turn {
                    // Its request was cancelled; the handler ends at its next await.
                    let mut ended = turn.has_ended.subscribe();
                    drop(ended.wait_for(|has| *has).await);
                }
                frame::answer(id, &())
            }
            _ => Err(unknown(method)),
        }
    }

    fn made(&self, agent: u64) -> Result<Made, AgentError> {
        let made = locked(&self.made).get(&agent).cloned();
        made.ok_or_else(|| {
            let message = format!("no agent has the number {agent} here");
            AgentError::new(codes::UNKNOWN_AGENT, message)
        })
    }

    fn make(&self, make: Make) -> Result<Declared, AgentError> {
        let name = make.identity.key.agent();
        let factory = self.factories.get(name).ok_or_else(|| {
            let message = format!("no agent is called '{name}' in this process");
            AgentError::new(codes::UNKNOWN_AGENT, message).fatal()
        })?;
        let made = guarded(|| {
            let runner = factory(&make.identity);
            let declared = declared(&*runner, &make.identity)?;
            Ok((runner, declared))
        });
        let (runner, declared) = made?;
        let identity = Arc::new(make.identity);
        locked(&self.made).insert(make.agent, Made { identity, runner });
        Ok(declared)
    }

    async fn run(&self, mut run: RunTurn) -> Result<TurnEnd, AgentError> {
        let made = self.made(run.agent)?;
        let key = made.identity.key.clone();
        let (peer, streams) = (Arc::clone(&self.peer), Arc::clone(&self.streams));
        let turn = Arc::new(RemoteTurn::new(peer, streams, key, &mut run));
        let client = client(&turn, made.identity, &run);
        turn.is_of(&client.0);
        let turning = Turning {
            client: client.clone(),
            has_ended: watch::Sender::new(false),
        };
        locked(&self.turns).insert(run.turn, Arc::new(turning));
        let _ending = Ending(self, run.turn);
        let state = serde_json::from_str(&run.state)?;
        let state = guarded(|| made.runner.decode(state))?.state;
        let handler =
            Arc::clone(&made.runner).run(run.work, client.clone(), state, Arc::new(run.settings));
        let ended = AssertUnwindSafe(handler).catch_unwind().await;
        let mut changes = client.0.end();
        let mut output = ended.unwrap_or_else(|panic| Err(panicked(&*panic)))?;
        output.change_settings(changes.settings.take());
        if output.json != run.state {
            guarded(|| made.runner.check(&output.json))?;
        }
        let outbox = changes.outbox.into_iter().map(|new| Sending {
            id: new.event.id,
            body: new.event.body,
            attachments: new.event.attachments,
        });
        Ok(TurnEnd {
            state: output.json,
            settings: output.settings,
            answer: output.answer,
            attachments: changes.attachments,
            outbox: outbox.collect(),
            timers: changes.timers,
        })
    }
}

/// An agent's declarations.
fn declared(runner: &dyn Runner, identity: &Identity) -> Result<Declared, AgentError> {
    let timeout = runner.turn_timeout().as_millis();
    Ok(Declared {
        policy: runner.policy(),
        turn_timeout: u64::try_from(timeout).unwrap_or(u64::MAX),
        events: runner.event_options(),
        version: runner.version(),
        methods: runner.advertised(),
        tables: runner.tables().map(|tables| tables.migrations),
        settings: runner.default_settings()?,
        connect: runner.connect_options(identity, 0),
        initial: runner.initial()?.json,
    })
}

/// The shared state of a turn in this process, which serves only that turn.
fn shared(turn: &Arc<RemoteTurn>, has_ai: bool, has_log: bool, now: u64) -> Shared {
    let store = Arc::new(RemoteStore(Arc::clone(turn)));
    let ai = has_ai.then(|| Arc::new(RemoteAi(Arc::clone(turn))) as Arc<dyn AiProvider>);
    let log = has_log.then(|| Arc::clone(turn) as Arc<dyn AgentLogger>);
    let clock = HostClock {
        began: now,
        at: Instant::now(),
    };
    let mut shared = Shared::new(
        Arc::clone(&store) as Arc<dyn a99_runtime_engine::AgentStore>,
        store,
        None,
        Box::new(|_, _| ()),
        Arc::new(clock),
        Arc::new(SystemRandom),
        ai,
        Log(log),
        Tracer::default(),
        HostOptions::default(),
        Box::new(RemotePresence(Arc::clone(turn))),
    );
    shared.link = Some(Arc::clone(turn) as Arc<dyn HostLink>);
    shared
}

fn client(turn: &Arc<RemoteTurn>, identity: Arc<Identity>, run: &RunTurn) -> TurnClient {
    let fence = Fence {
        key: identity.key.clone(),
        epoch: run.epoch,
    };
    let shared = shared(turn, run.has_ai, run.has_log, run.now);
    TurnClient(Arc::new(TurnInner::new(
        Arc::new(shared),
        identity,
        Arc::clone(&run.sender),
        fence,
        run.delivery,
        (run.trigger.clone(), run.attempt),
        run.hops,
        run.checkpoint,
        run.replays,
        run.has_tables,
        // No group commit: the host waits for each operation.
        None,
    )))
}
