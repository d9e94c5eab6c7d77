//! A server on a temporary store with an agent, tokens for it, and a proxy that breaks
//! connections.

use a99_channels::client::{Client, ClientOptions};
use a99_channels::server::{ChannelServer, Limits};
use a99_channels::wire::Publish;
use a99_runtime::{Agent, Body, Event, Host, Message, Method, Methods, Turn, TurnOutcome};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use a99_server::{Authority, ListenOptions, Listener, NewToken, Scopes};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

pub(crate) const WAIT: Duration = Duration::from_secs(30);

#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Counted {
    pub(crate) messages: u64,
}

/// Answers messages, and calls of `double`.
pub(crate) struct Echo;

impl Agent for Echo {
    type State = Counted;
    type Settings = serde_json::Value;

    async fn on_event(&self, turn: &mut Turn<'_, Self>, event: Event) -> TurnOutcome {
        if let Body::Message(message) = event.body
            && message.content.starts_with("echo ")
        {
            turn.state_mut().messages += 1;
            let n = turn.state().messages;
            turn.send(format!("#{n}: {}", message.content)).await?;
        }
        Ok(())
    }

    fn methods(&self) -> Methods<Self> {
        let double = Method::new("Doubles a number", |_, turn: &mut Turn<'_, Echo>, call| {
            Box::pin(async move {
                // Each run is one message, so that a call that runs twice is seen.
                turn.send("doubled").await?;
                tokio::time::sleep(Duration::from_millis(300)).await;
                Ok(json!(call.args["n"].as_f64().unwrap_or_default() * 2.0))
            })
        });
        Methods::none().with("double", double)
    }
}

pub(crate) struct Server {
    pub(crate) folder: PathBuf,
    pub(crate) address: SocketAddr,
    pub(crate) host: Host,
    pub(crate) channels: ChannelServer,
    pub(crate) authority: Authority,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

pub(crate) fn token(authority: &Authority, name: &str, scopes: &[&str]) -> String {
    let new = NewToken {
        name: name.to_owned(),
        scopes: Scopes::parse(scopes).expect("scopes"),
        lifetime: None,
    };
    authority.issue(&new).expect("a token").0
}

impl Server {
    pub(crate) async fn start(folder: &Path) -> Server {
        let listen = ListenOptions {
            // With any port: proxies have theirs.
            hosts: vec!["127.0.0.1".to_owned()],
            ..ListenOptions::default()
        };
        Server::start_with(folder, listen, Limits::default()).await
    }

    pub(crate) async fn start_with(
        folder: &Path,
        options: ListenOptions,
        limits: Limits,
    ) -> Server {
        let store = SqliteRuntime::open(folder.join("channels.db"), StoreOptions::default());
        let store = Arc::new(store.expect("a store"));
        let host = Host::builder().agent("echo", |_| Echo).start(store).await;
        let host = host.expect("a host");
        let authority = Authority::open(folder.join("tokens.json")).expect("tokens");
        tokio::spawn(authority.watch_file());
        let listener = Listener::bind(options).await.expect("a listener");
        let address = listener.address();
        let channels = ChannelServer::new(host.clone(), authority.clone(), limits);
        let (stop, stopped) = oneshot::channel::<()>();
        let served = listener.serve(channels.router(), async {
            drop(stopped.await);
        });
        let task = tokio::spawn(async move { served.await.expect("served") });
        Server {
            folder: folder.to_owned(),
            address,
            host,
            channels,
            authority,
            stop: Some(stop),
            task,
        }
    }

    pub(crate) fn token(&self, scopes: &[&str]) -> String {
        token(&self.authority, "ann", scopes)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) async fn client(&self, scopes: &[&str]) -> Client {
        connect(self.address, &self.token(scopes)).await
    }

    /// Stops, and gives where the next one may start.
    pub(crate) async fn stop(mut self) -> (PathBuf, SocketAddr) {
        self.channels.stop();
        drop(self.stop.take());
        self.task.await.expect("stopped");
        self.host
            .drain(Duration::from_secs(5))
            .await
            .expect("drained");
        (self.folder, self.address)
    }
}

pub(crate) fn options(token: &str) -> ClientOptions {
    ClientOptions {
        first_pause: Duration::from_millis(10),
        max_pause: Duration::from_millis(50),
        ..ClientOptions::new(token)
    }
}

pub(crate) async fn connect(address: SocketAddr, token: &str) -> Client {
    let client = Client::connect(&format!("ws://{address}"), options(token)).await;
    client.expect("a connection")
}

pub(crate) fn say(channel: &str, text: impl Into<String>) -> Publish {
    Publish {
        channel: channel.to_owned(),
        body: Body::Message(Message::text(text)),
        participant: None,
        key: None,
        persist: true,
        attachments: Vec::new(),
    }
}

pub(crate) fn text(event: &Event) -> &str {
    match &event.body {
        Body::Message(message) => &message.content,
        _ => "",
    }
}

/// A proxy in front of a server whose connections can be cut and stalled.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    cut: watch::Sender<u64>,
    stalled: watch::Sender<bool>,
    pub(crate) accepted: Arc<AtomicU64>,
}

impl Proxy {
    pub(crate) async fn start(to: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let address = listener.local_addr().expect("an address");
        let (cut, stalled) = (watch::Sender::new(0), watch::Sender::new(false));
        let accepted = Arc::new(AtomicU64::new(0));
        let (cuts, stalls, count) = (cut.clone(), stalled.clone(), Arc::clone(&accepted));
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let (mut cuts, stalls) = (cuts.subscribe(), stalls.clone());
                tokio::spawn(async move {
                    let Ok(far) = TcpStream::connect(to).await else {
                        return;
                    };
                    let (near_in, near_out) = near.into_split();
                    let (far_in, far_out) = far.into_split();
                    tokio::select! {
                        () = pass(near_in, far_out, stalls.subscribe()) => {}
                        () = pass(far_in, near_out, stalls.subscribe()) => {}
                        _ = cuts.changed() => {}
                    }
                });
            }
        });
        Proxy {
            address,
            cut,
            stalled,
            accepted,
        }
    }

    /// Cuts all connections.
    pub(crate) fn cut(&self) {
        self.cut.send_modify(|n| *n += 1);
    }

    /// Passes no bytes on, or does again.
    pub(crate) fn stall(&self, is_stalled: bool) {
        self.stalled.send_replace(is_stalled);
    }
}

async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut stalled: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 1 << 12];
    while let Ok(count) = from.read(&mut bytes).await
        && count > 0
    {
        if stalled.wait_for(|is| !*is).await.is_err() {
            return;
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
