//! Exact bytes, from a kilobyte to fifty megabytes, in both directions; slow readers; the
//! rate limit; speed.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what is measured"
)]

use crate::peer::{Guest, pattern, read_some};
use crate::{config, ethernet, listener};
use a99_sandbox_net::{Config, HOST, Rate};
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

const SIZES: [usize; 6] = [1 << 10, 8 << 10, 25 << 10, 100 << 10, 1 << 20, 10 << 20];

fn sha(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Serves connections: reads to the end, answers with the hash and another body of the same
/// size, whose hash it returns.
fn mirror(sizes: &'static [usize]) -> (u16, thread::JoinHandle<()>) {
    let (listener, port) = listener();
    let server = thread::spawn(move || {
        for size in sizes {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).expect("an orderly end");
            assert_eq!(bytes.len(), *size);
            stream.write_all(&sha(&bytes)).expect("open");
            stream.write_all(&pattern(*size, 99)).expect("open");
        }
    });
    (port, server)
}

fn exchange(config: impl Fn(&[u16]) -> Config, sizes: &'static [usize]) {
    let (port, server) = mirror(sizes);
    let mut guest = Guest::new(&config(&[port]));
    for size in sizes {
        let body = pattern(*size, 5);
        let handle = guest.connect(HOST, port).expect("connected");
        guest.write(handle, &body);
        guest.tcp(handle).close();
        let answer = guest.read_to_end(handle).expect("an orderly end");
        let (hash, back) = answer.split_at(32);
        assert_eq!(hash, sha(&body), "{size} bytes up");
        assert_eq!(back.len(), *size);
        assert_eq!(sha(back), sha(&pattern(*size, 99)), "{size} bytes down");
        guest.close(handle);
    }
    server.join().expect("a server");
    guest.wait_until(|gateway| gateway.stats().tcp == 0);
}

#[test]
fn bytes_are_exact() {
    exchange(config, &SIZES);
}

#[test]
fn bytes_are_exact_over_ethernet() {
    exchange(ethernet, &SIZES);
}

#[test]
fn fifty_megabytes_are_exact() {
    exchange(config, &[50 << 20]);
}

#[test]
fn a_slow_peer_holds_the_guest_back() {
    let (listener, port) = listener();
    let body = pattern(8 << 20, 3);
    let expected = sha(&body);
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        thread::sleep(Duration::from_millis(500));
        let mut bytes = vec![0; 100_000];
        let mut hash = Sha256::new();
        loop {
            match stream.read(&mut bytes).expect("an orderly end") {
                0 => break,
                count => hash.update(&bytes[..count]),
            }
            thread::sleep(Duration::from_micros(500));
        }
        <[u8; 32]>::from(hash.finalize())
    });
    let mut guest = Guest::new(&config(&[port]));
    let handle = guest.connect(HOST, port).expect("connected");
    guest.write(handle, &body);
    guest.close(handle);
    assert_eq!(server.join().expect("a server"), expected);
}

#[test]
fn a_peer_that_reads_late_loses_nothing() {
    // Both halves have ended long before the peer takes its bytes; 11 s exceed TIME-WAIT in
    // the gateway's stack.
    let (listener, port) = listener();
    // More than the host's own buffers hold.
    let body = pattern(7 << 20, 8);
    let expected = body.clone();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.shutdown(std::net::Shutdown::Write).expect("open");
        let mut first = vec![0; 6 << 20];
        stream.read_exact(&mut first).expect("bytes");
        thread::sleep(Duration::from_secs(11));
        stream.read_to_end(&mut first).expect("an orderly end");
        first
    });
    let mut guest = Guest::new(&config(&[port]));
    let handle = guest.connect(HOST, port).expect("connected");
    guest.write(handle, &body);
    guest.close(handle);
    assert!(server.join().expect("a server") == expected);
    guest.wait_until(|gateway| gateway.stats().tcp == 0);
}

#[test]
fn a_slow_guest_holds_the_peer_back() {
    let (listener, port) = listener();
    let body = pattern(8 << 20, 4);
    let expected = sha(&body);
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.write_all(&body).expect("open");
    });
    let mut guest = Guest::new(&config(&[port]));
    let handle = guest.connect(HOST, port).expect("connected");
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 70_000];
    guest.until(|guest| {
        thread::sleep(Duration::from_micros(300));
        match guest.tcp(handle).recv_slice(&mut buffer) {
            Ok(count) => {
                hash.update(&buffer[..count]);
                None
            }
            Err(_) => Some(()),
        }
    });
    assert_eq!(<[u8; 32]>::from(hash.finalize()), expected);
    server.join().expect("a server");
}

#[test]
fn an_aborted_transfer_leaves_the_next_alone() {
    let (listener, port) = listener();
    let server = thread::spawn(move || {
        let send = |mut stream: TcpStream| stream.write_all(&pattern(20 << 20, 6));
        assert!(send(listener.accept().expect("a connection").0).is_err());
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.write_all(b"the next").expect("open");
    });
    let mut guest = Guest::new(&config(&[port]));
    let handle = guest.connect(HOST, port).expect("connected");
    guest.until(|guest| (guest.tcp(handle).recv_queue() > 100_000).then_some(()));
    guest.tcp(handle).abort();
    let next = guest.connect(HOST, port).expect("connected");
    assert_eq!(guest.read_to_end(next), Ok(b"the next".to_vec()));
    server.join().expect("a server");
}

/// Seconds to transfer `bytes` from the host to the guest, and back.
fn time(config: &Config, listener: &std::net::TcpListener, bytes: usize) -> [f64; 2] {
    let port = listener.local_addr().expect("an address").port();
    let mut guest = Guest::new(config);
    let mut seconds = [0.0; 2];
    thread::scope(|scope| {
        scope.spawn(|| {
            let block = vec![7; 1 << 20];
            let (mut stream, _) = listener.accept().expect("a connection");
            for _ in 0..bytes >> 20 {
                stream.write_all(&block).expect("open");
            }
            drop(stream);
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut block = block;
            while stream.read(&mut block).expect("an orderly end") > 0 {}
        });
        let handle = guest.connect(HOST, port).expect("connected");
        let start = Instant::now();
        let mut got = 0;
        let mut sink = Vec::new();
        guest.until(|guest| {
            let ended = read_some(guest.tcp(handle), &mut sink);
            got += sink.len();
            sink.clear();
            ended
        });
        assert_eq!(got, bytes);
        seconds[0] = start.elapsed().as_secs_f64();
        let handle = guest.connect(HOST, port).expect("connected");
        let start = Instant::now();
        let block = vec![7; 1 << 20];
        for _ in 0..bytes >> 20 {
            guest.write(handle, &block);
        }
        guest.close(handle);
        seconds[1] = start.elapsed().as_secs_f64();
    });
    seconds
}

#[test]
fn long_transfers_are_whole_both_ways() {
    const BYTES: usize = 64 << 20;
    for (name, config) in [
        ("our guest", config as fn(&[u16]) -> Config),
        ("ethernet", ethernet),
    ] {
        let (listener, port) = listener();
        let seconds = time(&config(&[port]), &listener, BYTES);
        let [down, up] = seconds.map(|seconds| BYTES as f64 / 1e6 / seconds);
        println!("{name}: {down:.0} MB/s to the guest, {up:.0} MB/s from it");
    }
}

#[test]
fn the_rate_limit_holds() {
    const BYTES: usize = 2 << 20;
    let (listener, port) = listener();
    let mut config = config(&[port]);
    config.rate = Rate {
        to_guest: Some(2_000_000),
        from_guest: Some(4_000_000),
    };
    let [down, up] = time(&config, &listener, BYTES);
    assert!((0.9..6.0).contains(&down), "{down} s");
    assert!((0.4..3.0).contains(&up), "{up} s");
}
