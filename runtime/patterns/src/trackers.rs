//! Trackers: what an agent shows while it works, as guards that complete when they are dropped.

use crate::codes;
use a99_runtime::{AgentError, SendOptions, TurnClient, Uuid};
use futures_util::FutureExt;
use serde::Serialize;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;

/// How a message is completed.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Kind {
    Ephemeral,
    Persisted,
}

/// Messages that are not complete, in the order in which they began.
type Open = Arc<Mutex<Vec<(Uuid, Kind)>>>;

fn locked(open: &Open) -> MutexGuard<'_, Vec<(Uuid, Kind)>> {
    // A panicking holder leaves the list valid.
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One message of a tracker.
struct Tracked {
    client: TurnClient,
    open: Open,
    id: Uuid,
    kind: Kind,
}

impl fmt::Debug for Tracked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tracked").field(&self.id).finish()
    }
}

impl Tracked {
    /// Takes the message out of the open ones; false if it is complete.
    fn close(&self) -> bool {
        let mut open = locked(&self.open);
        let at = open.iter().position(|(id, _)| *id == self.id);
        at.map(|at| open.remove(at)).is_some()
    }

    fn check(&self) -> Result<(), AgentError> {
        match locked(&self.open).iter().any(|(id, _)| *id == self.id) {
            true => Ok(()),
            false => Err(AgentError::new(codes::ENDED, "the message is complete")),
        }
    }

    async fn complete(&self) -> Result<(), AgentError> {
        match self.close() {
            true => complete(&self.client, self.id, self.kind).await,
            false => Ok(()),
        }
    }
}

async fn complete(client: &TurnClient, id: Uuid, kind: Kind) -> Result<(), AgentError> {
    match kind {
        Kind::Ephemeral => client.complete_ephemeral(id).await,
        Kind::Persisted => client.complete(id).await.map(drop),
    }
}

impl Drop for Tracked {
    /// Completes the message without waiting. A persisted message is completed by the turn's
    /// commit. If the turn fails instead, its attempt shows nothing, or the next one completes
    /// the same message.
    fn drop(&mut self) {
        if !self.close() {
            return;
        }
        if self.kind == Kind::Persisted {
            // After its turn there is nothing to complete it with.
            drop(self.client.complete_with_commit(self.id));
            return;
        }
        let (client, id) = (self.client.clone(), self.id);
        let mut sent = Box::pin(async move { client.complete_ephemeral(id).await });
        // It waits only for a group commit or another process.
        if (&mut sent).now_or_never().is_none()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(sent);
        }
    }
}

/// Creates the trackers of a turn.
pub struct TrackerManager {
    client: TurnClient,
    reply_to: Option<Uuid>,
    open: Open,
}

impl fmt::Debug for TrackerManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("TrackerManager");
        out.field("reply_to", &self.reply_to)
            .field("open", &locked(&self.open).len());
        out.finish_non_exhaustive()
    }
}

impl TrackerManager {
    /// The trackers of a turn.
    #[must_use]
    pub fn new(client: &TurnClient) -> TrackerManager {
        TrackerManager {
            client: client.clone(),
            reply_to: None,
            open: Open::default(),
        }
    }

    /// Sets the message that messages of trackers begun from now on answer.
    pub fn set_reply_to(&mut self, id: Option<Uuid>) {
        self.reply_to = id;
    }

    fn options(&self, content_type: &str) -> SendOptions {
        SendOptions {
            reply_to: self.reply_to,
            content_type: Some(content_type.to_owned()),
            ..SendOptions::default()
        }
    }

    fn track(&self, id: Uuid, kind: Kind) -> Tracked {
        locked(&self.open).push((id, kind));
        Tracked {
            client: self.client.clone(),
            open: Arc::clone(&self.open),
            id,
            kind,
        }
    }

    /// Shows present participants that the agent is writing.
    ///
    /// # Errors
    /// `turn.over`
    pub async fn typing(&self) -> Result<Typing, AgentError> {
        let options = self.options("typing");
        let id = self.client.send_ephemeral("", options).await?;
        Ok(Typing(self.track(id, Kind::Ephemeral)))
    }

    /// Begins a message of the content type `thinking`.
    ///
    /// # Errors
    /// Those of [`TurnClient::send_with`].
    pub async fn thinking(&self) -> Result<Thinking, AgentError> {
        let options = self.options("thinking");
        let sent = self.client.send_with("", options).await?;
        Ok(Thinking(self.track(sent.message_id, Kind::Persisted)))
    }

    /// Begins a message of the content type `action`: what the agent does, as JSON.
    ///
    /// # Errors
    /// Those of [`TurnClient::send_with`].
    pub async fn action(
        &self,
        kind: impl Into<String>,
        description: impl Into<String>,
        tool_use_id: Option<String>,
    ) -> Result<Action, AgentError> {
        let shown = Shown {
            kind: kind.into(),
            description: description.into(),
            tool_use_id,
            status: "pending".to_owned(),
        };
        let options = self.options("action");
        let content = serde_json::to_string(&shown)?;
        let sent = self.client.send_with(content, options.clone()).await?;
        Ok(Action {
            tracked: self.track(sent.message_id, Kind::Persisted),
            shown,
            options,
        })
    }

    /// Completes all messages that are still open, and gives their number. Their guards then do
    /// nothing.
    ///
    /// # Errors
    /// The first error; the other messages are completed all the same.
    pub async fn cleanup_all(&self) -> Result<usize, AgentError> {
        let open = std::mem::take(&mut *locked(&self.open));
        let mut result = Ok(open.len());
        for (id, kind) in open {
            if let Err(error) = complete(&self.client, id, kind).await
                && result.is_ok()
            {
                result = Err(error);
            }
        }
        result
    }
}

/// A typing indicator. Dropping it stops it.
#[derive(Debug)]
#[must_use = "an indicator that is dropped has stopped"]
pub struct Typing(Tracked);

impl Typing {
    /// Stops the indicator.
    ///
    /// # Errors
    /// `turn.over`
    pub async fn stop(self) -> Result<(), AgentError> {
        self.0.complete().await
    }
}

/// A message with reasoning, which others see with the turn's commit. Dropping it completes it.
#[derive(Debug)]
#[must_use = "a message that is dropped is complete"]
pub struct Thinking(Tracked);

impl Thinking {
    /// The message's identity.
    #[must_use]
    pub fn message_id(&self) -> Uuid {
        self.0.id
    }

    /// Appends text.
    ///
    /// # Errors
    /// `turn.message_ended` after [`TrackerManager::cleanup_all`]; those of [`TurnClient::update`].
    pub async fn append(&self, text: impl Into<String>) -> Result<(), AgentError> {
        self.0.check()?;
        let updated = self.0.client.update(self.0.id, text).await;
        updated.map(drop)
    }

    /// Completes the message.
    ///
    /// # Errors
    /// Those of [`TurnClient::complete`].
    pub async fn end(self) -> Result<(), AgentError> {
        self.0.complete().await
    }
}

/// The content of an action's message.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    #[serde(rename = "type")]
    kind: String,
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_use_id: Option<String>,
    status: String,
}

/// A message that shows what the agent does. Dropping it completes it.
#[derive(Debug)]
#[must_use = "a message that is dropped is complete"]
pub struct Action {
    tracked: Tracked,
    shown: Shown,
    options: SendOptions,
}

impl Action {
    /// The identity of the present message; [`Action::update`] changes it.
    #[must_use]
    pub fn message_id(&self) -> Uuid {
        self.tracked.id
    }

    /// Shows another status. A message's JSON cannot be edited, so this completes the message
    /// and begins another one.
    ///
    /// # Errors
    /// `turn.message_ended` after [`TrackerManager::cleanup_all`]; those of
    /// [`TurnClient::send_with`].
    pub async fn update(
        &mut self,
        status: impl Into<String>,
        description: Option<String>,
    ) -> Result<(), AgentError> {
        self.tracked.check()?;
        self.tracked.complete().await?;
        self.shown.status = status.into();
        if let Some(description) = description {
            self.shown.description = description;
        }
        let (client, content) = (&self.tracked.client, serde_json::to_string(&self.shown)?);
        let sent = client.send_with(content, self.options.clone()).await?;
        let open = Arc::clone(&self.tracked.open);
        locked(&open).push((sent.message_id, Kind::Persisted));
        self.tracked.id = sent.message_id;
        Ok(())
    }

    /// Completes the message without changing it.
    ///
    /// # Errors
    /// Those of [`TurnClient::complete`].
    pub async fn complete(self) -> Result<(), AgentError> {
        self.tracked.complete().await
    }

    /// Marks the message as failed.
    ///
    /// # Errors
    /// Those of [`TurnClient::error`].
    pub async fn fail(self, error: &AgentError) -> Result<(), AgentError> {
        if !self.tracked.close() {
            return Ok(());
        }
        let code = Some(error.code().to_owned());
        let failed = self
            .tracked
            .client
            .error(self.tracked.id, error.to_string(), code);
        failed.await.map(drop)
    }
}
