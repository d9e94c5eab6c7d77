//! A started target with what cases do on it and look at.

use super::{Finding, LIMIT, Outcome, Target, same, store_options, until};
use crate::bus::Participant;
use crate::host::{Host, Publish, Published};
use a99_runtime_engine::{
    AgentKey, AgentStore, Body, DeadLetter, Event, Message, Sender, Seq, TimerRow, Uuid,
};
use a99_runtime_stores::SqliteRuntime;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// A started target.
pub(super) struct Stage {
    pub(super) target: Box<dyn Target>,
}

/// What the store has of an agent.
pub(super) struct Kept {
    pub(super) state: Value,
    pub(super) checkpoint: Seq,
    pub(super) settings: Option<String>,
    pub(super) timers: Vec<TimerRow>,
    pub(super) dead: Vec<DeadLetter>,
}

impl Kept {
    /// The messages that the agent counted.
    pub(super) fn seen(&self) -> Vec<&str> {
        let seen = self.state["seen"].as_array().into_iter().flatten();
        seen.filter_map(Value::as_str).collect()
    }
}

/// How an agent ended a message.
#[derive(Debug)]
pub(super) enum Reply {
    Answer(String),
    Error(String, String),
}

/// A person.
pub(super) fn person(handle: &str, id: u128) -> Participant {
    Participant {
        id: Uuid::from_u128(id),
        handle: handle.to_owned(),
        name: handle.to_owned(),
        kind: "panel".to_owned(),
        methods: Value::Null,
        agent: None,
        metadata: Map::new(),
    }
}

pub(super) fn ann() -> Sender {
    person("ann", 7).sender()
}

/// What Ann publishes.
pub(super) fn says(body: Body) -> Publish {
    Publish {
        body,
        sender: ann(),
        key: None,
        attachments: Vec::new(),
    }
}

/// The text of a message.
pub(super) fn text(event: &Event) -> Option<&str> {
    match &event.body {
        Body::Message(message) => Some(&message.content),
        _ => None,
    }
}

/// The key of an agent on the channel `c`.
pub(super) fn key(handle: &str) -> Result<AgentKey, Finding> {
    on("c", handle)
}

pub(super) fn on(channel: &str, handle: &str) -> Result<AgentKey, Finding> {
    AgentKey::new("actor", channel, handle).map_err(|error| Finding(error.to_string()))
}

impl Stage {
    pub(super) async fn new(mut target: Box<dyn Target>) -> Result<Stage, Finding> {
        target.start().await?;
        Ok(Stage { target })
    }

    /// Ends the target, whatever became of it.
    pub(super) async fn end(mut self) {
        drop(tokio::time::timeout(LIMIT, self.target.kill()).await);
    }

    /// The target with the agent `actor/c/a`.
    pub(super) async fn agent(&self, config: Value) -> Result<AgentKey, Finding> {
        self.invite(key("a")?, config).await
    }

    pub(super) async fn invite(&self, key: AgentKey, config: Value) -> Result<AgentKey, Finding> {
        self.target.invite(&key, config).await?;
        Ok(key)
    }

    pub(super) fn channels(&self) -> Result<Host, Finding> {
        let channels = self.target.channels();
        channels.ok_or_else(|| Finding("the channels do not run".to_owned()))
    }

    pub(super) fn host(&self) -> Result<Host, Finding> {
        let host = self.target.host();
        host.ok_or_else(|| Finding("the target has no host to ask".to_owned()))
    }

    pub(super) async fn restart(&mut self) -> Outcome {
        self.target.stop().await?;
        Ok(self.target.start().await?)
    }

    pub(super) async fn crash(&mut self) -> Outcome {
        self.target.kill().await?;
        Ok(self.target.start().await?)
    }

    pub(super) async fn publish(&self, channel: &str, body: Body) -> Result<Published, Finding> {
        Ok(self.channels()?.publish(channel, says(body)).await?)
    }

    pub(super) async fn say(&self, text: &str) -> Result<Arc<Event>, Finding> {
        self.say_on("c", text).await
    }

    pub(super) async fn say_on(&self, channel: &str, text: &str) -> Result<Arc<Event>, Finding> {
        let body = Body::Message(Message::text(text));
        Ok(self.publish(channel, body).await?.event)
    }

    /// Says something to one agent.
    async fn say_to(&self, key: &AgentKey, text: &str) -> Result<Arc<Event>, Finding> {
        let message = Message {
            at: vec![key.participant()],
            ..Message::text(text)
        };
        let published = self.publish(key.channel(), Body::Message(message));
        Ok(published.await?.event)
    }

    /// The events of a channel after a sequence number.
    pub(super) async fn log_of(
        &self,
        channel: &str,
        mut after: Seq,
    ) -> Result<Vec<Arc<Event>>, Finding> {
        let mut all = Vec::new();
        loop {
            let store = Arc::clone(self.channels()?.channel_store());
            let events = store.read(channel, after, 500).await?;
            let Some(last) = events.last().and_then(|event| event.seq) else {
                return Ok(all);
            };
            after = last;
            all.extend(events);
        }
    }

    pub(super) async fn log(&self) -> Result<Vec<Arc<Event>>, Finding> {
        self.log_of("c", 0).await
    }

    /// The texts of an agent's messages, in order.
    pub(super) async fn said(&self, key: &AgentKey) -> Result<Vec<String>, Finding> {
        let log = self.log_of(key.channel(), 0).await?;
        let own = log.iter().filter(|e| e.sender.id == key.participant());
        Ok(own.filter_map(|e| text(e)).map(str::to_owned).collect())
    }

    /// How the agent ends an event.
    pub(super) async fn reply(&self, key: &AgentKey, to: &Event) -> Result<Reply, Finding> {
        let mut found;
        until!(format!("the end of {to:?}"), {
            let log = self.log_of(key.channel(), to.seq.unwrap_or(0)).await?;
            let mut own = log.iter().filter(|e| e.sender.id == key.participant());
            found = own.find_map(|event| match &event.body {
                Body::Message(message) if message.reply_to == Some(to.id) => {
                    Some(Reply::Answer(message.content.clone()))
                }
                Body::Error { id, code, error } if *id == to.id => Some(Reply::Error(
                    code.clone().unwrap_or_default(),
                    error.clone(),
                )),
                _ => None,
            });
            found.is_some()
        });
        found.ok_or_else(|| Finding("there is no reply".to_owned()))
    }

    pub(super) async fn answered(&self, key: &AgentKey, to: &Event) -> Result<String, Finding> {
        match self.reply(key, to).await? {
            Reply::Answer(text) => Ok(text),
            Reply::Error(code, error) => {
                let said = text(to);
                Err(Finding(format!("{said:?} fails: {code}: {error}")))
            }
        }
    }

    /// Says something, and gives what the agent answers.
    pub(super) async fn ask(&self, key: &AgentKey, text: &str) -> Result<String, Finding> {
        let said = self.say_to(key, text).await?;
        self.answered(key, &said).await
    }

    /// Says something, and expects an answer.
    pub(super) async fn answers(
        &self,
        key: &AgentKey,
        text: &str,
        wanted: impl AsRef<str>,
    ) -> Outcome {
        same(&*self.ask(key, text).await?, wanted.as_ref(), text)
    }

    /// Expects the messages that the agent's state has.
    pub(super) async fn saw<S: AsRef<str>>(
        &self,
        key: &AgentKey,
        wanted: impl AsRef<[S]>,
    ) -> Outcome {
        let wanted: Vec<_> = wanted.as_ref().iter().map(AsRef::as_ref).collect();
        same(self.kept(key).await?.seen(), wanted, "what the state has")
    }

    /// Expects the messages that the agent sent.
    pub(super) async fn spoke<S: AsRef<str>>(
        &self,
        key: &AgentKey,
        wanted: impl AsRef<[S]>,
    ) -> Outcome {
        let wanted: Vec<_> = wanted.as_ref().iter().map(AsRef::as_ref).collect();
        same(self.said(key).await?, wanted, "what the agent said")
    }

    /// [`Stage::ask`] for an answer in JSON.
    pub(super) async fn json(&self, key: &AgentKey, text: &str) -> Result<Value, Finding> {
        let answer = self.ask(key, text).await?;
        serde_json::from_str(&answer).map_err(|_| Finding(format!("{answer} is no JSON")))
    }

    /// Says something that the agent gives up, and gives the code.
    pub(super) async fn fails(&self, key: &AgentKey, said: &str) -> Result<String, Finding> {
        let said = self.say_to(key, said).await?;
        match self.reply(key, &said).await? {
            Reply::Error(code, _) => Ok(code),
            Reply::Answer(answer) => Err(Finding(format!("{:?}: {answer}", text(&said)))),
        }
    }

    /// Waits for a message of an agent.
    pub(super) async fn hears(&self, key: &AgentKey, text: &str) -> Outcome {
        until!(text, self.said(key).await?.iter().any(|said| said == text));
        Ok(())
    }

    /// What the store has of an agent now, while others have it open.
    pub(super) async fn kept(&self, key: &AgentKey) -> Result<Kept, Finding> {
        let options = store_options(false);
        let store = SqliteRuntime::open_reader(self.target.store(), options)?;
        let row = store.load(key).await?;
        let row = row.ok_or_else(|| Finding(format!("the store has no {key}")))?;
        Ok(Kept {
            state: serde_json::from_str(&row.state).unwrap_or(json!(null)),
            checkpoint: row.progress.checkpoint,
            settings: row.settings,
            timers: store.timers(key).await?,
            dead: store.dead_letters(key).await?,
        })
    }

    /// A pause that shows that something does not happen.
    pub(super) async fn quiet(&self) {
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
}
