//! Images of registries: well-formed and hostile ones, which the tests play.

#[path = "it/make.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod make;

use a99_sandbox_cache::Cache;
use a99_sandbox_cache::digest::of_bytes;
use a99_sandbox_oci::registry::{Access, Download, Reference, Secret};
use a99_sandbox_oci::{Limits, OciError, Store};
use make::{Layout, Made, Tar, read_file};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const OCI: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// An answer: status, headers and body, which a length precedes unless a header says more.
#[derive(Clone, Default)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// How often the body is sent.
    times: usize,
}

fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Answer {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Answer {
        status,
        headers: headers.iter().map(own).collect(),
        body: body.into(),
        times: 1,
    }
}

type Play = Box<dyn Fn(&str, &str) -> Answer + Send + Sync>;

/// A server on the loopback; it keeps the heads of its requests.
struct Server {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// `play` gets the path and the whole head.
    fn new(play: Play) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&heads);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Clients go away when they have seen enough.
                let _ = serve(stream, &play, &kept);
            }
        });
        Self { port, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no panic").clone()
    }
}

fn serve(stream: TcpStream, play: &Play, heads: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head)? > 2 {}
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    heads.lock().expect("no panic").push(head.clone());
    let answer = play(&path, &head);
    let mut stream = reader.into_inner();
    write!(
        stream,
        "HTTP/1.1 {} x\r\nConnection: close\r\n",
        answer.status
    )?;
    for (name, value) in &answer.headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    if answer.times == 1
        && !answer
            .headers
            .iter()
            .any(|(name, _)| name == "Content-Length")
    {
        write!(stream, "Content-Length: {}\r\n", answer.body.len())?;
    }
    stream.write_all(b"\r\n")?;
    (0..answer.times).try_for_each(|_| stream.write_all(&answer.body))
}

/// An image as a registry has it: answers by path below `/v2/box/`.
#[derive(Clone)]
struct Image {
    answers: BTreeMap<String, Answer>,
    /// Digest of the first layer, of the configuration and of the manifest.
    layer: String,
    config: String,
    manifest: String,
}

fn layout() -> Layout {
    Layout::new([Tar::default().file("a", "content")])
}

impl Image {
    fn new() -> Self {
        Self::of(layout())
    }

    fn of(mut layout: Layout) -> Self {
        let descriptor = layout.manifest();
        let digest = |json: &Json| json["digest"].as_str().expect("a digest").to_owned();
        let manifest = digest(&descriptor);
        let mut answers = BTreeMap::new();
        let mut digests = Vec::new();
        for (name, bytes) in &layout.files {
            let digest = format!("sha256:{}", name.rsplit('/').next().expect("a name"));
            if digest == manifest {
                for name in [manifest.as_str(), "1"] {
                    let found = answer(200, &[("Content-Type", OCI)], bytes.clone());
                    answers.insert(format!("manifests/{name}"), found);
                }
            } else {
                let found = answer(200, &[], bytes.clone());
                answers.insert(format!("blobs/{digest}"), found);
            }
            digests.push(digest);
        }
        Self {
            answers,
            layer: digests[0].clone(),
            config: digests[digests.len() - 2].clone(),
            manifest,
        }
    }

    fn set(mut self, path: &str, answer: Answer) -> Self {
        self.answers.insert(path.to_owned(), answer);
        self
    }

    /// Replaces what the tag is.
    fn tagged(self, media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.set(
            "manifests/1",
            answer(200, &[("Content-Type", media_type)], body),
        )
    }

    /// The tag is an index of these descriptors.
    fn index(self, manifests: &[Json]) -> Self {
        self.tagged(INDEX, json!({"manifests": manifests}).to_string())
    }

    fn play(self) -> Play {
        Box::new(move |path, _| {
            let found = path.strip_prefix("/v2/box/");
            let found = found.and_then(|path| self.answers.get(path));
            found.cloned().unwrap_or_else(|| answer(404, &[], ""))
        })
    }

    fn code(self) -> &'static str {
        self.error().code.name()
    }

    fn error(self) -> OciError {
        let server = Server::new(self.play());
        get(&server, "1").expect_err("the registry is hostile")
    }
}

fn get(server: &Server, tag: &str) -> Result<Made, OciError> {
    let access = Access {
        insecure: true,
        ..Access::default()
    };
    get_as(server, tag, &access)
}

/// Downloads an image and reads it; nothing of it stays in the store.
fn get_as(server: &Server, tag: &str, access: &Access) -> Result<Made, OciError> {
    let mark = if tag.starts_with("sha256:") { '@' } else { ':' };
    let name = format!("docker://127.0.0.1:{}/box{mark}{tag}", server.port);
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::at(folder.path().join("cache")).expect("a cache");
    let download = Download::new(&Store::of(&cache)?)?;
    let path = download.path().to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let reference = Reference::parse(&name)?;
    let (mut last, limits) = ((0, 0), Limits::default());
    let mut progress = |done, all| last = (done, all);
    let fetched = runtime.block_on(download.fetch(&reference, access, &limits, &mut progress));
    let result = fetched.and_then(|()| {
        assert!(last.0 == last.1 && last.0 > 0, "{last:?}");
        read_file(File::open(&path).expect("a folder"), None, &limits)
    });
    drop(download);
    assert!(!path.exists());
    result
}

fn platform(architecture: &str, digest: &str, size: usize) -> Json {
    json!({"digest": digest, "size": size,
           "platform": {"os": "linux", "architecture": architecture}})
}

#[test]
fn a_download_is_the_image() {
    let whole = make::made(&layout().finish());
    let image = Image::new();
    let manifest = image.manifest.clone();
    let size = image.answers["manifests/1"].body.len();
    let server = Server::new(image.clone().play());
    for tag in ["1", &manifest] {
        let made = get(&server, tag).expect("an image");
        assert_eq!(made.bytes, whole.bytes);
        let name = made.image.reference.expect("a name");
        assert!(
            name.starts_with("127.0.0.1:") && name.contains("/box"),
            "{name}"
        );
    }
    assert_eq!(
        get(&server, "2").expect_err("no tag").code.name(),
        "oci.not_found"
    );
    let index = [
        platform("amd64", &format!("sha256:{}", of_bytes(b"")), 1),
        platform("riscv64", &manifest, size),
    ];
    let server = Server::new(image.index(&index).play());
    assert_eq!(get(&server, "1").expect("an image").bytes, whole.bytes);
}

#[test]
fn s13_a_registry_that_lies_about_digests_is_found_out() {
    let image = Image::new();
    let manifest = image.answers["manifests/1"].body.clone();
    let mut changed = image.answers[&format!("blobs/{}", image.layer)]
        .body
        .clone();
    changed[600] ^= 1;
    let layer = format!("blobs/{}", image.layer);
    let config = format!("blobs/{}", image.config);
    let lie = |path: &str, body: Vec<u8>| image.clone().set(path, answer(200, &[], body)).code();
    assert_eq!(lie(&layer, changed.clone()), "oci.digest");
    changed.pop();
    assert_eq!(lie(&layer, changed), "oci.digest");
    assert_eq!(lie(&layer, Vec::new()), "oci.digest");
    assert_eq!(lie(&config, b"{}".to_vec()), "oci.digest");
    let other = [&manifest[..], b" "].concat();
    let named = format!("manifests/{}", image.manifest);
    let by_digest = image
        .clone()
        .set(&named, answer(200, &[("Content-Type", OCI)], other.clone()));
    let server = Server::new(by_digest.clone().play());
    let error = get(&server, &image.manifest).expect_err("another manifest");
    assert_eq!(error.code.name(), "oci.digest");
    let index = [platform("riscv64", &image.manifest, manifest.len())];
    assert_eq!(by_digest.index(&index).code(), "oci.digest");
    let said = format!("sha256:{}", of_bytes(b"x"));
    let headers = [("Content-Type", OCI), ("Docker-Content-Digest", &said)];
    let header = image.set("manifests/1", answer(200, &headers, manifest));
    assert_eq!(header.code(), "oci.digest");
}

#[test]
fn s13_redirects_of_registries_are_judged() {
    let image = Image::new();
    let layer = format!("blobs/{}", image.layer);
    let to = |place: &str| {
        image
            .clone()
            .set(&layer, answer(307, &[("Location", place)], ""))
    };
    let other = Server::new(image.clone().play());
    let elsewhere = format!("http://127.0.0.1:{}/v2/box/{layer}", other.port);
    for place in [
        "http://10.0.0.1/",
        "http://93.184.216.34/",
        "https://93.184.216.34/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00::1]/",
        "http://localhost:1/",
        "http://metadata.google.internal/",
        &elsewhere,
        "https://127.0.0.1/",
        "file:///etc/passwd",
    ] {
        assert_eq!(to(place).code(), "oci.denied", "{place}");
    }
    assert!(other.heads().is_empty());
    assert_eq!(to(&format!("/v2/box/{layer}")).code(), "oci.registry");
    // A policy that names the other server lets the bytes come from there, and the
    // credentials stay here.
    let bytes = to(&elsewhere).play();
    let server = Server::new(Box::new(move |path, head| {
        match head.contains("\r\nauthorization:") {
            true => bytes(path, head),
            false => answer(401, &[("WWW-Authenticate", "Basic realm=\"x\"")], ""),
        }
    }));
    let rules = format!("full:127.0.0.1:{},127.0.0.1:{}", server.port, other.port);
    let access = Access {
        policy: Some(rules.parse().expect("a policy")),
        insecure: true,
        user: Some(("user".into(), Secret::new("s3cret"))),
        auth_host: None,
    };
    get_as(&server, "1", &access).expect("an image");
    let sent = other.heads().concat().to_lowercase();
    assert!(
        sent.contains("get /v2/box/blobs/") && !sent.contains("authorization"),
        "{sent}"
    );
    // Without a user the same registry refuses.
    let error = get(&server, "1").expect_err("no user");
    assert_eq!(error.code.name(), "oci.access");
}

#[test]
fn s13_bodies_of_registries_are_bounded() {
    let image = Image::new();
    let layer = format!("blobs/{}", image.layer);
    let endless = |headers: &[(&str, &str)], body: &[u8]| Answer {
        times: usize::MAX,
        ..answer(200, headers, body)
    };
    let zeros = vec![b' '; 1 << 16];
    let chunk = [b"10000\r\n", &zeros[..], b"\r\n"].concat();
    let chunked = [("Transfer-Encoding", "chunked"), ("Content-Type", OCI)];
    for (headers, body) in [(&chunked[..], &chunk), (&chunked[1..], &zeros)] {
        let found = image.clone().set(&layer, endless(headers, body));
        assert_eq!(found.code(), "oci.limit");
        let found = image.clone().set("manifests/1", endless(headers, body));
        assert_eq!(found.code(), "oci.limit");
    }
    let gigabyte = [("Content-Length", "1073741824"), ("Content-Type", OCI)];
    let start = std::time::Instant::now();
    let found = image
        .clone()
        .set("manifests/1", answer(200, &gigabyte, "{"));
    assert_eq!(found.code(), "oci.limit");
    // Nothing waits for the rest, which never comes.
    assert!(start.elapsed().as_secs() < 30);
    let found = image.clone().set(&layer, answer(200, &gigabyte, "x"));
    assert_eq!(found.code(), "oci.limit");
    // Sizes that no disk has, each and in all, and layers without end.
    for sizes in [&[u64::MAX][..], &[9 << 30, 9 << 30], &[u64::MAX, u64::MAX]] {
        let mut layout = layout();
        layout.layers = (0..sizes.len())
            .map(|i| json!({"digest": format!("sha256:{i:064}"), "size": sizes[i]}))
            .collect();
        assert_eq!(Image::of(layout).code(), "oci.limit", "{sizes:?}");
    }
    let mut layout = layout();
    layout.layers = vec![layout.layers[0].clone(); 20_000];
    assert_eq!(Image::of(layout).code(), "oci.limit");
    let many: Vec<Json> = (0..300)
        .map(|_| platform("amd64", &image.layer, 1))
        .collect();
    assert_eq!(image.index(&many).code(), "oci.limit");
}

#[test]
fn s13_manifests_of_registries_are_manifests() {
    let image = Image::new();
    let body = image.answers["manifests/1"].body.clone();
    for media_type in [
        "text/html",
        "",
        "application/vnd.docker.distribution.manifest.v1+json",
    ] {
        let found = image.clone().tagged(media_type, body.clone());
        assert_eq!(found.code(), "oci.unsupported", "{media_type}");
    }
    for body in ["", "{", "[]", "{}", "{\"config\": {}}", "<html>"] {
        assert_eq!(
            image.clone().tagged(OCI, body).code(),
            "oci.damaged",
            "{body}"
        );
    }
    for digest in ["sha256:../../../../etc/passwd", "sha256:", "../x", ""] {
        let mut layout = layout();
        layout.layers[0]["digest"] = json!(digest);
        assert_eq!(Image::of(layout).code(), "oci.damaged", "{digest}");
        let index = [platform("riscv64", digest, 1)];
        assert_eq!(image.clone().index(&index).code(), "oci.damaged");
    }
    // What exists is listed.
    let others = [
        platform("amd64", &image.layer, 1),
        platform("s390x", &image.layer, 1),
    ];
    let error = image.clone().index(&others).error();
    assert_eq!(error.code.name(), "oci.architecture");
    assert!(
        error.text.contains("linux/amd64") && error.text.contains("linux/s390x"),
        "{error}"
    );
    let mut layout = layout();
    layout.architecture = "arm64";
    let error = Image::of(layout).error();
    assert_eq!(error.code.name(), "oci.architecture");
    assert!(error.text.contains("linux/arm64"), "{error}");
    // Indexes in each other end.
    let mut nested = image.clone();
    let mut inner = platform("riscv64", &image.manifest, body.len());
    for _ in 0..6 {
        let index = json!({"manifests": [inner]}).to_string();
        let digest = format!("sha256:{}", of_bytes(index.as_bytes()));
        inner = platform("riscv64", &digest, index.len());
        let found = answer(200, &[("Content-Type", INDEX)], index);
        nested = nested.set(&format!("manifests/{digest}"), found);
    }
    assert_eq!(nested.index(&[inner]).code(), "oci.limit");
}

#[test]
fn s13_answers_that_refuse_or_end_early_are_distinguished() {
    let status = |status| Image::new().set("manifests/1", answer(status, &[], ""));
    for (number, code) in [
        (404, "oci.not_found"),
        (401, "oci.unsupported"),
        (403, "oci.access"),
        (429, "oci.registry"),
        (500, "oci.registry"),
        (204, "oci.registry"),
    ] {
        let error = status(number).error();
        assert_eq!(error.code.name(), code, "{number}");
    }
    let image = Image::new();
    let layer = format!("blobs/{}", image.layer);
    let size = image.answers[&layer].body.len().to_string();
    let cut = answer(200, &[("Content-Length", &size)], "short");
    assert_eq!(image.clone().set(&layer, cut).code(), "oci.registry");
    let packed = answer(200, &[("Content-Encoding", "gzip")], "x");
    assert_eq!(image.clone().set(&layer, packed).code(), "oci.registry");
    // TLS is the default, and HTTP is for this machine.
    let server = Server::new(image.play());
    let error = get_as(&server, "1", &Access::default()).expect_err("loopback");
    assert_eq!(error.code.name(), "oci.denied");
    let help = error.help.expect("the rule");
    assert_eq!(help, format!("--net full:127.0.0.1:{}", server.port));
    let named = Access {
        policy: Some(
            format!("full:127.0.0.1:{}", server.port)
                .parse()
                .expect("a policy"),
        ),
        ..Access::default()
    };
    let error = get_as(&server, "1", &named).expect_err("no TLS");
    assert_eq!(error.code.name(), "oci.registry");
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::at(folder.path().join("cache")).expect("a cache");
    let download = Download::new(&Store::of(&cache).expect("a store")).expect("a folder");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let reference = Reference::parse("docker://registry.test/box").expect("a name");
    let access = Access {
        insecure: true,
        ..Access::default()
    };
    let limits = Limits::default();
    let mut progress = |_, _| {};
    let fetch = download.fetch(&reference, &access, &limits, &mut progress);
    let error = runtime
        .expect("a runtime")
        .block_on(fetch)
        .expect_err("not this machine");
    assert_eq!(error.code.name(), "oci.access");
}

/// A registry whose answers need the token that its realm gives to this user.
fn with_tokens(realm: &'static str) -> Server {
    let image = Image::new().play();
    let port = Arc::new(Mutex::new(0u16));
    let known = Arc::clone(&port);
    let server = Server::new(Box::new(move |path, head| {
        if path.starts_with("/token?") {
            return match head.contains("authorization: Basic dXNlcjpzM2NyZXQ=") {
                true => answer(200, &[], "{\"token\": \"for-this\"}"),
                false => answer(200, &[], "{\"access_token\": \"anonymous\"}"),
            };
        }
        if head.contains("authorization: Bearer for-this") {
            return image(path, head);
        }
        let realm = match realm {
            "" => format!("http://127.0.0.1:{}/token", known.lock().expect("no panic")),
            realm => realm.to_owned(),
        };
        let challenge = format!("Bearer realm=\"{realm}\",service=\"a service\",scope=\"x:*\"");
        answer(401, &[("WWW-Authenticate", &challenge)], "")
    }));
    *port.lock().expect("no panic") = server.port;
    server
}

#[test]
fn s13_credentials_go_to_no_other_realm() {
    let access = Access {
        insecure: true,
        user: Some(("user".into(), Secret::new("s3cret"))),
        ..Access::default()
    };
    let server = with_tokens("");
    get_as(&server, "1", &access).expect("an image");
    let token = server
        .heads()
        .into_iter()
        .find(|head| head.contains("/token?"));
    let token = token.expect("a request for a token");
    let query = "/token?service=a%20service&scope=repository%3Abox%3Apull ";
    assert!(token.contains(query), "{token}");
    let blobs = |head: &&String| head.contains("Basic") && !head.contains("/token?");
    assert!(server.heads().iter().find(blobs).is_none());
    // Anybody gets a token there, which is not good enough.
    assert_eq!(
        get(&server, "1").expect_err("no user").code.name(),
        "oci.access"
    );
    for realm in [
        "https://evil.test/token",
        "https://127.0.0.1/token",
        "http://127.0.0.1:1/",
    ] {
        let error = get_as(&with_tokens(realm), "1", &access).expect_err("another realm");
        assert_eq!(error.code.name(), "oci.access", "{realm}");
        assert!(error.help.expect("a remedy").contains("--auth-host"));
    }
    // A host that may ask for them is asked over TLS, under the policy.
    let other = Access {
        auth_host: Some("127.0.0.1".into()),
        ..access.clone()
    };
    let error = get_as(&with_tokens("https://127.0.0.1/token"), "1", &other);
    assert_eq!(error.expect_err("loopback").code.name(), "oci.denied");
    let error = get_as(
        &with_tokens("http://10.0.0.1/token"),
        "1",
        &Access {
            auth_host: Some("10.0.0.1:80".into()),
            ..access
        },
    );
    assert_eq!(error.expect_err("in the clear").code.name(), "oci.access");
    // Without credentials the policy judges alone.
    let error = get(&with_tokens("http://10.0.0.1/token"), "1");
    assert_eq!(error.expect_err("private").code.name(), "oci.denied");
}

#[test]
fn what_a_killed_download_left_goes_with_the_next_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::at(folder.path().join("cache")).expect("a cache");
    let store = Store::of(&cache).expect("a store");
    let download = Download::new(&store).expect("a folder");
    let (path, half) = (download.path().to_owned(), download.path().join("half"));
    std::fs::write(&half, "a blob").expect("a file");
    // A running download keeps its folder.
    store.remove("none").expect_err("no image");
    assert!(half.exists());
    drop(download);
    std::fs::create_dir(&path).expect("a folder");
    std::fs::write(&half, "a blob").expect("a file");
    store.remove("none").expect_err("no image");
    assert!(!path.exists());
}
