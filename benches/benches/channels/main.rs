//! Channels over the network: memory of idle connections, deliveries a second and their latency
//! beside a plain broadcast over WebSockets, and many clients that reconnect at once.
//!
//! Each server is a process, and the clients another.
//! `cargo bench -p a99-benches --features channels --bench channels [-- idle|fan|compare|reconnect]`
//! `A99_BENCH_NATS` is the path of a `nats-server`, to compare with it too.

mod fan;
mod nats;

use a99_channels::client::{Client, ClientOptions, Status};
use a99_channels::server::{ChannelServer, Limits};
use a99_channels::wire::Publish;
use a99_runtime::{Body, Host, Message};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use a99_server::{Authority, ListenOptions, Listener, NewToken, Scopes};
use a99_sqlite::Durability;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const ROLE: &str = "A99_BENCH_CHANNELS";
const FOLDER: &str = "A99_BENCH_FOLDER";
const ADDRESS: &str = "A99_BENCH_ADDRESS";

const CHANNELS: usize = 100;
const READERS: usize = 10;

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().build().expect("a runtime")
}

/// A server in a process of its own.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(role: &str, folder: &Path, address: Option<SocketAddr>) -> Server {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .env(ROLE, role)
            .env(FOLDER, folder)
            .stdout(Stdio::piped());
        if let Some(address) = address {
            command.env(ADDRESS, address.to_string());
        }
        let mut child = command.spawn().expect("started");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("output"));
        out.read_line(&mut line).expect("an address");
        let address = line.trim().parse().expect("an address");
        Server { child, address }
    }

    /// Resident memory in bytes.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("a status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kib.expect("memory") * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

async fn serve(folder: &Path, durability: Durability) {
    let options = StoreOptions {
        durability,
        ..StoreOptions::default()
    };
    let store = loop {
        match SqliteRuntime::open(folder.join("channels.db"), options.clone()) {
            Ok(store) => break Arc::new(store),
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    let host = Host::builder().start(store).await.expect("a host");
    let authority = Authority::open(folder.join("tokens.json")).expect("tokens");
    let mut options = ListenOptions::default();
    if let Ok(address) = std::env::var(ADDRESS) {
        options.address = address.parse().expect("an address");
    }
    let listener = Listener::bind(options).await.expect("a listener");
    println!("{}", listener.address());
    let server = ChannelServer::new(host, authority, Limits::default());
    let served = listener.serve(server.router(), std::future::pending());
    served.await.expect("served");
}

fn micros() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    u64::try_from(now.as_micros()).expect("a time")
}

/// Latencies of deliveries.
#[derive(Default)]
struct Delivered {
    count: AtomicU64,
    latencies: Mutex<Vec<u64>>,
}

impl Delivered {
    fn take(&self, sent: u64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let latency = micros().saturating_sub(sent);
        self.latencies.lock().expect("a lock").push(latency);
    }

    /// Prints what arrived. Gives the deliveries a second.
    fn report(&self, what: &str, took: Duration) -> f64 {
        let mut all = std::mem::take(&mut *self.latencies.lock().expect("a lock"));
        all.sort_unstable();
        let count = self.count.swap(0, Ordering::Relaxed);
        let at = |share: f64| {
            all.get((all.len() as f64 * share) as usize)
                .copied()
                .unwrap_or(0)
        };
        let rate = count as f64 / took.as_secs_f64();
        println!(
            "{what}: {count} deliveries, {rate:.0}/s; p50 {:.2} ms, p99 {:.2} ms, most {:.2} ms",
            at(0.5) as f64 / 1e3,
            at(0.99) as f64 / 1e3,
            all.last().copied().unwrap_or(0) as f64 / 1e3
        );
        rate
    }
}

fn median(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn say(channel: usize) -> Publish {
    Publish {
        channel: format!("c{channel}"),
        body: Body::Message(Message::text(format!("{} {}", "x".repeat(100), micros()))),
        participant: None,
        key: None,
        persist: true,
        attachments: Vec::new(),
    }
}

async fn connect(address: SocketAddr, token: &str) -> Client {
    let options = ClientOptions {
        first_pause: Duration::from_millis(50),
        max_pause: Duration::from_millis(500),
        ..ClientOptions::new(token)
    };
    let client = Client::connect(&format!("ws://{address}"), options).await;
    client.expect("a connection")
}

/// 10,000 connections, each with a subscription of one of 100 channels.
fn idle(folder: &Path, token: &str) {
    const CONNECTIONS: usize = 10_000;
    let server = Server::start("server", folder, None);
    runtime().block_on(async {
        let first = connect(server.address, token).await;
        let before = server.memory();
        let mut all = vec![first];
        let began = Instant::now();
        let mut events = Vec::new();
        for n in 0..CONNECTIONS {
            let client = connect(server.address, token).await;
            let name = format!("c{}", n % CHANNELS);
            events.push(
                client
                    .subscribe(&name, None, false)
                    .await
                    .expect("subscribed"),
            );
            all.push(client);
        }
        let took = began.elapsed();
        tokio::time::sleep(Duration::from_secs(2)).await;
        let each = (server.memory() - before) / CONNECTIONS as u64;
        println!(
            "idle: {CONNECTIONS} connections with a subscription in {:.1} s, {:.1} KB each",
            took.as_secs_f64(),
            each as f64 / 1e3
        );
    });
}

/// 100 channels with 10 readers each, all clients of this project: at 20,000 deliveries a second,
/// and as many as can be.
fn fan(folder: &Path, token: &str) {
    let server = Server::start("server", folder, None);
    runtime().block_on(async {
        let delivered = Arc::new(Delivered::default());
        for n in 0..CHANNELS * READERS {
            let client = connect(server.address, token).await;
            let name = format!("c{}", n % CHANNELS);
            let mut events = client
                .subscribe(&name, None, false)
                .await
                .expect("subscribed");
            let delivered = Arc::clone(&delivered);
            tokio::spawn(async move {
                while let Ok(event) = events.next().await {
                    if let Body::Message(message) = &event.body {
                        delivered.take(fan::sent_at(&message.content));
                    }
                }
            });
        }
        let mut writers = Vec::new();
        for _ in 0..CHANNELS {
            writers.push(connect(server.address, token).await);
        }
        // 2,000 events a second, 10 readers each.
        let began = Instant::now();
        let mut tick = tokio::time::interval(Duration::from_millis(10));
        let mut sending = tokio::task::JoinSet::new();
        for round in 0..1_000_usize {
            tick.tick().await;
            for n in 0..20 {
                let channel = (round * 20 + n) % CHANNELS;
                let writer = writers[channel].clone();
                sending.spawn(async move { writer.publish(say(channel), Vec::new()).await });
            }
        }
        while sending.join_next().await.is_some() {}
        delivered.report("fan-out at 20,000/s", began.elapsed());

        for under_way in [1, 32] {
            let began = Instant::now();
            let mut sending = tokio::task::JoinSet::new();
            for (channel, writer) in writers.iter().enumerate() {
                for _ in 0..under_way {
                    let writer = writer.clone();
                    sending.spawn(async move {
                        for _ in 0..320 / under_way {
                            let published = writer.publish(say(channel), Vec::new()).await;
                            published.expect("published");
                        }
                    });
                }
            }
            while sending.join_next().await.is_some() {}
            while delivered.count.load(Ordering::Relaxed) < (CHANNELS * READERS * 320) as u64 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let what = format!("fan-out through clients, {under_way} under way");
            delivered.report(&what, began.elapsed());
        }
    });
}

/// 1,000 clients whose server is killed and starts again.
fn reconnect(folder: &Path, token: &str) {
    let server = Server::start("server", folder, None);
    let address = server.address;
    runtime().block_on(async {
        let mut clients = Vec::new();
        for n in 0..1_000 {
            let client = connect(address, token).await;
            let name = format!("c{}", n % CHANNELS);
            let events = client
                .subscribe(&name, None, false)
                .await
                .expect("subscribed");
            clients.push((client, events));
        }
        drop(server);
        for (client, _) in &clients {
            let mut status = client.status();
            let down = status.wait_for(|status| matches!(status, Status::Reconnecting(_)));
            drop(down.await.expect("a status"));
        }
        let _server = Server::start("server", folder, Some(address));
        let began = Instant::now();
        for (client, _) in &clients {
            let mut status = client.status();
            let up = status.wait_for(|status| matches!(status, Status::Connected));
            drop(up.await.expect("a status"));
        }
        println!(
            "reconnect: 1,000 clients in {:.2} s",
            began.elapsed().as_secs_f64()
        );
        // Each goes on where it was.
        let writer = connect(address, token).await;
        for channel in 0..CHANNELS {
            writer
                .publish(say(channel), Vec::new())
                .await
                .expect("published");
        }
        for (_, events) in &mut clients {
            events.next().await.expect("an event");
        }
        println!(
            "reconnect: all got the next event after {:.2} s",
            began.elapsed().as_secs_f64()
        );
    });
}

fn main() {
    if let Ok(role) = std::env::var(ROLE) {
        let folder = std::env::var_os(FOLDER).expect("a folder");
        return runtime().block_on(async {
            match role.as_str() {
                "server" => serve(Path::new(&folder), Durability::Process).await,
                "power" => serve(Path::new(&folder), Durability::Power).await,
                _ => fan::broadcast().await,
            }
        });
    }
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    type Bench = fn(&Path, &str);
    let all: [(&str, Bench); 4] = [
        ("idle", idle),
        ("fan", fan),
        ("compare", |folder, token| {
            runtime().block_on(fan::compare(folder, token))
        }),
        ("reconnect", reconnect),
    ];
    for (name, bench) in all {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| wanted == name) {
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let authority = Authority::open(folder.path().join("tokens.json")).expect("tokens");
        let new = NewToken {
            name: "all".to_owned(),
            scopes: Scopes::parse(&["admin"]).expect("scopes"),
            lifetime: None,
        };
        let (token, _) = authority.issue(&new).expect("a token");
        bench(folder.path(), &token);
    }
}
