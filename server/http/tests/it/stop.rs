//! The stop: requests may end, and what does not end is cut.

use crate::client::{Running, app, rest, start, status};
use a99_server::ListenOptions;
use axum::Router;
use axum::routing::get;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt as _;
use tokio::time::sleep;

fn slow(time: Duration) -> Router {
    app().route(
        "/slow",
        get(move || async move {
            sleep(time).await;
            "done"
        }),
    )
}

async fn stopped(running: Running) -> Duration {
    let begin = Instant::now();
    running.stop().await;
    begin.elapsed()
}

#[tokio::test]
async fn a_request_ends_after_the_stop() {
    let running = start(ListenOptions::default(), slow(Duration::from_millis(600))).await;
    let mut stream = running.open().await;
    let again = running
        .request("GET /slow", "")
        .replace("Connection: close\r\n", "");
    stream.write_all(again.as_bytes()).await.unwrap();
    sleep(Duration::from_millis(100)).await;
    let time = stopped(running).await;
    let response = rest(&mut stream).await;
    assert!(
        status(&response) == 200 && response.ends_with("done"),
        "{response}"
    );
    assert!(
        time > Duration::from_millis(300) && time < Duration::from_secs(4),
        "{time:?}"
    );
}

#[tokio::test]
async fn a_request_without_end_is_cut() {
    let running = start(ListenOptions::default(), slow(Duration::from_secs(600))).await;
    let mut stream = running.open().await;
    stream
        .write_all(running.request("GET /slow", "").as_bytes())
        .await
        .unwrap();
    sleep(Duration::from_millis(100)).await;
    let time = stopped(running).await;
    assert!(
        time > Duration::from_secs(4) && time < Duration::from_secs(9),
        "{time:?}"
    );
    assert_eq!(rest(&mut stream).await, "");
}

#[tokio::test]
async fn idle_and_silent_clients_do_not_delay_the_stop() {
    let running = start(ListenOptions::default(), app()).await;
    let silent = running.open().await;
    let mut part = running.open().await;
    part.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let mut idle = running.open().await;
    let again = running
        .request("GET /", "")
        .replace("Connection: close\r\n", "");
    idle.write_all(again.as_bytes()).await.unwrap();
    sleep(Duration::from_millis(200)).await;
    let time = stopped(running).await;
    assert!(time < Duration::from_secs(2), "{time:?}");
    for mut stream in [silent, part] {
        assert_eq!(rest(&mut stream).await, "");
    }
    assert_eq!(status(&rest(&mut idle).await), 200);
}
