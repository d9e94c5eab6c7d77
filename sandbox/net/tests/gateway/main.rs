//! The gateway against a second TCP/IP stack, with servers on this host's loopback.

mod attacks;
mod datagrams;
mod forwards;
mod frames;
mod ipv6;
mod losses;
mod peer;
mod tcp;
mod transfers;

use a99_sandbox_net::Config;
use std::net::{Ipv4Addr, TcpListener};

/// A listening socket on the host's loopback.
fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    (listener, port)
}

/// Configuration of our guest's network, with these ports of the host's loopback.
fn config(ports: &[u16]) -> Config {
    let rules: Vec<String> = ports
        .iter()
        .map(|port| format!("localhost:{port}"))
        .collect();
    let policy = format!("allow:{}", rules.join(","));
    Config::new(policy.parse().expect("a policy"))
}

/// The same over plain Ethernet.
fn ethernet(ports: &[u16]) -> Config {
    Config::ethernet(config(ports).policy)
}
