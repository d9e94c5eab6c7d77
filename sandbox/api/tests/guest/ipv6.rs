//! IPv6 of a running guest, with servers on this host's ::1.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::common::{builder, sh};
use a99_sandbox::{Sandbox, block_on};
use std::io::{Read, Write};
use std::net::{Ipv6Addr, TcpListener, UdpSocket};
use std::thread;

fn networked(policy: &str) -> Sandbox {
    let builder = builder().network(policy.parse().expect("a policy"));
    builder.start_blocking().expect("a sandbox")
}

/// A web server that answers every request with `body`.
fn server(body: &'static str) -> u16 {
    let listener = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                match stream.read(&mut byte) {
                    Ok(1) => request.extend(byte),
                    _ => break,
                }
            }
            let length = body.len();
            let answer = format!("HTTP/1.0 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

#[test]
#[ignore = "needs the image"]
fn a_server_on_ipv6_is_reached_when_it_is_named() {
    let port = server("over six");
    for policy in [
        format!("allow:[::1]:{port}"),
        format!("full:localhost:{port}"),
    ] {
        let sandbox = networked(&policy);
        // Nothing is waited for: the first command has the address and the route.
        let addresses = sh(&sandbox, "ip -6 addr show dev eth0");
        assert!(addresses.contains("fda9:9a99:127::3/64"), "{addresses}");
        for noise in ["fe80", "tentative", "dadfailed"] {
            assert!(!addresses.contains(noise), "{addresses}");
        }
        let literal = format!("curl -s -g 'http://[fda9:9a99:127::254]:{port}/'");
        assert_eq!(sh(&sandbox, &literal), "over six");
        let name = format!("curl -s -6 http://host.agent99.internal:{port}/");
        assert_eq!(sh(&sandbox, &name), "over six");
        // Clients that begin with IPv4, where the port is closed, go on with IPv6.
        let script = format!(
            "import urllib.request as u; print(u.urlopen('http://host.agent99.internal:{port}/').read())"
        );
        let python = block_on(sandbox.command(["python3", "-c", &script]).output()).unwrap();
        assert_eq!(python.stdout, b"b'over six'\n");
        let gateway = sh(&sandbox, "ping -6 -c 2 fda9:9a99:127::1");
        assert!(gateway.contains(" 0% packet loss"), "{gateway}");
        let other = format!(
            "curl -s -g -m 5 'http://[fda9:9a99:127::254]:{}/'",
            port ^ 1
        );
        let refused = block_on(sandbox.exec(other)).unwrap();
        assert_eq!(refused.exit_code(), 7);
    }
}

/// S04: only named destinations are reachable over IPv6 too.
#[test]
#[ignore = "needs the image"]
fn s04_a_guest_reaches_nothing_over_ipv6_that_was_not_named() {
    let port = server("secret");
    for policy in ["full", "allow:example.com", "off"] {
        let sandbox = networked(policy);
        for host in [
            "fda9:9a99:127::254",
            "fda9:9a99:127::1",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:192.168.127.254",
            "64:ff9b::7f00:1",
            "2002:7f00:1::1",
            "fc00::1",
            "fd00:ec2::254",
            "2001:db8::1",
        ] {
            let text = format!("curl -s -g -m 5 'http://[{host}]:{port}/'");
            let output = block_on(sandbox.exec(&text)).unwrap();
            assert_ne!(output.exit_code(), 0, "{policy} {host}");
            // The refusal comes at once.
            assert_ne!(output.exit_code(), 28, "{policy} {host}");
            assert_eq!(output.stdout, b"", "{policy} {host}");
        }
    }
}

#[test]
#[ignore = "needs the image"]
fn datagrams_go_over_ipv6() {
    let socket = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
    let port = socket.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut bytes = [0; 65_536];
        while let Ok((count, from)) = socket.recv_from(&mut bytes) {
            bytes[..count].reverse();
            let _ = socket.send_to(&bytes[..count], from);
        }
    });
    let sandbox = networked(&format!("allow:[::1]:{port}"));
    let script = format!(
        "import socket as s\n\
         u = s.socket(s.AF_INET6, s.SOCK_DGRAM)\n\
         u.settimeout(30)\n\
         for size in (1, 1400, 60000):\n\
         \x20   data = bytes(n % 251 for n in range(size))\n\
         \x20   u.sendto(data, ('fda9:9a99:127::254', {port}))\n\
         \x20   print(u.recv(65536) == data[::-1])\n"
    );
    let output = block_on(sandbox.command(["python3", "-c", &script]).output()).unwrap();
    assert_eq!(output.stdout, b"True\nTrue\nTrue\n");
}
