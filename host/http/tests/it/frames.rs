//! Servers of HTTP/2 that write their frames themselves: bodies that are broken off, and
//! floods.

use crate::network::{PUBLIC, TestNet, code, limits, with};
use crate::tls::{self, Authority};
use a99_core::value::Value;
use a99_http::{FetchError, FetchLimits, HttpFetch, StreamRequest};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const NO_ERROR: [u8; 4] = [0; 4];
const CANCEL: [u8; 4] = [0, 0, 0, 8];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A header of the static table of HPACK (RFC 7541), by its index from 16 on.
fn field(index: u8, value: &str) -> Vec<u8> {
    let mut bytes = vec![0x0F, index - 15, value.len() as u8];
    bytes.extend_from_slice(value.as_bytes());
    bytes
}

/// A head: status 200, the length if there is one, and what else there is.
fn head(flags: u8, length: Option<usize>, more: &[u8]) -> Vec<u8> {
    let mut fields = vec![0x88];
    fields.extend(length.iter().flat_map(|n| field(28, &n.to_string())));
    fields.extend_from_slice(more);
    frame(HEADERS, flags | END_HEADERS, 1, &fields)
}

fn data(flags: u8, bytes: &[u8]) -> Vec<u8> {
    frame(DATA, flags, 1, bytes)
}

fn goaway(last: u32, reason: [u8; 4]) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), reason].concat())
}

/// A server that sends these parts after each request, the last one again and again where
/// it is a flood, and a fetch of it.
async fn world(
    parts: Vec<Vec<u8>>,
    flood: bool,
    limits: FetchLimits,
) -> (crate::server::Server, HttpFetch) {
    let authority = Authority::new();
    let identity = authority.sign(&["good.test"], |_| {});
    let server = tls::server(&identity, "h2", move |mut stream| {
        let parts = parts.clone();
        async move {
            let mut preface = [0; 24];
            if stream.read_exact(&mut preface).await.is_err() {
                return;
            }
            let _ = stream.write_all(&frame(SETTINGS, 0, 0, &[])).await;
            loop {
                let mut head = [0; 9];
                if stream.read_exact(&mut head).await.is_err() {
                    return;
                }
                let [a, b, c, kind, ..] = head;
                let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
                if stream.read_exact(&mut payload).await.is_err() {
                    return;
                }
                if kind == HEADERS {
                    break;
                }
            }
            let _ = stream.write_all(&frame(SETTINGS, 1, 0, &[])).await;
            for part in &parts {
                let _ = stream.write_all(part).await;
                let _ = stream.flush().await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            if let Some(part) = parts.last().filter(|_| flood) {
                let (mut reader, mut writer) = tokio::io::split(stream);
                let many = part.repeat(100);
                let read = async {
                    let mut sink = vec![0; 1 << 16];
                    while reader.read(&mut sink).await.is_ok_and(|n| n > 0) {}
                };
                let write = async { while writer.write_all(&many).await.is_ok() {} };
                tokio::join!(read, write);
                return;
            }
            let _ = stream.shutdown().await;
        }
    })
    .await;
    let net = TestNet::good(1).at(PUBLIC, 443, server.port);
    let fetch = net.builder("allow:good.test:443").limits(limits);
    let fetch = fetch.ca_pem(&authority.pem()).build().unwrap();
    (server, fetch)
}

async fn whole(parts: &[Vec<u8>], method: &str) -> Result<Value, FetchError> {
    let (_server, fetch) = world(parts.to_vec(), false, limits()).await;
    let options = format!(r#"{{"method":"{method}"}}"#);
    with(&fetch, "https://good.test/", &options).await
}

/// The same by pieces, as models are read.
async fn streamed(parts: &[Vec<u8>]) -> Result<Vec<u8>, FetchError> {
    let (_server, fetch) = world(parts.to_vec(), false, limits()).await;
    let mut answer = fetch.open(StreamRequest::get("https://good.test/")).await?;
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        body.extend_from_slice(&piece);
    }
    assert_eq!(answer.chunk().await, Ok(None));
    Ok(body)
}

#[tokio::test]
async fn d7_half_a_body_of_http2_is_no_answer() {
    let reset = |reason: [u8; 4]| frame(RESET, 0, 1, &reason);
    let half = data(0, b"half");
    for length in [None, Some(8), Some(1 << 20)] {
        let head = head(0, length, &[]);
        for end in [
            vec![reset(NO_ERROR)],
            vec![reset(CANCEL)],
            vec![goaway(0, NO_ERROR)],
            vec![goaway(1, NO_ERROR)],
            vec![goaway(1, NO_ERROR), reset(NO_ERROR)],
            vec![goaway(1, CANCEL)],
            vec![],
        ] {
            for body in [vec![half.clone()], vec![], vec![half.clone(), half.clone()]] {
                let label = format!("{length:?} {} {end:?}", body.len());
                let parts = [vec![head.clone()], body.clone(), end.clone()].concat();
                let found = whole(&parts, "GET").await;
                assert!(found.is_err(), "{label} {found:?}");
                let found = streamed(&parts).await;
                assert!(found.is_err(), "{label} {found:?}");
                // At once, too: what came is read before the end is seen.
                let found = whole(&[parts.concat()], "GET").await;
                assert!(found.is_err(), "{label} {found:?}");
            }
        }
    }
    let broken = [head(0, None, &[]), half, reset(NO_ERROR)];
    assert_eq!(code(whole(&broken, "GET").await), "fetch.closed");
}

#[tokio::test]
async fn d7_lengths_of_http2_must_be_right() {
    let trailers = || frame(HEADERS, END_STREAM | END_HEADERS, 1, &field(28, "4"));
    for (length, parts) in [
        (5, vec![data(END_STREAM, b"half")]),
        (3, vec![data(END_STREAM, b"half")]),
        (3, vec![data(0, b"half"), data(END_STREAM, b"")]),
        (8, vec![data(0, b"half"), data(END_STREAM, b"")]),
        (8, vec![data(0, b"half"), trailers()]),
    ] {
        let parts = [vec![head(0, Some(length), &[])], parts].concat();
        let found = whole(&parts, "GET").await;
        assert!(found.is_err(), "{length} {found:?}");
        assert!(streamed(&parts).await.is_err(), "{length}");
    }
    let empty = [head(END_STREAM, Some(7), &[])];
    assert!(whole(&empty, "GET").await.is_err());
}

#[tokio::test]
async fn d7_whole_bodies_of_http2_are_answers() {
    let reset = frame(RESET, 0, 1, &NO_ERROR);
    for parts in [
        vec![head(0, Some(4), &[]), data(END_STREAM, b"full")],
        vec![
            head(0, None, &[]),
            data(0, b"fu"),
            data(0, b"ll"),
            data(END_STREAM, b""),
        ],
        vec![
            head(0, Some(4), &[]),
            data(0, b"full"),
            frame(HEADERS, END_STREAM | END_HEADERS, 1, &field(54, "x")),
        ],
        // The answer came whole; that the rest of the request is not wanted changes nothing.
        vec![head(0, Some(4), &[]), data(END_STREAM, b"full"), reset],
        vec![
            head(0, Some(4), &[]),
            goaway(1, NO_ERROR),
            data(END_STREAM, b"full"),
        ],
    ] {
        for parts in [vec![parts.concat()], parts] {
            let found = whole(&parts, "GET").await;
            assert_eq!(found.unwrap().as_str(), Some("full"));
            assert_eq!(streamed(&parts).await.unwrap(), b"full");
        }
    }
    // The length of what a `GET` would bring, which may be more than a body may have.
    let found = whole(&[head(END_STREAM, Some(1 << 40), &[])], "HEAD").await;
    assert_eq!(found.unwrap().as_str(), Some(""));
}

#[tokio::test]
async fn d13_a_flood_of_control_frames_ends_the_connection() {
    let ids = |n: u32| n.to_be_bytes();
    for (label, flood) in [
        ("ping", frame(PING, 0, 0, &[7; 8])),
        ("ping ack", frame(PING, 1, 0, &[7; 8])),
        ("settings", frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100])),
        ("empty settings", frame(SETTINGS, 0, 0, &[])),
        ("empty data", data(0, b"")),
        ("padded data", frame(DATA, 8, 1, &[0])),
        ("window", frame(WINDOW, 0, 0, &ids(1))),
        ("priority", frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 7])),
        ("continuation", frame(CONTINUATION, 0, 1, &[])),
        ("reset", frame(RESET, 0, 1, &NO_ERROR)),
        ("goaway", goaway(1, NO_ERROR)),
        ("unknown", frame(0xBB, 0, 0, b"grease")),
    ] {
        let limits = FetchLimits {
            max_body_bytes: 1 << 30,
            ..limits()
        };
        let first = match label {
            "continuation" => frame(HEADERS, 0, 1, &[0x88]),
            _ => head(0, None, &[]),
        };
        let (_server, fetch) = world(vec![first, flood], true, limits).await;
        let begun = Instant::now();
        let found = with(&fetch, "https://good.test/", "{}").await;
        assert!(found.is_err(), "{label} {found:?}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{label}");
        if ["ping", "priority", "unknown"].contains(&label) {
            assert_eq!(
                found.unwrap_err().to_string(),
                "https://good.test:443 sends a flood of control frames"
            );
        }
    }
}
