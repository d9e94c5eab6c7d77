//! Fan-out to bare sockets, of this server and of others: the same writers, readers and frame
//! size for each, in turns, so that ratios hold on a busy machine.

use crate::nats::Nats;
use crate::{CHANNELS, Delivered, READERS, Server, median, micros};
use a99_runtime::Message;
use a99_runtime_engine::{Body, Uuid};
use futures_util::{FutureExt, SinkExt, StreamExt};
use serde_json::json;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Message as Frame, Utf8Bytes};

const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(3);

/// Events that a pipelined writer has under way.
const UNDER_WAY: usize = 32;

/// Publishes each message to the subscribers of its first word, without a log, and answers it.
pub(crate) async fn broadcast() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    println!("{}", listener.local_addr().expect("an address"));
    let channels: Arc<Mutex<HashMap<String, broadcast::Sender<Utf8Bytes>>>> = Arc::default();
    while let Ok((stream, _)) = listener.accept().await {
        drop(stream.set_nodelay(true));
        let channels = Arc::clone(&channels);
        tokio::spawn(async move {
            let Ok(socket) = tokio_tungstenite::accept_async(stream).await else {
                return;
            };
            let (mut sink, mut stream) = socket.split();
            let channel = |name: &str| {
                let mut all = channels.lock().expect("a lock");
                let new = || broadcast::Sender::new(1 << 16);
                all.entry(name.to_owned()).or_insert_with(new).clone()
            };
            let mut events: Option<broadcast::Receiver<Utf8Bytes>> = None;
            loop {
                let text = tokio::select! {
                    message = stream.next() => {
                        let Some(Ok(Frame::Text(text))) = message else { return };
                        match text.strip_prefix('+') {
                            Some(name) => events = Some(channel(name).subscribe()),
                            None => {
                                let name = text.split(' ').next().unwrap_or_default();
                                // A channel may have no readers.
                                drop(channel(name).send(text.clone()));
                            }
                        }
                        Utf8Bytes::from_static("ok")
                    }
                    Ok(text) = async {
                        match &mut events {
                            Some(events) => events.recv().await,
                            None => std::future::pending().await,
                        }
                    } => text,
                };
                if sink.send(Frame::Text(text)).await.is_err() {
                    return;
                }
            }
        });
    }
}

/// A server to compare.
pub(crate) enum Side {
    /// This project's, with a token.
    Ours(Server, String),
    Plain(Server),
    Nats(Nats),
}

/// What arrives.
pub(crate) enum Got {
    /// An event: when it was sent, and the bytes of its message.
    Event(u64, usize),
    Answer,
}

/// The time at the end of an event, in whatever wraps it.
pub(crate) fn sent_at(text: &str) -> u64 {
    let text = text.trim_end_matches(|end: char| !end.is_ascii_digit());
    let time = text.rsplit(' ').next().and_then(|time| time.parse().ok());
    time.unwrap_or_else(|| panic!("no time: {text}"))
}

/// A connection of a client.
pub(crate) enum Socket {
    Ours(WebSocketStream<TcpStream>, u64),
    Plain(WebSocketStream<TcpStream>),
    Nats(crate::nats::Socket),
}

impl Side {
    fn pid(&self) -> u32 {
        match self {
            Side::Ours(server, _) | Side::Plain(server) => server.child.id(),
            Side::Nats(nats) => nats.server.child.id(),
        }
    }

    async fn open(&self) -> Socket {
        let (server, token) = match self {
            Side::Ours(server, token) => (server, Some(token)),
            Side::Plain(server) => (server, None),
            Side::Nats(nats) => return Socket::Nats(nats.open().await),
        };
        let stream = TcpStream::connect(server.address).await.expect("connected");
        drop(stream.set_nodelay(true));
        let url = format!("ws://{}/v1/socket", server.address);
        let opened = tokio_tungstenite::client_async(url, stream).await;
        let socket = opened.expect("a socket").0;
        let Some(token) = token else {
            return Socket::Plain(socket);
        };
        let mut socket = Socket::Ours(socket, 0);
        let hello = json!({"protocol": a99_channels::wire::PROTOCOL, "token": token});
        socket.request("hello", hello).await;
        socket.flush().await;
        assert!(matches!(socket.next().await, Got::Answer), "a welcome");
        socket
    }
}

impl Socket {
    async fn request(&mut self, method: &str, params: serde_json::Value) {
        let Socket::Ours(socket, id) = self else {
            return;
        };
        *id += 1;
        let text = format!("{}\n{params}", json!({"id": id, "method": method}));
        socket.feed(Frame::Text(text.into())).await.expect("sent");
    }

    async fn subscribe(&mut self, channel: usize) {
        let name = format!("c{channel}");
        match self {
            Socket::Ours(..) => {
                let params = json!({"subscription": 1, "channel": name});
                self.request("subscribe", params).await;
            }
            Socket::Plain(socket) => {
                let subscribe = Frame::Text(format!("+{name}").into());
                socket.feed(subscribe).await.expect("sent");
            }
            Socket::Nats(socket) => return socket.subscribe(&name).await,
        }
        self.flush().await;
        assert!(matches!(self.next().await, Got::Answer), "subscribed");
    }

    /// Publishes an event whose message has about `size` bytes for its readers.
    async fn publish(&mut self, channel: usize, size: usize) {
        let padded = |text: String| format!("{text:x<size$} {}", micros(), size = size - 17);
        match self {
            Socket::Ours(_, id) => {
                let body =
                    Body::Message(Message::text(format!("{} {}", "x".repeat(100), micros())));
                let key = Uuid::from_u128(u128::from(micros()) << 64 | u128::from(*id));
                let params = json!({"channel": format!("c{channel}"), "body": body, "key": key});
                self.request("publish", params).await;
            }
            Socket::Plain(socket) => {
                let text = padded(format!("c{channel} "));
                socket.feed(Frame::Text(text.into())).await.expect("sent");
            }
            Socket::Nats(socket) => socket.publish(&format!("c{channel}"), &padded(String::new())),
        }
    }

    async fn flush(&mut self) {
        match self {
            Socket::Ours(socket, _) | Socket::Plain(socket) => socket.flush().await.expect("sent"),
            Socket::Nats(socket) => socket.flush().await,
        }
    }

    async fn next(&mut self) -> Got {
        let (socket, is_ours) = match self {
            Socket::Ours(socket, _) => (socket, true),
            Socket::Plain(socket) => (socket, false),
            Socket::Nats(socket) => return socket.next().await,
        };
        loop {
            let text = match socket.next().await {
                Some(Ok(Frame::Text(text))) => text,
                Some(Ok(_)) => continue,
                other => panic!("no message: {other:?}"),
            };
            if text == "ok" || is_ours && text.starts_with("{\"id\":") {
                assert!(!text.contains("\"error\""), "{text}");
                return Got::Answer;
            }
            if !is_ours || text.starts_with("{\"method\":\"event\"") {
                return Got::Event(sent_at(&text), text.len());
            }
        }
    }
}

/// A side with its clients.
struct Running {
    name: &'static str,
    readers: JoinSet<()>,
    side: Side,
    delivered: Arc<Delivered>,
    writers: Vec<Socket>,
    /// Bytes of an event's message.
    size: Arc<AtomicUsize>,
}

/// Seconds of processor time that a process took.
fn processor(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let fields = stat.rsplit(") ").next().expect("fields").split(' ');
    let ticks: u64 = fields.skip(11).take(2).flat_map(str::parse::<u64>).sum();
    ticks as f64 / 100.0
}

impl Running {
    async fn start(name: &'static str, side: Side) -> Running {
        let (delivered, size) = (
            Arc::new(Delivered::default()),
            Arc::new(AtomicUsize::new(0)),
        );
        let mut readers = JoinSet::new();
        for n in 0..CHANNELS * READERS {
            let mut socket = side.open().await;
            socket.subscribe(n % CHANNELS).await;
            let (delivered, size) = (Arc::clone(&delivered), Arc::clone(&size));
            readers.spawn(async move {
                loop {
                    if let Got::Event(sent, bytes) = socket.next().await {
                        delivered.take(sent);
                        size.store(bytes, Ordering::Relaxed);
                    }
                }
            });
        }
        let mut writers = Vec::new();
        for _ in 0..CHANNELS {
            writers.push(side.open().await);
        }
        Running {
            name,
            readers,
            side,
            delivered,
            writers,
            size,
        }
    }

    /// Deliveries a second while each writer has this number of events under way.
    async fn round(&mut self, under_way: usize, size: usize) -> f64 {
        let before = processor(self.side.pid());
        let began = Instant::now();
        let mut writing = JoinSet::new();
        for (channel, mut socket) in self.writers.drain(..).enumerate() {
            writing.spawn(async move {
                let (mut waiting, mut all) = (0, 0);
                while waiting > 0 || began.elapsed() < ROUND {
                    while waiting < under_way && began.elapsed() < ROUND {
                        socket.publish(channel, size).await;
                        (waiting, all) = (waiting + 1, all + 1);
                    }
                    socket.flush().await;
                    if waiting == 0 {
                        break;
                    }
                    let mut got = Some(socket.next().await);
                    while got.is_some() {
                        waiting -= 1;
                        got = match waiting {
                            0 => None,
                            _ => socket.next().now_or_never(),
                        };
                    }
                }
                (channel, socket, all)
            });
        }
        let mut done = writing.join_all().await;
        let published: usize = done.iter().map(|(_, _, all)| all).sum();
        done.sort_by_key(|(channel, ..)| *channel);
        self.writers = done.into_iter().map(|(_, socket, _)| socket).collect();
        while self.delivered.count.load(Ordering::Relaxed) < (published * READERS) as u64 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let took = began.elapsed();
        let cost = (processor(self.side.pid()) - before) / (published * READERS) as f64;
        let cost = format!("{:.1} us of its server's processor each", cost * 1e6);
        self.delivered.report(
            &format!("{}, {under_way} under way: {cost}", self.name),
            took,
        )
    }
}

/// Deliveries of all sides in turns, with writers that wait for each answer, and with writers
/// that have several events under way.
pub(crate) async fn compare(folder: &Path, token: &str) {
    let ours = |role: &str| {
        let place = folder.join(role);
        std::fs::create_dir(&place).expect("a folder");
        std::fs::copy(folder.join("tokens.json"), place.join("tokens.json")).expect("copied");
        Side::Ours(Server::start(role, &place, None), token.to_owned())
    };
    let plain = Side::Plain(Server::start("broadcast", folder, None));
    let mut sides = vec![
        Running::start("plain broadcast, without a log", plain).await,
        Running::start("channel server", ours("server")).await,
    ];
    if let Some(program) = std::env::var_os("A99_BENCH_NATS") {
        let nats = async |kind| Side::Nats(Nats::start(&program, folder, kind).await);
        use crate::nats::Kind;
        sides.extend([
            Running::start("channel server, level power", ours("power")).await,
            Running::start("NATS, without a log", nats(Kind::Core).await).await,
            Running::start("NATS JetStream", nats(Kind::Stream).await).await,
            Running::start("NATS JetStream, sync always", nats(Kind::Synced).await).await,
        ]);
    }
    // The size of an event's message here, for all.
    sides[1].round(1, 0).await;
    let size = sides[1].size.load(Ordering::Relaxed);
    println!("{CHANNELS} channels of {READERS} readers, messages of {size} bytes");
    for under_way in [1, UNDER_WAY] {
        let mut rates = vec![Vec::new(); sides.len()];
        for _ in 0..ROUNDS {
            for (side, rates) in sides.iter_mut().zip(&mut rates) {
                rates.push(side.round(under_way, size).await);
            }
        }
        let plain = median(&mut rates[0]);
        for (side, rates) in sides.iter().zip(&mut rates) {
            let rate = median(rates);
            println!(
                "{}, {under_way} under way: {rate:.0} deliveries/s, {:.2} of a plain broadcast",
                side.name,
                rate / plain
            );
        }
    }
    for side in &mut sides {
        side.readers.shutdown().await;
    }
}
