//! Replay of a kept turn without the world: its event, state and answers are those of the turn,
//! and its effects stay in memory.

use super::agent::ProgramAgent;
use super::record::TurnRecord;
use super::start::Start;
use super::turn::{self, HostTurn};
use super::{ProgramArgs, ProgramEnd};
use crate::agent::Identity;
use crate::bus::Participant;
use crate::error::{AgentError, codes};
use crate::methods::{MethodCall, method_result};
use crate::options::HostOptions;
use crate::shared::{Presence, Shared};
use crate::turn::{TurnClient, TurnInner};
use a99_capabilities::{AgentTurn, Clock, SystemRandom};
use a99_runtime_engine::{
    AgentKey, AgentStore, Body, BoxFuture, ChannelStore, Delivery, Event, Fence, KeptTurn, Sender,
    TimerChange, Trigger, Uuid,
};
use agent99::replay::{Departure, Recording};
use agent99::{Fuel, RunError, Value};
use serde_json::{Map, Value as Json};
use std::sync::Arc;

/// What a turn did.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnDone {
    /// The state that it left; `None` if the store does not keep it any more.
    pub state: Option<Json>,
    /// Its changes of the settings.
    pub settings: Option<Json>,
    /// The sent events with their identities, in order; null for one that is not in the log.
    pub sent: Vec<(Uuid, Json)>,
    /// The timers that it set and removed.
    pub timers: Vec<TimerChange>,
    /// The fuel of the program's run.
    pub fuel: Fuel,
    /// Code and text of its error.
    pub error: Option<(String, String)>,
}

/// A replayed turn.
#[derive(Debug)]
pub struct TurnReplay {
    /// What it did when it was committed.
    pub committed: TurnDone,
    /// What it did now. After a departure it is a part of that, with an error.
    pub replayed: TurnDone,
    /// The error of the program's run, with its place.
    pub error: Option<RunError>,
    /// The first call that departs from the kept ones.
    pub departure: Option<Departure>,
}

fn unreadable() -> AgentError {
    AgentError::new("store.unreadable", "the kept turn cannot be read")
}

/// The hash of the program that a kept turn began with; `None` for an unreadable turn.
#[must_use]
pub fn program_of(turn: &KeptTurn) -> Option<[u8; 32]> {
    let record = TurnRecord::read(&turn.record)?;
    Some(Start::decode(&record.start)?.program)
}

/// The clock of a turn: it stands still.
struct Standing(f64);

impl Clock for Standing {
    fn now_ms(&self) -> f64 {
        self.0
    }
}

/// The participants that the turn found, and the agents of the channel.
struct Found(Vec<Participant>);

impl Presence for Found {
    fn roster(&self, _: &str) -> Vec<Participant> {
        self.0.clone()
    }

    fn is_solo(&self, _: &str, _: Uuid) -> bool {
        false
    }

    fn known(&self) -> Vec<String> {
        Vec::new()
    }

    fn invite(&self, _: AgentKey, _: Json) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(std::future::ready(Err(no_world())))
    }

    fn remove(&self, _: AgentKey) -> BoxFuture<'_, Result<bool, AgentError>> {
        Box::pin(std::future::ready(Err(no_world())))
    }

    fn close(&self, _: AgentKey) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(std::future::ready(Err(no_world())))
    }
}

fn no_world() -> AgentError {
    AgentError::new(codes::OVER, "a replayed turn changes nothing")
}

fn participant(id: Uuid, handle: &str) -> Participant {
    Participant {
        id,
        handle: handle.to_owned(),
        name: handle.to_owned(),
        kind: String::new(),
        methods: Json::Null,
        agent: None,
        metadata: Map::new(),
    }
}

impl ProgramAgent {
    /// Runs this agent's program on the event of a kept turn
    /// ([`HostOptions::keep_turns`](crate::HostOptions::keep_turns)), with the state, time,
    /// randomness and answers of that turn. Nothing is changed and no capability is used. `after`
    /// is the state that the turn left.
    ///
    /// # Errors
    /// `store.unreadable` for a turn of another form, or not of an event; those of reading the
    /// store.
    pub async fn replay<S>(
        &self,
        store: &Arc<S>,
        key: &AgentKey,
        kept: &KeptTurn,
        after: Option<&str>,
    ) -> Result<TurnReplay, AgentError>
    where
        S: AgentStore + ChannelStore + 'static,
    {
        let record = TurnRecord::read(&kept.record).ok_or_else(unreadable)?;
        let start = Start::decode(&record.start).ok_or_else(unreadable)?;
        let before: Map<String, Json> = serde_json::from_str(&kept.state)?;
        let event = event_of(&**store, key, kept, &record).await?;
        let call = match &event.body {
            Body::MethodCall {
                call_id,
                method_name,
                provider_id,
                args,
            } if *provider_id == key.participant() => Some((
                method_name.clone(),
                MethodCall {
                    call_id: *call_id,
                    caller: Arc::clone(&event.sender),
                    args: args.clone(),
                },
            )),
            _ => None,
        };
        let client = client(store, key, kept, (&record, &start), &event).await?;
        let program_event = match &call {
            Some((name, call)) => turn::method_call(name, call),
            None => turn::event(&event),
        };
        let args = ProgramArgs {
            event: Value::from(&program_event),
            state: Value::from(&Json::Object(before.clone())),
            settings: Value::from(&record.settings),
            identity: Value::from(&turn::identity(&client)),
        };
        let settings = record.settings.clone();
        let acts = HostTurn::new(client.clone(), start.now, before, settings, Arc::default());
        let acts = Arc::new(acts);
        let granted = record.granted.clone();
        let mut recording = Recording::begin(self.args(args), start.now, start.seed, granted);
        recording.has_digests = true;
        let calls = record.calls.as_deref().unwrap_or_default();
        if !calls.lines().all(|line| recording.add(line)) {
            return Err(unreadable());
        }
        let (options, sizes) = self.sized_options(&kept.state, &record.settings);
        let turn = Some(Arc::clone(&acts) as Arc<dyn AgentTurn>);
        let run = self
            .engine()
            .replay_turn(self.program().agent(), &recording, options, turn);
        let run = run.await;
        let (fuel, error) = (run.outcome.fuel_used, run.outcome.error.clone());
        let end = Ok(ProgramEnd {
            outcome: run.outcome,
            is_retryable: false,
            is_unknown: false,
        });
        let ended = self.ended(end, &acts, sizes, call.is_some());
        let mut replayed = TurnDone {
            state: serde_json::from_str(&kept.state)?,
            settings: None,
            sent: Vec::new(),
            timers: Vec::new(),
            fuel,
            error: None,
        };
        let result = match ended {
            Ok((changed, result)) => {
                replayed.state = Some(changed.state);
                replayed.settings = changed.laid;
                Ok(Some(result))
            }
            Err(error) => {
                drop(client.0.end());
                Err(error)
            }
        };
        match (call, result) {
            (Some((_, call)), result) => client.0.answer(method_result(call.call_id, result)),
            (None, Err(error)) => {
                replayed.error = Some((error.code().to_owned(), error.to_string()));
            }
            (None, Ok(_)) => {}
        }
        let changes = client.0.end();
        let sent = changes.outbox.into_iter();
        let sent: Vec<_> = sent.map(|new| (new.event.id, new.event.body)).collect();
        for (id, body) in &sent {
            replayed.sent.push((*id, serde_json::to_value(body)?));
        }
        replayed.timers = changes.timers;
        let mut committed = TurnDone {
            state: after.map(serde_json::from_str).transpose()?,
            settings: record.laid.clone(),
            sent: Vec::new(),
            timers: record.timers.clone(),
            fuel: record.fuel(),
            error: record.dead.clone(),
        };
        for id in &record.sent {
            let found = store.find(key.channel(), *id).await?;
            let body = found.map(|event| {
                let again = sent.iter().find(|(there, _)| there == id);
                let again = again.filter(|(_, body)| body.is_same(&event.body));
                serde_json::to_value(again.map_or(&event.body, |(_, body)| body))
            });
            committed
                .sent
                .push((*id, body.transpose()?.unwrap_or_default()));
        }
        Ok(TurnReplay {
            committed,
            replayed,
            error,
            departure: run.departure,
        })
    }
}

/// The event of a turn, as it reached the agent.
async fn event_of(
    store: &dyn ChannelStore,
    key: &AgentKey,
    kept: &KeptTurn,
    record: &TurnRecord,
) -> Result<Event, AgentError> {
    let Trigger::Event(seq) = kept.trigger else {
        return Err(unreadable());
    };
    let found = store.read(key.channel(), seq.saturating_sub(1), 1).await?;
    let mut event = Event::clone(found.first().ok_or_else(unreadable)?);
    if !record.kind.is_null() {
        event.kind = serde_json::from_value(record.kind.clone())?;
    }
    Ok(event)
}

/// The operations of a turn whose effects stay in it.
async fn client<S>(
    store: &Arc<S>,
    key: &AgentKey,
    kept: &KeptTurn,
    (record, start): (&TurnRecord, &Start),
    event: &Event,
) -> Result<TurnClient, AgentError>
where
    S: AgentStore + ChannelStore + 'static,
{
    let found = record.handles.iter();
    let mut roster: Vec<_> = found.map(|(handle, id)| participant(*id, handle)).collect();
    let others = store
        .registrations()
        .await?
        .into_iter()
        .map(|other| other.key);
    let others = others.filter(|other| other.channel() == key.channel());
    roster.extend(others.map(|other| participant(other.participant(), other.handle())));
    let options = HostOptions {
        keep_turns: 0,
        ..HostOptions::default()
    };
    let shared = Shared::new(
        Arc::clone(store) as Arc<dyn AgentStore>,
        Arc::clone(store) as Arc<dyn ChannelStore>,
        None,
        Box::new(|_, _| ()),
        Arc::new(Standing(start.now)),
        Arc::new(SystemRandom),
        None,
        crate::log::Log(None),
        crate::trace::Tracer::default(),
        options,
        Box::new(Found(roster)),
    );
    let identity = Identity {
        key: key.clone(),
        config: Arc::default(),
    };
    let fence = Fence {
        key: key.clone(),
        epoch: store.epoch(key),
    };
    let mut inner = TurnInner::new(
        Arc::new(shared),
        Arc::new(identity),
        Arc::new(Sender::agent(key)),
        fence,
        // Whatever the turn sends stays in it.
        Delivery::ExactlyOnceState,
        (kept.trigger.clone(), 1),
        event.hops.saturating_add(1),
        0,
        record.replays,
        false,
        None,
    );
    inner.trace = crate::trace::parent(event);
    Ok(TurnClient(Arc::new(inner)))
}
