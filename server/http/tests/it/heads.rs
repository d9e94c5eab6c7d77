//! Checks of a request's head: Host, Origin, and tokens in the URL.

use crate::client::{Running, app, code, start, status};
use a99_server::{ListenOptions, Listener, ServerCode};

async fn plain() -> Running {
    let options = ListenOptions {
        hosts: vec![
            "Agents.Example.com".to_owned(),
            "pinned.example.com:8443".to_owned(),
        ],
        origins: vec!["https://app.example.com/".to_owned()],
        ..ListenOptions::default()
    };
    start(options, app()).await
}

#[tokio::test]
async fn only_hosts_of_the_listener_are_served() {
    let running = plain().await;
    let port = running.address.port();
    for host in [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        format!("LocalHost:{port}"),
        format!("[::1]:{port}"),
        "agents.example.com".to_owned(),
        "AGENTS.example.com:444".to_owned(),
        "pinned.example.com:8443".to_owned(),
    ] {
        let response = running.ask(&format!("GET /\nHost: {host}"), "").await;
        assert_eq!(status(&response), 200, "{host}");
    }
    for host in [
        "evil.example.com".to_owned(),
        format!("evil.example.com:{port}"),
        format!("localhost:{}", port ^ 1),
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        format!("localhost.evil.example.com:{port}"),
        format!("localhost.:{port}"),
        format!("user@localhost:{port}"),
        format!("10.0.0.1:{port}"),
        format!("0x7f000001:{port}"),
        "sub.agents.example.com".to_owned(),
        "agents.example.com.evil.com".to_owned(),
        "agents.example.com:".to_owned(),
        "agents.example.com:http".to_owned(),
        "pinned.example.com".to_owned(),
        String::new(),
    ] {
        let response = running.ask(&format!("GET /\nHost: {host}"), "").await;
        assert_eq!(
            (status(&response), &*code(&response)),
            (421, "server.wrong_host"),
            "{host}"
        );
    }
}

#[tokio::test]
async fn a_host_is_named_once() {
    let running = plain().await;
    let own = running.address;
    let twice = running
        .ask(&format!("GET /\nHost: {own}\nHost: evil.example.com"), "")
        .await;
    assert_eq!(status(&twice), 421);
    // The target of a request to a proxy wins over its Host.
    let absolute = running.ask("GET http://evil.example.com/", "").await;
    assert_eq!(status(&absolute), 421);
    let absolute = running.ask(&format!("GET http://{own}/"), "").await;
    assert_eq!(status(&absolute), 200);
}

#[tokio::test]
async fn pages_of_other_origins_are_refused() {
    let running = plain().await;
    let own = running.address;
    for origin in [
        format!("http://{own}"),
        "https://app.example.com".to_owned(),
    ] {
        let response = running.ask(&format!("GET /\nOrigin: {origin}"), "").await;
        assert_eq!(status(&response), 200, "{origin}");
    }
    let upgrade = "Upgrade: websocket\nSec-WebSocket-Version: 13\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    for origin in [
        "https://evil.example.com".to_owned(),
        format!("https://{own}"),
        format!("http://localhost:{}", own.port()),
        "http://127.0.0.1".to_owned(),
        "http://agents.example.com".to_owned(),
        "http://pinned.example.com:8443".to_owned(),
        "http://app.example.com".to_owned(),
        "https://app.example.com.evil.com".to_owned(),
        "null".to_owned(),
        "file://".to_owned(),
        String::new(),
        format!("http://{own}\nOrigin: http://{own}"),
    ] {
        for more in ["", upgrade] {
            let response = running
                .ask(&format!("GET /\nOrigin: {origin}\n{more}"), "")
                .await;
            let found = (status(&response), code(&response));
            assert_eq!(found, (403, "server.wrong_origin".to_owned()), "{origin}");
        }
    }
}

#[tokio::test]
async fn behind_a_proxy_the_own_origin_may_be_encrypted() {
    let options = ListenOptions {
        hosts: vec!["agents.example.com".to_owned()],
        behind_proxy: true,
        ..ListenOptions::default()
    };
    let running = start(options, app()).await;
    let ask = async |origin: &str| {
        let head = format!("GET /\nHost: agents.example.com\nOrigin: {origin}");
        status(&running.ask(&head, "").await)
    };
    assert_eq!(ask("https://agents.example.com").await, 200);
    assert_eq!(ask("https://evil.example.com").await, 403);
    // The name may have any port, and a page of another port is another origin.
    assert_eq!(ask("https://agents.example.com:8080").await, 403);
}

#[tokio::test]
async fn tokens_in_urls_are_refused() {
    let running = plain().await;
    for query in [
        "token=a99t_x",
        "a=1&access_token=x",
        "TOKEN=x",
        "to%6ben=x",
        "%74%6F%6B%65%6e=x",
        "a=1;token=x",
        "token",
    ] {
        let response = running.ask(&format!("GET /?{query}"), "").await;
        let found = (status(&response), code(&response));
        assert_eq!(found, (400, "server.token_in_url".to_owned()), "{query}");
        assert!(!response.contains("a99t_"), "{response}");
    }
    for query in ["tokens=1", "a=token", "%", "%7", "%zz=%", "t%25oken=1", ""] {
        let response = running.ask(&format!("GET /?{query}"), "").await;
        assert_eq!(status(&response), 200, "{query}");
    }
}

#[tokio::test]
async fn unsafe_addresses_need_an_option() {
    let mut options = ListenOptions {
        address: "0.0.0.0:0".parse().unwrap(),
        ..ListenOptions::default()
    };
    for address in ["0.0.0.0:0", "[::]:0", "[::ffff:10.0.0.1]:0", "192.0.2.1:0"] {
        options.address = address.parse().unwrap();
        let error = Listener::bind(options.clone()).await.err().unwrap();
        assert_eq!(error.code(), ServerCode::UnsafeAddress, "{address}");
        assert!(error.help().contains("behind_proxy"), "{}", error.help());
    }
    options.address = "0.0.0.0:0".parse().unwrap();
    options.behind_proxy = true;
    let running = start(options, app()).await;
    let mut there = running;
    there.address.set_ip("127.0.0.1".parse().unwrap());
    assert_eq!(status(&there.ask("GET /", "").await), 200);
    let wild = format!("GET /\nHost: 0.0.0.0:{}", there.address.port());
    assert_eq!(status(&there.ask(&wild, "").await), 421);
}

#[tokio::test]
async fn mistakes_of_options_are_reported() {
    let hosts = |text: &str| ListenOptions {
        hosts: vec![text.to_owned()],
        ..ListenOptions::default()
    };
    for host in [
        "",
        "https://x.org",
        "x.org/",
        "*.x.org",
        "x.org:99999",
        "a b",
        "user@x.org",
    ] {
        let error = Listener::bind(hosts(host)).await.err().unwrap();
        assert_eq!(error.code(), ServerCode::BadOption, "{host}");
    }
    for origin in ["", "x.org", "https://", "https://x.org/page", "*", "null"] {
        let options = ListenOptions {
            origins: vec![origin.to_owned()],
            ..ListenOptions::default()
        };
        let error = Listener::bind(options).await.err().unwrap();
        assert_eq!(error.code(), ServerCode::BadOption, "{origin}");
    }
    let first = Listener::bind(ListenOptions::default()).await.unwrap();
    let taken = ListenOptions {
        address: first.address(),
        ..ListenOptions::default()
    };
    let error = Listener::bind(taken).await.err().unwrap();
    assert_eq!(error.code(), ServerCode::Bind);
}
