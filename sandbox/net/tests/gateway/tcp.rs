//! Connections: ends, resets, refusals, many at once, one after another.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what is measured"
)]

use crate::peer::{Guest, pattern};
use crate::{config, ethernet, listener};
use a99_sandbox_net::{GATEWAY, HOST};
use smoltcp::socket::tcp::State;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Serves one connection in a thread.
fn serve<T: Send + 'static>(
    serve: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (u16, thread::JoinHandle<T>) {
    let (listener, port) = listener();
    let thread = thread::spawn(move || serve(listener.accept().expect("a connection").0));
    (port, thread)
}

fn read_all(mut stream: &TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an orderly end");
    bytes
}

#[test]
fn the_guest_may_end_its_half_first() {
    let (port, server) = serve(|mut stream| {
        let bytes = read_all(&stream);
        thread::sleep(Duration::from_millis(100));
        stream.write_all(b"answer after your end").expect("open");
        bytes
    });
    let mut guest = Guest::new(&config(&[port]));
    let handle = guest.connect(HOST, port).expect("connected");
    guest.write(handle, b"question");
    guest.tcp(handle).close();
    assert_eq!(
        guest.read_to_end(handle),
        Ok(b"answer after your end".to_vec())
    );
    assert_eq!(server.join().expect("a server"), b"question");
    guest.wait_until(|gateway| gateway.stats().tcp == 0);
}

#[test]
fn the_peer_may_end_its_half_first() {
    let (port, server) = serve(|mut stream| {
        stream.write_all(b"banner").expect("open");
        stream.shutdown(Shutdown::Write).expect("open");
        read_all(&stream)
    });
    let mut guest = Guest::new(&config(&[port]));
    let handle = guest.connect(GATEWAY, port).expect("connected");
    assert_eq!(guest.read_to_end(handle), Ok(b"banner".to_vec()));
    let late = pattern(300_000, 7);
    guest.write(handle, &late);
    guest.close(handle);
    assert!(server.join().expect("a server") == late);
    guest.wait_until(|gateway| gateway.stats().tcp == 0);
}

#[test]
fn resets_of_the_peer_reach_the_guest() {
    let (port, server) = serve(|stream| {
        stream.peek(&mut [0]).expect("a byte");
        // Unread bytes turn the end into a reset.
        drop(stream);
    });
    let mut guest = Guest::new(&config(&[port]));
    let handle = guest.connect(HOST, port).expect("connected");
    guest.write(handle, b"never read");
    assert_eq!(guest.read_to_end(handle), Err(vec![]));
    server.join().expect("a server");
    guest.wait_until(|gateway| gateway.stats().tcp == 0);
}

#[test]
fn resets_of_the_guest_reach_the_peer() {
    let (port, server) = serve(|mut stream| {
        let mut bytes = [0; 100];
        let count = stream.read(&mut bytes).expect("bytes");
        (count, stream.read(&mut bytes).expect_err("a reset").kind())
    });
    let mut guest = Guest::new(&config(&[port]));
    let handle = guest.connect(HOST, port).expect("connected");
    guest.write(handle, b"1234");
    // The server has them before the reset comes.
    guest.until(|guest| (guest.tcp(handle).send_queue() == 0).then_some(()));
    thread::sleep(Duration::from_millis(200));
    guest.tcp(handle).abort();
    guest.step();
    assert_eq!(
        server.join().expect("a server"),
        (4, ErrorKind::ConnectionReset)
    );
    guest.wait_until(|gateway| gateway.stats().tcp == 0);
}

#[test]
fn refused_means_refused() {
    let (unused, port) = listener();
    drop(unused);
    for config in [config(&[port]), ethernet(&[port])] {
        let mut guest = Guest::new(&config);
        assert_eq!(guest.connect(HOST, port), None);
        guest.wait_until(|gateway| gateway.stats().tcp == 0);
    }
}

#[test]
fn a_thousand_connections_in_a_row() {
    let (listener, port) = listener();
    let server = thread::spawn(move || {
        for _ in 0..1000 {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut number = [0; 4];
            stream.read_exact(&mut number).expect("a number");
            stream.write_all(&number).expect("open");
        }
    });
    let mut guest = Guest::new(&config(&[port]));
    let mut best = Duration::MAX;
    for number in 0..1000u32 {
        let start = Instant::now();
        let handle = guest.connect(HOST, port).expect("connected");
        guest.write(handle, &number.to_le_bytes());
        assert_eq!(guest.read_to_end(handle), Ok(number.to_le_bytes().to_vec()));
        guest.close(handle);
        best = best.min(start.elapsed());
    }
    println!("a connection: {best:?}");
    assert!(best < Duration::from_millis(20), "{best:?}");
    server.join().expect("a server");
    guest.wait_until(|gateway| gateway.stats().tcp == 0);
}

#[test]
fn sixty_four_connections_at_once() {
    const COUNT: usize = 64;
    let (listener, port) = listener();
    let (done, finished) = mpsc::channel();
    let server = thread::spawn(move || {
        for _ in 0..COUNT {
            let (mut stream, _) = listener.accept().expect("a connection");
            let done = done.clone();
            thread::spawn(move || {
                let bytes = read_all(&stream);
                stream.write_all(&bytes).expect("open");
                done.send(bytes.len()).expect("a test");
            });
        }
    });
    let mut guest = Guest::new(&config(&[port]));
    let bodies: Vec<Vec<u8>> = (0..COUNT)
        .map(|n| pattern(20_000 + 7 * n, n as u64))
        .collect();
    let handles: Vec<_> = (0..COUNT)
        .map(|_| guest.dial(HOST, port, 16 << 10))
        .collect();
    let mut sent = [0; COUNT];
    let mut got = vec![Vec::new(); COUNT];
    let mut ended = [false; COUNT];
    guest.until(|guest| {
        for (index, handle) in handles.iter().enumerate() {
            let socket = guest.tcp(*handle);
            if socket.state() == State::SynSent {
                continue;
            }
            if socket.can_send() {
                sent[index] += socket
                    .send_slice(&bodies[index][sent[index]..])
                    .expect("open");
                if sent[index] == bodies[index].len() {
                    socket.close();
                }
            }
            ended[index] |= crate::peer::read_some(socket, &mut got[index]) == Some(true);
        }
        ended.iter().all(|ended| *ended).then_some(())
    });
    assert!(got == bodies);
    server.join().expect("a server");
    assert_eq!(finished.iter().take(COUNT).count(), COUNT);
    guest.wait_until(|gateway| gateway.stats().tcp == 0);
}

#[test]
fn silent_connections_end() {
    let (listener, port) = listener();
    let mut config = config(&[port]);
    config.limits.tcp_idle = Duration::from_millis(500);
    let mut guest = Guest::new(&config);
    let handle = guest.connect(HOST, port).expect("connected");
    let (mut stream, _) = listener.accept().expect("a connection");
    assert_eq!(guest.read_to_end(handle), Err(vec![]));
    assert_eq!(
        stream.read(&mut [0]).expect_err("a reset").kind(),
        ErrorKind::ConnectionReset
    );
    guest.wait_until(|gateway| gateway.stats().tcp == 0);
}

#[test]
fn a_connection_of_before_is_reset() {
    // Like after the restore of a snapshot, the gateway is a new one.
    let (listener, port) = listener();
    let mut guest = Guest::new(&config(&[port]));
    let handle = guest.connect(HOST, port).expect("connected");
    let (_stream, _) = listener.accept().expect("a connection");
    guest.backend = crate::peer::NetBackend::new(&config(&[port]));
    guest.write(handle, b"are you still there?");
    assert_eq!(guest.read_to_end(handle), Err(vec![]));
    assert!(guest.connect(HOST, port).is_some());
}
