//! NATS for the comparison: the server of `A99_BENCH_NATS`, and a client of its text protocol.

use crate::fan::{Got, sent_at};
use crate::{CHANNELS, Server};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What the server keeps.
#[derive(Copy, Clone, PartialEq)]
pub(crate) enum Kind {
    /// No log.
    Core,
    /// A stream for each channel in files, synced every two minutes.
    Stream,
    /// The same, synced before each answer.
    Synced,
}

pub(crate) struct Nats {
    pub(crate) server: Server,
    kind: Kind,
    next: AtomicU64,
}

impl Nats {
    pub(crate) async fn start(program: &OsStr, folder: &Path, kind: Kind) -> Nats {
        let sync = if kind == Kind::Synced { "always" } else { "2m" };
        let folder = folder.join(format!("nats-{sync}-{}", kind == Kind::Core));
        let config = folder.with_extension("conf");
        let store = json!({"store_dir": folder, "sync_interval": sync});
        let text = match kind {
            Kind::Core => "max_connections: 100000\n".to_owned(),
            _ => format!("jetstream: {store}\n"),
        };
        std::fs::write(&config, text).expect("written");
        // Free a moment ago.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        let mut command = Command::new(program);
        command
            .arg("-c")
            .arg(&config)
            .args(["-a", "127.0.0.1", "-p"]);
        command.arg(address.port().to_string());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("started");
        while TcpStream::connect(address).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let nats = Nats {
            server: Server { child, address },
            kind,
            next: AtomicU64::new(0),
        };
        if kind != Kind::Core {
            let mut socket = nats.open().await;
            for channel in 0..CHANNELS {
                let name = format!("c{channel}");
                let stream = json!({"name": name, "subjects": [name], "storage": "file"});
                let subject = format!("$JS.API.STREAM.CREATE.{name}");
                socket.ask(&subject, &stream).await;
            }
        }
        nats
    }

    pub(crate) async fn open(&self) -> Socket {
        let stream = TcpStream::connect(self.server.address).await;
        let stream = stream.expect("connected");
        drop(stream.set_nodelay(true));
        let mut socket = Socket {
            stream,
            arrived: Vec::new(),
            out: Vec::new(),
            kind: self.kind,
            name: self.next.fetch_add(1, Ordering::Relaxed),
        };
        let connect = json!({"verbose": self.kind == Kind::Core, "pedantic": false});
        let inbox = format!("SUB _INBOX.{}.* 1\r\n", socket.name);
        socket
            .out
            .extend(format!("CONNECT {connect}\r\n{inbox}").bytes());
        socket.flush().await;
        if self.kind == Kind::Core {
            socket.next().await;
            socket.next().await;
        }
        socket
    }
}

/// A connection. Without a log the server answers each line with `+OK`; with one it answers the
/// events, once they are in the log.
pub(crate) struct Socket {
    stream: TcpStream,
    arrived: Vec<u8>,
    out: Vec<u8>,
    kind: Kind,
    name: u64,
}

impl Socket {
    pub(crate) async fn subscribe(&mut self, channel: &str) {
        if self.kind == Kind::Core {
            self.out.extend(format!("SUB {channel} 2\r\n").bytes());
            self.flush().await;
            self.next().await;
            return;
        }
        let deliver = format!("_A99.{}", self.name);
        self.out.extend(format!("SUB {deliver} 2\r\n").bytes());
        let config = json!({
            "deliver_subject": deliver,
            "deliver_policy": "new",
            "ack_policy": "none",
            "replay_policy": "instant",
        });
        let consumer = json!({"stream_name": channel, "config": config});
        let subject = format!("$JS.API.CONSUMER.CREATE.{channel}");
        self.ask(&subject, &consumer).await;
    }

    async fn ask(&mut self, subject: &str, params: &Value) {
        let params = params.to_string();
        let head = format!("PUB {subject} _INBOX.{}.a {}", self.name, params.len());
        self.out.extend(format!("{head}\r\n{params}\r\n").bytes());
        self.flush().await;
        self.next().await;
    }

    pub(crate) fn publish(&mut self, channel: &str, text: &str) {
        let head = match self.kind {
            Kind::Core => format!("PUB {channel} {}\r\n", text.len()),
            _ => format!("PUB {channel} _INBOX.{}.a {}\r\n", self.name, text.len()),
        };
        self.out.extend(head.bytes());
        self.out.extend(text.bytes());
        self.out.extend(b"\r\n");
    }

    pub(crate) async fn flush(&mut self) {
        self.stream.write_all(&self.out).await.expect("sent");
        self.out.clear();
    }

    /// The next event or answer. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Got {
        loop {
            if let Some(got) = self.taken() {
                return got;
            }
            let count = self.stream.read_buf(&mut self.arrived).await;
            assert!(count.expect("bytes") > 0, "the server is gone");
        }
    }

    /// Takes what arrived until the first event or answer.
    fn taken(&mut self) -> Option<Got> {
        loop {
            let end = self.arrived.windows(2).position(|two| two == b"\r\n")? + 2;
            let line = String::from_utf8_lossy(&self.arrived[..end]).into_owned();
            let words: Vec<&str> = line.trim_end().split(' ').collect();
            match words[0] {
                "MSG" => {
                    let length = words.last().and_then(|n| n.parse::<usize>().ok());
                    let until = end + length.expect("a length");
                    let text = self.arrived.get(end..until + 2)?;
                    let text = String::from_utf8_lossy(text).trim_end().to_owned();
                    self.arrived.drain(..until + 2);
                    if words[2] == "2" {
                        return Some(Got::Event(sent_at(&text), text.len()));
                    }
                    assert!(!text.contains("\"error\""), "{text}");
                    return Some(Got::Answer);
                }
                other => {
                    self.arrived.drain(..end);
                    match other {
                        "+OK" => return Some(Got::Answer),
                        // Sent with the next message; a round is shorter than the server waits.
                        "PING" => self.out.extend(b"PONG\r\n"),
                        "INFO" | "PONG" => {}
                        _ => panic!("{line}"),
                    }
                }
            }
        }
    }
}
