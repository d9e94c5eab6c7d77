//! A channel server, a receiver, and requests written by hand.

use a99_channels::server::{ChannelServer, Limits};
use a99_push::reception::{Reception, ReceptionOptions, Reply};
use a99_push::signature::{Secret, Signed, Verifier};
use a99_push::transport::{HttpTransport, ServerOptions};
use a99_push::wire::{Answer, EVENTS, Events, INIT, Init};
use a99_runtime::{
    Agent, AgentKey, Alarm, Body, CallOptions, Event, EventOptions, Host, HostBuilder, Message,
    Method, Methods, Publish, Sender, Seq, Turn, TurnOutcome, Uuid,
};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use a99_server::{Authority, ListenOptions, Listener, NewToken, Scopes};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;

pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
pub(crate) const WAIT: Duration = Duration::from_secs(60);

#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Counted {
    pub(crate) messages: u64,
}

/// Doubles numbers for others.
pub(crate) struct Doubler;

impl Agent for Doubler {
    type State = Counted;
    type Settings = Value;

    async fn on_event(&self, _: &mut Turn<'_, Self>, _: Event) -> TurnOutcome {
        Ok(())
    }

    fn methods(&self) -> Methods<Self> {
        let double = Method::new("Doubles a number", |_, _: &mut Turn<'_, Doubler>, call| {
            Box::pin(async move { Ok(json!(2 * call.args["n"].as_u64().unwrap_or_default())) })
        });
        Methods::none().with("double", double)
    }
}

/// Counts messages and answers each: `slow` after a while, `remind` also by a timer, `ask` with
/// what `@doubler` says.
pub(crate) struct Counter;

impl Agent for Counter {
    type State = Counted;
    type Settings = Value;

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        let Body::Message(message) = event.body else {
            return Ok(());
        };
        if event.sender.kind.as_deref() == Some("agent") {
            return Ok(());
        }
        turn.state_mut().messages += 1;
        let n = turn.state().messages;
        match &*message.content {
            "slow" => tokio::time::sleep(Duration::from_millis(1_500)).await,
            "remind" => turn.set_timer("r", 1_000 * seconds() + 2_500, json!(null))?,
            "ask" => {
                let call = turn.call_method(
                    "doubler",
                    "double",
                    json!({"n": 21}),
                    CallOptions::default(),
                );
                let answer = call.await?.result().await?;
                turn.send(format!("the answer {answer}")).await?;
            }
            _ => {}
        }
        turn.send(format!("#{n}: {}", message.content)).await?;
        Ok(())
    }

    fn event_options(&self) -> EventOptions {
        EventOptions {
            include_ephemeral: true,
            ..EventOptions::default()
        }
    }

    async fn on_alarm(&self, turn: &mut Turn<'_, Self>, _: Alarm) -> TurnOutcome {
        turn.send("reminded").await?;
        Ok(())
    }
}

pub(crate) fn key() -> AgentKey {
    "counter/general/counter".parse().expect("a key")
}

pub(crate) fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("a time").as_secs()
}

/// A channel server.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) host: Host,
    pub(crate) token: String,
    pub(crate) authority: Authority,
    stop: oneshot::Sender<()>,
}

fn listening() -> ListenOptions {
    listening_at(SocketAddr::from(([127, 0, 0, 1], 0)))
}

pub(crate) fn listening_at(address: SocketAddr) -> ListenOptions {
    ListenOptions {
        address,
        hosts: vec!["127.0.0.1".to_owned()],
        ..ListenOptions::default()
    }
}

impl Server {
    pub(crate) async fn start(folder: &Path) -> Server {
        let host = Host::builder().agent("doubler", |_| Doubler);
        Server::start_with(folder, host, StoreOptions::default()).await
    }

    pub(crate) async fn start_with(
        folder: &Path,
        host: HostBuilder,
        options: StoreOptions,
    ) -> Server {
        let store = SqliteRuntime::open(folder.join("channels.db"), options);
        let host = host.start(Arc::new(store.expect("a store")));
        let host = host.await.expect("a host");
        let authority = Authority::open(folder.join("tokens.json")).expect("tokens");
        let new = NewToken {
            name: "receiver".to_owned(),
            scopes: Scopes::parse(&["read:*", "host:*"]).expect("scopes"),
            lifetime: None,
        };
        let token = authority.issue(&new).expect("a token").0;
        let listener = Listener::bind(listening()).await.expect("a listener");
        let address = listener.address();
        let channels = ChannelServer::new(host.clone(), authority.clone(), Limits::default());
        let (stop, stopped) = oneshot::channel::<()>();
        let served = listener.serve(channels.router(), async {
            drop(stopped.await);
        });
        tokio::spawn(async move { served.await.expect("served") });
        Server {
            address,
            host,
            token,
            authority,
            stop,
        }
    }

    /// Ends the listener; the host stays.
    pub(crate) fn stop(self) -> Host {
        drop(self.stop);
        self.host
    }

    /// Publishes a message, and gives its number.
    pub(crate) async fn say(&self, text: &str) -> Seq {
        say(&self.host, text).await
    }

    /// Events of the log after one.
    pub(crate) async fn log(&self, after: Seq) -> Vec<Arc<Event>> {
        let read = self.host.channel_store().read("general", after, 500);
        read.await.expect("events")
    }

    /// What the agent said, in order.
    pub(crate) async fn said(&self) -> Vec<String> {
        let (mut after, mut all) = (0, Vec::new());
        loop {
            let events = self.log(after).await;
            let Some(last) = events.last() else {
                return all;
            };
            after = last.seq.expect("a number");
            for event in events {
                if let (true, Body::Message(message)) =
                    (event.sender.id == key().participant(), &event.body)
                {
                    all.push(message.content.clone());
                }
            }
        }
    }

    /// A receiver whose store is closed after each request.
    pub(crate) fn reception(&self, folder: &Path) -> Reception {
        self.reception_with(ReceptionOptions {
            idle: Duration::ZERO,
            ..ReceptionOptions::new(folder.join("agents.db"))
        })
    }

    pub(crate) fn reception_with(&self, options: ReceptionOptions) -> Reception {
        receiver(options, self.address, &self.token)
    }
}

pub(crate) fn receiver(options: ReceptionOptions, server: SocketAddr, token: &str) -> Reception {
    let server = ServerOptions::new(format!("http://{server}"), token);
    receiver_of(options, server, || {
        Host::builder().agent("counter", |_| Counter)
    })
}

pub(crate) fn receiver_of(
    options: ReceptionOptions,
    server: ServerOptions,
    build: fn() -> HostBuilder,
) -> Reception {
    let transport = HttpTransport::new(server).expect("a transport");
    let secret = Secret::parse(SECRET).expect("a secret");
    let verifier = Verifier::new(vec![secret]).expect("a verifier");
    Reception::new(options, transport, verifier, build)
}

pub(crate) async fn say(host: &Host, text: &str) -> Seq {
    let ann = Sender {
        id: Uuid::from_u128(1),
        name: Some("Ann".to_owned()),
        kind: Some("panel".to_owned()),
        handle: Some("ann".to_owned()),
    };
    let publish = Publish {
        body: Body::Message(Message::text(text)),
        sender: ann,
        key: None,
        attachments: Vec::new(),
    };
    let published = host.publish("general", publish).await.expect("published");
    published.event.seq.expect("a number")
}

/// Serves a receiver, and gives its address.
pub(crate) async fn serve(reception: &Reception) -> SocketAddr {
    serve_router(reception.router()).await
}

pub(crate) async fn serve_router(router: axum::Router) -> SocketAddr {
    let listener = Listener::bind(listening()).await.expect("a listener");
    let address = listener.address();
    let served = listener.serve(router, std::future::pending());
    tokio::spawn(async move { served.await.expect("served") });
    address
}

/// Sends a signed request.
pub(crate) async fn ask(reception: &Reception, path: &str, body: &impl Serialize) -> Reply {
    let mut id = [0; 8];
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a time");
    id.copy_from_slice(&(now.as_nanos() as u64).to_be_bytes());
    let id = format!("msg_{}", u64::from_be_bytes(id));
    let body = serde_json::to_vec(body).expect("JSON");
    let (at, secret) = (seconds(), Secret::parse(SECRET).expect("a secret"));
    let signature = secret.sign(&id, at, &body);
    let signed = Signed {
        id: &id,
        timestamp: &at.to_string(),
        signature: &signature,
    };
    reception.handle(path, signed, body).await
}

pub(crate) fn answer(reply: &Reply) -> Answer {
    let text = String::from_utf8_lossy(&reply.body);
    assert!(
        matches!(reply.status, 200 | 202),
        "{}: {text}",
        reply.status
    );
    serde_json::from_slice(&reply.body).expect("an answer")
}

pub(crate) fn code(reply: &Reply) -> String {
    let body: Value = serde_json::from_slice(&reply.body).expect("JSON");
    body["error"]["code"].as_str().expect("a code").to_owned()
}

pub(crate) async fn init(reception: &Reception) -> Answer {
    let init = Init {
        agent: key(),
        config: json!({}),
    };
    answer(&ask(reception, INIT, &init).await)
}

/// Pushes events.
pub(crate) async fn push(reception: &Reception, events: &[Arc<Event>]) -> Reply {
    let events = Events {
        agent: key(),
        events: events.to_vec(),
        head: 0,
        ephemeral: Vec::new(),
    };
    ask(reception, EVENTS, &events).await
}

pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(WAIT, wait).await;
    waited.unwrap_or_else(|_| panic!("{what}"));
}

pub(crate) fn answers(count: usize) -> Vec<String> {
    (1..=count).map(|n| format!("#{n}: m{n}")).collect()
}
