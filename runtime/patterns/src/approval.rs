//! Approval: a person decides before an unsafe tool runs.

use crate::codes;
use a99_runtime::{
    AgentError, Body, CallOptions, Event, Message, SendOptions, TurnClient, Uuid,
    codes as runtime_codes,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The method of a participant that shows a question and answers it: `once`, `always` or
/// `never`, as a text or under `answer`.
pub const METHOD: &str = "approval.request";

/// Maximum questions that wait.
const MAX_QUESTIONS: usize = 100;

/// Maximum characters of a tool's input: a person must see all of what is approved.
const MAX_INPUT: usize = 20_000;

/// A lasting decision about a tool.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// It may run without a question.
    Always,
    /// It may not run.
    Never,
}

/// Whether a tool may run now.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may.
    Granted,
    /// It may not.
    Denied,
    /// A person was asked, under this identity. The answer is a later event.
    Asked(Uuid),
}

/// A question that waits for its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// Its identity: that of the call or of the message.
    pub id: Uuid,
    /// The tool, as grants name it.
    pub tool: String,
    /// The tool's input.
    pub input: Value,
    /// The participant that decides.
    pub approver: Uuid,
}

/// The answer of a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The question, with the tool and the input to run it with.
    pub question: Question,
    /// Whether the tool may run with this input.
    pub is_granted: bool,
}

/// Grants of tools and questions that wait. An agent keeps it in its state, so that neither is
/// lost when the process ends: the answer is an event of the channel, whenever it comes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Approvals {
    grants: BTreeMap<String, Grant>,
    waiting: Vec<Question>,
}

impl Approvals {
    /// Sets a lasting decision, or removes it.
    pub fn set(&mut self, tool: &str, grant: Option<Grant>) {
        match grant {
            Some(grant) => drop(self.grants.insert(tool.to_owned(), grant)),
            None => drop(self.grants.remove(tool)),
        }
    }

    /// The lasting decision about a tool.
    #[must_use]
    pub fn grant(&self, tool: &str) -> Option<Grant> {
        self.grants.get(tool).copied()
    }

    /// Questions that wait.
    #[must_use]
    pub fn waiting(&self) -> &[Question] {
        &self.waiting
    }

    /// Discards a question, for instance when its work is no longer wanted.
    pub fn forget(&mut self, id: Uuid) -> Option<Question> {
        let at = self.waiting.iter().position(|one| one.id == id)?;
        Some(self.waiting.remove(at))
    }

    /// Decides whether a tool may run with an input, and asks the participant with the handle
    /// `approver` if no grant decides: by a call of its method [`METHOD`] if it offers one,
    /// otherwise by a message to it. An equal question that waits is not asked again.
    ///
    /// `tool` is the name of grants, which the approver sees. Methods of participants have
    /// [`RosterTool::grant_key`](crate::RosterTool::grant_key).
    ///
    /// # Errors
    /// `provider-not-found`; `agent.too_many_questions` while 100 questions wait;
    /// `agent.input_too_long` for an input beyond 20,000 characters; those of
    /// [`TurnClient::call_method`] and [`TurnClient::send_with`].
    pub async fn ask(
        &mut self,
        client: &TurnClient,
        approver: &str,
        tool: &str,
        input: Value,
    ) -> Result<Decision, AgentError> {
        match self.grants.get(tool) {
            Some(Grant::Always) => return Ok(Decision::Granted),
            Some(Grant::Never) => return Ok(Decision::Denied),
            None => {}
        }
        let mut roster = client.roster().into_iter();
        let ids = client.resolve_handles(&[approver])?;
        let found = ids.first().and_then(|id| roster.find(|who| who.id == *id));
        let who = found.ok_or_else(|| {
            let message = format!("@{approver} has left the channel");
            AgentError::new(runtime_codes::NOBODY, message)
        })?;
        let is_same =
            |one: &&Question| one.tool == tool && one.input == input && one.approver == who.id;
        if let Some(same) = self.waiting.iter().find(is_same) {
            return Ok(Decision::Asked(same.id));
        }
        if self.waiting.len() >= MAX_QUESTIONS {
            let message = format!("{MAX_QUESTIONS} questions wait for an approval");
            return Err(AgentError::new(codes::TOO_MANY_QUESTIONS, message));
        }
        let shown = input.to_string();
        if shown.chars().nth(MAX_INPUT).is_some() {
            let message = format!("the input of '{tool}' has more than {MAX_INPUT} characters");
            return Err(AgentError::new(codes::TOO_LONG, message));
        }
        let question =
            json!({"tool": tool, "input": input, "answers": ["once", "always", "never"]});
        let mut methods = who.methods.as_array().into_iter().flatten();
        let id = match methods.any(|method| method["name"] == METHOD) {
            true => {
                let options = CallOptions::default();
                let call = client.call_method(&who.handle, METHOD, question, options);
                // A person may take days: the answer is an event, for which no turn waits.
                call.await?.call_id()
            }
            false => {
                let text = format!(
                    "May I run {tool:?} with {shown}? Reply to this message: once, always or never."
                );
                let options = SendOptions {
                    at: vec![who.id],
                    metadata: Some(json!({"approval": question})),
                    ..SendOptions::default()
                };
                client.send_with(text, options).await?.message_id
            }
        };
        self.waiting.push(Question {
            id,
            tool: tool.to_owned(),
            input,
            approver: who.id,
        });
        Ok(Decision::Asked(id))
    }

    /// Takes an event that may answer a question: the result of the call, or a reply to the
    /// message. Only the participant that was asked can answer. `once` decides for this input
    /// only; `always` and `never` decide for the tool from now on. A call that fails or answers
    /// something else denies once; such a reply leaves the question open.
    pub fn answer(&mut self, event: &Event) -> Option<Answered> {
        let (id, answer) = match &event.body {
            Body::MethodResult {
                call_id,
                content,
                complete: true,
                is_error,
                ..
            } => {
                let said = content.as_ref().filter(|_| !is_error);
                let said = said.map(|said| said.get("answer").unwrap_or(said));
                let answer = said.and_then(Value::as_str).and_then(read);
                (*call_id, answer.unwrap_or(Said::No))
            }
            Body::Message(Message {
                reply_to: Some(id),
                content,
                ..
            }) => (*id, read(content)?),
            _ => return None,
        };
        let mut waiting = self.waiting.iter();
        let at = waiting.position(|one| one.id == id && one.approver == event.sender.id)?;
        let question = self.waiting.remove(at);
        let grant = match answer {
            Said::Always => Some(Grant::Always),
            Said::Never => Some(Grant::Never),
            Said::Once | Said::No => None,
        };
        if let Some(grant) = grant {
            self.grants.insert(question.tool.clone(), grant);
        }
        Some(Answered {
            question,
            is_granted: matches!(answer, Said::Once | Said::Always),
        })
    }
}

#[derive(Copy, Clone)]
enum Said {
    Once,
    Always,
    Never,
    No,
}

/// The answer in a text that consists of it.
fn read(text: &str) -> Option<Said> {
    let text = text.trim().trim_end_matches('.').to_ascii_lowercase();
    match text.as_str() {
        "once" | "yes" => Some(Said::Once),
        "always" => Some(Said::Always),
        "never" => Some(Said::Never),
        "no" => Some(Said::No),
        _ => None,
    }
}
