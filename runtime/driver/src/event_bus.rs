//! Event bus: an agent's operations on its channel, for any target.

use crate::bus::{CallOptions, MethodCallHandle, Participant, is_handle};
use crate::changes::Changes;
use crate::connection::{ConnectionStatus, Reports};
use crate::error::AgentError;
use crate::roster::{RosterChange, ToolRoleConflict};
use crate::turn::{SendOptions, Sent, TurnClient, UpdateOptions};
use a99_runtime_engine::{AgentKey, Attachment, Body, BoxFuture, Event, Seq, Uuid};
use serde_json::{Map, Value, json};
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

type Reply<'a, T> = BoxFuture<'a, Result<T, AgentError>>;

/// A part of a method's answer, sent while the method runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MethodResult {
    /// The part's content.
    pub content: Option<Value>,
    /// The content type.
    pub content_type: Option<String>,
    /// Whether this is the last part.
    pub complete: bool,
    /// Whether the content is an error.
    pub is_error: bool,
    /// Progress of the method, 0 to 100.
    pub progress: Option<f64>,
    /// Attached bytes.
    pub attachments: Vec<Attachment>,
}

/// An agent's operations on its channel. [`TurnClient`] implements it for this process; another
/// target provides another implementation.
///
/// Every method can also fail with the errors of the turn (`turn.over`, `step.changed_body`)
/// and of the store or connection.
pub trait EventBus: Send + Sync {
    /// The agent's handle, without `@`.
    fn handle(&self) -> &str;

    /// The agent's identity as a participant.
    fn client_id(&self) -> Uuid;

    /// The channel's name.
    fn channel(&self) -> &str;

    /// Sends a message.
    fn send(&self, content: String, options: SendOptions) -> Reply<'_, Sent>;

    /// Appends text to a message. Gives the sequence number of the update, as
    /// [`Sent::pubsub_id`].
    fn update(&self, id: Uuid, content: String, options: UpdateOptions) -> Reply<'_, Option<Seq>>;

    /// Marks a message as complete.
    fn complete(&self, id: Uuid) -> Reply<'_, Option<Seq>>;

    /// Marks a message as failed.
    fn error(&self, id: Uuid, error: String, code: Option<String>) -> Reply<'_, Option<Seq>>;

    /// Publishes a custom event; it is ephemeral unless `persist` is set.
    fn publish(&self, name: String, payload: Value, persist: bool) -> Reply<'_, ()>;

    /// Calls a method of the participant of a handle or an identity. Errors:
    /// `provider-not-found`, `method-not-found`, `call.would_deadlock`.
    fn call_method(
        &self,
        handle: &str,
        method: &str,
        args: Value,
        options: CallOptions,
    ) -> Reply<'_, MethodCallHandle>;

    /// Cancels a call: a method that has not ended is aborted, changes nothing, and answers with
    /// `cancelled`.
    fn cancel_call(&self, call: MethodCallHandle) -> Reply<'_, ()>;

    /// Sends a part of an answer immediately. The method's return value is the last part.
    fn send_method_result(&self, call_id: Uuid, result: MethodResult) -> Reply<'_, ()>;

    /// The participants of the channel.
    fn roster(&self) -> Vec<Participant>;

    /// The roster if anybody is there, then the roster after each change; a slow reader gets the
    /// newest. Changes of others show while the turn runs; its own with its commit.
    fn on_roster(&self) -> Reply<'_, Changes<RosterChange>>;

    /// Replaces the metadata that the agent publishes, at first
    /// [`ConnectOptions::extra_metadata`](crate::ConnectOptions::extra_metadata), until it is
    /// removed from the channel. The roster has it with the commit, in every delivery mode, and a
    /// presence event announces it.
    fn update_metadata(&self, metadata: Map<String, Value>) -> Reply<'_, ()>;

    /// The effective settings with the changes of this turn.
    fn get_settings(&self) -> Reply<'_, Value>;

    /// Merges members into the users' settings at every depth, with the commit. Errors:
    /// `turn.bad_value`.
    fn update_settings(&self, partial: Value) -> Reply<'_, ()>;

    /// Whether settings are kept between turns: always, because the store has them.
    fn session_enabled(&self) -> bool {
        true
    }

    /// The key of the agent's session: `CHANNEL:HANDLE`.
    fn session_key(&self) -> Option<String> {
        let key = || format!("{}:{}", self.channel(), self.handle());
        self.session_enabled().then(key)
    }

    /// Resolves handles to participants. Errors: `provider-not-found` with the unknown handles.
    fn resolve_handles(&self, handles: &[&str]) -> Result<Vec<Uuid>, AgentError>;

    /// Finds a participant by handle; a leading `@` and letter case are ignored.
    fn participant_by_handle(&self, handle: &str) -> Option<Participant> {
        let mut roster = self.roster().into_iter();
        roster.find(|who| is_handle(&who.handle, handle))
    }

    /// All methods that can be called on the channel, each with `providerId` and
    /// `providerName`.
    fn discover_method_defs(&self) -> Vec<Value> {
        let me = self.client_id();
        let others = self.roster().into_iter().filter(|who| who.id != me);
        others.flat_map(|who| methods_of(&who)).collect()
    }

    /// The methods of one participant.
    fn discover_method_defs_from(&self, id: Uuid) -> Vec<Value> {
        let roster = self.roster();
        let found = roster.iter().find(|who| who.id == id);
        found.map(methods_of).unwrap_or_default()
    }

    /// Asks which participants provide a group of tools.
    fn request_tool_role(&self, group: String) -> Reply<'_, ()>;

    /// Answers a request for a group of tools.
    fn respond_tool_role(
        &self,
        group: String,
        accepted: bool,
        handoff_to: Option<Uuid>,
    ) -> Reply<'_, ()>;

    /// Announces that a group of tools moves to another provider.
    fn announce_tool_role_handoff(&self, group: String, from: Uuid, to: Uuid) -> Reply<'_, ()>;

    /// The conflicts of tool roles that there are, then each new or changed one.
    fn on_tool_role_conflict(&self) -> Reply<'_, Changes<ToolRoleConflict>>;

    /// Sets the channel's title (`title` of its configuration) immediately. The channel
    /// receives an event of the type [`CHANNEL_CONFIG`] whose payload is the change.
    fn set_channel_title(&self, title: String) -> Reply<'_, ()>;

    /// The titles that the channel gets from now on.
    fn on_title_change(&self) -> Reply<'_, Changes<String>>;

    /// The configuration of the channel.
    fn channel_config(&self) -> Reply<'_, Value>;

    /// The identity of what the channel is about: `contextId` of its configuration.
    fn context_id(&self) -> Reply<'_, Option<String>> {
        Box::pin(async move {
            let config = self.channel_config().await?;
            Ok(config["contextId"].as_str().map(str::to_owned))
        })
    }

    /// The agents of the channel, awake or asleep.
    fn channel_agents(&self) -> Vec<AgentKey> {
        self.roster()
            .into_iter()
            .filter_map(|who| who.agent)
            .collect()
    }

    /// Names of the agents that can be invited, sorted.
    fn list_agents(&self) -> Vec<String>;

    /// Invites an agent to the channel immediately, or changes its configuration. Errors:
    /// `agent.unknown`, `agent.bad_key`, `handle-conflict`.
    fn invite_agent(&self, name: &str, handle: &str, config: Value) -> Reply<'_, AgentKey>;

    /// Removes an agent from the channel immediately; its turns end and its state remains.
    /// Gives whether it was present.
    fn remove_agent(&self, name: &str, handle: &str) -> Reply<'_, bool>;

    /// The newest events of the channel, or the newest before a sequence number, oldest first,
    /// at most [`HISTORY_EVENTS`]. [`conversation`](crate::conversation) turns them into a
    /// dialogue.
    fn history(&self, before: Option<Seq>, most: usize) -> Reply<'_, Vec<Arc<Event>>>;

    /// A page of the events before a sequence number, oldest first: `limit` of them, at least
    /// one and at most 500.
    fn get_messages_before(&self, before: Seq, limit: usize) -> Reply<'_, HistoryPage>;

    /// How many events the channel's log has.
    fn total_message_count(&self) -> Reply<'_, u64>;

    /// What others said after the event of this turn and the agent has not handled yet, oldest
    /// first, of the next [`HISTORY_EVENTS`] events. The agent still gets each of them.
    fn missed_messages(&self) -> Reply<'_, Vec<Arc<Event>>>;

    /// The [missed messages](EventBus::missed_messages) of a type: that of its JSON, such as
    /// `method-call`, or the name of a custom event.
    fn get_missed_by_type<'a>(&'a self, name: &'a str) -> Reply<'a, Vec<Arc<Event>>> {
        Box::pin(async move {
            let mut missed = self.missed_messages().await?;
            missed.retain(|event| match &event.body {
                Body::Custom { name: custom, .. } => custom == name || name == "custom",
                body => body.type_name() == name,
            });
            Ok(missed)
        })
    }

    /// Whether the channel can be reached: in the embedded target until the turn is over or
    /// [`EventBus::close`].
    fn connected(&self) -> bool;

    /// Whether the connection is lost and its transport tries again; never in the embedded
    /// target.
    fn reconnecting(&self) -> bool;

    /// Ends the use of the bus. Later operations of the turn fail with `connection-error`;
    /// earlier ones commit. The agent sleeps when its running turns have ended, and wakes for
    /// the next event.
    fn close(&self) -> Reply<'_, ()>;

    /// Reports each loss of the connection.
    fn on_disconnect(&self) -> Reports<()>;

    /// Reports each return of a lost connection.
    fn on_reconnect(&self) -> Reports<()>;

    /// Reports faults of the connection.
    fn on_error(&self) -> Reports<AgentError>;
}

/// A page of a channel's history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistoryPage {
    /// The events, oldest first.
    pub events: Vec<Arc<Event>>,
    /// Whether there are earlier ones.
    pub has_more: bool,
}

/// The type of events that announce a change of a channel's configuration.
pub const CHANNEL_CONFIG: &str = "channel-config";

/// Maximum events that one [`EventBus::history`] gives.
pub const HISTORY_EVENTS: usize = 1_000;

fn methods_of(who: &Participant) -> Vec<Value> {
    let methods = who.methods.as_array().into_iter().flatten();
    let told = methods.map(|method| {
        let mut told = method.clone();
        told["providerId"] = json!(who.id);
        told["providerName"] = json!(who.name);
        told
    });
    told.collect()
}

impl TurnClient {
    /// The key of an agent on this channel.
    fn beside(&self, name: &str, handle: &str) -> Result<AgentKey, AgentError> {
        let handle = handle.strip_prefix('@').unwrap_or(handle);
        Ok(AgentKey::new(name, EventBus::channel(self), handle)?)
    }
}

impl TurnClient {
    fn tool_role(&self, body: Body) -> Reply<'_, ()> {
        Box::pin(async move { self.0.with_commit("tool-role", body).await.map(drop) })
    }
}

impl EventBus for TurnClient {
    fn handle(&self) -> &str {
        self.identity().key.handle()
    }

    fn client_id(&self) -> Uuid {
        self.0.sender.id
    }

    fn channel(&self) -> &str {
        self.identity().key.channel()
    }

    fn send(&self, content: String, options: SendOptions) -> Reply<'_, Sent> {
        Box::pin(self.send_with(content, options))
    }

    fn update(&self, id: Uuid, content: String, options: UpdateOptions) -> Reply<'_, Option<Seq>> {
        Box::pin(self.update_with(id, content, options))
    }

    fn complete(&self, id: Uuid) -> Reply<'_, Option<Seq>> {
        Box::pin(TurnClient::complete(self, id))
    }

    fn error(&self, id: Uuid, error: String, code: Option<String>) -> Reply<'_, Option<Seq>> {
        Box::pin(TurnClient::error(self, id, error, code))
    }

    fn publish(&self, name: String, payload: Value, persist: bool) -> Reply<'_, ()> {
        Box::pin(TurnClient::publish(self, name, payload, persist))
    }

    fn call_method(
        &self,
        handle: &str,
        method: &str,
        args: Value,
        options: CallOptions,
    ) -> Reply<'_, MethodCallHandle> {
        let (handle, method) = (handle.to_owned(), method.to_owned());
        Box::pin(
            async move { TurnClient::call_method(self, &handle, &method, args, options).await },
        )
    }

    fn cancel_call(&self, call: MethodCallHandle) -> Reply<'_, ()> {
        Box::pin(TurnClient::cancel_call(self, call))
    }

    fn send_method_result(&self, call_id: Uuid, result: MethodResult) -> Reply<'_, ()> {
        Box::pin(async move {
            let body = Body::MethodResult {
                call_id,
                content: result.content,
                content_type: result.content_type,
                complete: result.complete,
                is_error: result.is_error,
                progress: result.progress,
            };
            let id = self.0.operation("result", None)?;
            let event = self.0.event(id, body, result.attachments);
            self.0.immediate(event).await.map(drop)
        })
    }

    fn roster(&self) -> Vec<Participant> {
        TurnClient::roster(self)
    }

    fn resolve_handles(&self, handles: &[&str]) -> Result<Vec<Uuid>, AgentError> {
        TurnClient::resolve_handles(self, handles)
    }

    fn on_roster(&self) -> Reply<'_, Changes<RosterChange>> {
        Box::pin(self.roster_changes())
    }

    fn update_metadata(&self, metadata: Map<String, Value>) -> Reply<'_, ()> {
        Box::pin(ready(self.describe(metadata)))
    }

    fn get_settings(&self) -> Reply<'_, Value> {
        Box::pin(ready(self.settings_now()))
    }

    fn update_settings(&self, partial: Value) -> Reply<'_, ()> {
        Box::pin(ready(self.change_settings(&partial)))
    }

    fn on_tool_role_conflict(&self) -> Reply<'_, Changes<ToolRoleConflict>> {
        Box::pin(self.conflicts())
    }

    fn on_title_change(&self) -> Reply<'_, Changes<String>> {
        Box::pin(self.titles())
    }

    fn get_messages_before(&self, before: Seq, limit: usize) -> Reply<'_, HistoryPage> {
        Box::pin(self.page_before(before, limit))
    }

    fn total_message_count(&self) -> Reply<'_, u64> {
        Box::pin(self.head())
    }

    fn missed_messages(&self) -> Reply<'_, Vec<Arc<Event>>> {
        Box::pin(self.missed())
    }

    fn connected(&self) -> bool {
        self.status() == ConnectionStatus::Connected
    }

    fn reconnecting(&self) -> bool {
        self.status() == ConnectionStatus::Reconnecting
    }

    fn close(&self) -> Reply<'_, ()> {
        Box::pin(self.close_bus())
    }

    fn on_disconnect(&self) -> Reports<()> {
        self.0.shared.connection.lost()
    }

    fn on_reconnect(&self) -> Reports<()> {
        self.0.shared.connection.back()
    }

    fn on_error(&self) -> Reports<AgentError> {
        self.0.shared.connection.faults()
    }

    fn request_tool_role(&self, group: String) -> Reply<'_, ()> {
        self.tool_role(Body::ToolRoleRequest {
            group,
            requester_id: self.0.sender.id,
            requester_type: self.0.sender.kind.clone().unwrap_or_default(),
        })
    }

    fn respond_tool_role(
        &self,
        group: String,
        accepted: bool,
        handoff_to: Option<Uuid>,
    ) -> Reply<'_, ()> {
        self.tool_role(Body::ToolRoleResponse {
            group,
            accepted,
            handoff_to,
        })
    }

    fn announce_tool_role_handoff(&self, group: String, from: Uuid, to: Uuid) -> Reply<'_, ()> {
        self.tool_role(Body::ToolRoleHandoff { group, from, to })
    }

    fn set_channel_title(&self, title: String) -> Reply<'_, ()> {
        Box::pin(async move {
            let store = self.0.shared.hub().store();
            let changes = json!({"title": title});
            let body = Body::Custom {
                name: CHANNEL_CONFIG.to_owned(),
                payload: changes.clone(),
            };
            // Write first: a receiver of the event must find the new configuration.
            store.update_channel_config(self.channel(), changes).await?;
            self.0.at_once("channel-config", body).await.map(drop)
        })
    }

    fn list_agents(&self) -> Vec<String> {
        self.0.shared.presence.known()
    }

    fn invite_agent(&self, name: &str, handle: &str, config: Value) -> Reply<'_, AgentKey> {
        let key = self.beside(name, handle);
        Box::pin(async move {
            self.0.settled().await?;
            let key = key?;
            self.0.shared.presence.invite(key.clone(), config).await?;
            Ok(key)
        })
    }

    fn remove_agent(&self, name: &str, handle: &str) -> Reply<'_, bool> {
        let key = self.beside(name, handle);
        Box::pin(async move {
            self.0.settled().await?;
            self.0.shared.presence.remove(key?).await
        })
    }

    fn history(&self, before: Option<Seq>, most: usize) -> Reply<'_, Vec<Arc<Event>>> {
        Box::pin(async move {
            self.0.settled().await?;
            let store = self.0.shared.hub().store();
            // Stores count in signed 64-bit integers.
            let before = before.unwrap_or(Seq::MAX >> 1);
            let most = most.min(HISTORY_EVENTS);
            let mut events = store.read_before(self.channel(), before, most).await?;
            events.reverse();
            Ok(events)
        })
    }

    fn channel_config(&self) -> Reply<'_, Value> {
        Box::pin(async move {
            let store = self.0.shared.hub().store();
            Ok(store.channel_config(self.channel()).await?)
        })
    }
}

/// The provider that wins a group of tools, chosen from `(id, priority, first seen)`: the
/// lowest priority, then the earliest, then the smallest identity.
#[must_use]
pub fn tool_role_winner(providers: &[(Uuid, Option<f64>, Duration)]) -> Option<Uuid> {
    let rank = |one: &(Uuid, Option<f64>, Duration)| one.1.unwrap_or(f64::INFINITY);
    let best = providers.iter().min_by(|a, b| {
        let by_priority = rank(a).total_cmp(&rank(b));
        by_priority.then(a.2.cmp(&b.2)).then(a.0.cmp(&b.0))
    });
    best.map(|one| one.0)
}
