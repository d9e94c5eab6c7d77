//! What the policy opens: hosts, names and addresses, tenants, quotas (security
//! N01 to N04, N11, N15).

use crate::network::{PUBLIC, TestNet, code, get, ip, limits, with};
use crate::server::{Server, ok, to};
use a99_http::{FetchLimits, HttpFetch, Scheme};
use std::net::SocketAddr;
use std::time::Duration;

#[tokio::test]
async fn n01_nothing_is_reachable_until_it_is_allowed() {
    let fetch = HttpFetch::builder().build().unwrap();
    for url in [
        "http://good.test/",
        "https://93.184.216.34/",
        "http://localhost:1/",
    ] {
        let error = get(&fetch, url).await.unwrap_err();
        assert_eq!(error.code().name(), "fetch.denied");
        assert!(error.to_string().contains("the network is off"), "{error}");
    }
    let error = get(&fetch, "https://api.test/path?key=1")
        .await
        .unwrap_err();
    assert_eq!(error.rule(), Some("api.test:443"));
    let text = "Fetch denied: https://api.test:443: the network is off; --allow net:api.test:443 would allow it";
    assert_eq!(error.to_string(), text);
}

#[tokio::test]
async fn n02_private_addresses_stay_closed_however_they_are_spelled() {
    let net = TestNet::default();
    let hosts = [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0177.0.0.1",
        "017700000001",
        "0.0.0.0",
        "0",
        "127.0.0.1.",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b::10.0.0.1]",
        "[64:ff9b:1::a9fe:a9fe]",
        "[2002:7f00:1::]",
        "[2002:a9fe:a9fe::1]",
        "[fc00::1]",
        "[fd12:3456::1]",
        "[fe80::1]",
        "[fe80::1%25eth0]",
        "[fe80::1%eth0]",
        "[::ffff:0:10.0.0.1]",
        "[2001:0:1::80ff:fffe]",
        "[fe80::5efe:10.0.0.1]",
        "[ff02::1]",
        "[fec0::1]",
        "[2001:db8::1]",
        "10.0.0.1",
        "10.1",
        "167772161",
        "192.168.0.1",
        "172.16.0.1",
        "100.64.0.1",
        "169.254.0.1",
        "198.18.0.1",
        "192.0.2.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "192.88.99.1",
        "%31%32%37.0.0.1",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
    ];
    for policy in ["full", "allow:*", "full:0.0.0.0/0,[::/0]"] {
        let fetch = net.fetch(policy);
        for host in hosts {
            for scheme in ["http", "https"] {
                let found = code(get(&fetch, &format!("{scheme}://{host}/")).await);
                let expected = ["fetch.denied", "fetch.url"].contains(&found);
                assert!(expected, "{policy} {host}: {found}");
            }
        }
    }
    assert!(net.dialed().is_empty() && net.asked().is_empty());
}

#[tokio::test]
async fn n02_a_rule_about_the_address_opens_it() {
    let server = Server::always(ok("inside")).await;
    let port = server.port;
    // The system's own resolver and TCP.
    for (rule, host) in [
        (format!("127.0.0.1:{port}"), "127.0.0.1"),
        (format!("127.0.0.1:{port}"), "[::ffff:127.0.0.1]"),
        (format!("127.0.0.0/8:{port}"), "0x7f.1"),
        (format!("localhost:{port}"), "localhost"),
        (format!("localhost:{port}"), "LOCALHOST."),
    ] {
        let policy = format!("allow:{rule}").parse().unwrap();
        let fetch = HttpFetch::builder()
            .policy(policy)
            .limits(limits())
            .build()
            .unwrap();
        let answer = get(&fetch, &format!("http://{host}:{port}/")).await;
        assert_eq!(answer.unwrap().as_str(), Some("inside"), "{rule} {host}");
        let other = get(&fetch, &format!("http://{host}:1/")).await;
        assert_eq!(code(other), "fetch.denied", "{rule} {host}");
    }
}

#[tokio::test]
async fn n03_metadata_services_stay_closed() {
    let net = TestNet::default()
        .name("innocent.test", &["169.254.169.254"])
        .name("metadata.google.internal", &["169.254.169.254"])
        .otherwise(PUBLIC);
    for policy in [
        "full",
        "allow:*",
        "allow:*.google.internal,innocent.test:80",
    ] {
        let fetch = net.fetch(policy);
        for host in [
            "169.254.169.254",
            "[fd00:ec2::254]",
            "[fd20:ce::254]",
            "100.100.100.200",
            "168.63.129.16",
            "169.254.170.2",
            "metadata.google.internal",
            "METADATA.google.internal.",
            "metadata",
            "instance-data",
            "innocent.test",
            "2852039166",
            "[::ffff:a9fe:a9fe]",
            "0xA9FEA9FE",
        ] {
            let answer = get(&fetch, &format!("http://{host}/latest/meta-data/")).await;
            assert_eq!(code(answer), "fetch.denied", "{policy} {host}");
        }
    }
    assert!(net.dialed().is_empty());
}

#[tokio::test]
async fn n04_of_mixed_answers_only_permitted_addresses_are_dialed() {
    let server = Server::always(ok("public")).await;
    let net = TestNet::default()
        .name(
            "mixed.test",
            &["10.0.0.1", "::1", PUBLIC, "169.254.169.254"],
        )
        .name("inside.test", &["10.0.0.1"])
        .at(PUBLIC, 80, server.port);
    let fetch = net.fetch("allow:mixed.test,inside.test");
    let answer = get(&fetch, "http://mixed.test/").await;
    assert_eq!(answer.unwrap().as_str(), Some("public"));
    assert_eq!(net.dialed(), [SocketAddr::new(ip(PUBLIC), 80)]);
    assert!(server.requests().remove(0).contains("host: mixed.test\r\n"));
    let error = get(&fetch, "http://inside.test/").await.unwrap_err();
    assert_eq!(error.code().name(), "fetch.denied");
    assert_eq!(error.rule(), Some("inside.test:80"));
    assert!(error.to_string().contains("private address"), "{error}");
    assert_eq!(net.dialed().len(), 1);
}

#[tokio::test]
async fn n04_a_name_that_changes_its_mind_leads_nowhere_else() {
    let server = Server::new(|_| crate::server::answer("200 OK\nConnection: close", "x")).await;
    let net = TestNet::default()
        .name("rebind.test", &[PUBLIC])
        .name("rebind.test", &["127.0.0.1"])
        .at(PUBLIC, 80, server.port)
        .at("127.0.0.1", 80, server.port);
    let fetch = net.fetch("allow:rebind.test");
    assert!(get(&fetch, "http://rebind.test/").await.is_ok());
    // Looked up once for the check and the connection alike.
    assert_eq!(net.asked(), ["rebind.test"]);
    assert_eq!(
        code(get(&fetch, "http://rebind.test/").await),
        "fetch.denied"
    );
    assert_eq!(net.dialed(), [SocketAddr::new(ip(PUBLIC), 80)]);
}

#[tokio::test]
async fn n04_names_and_addresses_are_not_confused() {
    let server = Server::always(ok("x")).await;
    let net = TestNet::default()
        .name("evil.test", &["127.0.0.1"])
        .name("in.test", &["10.0.0.1"])
        .name("named.test", &["10.0.0.1"])
        .at("127.0.0.1", 8080, server.port)
        .at("10.0.0.1", 8080, server.port);
    let fetch = net.fetch("allow:*,localhost:8080,127.0.0.1:8080,10.0.0.0/8,named.test:8080");
    for (url, allowed) in [
        ("http://localhost:8080/", true),
        ("http://127.0.0.1:8080/", true),
        ("http://evil.test:8080/", false),
        ("http://10.0.0.1:8080/", true),
        ("http://in.test:8080/", false),
        ("http://named.test:8080/", true),
        ("http://named.test:8081/", false),
    ] {
        let answer = get(&fetch, url).await;
        assert_eq!(answer.is_ok(), allowed, "{url}: {answer:?}");
    }
    let error = get(&net.fetch("allow:10.0.0.0/8"), "http://in.test:8080/")
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("rules about addresses do not open names"),
        "{error}"
    );
}

#[tokio::test]
async fn n04_a_connection_does_not_outlive_its_permission() {
    let server = Server::new(|request| match request.starts_with("GET /slow") {
        true => b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome".to_vec(),
        false => ok("x"),
    })
    .await;
    let net = TestNet::good(server.port);
    let fetch = net.fetch("allow:good.test:80,other.test");
    get(&fetch, "http://good.test/").await.unwrap();
    get(&fetch, "http://good.test/").await.unwrap();
    assert_eq!(server.connections(), 1);
    // The same policy again changes nothing.
    fetch.set_policy("allow:good.test:80,other.test".parse().unwrap());
    get(&fetch, "http://good.test/").await.unwrap();
    assert_eq!(server.connections(), 1);
    // One that is under way ends, and what is kept alive is not used again.
    let slow = get(&fetch, "http://good.test/slow");
    let narrow = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        fetch.set_policy("allow:other.test".parse().unwrap());
    };
    let (slow, ()) = tokio::join!(slow, narrow);
    assert_eq!(code(slow), "fetch.revoked");
    assert_eq!(code(get(&fetch, "http://good.test/").await), "fetch.denied");
    fetch.set_policy("allow:good.test:80".parse().unwrap());
    get(&fetch, "http://good.test/").await.unwrap();
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn n04_revoked_connections_are_closed() {
    let (closed, mut gone) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::raw(move |mut stream, _| {
        let closed = closed.clone();
        async move {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            crate::server::read_request(&mut stream).await;
            stream.write_all(&ok("x")).await.unwrap();
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
            closed.send(rest.len()).unwrap();
        }
    })
    .await;
    let fetch = TestNet::good(server.port).fetch("allow:good.test:80");
    get(&fetch, "http://good.test/").await.unwrap();
    fetch.set_policy("off".parse().unwrap());
    let rest = tokio::time::timeout(Duration::from_secs(10), gone.recv()).await;
    assert_eq!(rest.unwrap(), Some(0));
}

#[tokio::test]
async fn n11_names_are_not_looked_up_before_they_are_allowed() {
    let net = TestNet::good(1).otherwise(PUBLIC);
    let fetch = net.fetch("allow:good.test:443,*.wide.test:443,10.0.0.0/8");
    for url in [
        "http://good.test/",
        "https://secret-data.evil.test/",
        "https://wide.test/",
        "http://a.wide.test/",
        "https://notwide.test/",
        "https://good.test.evil.test/",
        "https://10.0.0.1.evil.test/",
    ] {
        assert_eq!(code(get(&fetch, url).await), "fetch.denied", "{url}");
    }
    assert!(net.asked().is_empty() && net.dialed().is_empty());
}

#[tokio::test]
async fn n11_requests_and_hosts_are_counted() {
    let server = Server::new(|request| match request.starts_with("GET /on") {
        true => to(302, "http://d.test/"),
        false => ok("x"),
    })
    .await;
    let net = TestNet::default()
        .otherwise(PUBLIC)
        .at(PUBLIC, 80, server.port);
    let quota = |max_requests, max_hosts| FetchLimits {
        max_requests,
        max_hosts,
        ..limits()
    };
    let fetch = net.fetch_within("full", quota(None, Some(3)));
    for host in ["a.test", "b.test", "a.test", "c.test", "A.test.", "b.test"] {
        assert!(
            get(&fetch, &format!("http://{host}/")).await.is_ok(),
            "{host}"
        );
    }
    let asked = net.asked().len();
    assert_eq!(code(get(&fetch, "http://d.test/").await), "fetch.quota");
    assert_eq!(code(get(&fetch, "http://a.test/on").await), "fetch.quota");
    assert_eq!(net.asked().len(), asked);
    let fetch = net.fetch_within("full", quota(Some(2), None));
    assert!(get(&fetch, "http://a.test/on").await.is_ok());
    assert_eq!(code(get(&fetch, "http://a.test/").await), "fetch.quota");
    // Changing the policy gives nothing back; another tenant has its own.
    fetch.set_policy("allow:*".parse().unwrap());
    assert_eq!(code(get(&fetch, "http://a.test/").await), "fetch.quota");
    let tenant = fetch.for_tenant("full".parse().unwrap());
    assert!(get(&tenant, "http://a.test/").await.is_ok());
}

#[tokio::test]
async fn n06_schemes_are_of_the_grant() {
    let server = Server::always(ok("x")).await;
    let net = TestNet::good(server.port);
    let fetch = net
        .builder("full")
        .schemes(&[Scheme::Https])
        .build()
        .unwrap();
    assert_eq!(code(get(&fetch, "http://good.test/").await), "fetch.scheme");
    let fetch = net.fetch("full");
    for url in [
        "data:text/plain,hi",
        "file:///etc/passwd",
        "blob:http://good.test/1",
        "ftp://good.test/",
        "gopher://good.test:80/x",
        "ws://good.test/",
        "wss://good.test/",
        "javascript:1",
        "about:blank",
        "unix:/run/x",
        "dict://good.test/",
        "jar:http://good.test!/x",
        "view-source:http://good.test/",
        "FILE:///etc/passwd",
        "file:\\\\etc",
        "chrome://x",
    ] {
        let found = code(get(&fetch, url).await);
        assert!(
            ["fetch.scheme", "fetch.url"].contains(&found),
            "{url}: {found}"
        );
    }
    assert!(net.asked().is_empty() && net.dialed().is_empty());
}

#[tokio::test]
async fn n15_one_fetch_serves_many_runs_unchanged() {
    let server = Server::always(ok("x")).await;
    let fetch = TestNet::good(server.port).fetch("allow:good.test:80");
    let before = format!("{fetch:?}");
    let options = r#"{"headers":{"Authorization":"Bearer a","X-Key":"k"}}"#;
    with(&fetch, "http://good.test/", options).await.unwrap();
    get(&fetch, "http://good.test/").await.unwrap();
    let second = server.requests().remove(1).to_lowercase();
    assert!(
        !second.contains("bearer") && !second.contains("x-key"),
        "{second}"
    );
    assert_eq!(format!("{fetch:?}"), before);
}
