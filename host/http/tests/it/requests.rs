//! Requests as they are sent, and what a program may not put into them.

use crate::network::{TestNet, code, get, with};
use crate::server::{Server, answer, ok};

#[tokio::test]
async fn requests_are_what_was_asked_for() {
    let server = Server::always(ok("x")).await;
    let fetch = TestNet::good(server.port).fetch("allow:good.test:80");
    let options =
        r#"{"method":"post","headers":{"A":"b","n":1,"t":true,"u":" c "},"body":[1,{"a":null}]}"#;
    with(&fetch, "HTTP://GOOD.test.:80/a b?c d#e", options)
        .await
        .unwrap();
    let request = server.requests().remove(0);
    assert!(
        request.starts_with("POST /a%20b?c%20d HTTP/1.1\r\n"),
        "{request}"
    );
    for line in [
        "host: good.test\r\n",
        "a: b\r\n",
        "n: 1\r\n",
        "t: true\r\n",
        "u: c\r\n",
        "content-type: application/json\r\n",
        "content-length: 14\r\n",
        "accept-encoding: gzip, br, deflate\r\n",
        "\r\n\r\n[1,{\"a\":null}]",
    ] {
        assert!(request.contains(line), "{line:?} in {request}");
    }
    with(
        &fetch,
        "http://good.test",
        r#"{"method":"PUT","body":"text"}"#,
    )
    .await
    .unwrap();
    let request = server.requests().remove(1);
    assert!(
        request.contains("content-type: text/plain;charset=UTF-8\r\n"),
        "{request}"
    );
    assert!(request.ends_with("\r\n\r\ntext"), "{request}");
    let options = r#"{"method":"DELETE","headers":{"Content-Type":"a/b"},"body":"x"}"#;
    with(&fetch, "http://good.test", options).await.unwrap();
    assert!(
        server
            .requests()
            .remove(2)
            .contains("content-type: a/b\r\n")
    );
}

#[tokio::test]
async fn n09_headers_of_the_connection_are_refused() {
    let server = Server::always(ok("x")).await;
    let fetch = TestNet::good(server.port).fetch("allow:good.test:80");
    let refused = [
        r#"{"Host":"evil.test"}"#,
        r#"{"host":"evil.test"}"#,
        r#"{"Connection":"close"}"#,
        r#"{"Transfer-Encoding":"chunked"}"#,
        r#"{"Content-Length":"0"}"#,
        r#"{"Proxy-Authorization":"x"}"#,
        r#"{"Proxy-Connection":"x"}"#,
        r#"{"proxy-anything":"x"}"#,
        r#"{"Upgrade":"h2c"}"#,
        r#"{"HTTP2-Settings":"x"}"#,
        r#"{"TE":"trailers"}"#,
        r#"{"Trailer":"x"}"#,
        r#"{"Keep-Alive":"x"}"#,
        r#"{"Expect":"100-continue"}"#,
        r#"{"Origin":"http://a.test"}"#,
        r#"{"a":"b\r\nx: y"}"#,
        r#"{"a":"b\nx: y"}"#,
        r#"{"a":"b\rx: y"}"#,
        r#"{"a":"b\u0000"}"#,
        r#"{"a":"é"}"#,
        r#"{"a\r\nb":"c"}"#,
        r#"{"a b":"c"}"#,
        r#"{"a:":"c"}"#,
        r#"{"":"c"}"#,
        r#"{":authority":"evil.test"}"#,
        r#"{"a":{}}"#,
        r#"{"a":null}"#,
        // A second depth, in other letters, would hide the first.
        r#"{"X-Agent-Depth":"9","x-agent-depth":"0"}"#,
    ];
    for headers in refused {
        let answer = with(
            &fetch,
            "http://good.test",
            &format!(r#"{{"headers":{headers}}}"#),
        )
        .await;
        assert_eq!(code(answer), "fetch.header", "{headers}");
    }
    let many: Vec<String> = (0..101).map(|n| format!(r#""h{n}":"v""#)).collect();
    let many = format!(r#"{{"headers":{{{}}}}}"#, many.join(","));
    assert_eq!(
        code(with(&fetch, "http://good.test", &many).await),
        "fetch.header"
    );
    let long = format!(r#"{{"headers":{{"a":"{}"}}}}"#, "x".repeat(40_000));
    assert_eq!(
        code(with(&fetch, "http://good.test", &long).await),
        "fetch.header"
    );
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn n09_there_is_no_jar_of_cookies() {
    let server = Server::always(answer("200 OK\nSet-Cookie: id=1; Path=/", "x")).await;
    let fetch = TestNet::good(server.port).fetch("allow:good.test:80");
    get(&fetch, "http://good.test").await.unwrap();
    get(&fetch, "http://good.test").await.unwrap();
    let tenant = fetch.for_tenant("allow:good.test:80".parse().unwrap());
    get(&tenant, "http://good.test").await.unwrap();
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(
        requests
            .iter()
            .all(|request| !request.to_lowercase().contains("cookie"))
    );
    // Two requests of one tenant shared a connection, another tenant's did not.
    assert_eq!(server.connections(), 2);
}

/// In a process of its own, whose environment names a proxy.
#[test]
fn n10_proxies_of_the_environment_do_not_count() {
    if std::env::var("N10_INSIDE").is_ok() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let server = Server::always(ok("direct")).await;
            let fetch = TestNet::good(server.port).fetch("allow:good.test:80");
            let answer = get(&fetch, "http://good.test/").await.unwrap();
            assert_eq!(answer.as_str(), Some("direct"));
            assert!(server.requests().remove(0).starts_with("GET / HTTP/1.1"));
        });
        return;
    }
    let mut inside = std::process::Command::new(std::env::current_exe().unwrap());
    inside.args([
        "--exact",
        "requests::n10_proxies_of_the_environment_do_not_count",
    ]);
    // Nothing listens there.
    for name in [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "all_proxy",
    ] {
        inside.env(name, "http://127.0.0.1:9");
    }
    let done = inside.env("N10_INSIDE", "1").output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && text.contains("1 passed"), "{text}");
}
