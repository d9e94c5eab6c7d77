//! Leak test: many connections and many gateways leave no descriptors and threads behind.
//! Alone in its process, because it counts them.

#[path = "gateway/peer.rs"]
#[allow(dead_code, reason = "made for tests that use more of it")]
mod peer;

use a99_sandbox_net::{Config, Gateway, HOST};
use peer::Guest;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

fn entries(folder: &str) -> usize {
    std::fs::read_dir(folder).expect("a folder").count()
}

/// Number of descriptors and threads of this process.
fn open() -> (usize, usize) {
    (entries("/proc/self/fd"), entries("/proc/self/task"))
}

/// A joined thread may still be listed for a moment.
#[track_caller]
fn reaches(expected: (usize, usize), what: &str) {
    let end = Instant::now() + Duration::from_secs(10);
    while open() != expected && Instant::now() < end {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(open(), expected, "{what}");
}

#[test]
fn nothing_is_left_over() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    let server = thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a byte");
            if byte == *b"q" {
                return;
            }
            stream.write_all(&byte).expect("open");
        }
    });
    let policy = format!("allow:localhost:{port}");
    let config = Config::new(policy.parse().expect("a policy"));
    let before = open();
    let mut guest = Guest::new(&config);
    let once = |guest: &mut Guest, byte: &[u8]| {
        let handle = guest.connect(HOST, port).expect("connected");
        guest.write(handle, byte);
        if byte == b"x" {
            assert_eq!(guest.read_to_end(handle), Ok(byte.to_vec()));
        }
        guest.close(handle);
    };
    for _ in 0..10 {
        once(&mut guest, b"x");
    }
    guest.wait_until(|gateway| gateway.stats().tcp == 0);
    let running = open();
    for _ in 0..1000 {
        once(&mut guest, b"x");
    }
    guest.wait_until(|gateway| gateway.stats().tcp == 0);
    reaches(running, "after a thousand connections");
    once(&mut guest, b"q");
    server.join().expect("a server");
    drop(guest);
    // The listener and its thread are gone too.
    reaches((before.0 - 1, before.1 - 1), "after the gateway");
    for _ in 0..1000 {
        let (gateway, _link) = Gateway::start(&config, Box::new(|| ())).expect("a gateway");
        drop(gateway);
    }
    reaches((before.0 - 1, before.1 - 1), "after a thousand gateways");
}
