//! An agent whose hooks are one function, and what waits for it.

use crate::support::{Counted, quick};
use a99_runtime::{
    Agent, AgentKey, Alarm, ConnectOptions, Delivery, Event, EventOptions, Host, Identity, Methods,
    Policy, Replay, Tables, Trigger, Turn, TurnOutcome,
};
use a99_runtime_engine::BoxFuture;
use a99_runtime_stores::SqliteRuntime;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a script is called for.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Wake,
    Sleep,
    Lost(Vec<Trigger>),
    Settings,
    Event(Event),
    Alarm(Alarm),
}

impl Call {
    /// In a word, with what it is about.
    pub(crate) fn name(&self) -> String {
        match self {
            Call::Wake => "wake".to_owned(),
            Call::Sleep => "sleep".to_owned(),
            Call::Lost(lost) => format!("lost {}", lost.len()),
            Call::Settings => "settings".to_owned(),
            Call::Event(event) => text(event).map_or_else(
                || event.body.type_name().to_owned(),
                |text| format!("event {text}"),
            ),
            Call::Alarm(alarm) => format!("alarm {}", alarm.name),
        }
    }
}

/// The text of a message.
pub(crate) fn text(event: &Event) -> Option<&str> {
    match &event.body {
        a99_runtime::Body::Message(message) => Some(&message.content),
        _ => None,
    }
}

type Act =
    Arc<dyn for<'t> Fn(&'t mut Turn<'_, Script>, Call) -> BoxFuture<'t, TurnOutcome> + Send + Sync>;

/// Does what a function says, and notes each call.
#[derive(Clone)]
pub(crate) struct Script {
    act: Act,
    pub(crate) policy: Policy,
    pub(crate) filter: EventOptions,
    pub(crate) timeout: Duration,
    pub(crate) replay: Replay,
    pub(crate) methods: Methods<Script>,
    pub(crate) tables: Option<Tables>,
    pub(crate) calls: Arc<Mutex<Vec<String>>>,
}

impl Script {
    pub(crate) fn new(
        act: impl for<'t> Fn(&'t mut Turn<'_, Script>, Call) -> BoxFuture<'t, TurnOutcome>
        + Send
        + Sync
        + 'static,
    ) -> Script {
        Script {
            act: Arc::new(act),
            policy: quick(Delivery::default()),
            filter: EventOptions::default(),
            timeout: Duration::from_secs(60),
            replay: Replay::All,
            methods: Methods::none(),
            tables: None,
            calls: Arc::default(),
        }
    }

    /// One that does nothing.
    pub(crate) fn idle() -> Script {
        Script::new(|_, _| Box::pin(async { Ok(()) }))
    }

    /// What it was called for.
    pub(crate) fn called(&self) -> Vec<String> {
        self.calls.lock().expect("calls").clone()
    }

    async fn call(&self, turn: &mut Turn<'_, Script>, call: Call) -> TurnOutcome {
        self.calls.lock().expect("calls").push(call.name());
        (self.act)(turn, call).await
    }
}

impl Agent for Script {
    type State = Counted;
    type Settings = serde_json::Value;

    fn policy(&self) -> Policy {
        self.policy
    }

    fn event_options(&self) -> EventOptions {
        self.filter
    }

    fn turn_timeout(&self) -> Duration {
        self.timeout
    }

    fn methods(&self) -> Methods<Script> {
        self.methods.clone()
    }

    fn connect_options(&self, _: &Identity, _: u64) -> ConnectOptions {
        ConnectOptions {
            replay: self.replay,
            ..ConnectOptions::default()
        }
    }

    fn tables(&self) -> Option<Tables> {
        self.tables.clone()
    }

    fn init(&self, _: &Identity) -> TurnOutcome {
        self.calls.lock().expect("calls").push("init".to_owned());
        Ok(())
    }

    async fn on_wake(&self, turn: &mut Turn<'_, Self>) -> TurnOutcome {
        self.call(turn, Call::Wake).await
    }

    async fn on_sleep(&self, turn: &mut Turn<'_, Self>) -> TurnOutcome {
        self.call(turn, Call::Sleep).await
    }

    async fn on_lost(&self, turn: &mut Turn<'_, Self>, lost: Vec<Trigger>) -> TurnOutcome {
        self.call(turn, Call::Lost(lost)).await
    }

    async fn on_settings_changed(&self, turn: &mut Turn<'_, Self>) -> TurnOutcome {
        self.call(turn, Call::Settings).await
    }

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        self.call(turn, Call::Event(event)).await
    }

    async fn on_alarm(&self, turn: &mut Turn<'_, Self>, alarm: Alarm) -> TurnOutcome {
        self.call(turn, Call::Alarm(alarm)).await
    }
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..4_000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it does not come to pass: {what}");
}

/// Waits until an agent is `awake`, `asleep`, `failed` or `stopped`.
pub(crate) async fn is(host: &Host, key: &AgentKey, status: &str) {
    until(status, async || {
        host.inspect(key).await.expect("an agent").status == status
    })
    .await;
}

/// Ends a host and closes its store, as at the end of a process.
pub(crate) async fn closed(host: Host, store: Arc<SqliteRuntime>) {
    host.drain(crate::support::LONG).await.expect("drained");
    drop(host);
    until("nobody has the store", async || {
        Arc::strong_count(&store) == 1
    })
    .await;
    let store = Arc::into_inner(store).expect("nobody else has it");
    store.close().expect("closed");
}
