//! Servers of these tests: plain TCP that says what it is told to say.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A server; it ends with its test.
pub(crate) struct Server {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Answers each request by a function; nothing ends the connection.
    pub(crate) async fn new(
        answer: impl Fn(&str) -> Vec<u8> + Send + Sync + Clone + 'static,
    ) -> Server {
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&requests);
        let mut server = Server::raw(move |stream, _| {
            let (answer, seen) = (answer.clone(), Arc::clone(&seen));
            serve(stream, seen, answer)
        })
        .await;
        server.requests = requests;
        server
    }

    /// Answers each request with the same.
    pub(crate) async fn always(answer: impl Into<Vec<u8>>) -> Server {
        let answer = answer.into();
        Server::new(move |_| answer.clone()).await
    }

    /// Does with each connection, which are numbered, whatever it wants.
    pub(crate) async fn raw<F>(play: impl Fn(TcpStream, usize) -> F + Send + 'static) -> Server
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections: Arc<AtomicUsize> = Arc::default();
        let count = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(play(stream, number));
            }
        });
        Server {
            port,
            requests: Arc::default(),
            connections,
            task,
        }
    }

    /// The requests so far, with their bodies.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// How many connections were made.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Answers requests until the other side or the answer ends it.
pub(crate) async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    seen: Arc<Mutex<Vec<String>>>,
    answer: impl Fn(&str) -> Vec<u8>,
) {
    while let Some(request) = read_request(&mut stream).await {
        let bytes = answer(&request);
        seen.lock().unwrap().push(request);
        if bytes.is_empty() || stream.write_all(&bytes).await.is_err() {
            return;
        }
        if String::from_utf8_lossy(&bytes)
            .to_lowercase()
            .contains("connection: close")
        {
            let _ = stream.shutdown().await;
            return;
        }
    }
}

/// The next request of a connection.
pub(crate) async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        stream
            .read_buf(&mut bytes)
            .await
            .ok()
            .filter(|read| *read > 0)?;
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.parse().unwrap());
    while bytes.len() < head + length {
        stream
            .read_buf(&mut bytes)
            .await
            .ok()
            .filter(|read| *read > 0)?;
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// An answer: status and headers as lines, and a body.
pub(crate) fn answer(head: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = head.trim().replace('\n', "\r\n");
    let mut bytes = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut bytes = std::mem::take(&mut bytes).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// A plain one.
pub(crate) fn ok(body: &str) -> Vec<u8> {
    answer("200 OK\nContent-Type: text/plain", body)
}

/// A redirect.
pub(crate) fn to(status: u16, location: &str) -> Vec<u8> {
    answer(&format!("{status} Moved\nLocation: {location}"), "")
}
