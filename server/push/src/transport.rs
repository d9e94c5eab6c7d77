//! Transport: the channels of a server over HTTP, for hosts of agents that keep no connection.
//! Events arrive by requests of a pusher; what agents send goes out by requests of ours.

pub use crate::api::ServerOptions;
use crate::api::{Api, encoded};
use crate::codes::UNKNOWN_AGENT;
use crate::fed::{Fed, Reader, is_presence, locked};
use a99_channels::forward::{Requests, store_error};
use a99_channels::wire::{Configure, Find, methods};
use a99_runtime::{AgentError, AgentKey, Event, Participant, Passing, Seq, Transport, Uuid, codes};
use a99_runtime_engine::{
    Appended, BoxFuture, ChannelStore, Epoch, Fence, Millis, NewEvent, StoreCode, StoreError,
};
use futures_util::stream::{BoxStream, unfold};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The mode of agents whose events arrive over HTTP.
pub const HTTP: &str = "http";

/// The longest pause between looks at a channel whose events are not pushed meanwhile.
const MAX_LOOK: Duration = Duration::from_secs(10);

type Reply<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// The channels of a server for a host whose events are pushed.
#[derive(Clone)]
pub struct HttpTransport(Arc<Inner>);

struct Inner {
    api: Api,
    look: Duration,
    fed: Fed,
    /// The agents that joined.
    agents: Mutex<HashMap<Uuid, Participant>>,
    /// Those that may join.
    admitted: Mutex<Admitted>,
}

/// Agents that may join: those whose events a pusher sends.
enum Admitted {
    /// The agents of the store, while a host starts.
    All,
    /// An agent that its pusher registers now.
    Only(Vec<AgentKey>),
}

impl std::fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpTransport").finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct History {
    events: Vec<Arc<Event>>,
}

impl HttpTransport {
    /// A transport. It sends nothing yet.
    ///
    /// # Errors
    /// `channels.bad_server` for an address or a token that cannot be used: an address beyond
    /// the loopback needs `https`.
    pub fn new(options: ServerOptions) -> Result<HttpTransport, AgentError> {
        let look = options.look;
        Ok(HttpTransport(Arc::new(Inner {
            api: Api::new(options)?,
            look,
            fed: Fed::default(),
            agents: Mutex::default(),
            admitted: Mutex::new(Admitted::All),
        })))
    }

    /// Gives pushed events of a channel to the host.
    pub fn feed(&self, channel: &str, events: &[Arc<Event>], ephemeral: &[Arc<Event>]) {
        self.0.fed.feed(channel, events, ephemeral);
    }

    /// Forgets pushed events and the agents that joined, before another host uses this.
    pub(crate) fn clear(&self) {
        self.0.fed.clear();
        locked(&self.0.agents).clear();
        *locked(&self.0.admitted) = Admitted::All;
    }

    /// Lets no more agents join than those that [`HttpTransport::admit`] names.
    pub(crate) fn started(&self) {
        *locked(&self.0.admitted) = Admitted::Only(Vec::new());
    }

    /// Lets an agent join until the guard is dropped.
    pub(crate) fn admit(&self, agent: &AgentKey) -> impl Drop + use<> {
        if let Admitted::Only(keys) = &mut *locked(&self.0.admitted) {
            keys.push(agent.clone());
        }
        Admission(self.clone(), agent.clone())
    }

    fn is_admitted(&self, agent: &AgentKey) -> bool {
        locked(&self.0.agents).contains_key(&agent.participant())
            || match &*locked(&self.0.admitted) {
                Admitted::All => true,
                Admitted::Only(keys) => keys.contains(agent),
            }
    }

    /// What an agent of the host is as a participant.
    pub(crate) fn participant(&self, agent: &AgentKey) -> Option<Participant> {
        locked(&self.0.agents).get(&agent.participant()).cloned()
    }
}

/// Lets an agent join until it is dropped.
struct Admission(HttpTransport, AgentKey);

impl Drop for Admission {
    fn drop(&mut self) {
        if let Admitted::Only(keys) = &mut *locked(&self.0.0.admitted)
            && let Some(at) = keys.iter().position(|key| *key == self.1)
        {
            keys.swap_remove(at);
        }
    }
}

impl Inner {
    async fn history(
        &self,
        channel: &str,
        place: &str,
        at: Seq,
        most: usize,
    ) -> Result<Vec<Arc<Event>>, AgentError> {
        let path = format!(
            "/v1/history?channel={}&{place}={at}&limit={}",
            encoded(channel),
            most.clamp(1, 500)
        );
        self.api.get(&path).await.map(|found: History| found.events)
    }

    /// Events after a sequence number: pushed ones, or those that the server has.
    async fn read(
        &self,
        channel: &str,
        after: Seq,
        most: usize,
    ) -> Result<Vec<Arc<Event>>, AgentError> {
        let pushed = self.fed.after(channel, after, most);
        match pushed.is_empty() {
            false => Ok(pushed),
            true => {
                let events = self.history(channel, "after", after, most).await?;
                if let Some(last) = events.last().and_then(|event| event.seq) {
                    self.fed.reach(channel, last);
                }
                Ok(events)
            }
        }
    }

    async fn roster(&self, channel: &str) -> Result<Vec<Participant>, AgentError> {
        let path = format!("/v1/roster?channel={}", encoded(channel));
        self.api.get(&path).await
    }
}

impl Requests for Inner {
    async fn ask<T: DeserializeOwned + Send>(
        &self,
        method: &'static str,
        params: &(impl Serialize + Sync),
        bytes: &[u8],
    ) -> Result<T, AgentError> {
        self.api.post(&format!("/v1/{method}"), params, bytes).await
    }
}

impl ChannelStore for HttpTransport {
    fn append(
        &self,
        events: Vec<NewEvent>,
        fence: Option<Fence>,
        _: Millis,
    ) -> Reply<'_, Vec<Appended>> {
        Box::pin(async move {
            let appended = self.0.forward(fence, events, true).await;
            appended.map_err(|error| store_error(&error))
        })
    }

    fn read(&self, channel: &str, after: Seq, most: usize) -> Reply<'_, Vec<Arc<Event>>> {
        let channel = channel.to_owned();
        Box::pin(async move {
            let read = self.0.read(&channel, after, most).await;
            read.map_err(|error| store_error(&error))
        })
    }

    fn read_before(&self, channel: &str, before: Seq, most: usize) -> Reply<'_, Vec<Arc<Event>>> {
        let channel = channel.to_owned();
        Box::pin(async move {
            let read = self.0.history(&channel, "before", before, most).await;
            let mut events = read.map_err(|error| store_error(&error))?;
            events.reverse();
            Ok(events)
        })
    }

    fn find(&self, channel: &str, id: Uuid) -> Reply<'_, Option<Arc<Event>>> {
        let channel = channel.to_owned();
        Box::pin(async move {
            let found = self.0.ask(methods::FIND, &Find { channel, id }, &[]).await;
            found.map_err(|error| store_error(&error))
        })
    }

    /// What was pushed is the head: the rest of the log comes with later requests.
    fn head(&self, channel: &str) -> Reply<'_, Seq> {
        let channel = channel.to_owned();
        Box::pin(async move {
            if let Some(last) = self.0.fed.last(&channel) {
                return Ok(last);
            }
            let path = format!("/v1/head?channel={}", encoded(&channel));
            let head: Seq = self
                .0
                .api
                .get(&path)
                .await
                .map_err(|error| store_error(&error))?;
            self.0.fed.know(&channel, head);
            Ok(head)
        })
    }

    fn channels(&self) -> Reply<'_, Vec<(String, Seq)>> {
        Box::pin(async move {
            let all = self.0.api.get("/v1/channels").await;
            all.map_err(|error| store_error(&error))
        })
    }

    fn channel_config(&self, channel: &str) -> Reply<'_, Value> {
        let path = format!("/v1/config?channel={}", encoded(channel));
        Box::pin(async move {
            self.0
                .api
                .get(&path)
                .await
                .map_err(|error| store_error(&error))
        })
    }

    fn update_channel_config(&self, channel: &str, changes: Value) -> Reply<'_, Value> {
        let channel = channel.to_owned();
        Box::pin(async move {
            let Value::Object(changes) = changes else {
                let message = "changes of a configuration are an object";
                return Err(StoreError::new(StoreCode::Input, message));
            };
            let configure = Configure {
                channel,
                changes,
                announce: false,
            };
            let changed = self.0.ask(methods::CONFIGURE, &configure, &[]).await;
            changed.map_err(|error| store_error(&error))
        })
    }
}

/// A stream that watches a channel.
struct Watching {
    inner: Arc<Inner>,
    channel: String,
    cursor: Seq,
    reader: Reader,
    ready: VecDeque<Passing>,
    look: Duration,
}

impl Watching {
    /// The next report; `None` when the pushed events were forgotten.
    async fn next(&mut self) -> Option<Passing> {
        loop {
            if let Some(passing) = self.ready.pop_front() {
                if is_presence(&passing)
                    && let Ok(roster) = self.inner.roster(&self.channel).await
                {
                    self.ready.push_front(Passing::Roster(roster));
                }
                return Some(passing);
            }
            if *self.reader.last.borrow_and_update() > self.cursor {
                // A hole is read from the server.
                self.read_on().await;
                if self.ready.is_empty() {
                    tokio::time::sleep(self.look).await;
                }
                continue;
            }
            tokio::select! {
                changed = self.reader.last.changed() => changed.ok()?,
                event = self.reader.passing.recv() => match event {
                    Ok(event) => return Some(Passing::Event(event)),
                    // A slow agent may miss ephemeral events.
                    Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => {}
                    Err(tokio::sync::broadcast::error::RecvError::Closed) => return None,
                },
                () = tokio::time::sleep(self.look) => {
                    self.look = (self.look * 2).min(MAX_LOOK);
                    self.read_on().await;
                }
            }
        }
    }

    async fn read_on(&mut self) {
        // Errors are temporary here: the next look tries again.
        let read = self.inner.read(&self.channel, self.cursor, 500).await;
        for event in read.unwrap_or_default() {
            self.cursor = event.seq.unwrap_or(self.cursor);
            self.ready.push_back(Passing::Event(event));
        }
        if !self.ready.is_empty() {
            self.look = self.inner.look;
        }
    }
}

impl Transport for HttpTransport {
    fn mode(&self) -> &'static str {
        HTTP
    }

    fn watch(
        &self,
        channel: &str,
        after: Seq,
    ) -> BoxFuture<'_, Result<BoxStream<'static, Passing>, AgentError>> {
        let channel = channel.to_owned();
        Box::pin(async move {
            let reader = self.0.fed.reader(&channel);
            // Without the roster an agent is still on its channel.
            let roster = self.0.roster(&channel).await.ok().map(Passing::Roster);
            let watching = Watching {
                inner: Arc::clone(&self.0),
                channel,
                cursor: after,
                reader,
                ready: roster.into_iter().collect(),
                look: self.0.look,
            };
            let passing = unfold(watching, |mut watching| async move {
                let passing = watching.next().await?;
                Some((passing, watching))
            });
            Ok(Box::pin(passing) as BoxStream<'static, Passing>)
        })
    }

    fn pass(&self, event: NewEvent) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(async move {
            let sender = event.event.sender.id;
            let agent = locked(&self.0.agents).get(&sender).cloned();
            let fence = agent.and_then(|who| who.agent).map(|key| Fence {
                key,
                epoch: Epoch::default(),
            });
            self.0.forward(fence, vec![event], false).await.map(drop)
        })
    }

    /// The pusher makes the agent a participant, with what the answer of `init` says of it.
    fn join(&self, agent: Participant) -> BoxFuture<'_, Result<(), AgentError>> {
        let joined = match &agent.agent {
            Some(key) if !self.is_admitted(key) => {
                let message = format!("{key} would get no events: its pusher has to register it");
                Err(AgentError::new(UNKNOWN_AGENT, message).fatal())
            }
            Some(_) => {
                locked(&self.0.agents).insert(agent.id, agent);
                Ok(())
            }
            None => {
                let message = "a participant of a host is an agent";
                Err(AgentError::new(codes::BAD_VALUE, message))
            }
        };
        Box::pin(std::future::ready(joined))
    }

    fn leave(&self, agent: &AgentKey) -> BoxFuture<'_, Result<(), AgentError>> {
        locked(&self.0.agents).remove(&agent.participant());
        Box::pin(std::future::ready(Ok(())))
    }
}
