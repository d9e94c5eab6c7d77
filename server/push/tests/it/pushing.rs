//! A pusher, a receiver whose store is closed after each request, and a network that fails.

use crate::harness::{SECRET, Server, answers, key, say, serve, serve_router, until};
use a99_push::pusher::{AGENTS, Pusher, PusherOptions, REGISTER, Registration, UNREGISTER};
use a99_push::reception::{ReceptionOptions, signed};
use a99_push::signature::{Secret, Verifier};
use a99_push::wire::Answer;
use a99_runtime_engine::AgentStore as _;
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What a proxy does with connections.
const PASS: u64 = 0;
const CUT_SOME: u64 = 1;
const CUT_ALL: u64 = 2;

/// A proxy that cuts connections before a request arrives, or before its answer does.
struct Proxy {
    address: SocketAddr,
    mode: Arc<AtomicU64>,
    /// Connections cut before the request, and before the answer.
    cut: Arc<[AtomicU64; 2]>,
}

impl Proxy {
    async fn start(to: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let proxy = Proxy {
            address: listener.local_addr().expect("an address"),
            mode: Arc::default(),
            cut: Arc::default(),
        };
        let (mode, cut) = (Arc::clone(&proxy.mode), Arc::clone(&proxy.cut));
        tokio::spawn(async move {
            let mut random = 7_u64;
            while let Ok((near, _)) = listener.accept().await {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let draw = (random >> 33) % 10;
                let (mode, cut) = (Arc::clone(&mode), Arc::clone(&cut));
                tokio::spawn(async move {
                    let answers = match (mode.load(Ordering::Acquire), draw) {
                        (PASS, _) => u64::MAX,
                        (CUT_SOME, 0..3) => {
                            cut[0].fetch_add(1, Ordering::Relaxed);
                            return;
                        }
                        // The first answer is lost, or the second.
                        (CUT_SOME, draw) => (draw - 3) / 4,
                        _ => return,
                    };
                    if pass(near, to, answers, &mode).await.is_some() {
                        cut[1].fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        proxy
    }

    fn set(&self, mode: u64) {
        self.mode.store(mode, Ordering::Release);
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Passes bytes until an answer comes that is to be lost.
async fn pass(
    mut near: TcpStream,
    to: SocketAddr,
    mut answers: u64,
    mode: &AtomicU64,
) -> Option<()> {
    let mut far = TcpStream::connect(to).await.ok()?;
    let (mut up, mut down) = (vec![0; 1 << 14], vec![0; 1 << 14]);
    loop {
        tokio::select! {
            read = near.read(&mut up) => {
                let read = read.ok().filter(|read| *read > 0)?;
                if mode.load(Ordering::Acquire) == CUT_ALL {
                    return None;
                }
                far.write_all(&up[..read]).await.ok()?;
            }
            read = far.read(&mut down) => {
                let read = read.ok().filter(|read| *read > 0)?;
                if answers == 0 {
                    return Some(());
                }
                answers -= 1;
                near.write_all(&down[..read]).await.ok()?;
            }
        }
    }
}

fn options(folder: &Path) -> PusherOptions {
    PusherOptions {
        policy: "allow:127.0.0.1:1-65535".parse().expect("a policy"),
        first_pause: Duration::from_millis(5),
        max_pause: Duration::from_millis(20),
        max_attempts: 1_000,
        ..PusherOptions::new(folder.join("push.json"))
    }
}

fn pusher(server: &Server, folder: &Path) -> Pusher {
    Pusher::open(server.host.clone(), options(folder)).expect("a pusher")
}

fn registration(url: String) -> Registration {
    Registration {
        agent: key(),
        url,
        secret: SECRET.to_owned(),
        config: json!({}),
        types: Vec::new(),
        ephemeral: false,
    }
}

/// The count that the store of the receiver has, once it is closed.
async fn counted(folder: &Path) -> Value {
    let options = StoreOptions {
        has_channels: false,
        ..StoreOptions::default()
    };
    let open = || SqliteRuntime::open(folder.join("agents.db"), options.clone());
    let mut found = None;
    until("the store is free", async || {
        found = open().ok();
        found.is_some()
    })
    .await;
    let row = found.expect("a store").load(&key()).await.expect("read");
    serde_json::from_str(&row.expect("a row").state).expect("JSON")
}

async fn status(pusher: &Pusher) -> a99_push::pusher::Status {
    pusher.list().await.expect("a list").remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_message_counts_once_while_requests_and_answers_are_lost() {
    const MESSAGES: usize = 200;
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let reception = server.reception(folder.path());
    let proxy = Proxy::start(serve(&reception).await).await;
    proxy.set(CUT_SOME);
    let mut pusher = pusher(&server, folder.path());
    pusher.add(registration(proxy.url())).await.expect("added");
    for n in 1..=MESSAGES {
        server.say(&format!("m{n}")).await;
        tokio::time::sleep(Duration::from_millis(15)).await;
        if n == MESSAGES / 2 {
            pusher.stop().await.expect("stopped");
            pusher = crate::pushing::pusher(&server, folder.path());
        }
    }
    until("all are answered", async || {
        server.said().await.len() >= MESSAGES
    })
    .await;
    until("all are acknowledged", async || {
        status(&pusher).await.lag == 0
    })
    .await;
    pusher.stop().await.expect("stopped");
    assert_eq!(server.said().await, answers(MESSAGES));
    assert_eq!(counted(folder.path()).await, json!({"messages": MESSAGES}));
    let cut = |n: usize| proxy.cut[n].load(Ordering::Relaxed);
    assert!(
        cut(0) > 1 && cut(1) > 1,
        "{} and {} were cut",
        cut(0),
        cut(1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_away_gets_a_dead_letter_and_delays_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let elsewhere = tempfile::tempdir().expect("a folder");
    let first = server.reception(folder.path());
    let second = server.reception(elsewhere.path());
    let proxy = Proxy::start(serve(&first).await).await;
    let limited = PusherOptions {
        max_attempts: 3,
        ..options(folder.path())
    };
    let pusher = Pusher::open(server.host.clone(), limited).expect("a pusher");
    pusher.add(registration(proxy.url())).await.expect("added");
    let other = "counter/general/other".parse().expect("a key");
    let live = Registration {
        agent: other,
        ..registration(format!("http://{}", serve(&second).await))
    };
    pusher.add(live.clone()).await.expect("added");
    until("both are ready", async || {
        let all = pusher.list().await.expect("a list");
        all.iter().all(|status| status.is_ready)
    })
    .await;
    proxy.set(CUT_ALL);
    let seq = server.say("m1").await;
    let of = async |key: &a99_runtime::AgentKey| {
        let all = pusher.list().await.expect("a list");
        let mut all = all.into_iter();
        all.find(|status| status.agent == *key).expect("listed")
    };
    until("it is given up", async || of(&key()).await.dead.is_some()).await;
    let dead = of(&key()).await.dead.expect("a dead letter");
    assert!((dead.first..=dead.last).contains(&seq), "{dead:?}");
    assert_eq!((dead.attempts, &*dead.code), (3, "push.bad_answer"));
    until("the other has all", async || of(&live.agent).await.lag == 0).await;
    assert!(of(&live.agent).await.dead.is_none());

    proxy.set(PASS);
    until("all arrive", async || {
        let status = of(&key()).await;
        // The answer of the other agent is given up too, perhaps later.
        if status.dead.is_some() {
            assert!(pusher.retry(&key()));
        }
        status.lag == 0 && status.dead.is_none()
    })
    .await;
    assert_eq!(server.said().await, answers(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pusher_that_starts_again_continues_and_a_large_batch_is_divided() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let reception = server.reception_with(ReceptionOptions {
        max_body_bytes: 2_000,
        idle: Duration::ZERO,
        ..ReceptionOptions::new(folder.path().join("agents.db"))
    });
    let address = serve(&reception).await;
    let pusher = pusher(&server, folder.path());
    let added = pusher.add(registration(format!("http://{address}"))).await;
    added.expect("added");
    until("it is ready", async || status(&pusher).await.is_ready).await;
    for n in 1..=30 {
        server.say(&format!("m{n}")).await;
    }
    until("all are acknowledged", async || {
        status(&pusher).await.lag == 0
    })
    .await;
    pusher.stop().await.expect("stopped");
    let before = status(&pusher).await;
    assert_eq!(before.dead, None);
    drop(pusher);
    let pusher = crate::pushing::pusher(&server, folder.path());
    let after = status(&pusher).await;
    assert_eq!(
        (after.acknowledged, after.is_ready),
        (before.acknowledged, true)
    );
    assert_eq!(server.said().await, answers(30));
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let file = folder.path().join("push.json").metadata().expect("a file");
        assert_eq!(file.mode() & 0o777, 0o600);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_go_only_where_the_policy_allows() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let address = serve(&server.reception(folder.path())).await;
    let strict = PusherOptions {
        // Every public address, and no loopback.
        policy: a99_http::Policy::full(),
        ..options(folder.path())
    };
    let pusher = Pusher::open(server.host.clone(), strict).expect("a pusher");
    let plain = registration("http://example.com".to_owned());
    let refused = pusher.add(plain).await.expect_err("no TLS");
    assert_eq!(refused.code(), "push.bad_registration");
    let added = pusher.add(registration(format!("http://{address}"))).await;
    added.expect("added");
    until("it is denied", async || {
        status(&pusher).await.last_error.is_some()
    })
    .await;
    let status = status(&pusher).await;
    assert!(!status.is_ready);
    let (code, message) = status.last_error.expect("an error");
    assert_eq!(code, "push.bad_answer");
    assert!(message.contains("denied"), "{message}");
}

/// Answers once with 503 and `Retry-After`, then with a checkpoint.
#[tokio::test(flavor = "multi_thread")]
async fn the_pause_that_a_receiver_asks_for_is_kept_and_each_attempt_is_signed() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let seen: Arc<Mutex<Vec<(Instant, String)>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let verifier = Arc::new(
        Verifier::new(vec![Secret::parse(SECRET).expect("a secret")]).expect("a verifier"),
    );
    let answer = move |request: axum::extract::Request| {
        let (noted, verifier) = (Arc::clone(&noted), Arc::clone(&verifier));
        async move {
            let (parts, body) = request.into_parts();
            let body = axum::body::to_bytes(body, 1 << 20).await.expect("a body");
            let checked = verifier.check(signed(&parts.headers), &body, crate::harness::seconds());
            let code = checked.map_or_else(|error| error.code().to_owned(), |()| String::new());
            let count = {
                let mut seen = noted.lock().expect("not poisoned");
                seen.push((Instant::now(), code));
                seen.len()
            };
            let answer = Answer {
                checkpoint: 1,
                ..Answer::default()
            };
            // The first request is `init`.
            match count {
                2 => (
                    http::StatusCode::SERVICE_UNAVAILABLE,
                    [("retry-after", "2")],
                    String::new(),
                ),
                _ => {
                    let text = serde_json::to_string(&answer).expect("JSON");
                    (http::StatusCode::OK, [("x-none", "")], text)
                }
            }
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let address = listener.local_addr().expect("an address");
    let router = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, router).await.expect("served") });
    let pusher = pusher(&server, folder.path());
    let added = pusher
        .add(registration(format!("http://{address}/agents/")))
        .await;
    added.expect("added");
    until("it is ready", async || status(&pusher).await.is_ready).await;
    say(&server.host, "m1").await;
    until("it comes again", async || {
        status(&pusher).await.acknowledged >= 1
    })
    .await;
    let seen = seen.lock().expect("not poisoned").clone();
    assert!(seen.iter().all(|(_, code)| code.is_empty()), "{seen:?}");
    assert_eq!(seen.len(), 3);
    assert!(seen[2].0 - seen[1].0 >= Duration::from_millis(1_950));
}

#[tokio::test(flavor = "multi_thread")]
async fn registrations_are_changed_by_who_may() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path()).await;
    let receiver = serve(&server.reception(folder.path())).await;
    let pusher = pusher(&server, folder.path());
    let at = serve_router(pusher.router(server.authority.clone())).await;
    let token = |scope: &str| {
        let new = a99_server::NewToken {
            name: "admin".to_owned(),
            scopes: a99_server::Scopes::parse(&[scope]).expect("scopes"),
            lifetime: None,
        };
        server.authority.issue(&new).expect("a token").0
    };
    let (admin, other) = (token("admin:general"), token("admin:other"));
    let fetch = a99_http::HttpFetch::builder()
        .policy("allow:127.0.0.1:1-65535".parse().expect("a policy"))
        .build()
        .expect("a fetch");
    let ask = async |path: &str, token: &str, body: Option<Value>| {
        let url = format!("http://{at}{path}");
        let request = match body {
            Some(body) => a99_http::StreamRequest::post(url, body.to_string()),
            None => a99_http::StreamRequest::get(url),
        };
        let request = request.header("authorization", format!("Bearer {token}"));
        let mut answer = fetch.open(request).await.expect("an answer");
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.expect("a body") {
            body.extend_from_slice(&chunk);
        }
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        (answer.status(), body)
    };
    let new = json!({"agent": key(), "url": format!("http://{receiver}"), "secret": SECRET});
    let (status, body) = ask(REGISTER, &other, Some(new.clone())).await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (403, &json!("server.forbidden"))
    );
    let (status, _) = ask(REGISTER, "wrong", Some(new.clone())).await;
    assert_eq!(status, 401);
    let bad = json!({"agent": key(), "url": "http://example.com"});
    let (status, body) = ask(REGISTER, &admin, Some(bad)).await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (400, &json!("push.bad_registration"))
    );
    let (status, body) = ask(REGISTER, &admin, Some(new)).await;
    assert_eq!((status, body), (200, json!({"secret": SECRET})));
    server.say("m1").await;
    until("it is answered", async || server.said().await == answers(1)).await;
    let (status, body) = ask(AGENTS, &admin, None).await;
    assert_eq!((status, &body[0]["agent"]), (200, &json!(key())));
    assert!(!body.to_string().contains("whsec_"), "{body}");
    assert_eq!(ask(AGENTS, &other, None).await, (200, json!([])));
    let of = Some(json!({"agent": key()}));
    let removed = ask(UNREGISTER, &admin, of.clone()).await;
    assert_eq!(removed, (200, json!({"present": true})));
    assert_eq!(
        ask(UNREGISTER, &admin, of).await,
        (200, json!({"present": false}))
    );
}
