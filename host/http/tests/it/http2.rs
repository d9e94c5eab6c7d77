//! HTTP/2, which TLS agrees on.

use crate::network::{PUBLIC, TestNet, code, get, limits, with};
use crate::tls::{self, Authority};
use a99_http::{FetchLimits, HttpFetch};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::time::Duration;

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let host = request
        .uri()
        .authority()
        .map(ToString::to_string)
        .unwrap_or_default();
    let agent = request.headers().get("x-a").cloned();
    let mut body = request.into_body().collect().await.unwrap().to_bytes();
    let response = Response::builder();
    let response = match path.as_str() {
        "/echo" => response
            .header("x-host", host)
            .header("x-b", agent.unwrap()),
        "/404" => response.status(404),
        "/large" => {
            body = vec![b'x'; 3 << 20].into();
            response
        }
        "/head" => response.header("a", "x".repeat(100_000)),
        "/302" => response.status(302).header("location", "http://127.0.0.1/"),
        _ => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            response
        }
    };
    Ok(response.body(Full::new(body)).unwrap())
}

async fn world(limits: FetchLimits) -> (crate::server::Server, HttpFetch) {
    let authority = Authority::new();
    let identity = authority.sign(&["good.test"], |_| {});
    let server = tls::server(&identity, "h2", |stream| async move {
        let connection = http2::Builder::new(TokioExecutor::new());
        let served = connection.serve_connection(TokioIo::new(stream), service_fn(answer));
        let _ = served.await;
    })
    .await;
    let net = TestNet::good(1).at(PUBLIC, 443, server.port);
    let fetch = net.builder("allow:good.test:443").limits(limits);
    let fetch = fetch.ca_pem(&authority.pem()).build().unwrap();
    (server, fetch)
}

#[tokio::test]
async fn requests_share_a_connection() {
    let (server, fetch) = world(limits()).await;
    let options =
        r#"{"method":"POST","headers":{"X-A":"b"},"body":"hi","responseType":"response"}"#;
    for _ in 0..3 {
        let answer = with(&fetch, "https://good.test/echo", options)
            .await
            .unwrap();
        assert_eq!(answer.get("body").unwrap().as_str(), Some("hi"));
        let headers = answer.get("headers").unwrap();
        assert_eq!(headers.get("x-host").unwrap().as_str(), Some("good.test"));
        assert_eq!(headers.get("x-b").unwrap().as_str(), Some("b"));
    }
    let missing = get(&fetch, "https://good.test/404").await.unwrap_err();
    assert_eq!(missing.to_string(), "HTTP 404 Not Found");
    assert_eq!(
        code(get(&fetch, "https://good.test/302").await),
        "fetch.denied"
    );
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn n08_limits_hold() {
    let limits = FetchLimits {
        max_body_bytes: 1 << 20,
        timeout: Duration::from_secs(5),
        ..limits()
    };
    let (_server, fetch) = world(limits).await;
    assert_eq!(
        code(get(&fetch, "https://good.test/large").await),
        "fetch.body_too_large"
    );
    let head = code(get(&fetch, "https://good.test/head").await);
    assert!(
        ["fetch.header_too_large", "fetch.protocol"].contains(&head),
        "{head}"
    );
    assert_eq!(
        code(get(&fetch, "https://good.test/slow").await),
        "fetch.timeout"
    );
}

#[tokio::test]
async fn n04_a_shared_connection_ends_with_its_permission() {
    let (server, fetch) = world(limits()).await;
    assert!(get(&fetch, "https://good.test/404").await.is_err());
    let narrow = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        fetch.set_policy("off".parse().unwrap());
    };
    let (slow, ()) = tokio::join!(get(&fetch, "https://good.test/slow"), narrow);
    assert_eq!(code(slow), "fetch.revoked");
    fetch.set_policy("allow:good.test:443".parse().unwrap());
    assert!(get(&fetch, "https://good.test/404").await.is_err());
    assert_eq!(server.connections(), 2);
}
