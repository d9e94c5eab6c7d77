//! Hostile servers that send excessive data.

use a99_postgres::{PostgresCode, PostgresOptions, PostgresStore};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Bytes that a flood may put into the buffers of two sockets before the client leaves.
const PATIENCE: usize = 64 << 20;

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("a length");
    [&[tag][..], &length.to_be_bytes(), body].concat()
}

fn parameter(n: usize) -> Vec<u8> {
    message(b'S', format!("name{n}\0{}\0", "x".repeat(4_000)).as_bytes())
}

fn welcome() -> Vec<u8> {
    [message(b'R', &[0; 4]), message(b'Z', b"I")].concat()
}

/// Behaviour of a server after a client's first message.
type Act = fn(&mut TcpStream, &AtomicUsize) -> std::io::Result<()>;

/// Sends the same bytes forever, and counts them.
fn flood(
    stream: &mut TcpStream,
    sent: &AtomicUsize,
    next: impl Fn(usize) -> Vec<u8>,
) -> std::io::Result<()> {
    for n in 0.. {
        let bytes = next(n);
        stream.write_all(&bytes)?;
        sent.fetch_add(bytes.len(), Ordering::Relaxed);
    }
    Ok(())
}

fn serve(act: Act) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sent);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let counter = Arc::clone(&counter);
            std::thread::spawn(move || {
                let mut bytes = [0; 4_096];
                let n = stream.read(&mut bytes).unwrap_or_default();
                // A request for TLS, which the server lacks.
                if n == 8 {
                    stream.write_all(b"N")?;
                    let _ = stream.read(&mut bytes)?;
                }
                act(&mut stream, &counter)
            });
        }
    });
    (port, sent)
}

/// The error of opening a store on that port.
fn open(port: u16, mode: &str) -> (PostgresCode, String) {
    let url = format!("postgres://u:secret@127.0.0.1:{port}/d?sslmode={mode}");
    let options = PostgresOptions::of_url(&url).expect("options");
    let error = PostgresStore::open(options).expect_err("a hostile server");
    (error.code(), error.to_string())
}

#[test]
fn d13_a_server_that_floods_is_left() {
    let cases: [(&str, Act); 6] = [
        ("parameters", |stream, sent| {
            stream.write_all(&message(b'R', &[0; 4]))?;
            flood(stream, sent, parameter)
        }),
        ("parameters", |stream, sent| {
            stream.write_all(&message(b'R', &[0; 4]))?;
            let notice = message(b'N', &[b"MN\0".as_slice(), &[0]].concat());
            flood(stream, sent, |_| notice.repeat(1_000))
        }),
        ("parameters", |stream, sent| {
            stream.write_all(&welcome())?;
            flood(stream, sent, parameter)
        }),
        ("answer nothing", |stream, sent| {
            stream.write_all(&welcome())?;
            let notice = message(b'N', b"SNOTICE\0VNOTICE\0C00000\0Mhello\0\0");
            flood(stream, sent, |_| notice.repeat(1_000))
        }),
        ("of at most", |stream, sent| {
            stream.write_all(&welcome())?;
            // An error message without a terminator.
            stream.write_all(&[b'E', 0x40, 0, 0, 0, b'M'])?;
            flood(stream, sent, |_| vec![b'x'; 1 << 16])
        }),
        ("of at most", |stream, sent| {
            stream.write_all(&[b'R', 0x7f, 0xff, 0xff, 0xff])?;
            flood(stream, sent, |_| vec![0; 1 << 16])
        }),
    ];
    for (told, act) in cases {
        for mode in ["disable", "prefer"] {
            let began = Instant::now();
            let (port, sent) = serve(act);
            let (code, text) = open(port, mode);
            assert!(
                text.contains("the server sent") && text.contains(told),
                "{text}"
            );
            assert_eq!(code, PostgresCode::Unreachable, "{text}");
            assert!(!text.contains("secret"), "{text}");
            let sent = sent.load(Ordering::Relaxed);
            assert!(sent < PATIENCE, "{told}: {sent}");
            assert!(began.elapsed() < Duration::from_secs(60), "{told}");
        }
    }
}

#[test]
fn d13_a_server_that_breaks_before_tls_is_not_reached() {
    let (port, _) = serve(|_, _| Ok(()));
    let (code, text) = open(port, "prefer");
    assert_eq!(code, PostgresCode::Unreachable, "{text}");
    let (code, text) = open(port, "require");
    assert_eq!(code, PostgresCode::Tls, "{text}");
    assert!(text.contains("does not support TLS"), "{text}");
}
