//! Clients that are slow, silent, too large or too many: they are refused, and the server serves
//! others.

use crate::client::{Running, app, code, rest, start, status};
use a99_server::{Limits, ListenOptions};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get;
use hyper::body::Frame;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;

const fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// Short limits for a test.
fn limits() -> Limits {
    Limits {
        header_timeout: ms(300),
        body_timeout: ms(900),
        max_body_bytes: 1000,
        max_header_bytes: 8 << 10,
        idle: ms(900),
        ..Limits::default()
    }
}

async fn limited(limits: Limits) -> Running {
    let options = ListenOptions {
        limits,
        ..ListenOptions::default()
    };
    start(options, app()).await
}

async fn works(running: &Running) {
    let response = running.ask("POST /count", "123").await;
    assert!(response.ends_with("\r\n\r\n3"), "{response}");
}

#[tokio::test]
async fn silent_clients_are_closed_beside_one_that_works() {
    let running = limited(limits()).await;
    let begin = Instant::now();
    let mut silent = Vec::new();
    for _ in 0..64 {
        silent.push(running.open().await);
    }
    works(&running).await;
    for stream in &mut silent {
        assert_eq!(rest(stream).await, "");
    }
    assert!(begin.elapsed() >= ms(290), "{:?}", begin.elapsed());
    assert!(begin.elapsed() < ms(5000), "{:?}", begin.elapsed());
    works(&running).await;
}

#[tokio::test]
async fn a_slow_head_is_cut() {
    let running = limited(limits()).await;
    let mut stream = running.open().await;
    let begin = Instant::now();
    let head = running.request("GET /", "");
    let mut sent = 0;
    for byte in head.bytes() {
        if stream.write_all(&[byte]).await.is_err() {
            break;
        }
        sent += 1;
        sleep(ms(25)).await;
    }
    assert!(sent < head.len(), "the server waited {:?}", begin.elapsed());
    assert!(!rest(&mut stream).await.contains("200"));
    works(&running).await;
}

#[tokio::test]
async fn connections_stay_open_between_requests_but_not_long() {
    let running = limited(limits()).await;
    let mut stream = running.open().await;
    let again = running
        .request("GET /", "")
        .replace("Connection: close\r\n", "");
    let ask = async |stream: &mut TcpStream| {
        stream.write_all(again.as_bytes()).await.unwrap();
        let mut buf = [0; 1000];
        let read = stream.read(&mut buf).await.unwrap();
        assert!(buf.starts_with(b"HTTP/1.1 200") && buf[..read].ends_with(b"here"));
    };
    ask(&mut stream).await;
    // Longer than a head may take.
    sleep(ms(500)).await;
    ask(&mut stream).await;
    let begin = Instant::now();
    assert_eq!(rest(&mut stream).await, "");
    assert!(
        begin.elapsed() >= ms(800) && begin.elapsed() < ms(5000),
        "{:?}",
        begin.elapsed()
    );
    // The next head has the time of a head, not that of an idle connection.
    let mut stream = running.open().await;
    ask(&mut stream).await;
    stream.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let begin = Instant::now();
    assert_eq!(rest(&mut stream).await, "");
    assert!(begin.elapsed() < ms(800), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn slow_bodies_end_with_408() {
    let running = limited(limits()).await;
    let head = running.request("POST /count\nContent-Length: 900", "");
    // The pause is shorter than the timeout, which is for the whole body.
    for (pauses, pause) in [(0, ms(0)), (3, ms(250))] {
        let mut stream = running.open().await;
        let begin = Instant::now();
        stream.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..pauses {
            sleep(pause).await;
            stream.write_all(b"x").await.unwrap();
        }
        let response = rest(&mut stream).await;
        let found = (status(&response), code(&response));
        assert_eq!(found, (408, "server.body_timeout".to_owned()));
        assert!(begin.elapsed() < ms(1500), "{:?}", begin.elapsed());
    }
    works(&running).await;
}

#[tokio::test]
async fn large_bodies_end_with_413() {
    let running = limited(limits()).await;
    let most = "x".repeat(1000);
    assert!(
        running
            .ask("POST /count", &most)
            .await
            .ends_with("\r\n\r\n1000")
    );
    let refused = (413, "server.body_too_large".to_owned());
    let response = running.ask("POST /count", &(most.clone() + "x")).await;
    assert_eq!((status(&response), code(&response)), refused);
    // Only declared: nothing of it is awaited.
    let response = running
        .ask("POST /count\nContent-Length: 99999999999", "")
        .await;
    assert_eq!((status(&response), code(&response)), refused);
    // More than the buffers of sockets hold: the client gets the response nevertheless.
    let large = "x".repeat(8 << 20);
    for _ in 0..8 {
        let mut stream = running.open().await;
        let request = running.request("POST /count", &large);
        stream.write_all(request.as_bytes()).await.unwrap();
        let response = rest(&mut stream).await;
        assert_eq!((status(&response), code(&response)), refused);
    }
    let mut stream = running.open().await;
    let head = running.request("POST /count\nTransfer-Encoding: chunked", "");
    let chunks = format!("{head}3e8\r\n{most}\r\n1\r\nx\r\n0\r\n\r\n");
    stream.write_all(chunks.as_bytes()).await.unwrap();
    let response = rest(&mut stream).await;
    assert_eq!((status(&response), code(&response)), refused);
    works(&running).await;
}

#[tokio::test]
async fn large_heads_end_with_431() {
    let running = limited(limits()).await;
    let allowed = running
        .ask(&format!("GET /\nX-A: {}", "x".repeat(7000)), "")
        .await;
    assert_eq!(status(&allowed), 200);
    for head in [
        format!("GET /\nX-A: {}", "x".repeat(9000)),
        format!("GET /\n{}", "X-A: 1\n".repeat(200)),
    ] {
        let mut stream = running.open().await;
        // The server may close before all is sent.
        let _ = stream
            .write_all(running.request(&head, "").as_bytes())
            .await;
        let mut buf = [0; 12];
        stream.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"HTTP/1.1 431");
    }
    works(&running).await;
}

#[tokio::test]
async fn too_many_connections_end_with_503() {
    for limits in [
        Limits {
            connections: 2,
            ..limits()
        },
        Limits {
            per_address: Some(2),
            ..limits()
        },
    ] {
        let limits = Limits {
            header_timeout: ms(10_000),
            ..limits
        };
        let running = limited(limits).await;
        let held = [running.open().await, running.open().await];
        // Accepted in their order, so before this one.
        let response = running.ask("GET /", "").await;
        assert_eq!(
            (status(&response), code(&response)),
            (503, "server.busy".to_owned())
        );
        let mut many = Vec::new();
        for _ in 0..100 {
            many.push(running.open().await);
        }
        // Silent ones beyond the limit have a second at most, and some none.
        let begin = Instant::now();
        for stream in &mut many {
            assert_eq!(rest(stream).await, "");
        }
        assert!(begin.elapsed() < ms(5000), "{:?}", begin.elapsed());
        drop(held);
        sleep(ms(100)).await;
        works(&running).await;
    }
}

/// A body without end.
struct Endless;

impl hyper::body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = Bytes::from_static(&[b'x'; 64 << 10]);
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }
}

const LARGE: usize = 32 << 20;

/// A server with one slot, of long responses.
async fn large() -> Running {
    let chunk = Bytes::from(vec![b'x'; LARGE]);
    let app = Router::new()
        .route("/", get(async || Body::from(chunk)))
        .route("/endless", get(async || Body::new(Endless)));
    let limits = Limits {
        connections: 1,
        idle: ms(500),
        ..limits()
    };
    start(
        ListenOptions {
            limits,
            ..ListenOptions::default()
        },
        app,
    )
    .await
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_closed() {
    for path in ["/", "/endless"] {
        let running = large().await;
        let mut stream = running.open().await;
        let request = running.request(&format!("GET {path}"), "");
        stream.write_all(request.as_bytes()).await.unwrap();
        sleep(ms(100)).await;
        assert_eq!(status(&running.ask("GET /", "").await), 503);
        sleep(ms(1500)).await;
        // The only slot is free again.
        assert_eq!(status(&running.ask("GET /", "").await), 200, "{path}");
        let cut = rest(&mut stream).await;
        assert!(cut.len() < LARGE, "{}", cut.len());
    }
}

#[tokio::test]
async fn a_client_that_takes_a_long_response_slowly_gets_all() {
    let running = large().await;
    for connection in ["keep-alive", "close"] {
        let request = running.request("GET /", "");
        let request = request.replace("close", connection);
        let mut stream = running.open().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut buf = vec![0; 1 << 20];
        let mut got = 0;
        let begin = Instant::now();
        while got < LARGE {
            // All together takes longer than an idle connection may stay.
            let read = stream.read(&mut buf).await.unwrap();
            assert!(read > 0, "cut after {got} bytes and {:?}", begin.elapsed());
            got += read;
            sleep(ms(50).mul_f64(read as f64 / buf.len() as f64)).await;
        }
        assert!(begin.elapsed() > ms(1200), "{:?}", begin.elapsed());
        drop(stream);
        sleep(ms(100)).await;
    }
}

#[tokio::test]
async fn a_long_response_ends_after_the_stop() {
    let running = large().await;
    let mut stream = running.open().await;
    let request = running.request("GET /", "").replace("close", "keep-alive");
    stream.write_all(request.as_bytes()).await.unwrap();
    sleep(ms(200)).await;
    let (response, ()) = tokio::join!(
        async {
            // The stop comes first.
            sleep(ms(200)).await;
            rest(&mut stream).await
        },
        running.stop()
    );
    let body = response.split("\r\n\r\n").nth(1).unwrap();
    assert_eq!(body.len(), LARGE);
}

#[tokio::test]
async fn the_server_survives_garbage_and_half_open_clients() {
    let panics = async || -> &'static str { panic!("on purpose") };
    let options = ListenOptions {
        limits: limits(),
        ..ListenOptions::default()
    };
    let running = start(options, app().route("/panics", get(panics))).await;
    for garbage in [
        &b"\0\0\0\0"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\r\n\r\n",
        b"POST /count HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /count HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /count HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc",
    ] {
        let mut stream = running.open().await;
        stream.write_all(garbage).await.unwrap();
        let response = rest(&mut stream).await;
        let is_refused = response.is_empty() || (400..500).contains(&status(&response));
        assert!(is_refused, "{response}");
    }
    for head in ["GET /", "POST /count\nContent-Length: 900"] {
        let text = running.request(head, "");
        let mut stream = running.open().await;
        stream
            .write_all(&text.as_bytes()[..text.len() - 1])
            .await
            .unwrap();
        stream.shutdown().await.unwrap();
        let response = rest(&mut stream).await;
        assert!(!response.contains(" 200 "), "{response}");
    }
    assert_eq!(running.ask("GET /panics", "").await, "");
    works(&running).await;
}

#[tokio::test]
async fn extreme_limits_are_limits_nevertheless() {
    let most = Duration::MAX;
    let running = limited(Limits {
        connections: usize::MAX,
        per_address: Some(usize::MAX),
        header_timeout: most,
        body_timeout: most,
        max_body_bytes: usize::MAX,
        max_header_bytes: usize::MAX,
        idle: most,
    })
    .await;
    works(&running).await;
    running.stop().await;
    let least = limited(Limits {
        connections: 0,
        max_header_bytes: 0,
        ..limits()
    })
    .await;
    works(&least).await;
}

#[tokio::test]
async fn idle_connections_may_have_less_time_than_heads() {
    let running = limited(Limits {
        header_timeout: ms(10_000),
        idle: ms(300),
        ..limits()
    })
    .await;
    let mut stream = running.open().await;
    let again = running
        .request("GET /", "")
        .replace("Connection: close\r\n", "");
    let begin = Instant::now();
    stream.write_all(again.as_bytes()).await.unwrap();
    assert_eq!(status(&rest(&mut stream).await), 200);
    assert!(begin.elapsed() < ms(5000), "{:?}", begin.elapsed());
}
