//! Port forwards: ports of the host forwarded into the guest.

use crate::config;
use crate::peer::{Guest, pattern};
use a99_sandbox_net::{Forward, Gateway, NetCode};
use smoltcp::socket::tcp::State;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;

#[test]
fn the_host_reaches_a_server_in_the_guest() {
    let mut config = config(&[1]);
    config.forwards = vec![Forward::local(0, 8080)];
    let mut guest = Guest::new(&config);
    let address = guest.backend.gateway.forwards()[0];
    assert!(address.ip().is_loopback() && address.port() != 0);
    let body = pattern(1 << 20, 11);
    let sent = body.clone();
    let handle = guest.socket(256 << 10);
    guest.tcp(handle).listen(8080).expect("a free port");
    // The guest has not sent a frame yet: the gateway must ask for its address.
    let client = thread::spawn(move || {
        let mut stream = TcpStream::connect(address).expect("a forward");
        stream.write_all(&sent).expect("open");
        stream.shutdown(Shutdown::Write).expect("open");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an orderly end");
        answer
    });
    guest.until(|guest| (guest.tcp(handle).state() != State::Listen).then_some(()));
    guest.until(|guest| guest.tcp(handle).may_recv().then_some(()));
    assert!(guest.read_to_end(handle).expect("an orderly end") == body);
    guest.write(handle, b"thanks");
    guest.close(handle);
    assert_eq!(client.join().expect("a client"), b"thanks");
    guest.wait_until(|gateway| gateway.stats().tcp == 0);
}

#[test]
fn a_port_where_nobody_listens_is_reset() {
    let mut config = config(&[1]);
    config.forwards = vec![Forward::local(0, 8080)];
    let mut guest = Guest::new(&config);
    let address = guest.backend.gateway.forwards()[0];
    let client = thread::spawn(move || {
        let mut stream = TcpStream::connect(address).expect("a forward");
        stream.read(&mut [0]).map_err(|error| error.kind())
    });
    while !client.is_finished() {
        guest.step();
    }
    let outcome = client.join().expect("a client");
    assert_eq!(outcome, Err(std::io::ErrorKind::ConnectionReset));
    guest.wait_until(|gateway| gateway.stats().tcp == 0);
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let (_listener, port) = crate::listener();
    let mut config = config(&[1]);
    config.forwards = vec![Forward::local(port, 80)];
    let error = Gateway::start(&config, Box::new(|| ())).expect_err("taken");
    assert_eq!(error.code, NetCode::Listen);
    assert!(error.text.contains(&port.to_string()), "{error}");
    config.forwards = vec![Forward::local(0, 0)];
    let error = Gateway::start(&config, Box::new(|| ())).expect_err("no port");
    assert_eq!(error.code, NetCode::Listen);
    config.forwards.clear();
    config.mtu = 500;
    let error = Gateway::start(&config, Box::new(|| ())).expect_err("too small");
    assert_eq!((error.code, error.code.name()), (NetCode::Mtu, "net.mtu"));
}
