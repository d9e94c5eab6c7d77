//! The host's answers to requests of turns in another process.

use super::frame::{self, Body, WireError, parsed};
use super::peer::{Peer, Serve};
use super::start::Running;
use super::wire::{Asked, OfTurn, Present, Sending, Told};
use super::{ai, wire};
use crate::bus::Waiting;
use crate::error::{AgentError, codes};
use crate::event_bus::{EventBus, HISTORY_EVENTS};
use crate::hub::locked;
use crate::log::LogLevel;
use crate::tables::Storage;
use crate::turn::TurnClient;
use a99_runtime_engine::{
    AgentKey, BoxFuture, Epoch, Event, JournalRow, NewEvent, Seq, StepCount, Uuid,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::watch;

/// A connection to a process of agents, and the turns that run there.
pub(super) struct Connection {
    pub(super) peer: Arc<Peer>,
    turns: Mutex<HashMap<Uuid, Arc<Served>>>,
    has_ended_a_turn: AtomicBool,
    is_finished: watch::Sender<bool>,
}

struct Served {
    client: TurnClient,
    /// Agents that it waits for, under the numbers that it assigned.
    waits: Mutex<HashMap<u64, Waiting>>,
    /// Whether the process is notified of the head of the turn's channel.
    is_watching: AtomicBool,
    is_over: watch::Sender<bool>,
}

/// An attempt that runs in the process. Dropping it before its end asks the process to cancel
/// the turn; a process that does not is replaced.
pub(super) struct Attempt {
    connection: Arc<Connection>,
    turn: Uuid,
    limit: Option<Duration>,
    has_ended: bool,
}

impl Attempt {
    /// Records that the attempt ended, or that the process is gone.
    pub(super) fn ended(mut self) {
        self.has_ended = true;
        let connection = &self.connection;
        if !connection.peer.has_ended() {
            connection.has_ended_a_turn.store(true, Ordering::Release);
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let served = locked(&self.connection.turns).remove(&self.turn);
        if let Some(served) = served {
            served.is_over.send_replace(true);
        }
        let peer = Arc::clone(&self.connection.peer);
        if self.has_ended || peer.has_ended() {
            return;
        }
        let (turn, limit) = (self.turn, self.limit);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let given_up = peer.request::<()>("turn.cancel", &turn, limit).await;
                if let Err(error) = given_up {
                    let message = format!("the process did not give a turn up: {error}");
                    peer.end(AgentError::new(codes::CALL_LATE, message));
                }
            });
        }
    }
}

/// The participants of a turn's channel, and the agents that it can invite.
pub(super) fn present(client: &TurnClient) -> Present {
    Present {
        roster: client.roster(),
        known: client.list_agents(),
    }
}

fn over(turn: Uuid) -> AgentError {
    let message = format!("the attempt {turn} is over: what it left behind cannot act any more");
    AgentError::new(codes::OVER, message)
}

impl Connection {
    /// A connection over a stream, with the task that drives it.
    pub(super) fn over(stream: UnixStream, running: Option<Running>) -> Arc<Connection> {
        let (peer, queue) = Peer::new();
        let connection = Arc::new(Connection {
            peer: Arc::clone(&peer),
            turns: Mutex::default(),
            has_ended_a_turn: AtomicBool::new(false),
            is_finished: watch::Sender::new(false),
        });
        let calls = Calls(Arc::clone(&connection));
        let ended = Arc::clone(&connection);
        tokio::spawn(async move {
            let served = Arc::new(calls);
            drop(peer.run(queue, stream.into_split(), served).await);
            for (_, served) in locked(&ended.turns).drain() {
                served.is_over.send_replace(true);
            }
            if let Some(running) = running {
                running.stop().await;
            }
            ended.is_finished.send_replace(true);
        });
        connection
    }

    /// Waits until the process has exited too.
    pub(super) async fn finished(&self) {
        let mut finished = self.is_finished.subscribe();
        drop(finished.wait_for(|is| *is).await);
    }

    pub(super) fn has_ended_a_turn(&self) -> bool {
        self.has_ended_a_turn.load(Ordering::Acquire)
    }

    /// Admits requests of a turn from now on, under a token.
    pub(super) fn begin(
        self: &Arc<Connection>,
        turn: Uuid,
        client: TurnClient,
        limit: Option<Duration>,
    ) -> Attempt {
        let served = Served {
            client,
            waits: Mutex::default(),
            is_watching: AtomicBool::new(false),
            is_over: watch::Sender::new(false),
        };
        locked(&self.turns).insert(turn, Arc::new(served));
        Attempt {
            connection: Arc::clone(self),
            turn,
            limit,
            has_ended: false,
        }
    }

    /// The turn of a token, unless it is over.
    fn turn(&self, turn: Uuid, epoch: Epoch) -> Result<Arc<Served>, AgentError> {
        let served = locked(&self.turns).get(&turn).cloned();
        let served = served.filter(|served| served.client.0.fence.epoch == epoch);
        served.ok_or_else(|| over(turn))
    }
}

/// Answers requests of the process.
struct Calls(Arc<Connection>);

struct Call {
    connection: Arc<Connection>,
    id: u64,
    method: String,
    body: Body,
}

impl Serve for Calls {
    fn request(
        &self,
        id: u64,
        method: String,
        body: Body,
    ) -> BoxFuture<'static, Result<Vec<u8>, AgentError>> {
        let call = Call {
            connection: Arc::clone(&self.0),
            id,
            method,
            body,
        };
        Box::pin(async move { call.answer().await })
    }

    fn notice(&self, method: &str, params: &Body) -> Result<(), AgentError> {
        match method {
            "log" => {
                let said: OfTurn<(String, String, String)> = parsed(params, method)?;
                let Ok(served) = self.0.turn(said.turn, said.epoch) else {
                    return Ok(());
                };
                let (level, code, message) = said.params;
                let inner = &served.client.0;
                let level = LogLevel::named(&level).unwrap_or(LogLevel::Error);
                let key = Some(&inner.fence.key);
                inner.shared.log.say(level, key, &code, &message);
                Ok(())
            }
            "call.over" => {
                let said: OfTurn<u64> = parsed(params, method)?;
                if let Ok(served) = self.0.turn(said.turn, said.epoch) {
                    let waiting = locked(&served.waits).remove(&said.params);
                    drop(waiting);
                }
                Ok(())
            }
            _ => Err(unknown(method)),
        }
    }
}

pub(super) fn unknown(method: &str) -> AgentError {
    let message = format!("the protocol has no '{method}'");
    AgentError::new(codes::UNKNOWN_CALL, message).fatal()
}

impl Call {
    /// Works for a turn until the turn is over.
    async fn of<P, T, F>(
        &self,
        work: impl FnOnce(Arc<Served>, P) -> F,
    ) -> Result<Vec<u8>, AgentError>
    where
        P: DeserializeOwned,
        T: Serialize,
        F: Future<Output = Result<T, AgentError>>,
    {
        let of: OfTurn<P> = parsed(&self.body, &self.method)?;
        let served = self.connection.turn(of.turn, of.epoch)?;
        let mut is_over = served.is_over.subscribe();
        served.client.0.going_on()?;
        let done = tokio::select! {
            biased;
            _ = is_over.wait_for(|is| *is) => return Err(over(of.turn)),
            done = work(Arc::clone(&served), of.params) => done?,
        };
        frame::answer(self.id, &done)
    }

    async fn answer(&self) -> Result<Vec<u8>, AgentError> {
        match self.method.as_str() {
            "channel.append" => self.of(append).await,
            "channel.pass" => self.of(pass).await,
            "channel.read" => self.events(true).await,
            "channel.read_before" => self.events(false).await,
            "channel.head" => self.head().await,
            "channel.config" => self.of(config).await,
            "channel.configure" => self.of(configure).await,
            "step.journal" => self.of(journal).await,
            "step.keep" => self.of(keep).await,
            "storage.exec" => self.of(exec).await,
            "storage.run" => self.of(run).await,
            "storage.query" => self.of(query).await,
            "call.wait" => self.of(wait).await,
            "channel.roster" => {
                self.of(|served, ()| async move { Ok(present(&served.client)) })
                    .await
            }
            "agents.sleep" => {
                self.of(|served, ()| async move {
                    let inner = &served.client.0;
                    inner.shared.presence.close(inner.fence.key.clone()).await
                })
                .await
            }
            "agents.invite" => self.of(invite).await,
            "agents.remove" => self.of(remove).await,
            "ai.roles" => {
                self.of(|served, ()| async move { ai::roles(served.client.ai()?).await })
                    .await
            }
            "ai.stream" => {
                let peer = Arc::clone(&self.connection.peer);
                self.of(|served, asked: ai::Request| async move {
                    let model = Arc::clone(served.client.ai()?);
                    ai::serve(&peer, &*model, asked).await
                })
                .await
            }
            "program.keep" => self.of(keep_program).await,
            "program.find" => self.of(find_program).await,
            method => Err(unknown(method)),
        }
    }

    /// Events of the turn's channel, as many as fit a frame.
    async fn events(&self, forward: bool) -> Result<Vec<u8>, AgentError> {
        let of: OfTurn<(Seq, usize)> = parsed(&self.body, &self.method)?;
        let served = self.connection.turn(of.turn, of.epoch)?;
        let inner = &served.client.0;
        let store = inner.shared.hub().store();
        let channel = inner.fence.key.channel();
        let (at, most) = of.params;
        let most = most.min(HISTORY_EVENTS);
        let mut events: Vec<Arc<Event>> = match forward {
            true => store.read(channel, at, most).await?,
            false => store.read_before(channel, at, most).await?,
        };
        self.connection.turn(of.turn, of.epoch)?;
        loop {
            match frame::answer(self.id, &events) {
                Err(error) if error.code() == codes::MESSAGE_TOO_LARGE && events.len() > 1 => {
                    events.truncate(events.len() / 2);
                }
                answer => return answer,
            }
        }
    }

    /// The head of the turn's channel; the process is notified of later heads.
    async fn head(&self) -> Result<Vec<u8>, AgentError> {
        let peer = Arc::clone(&self.connection.peer);
        let of: OfTurn<()> = parsed(&self.body, &self.method)?;
        let turn = of.turn;
        self.of(|served, ()| async move {
            let inner = &served.client.0;
            let channel = inner
                .shared
                .hub()
                .channel(inner.fence.key.channel())
                .await?;
            if !served.is_watching.swap(true, Ordering::AcqRel) {
                let (mut reader, mut is_over) = (channel.reader(), served.is_over.subscribe());
                tokio::spawn(async move {
                    loop {
                        tokio::select! {
                            biased;
                            _ = is_over.wait_for(|is| *is) => return,
                            () = reader.changed() => {}
                        }
                        let told = wire::Head {
                            turn,
                            seq: reader.look(),
                        };
                        if peer.notify("channel.head", &told).await.is_err() {
                            return;
                        }
                    }
                });
            }
            Ok(channel.head())
        })
        .await
    }
}

fn event(client: &TurnClient, sending: Sending) -> NewEvent {
    client
        .0
        .event(sending.id, sending.body, sending.attachments)
}

async fn append(served: Arc<Served>, sending: Sending) -> Result<Seq, AgentError> {
    let event = event(&served.client, sending);
    served.client.0.immediate(event).await
}

async fn pass(served: Arc<Served>, sending: Sending) -> Result<(), AgentError> {
    let event = event(&served.client, sending);
    served.client.pass(event).await
}

async fn config(served: Arc<Served>, (): ()) -> Result<Value, AgentError> {
    EventBus::channel_config(&served.client).await
}

async fn configure(served: Arc<Served>, changes: Value) -> Result<Value, AgentError> {
    let inner = &served.client.0;
    let (store, channel) = (inner.shared.hub().store(), inner.fence.key.channel());
    Ok(store.update_channel_config(channel, changes).await?)
}

async fn journal(served: Arc<Served>, (): ()) -> Result<Vec<JournalRow>, AgentError> {
    Ok(served.client.0.journal.all().await?)
}

async fn keep(served: Arc<Served>, row: JournalRow) -> Result<(), AgentError> {
    let journal = &served.client.0.journal;
    // The journal must be read before it is written, as in this process.
    journal.find(&row.name).await?;
    let kept = journal.keep(&row.name, row.class, row.body, row.status);
    Ok(kept.await?)
}

/// The tables of a turn, and the step count of a statement.
fn storage(served: &Served, asked: &Asked) -> Result<(Storage, Arc<StepCount>), AgentError> {
    let steps = Arc::new(StepCount::up_to(asked.steps.unwrap_or(u64::MAX)));
    let mut storage = served.client.storage()?;
    if asked.steps.is_some() {
        storage = storage.counted(Arc::clone(&steps));
    }
    if asked.repeatable {
        storage = storage.repeatable();
    }
    Ok((storage, steps))
}

fn told<T>(done: Result<T, AgentError>, steps: &StepCount) -> Told<T> {
    Told {
        taken: steps.taken(),
        done: done.map_err(|error| WireError::from(&error)),
    }
}

async fn exec(served: Arc<Served>, asked: Asked) -> Result<Told<()>, AgentError> {
    let (storage, steps) = storage(&served, &asked)?;
    Ok(told(storage.exec(&asked.sql).await, &steps))
}

async fn run(
    served: Arc<Served>,
    asked: Asked,
) -> Result<Told<a99_runtime_engine::RunResult>, AgentError> {
    let (storage, steps) = storage(&served, &asked)?;
    Ok(told(storage.run(&asked.sql, asked.params).await, &steps))
}

async fn query(
    served: Arc<Served>,
    asked: Asked,
) -> Result<Told<Vec<a99_runtime_engine::Row>>, AgentError> {
    let (storage, steps) = storage(&served, &asked)?;
    let found = match asked.first {
        true => {
            let first = storage.get(&asked.sql, asked.params).await;
            first.map(|row| row.into_iter().collect())
        }
        false => storage.query(&asked.sql, asked.params).await,
    };
    Ok(told(found, &steps))
}

async fn wait(served: Arc<Served>, (id, callee): (u64, AgentKey)) -> Result<(), AgentError> {
    let inner = &served.client.0;
    let waiting = inner.shared.wait(&inner.fence.key, &callee).await?;
    locked(&served.waits).insert(id, waiting);
    Ok(())
}

/// Refuses an agent of another channel than the turn's.
fn check_channel(served: &Served, key: &AgentKey) -> Result<(), AgentError> {
    let own = served.client.0.fence.key.channel();
    match key.channel() == own {
        true => Ok(()),
        false => {
            let message = format!("{key} is not of the channel {own}");
            Err(AgentError::new(codes::BAD_MESSAGE, message).fatal())
        }
    }
}

async fn invite(
    served: Arc<Served>,
    (key, config): (AgentKey, Value),
) -> Result<Present, AgentError> {
    check_channel(&served, &key)?;
    served.client.0.shared.presence.invite(key, config).await?;
    Ok(present(&served.client))
}

async fn remove(served: Arc<Served>, key: AgentKey) -> Result<(bool, Present), AgentError> {
    check_channel(&served, &key)?;
    let was_there = served.client.0.shared.presence.remove(key).await?;
    Ok((was_there, present(&served.client)))
}

async fn keep_program(
    served: Arc<Served>,
    (hash, bytes): ([u8; 32], Vec<u8>),
) -> Result<(), AgentError> {
    // Other agents trust the hash.
    if hash != <[u8; 32]>::from(Sha256::digest(&bytes)) {
        let message = "the hash of a program is another one";
        return Err(AgentError::new(codes::BAD_MESSAGE, message).fatal());
    }
    let agents = served.client.0.shared.agents();
    Ok(agents.keep_program(hash, bytes).await?)
}

async fn find_program(served: Arc<Served>, hash: [u8; 32]) -> Result<Option<Vec<u8>>, AgentError> {
    Ok(served.client.0.shared.agents().program(hash).await?)
}
