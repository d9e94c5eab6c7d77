//! An agent that does what a message says, and notes what it is called for.

use crate::agent::{Agent, Alarm, ConnectOptions, Identity, Replay, TurnOutcome};
use crate::bus::CallOptions;
use crate::error::AgentError;
use crate::event_bus::{EventBus, MethodResult};
use crate::methods::{Method, Methods};
use crate::tables::Tables;
use crate::turn::{SendOptions, Turn, UpdateOptions};
use a99_capabilities::ai::TextRequest;
use a99_runtime_engine::{
    Attachment, Body, Event, EventKind, EventOptions, OnDead, PauseStatus, Policy, Retry, Seq,
    Trigger, Uuid,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest time that a handler waits for what a case does meanwhile.
const WAIT: Duration = Duration::from_secs(20);

/// What the agent noted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Noted {
    /// Messages, alarms and ephemeral events.
    seen: Vec<String>,
    hooks: Vec<String>,
    /// Its own events, which it must not get.
    own: u64,
    padding: String,
}

/// Acts by the words of messages; its configuration says under which rules.
pub(super) struct Actor(Arc<Value>);

/// An attachment with its name as bytes.
fn picture(name: &str) -> Attachment {
    Attachment {
        id: name.to_owned(),
        mime_type: "image/png".to_owned(),
        name: None,
        data: name.as_bytes().to_vec(),
    }
}

fn fails() -> AgentError {
    AgentError::new("test.fails", "it fails")
}

fn late() -> AgentError {
    AgentError::new("test.late", "what it waits for does not come").fatal()
}

fn texts(events: &[Arc<Event>]) -> Vec<&str> {
    let texts = events.iter().filter_map(|event| super::stage::text(event));
    texts.collect()
}

fn map(json: &str) -> Map<String, Value> {
    serde_json::from_str(json).unwrap_or_default()
}

/// Waits until somebody says `go`.
async fn go(bus: &dyn EventBus) -> TurnOutcome {
    let wait = async {
        while !texts(&bus.history(None, 20).await?).contains(&"go") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    };
    tokio::time::timeout(WAIT, wait).await.map_err(|_| late())?
}

impl Actor {
    pub(super) fn new(identity: &Identity) -> Actor {
        Actor(Arc::clone(&identity.config))
    }

    fn is(&self, name: &str) -> bool {
        self.0[name] == true
    }

    /// Does what a message says, and gives the answer.
    async fn act(
        turn: &mut Turn<'_, Self>,
        event: &Event,
        said: &str,
    ) -> Result<Value, AgentError> {
        let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
        let words: Vec<&str> = rest.split(' ').collect();
        let number: usize = rest.parse().unwrap_or_default();
        let (client, attempt) = (turn.client(), turn.attempt() as usize);
        let context = client.context();
        let bus = &*context.event_bus;
        let options = SendOptions::default;
        Ok(match word {
            "say" => json!(rest),
            "fail" | "panic" | "hang" => {
                // Nothing of an attempt that fails remains.
                client.send(format!("half of {said}")).await?;
                client.set_timer("half", client.now() + 600_000, json!(null))?;
                match (word, attempt <= number) {
                    (_, false) => client.cancel_timer("half")?,
                    ("fail", true) => return Err(fails()),
                    ("panic", true) => panic!("a fault"),
                    (_, true) => std::future::pending().await,
                }
                json!(format!("attempt {attempt}"))
            }
            "fatal" => return Err(fails().fatal()),
            "wait" => {
                client.send_now("waits", options()).await?;
                client.send("half").await?;
                go(bus).await?;
                json!("went")
            }
            "need" => match texts(&bus.history(None, 20).await?).contains(&"go") {
                true => json!("went"),
                false => return Err(fails().fatal()),
            },
            "slow" => {
                tokio::time::sleep(Duration::from_millis(number as u64)).await;
                json!("slow")
            }
            "count" => json!(turn.state().seen.len()),
            "sends" => {
                for n in 0..number {
                    client.send(format!("m{n}")).await?;
                }
                json!(number)
            }
            "now" => {
                client.send_now(rest, options()).await?;
                if attempt == 1 {
                    return Err(fails());
                }
                json!(attempt)
            }
            // What a step made is said at once: another answer would be another body.
            "step" | "model" => {
                let made: String = client
                    .step(word, async {
                        if word == "model" {
                            let answer = client.ai()?.generate_text(TextRequest::new(rest)).await;
                            let lost = |error| AgentError::new("test.ai", format!("{error}"));
                            return Ok(answer.map_err(lost)?.text);
                        }
                        let since = SystemTime::now().duration_since(UNIX_EPOCH);
                        Ok(since.map_or(0, |since| since.as_nanos()).to_string())
                    })
                    .await?;
                client.send_now(format!("made {made}"), options()).await?;
                match rest {
                    "fail" if attempt == 1 => return Err(fails()),
                    "wait" => go(bus).await?,
                    _ => {}
                }
                json!(made)
            }
            "key" => json!([client.idempotency_key("k"), attempt]),
            "note" | "note-fatal" => {
                let storage = client.storage()?;
                let insert = "INSERT INTO note (text) VALUES (?)";
                storage.run(insert, vec![json!(rest)]).await?;
                if word == "note-fatal" {
                    return Err(fails().fatal());
                }
                let rows = storage
                    .query("SELECT text FROM note ORDER BY id", vec![])
                    .await?;
                json!(rows.iter().map(|row| &row["text"]).collect::<Vec<_>>())
            }
            "pragma" => {
                let refused = client.storage()?.exec("PRAGMA user_version").await;
                json!(refused.err().map(|error| error.code().to_owned()))
            }
            "timer" => {
                let after: u64 = words.get(1).and_then(|ms| ms.parse().ok()).unwrap_or(0);
                client.set_timer(words[0], client.now() + after, json!(words[0]))?;
                json!("set")
            }
            "timers" => {
                for n in 0..number {
                    client.set_timer(format!("t{n}"), client.now() + 600_000, json!(n))?;
                }
                json!(number)
            }
            "cancel" => {
                client.cancel_timer(rest)?;
                json!("cancelled")
            }
            "call" => {
                let args = json!({"n": 21, "of": client.identity().key.handle()});
                let limit = words.get(2).and_then(|ms| ms.parse().ok());
                let call = CallOptions {
                    timeout: limit.map(Duration::from_millis),
                    ..CallOptions::default()
                };
                let answer = match bus.call_method(words[0], words[1], args, call).await {
                    Ok(call) => call.result().await,
                    Err(error) => Err(error),
                };
                answer.unwrap_or_else(|error| json!(error.code()))
            }
            "publish" => {
                bus.publish("kept".to_owned(), json!(rest), true).await?;
                bus.publish("passes".to_owned(), json!(rest), false).await?;
                json!("published")
            }
            "type" => {
                let typing = SendOptions {
                    content_type: Some("typing".to_owned()),
                    ..options()
                };
                let id = client.send_ephemeral(rest, typing).await?;
                client.update_ephemeral(id, "...").await?;
                client.complete_ephemeral(id).await?;
                json!("typed")
            }
            "draft" => {
                let sent = bus.send(words[0].to_owned(), options()).await?;
                bus.update(
                    sent.message_id,
                    words[1].to_owned(),
                    UpdateOptions::default(),
                )
                .await?;
                bus.complete(sent.message_id).await?;
                json!(sent.message_id)
            }
            "blot" => {
                let sent = bus.send(rest.to_owned(), options()).await?;
                let code = Some("test.blot".to_owned());
                bus.error(sent.message_id, "ink".to_owned(), code).await?;
                json!(sent.message_id)
            }
            "pause" => {
                let why = Some(rest.to_owned());
                client
                    .announce_pause(event.id, PauseStatus::Paused, why)
                    .await?;
                json!("paused")
            }
            "attach" => {
                let with = SendOptions {
                    attachments: vec![picture(rest)],
                    ..options()
                };
                client.send_with("attached", with).await?;
                json!(
                    event
                        .attachments
                        .iter()
                        .map(|one| one.data.len())
                        .sum::<usize>()
                )
            }
            "title" => {
                bus.set_channel_title(rest.to_owned()).await?;
                bus.channel_config().await?
            }
            "config" => bus.channel_config().await?,
            "await-title" => {
                let mut titles = bus.on_title_change().await?;
                client.send_now("ready", options()).await?;
                let title = tokio::time::timeout(WAIT, titles.next()).await;
                json!(title.map_err(|_| late())??)
            }
            "await-roster" => {
                let mut rosters = bus.on_roster().await?;
                client.send_now("ready", options()).await?;
                loop {
                    let change = tokio::time::timeout(WAIT, rosters.next()).await;
                    let there = change.map_err(|_| late())??.participants;
                    if there.iter().any(|who| who.handle == rest) {
                        break json!(there.len());
                    }
                }
            }
            "await-conflict" => {
                let mut conflicts = bus.on_tool_role_conflict().await?;
                client.send_now("ready", options()).await?;
                let conflict = tokio::time::timeout(WAIT, conflicts.next()).await;
                let conflict = conflict.map_err(|_| late())??;
                json!([conflict.group, conflict.providers, conflict.winner])
            }
            "role" => {
                let me = bus.client_id();
                bus.request_tool_role(rest.to_owned()).await?;
                bus.respond_tool_role(rest.to_owned(), true, None).await?;
                bus.announce_tool_role_handoff(rest.to_owned(), me, Uuid::from_u128(7))
                    .await?;
                json!("played")
            }
            "roster" => {
                let mut handles: Vec<_> = bus.roster().into_iter().map(|who| who.handle).collect();
                handles.sort();
                json!(handles)
            }
            "defs" => {
                let defs = bus.discover_method_defs();
                json!(defs.iter().map(|def| &def["name"]).collect::<Vec<_>>())
            }
            "resolve" => {
                let found = bus.resolve_handles(&words);
                found.map_or_else(|error| json!(error.code()), |ids| json!(ids))
            }
            "metadata" => {
                bus.update_metadata(map(rest)).await?;
                json!("described")
            }
            "invite" => {
                let invited = bus.invite_agent(words[0], words[1], json!({})).await;
                invited.map_or_else(|error| json!(error.code()), |key| json!(key))
            }
            "remove" => json!(bus.remove_agent(words[0], words[1]).await?),
            "history" => json!(texts(&bus.history(None, 50).await?)),
            "page" => {
                let page = bus
                    .get_messages_before(event.seq.unwrap_or(0), number)
                    .await?;
                json!([
                    texts(&page.events),
                    page.has_more,
                    bus.total_message_count().await?
                ])
            }
            "talk" => {
                let said = crate::conversation(&bus.history(None, 50).await?);
                json!(said.iter().map(|one| &one.content).collect::<Vec<_>>())
            }
            "missed" => {
                let wait = async {
                    loop {
                        let missed = bus.missed_messages().await?;
                        if !missed.is_empty() {
                            return Ok::<_, AgentError>(json!(texts(&missed)));
                        }
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                };
                tokio::time::timeout(WAIT, wait)
                    .await
                    .map_err(|_| late())??
            }
            "settings" => {
                if !rest.is_empty() {
                    bus.update_settings(serde_json::from_str(rest)?).await?;
                }
                bus.get_settings().await?
            }
            "large" => {
                client.send("x".repeat(number)).await?;
                json!(number)
            }
            "grow" => {
                turn.state_mut().padding = "x".repeat(number);
                json!(number)
            }
            "merge" => {
                turn.set_state(&serde_json::from_str(rest)?)?;
                json!(turn.is_dirty()?)
            }
            "reset" => {
                turn.reset_state();
                json!("reset")
            }
            "close" => {
                bus.close().await?;
                let closed = bus.send("late".to_owned(), options()).await;
                turn.state_mut().hooks.push(format!(
                    "{:?}",
                    closed.map_err(|e| e.code().to_owned()).err()
                ));
                json!(null)
            }
            "who" => json!([
                context.mode,
                context.agent_id(),
                bus.channel(),
                bus.handle(),
                bus.session_key(),
                context.config()["color"],
            ]),
            "hooks" => json!(turn.state().hooks),
            _ => json!(null),
        })
    }
}

impl Agent for Actor {
    type State = Noted;
    type Settings = Map<String, Value>;

    fn default_settings(&self) -> Self::Settings {
        map(r#"{"tone": "dry", "size": {"w": 1}}"#)
    }

    fn connect_options(&self, _: &Identity, _: Seq) -> ConnectOptions {
        ConnectOptions {
            extra_metadata: map(r#"{"first": 1}"#),
            replay: match self.is("skip") {
                true => Replay::Skip,
                false => Replay::All,
            },
            ..ConnectOptions::default()
        }
    }

    fn event_options(&self) -> EventOptions {
        EventOptions {
            targeted_only: self.is("targeted"),
            include_ephemeral: self.is("ephemeral"),
            ..EventOptions::default()
        }
    }

    fn policy(&self) -> Policy {
        let of = |name: &str| serde_json::from_value(self.0[name].clone());
        Policy {
            delivery: of("delivery").unwrap_or_default(),
            on_dead: match self.is("stops") {
                true => OnDead::Stop,
                false => OnDead::default(),
            },
            retry: Retry {
                max_attempts: 3,
                first: 5,
                most: 20,
            },
            lazy: 20,
            max_deaths: 10,
            turns_per_commit: serde_json::from_value(self.0["group"].clone())
                .unwrap_or(std::num::NonZeroU32::MIN),
            ..Policy::default()
        }
    }

    fn turn_timeout(&self) -> Duration {
        Duration::from_millis(self.0["timeout"].as_u64().unwrap_or(60_000))
    }

    fn tables(&self) -> Option<Tables> {
        let table = "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL)";
        self.is("tables").then(|| Tables::new().migration(table))
    }

    fn methods(&self) -> Methods<Actor> {
        let double = Method::new("Doubles", |_, turn: &mut Turn<'_, Actor>, call| {
            Box::pin(async move {
                turn.state_mut().seen.push("double".to_owned());
                match call.args["n"].as_i64() {
                    Some(14) => panic!("a fault"),
                    Some(13) => Err(AgentError::new("test.unlucky", "thirteen").fatal()),
                    n => Ok(json!(2 * n.unwrap_or_default())),
                }
            })
        });
        let number =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let draw = Method::new("Draws", |_, turn: &mut Turn<'_, Actor>, call| {
            Box::pin(async move {
                let part = MethodResult {
                    content: Some(json!("sketch")),
                    progress: Some(50.0),
                    attachments: vec![picture("sketch")],
                    ..MethodResult::default()
                };
                let bus = turn.context().event_bus;
                bus.send_method_result(call.call_id, part).await?;
                turn.result_with_attachments(json!("whole"), vec![picture("whole")])
            })
        });
        // Calls its caller.
        let back = Method::new("Calls back", |_, turn: &mut Turn<'_, Actor>, call| {
            Box::pin(async move {
                let of = call.args["of"].as_str().unwrap_or_default();
                let options = CallOptions {
                    timeout: Some(Duration::from_secs(5)),
                    ..CallOptions::default()
                };
                let call = turn.call_method(of, "double", json!({"n": 1}), options);
                call.await?.result().await
            })
        });
        let wait = Method::new("Waits for `go`", |_, turn: &mut Turn<'_, Actor>, _| {
            Box::pin(async move {
                turn.state_mut().seen.push("waited".to_owned());
                turn.send_now("waits", SendOptions::default()).await?;
                go(&*turn.context().event_bus).await?;
                Ok(json!("went"))
            })
        });
        Methods::none()
            .with("double", double.parameters(number))
            .with("draw", draw)
            .with("back", back)
            .with("wait", wait)
    }

    async fn on_wake(&self, turn: &mut Turn<'_, Self>) -> TurnOutcome {
        turn.state_mut().hooks.push("wake".to_owned());
        Ok(())
    }

    async fn on_sleep(&self, turn: &mut Turn<'_, Self>) -> TurnOutcome {
        turn.state_mut().hooks.push("sleep".to_owned());
        Ok(())
    }

    async fn on_lost(&self, turn: &mut Turn<'_, Self>, lost: Vec<Trigger>) -> TurnOutcome {
        turn.state_mut().hooks.push(format!("lost {}", lost.len()));
        Ok(())
    }

    async fn on_settings_changed(&self, turn: &mut Turn<'_, Self>) -> TurnOutcome {
        let tone = turn.settings()["tone"].to_string();
        turn.state_mut().hooks.push(format!("settings {tone}"));
        Ok(())
    }

    async fn on_alarm(&self, turn: &mut Turn<'_, Self>, alarm: Alarm) -> TurnOutcome {
        let told = format!("alarm {} {}", alarm.name, alarm.payload);
        turn.state_mut().seen.push(told.clone());
        turn.send(told).await.map(drop)
    }

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        if event.sender.id == turn.key().participant() {
            turn.state_mut().own += 1;
            return Ok(());
        }
        if event.kind == EventKind::Ephemeral {
            let name = event.body.type_name();
            turn.state_mut().seen.push(format!("passing {name}"));
            return Ok(());
        }
        let Body::Message(message) = &event.body else {
            return Ok(());
        };
        if event.sender.kind.as_deref() == Some("agent") {
            if self.is("chatty") {
                turn.send("and you?").await?;
            }
            return Ok(());
        }
        let is_mine = message.at.is_empty() || message.at.contains(&turn.key().participant());
        // A filter must keep it away.
        if !is_mine && !self.is("targeted") {
            return Ok(());
        }
        turn.state_mut().seen.push(message.content.clone());
        let answer = Actor::act(turn, &event, &message.content).await?;
        if !answer.is_null() {
            let options = SendOptions {
                reply_to: Some(event.id),
                ..SendOptions::default()
            };
            let text = answer
                .as_str()
                .map_or_else(|| answer.to_string(), str::to_owned);
            turn.send_with(text, options).await?;
        }
        Ok(())
    }
}
