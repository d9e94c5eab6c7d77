//! Long network load: data in both directions, short connections, names and pings, in a
//! guest from the image that was built last. Every turn must stay within its time limit.
//!
//! `cargo xtask soak` runs it for ten minutes; `A99_SOAK_SECONDS` sets another duration, by
//! default a few seconds.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what is measured"
)]

use crate::common::builder;
use a99_sandbox::block_on;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Default duration in seconds.
const SECONDS: &str = "5";

/// One turn: 4 MiB there and back again, with a hash; twenty connections one after the
/// other, eight at once; a ping of the gateway. Prints each turn's worst time.
const SCRIPT: &str = r#"
import hashlib, os, socket, subprocess, sys, threading, time
address = ("host.agent99.internal", int(sys.argv[1]))
end = time.monotonic() + float(sys.argv[2])
worst = {}
moved = {"to the host": 0, "from the host": 0}
turns = 0
def timed(name, work):
    start = time.monotonic(); result = work(); took = time.monotonic() - start
    worst[name] = max(worst.get(name, 0), took)
    assert took < 10, (name, took)
def send(count):
    data = os.urandom(count)
    with socket.create_connection(address) as c:
        c.sendall(b"S"); c.sendall(data); c.shutdown(socket.SHUT_WR)
        answer = c.makefile("rb").read()
    assert answer == hashlib.sha256(data).digest(), "damaged on the way to the host"
def receive(count):
    with socket.create_connection(address) as c:
        c.sendall(b"R" + count.to_bytes(4, "big")); c.shutdown(socket.SHUT_WR)
        data = c.makefile("rb").read()
    assert len(data) == count + 32, len(data)
    assert hashlib.sha256(data[32:]).digest() == data[:32], "damaged on the way from the host"
def short():
    with socket.create_connection(address) as c:
        c.sendall(b"Shi"); c.shutdown(socket.SHUT_WR)
        assert c.makefile("rb").read() == hashlib.sha256(b"hi").digest()
def many():
    threads = [threading.Thread(target=short) for _ in range(8)]
    for t in threads: t.start()
    for t in threads: t.join()
def ping():
    subprocess.run(["ping", "-c", "1", "-W", "5", "192.168.127.1"], check=True, stdout=subprocess.DEVNULL)
size = 4 << 20
while turns == 0 or time.monotonic() < end:
    for name, work in [("to the host", send), ("from the host", receive)]:
        timed(name, lambda: work(size))
        moved[name] += size
    for _ in range(20): timed("short connection", short)
    timed("eight at once", many)
    timed("ping", ping)
    turns += 1
for name, count in moved.items(): print(f"{name}: {count >> 20} MiB, all as sent")
print(f"{turns} turns; longest:", ", ".join(f"{n} {t * 1e3:.0f} ms" for n, t in worst.items()))
"#;

/// Answers one connection: `S` and bytes with their SHA-256; `R` and a number with a
/// SHA-256 and that many bytes.
fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    use sha2::{Digest, Sha256};
    let mut request = Vec::new();
    stream.read_to_end(&mut request)?;
    match request.split_first() {
        Some((b'S', data)) => stream.write_all(&Sha256::digest(data)),
        Some((b'R', number)) => {
            let count = u32::from_be_bytes(number.try_into().unwrap_or_default());
            let data: Vec<u8> = (0..count).map(|n| (n ^ (n >> 7)) as u8).collect();
            stream.write_all(&Sha256::digest(&data))?;
            stream.write_all(&data)
        }
        _ => Ok(()),
    }
}

#[test]
#[ignore = "needs the image"]
fn the_network_does_not_stall() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A guest that fails reports that itself.
            std::thread::spawn(move || drop(answer(stream)));
        }
    });
    let seconds = std::env::var("A99_SOAK_SECONDS").unwrap_or(SECONDS.to_owned());
    let time: u64 = seconds.parse().expect("A99_SOAK_SECONDS is a number");
    let policy = format!("allow:host.agent99.internal:{port}");
    let sandbox = builder()
        .network(policy.parse().expect("a policy"))
        .start_blocking()
        .expect("a sandbox");
    let command = sandbox.command(["python3", "-c", SCRIPT, &port.to_string(), &seconds]);
    let timeout = Duration::from_secs(time + 120);
    let output = block_on(command.timeout(timeout).output()).expect("it ends in time");
    assert_eq!(output.exit_code(), 0, "{}", output.stderr_text());
    println!("{}", output.stdout_text());
}
