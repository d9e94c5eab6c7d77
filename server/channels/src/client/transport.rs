//! Transport: the channels of a server for a host of agents elsewhere.

use super::Client;
use crate::forward::{Requests, store_error};
use crate::wire::{Configure, Find, Join, OfChannel, Read, methods};
use a99_runtime::{
    AgentError, AgentKey, Event, Participant, Passing, Sender, Seq, Transport, Uuid, codes,
};
use a99_runtime_engine::{
    Appended, BoxFuture, ChannelStore, Epoch, Fence, Millis, NewEvent, StoreCode, StoreError,
};
use futures_util::stream::{BoxStream, unfold};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The mode of agents whose channels are on a server.
pub const WEBSOCKET: &str = "websocket";

type Reply<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// The channels of a server for a host of agents. The client's token needs the scopes `read` and
/// `host` of the agents' channels.
#[derive(Debug)]
pub struct ChannelTransport {
    client: Client,
    /// The agents that joined.
    agents: Mutex<HashMap<Uuid, AgentKey>>,
}

impl ChannelTransport {
    /// A transport over a client.
    #[must_use]
    pub fn new(client: Client) -> ChannelTransport {
        ChannelTransport {
            client,
            agents: Mutex::default(),
        }
    }

    fn agent(&self, sender: &Sender) -> Option<AgentKey> {
        let agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        agents.get(&sender.id).cloned()
    }

    fn asked<T: DeserializeOwned + Send + 'static>(
        &self,
        method: &'static str,
        params: impl Serialize + Send + Sync + 'static,
    ) -> Reply<'_, T> {
        Box::pin(async move {
            let answer = self.client.request(method, &params).await;
            answer.map_err(|error| store_error(&error))
        })
    }

    fn events(
        &self,
        method: &'static str,
        params: impl Serialize + Send + Sync + 'static,
    ) -> Reply<'_, Vec<Arc<Event>>> {
        Box::pin(async move {
            let events = self.client.events(method, &params).await;
            events.map_err(|error| store_error(&error))
        })
    }
}

impl ChannelStore for ChannelTransport {
    fn append(
        &self,
        events: Vec<NewEvent>,
        fence: Option<Fence>,
        _: Millis,
    ) -> Reply<'_, Vec<Appended>> {
        Box::pin(async move {
            let appended = self.client.forward(fence, events, true).await;
            appended.map_err(|error| store_error(&error))
        })
    }

    fn read(&self, channel: &str, after: Seq, most: usize) -> Reply<'_, Vec<Arc<Event>>> {
        let read = Read {
            channel: channel.to_owned(),
            at: Some(after),
            limit: most,
        };
        self.events(methods::READ, read)
    }

    fn read_before(&self, channel: &str, before: Seq, most: usize) -> Reply<'_, Vec<Arc<Event>>> {
        let read = Read {
            channel: channel.to_owned(),
            at: Some(before),
            limit: most,
        };
        self.events(methods::HISTORY, read)
    }

    fn find(&self, channel: &str, id: Uuid) -> Reply<'_, Option<Arc<Event>>> {
        let find = Find {
            channel: channel.to_owned(),
            id,
        };
        Box::pin(async move { Ok(self.events(methods::FIND, find).await?.pop()) })
    }

    fn head(&self, channel: &str) -> Reply<'_, Seq> {
        self.asked(methods::HEAD, of(channel))
    }

    fn channels(&self) -> Reply<'_, Vec<(String, Seq)>> {
        self.asked(methods::CHANNELS, Map::new())
    }

    fn channel_config(&self, channel: &str) -> Reply<'_, Value> {
        self.asked(methods::CONFIG, of(channel))
    }

    fn update_channel_config(&self, channel: &str, changes: Value) -> Reply<'_, Value> {
        let Value::Object(changes) = changes else {
            let message = "changes of a configuration are an object";
            let error = StoreError::new(StoreCode::Input, message);
            return Box::pin(std::future::ready(Err(error)));
        };
        let configure = Configure {
            channel: channel.to_owned(),
            changes,
            announce: false,
        };
        self.asked(methods::CONFIGURE, configure)
    }
}

fn of(channel: &str) -> OfChannel {
    OfChannel {
        channel: channel.to_owned(),
    }
}

impl Transport for ChannelTransport {
    fn mode(&self) -> &'static str {
        WEBSOCKET
    }

    fn watch(
        &self,
        channel: &str,
        after: Seq,
    ) -> BoxFuture<'_, Result<BoxStream<'static, Passing>, AgentError>> {
        let channel = channel.to_owned();
        Box::pin(async move {
            let events = self.client.subscribe(&channel, Some(after), true).await?;
            let roster = events.roster();
            let passing = unfold((events, roster), |(mut events, mut roster)| async move {
                let passing = tokio::select! {
                    Ok(()) = roster.changed() => {
                        Passing::Roster(roster.borrow_and_update().clone())
                    }
                    event = events.next() => Passing::Event(event.ok()?),
                };
                Some((passing, (events, roster)))
            });
            Ok(Box::pin(passing) as BoxStream<'static, Passing>)
        })
    }

    fn pass(&self, event: NewEvent) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(async move {
            let fence = self.agent(&event.event.sender).map(|key| Fence {
                key,
                epoch: Epoch::default(),
            });
            let passed = self.client.forward(fence, vec![event], false).await;
            passed.map(drop)
        })
    }

    fn join(&self, agent: Participant) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(async move {
            let Some(key) = agent.agent else {
                let message = "a participant of a host is an agent";
                return Err(AgentError::new(codes::BAD_VALUE, message));
            };
            let join = Join {
                channel: key.channel().to_owned(),
                handle: agent.handle,
                name: Some(agent.name),
                kind: Some(agent.kind),
                methods: agent.methods,
                metadata: agent.metadata,
                agent: Some(key.clone()),
            };
            let joined = self.client.join(join).await?;
            let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
            agents.insert(joined.participant, key);
            Ok(())
        })
    }

    fn leave(&self, agent: &AgentKey) -> BoxFuture<'_, Result<(), AgentError>> {
        let (channel, id) = (agent.channel().to_owned(), agent.participant());
        Box::pin(async move {
            self.client.leave(&channel, id).await?;
            let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
            agents.remove(&id);
            Ok(())
        })
    }
}
