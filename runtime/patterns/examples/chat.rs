//! A chat agent: it answers people by a model, calls tools of other agents after an approval,
//! reads what it missed, and can be paused. The model is scripted, so that the conversation is
//! the same each time and ends by itself.

use a99_capabilities::ScriptedAi;
use a99_capabilities::ai::{
    Message as AiMessage, ModelFault, ModelScript, ModelTurn, Role, TextRequest, ToolUse,
};
use a99_core::value::Value as AiValue;
use a99_runtime::{
    Agent, AgentError, AgentKey, Body, Event, EventBus, Host, HostOptions, LogLevel, Message,
    Method, Methods, Participant, Publish, Sender, Turn, TurnClient, TurnOutcome, Uuid,
    conversation,
};
use a99_runtime_patterns::{
    Approvals, ContextUsage, Decision, InterruptController, MAX_CHARS, MissedContext,
    ResponseManager, RosterTools, SET_TITLE, SettingsManager, ToolOutcome, TrackerManager,
    WRITE_TASKS, call_standard_tool, codes, roster_to_tools, standard_tools, tool_result,
};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Maximum calls of the model for one answer.
const MAX_ROUNDS: usize = 8;

#[derive(Clone, Serialize, Deserialize)]
struct Prefs {
    language: String,
}

impl Default for Prefs {
    fn default() -> Prefs {
        let language = "English".to_owned();
        Prefs { language }
    }
}

/// What the agent keeps between turns.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Memory {
    settings: SettingsManager<Prefs>,
    missed: MissedContext,
    usage: ContextUsage,
    approvals: Approvals,
}

#[derive(Default)]
struct Chat {
    interrupts: InterruptController,
}

impl Agent for Chat {
    type State = Memory;
    type Settings = Value;

    fn methods(&self) -> Methods<Chat> {
        let prefer = Method::new("Changes the settings.", |_: &Chat, turn, call| {
            Box::pin(async move {
                let prefs = turn.state_mut().settings.update(&call.args)?;
                Ok(json!({"language": prefs.language}))
            })
        });
        let methods = Methods::none().with("prefer", prefer);
        self.interrupts.with_methods(methods)
    }

    async fn on_wake(&self, turn: &mut Turn<'_, Self>) -> TurnOutcome {
        let config = Arc::clone(&turn.identity().config);
        if let Some(error) = turn.state_mut().settings.load(&config) {
            turn.log(LogLevel::Warn, &error.to_string());
        }
        Ok(())
    }

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        let answered = turn.state_mut().approvals.answer(&event);
        let prompt = match (answered, &event.body) {
            (Some(answered), _) => {
                let tools = offered(&turn.client());
                let outcome = match tools.find_granted(&answered.question.tool) {
                    Some(found) if answered.is_granted => {
                        let used = ToolUse {
                            id: answered.question.id.to_string(),
                            name: found.tool.name.clone(),
                            input: AiValue::from(answered.question.input),
                        };
                        tools.call(&turn.client(), &used).await?
                    }
                    _ => Err(denied()),
                };
                match outcome {
                    Ok(value) => format!("The tool answered {value}."),
                    Err(error) => format!("The tool did not run: {error}."),
                }
            }
            (None, Body::Message(message)) => match message.content.strip_prefix("@bot ") {
                Some(prompt) => prompt.to_owned(),
                None => return Ok(()),
            },
            _ => return Ok(()),
        };
        self.interrupts.resume();
        self.reply(turn, &event, prompt).await
    }
}

/// Tools that the channel offers.
fn offered(client: &TurnClient) -> RosterTools {
    let taken = [SET_TITLE, WRITE_TASKS];
    roster_to_tools(&client.roster(), client.client_id(), &taken)
}

fn denied() -> AgentError {
    AgentError::new("chat.denied", "a person denied it")
}

impl Chat {
    /// Answers a prompt, as a reply to the event's message.
    async fn reply(&self, turn: &mut Turn<'_, Self>, event: &Event, prompt: String) -> TurnOutcome {
        let client = turn.client();
        let ai = Arc::clone(client.ai()?);
        let mut trackers = TrackerManager::new(&client);
        trackers.set_reply_to(Some(event.id));
        let typing = trackers.typing().await?;
        let mut response = ResponseManager::new(&client, "reply", Some(event.id)).stopping(typing);

        let seq = event.seq.unwrap_or_default();
        let missed = &mut turn.state_mut().missed;
        missed
            .rebuild(&client, seq.saturating_sub(1), MAX_CHARS)
            .await?;
        let context = missed.consume().unwrap_or_default();
        let language = turn.state().settings.get().language;
        let system = format!("Answer in {language}. Since you last answered:\n{context}");
        let tools = offered(&client);
        let all = standard_tools().into_iter().chain(tools.tools());
        let mut request = all.fold(TextRequest::new(prompt).system(system), TextRequest::tool);

        for _ in 0..MAX_ROUNDS {
            let asked = response.answer(&*ai, request.clone());
            let answer = match self.interrupts.run(&client, event.id, asked).await {
                Ok(answer) => answer,
                // What the model wrote so far stays.
                Err(error) if error.code() == codes::PAUSED => break,
                Err(error) => return Err(error),
            };
            let usage = &mut turn.state_mut().usage;
            usage.record(answer.usage(), ai.price(None, answer.usage()));
            usage.show(&client).await?;
            let uses = answer.tool_uses();
            if uses.is_empty() {
                break;
            }
            let mut content = Vec::new();
            for used in &uses {
                let about = format!("Calls {}", used.name);
                let action = trackers
                    .action("tool", about, Some(used.id.clone()))
                    .await?;
                let outcome = run_tool(turn, &tools, event, used).await?;
                action.complete().await?;
                content.push(tool_result(used, outcome));
            }
            request.messages.push(answer.to_message());
            let role = Role::User;
            request.messages.push(AiMessage { role, content });
        }
        response.complete().await?;
        trackers.cleanup_all().await?;
        turn.state_mut().usage.end_turn();
        Ok(())
    }
}

/// Runs a model's tool call. Methods of others need the approval of the person who asked.
async fn run_tool(
    turn: &mut Turn<'_, Chat>,
    tools: &RosterTools,
    event: &Event,
    used: &ToolUse,
) -> Result<ToolOutcome, AgentError> {
    let client = turn.client();
    if let Some(outcome) = call_standard_tool(&client, used).await? {
        return Ok(outcome);
    }
    let Some(found) = tools.find(&used.name) else {
        return tools.call(&client, used).await;
    };
    let who = event.sender.handle.as_deref().unwrap_or_default();
    let approvals = &mut turn.state_mut().approvals;
    let (key, input) = (found.grant_key(), used.input.to_json());
    match approvals.ask(&client, who, &key, input).await? {
        Decision::Granted => tools.call(&client, used).await,
        Decision::Denied => Ok(Err(denied())),
        Decision::Asked(_) => Ok(Ok(json!("A person was asked; the answer comes later."))),
    }
}

/// An agent whose method costs money.
struct Till;

impl Agent for Till {
    type State = Map<String, Value>;
    type Settings = Value;

    fn methods(&self) -> Methods<Till> {
        let pay = Method::new("Pays an amount.", |_: &Till, turn, call| {
            Box::pin(async move {
                let before = turn.state().get("paid").and_then(Value::as_u64);
                let amount = call.args["amount"].as_u64().unwrap_or(0);
                let paid = before.unwrap_or(0).saturating_add(amount);
                turn.state_mut().insert("paid".to_owned(), json!(paid));
                Ok(json!({"paid": paid}))
            })
        });
        let amount = json!({"type": "object", "properties": {"amount": {"type": "integer"}},
            "required": ["amount"]});
        Methods::none().with("pay", pay.parameters(amount))
    }

    async fn on_event(&self, _: &mut Turn<'_, Self>, _: Event) -> TurnOutcome {
        Ok(())
    }
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

fn person(handle: &str, id: u128) -> Participant {
    Participant {
        id: Uuid::from_u128(id),
        handle: handle.to_owned(),
        name: handle.to_owned(),
        kind: "panel".to_owned(),
        methods: json!([]),
        agent: None,
        metadata: Map::new(),
    }
}

fn sender(who: &Participant) -> Sender {
    Sender {
        id: who.id,
        name: Some(who.name.clone()),
        kind: Some(who.kind.clone()),
        handle: Some(who.handle.clone()),
    }
}

/// A running host, whose model has a script.
struct Session {
    host: Host,
    store: Arc<SqliteRuntime>,
    bot: AgentKey,
    ann: Participant,
    bob: Participant,
}

impl Session {
    async fn start(path: &Path, turns: Vec<ModelTurn>) -> Result<Session, Failed> {
        let store = Arc::new(SqliteRuntime::open(path, StoreOptions::default())?);
        let options = HostOptions {
            idle_debounce: Duration::from_millis(100),
            ..HostOptions::default()
        };
        let host = Host::builder()
            .options(options)
            .ai(ScriptedAi::new(ModelScript { turns }))
            .agent("chat", |_| Chat::default())
            .agent("till", |_| Till);
        let host = host.start(Arc::clone(&store) as Arc<_>).await?;
        let bot: AgentKey = "chat/shop/bot".parse()?;
        host.invite(&bot, json!({"language": "French"})).await?;
        host.invite(&"till/shop/till".parse()?, json!({})).await?;
        let (ann, bob) = (person("ann", 1), person("bob", 2));
        for who in [&ann, &bob] {
            host.join("shop", who.clone()).await?;
        }
        Ok(Session {
            host,
            store,
            bot,
            ann,
            bob,
        })
    }

    async fn publish(&self, who: &Participant, message: Message) -> Result<(), Failed> {
        let publish = Publish {
            body: Body::Message(message),
            sender: sender(who),
            key: None,
            attachments: Vec::new(),
        };
        self.host.publish("shop", publish).await?;
        Ok(())
    }

    async fn say(&self, who: &Participant, text: &str) -> Result<(), Failed> {
        self.publish(who, Message::text(text)).await
    }

    async fn settled(&self) -> Result<(), Failed> {
        match self.host.settled(Duration::from_secs(20)).await {
            true => Ok(()),
            false => Err("the agents are not done".into()),
        }
    }

    async fn call(&self, method: &str, args: Value) -> Result<Value, Failed> {
        let caller = sender(&self.ann);
        let call = self.host.call_method(caller, &self.bot, method, args, None);
        Ok(call.await?.result().await?)
    }

    async fn memory(&self) -> Result<Memory, Failed> {
        let info = self.host.inspect(&self.bot).await?;
        Ok(serde_json::from_value(info.state.unwrap_or_default())?)
    }

    /// The log so far.
    async fn log(&self) -> Result<Vec<Arc<Event>>, Failed> {
        let head = self.host.inspect(&self.bot).await?;
        let head = head.checkpoint + head.lag;
        let mut events = self.host.subscribe("shop", Some(0), false).await?;
        let mut log = Vec::new();
        while events.cursor() < head {
            log.push(events.next().await?);
        }
        Ok(log)
    }

    async fn end(self) -> Result<(), Failed> {
        self.host.drain(Duration::from_secs(10)).await?;
        drop(self.host);
        while Arc::strong_count(&self.store) > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        if let Some(store) = Arc::into_inner(self.store) {
            store.close()?;
        }
        Ok(())
    }
}

/// A turn of the model for a request that contains a text.
fn says(when: &str, pieces: &[&str]) -> ModelTurn {
    ModelTurn {
        text: pieces.iter().map(|piece| (*piece).to_owned()).collect(),
        when: (!when.is_empty()).then(|| when.to_owned()),
        ..ModelTurn::default()
    }
}

/// Has a conversation in a new store, and gives its lines.
pub async fn run() -> Result<Vec<String>, Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("agents.db");

    // The model calls a standard tool, and a method that needs an approval.
    let mut asks = ModelTurn::tool("u1", SET_TITLE, AiValue::from(json!({"title": "Till"})));
    asks.tools.push(ToolUse {
        id: "u2".to_owned(),
        name: "till_pay".to_owned(),
        input: AiValue::from(json!({"amount": 3})),
    });
    asks.when = Some("Answer in French".to_owned());
    let first = vec![
        asks,
        says("A person was asked", &["I asked ", "you first."]),
    ];
    let session = Session::start(&path, first).await?;
    session.say(&session.ann, "@bot Pay 3, please.").await?;
    session.settled().await?;
    session
        .call("prefer", json!({"language": "German"}))
        .await?;
    let question = session.memory().await?.approvals.waiting().first().cloned();
    let question = question.ok_or("it did not ask")?;
    session.end().await?;

    // After a restart the question still waits, and the user's setting beats the configuration.
    let stalls = ModelTurn {
        fault: Some(ModelFault::Stall(1)),
        ..says("Count", &["One, ", "two, ", "three."])
    };
    let second = vec![
        says("{\"paid\":3}", &["Paid."]),
        says("**@bob**", &["Bob says ", "that it is late."]),
        stalls,
    ];
    let session = Session::start(&path, second).await?;
    let once = Message {
        reply_to: Some(question.id),
        ..Message::text("once")
    };
    session.publish(&session.ann, once).await?;
    session.settled().await?;
    // Not for the agent, which reads it before its next answer.
    session.say(&session.bob, "It is late.").await?;
    session.say(&session.ann, "@bot What does Bob say?").await?;
    session.settled().await?;

    // The model stops in the middle of an answer. A pause ends the turn.
    let mut live = session.host.subscribe("shop", None, true).await?;
    session.say(&session.ann, "@bot Count.").await?;
    loop {
        let event = live.next().await?;
        if matches!(&event.body, Body::Message(partial) if partial.content == "One, ") {
            break;
        }
    }
    drop(live);
    session.call("pause", json!({"reason": "enough"})).await?;
    session.settled().await?;

    let log = session.log().await?;
    let paused = |event: &&Arc<Event>| matches!(event.body, Body::ExecutionPause { .. });
    assert_eq!(log.iter().filter(paused).count(), 1);
    let memory = session.memory().await?;
    assert_eq!(memory.settings.get().language, "German");
    assert_eq!(memory.usage.report().session.calls, 4);
    let handle = |id: Uuid| {
        let found = log.iter().find(|event| event.sender.id == id);
        found
            .and_then(|event| event.sender.handle.clone())
            .unwrap_or_default()
    };
    let said = conversation(&log);
    let lines = said
        .iter()
        .map(|said| format!("@{}: {}", handle(said.sender), said.content));
    let lines = lines.collect();
    session.end().await?;
    Ok(lines)
}

/// Checks the conversation that [`run`] had.
///
/// # Panics
/// If it is another one.
pub fn check(lines: &[String]) {
    let till = AgentKey::new("till", "shop", "till").map(|key| key.participant());
    let question = format!(
        "@bot: May I run \"@till.pay ({})\" with {{\"amount\":3}}? \
         Reply to this message: once, always or never.",
        till.unwrap_or_default()
    );
    let expected = [
        "@ann: @bot Pay 3, please.",
        // An answer has its place in the log from its beginning.
        "@bot: I asked you first.",
        &question,
        "@ann: once",
        "@bot: Paid.",
        "@bob: It is late.",
        "@ann: @bot What does Bob say?",
        "@bot: Bob says that it is late.",
        "@ann: @bot Count.",
        "@bot: One, ",
    ];
    assert_eq!(lines, expected);
}

#[allow(dead_code, clippy::print_stdout, reason = "a program for people")]
#[tokio::main]
async fn main() -> Result<(), Failed> {
    let lines = run().await?;
    check(&lines);
    println!("{}", lines.join("\n"));
    Ok(())
}
