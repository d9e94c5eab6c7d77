//! Hostile servers (security N08): slow, endless, packed, malformed.

use crate::network::{TestNet, code, get, limits, with};
use crate::server::{Server, answer, ok, read_request};
use a99_core::value::Value;
use a99_http::{FetchError, FetchLimits};
use base64::Engine as _;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use std::io::Write as _;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

/// 64 MiB of zeros in brotli.
const BROTLI_BOMB: &str = "y///P/gnAOKxQCD3/o///3/wTwDEYRGA7v0f////4J8AiMMCAN37P/7//8E/ARCHBQC693/8//+DfwIgDgsAdO//+P//B/8EQBwWAOje//H//w/+CYA4LADQvf/L//8//BMAcVgAoHv/Bw==";

/// A MiB of body and little time.
fn small() -> FetchLimits {
    FetchLimits {
        max_body_bytes: 1 << 20,
        ..limits()
    }
}

fn quick() -> FetchLimits {
    FetchLimits {
        timeout: Duration::from_millis(500),
        ..small()
    }
}

/// What a fetch makes of bytes that a server sends and then ends.
async fn whole(bytes: &[u8]) -> Result<Value, FetchError> {
    let bytes = bytes.to_vec();
    let server = Server::raw(move |mut stream, _| {
        let bytes = bytes.clone();
        async move {
            if read_request(&mut stream).await.is_some() {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
            }
        }
    })
    .await;
    let fetch = TestNet::good(server.port).fetch_within("full", small());
    get(&fetch, "http://good.test/").await
}

/// The same of an answer that is text.
async fn sent(bytes: impl AsRef<[u8]>) -> Result<String, FetchError> {
    let answer = whole(bytes.as_ref()).await;
    answer.map(|value| value.as_str().unwrap().to_owned())
}

async fn refused(bytes: impl Into<Vec<u8>>, expected: &str) {
    let bytes = bytes.into();
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(90)]).into_owned();
    match sent(bytes).await {
        Ok(text) => panic!("{start:?} gave {text:?}"),
        Err(error) => assert_eq!(error.code().name(), expected, "{start:?}: {error}"),
    }
}

/// A server that sends a head and then the same for ever, and what became of it.
async fn endless(head: &'static str, part: Vec<u8>) -> (Result<(), FetchError>, usize) {
    let (told, mut sent) = mpsc::unbounded_channel();
    let server = Server::raw(move |mut stream, _| {
        let (part, told) = (part.clone(), told.clone());
        async move {
            read_request(&mut stream).await;
            let mut total = 0;
            let mut next = stream.write_all(head.as_bytes()).await;
            while next.is_ok() && total < 1 << 30 {
                next = stream.write_all(&part).await;
                total += part.len();
            }
            told.send(total).unwrap();
        }
    })
    .await;
    let fetch = TestNet::good(server.port).fetch_within("full", small());
    let answer = get(&fetch, "http://good.test/").await.map(drop);
    // The connection is closed, so that the server cannot go on.
    let total = tokio::time::timeout(Duration::from_secs(10), sent.recv()).await;
    (answer, total.unwrap().unwrap())
}

#[tokio::test]
async fn n08_endless_answers_end_at_their_limits() {
    let chunk = |bytes: usize| format!("{bytes:x}\r\n{}\r\n", "x".repeat(bytes)).into_bytes();
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let table = [
        (
            "HTTP/1.1 200 OK\r\n\r\n",
            vec![b'x'; 8192],
            "fetch.body_too_large",
        ),
        (chunked, chunk(8192), "fetch.body_too_large"),
        (
            "HTTP/1.1 200 OK\r\n",
            b"a: bcdefgh\r\n".repeat(500),
            "fetch.header_too_large",
        ),
        (
            "HTTP/1.1 200 OK\r\na: ",
            vec![b'x'; 8192],
            "fetch.header_too_large",
        ),
        ("", vec![b'x'; 8192], "fetch.protocol"),
        (
            "",
            b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(200),
            "fetch.header_too_large",
        ),
        (
            "",
            b"HTTP/1.1 100 Continue\r\n\r\n".repeat(300),
            "fetch.header_too_large",
        ),
    ];
    for (head, part, expected) in table {
        let label = format!("{head:?}{:?}", String::from_utf8_lossy(&part[..20]));
        let (answer, total) = endless(head, part).await;
        let error = answer.unwrap_err();
        assert_eq!(error.code().name(), expected, "{label}: {error}");
        // What was read, and what the system holds on both sides.
        assert!(total < 32 << 20, "{label}: {total}");
    }
}

#[tokio::test]
async fn n08_slow_answers_end_in_time() {
    for (head, part) in [
        ("HTTP/1.1 200 OK\r\nSlow: ", "1"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", "1"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "1\r\nx\r\n",
        ),
        ("", "HTTP/1.1 103 x\r\n\r\n"),
        ("", ""),
    ] {
        let (told, mut closed) = mpsc::unbounded_channel();
        let server = Server::raw(move |mut stream, _| {
            let told = told.clone();
            async move {
                read_request(&mut stream).await;
                let _ = stream.write_all(head.as_bytes()).await;
                let mut end = [0];
                loop {
                    tokio::select! {
                        read = stream.read(&mut end) => break drop(read),
                        () = tokio::time::sleep(Duration::from_millis(50)) => {
                            if stream.write_all(part.as_bytes()).await.is_err() {
                                break;
                            }
                        }
                    }
                }
                told.send(()).unwrap();
            }
        })
        .await;
        let fetch = TestNet::good(server.port).fetch_within("full", quick());
        let begun = Instant::now();
        let answer = get(&fetch, "http://good.test/secret").await;
        assert_eq!(code(answer), "fetch.timeout", "{head:?}");
        assert!(begun.elapsed() < Duration::from_secs(10));
        // The socket is closed with it.
        let end = tokio::time::timeout(Duration::from_secs(10), closed.recv()).await;
        assert!(end.is_ok(), "{head:?}");
    }
}

#[tokio::test]
async fn n08_an_abort_closes_the_socket() {
    for head in ["", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nsome"] {
        let (told, mut closed) = mpsc::unbounded_channel();
        let server = Server::raw(move |mut stream, _| {
            let told = told.clone();
            async move {
                read_request(&mut stream).await;
                let _ = stream.write_all(head.as_bytes()).await;
                told.send(false).unwrap();
                let _ = stream.read(&mut [0]).await;
                told.send(true).unwrap();
            }
        })
        .await;
        let fetch = TestNet::good(server.port).fetch("full");
        tokio::select! {
            answer = get(&fetch, "http://good.test/") => panic!("{answer:?}"),
            begun = closed.recv() => assert_eq!(begun, Some(false)),
        }
        let end = tokio::time::timeout(Duration::from_secs(10), closed.recv()).await;
        assert_eq!(end.unwrap(), Some(true), "{head:?}");
    }
}

#[tokio::test]
async fn n08_packed_bodies_end_at_their_limit() {
    let zeros = vec![0; 64 << 20];
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&zeros).unwrap();
    let gzip = gzip.finish().unwrap();
    let mut deflate = ZlibEncoder::new(Vec::new(), Compression::best());
    deflate.write_all(&zeros).unwrap();
    let deflate = deflate.finish().unwrap();
    let brotli = base64::engine::general_purpose::STANDARD
        .decode(BROTLI_BOMB)
        .unwrap();
    let twice = {
        let mut twice = GzEncoder::new(Vec::new(), Compression::best());
        twice.write_all(&gzip).unwrap();
        twice.finish().unwrap()
    };
    for (coding, body, expected) in [
        ("gzip", &gzip, "fetch.body_too_large"),
        ("x-gzip", &gzip, "fetch.body_too_large"),
        ("deflate", &deflate, "fetch.body_too_large"),
        ("br", &brotli, "fetch.body_too_large"),
        ("gzip, gzip", &twice, "fetch.encoding"),
        ("zstd", &gzip, "fetch.encoding"),
        ("br", &gzip, "fetch.encoding"),
        ("gzip", &brotli, "fetch.encoding"),
        ("deflate", &gzip, "fetch.encoding"),
    ] {
        assert!(body.len() < 1 << 20);
        refused(
            answer(&format!("200 OK\nContent-Encoding: {coding}"), body),
            expected,
        )
        .await;
    }
    // What is within the limit comes through.
    let mut small = GzEncoder::new(Vec::new(), Compression::best());
    small.write_all(b"hello").unwrap();
    let small = small.finish().unwrap();
    let packed = sent(answer("200 OK\nContent-Encoding: GZip", &small)).await;
    assert_eq!(packed.unwrap(), "hello");
    let cut = &small[..small.len() - 4];
    refused(
        answer("200 OK\nContent-Encoding: gzip", cut),
        "fetch.encoding",
    )
    .await;
}

#[tokio::test]
async fn n08_large_bodies_are_refused_at_once() {
    let head = |length: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nx");
    refused(head("629145600"), "fetch.body_too_large").await;
    refused(head("1048577"), "fetch.body_too_large").await;
    // hyper counts such a length to the head.
    refused(head("18446744073709551615"), "fetch.header_too_large").await;
    refused(head("99999999999999999999999"), "fetch.protocol").await;
    let server = Server::always(ok("x")).await;
    let fetch = TestNet::good(server.port).fetch_within("full", small());
    let body = format!(
        r#"{{"method":"POST","body":"{}"}}"#,
        "x".repeat((1 << 20) + 1)
    );
    assert_eq!(
        code(with(&fetch, "http://good.test/", &body).await),
        "fetch.body"
    );
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn n08_lengths_must_be_right() {
    let head = |head: &str, body: &str| format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}");
    refused(head("Content-Length: 6", "hello"), "fetch.closed").await;
    refused(
        head("Content-Length: 5\r\nContent-Length: 6", "hello"),
        "fetch.protocol",
    )
    .await;
    for length in ["-5", "+5", "0x5", "5, 6", "five", "5;6", "5 5"] {
        refused(
            head(&format!("Content-Length: {length}"), "hello"),
            "fetch.protocol",
        )
        .await;
    }
    let both = head(
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "0\r\n\r\nsmuggled",
    );
    refused(both, "fetch.protocol").await;
    for coding in [
        "xchunked",
        "chunked, identity",
        "identity",
        "gzip, chunked",
        "chunked\r\nTransfer-Encoding: chunked",
    ] {
        let text = head(
            &format!("Transfer-Encoding: {coding}"),
            "5\r\nhello\r\n0\r\n\r\n",
        );
        refused(text, "fetch.protocol").await;
    }
    let chunks = |body: &str| head("Transfer-Encoding: chunked", body);
    for body in [
        "x\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "5\r\nhelloX0\r\n\r\n",
        "FFFFFFFFFFFFFFFFF\r\nhello",
        "\r\nhello\r\n",
    ] {
        refused(chunks(body), "fetch.protocol").await;
    }
    for body in [
        "5\r\nhello\r\n",
        "5\r\nhel",
        "5\r\nhello\r\n0\r\n",
        "FFFFF\r\nhello",
        "",
    ] {
        refused(chunks(body), "fetch.closed").await;
    }
    refused(
        chunks(&format!("5;{}\r\nhello\r\n0\r\n\r\n", "e".repeat(100_000))),
        "fetch.protocol",
    )
    .await;
    assert_eq!(
        sent(chunks("5;a=b\r\nhello\r\n0\r\nT: x\r\n\r\n"))
            .await
            .unwrap(),
        "hello"
    );
    assert_eq!(
        sent(head("Content-Length: 5", "hello, and more"))
            .await
            .unwrap(),
        "hello"
    );
}

#[tokio::test]
async fn n08_an_answer_nobody_asked_for_is_not_taken_for_the_next() {
    let smuggled = [ok("first"), ok("smuggled")].concat();
    let late = ok("smuggled");
    for at_once in [true, false] {
        let (smuggled, late) = (smuggled.clone(), late.clone());
        let server = Server::raw(move |mut stream, number| {
            let (smuggled, late) = (smuggled.clone(), late.clone());
            async move {
                read_request(&mut stream).await;
                if number > 0 {
                    let _ = stream.write_all(&ok("honest")).await;
                } else if at_once {
                    let _ = stream.write_all(&smuggled).await;
                } else {
                    let _ = stream.write_all(&ok("first")).await;
                    let _ = stream.write_all(&late).await;
                }
                let _ = stream.read(&mut [0; 100]).await;
            }
        })
        .await;
        let fetch = TestNet::good(server.port).fetch("full");
        let first = get(&fetch, "http://good.test/").await.unwrap();
        assert_eq!(first.as_str(), Some("first"));
        tokio::time::sleep(Duration::from_millis(100)).await;
        let second = get(&fetch, "http://good.test/").await.unwrap();
        assert_eq!(second.as_str(), Some("honest"));
    }
}

#[tokio::test]
async fn n08_heads_have_a_limit() {
    let head = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nok");
    refused(
        head(&format!("a: {}\r\n", "x".repeat(70_000))),
        "fetch.header_too_large",
    )
    .await;
    refused(head(&"a: b\r\n".repeat(2000)), "fetch.header_too_large").await;
    refused(
        head(&format!("{}: b\r\n", "n".repeat(100_000))),
        "fetch.header_too_large",
    )
    .await;
    assert_eq!(
        sent(head(&format!("a: {}\r\n", "x".repeat(60_000))))
            .await
            .unwrap(),
        "ok"
    );
}

#[tokio::test]
async fn n08_an_answer_cut_at_any_place_is_no_answer() {
    let whole = [
        ok("hello"),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".to_vec(),
    ];
    for bytes in whole {
        assert!(sent(bytes.clone()).await.is_ok());
        for cut in 0..bytes.len() {
            let error = sent(&bytes[..cut]).await.unwrap_err();
            assert_eq!(error.code().name(), "fetch.closed", "{cut}: {error}");
        }
    }
}

#[tokio::test]
async fn n08_what_is_not_http_is_told() {
    for bytes in [
        "SSH-2.0-OpenSSH_9.6\r\n\r\n",
        "220 mail.test ESMTP\r\n\r\n",
        "hello\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 -200 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\na : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\r\n folded\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\0c\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\0: c\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhi",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n",
    ] {
        refused(bytes, "fetch.protocol").await;
    }
}

#[tokio::test]
async fn what_a_connection_carried_does_not_count_for_the_next_request() {
    let part = "x".repeat(900_000);
    let server = Server::new(move |request| match request.starts_with("GET /404") {
        true => answer("404 x", "gone"),
        false => ok(&part),
    })
    .await;
    let fetch = TestNet::good(server.port).fetch_within("full", small());
    // More than one answer may have on the wire, on one connection, though some
    // of the answers were not read.
    for _ in 0..15 {
        assert_eq!(
            code(get(&fetch, "http://good.test/404").await),
            "fetch.status"
        );
        assert!(get(&fetch, "http://good.test/").await.is_ok());
    }
    assert!(server.connections() < 16);
}

#[tokio::test]
async fn a_few_interim_answers_are_passed_over() {
    let bytes = [b"HTTP/1.1 103 x\r\nLink: a\r\n\r\n".repeat(20), ok("end")].concat();
    assert_eq!(sent(bytes).await.unwrap(), "end");
}

#[tokio::test]
async fn nobody_there() {
    let fetch = TestNet::good(1)
        .name("void.test", &["198.41.0.4"])
        .fetch("full");
    assert_eq!(
        code(get(&fetch, "http://void.test/").await),
        "fetch.connect"
    );
    assert_eq!(
        code(get(&fetch, "http://nowhere.test/").await),
        "fetch.resolve"
    );
    // A server that accepts and ends at once.
    let server = Server::raw(|stream, _| async move { drop(stream) }).await;
    let fetch = TestNet::good(server.port).fetch("full");
    assert_eq!(code(get(&fetch, "http://good.test/").await), "fetch.closed");
}

/// Numbers that are always the same (xorshift).
fn numbers(mut state: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    }
}

#[tokio::test]
async fn n08_changed_answers_end() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&b"hello ".repeat(50)).unwrap();
    let gzip = gzip.finish().unwrap();
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: a\r\n\r\n5;x=y\r\nhello\r\n3\r\nabc\r\n0\r\na: b\r\n\r\n";
    let seeds = [
        ok("hello"),
        chunked.to_vec(),
        answer("200 OK\nContent-Encoding: gzip", &gzip),
        answer(
            "200 OK\nContent-Type: application/json",
            "{\"a\":[1,2,{\"b\":null}]}",
        ),
        crate::server::to(302, "http://good.test/next"),
        b"HTTP/1.1 103 x\r\nLink: </a>\r\n\r\nHTTP/1.0 200 OK\r\n\r\nold".to_vec(),
    ];
    let parts: [&[u8]; 8] = [
        b"\r\n",
        b"\0",
        b"Content-Length: 5\r\n",
        b"HTTP/1.1 ",
        b"chunked",
        b"\xFF\xFE",
        b"99999999",
        b"-",
    ];
    let mut next = numbers(0x9E37_79B9_7F4A_7C15);
    for _ in 0..400 {
        let mut bytes = seeds[next(seeds.len())].clone();
        for _ in 0..=next(4) {
            let at = next(bytes.len());
            match next(5) {
                0 => bytes[at] = next(256) as u8,
                1 => drop(bytes.drain(at..bytes.len().min(at + 1 + next(20)))),
                2 => drop(bytes.splice(at..at, parts[next(parts.len())].iter().copied())),
                3 => bytes.extend_from_within(at..),
                _ => bytes[at] ^= 1 << next(8),
            }
            if bytes.is_empty() {
                bytes.push(b'x');
            }
        }
        // An answer or an error, and neither a panic nor a wait.
        let ended = tokio::time::timeout(Duration::from_secs(10), whole(&bytes)).await;
        assert!(ended.is_ok(), "{:?}", String::from_utf8_lossy(&bytes));
    }
}
