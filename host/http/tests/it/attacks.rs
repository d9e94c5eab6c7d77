//! Attacks by whoever runs the server or the name service, and what a run does to the
//! connections of its fetches (security N04, N05, N08, N09).

use crate::network::{PUBLIC, TestNet, code, get, ip, limits, value, with};
use crate::server::{Server, answer, ok, read_request, serve, to};
use crate::tls::{self, Authority};
use a99_capabilities::{BoxFuture, Capabilities};
use a99_core::value::Value;
use a99_http::{FetchLimits, HttpFetch, Resolve};
use agent99::{AbortSignal, Engine, ErrorCode, Outcome, RunOptions};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

#[tokio::test]
async fn n05_what_is_no_redirect_is_not_followed() {
    let table = [
        ("200 OK\nRefresh: 0; url=http://evil.test/", "fetched"),
        ("200 OK\nLocation: http://evil.test/", "fetched"),
        ("201 Created\nLocation: http://evil.test/", "fetched"),
        ("300 Multiple\nLocation: http://evil.test/", "fetched"),
        ("305 Use Proxy\nLocation: http://evil.test/", "fetched"),
        ("306 Switch\nLocation: http://evil.test/", "fetched"),
        ("301 Moved", "fetched"),
        ("302 Found\nContent-Location: http://evil.test/", "fetched"),
        ("302 Found\nURI: http://evil.test/", "fetched"),
        ("200 OK\nLink: <http://evil.test/>; rel=preload", "fetched"),
        (
            "200 OK\nContent-Type: text/html",
            "<meta http-equiv=refresh content='0;url=http://evil.test/'>",
        ),
    ];
    for (head, body) in table {
        let server = Server::always(answer(head, body)).await;
        let net = TestNet::good(server.port).otherwise(PUBLIC);
        let found = get(&net.fetch("full"), "http://good.test/").await;
        assert_eq!(found.unwrap().as_str(), Some(body), "{head:?}");
        assert_eq!(net.asked(), ["good.test"], "{head:?}");
        assert_eq!(server.requests().len(), 1, "{head:?}");
    }
    for (head, expected) in [
        (
            "302 x\nLocation: /a\nLocation: http://evil.test/",
            "fetch.redirect",
        ),
        (
            "302 x\nLocation: http://evil.test/\nLocation: /a",
            "fetch.redirect",
        ),
        ("302 x\nLocation: \u{fffd}://evil.test/", "fetch.denied"),
    ] {
        let server = Server::always(answer(head, "")).await;
        let net = TestNet::good(server.port).otherwise(PUBLIC);
        let found = get(&net.fetch("allow:good.test:80"), "http://good.test/").await;
        let found = code(found);
        assert!(
            found == expected || found == "fetch.redirect",
            "{head:?}: {found}"
        );
        assert_eq!(net.asked(), ["good.test"], "{head:?}");
    }
}

#[tokio::test]
async fn n05_relative_redirects_stay_with_their_origin() {
    for location in ["next", "/next", "./next", "?q", "//good.test/next", "..//x"] {
        let server = Server::new(move |request| match request.starts_with("GET /start ") {
            true => to(302, location),
            false => ok("end"),
        })
        .await;
        let net = TestNet::good(server.port).otherwise(PUBLIC);
        let options = r#"{"headers":{"Authorization":"secret"}}"#;
        let fetch = net.fetch("allow:good.test:80");
        let found = with(&fetch, "http://good.test/start", options).await;
        assert_eq!(found.unwrap().as_str(), Some("end"), "{location}");
        assert!(
            server.requests()[1].contains("authorization: secret"),
            "{location}"
        );
        assert_eq!(server.connections(), 1, "{location}");
    }
}

/// A server of two names with one certificate; what asked for which of them.
async fn two_names(protocol: &'static str) -> (Server, TestNet, Authority) {
    let authority = Authority::new();
    let identity = authority.sign(&["good.test", "other.test"], |_| {});
    let server = tls::server(&identity, protocol, move |mut stream| async move {
        if protocol == "http/1.1" {
            let head = "200 OK\nAlt-Svc: h2=\"evil.test:443\", h3=\":443\", clear";
            let played = serve(stream, Arc::default(), |_| answer(head, "x"));
            return played.await;
        }
        // SETTINGS, and an ORIGIN frame (RFC 8336) that claims the other name.
        let _ = stream.write_all(&frame(4, 0, 0, &[])).await;
        let claim = [&[0, 18][..], b"https://other.test"].concat();
        let _ = stream.write_all(&frame(12, 0, 0, &claim)).await;
        answer_h2(&mut stream, Vec::new()).await;
    })
    .await;
    let net = TestNet::default()
        .otherwise(PUBLIC)
        .at(PUBLIC, 443, server.port);
    (server, net, authority)
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Answers each request of a connection with status 200 and no body, and sends `more`
/// again and again after the first one. How much of it went out when the client closed.
async fn answer_h2(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), more: Vec<u8>) -> usize {
    let mut preface = [0; 24];
    if stream.read_exact(&mut preface).await.is_err() {
        return 0;
    }
    let mut head = [0; 9];
    while stream.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        if stream.read_exact(&mut payload).await.is_err() {
            return 0;
        }
        let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        match head[3] {
            // HEADERS: END_STREAM and END_HEADERS with `:status: 200`.
            1 => {
                let _ = stream.write_all(&frame(1, 5, id, &[0x88])).await;
                if more.is_empty() {
                    continue;
                }
                // What the client says meanwhile is read, so that it goes on.
                let (mut from, mut to) = tokio::io::split(stream);
                let mut sent = 0;
                let flood = async {
                    while sent < 256 << 20 && to.write_all(&more).await.is_ok() {
                        sent += more.len();
                    }
                };
                let listen = async {
                    let mut heard = vec![0; 65536];
                    while from.read(&mut heard).await.is_ok_and(|read| read > 0) {}
                };
                tokio::select! {
                    () = flood => {}
                    () = listen => {}
                }
                return sent;
            }
            // SETTINGS that are no acknowledgement.
            4 if head[4] == 0 => {
                let _ = stream.write_all(&frame(4, 1, 0, &[])).await;
            }
            _ => {}
        }
    }
    0
}

#[tokio::test]
async fn n04_names_that_share_a_certificate_share_no_connection() {
    for protocol in ["h2", "http/1.1"] {
        let (server, net, authority) = two_names(protocol).await;
        let fetch = |policy: &str| {
            let fetch = net.builder(policy).ca_pem(&authority.pem());
            fetch.build().unwrap()
        };
        let both = fetch("allow:good.test:443,other.test:443");
        for host in ["good.test", "good.test", "other.test", "other.test"] {
            let found = get(&both, &format!("https://{host}/")).await;
            assert!(found.is_ok(), "{protocol} {host}: {found:?}");
        }
        assert_eq!(server.connections(), 2, "{protocol}");
        // A name that is not allowed does not ride on a connection of one that is.
        let one = fetch("allow:good.test:443");
        get(&one, "https://good.test/").await.unwrap();
        let denied = get(&one, "https://other.test/").await;
        assert_eq!(code(denied), "fetch.denied", "{protocol}");
        assert_eq!(server.connections(), 3, "{protocol}");
        // Nor is an alternative service asked for.
        get(&one, "https://good.test/").await.unwrap();
        assert!(net.asked().iter().all(|name| name != "evil.test"));
    }
}

#[tokio::test]
async fn n08_a_connection_that_waits_is_not_flooded() {
    // PING, SETTINGS, WINDOW_UPDATE of a closed stream, a type that nobody knows,
    // and DATA of a stream that is over.
    let floods = [
        frame(6, 0, 0, &[7; 8]).repeat(1000),
        frame(4, 0, 0, &[]).repeat(1000),
        frame(8, 0, 1, &[0, 0, 0, 1]).repeat(1000),
        frame(0xBB, 0, 0, &[0; 16000]),
        frame(0, 0, 1, &[0; 1000]).repeat(8),
    ];
    for flood in floods {
        let authority = Authority::new();
        let identity = authority.sign(&["good.test"], |_| {});
        let (told, mut sent) = mpsc::unbounded_channel();
        let kind = flood[3];
        let server = tls::server(&identity, "h2", move |mut stream| {
            let (told, flood) = (told.clone(), flood.clone());
            async move {
                let _ = stream.write_all(&frame(4, 0, 0, &[])).await;
                told.send(answer_h2(&mut stream, flood).await).unwrap();
            }
        })
        .await;
        let net = TestNet::good(1).at(PUBLIC, 443, server.port);
        let fetch = net.builder("allow:good.test:443").ca_pem(&authority.pem());
        let fetch = fetch.build().unwrap();
        get(&fetch, "https://good.test/").await.unwrap();
        let total = tokio::time::timeout(Duration::from_secs(20), sent.recv()).await;
        let total = total.unwrap_or_else(|_| panic!("frames of type {kind}: still open"));
        let total = total.unwrap();
        assert!(total < 64 << 20, "frames of type {kind}: {total} bytes");
    }
}

#[tokio::test]
async fn n08_answers_under_way_share_a_bound() {
    const BODY: usize = 1 << 20;
    let barrier = Arc::new(tokio::sync::Barrier::new(20));
    let server = Server::raw(move |mut stream, _| {
        let barrier = Arc::clone(&barrier);
        async move {
            read_request(&mut stream).await;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\n\r\n");
            let _ = stream.write_all(head.as_bytes()).await;
            // All but the last byte, until all others are as far.
            let _ = stream.write_all(&vec![b'x'; BODY - 1]).await;
            let _ = tokio::time::timeout(Duration::from_secs(3), barrier.wait()).await;
            let _ = stream.write_all(b"x").await;
            let _ = stream.read(&mut [0]).await;
        }
    })
    .await;
    let small = FetchLimits {
        max_body_bytes: BODY,
        max_held_bytes: 4 * BODY,
        ..limits()
    };
    let fetch = Arc::new(TestNet::good(server.port).fetch_within("full", small));
    let fetches: Vec<_> = (0..20)
        .map(|_| {
            let fetch = Arc::clone(&fetch);
            tokio::spawn(async move { get(&fetch, "http://good.test/").await })
        })
        .collect();
    let (mut whole, mut refused) = (0, 0);
    for fetch in fetches {
        match fetch.await.unwrap() {
            Ok(_) => whole += 1,
            Err(error) => {
                assert_eq!(error.code().name(), "fetch.body_too_large", "{error}");
                assert!(error.to_string().contains("fetch fewer"), "{error}");
                refused += 1;
            }
        }
    }
    assert!(whole >= 1 && refused >= 12, "{whole} {refused}");
    // What is over is given back.
    drop(server);
    let server = Server::always(ok(&"x".repeat(BODY))).await;
    let net = TestNet::good(server.port);
    let fetch = net.fetch_within(
        "full",
        FetchLimits {
            max_held_bytes: 3 * BODY,
            ..limits()
        },
    );
    for _ in 0..10 {
        get(&fetch, "http://good.test/").await.unwrap();
    }
}

/// Nine bytes of brotli that make a decoder take a window of 16 MiB.
#[tokio::test]
async fn n08_windows_count_with_the_bodies() {
    let packed = [0x0F, 0, 0x80, b'a', 0, 0, 0x08, b'b', 3];
    let server = Server::always(answer("200 OK\nContent-Encoding: br", packed)).await;
    let net = TestNet::good(server.port);
    let found = get(&net.fetch("full"), "http://good.test/").await;
    assert_eq!(found.unwrap().as_str(), Some("ab"));
    let small = FetchLimits {
        max_held_bytes: 8 << 20,
        ..limits()
    };
    let found = get(&net.fetch_within("full", small), "http://good.test/").await;
    assert_eq!(code(found), "fetch.body_too_large");
}

#[tokio::test]
async fn n08_bodies_in_parts_of_one_byte_come_through() {
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    use std::io::Write as _;
    let plain: String = (0..3000).map(|n| format!("{n} ")).collect();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(plain.as_bytes()).unwrap();
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
    zlib.write_all(plain.as_bytes()).unwrap();
    for (coding, body) in [
        ("identity", plain.clone().into_bytes()),
        ("gzip", gzip.finish().unwrap()),
        ("deflate", zlib.finish().unwrap()),
    ] {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        let mut bytes = head.into_bytes();
        for byte in body {
            bytes.extend([b"1\r\n", &[byte, b'\r', b'\n'][..]].concat());
        }
        bytes.extend(b"0\r\n\r\n");
        let server = Server::always(bytes).await;
        let fetch = TestNet::good(server.port).fetch("full");
        let found = get(&fetch, "http://good.test/").await.unwrap();
        assert_eq!(found.as_str(), Some(plain.as_str()), "{coding}");
    }
}

#[tokio::test]
async fn n04_a_name_with_thousands_of_addresses_is_judged_in_part() {
    let inside: Vec<String> = (0..8000)
        .map(|n| format!("10.1.{}.{}", n / 250, n % 250))
        .collect();
    let inside: Vec<&str> = inside.iter().map(String::as_str).collect();
    let outside: Vec<String> = (0..8000)
        .map(|n| format!("93.184.{}.{}", n / 250, n % 250))
        .collect();
    let outside: Vec<&str> = outside.iter().map(String::as_str).collect();
    let net = TestNet::default()
        .name("inside.test", &inside)
        .name("many.test", &outside);
    let fetch = net.fetch("allow:inside.test,many.test");
    assert_eq!(
        code(get(&fetch, "http://inside.test/").await),
        "fetch.denied"
    );
    assert!(net.dialed().is_empty());
    assert_eq!(
        code(get(&fetch, "http://many.test/").await),
        "fetch.connect"
    );
    assert_eq!(net.dialed().len(), 8);
    assert_eq!(net.dialed()[0].ip(), ip("93.184.0.0"));
}

/// A name service that never answers, and how many it was asked for.
#[derive(Clone, Default)]
struct Silent(Arc<AtomicUsize>);

impl Resolve for Silent {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::pending())
    }
}

/// Lookups of the system go on in threads when nobody waits for them any more.
#[tokio::test]
async fn n11_lookups_that_do_not_end_are_bounded() {
    let silent = Silent::default();
    let quick = FetchLimits {
        connect_timeout: Duration::from_millis(100),
        ..limits()
    };
    let builder = TestNet::default().builder("full").limits(quick);
    let fetch = Arc::new(builder.resolver(silent.clone()).build().unwrap());
    let ask = async |fetch: &Arc<HttpFetch>| {
        let mut fetches = tokio::task::JoinSet::new();
        for n in 0..40 {
            let fetch = Arc::clone(fetch);
            fetches.spawn(async move { get(&fetch, &format!("http://n{n}.test/")).await });
        }
        for found in fetches.join_all().await {
            assert_eq!(code(found), "fetch.timeout");
        }
    };
    ask(&fetch).await;
    let asked = || silent.0.load(Ordering::Relaxed);
    assert!((1..=16).contains(&asked()), "{}", asked());
    // Not under another policy either, but another tenant has its own.
    fetch.set_policy("allow:*.test:80".parse().unwrap());
    ask(&fetch).await;
    assert!(asked() <= 16, "{}", asked());
    let (before, other) = (asked(), fetch.for_tenant("full".parse().unwrap()));
    ask(&Arc::new(other)).await;
    let more = asked() - before;
    assert!((1..=16).contains(&more), "{more}");
}

#[tokio::test]
async fn n09_a_body_is_not_taken_for_a_request() {
    let server = Server::always(ok("x")).await;
    let fetch = TestNet::good(server.port).fetch("allow:good.test:80");
    let smuggled = "0\r\n\r\nGET /admin HTTP/1.1\r\nHost: good.test\r\n\r\n";
    let mut options = value(r#"{"method":"POST","headers":{"Content-Type":"a/b"}}"#);
    let Value::Object(map) = &mut options else {
        panic!("an object");
    };
    map.insert("body", smuggled);
    fetch
        .request(&"http://good.test/".into(), &options)
        .await
        .unwrap();
    get(&fetch, "http://good.test/second").await.unwrap();
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[0].contains(&format!("content-length: {}\r\n", smuggled.len())));
    assert!(!requests[0].to_lowercase().contains("transfer-encoding"));
    assert!(requests[1].starts_with("GET /second HTTP/1.1\r\n"));
    // Nor a path or query, whatever is in it.
    for url in [
        "http://good.test/a b HTTP/1.1%0d%0ax: y",
        "http://good.test/\u{2028}\u{85}x",
        "http://good.test/?a=\u{e5}\u{10d}\u{10a}b",
    ] {
        let before = server.requests().len();
        if get(&fetch, url).await.is_ok() {
            let request = server.requests().remove(before);
            let line = request.lines().next().unwrap();
            assert_eq!(line.split(' ').count(), 3, "{line:?}");
            assert!(
                line.bytes()
                    .all(|byte| byte.is_ascii_graphic() || byte == b' ')
            );
        }
    }
}

#[tokio::test]
async fn the_type_of_a_data_url_is_a_type() {
    for (media, expected) in [
        ("image/png", "data:image/png;base64,eA=="),
        (
            "text/html,<script>;x",
            "data:application/octet-stream;base64,eA==",
        ),
        (
            "text/html;base64,PHA+#",
            "data:application/octet-stream;base64,eA==",
        ),
        ("a/b\tc", "data:application/octet-stream;base64,eA=="),
        (
            "text/plain; charset=utf-8",
            "data:text/plain; charset=utf-8;base64,eA==",
        ),
    ] {
        let server = Server::always(answer(&format!("200 OK\nContent-Type: {media}"), "x")).await;
        let fetch = TestNet::good(server.port).fetch("full");
        let found = with(&fetch, "http://good.test/", r#"{"responseType":"dataUrl"}"#).await;
        assert_eq!(found.unwrap().as_str(), Some(expected), "{media}");
    }
}

/// A program's run against a fetch.
async fn run(program: &str, fetch: HttpFetch, options: RunOptions) -> Outcome {
    let engine = Engine::builder().build();
    let agent = engine.compile(program).unwrap();
    let granted = Capabilities::none().with_fetch(fetch);
    engine.run(&agent, Value::Undefined, options, granted).await
}

const ONE: &str = r#"{"op":"seq","steps":[
    {"op":"httpFetch","url":"http://good.test/","result":"x"},
    {"op":"return","value":1}]}"#;

#[tokio::test]
async fn n08_a_run_that_stops_closes_its_sockets() {
    for aborts in [false, true] {
        let (told, mut closed) = mpsc::unbounded_channel();
        let server = Server::raw(move |mut stream, _| {
            let told = told.clone();
            async move {
                read_request(&mut stream).await;
                let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nsome";
                let _ = stream.write_all(head.as_bytes()).await;
                told.send(false).unwrap();
                let _ = stream.read(&mut [0]).await;
                told.send(true).unwrap();
            }
        })
        .await;
        let fetch = TestNet::good(server.port).fetch("full");
        let controller = AbortSignal::new();
        let mut options = RunOptions::new().timeout_ms(if aborts { 60_000 } else { 700 });
        options = options.signal(controller.clone());
        let running = tokio::spawn(run(ONE, fetch, options));
        assert_eq!(closed.recv().await, Some(false));
        if aborts {
            controller.abort();
        }
        let error = running.await.unwrap().error.unwrap();
        let expected = if aborts {
            ErrorCode::Aborted
        } else {
            ErrorCode::RunTimeout
        };
        assert_eq!(error.code, expected);
        let end = tokio::time::timeout(Duration::from_secs(10), closed.recv()).await;
        assert_eq!(end.unwrap(), Some(true), "aborts: {aborts}");
    }
}

#[tokio::test]
async fn n08_answers_count_against_the_memory_of_the_run() {
    let server = Server::always(ok(&"x".repeat(3 << 20))).await;
    let several = r#"{"op":"seq","steps":[
        {"op":"callAll","items":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20],"as":"n",
         "limit":20,"call":{"op":"httpFetch","url":"http://good.test/"},"result":"x"},
        {"op":"return","value":1}]}"#;
    for program in [ONE, several] {
        let fetch = TestNet::good(server.port).fetch("full");
        let options = RunOptions::new().timeout_ms(30_000).heap_bytes(2 << 20);
        let error = run(program, fetch, options).await.error.unwrap();
        assert_eq!(error.code, ErrorCode::HeapLimit, "{error:?}");
    }
}
