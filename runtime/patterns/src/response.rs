//! Responses: answers of language models as messages.

use crate::codes;
use crate::trackers::Typing;
use a99_capabilities::AiProvider;
use a99_capabilities::ai::{
    Message, Opaque, Part, Role, StopReason, StreamEvent, StreamHandle, TextRequest, TextResult,
    ToolUse, Usage,
};
use a99_core::value::Value;
use a99_runtime::program::PARTIAL;
use a99_runtime::{AgentError, SendOptions, TurnClient, Uuid};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A model's answer, as the turn's journal keeps it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The text.
    pub text: String,
    /// Reasoning that the model shows.
    pub thinking: String,
    /// The model that answered, if it is known.
    pub model: Option<String>,
    /// The reason of the end, as [`StopReason::name`] gives it.
    pub stop_reason: String,
    tool_uses: Vec<(String, String, Value)>,
    opaque: Vec<Value>,
    usage: [u64; 5],
}

impl From<TextResult> for Answer {
    fn from(result: TextResult) -> Answer {
        let used = result.usage;
        let uses = result.tool_uses.into_iter();
        Answer {
            text: result.text,
            thinking: result.thinking,
            model: result.model,
            stop_reason: result
                .stop_reason
                .as_ref()
                .map_or("", StopReason::name)
                .to_owned(),
            tool_uses: uses.map(|used| (used.id, used.name, used.input)).collect(),
            opaque: result.opaque.iter().map(Opaque::to_value).collect(),
            usage: [
                used.prompt_tokens,
                used.completion_tokens,
                used.cached_tokens,
                used.written_tokens,
                used.reasoning_tokens,
            ],
        }
    }
}

impl Answer {
    /// The tool calls.
    #[must_use]
    pub fn tool_uses(&self) -> Vec<ToolUse> {
        let uses = self.tool_uses.iter().cloned();
        uses.map(|(id, name, input)| ToolUse { id, name, input })
            .collect()
    }

    /// Tokens of the call.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let [prompt, completion, cached, written, reasoning] = self.usage;
        Usage {
            prompt_tokens: prompt,
            completion_tokens: completion,
            cached_tokens: cached,
            written_tokens: written,
            reasoning_tokens: reasoning,
        }
    }

    /// The answer as a message of the next request, before the results of its tool calls.
    #[must_use]
    pub fn to_message(&self) -> Message {
        let mut content = Vec::new();
        if !self.text.is_empty() {
            content.push(Part::Text(self.text.clone()));
        }
        content.extend(self.tool_uses().into_iter().map(Part::ToolUse));
        let opaque = self.opaque.iter().filter_map(Opaque::of_value);
        content.extend(opaque.map(|part| Part::Opaque {
            from: self.model.clone(),
            part,
        }));
        Message {
            role: Role::Assistant,
            content,
        }
    }
}

/// A message that grows while an answer is made.
///
/// The message begins empty in the log, at the first text. While the model writes, present
/// participants see its text as an ephemeral message of the content type `partial` whose
/// metadata names the message (`messageId`). The text itself is appended with the turn's
/// commit, so the log has it once, however often the turn runs. Dropping a response completes
/// its message.
pub struct ResponseManager {
    client: TurnClient,
    name: String,
    reply_to: Option<Uuid>,
    typing: Option<Typing>,
    rounds: u32,
    id: Option<Uuid>,
    is_ended: bool,
    /// Text of an answer that was cut off.
    unsent: String,
}

impl fmt::Debug for ResponseManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("ResponseManager");
        out.field("name", &self.name).field("id", &self.id);
        out.finish_non_exhaustive()
    }
}

impl ResponseManager {
    /// A response of a turn, with a name that no other response of the turn has, and the
    /// message that it answers. Nothing is sent yet.
    #[must_use]
    pub fn new(client: &TurnClient, name: &str, reply_to: Option<Uuid>) -> ResponseManager {
        ResponseManager {
            client: client.clone(),
            name: name.to_owned(),
            reply_to,
            typing: None,
            rounds: 0,
            id: None,
            is_ended: false,
            unsent: String::new(),
        }
    }

    /// Sets the typing indicator that the first text stops.
    #[must_use]
    pub fn stopping(mut self, typing: Typing) -> ResponseManager {
        self.typing = Some(typing);
        self
    }

    /// The message, if it has begun.
    #[must_use]
    pub fn message_id(&self) -> Option<Uuid> {
        self.id
    }

    /// Begins the message, and stops the typing indicator; no effect if it has begun.
    ///
    /// # Errors
    /// `turn.message_ended` after the message's end; those of [`TurnClient::send_now`].
    pub async fn start(&mut self) -> Result<Uuid, AgentError> {
        if self.is_ended {
            return Err(AgentError::new(codes::ENDED, "the message is complete"));
        }
        if let Some(typing) = self.typing.take() {
            typing.stop().await?;
        }
        if let Some(id) = self.id {
            return Ok(id);
        }
        let options = SendOptions {
            reply_to: self.reply_to,
            name: Some(self.name.clone()),
            ..SendOptions::default()
        };
        // Empty, so that each attempt of the turn sends the same.
        let id = self.client.send_now("", options).await?.message_id;
        self.id = Some(id);
        Ok(id)
    }

    /// Appends text.
    ///
    /// # Errors
    /// Those of [`ResponseManager::start`] and [`TurnClient::update`].
    pub async fn append(&mut self, text: impl Into<String>) -> Result<(), AgentError> {
        let id = self.start().await?;
        self.client.update(id, text).await.map(drop)
    }

    /// Completes the message, with the text of an answer that was cut off.
    ///
    /// # Errors
    /// Those of [`TurnClient::complete`].
    pub async fn complete(mut self) -> Result<(), AgentError> {
        self.cleanup().await.map(drop)
    }

    /// Completes the message if it has begun, and stops the typing indicator. Gives whether
    /// there was a message to complete.
    ///
    /// # Errors
    /// Those of [`TurnClient::complete`].
    pub async fn cleanup(&mut self) -> Result<bool, AgentError> {
        let Some(id) = self.end().await? else {
            return Ok(false);
        };
        self.client.complete(id).await?;
        Ok(true)
    }

    /// Marks the message as failed, if it has begun.
    ///
    /// # Errors
    /// Those of [`TurnClient::error`].
    pub async fn fail(&mut self, error: &AgentError) -> Result<bool, AgentError> {
        let Some(id) = self.end().await? else {
            return Ok(false);
        };
        let code = Some(error.code().to_owned());
        self.client.error(id, error.to_string(), code).await?;
        Ok(true)
    }

    /// Stops the indicator and sends what is unsent. Gives the message that is to end now.
    async fn end(&mut self) -> Result<Option<Uuid>, AgentError> {
        if let Some(typing) = self.typing.take() {
            typing.stop().await?;
        }
        let Some(id) = self.id.filter(|_| !self.is_ended) else {
            return Ok(None);
        };
        if !self.unsent.is_empty() {
            let unsent = std::mem::take(&mut self.unsent);
            self.client.update(id, unsent).await?;
        }
        self.is_ended = true;
        Ok(Some(id))
    }

    /// Requests an answer and appends its text. The answer is a step of the turn: a retry gets
    /// it from the journal and asks the model again only for what it had not answered. In a
    /// loop of tool calls each call is the next step.
    ///
    /// # Errors
    /// The model's error with its code, which also marks a message that has begun as failed. If
    /// the handler returns the error, the turn is rolled back and tried again, and the message
    /// goes on; if the handler ends without an error, the failure is committed. Errors of the
    /// turn and of the store.
    pub async fn answer(
        &mut self,
        ai: &dyn AiProvider,
        request: TextRequest,
    ) -> Result<Answer, AgentError> {
        self.rounds += 1;
        let step = format!("answer {} {}", self.name, self.rounds);
        let client = self.client.clone();
        let asked = client.step(&step, async { self.stream(ai.stream_text(request)).await });
        let answer: Answer = match asked.await {
            Ok(answer) => answer,
            Err(error) => {
                self.fail(&error).await?;
                return Err(error);
            }
        };
        self.unsent.clear();
        if !answer.text.is_empty() {
            self.append(answer.text.clone()).await?;
        }
        Ok(answer)
    }

    /// Shows the pieces of a stream until it ends.
    async fn stream(&mut self, mut stream: StreamHandle) -> Result<Answer, AgentError> {
        let mut shown = None;
        while let Some(event) = stream.next().await {
            let StreamEvent::Text(piece) = event else {
                continue;
            };
            let message = self.start().await?;
            self.unsent.push_str(&piece);
            match shown {
                Some(id) => self.client.update_ephemeral(id, piece).await?,
                None => {
                    let options = SendOptions {
                        reply_to: self.reply_to,
                        content_type: Some(PARTIAL.to_owned()),
                        metadata: Some(serde_json::json!({"messageId": message})),
                        ..SendOptions::default()
                    };
                    shown = Some(self.client.send_ephemeral(piece, options).await?);
                }
            }
        }
        if let Some(id) = shown {
            self.client.complete_ephemeral(id).await?;
        }
        let result = stream.done().await;
        let result = result.map_err(|error| AgentError::new(error.code.name(), error.message))?;
        Ok(Answer::from(result))
    }
}

impl Drop for ResponseManager {
    fn drop(&mut self) {
        if let Some(id) = self.id.filter(|_| !self.is_ended) {
            // After its turn there is nothing to complete it with.
            drop(self.client.complete_with_commit(id));
        }
    }
}
