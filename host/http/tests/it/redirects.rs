//! Redirects (security N05, RFC 9110 section 15.4).

use crate::network::{PUBLIC, TestNet, code, get, with};
use crate::server::{Server, ok, to};

/// Another public address.
const OTHER: &str = "198.41.0.4";

async fn redirected(status: u16, location: &str) -> (TestNet, Server, a99_http::HttpFetch) {
    let location = location.to_owned();
    let server = Server::new(move |request| match request.contains(" /start ") {
        true => to(status, &location),
        false => ok("end"),
    })
    .await;
    let net = TestNet::good(server.port)
        .name("other.test", &[OTHER])
        .name("inside.test", &["10.0.0.1"])
        .at(PUBLIC, 81, server.port)
        .at(OTHER, 80, server.port)
        .at("127.0.0.1", 80, server.port)
        .at("10.0.0.1", 80, server.port);
    let fetch = net.fetch("full");
    (net, server, fetch)
}

#[tokio::test]
async fn n05_each_hop_is_judged_again() {
    for location in [
        "http://127.0.0.1/",
        "http://0x7f.1/",
        "http://[::1]/",
        "//127.0.0.1/",
        "http://localhost/",
        "http://169.254.169.254/latest/",
        "http://[::ffff:10.0.0.1]/",
        "http://inside.test/",
        "http://10.0.0.1/",
        "http://metadata.google.internal/",
        "http://2130706433/",
        "http://[64:ff9b::7f00:1]/",
    ] {
        for status in [301, 302, 303, 307, 308] {
            let (net, server, fetch) = redirected(status, location).await;
            let answer = get(&fetch, "http://good.test/start").await;
            assert_eq!(code(answer), "fetch.denied", "{status} {location}");
            assert_eq!(
                (net.dialed().len(), server.requests().len()),
                (1, 1),
                "{location}"
            );
        }
    }
}

#[tokio::test]
async fn n05_other_schemes_and_user_names_are_refused() {
    for (location, expected) in [
        ("file:///etc/passwd", "fetch.scheme"),
        ("gopher://good.test/", "fetch.scheme"),
        ("data:text/plain,x", "fetch.scheme"),
        ("ftp://good.test/", "fetch.scheme"),
        ("javascript:1", "fetch.scheme"),
        ("http://user@other.test/", "fetch.credentials"),
        ("//user:pass@other.test/", "fetch.credentials"),
        ("http:\\\\127.0.0.1\\", "fetch.url"),
        ("http://", "fetch.url"),
        ("http://[::1", "fetch.url"),
    ] {
        let (net, server, fetch) = redirected(302, location).await;
        let answer = get(&fetch, "http://good.test/start").await;
        assert_eq!(code(answer), expected, "{location}");
        assert_eq!(
            (net.dialed().len(), server.requests().len()),
            (1, 1),
            "{location}"
        );
    }
}

#[tokio::test]
async fn n05_at_most_five_are_followed() {
    for (hops, allowed) in [(5, true), (6, false), (100, false)] {
        let server = Server::new(move |request| {
            let at: usize = request[5..].split(' ').next().unwrap().parse().unwrap();
            match at < hops {
                true => to(302, &format!("/{}", at + 1)),
                false => ok("end"),
            }
        })
        .await;
        let fetch = TestNet::good(server.port).fetch("allow:good.test");
        let answer = get(&fetch, "http://good.test/0").await;
        assert_eq!(answer.is_ok(), allowed, "{hops}");
        assert_eq!(server.requests().len(), 6);
        if !allowed {
            assert_eq!(code(answer), "fetch.redirect");
        }
    }
}

#[tokio::test]
async fn n05_methods_and_bodies_follow_the_rules() {
    let table = [
        ("GET", 301, "GET", false),
        ("GET", 307, "GET", false),
        ("HEAD", 303, "HEAD", false),
        ("POST", 301, "GET", false),
        ("POST", 302, "GET", false),
        ("POST", 303, "GET", false),
        ("POST", 307, "POST", true),
        ("POST", 308, "POST", true),
        ("PUT", 301, "PUT", true),
        ("PUT", 302, "PUT", true),
        ("PUT", 303, "GET", false),
        ("DELETE", 303, "GET", false),
        ("PATCH", 308, "PATCH", true),
    ];
    for (method, status, then, keeps) in table {
        let (_, server, fetch) = redirected(status, "/end").await;
        let body = match method {
            "GET" | "HEAD" => "",
            _ => r#","body":"payload","headers":{"Content-Language":"de"}"#,
        };
        let options = format!(r#"{{"method":"{method}"{body}}}"#);
        let answer = with(&fetch, "http://good.test/start", &options).await;
        assert!(answer.is_ok(), "{method} {status}: {answer:?}");
        let second = server.requests().remove(1);
        assert!(
            second.starts_with(&format!("{then} /end ")),
            "{method} {status}: {second}"
        );
        assert_eq!(
            second.ends_with("payload"),
            keeps,
            "{method} {status}: {second}"
        );
        assert_eq!(
            second.contains("content-type"),
            keeps,
            "{method} {status}: {second}"
        );
        assert_eq!(
            second.contains("content-language"),
            keeps,
            "{method} {status}: {second}"
        );
    }
}

#[tokio::test]
async fn n05_credentials_stay_with_their_origin() {
    let secret = r#"{"headers":{"Authorization":"Bearer s3cret","Cookie":"s3cret=1","X-Api-Key":"s3cret","Accept":"a/b","X-Agent-Depth":"3"}}"#;
    for (location, same) in [
        ("/end", true),
        ("http://good.test:80/end", true),
        ("http://GOOD.test./end", true),
        ("http://good.test:81/end", false),
        ("http://other.test/end", false),
    ] {
        let (_, server, fetch) = redirected(302, location).await;
        with(&fetch, "http://good.test/start", secret)
            .await
            .unwrap();
        let second = server.requests().remove(1);
        assert_eq!(second.contains("s3cret"), same, "{location}: {second}");
        assert!(
            second.contains("accept: a/b") && second.contains("x-agent-depth: 3"),
            "{second}"
        );
    }
}

#[tokio::test]
async fn n05_dropped_credentials_do_not_come_back() {
    let server = Server::new(|request| {
        let host = request
            .lines()
            .find(|line| line.starts_with("host: "))
            .unwrap();
        match (host, request.contains(" /start ")) {
            ("host: good.test", true) => to(302, "http://other.test/on"),
            ("host: other.test", _) => to(302, "http://good.test/back"),
            _ => ok("end"),
        }
    })
    .await;
    let net = TestNet::good(server.port)
        .name("other.test", &[OTHER])
        .at(OTHER, 80, server.port);
    let options = r#"{"headers":{"Authorization":"Bearer s3cret"}}"#;
    with(&net.fetch("full"), "http://good.test/start", options)
        .await
        .unwrap();
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[0].contains("s3cret"));
    assert!(!requests[1].contains("s3cret") && !requests[2].contains("s3cret"));
}

#[tokio::test]
async fn n05_a_body_is_not_sent_to_another_origin() {
    for (status, method) in [(307, "POST"), (308, "POST"), (302, "PUT"), (301, "DELETE")] {
        let (_, server, fetch) = redirected(status, "http://other.test/end").await;
        let options = format!(r#"{{"method":"{method}","body":"payload"}}"#);
        let answer = with(&fetch, "http://good.test/start", &options).await;
        assert_eq!(code(answer), "fetch.body", "{status} {method}");
        assert_eq!(server.requests().len(), 1);
    }
    let (_, server, fetch) = redirected(303, "http://other.test/end").await;
    let options = r#"{"method":"POST","body":"payload"}"#;
    with(&fetch, "http://good.test/start", options)
        .await
        .unwrap();
    assert!(!server.requests().remove(1).contains("payload"));
}

#[tokio::test]
async fn a_redirect_without_a_place_is_an_answer() {
    let server = Server::always(crate::server::answer("302 Found", "here")).await;
    let fetch = TestNet::good(server.port).fetch("full");
    let answer = get(&fetch, "http://good.test/").await;
    assert_eq!(answer.unwrap().as_str(), Some("here"));
    let two = "302 Found\nLocation: /a\nLocation: http://other.test/";
    let server = Server::always(crate::server::answer(two, "")).await;
    let fetch = TestNet::good(server.port).fetch("full");
    assert_eq!(
        code(get(&fetch, "http://good.test/").await),
        "fetch.redirect"
    );
    let (_, _server, fetch) = redirected(302, "http://other.test/end#part").await;
    let options = r#"{"responseType":"response"}"#;
    let answer = with(&fetch, "http://good.test/start", options)
        .await
        .unwrap();
    assert_eq!(
        answer.get("url").unwrap().as_str(),
        Some("http://other.test/end")
    );
}
