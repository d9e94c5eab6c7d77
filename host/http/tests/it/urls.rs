//! URLs without a bypass (security N07): whatever a URL looks like, nothing but
//! what the policy opens is looked up, connected to or spoken to.

use crate::corpus;
use crate::network;
use crate::network::{PUBLIC, TestNet, get, ip};
use crate::server::{Server, ok, to};
use a99_egress::{Class, classify};
use a99_http::FetchLimits;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Where all other names lead; a server is there too, so that a bypass is seen.
const EVIL: &str = "198.41.0.4";

fn net(port: u16, tls: u16) -> TestNet {
    let mut net = TestNet::good(port).otherwise(EVIL);
    let inside = [
        "127.0.0.1",
        "::1",
        "10.0.0.1",
        "169.254.169.254",
        "192.168.1.1",
        "172.16.0.1",
    ];
    for address in inside
        .into_iter()
        .chain([EVIL, "0.0.0.0", "fe80::1", "fc00::1"])
    {
        net = net.at(address, 80, port).at(address, 443, tls);
    }
    net.at(PUBLIC, 81, port).at(PUBLIC, 22, port)
}

/// What is not TLS is given up soon, and nothing is counted.
fn limits() -> FetchLimits {
    FetchLimits {
        connect_timeout: Duration::from_millis(500),
        max_hosts: None,
        max_requests: None,
        ..network::limits()
    }
}

/// What a request of the corpus says of its host.
fn hosts(server: &Server) -> Vec<String> {
    let requests = server.requests();
    let lines = requests.iter().flat_map(|request| request.lines());
    let hosts = lines.filter_map(|line| {
        line.to_lowercase()
            .strip_prefix("host: ")
            .map(str::to_owned)
    });
    hosts.collect()
}

#[test]
fn n07_the_corpus_is_large() {
    let urls = corpus::urls();
    let distinct: std::collections::HashSet<&String> = urls.iter().collect();
    assert!(distinct.len() >= 450, "{}", distinct.len());
}

#[tokio::test]
async fn n07_only_what_is_named_is_reached() {
    let server = Server::always(ok("x")).await;
    let closed = Server::raw(|stream, _| async move { drop(stream) }).await;
    let net = net(server.port, closed.port);
    let fetch = net.fetch_within("allow:good.test:80", limits());
    let mut reached = Vec::new();
    for url in corpus::urls() {
        if get(&fetch, &url).await.is_ok() {
            reached.push(url);
        }
    }
    let good = SocketAddr::new(ip(PUBLIC), 80);
    assert!(
        net.asked().iter().all(|name| name == "good.test"),
        "{:?}",
        net.asked()
    );
    assert!(
        net.dialed().iter().all(|to| *to == good),
        "{:?}",
        net.dialed()
    );
    assert!(
        hosts(&server).iter().all(|host| host == "good.test"),
        "{:?}",
        hosts(&server)
    );
    // What stands behind a number sign is no host.
    assert_eq!(reached, ["http://good.test#@evil.test/"]);
    assert!(get(&fetch, "http://good.test/").await.is_ok());
}

#[tokio::test]
async fn n07_special_addresses_stay_closed_to_everything_public() {
    let server = Server::always(ok("x")).await;
    let closed = Server::raw(|stream, _| async move { drop(stream) }).await;
    let net = net(server.port, closed.port);
    for policy in ["full", "allow:*", "full:0.0.0.0/0,[::/0],*.test"] {
        let fetch = net.fetch_within(policy, limits());
        for url in corpus::urls() {
            let _ = get(&fetch, &url).await;
            let dialed = net.dialed();
            let stray = dialed.iter().find(|to| classify(to.ip()) != Class::Public);
            assert_eq!(stray, None, "{policy} {url:?}");
        }
        let odd = net.asked().into_iter().find(|name| {
            let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
            name.contains("metadata") || !name.bytes().all(plain) || name.ends_with('.')
        });
        assert_eq!(odd, None, "{policy}");
    }
}

#[tokio::test]
async fn n07_redirects_lead_nowhere_else_either() {
    let next: Arc<Mutex<String>> = Arc::default();
    let location = Arc::clone(&next);
    let server = Server::new(move |request| match request.starts_with("GET /start ") {
        true => to(302, &location.lock().unwrap()),
        false => ok("x"),
    })
    .await;
    let closed = Server::raw(|stream, _| async move { drop(stream) }).await;
    let net = net(server.port, closed.port);
    let fetch = net.fetch_within("allow:good.test:80", limits());
    let good = SocketAddr::new(ip(PUBLIC), 80);
    for url in corpus::urls() {
        if url.contains(['\r', '\n', '\0']) {
            continue;
        }
        url.clone_into(&mut next.lock().unwrap());
        let _ = get(&fetch, "http://good.test/start").await;
        assert!(
            net.dialed().iter().all(|to| *to == good),
            "{url:?}: {:?}",
            net.dialed()
        );
        let asked = net.asked();
        assert!(
            asked.iter().all(|name| name == "good.test"),
            "{url:?}: {asked:?}"
        );
    }
    assert!(hosts(&server).iter().all(|host| host == "good.test"));
}
