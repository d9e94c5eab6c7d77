//! What the processes do until they are killed.

use a99_channels::client::{ChannelTransport, Client, ClientOptions};
use a99_channels::server::{ChannelServer, Limits};
use a99_channels::wire::Publish;
use a99_runtime::{Agent, AgentKey, Body, Event, Host, Message, SendOptions, Turn, TurnOutcome};
use a99_runtime_engine::StoreError;
use a99_runtime_stores::{RuntimeStore, StoreOptions};
use a99_server::{Authority, ListenOptions, Listener};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ROLE: &str = "A99_KILLS_ROLE";
pub(crate) const FOLDER: &str = "A99_KILLS_FOLDER";
/// The variable with the address of a PostgreSQL server.
pub(crate) const STORE: &str = "A99_CRASH_STORE";
pub(crate) const CHANNEL: &str = "general";

/// Counts messages, and answers each with its count.
struct Counter;

#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Counted {
    pub(crate) count: u64,
    pub(crate) sum: u64,
}

impl Agent for Counter {
    type State = Counted;
    type Settings = serde_json::Value;

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        if let Body::Message(message) = event.body
            && let Some(n) = message.content.strip_prefix("n ")
        {
            let n: u64 = n.parse().unwrap_or_default();
            turn.state_mut().count += 1;
            turn.state_mut().sum += n;
            let count = turn.state().count;
            if n.is_multiple_of(5) {
                // Immediate: it waits for what earlier turns sent.
                let now = format!("now {count} {n}");
                turn.send_now(now, SendOptions::default()).await?;
            }
            turn.send(format!("counted {count} {n}")).await?;
        }
        Ok(())
    }
}

pub(crate) fn agent(role: &str) -> AgentKey {
    let key = format!("counter/{CHANNEL}/{role}");
    key.parse().expect("a key")
}

pub(crate) fn read(folder: &Path, name: &str) -> Option<String> {
    std::fs::read_to_string(folder.join(name)).ok()
}

pub(crate) async fn connect(folder: &Path) -> Client {
    let token = read(folder, "token").expect("a token");
    loop {
        // The server may be between two lives.
        if let Some(address) = read(folder, "address") {
            let options = ClientOptions {
                first_pause: Duration::from_millis(5),
                max_pause: Duration::from_millis(100),
                timeout: Duration::from_secs(120),
                ..ClientOptions::new(token.as_str())
            };
            if let Ok(client) = Client::connect(&format!("ws://{address}"), options).await {
                return client;
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) fn play(role: &str) {
    let folder = PathBuf::from(std::env::var_os(FOLDER).expect("a folder"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        match role {
            "server" => serve(&folder).await,
            "writer" => write(&folder).await,
            host => live(&folder, host).await,
        }
    });
}

/// The store of a role, as soon as the killed process before has released it: a file, or a schema
/// on the server of `cargo xtask crash --store URL`.
pub(crate) async fn open(folder: &Path, role: &str) -> Arc<RuntimeStore> {
    let options = StoreOptions {
        has_channels: role == "server",
        ..StoreOptions::default()
    };
    loop {
        let error = match std::env::var(STORE) {
            Ok(url) => match connect_store(&url, role, options.clone()).await {
                Ok(store) => return Arc::new(store),
                Err(error) => error,
            },
            Err(_) => {
                let path = folder.join(format!("{role}.db"));
                match RuntimeStore::open(path, options.clone()) {
                    Ok(store) => return Arc::new(store),
                    Err(error) => error,
                }
            }
        };
        assert_eq!(error.code().name(), "store.locked", "{error}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[cfg(feature = "cluster")]
async fn connect_store(
    url: &str,
    role: &str,
    options: StoreOptions,
) -> Result<RuntimeStore, StoreError> {
    use a99_runtime_stores::ConnectError;
    let mut server = a99_postgres::PostgresOptions::of_url(url).expect("a URL");
    server.schema = format!("kills_{role}");
    match RuntimeStore::connect(server, options).await {
        Ok(store) => Ok(store),
        Err(ConnectError::Store(error)) => Err(error),
        Err(ConnectError::Server(error)) => panic!("{error}"),
    }
}

#[cfg(not(feature = "cluster"))]
async fn connect_store(_: &str, _: &str, _: StoreOptions) -> Result<RuntimeStore, StoreError> {
    panic!("a store on a server needs the feature `cluster`")
}

async fn serve(folder: &Path) {
    let store = open(folder, "server").await;
    let host = Host::builder().start(store).await.expect("a host");
    let authority = Authority::open(folder.join("tokens.json")).expect("tokens");
    let address = read(folder, "address").expect("an address");
    let options = ListenOptions {
        address: address.parse().expect("an address"),
        ..ListenOptions::default()
    };
    let listener = loop {
        match Listener::bind(options.clone()).await {
            Ok(listener) => break listener,
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    let server = ChannelServer::new(host, authority, Limits::default());
    let served = listener.serve(server.router(), std::future::pending());
    served.await.expect("served");
}

async fn live(folder: &Path, role: &str) {
    let store = open(folder, role).await;
    let transport = Arc::new(ChannelTransport::new(connect(folder).await));
    let host = Host::builder().agent("counter", |_| Counter);
    let host = host.start_over(store, transport).await.expect("a host");
    let key = agent(role);
    if !host.agents().contains(&key) {
        // A conflict with its participant of the life before ends when the server notices.
        while host.invite(&key, json!({})).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    std::future::pending::<()>().await;
}

/// Publishes 0, 1, 2 and so on, and notes each that was acknowledged.
async fn write(folder: &Path) {
    let client = connect(folder).await;
    let done = read(folder, "acknowledged").unwrap_or_default();
    let mut next = done.lines().count() as u64;
    let mut file = std::fs::File::options()
        .append(true)
        .create(true)
        .open(folder.join("acknowledged"))
        .expect("a file");
    while read(folder, "stop").is_none() {
        let publish = Publish {
            channel: CHANNEL.to_owned(),
            body: Body::Message(Message::text(format!("n {next}"))),
            participant: None,
            key: Some(format!("key {next}")),
            persist: true,
            attachments: Vec::new(),
        };
        let published = client
            .publish(publish, Vec::new())
            .await
            .expect("published");
        let seq = published.seq.expect("a number");
        // One write: a kill leaves whole lines.
        file.write_all(format!("{seq}\n").as_bytes())
            .expect("noted");
        next += 1;
    }
    std::future::pending::<()>().await;
}
