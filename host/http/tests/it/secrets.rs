//! Secrets stay where they are (security N18): no error and no printed value has
//! one.

use crate::network::{TestNet, code, limits, with};
use crate::server::{Server, answer, to};
use a99_http::FetchLimits;
use std::time::Duration;

const OPTIONS: &str = r#"{"method":"POST","headers":{"Authorization":"Bearer s3cret","Cookie":"a=s3cret","X-Key":"s3cret"},"body":"s3cret"}"#;

#[tokio::test]
async fn n18_errors_name_the_origin_alone() {
    let server = Server::new(|request| {
        let path = request.split(' ').nth(1).unwrap();
        let place = path.split('?').next().unwrap();
        match place {
            "/404" => answer("404 s3cret\nX-Answer: s3cret", "s3cret"),
            "/json" => answer("200 OK\nContent-Type: application/json", "s3cret"),
            "/closed" => {
                b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\ns3cret".to_vec()
            }
            "/odd" => b"HTTP/1.1 s3cret OK\r\nConnection: close\r\n\r\n".to_vec(),
            "/header" => {
                b"HTTP/1.1 200 OK\r\ns3cret s3cret: 1\r\nConnection: close\r\n\r\n".to_vec()
            }
            "/coding" => answer("200 OK\nContent-Encoding: s3cret", "s3cret"),
            "/gzip" => answer("200 OK\nContent-Encoding: gzip", "s3cret"),
            "/loop" => to(307, "/loop?s3cret"),
            "/inside" => to(302, "http://127.0.0.1/s3cret?s3cret"),
            "/scheme" => to(302, "s3cret://s3cret/"),
            "/user" => to(302, "http://s3cret:s3cret@good.test/"),
            "/url" => to(302, "http://[s3cret/"),
            "/body" => to(307, "http://other.test/s3cret"),
            "/large" => b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\ns3cret".to_vec(),
            _ => b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ns".to_vec(),
        }
    })
    .await;
    let limits = FetchLimits {
        timeout: Duration::from_secs(2),
        ..limits()
    };
    let net = TestNet::good(server.port).name("other.test", &["198.41.0.4"]);
    let fetch = net.fetch_within("full", limits);
    let mut codes = std::collections::BTreeSet::new();
    for place in [
        "404", "json", "closed", "odd", "header", "coding", "gzip", "loop", "inside", "scheme",
        "user", "url", "body", "large", "slow",
    ] {
        let url = format!("http://good.test/{place}?key=s3cret#s3cret");
        let error = with(&fetch, &url, OPTIONS).await.unwrap_err();
        codes.insert(error.code().name());
        let told = format!("{error} {error:?} {fetch:?}");
        assert!(!told.contains("s3cret"), "{place}: {told}");
        assert!(!told.to_lowercase().contains("bearer"), "{place}: {told}");
    }
    assert!(codes.len() >= 11, "{codes:?}");
}

#[tokio::test]
async fn n18_what_is_refused_beforehand_is_not_repeated() {
    let fetch = TestNet::default().fetch("allow:good.test:80");
    for (url, options) in [
        ("http://s3cret:s3cret@good.test/", "{}"),
        ("http://evil.test/s3cret?s3cret", "{}"),
        ("s3cret:s3cret", "{}"),
        ("/s3cret", "{}"),
        ("http://good.test:s3cret/", "{}"),
        ("http://good.test/\ns3cret", "{}"),
        (
            "http://good.test/",
            r#"{"headers":{"Authorization":"s3cret\r\n"}}"#,
        ),
        (
            "http://good.test/",
            r#"{"headers":{"Authorization":["s3cret"]}}"#,
        ),
        ("http://good.test/", r#"{"headers":"s3cret"}"#),
        ("http://good.test/", r#"{"body":"s3cret"}"#),
        (
            "http://good.test/",
            r#"{"headers":{"Proxy-Authorization":"s3cret"}}"#,
        ),
    ] {
        let error = with(&fetch, url, options).await.unwrap_err();
        assert!(
            !format!("{error} {error:?}").contains("s3cret"),
            "{url} {options}: {error}"
        );
    }
    let answer = with(&fetch, "http://good.test/", "{}").await;
    assert_eq!(code(answer), "fetch.resolve");
}
