//! A server for a test, and clients that send bytes.

use a99_server::{ListenOptions, Listener};
use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longer than any limit of a test.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running server; it stops when it is dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    done: JoinHandle<()>,
}

/// An application with a page, and one that counts the bytes of a body.
pub(crate) fn app() -> Router {
    let count = async |body: Bytes| body.len().to_string();
    Router::new()
        .route("/", get(async || "here"))
        .route("/count", post(count))
}

pub(crate) async fn start(options: ListenOptions, app: Router) -> Running {
    let listener = Listener::bind(options).await.unwrap();
    let address = listener.address();
    let (stop, stopped) = oneshot::channel();
    let serving = listener.serve(app, async {
        let _ = stopped.await;
    });
    let done = tokio::spawn(async { serving.await.unwrap() });
    Running {
        address,
        stop: Some(stop),
        done,
    }
}

impl Running {
    pub(crate) async fn open(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends a request with `Connection: close`, and returns the whole response.
    pub(crate) async fn ask(&self, head: &str, body: &str) -> String {
        let mut stream = self.open().await;
        stream
            .write_all(self.request(head, body).as_bytes())
            .await
            .unwrap();
        rest(&mut stream).await
    }

    /// A request with a right Host; `head` is the request line and further headers, by `\n`.
    pub(crate) fn request(&self, head: &str, body: &str) -> String {
        let (line, more) = head.split_once('\n').unwrap_or((head, ""));
        let more: String = more.lines().map(|line| format!("{line}\r\n")).collect();
        let host = match more.lines().any(|line| line.starts_with("Host:")) {
            true => String::new(),
            false => format!("Host: {}\r\n", self.address),
        };
        let length = match body.len() {
            0 => String::new(),
            length => format!("Content-Length: {length}\r\n"),
        };
        format!("{line} HTTP/1.1\r\n{host}Connection: close\r\n{length}{more}\r\n{body}")
    }

    /// Stops it and waits for its end.
    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        timeout(PATIENCE, self.done).await.unwrap().unwrap();
    }
}

/// All that a server still sends; a reset ends it as a close does.
pub(crate) async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    let _ = read.expect("the server closes");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The status of a response.
pub(crate) fn status(response: &str) -> u16 {
    let code = response.split(' ').nth(1).unwrap_or_default();
    code.parse()
        .unwrap_or_else(|_| panic!("no status: {response:?}"))
}

/// The code of an error.
pub(crate) fn code(response: &str) -> String {
    let body = response.split("\r\n\r\n").nth(1).unwrap_or_default();
    let body: serde_json::Value =
        serde_json::from_str(body).unwrap_or_else(|_| panic!("no JSON: {response:?}"));
    let error = &body["error"];
    assert!(
        error["message"].is_string() && error["help"].is_string(),
        "{body}"
    );
    error["code"].as_str().unwrap().to_owned()
}
