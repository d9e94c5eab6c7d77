//! WebSockets: the timers of requests do not apply to them, and they count as connections.

use crate::client::{Running, app, rest, start, status};
use a99_server::{Limits, ListenOptions};
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::routing::get;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;

async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if socket.send(message).await.is_err() {
            return;
        }
    }
}

async fn echoing(connections: usize) -> Running {
    let options = ListenOptions {
        limits: Limits {
            connections,
            header_timeout: Duration::from_millis(150),
            idle: Duration::from_millis(150),
            ..Limits::default()
        },
        ..ListenOptions::default()
    };
    let upgrade = get(async |upgrade: WebSocketUpgrade| upgrade.on_upgrade(echo));
    start(options, app().route("/socket", upgrade)).await
}

async fn upgraded(running: &Running) -> TcpStream {
    let mut stream = running.open().await;
    let head = running.request(
        "GET /socket\nUpgrade: websocket\nSec-WebSocket-Version: 13\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "",
    );
    let head = head.replace("Connection: close", "Connection: upgrade");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\n") {
        response.push(stream.read_u8().await.unwrap());
    }
    let response = String::from_utf8(response).unwrap();
    assert!(status(&response) == 101, "{response}");
    // The accept of the key, from RFC 6455.
    assert!(
        response.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
        "{response}"
    );
    stream
}

/// Sends a frame with a mask of zeros, and expects its text back.
async fn echoes(stream: &mut TcpStream) {
    stream.write_all(b"\x81\x82\0\0\0\0hi").await.unwrap();
    let mut frame = [0; 4];
    stream.read_exact(&mut frame).await.unwrap();
    assert_eq!(&frame, b"\x81\x02hi");
}

#[tokio::test]
async fn an_idle_websocket_stays() {
    let running = echoing(10).await;
    let mut stream = upgraded(&running).await;
    echoes(&mut stream).await;
    sleep(Duration::from_millis(800)).await;
    echoes(&mut stream).await;
    sleep(Duration::from_millis(800)).await;
    echoes(&mut stream).await;
}

#[tokio::test]
async fn websockets_count_as_connections() {
    let running = echoing(1).await;
    let mut stream = upgraded(&running).await;
    assert_eq!(status(&running.ask("GET /", "").await), 503);
    echoes(&mut stream).await;
    drop(stream);
    sleep(Duration::from_millis(200)).await;
    assert_eq!(status(&running.ask("GET /", "").await), 200);
}

#[tokio::test]
async fn the_stop_waits_for_websockets_only_so_long() {
    let running = echoing(10).await;
    let mut stream = upgraded(&running).await;
    let begin = std::time::Instant::now();
    running.stop().await;
    let time = begin.elapsed();
    assert!(
        time > Duration::from_secs(4) && time < Duration::from_secs(9),
        "{time:?}"
    );
    // The handler did not end its socket, and its task still runs.
    echoes(&mut stream).await;
    stream.shutdown().await.unwrap();
    rest(&mut stream).await;
}
