//! Answers that hosts read as they come.

use crate::network::{TestNet, limits};
use crate::server::{Server, answer, ok, read_request, to};
use a99_capabilities::Secret;
use a99_http::{FetchError, FetchLimits, Policy, StreamRequest, StreamingAnswer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

const URL: &str = "http://good.test/v1/stream";
const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
    Transfer-Encoding: chunked\r\n\r\n";

async fn rest(answer: &mut StreamingAnswer) -> Result<Vec<u8>, FetchError> {
    let mut all = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        assert!(!chunk.is_empty());
        all.extend_from_slice(&chunk);
    }
    Ok(all)
}

fn opened(result: Result<StreamingAnswer, FetchError>) -> &'static str {
    result.map_or_else(|error| error.code().name(), |_| "opened")
}

#[tokio::test]
async fn a_body_comes_as_it_is_sent() {
    let go_on = Arc::new(Notify::new());
    let gone = Arc::clone(&go_on);
    let server = Server::raw(move |mut stream, _| {
        let gone = Arc::clone(&gone);
        async move {
            read_request(&mut stream).await.unwrap();
            stream.write_all(CHUNKED).await.unwrap();
            stream.write_all(b"5\r\nfirst\r\n").await.unwrap();
            gone.notified().await;
            stream.write_all(b"6\r\nsecond\r\n0\r\n\r\n").await.unwrap();
            let _ = stream.read_u8().await;
        }
    })
    .await;
    // The time of a fetch is not that of a stream.
    let short = FetchLimits {
        timeout: Duration::from_millis(1),
        ..limits()
    };
    let net = TestNet::good(server.port);
    let fetch = net.fetch_within("allow:good.test:80", short);
    let mut answer = fetch.open(StreamRequest::get(URL)).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(&*answer.chunk().await.unwrap().unwrap(), b"first");
    go_on.notify_one();
    assert_eq!(rest(&mut answer).await.unwrap(), b"second");
    assert_eq!(answer.chunk().await.unwrap(), None, "the end stays the end");
}

#[tokio::test]
async fn a_request_has_what_it_was_given() {
    let server = Server::always(answer("429 Slow\nRetry-After: 7", "later")).await;
    let net = TestNet::good(server.port);
    let fetch = net.fetch("allow:good.test:80");
    let request = StreamRequest::post(URL, "{}")
        .header("Content-Type", "application/json")
        .header("X-Version", "1");
    let mut answer = fetch.open(request).await.unwrap();
    assert_eq!(
        (answer.status(), answer.header("retry-after")),
        (429, Some("7"))
    );
    assert_eq!(rest(&mut answer).await.unwrap(), b"later");
    let sent = server.requests().remove(0).to_lowercase();
    for line in [
        "post /v1/stream http/1.1",
        "content-type: application/json",
        "x-version: 1",
        "accept-encoding: identity",
        "content-length: 2",
    ] {
        assert!(sent.contains(&format!("{line}\r\n")), "{line}: {sent}");
    }
}

#[tokio::test]
async fn what_holds_for_fetches_holds_for_streams() {
    let server = Server::new(|request| match request.split(' ').nth(1).unwrap() {
        "/redirect" => to(307, "/v1/stream"),
        "/packed" => answer("200 OK\nContent-Encoding: gzip", "x"),
        _ => ok("fine"),
    })
    .await;
    let net = TestNet::good(server.port).otherwise("93.184.216.35");
    let fetch = net.fetch_within(
        "allow:good.test:80",
        FetchLimits {
            max_body_bytes: 3,
            max_requests: Some(4),
            ..limits()
        },
    );
    let open = |path: &str| fetch.open(StreamRequest::get(format!("http://{path}")));
    assert_eq!(opened(open("evil.test/").await), "fetch.denied");
    assert_eq!(opened(open("good.test/redirect").await), "fetch.redirect");
    assert_eq!(opened(open("good.test/packed").await), "fetch.encoding");
    let large = fetch.open(StreamRequest::post(URL, "four")).await;
    assert_eq!(opened(large), "fetch.body");
    let header = StreamRequest::get(URL).header("Host", "evil.test");
    assert_eq!(opened(fetch.open(header).await), "fetch.header");
    let mut answer = open("good.test/").await.unwrap();
    let error = rest(&mut answer).await.unwrap_err();
    assert_eq!(error.code().name(), "fetch.body_too_large");
    assert_eq!(answer.chunk().await.unwrap_err(), error, "and it stays so");
    let own = StreamRequest::get(URL).max_body_bytes(2);
    let mut answer = fetch.open(own).await.unwrap();
    let error = rest(&mut answer).await.unwrap_err();
    assert!(error.to_string().contains('2'), "{error}");
    assert_eq!(opened(open("good.test/").await), "fetch.quota");
}

#[tokio::test]
async fn a_body_that_is_cut_is_an_error() {
    let server = Server::raw(|mut stream, _| async move {
        read_request(&mut stream).await.unwrap();
        stream.write_all(CHUNKED).await.unwrap();
        stream.write_all(b"5\r\nfirst\r\n").await.unwrap();
    })
    .await;
    let fetch = TestNet::good(server.port).fetch("allow:good.test:80");
    let mut answer = fetch.open(StreamRequest::get(URL)).await.unwrap();
    assert_eq!(&*answer.chunk().await.unwrap().unwrap(), b"first");
    assert_eq!(
        answer.chunk().await.unwrap_err().code().name(),
        "fetch.closed"
    );
}

/// A server that sends a piece and says when the other side is gone.
async fn endless() -> (Server, Arc<AtomicBool>) {
    let closed: Arc<AtomicBool> = Arc::default();
    let noted = Arc::clone(&closed);
    let server = Server::raw(move |mut stream, _| {
        let noted = Arc::clone(&noted);
        async move {
            read_request(&mut stream).await.unwrap();
            stream.write_all(CHUNKED).await.unwrap();
            stream.write_all(b"1\r\nx\r\n").await.unwrap();
            let _ = stream.read_u8().await;
            noted.store(true, Ordering::SeqCst);
        }
    })
    .await;
    (server, closed)
}

async fn until(closed: &AtomicBool) {
    for _ in 0..2_000 {
        if closed.load(Ordering::SeqCst) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the connection stays open");
}

#[tokio::test]
async fn dropping_an_answer_closes_its_connection() {
    let (server, closed) = endless().await;
    let fetch = TestNet::good(server.port).fetch("allow:good.test:80");
    let mut answer = fetch.open(StreamRequest::get(URL)).await.unwrap();
    answer.chunk().await.unwrap();
    assert!(!closed.load(Ordering::SeqCst));
    drop(answer);
    until(&closed).await;
}

#[tokio::test]
async fn another_policy_ends_a_stream() {
    let (server, closed) = endless().await;
    let fetch = TestNet::good(server.port).fetch("allow:good.test:80");
    let mut answer = fetch.open(StreamRequest::get(URL)).await.unwrap();
    answer.chunk().await.unwrap();
    let waiting = tokio::spawn(async move {
        let ended = answer.chunk().await;
        (ended.unwrap_err().code().name(), answer)
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    fetch.set_policy(Policy::off());
    let (code, answer) = waiting.await.unwrap();
    assert_eq!(code, "fetch.revoked");
    drop(answer);
    until(&closed).await;
}

#[tokio::test]
async fn secrets_are_sent_and_not_shown() {
    let server = Server::always(ok("fine")).await;
    let net = TestNet::default();
    let fetch = net.builder(&format!("allow:127.0.0.1:{}", server.port));
    let fetch = fetch.dialer(a99_http::SystemDialer).build().unwrap();
    let secret = || Secret::new("Bearer s3cret");
    let url = format!("http://127.0.0.1:{}/s3cret", server.port);
    let request = StreamRequest::post(url, "s3cret").credential("authorization", secret());
    assert!(!format!("{request:?}").contains("s3cret"));
    let answer = fetch.open(request).await.unwrap();
    assert!(!format!("{answer:?}").contains("s3cret"));
    assert!(
        server.requests()[0]
            .to_lowercase()
            .contains("authorization: bearer s3cret")
    );
    // In the clear it goes nowhere but to the loopback.
    let request = StreamRequest::get(URL).credential("authorization", secret());
    assert_eq!(
        request.check().unwrap_err().code().name(),
        "fetch.credentials"
    );
    let error = fetch.open(request).await.unwrap_err();
    assert_eq!(error.code().name(), "fetch.credentials");
    assert!(!error.to_string().contains("s3cret"));
}

#[tokio::test]
async fn n05_followed_redirects_are_judged_and_leave_credentials_behind() {
    let other = Server::always(ok("from there")).await;
    let there = format!("http://127.0.0.1:{}/end", other.port);
    let server = Server::new(move |request| match request.split(' ').nth(1).unwrap() {
        "/same" => to(307, "/end"),
        "/there" => to(307, &there),
        "/inside" => to(302, "http://10.0.0.1/"),
        "/metadata" => to(302, "http://169.254.169.254/latest/"),
        "/file" => to(302, "file:///etc/passwd"),
        "/loop" => to(302, "/loop"),
        _ => ok("from here"),
    })
    .await;
    let net = TestNet::default();
    let rules = format!("full:127.0.0.1:{},127.0.0.1:{}", server.port, other.port);
    let fetch = net.builder(&rules).dialer(a99_http::SystemDialer);
    let fetch = fetch.build().unwrap();
    let open = |path: &str| {
        let request = StreamRequest::get(format!("http://127.0.0.1:{}{path}", server.port));
        let request = request.basic_auth("user", &Secret::new("pass"));
        fetch.open(request.follow_redirects())
    };
    let same = rest(&mut open("/same").await.unwrap()).await.unwrap();
    let there = rest(&mut open("/there").await.unwrap()).await.unwrap();
    assert_eq!((&*same, &*there), (&b"from here"[..], &b"from there"[..]));
    let has = |request: &String| request.contains("authorization: Basic dXNlcjpwYXNz");
    assert!(server.requests().iter().all(has), "{:?}", server.requests());
    let sent = &other.requests()[0];
    assert!(!sent.to_lowercase().contains("authorization"), "{sent}");
    for (path, code) in [
        ("/inside", "fetch.denied"),
        ("/metadata", "fetch.denied"),
        ("/file", "fetch.scheme"),
        ("/loop", "fetch.redirect"),
    ] {
        assert_eq!(opened(open(path).await), code, "{path}");
    }
}
