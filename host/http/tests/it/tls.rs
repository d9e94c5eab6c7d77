//! TLS: certificates that hold, and those that do not.

use crate::network::{PUBLIC, TestNet, code, get};
use crate::server::{Server, ok, serve, to};
use a99_http::HttpFetch;
use base64::Engine as _;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::{Arc, Mutex};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// An authority of this test.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// Who a server says it is.
pub(crate) struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    key: KeyPair,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Authority(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    pub(crate) fn pem(&self) -> Vec<u8> {
        pem(self.0.der())
    }

    pub(crate) fn sign(&self, names: &[&str], change: impl Fn(&mut CertificateParams)) -> Identity {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Identity {
            chain: vec![certificate.der().clone()],
            key,
        }
    }
}

fn pem(der: &[u8]) -> Vec<u8> {
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: Vec<&str> = (0..text.len())
        .step_by(64)
        .map(|at| &text[at..text.len().min(at + 64)])
        .collect();
    let lines = lines.join("\n");
    format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n").into_bytes()
}

impl Identity {
    pub(crate) fn acceptor(&self, protocol: &str) -> TlsAcceptor {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).unwrap();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), key)
            .unwrap();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A server over TLS, with the names that clients asked for.
pub(crate) async fn server<F>(
    identity: &Identity,
    protocol: &str,
    play: impl Fn(TlsStream<TcpStream>) -> F + Send + Sync + Clone + 'static,
) -> Server
where
    F: Future<Output = ()> + Send + 'static,
{
    let acceptor = identity.acceptor(protocol);
    Server::raw(move |stream, _| {
        let (acceptor, play) = (acceptor.clone(), play.clone());
        async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                play(stream).await;
            }
        }
    })
    .await
}

async fn hello(identity: &Identity) -> Server {
    server(identity, "http/1.1", |stream| {
        serve(stream, Arc::default(), |_| ok("hello"))
    })
    .await
}

fn fetch(net: &TestNet, authority: &Authority) -> HttpFetch {
    net.builder("full")
        .ca_pem(&authority.pem())
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_good_certificate_holds() {
    let authority = Authority::new();
    let names: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
    let seen = Arc::clone(&names);
    let identity = authority.sign(&["good.test", PUBLIC], |_| {});
    let server = server(&identity, "http/1.1", move |stream| {
        let name = stream.get_ref().1.server_name().map(str::to_owned);
        seen.lock().unwrap().push(name);
        serve(stream, Arc::default(), |_| ok("hello"))
    })
    .await;
    let net = TestNet::good(1).at(PUBLIC, 443, server.port);
    let fetch = fetch(&net, &authority);
    for host in ["good.test", "GOOD.test.", PUBLIC] {
        let answer = get(&fetch, &format!("https://{host}/")).await;
        assert_eq!(answer.unwrap().as_str(), Some("hello"), "{host}");
    }
    // One connection for a name however it is written; an address has no name.
    assert_eq!(*names.lock().unwrap(), [Some("good.test".to_owned()), None]);
}

#[tokio::test]
async fn bad_certificates_are_refused() {
    let authority = Authority::new();
    let plain = |_: &mut CertificateParams| {};
    let expired = |params: &mut CertificateParams| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    };
    let early = |params: &mut CertificateParams| {
        params.not_before = rcgen::date_time_ymd(2999, 1, 1);
        params.not_after = rcgen::date_time_ymd(3000, 1, 1);
    };
    let no_server = |params: &mut CertificateParams| {
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    };
    let self_signed = {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["good.test".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Identity {
            chain: vec![certificate.der().clone()],
            key,
        }
    };
    let others = [
        ("another name", authority.sign(&["other.test"], plain)),
        ("below the name", authority.sign(&["*.good.test"], plain)),
        (
            "the name as a part",
            authority.sign(&["good.test.evil.test"], plain),
        ),
        ("no name", authority.sign(&[], plain)),
        ("an address", authority.sign(&[PUBLIC], plain)),
        ("expired", authority.sign(&["good.test"], expired)),
        ("not valid yet", authority.sign(&["good.test"], early)),
        ("not for servers", authority.sign(&["good.test"], no_server)),
        ("self-signed", self_signed),
        (
            "another authority",
            Authority::new().sign(&["good.test"], plain),
        ),
    ];
    for (what, identity) in others {
        let server = hello(&identity).await;
        let net = TestNet::good(1).at(PUBLIC, 443, server.port);
        let error = get(&fetch(&net, &authority), "https://good.test/?key=s3cret")
            .await
            .unwrap_err();
        assert_eq!(error.code().name(), "fetch.tls", "{what}: {error}");
        assert!(
            error.to_string().contains("https://good.test:443"),
            "{error}"
        );
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}

/// What a server chooses is read by programs and shown on terminals.
#[tokio::test]
async fn names_of_certificates_are_shown_short_and_escaped() {
    let authority = Authority::new();
    let long = format!("{}.test", vec!["x".repeat(60); 4].join("."));
    let mut names: Vec<String> = (0..100).map(|n| format!("host{n}.{long}")).collect();
    names.insert(0, "a\u{1b}[31mRED\n.test".to_owned());
    let with_names = |names: &[String]| {
        let alternatives: Vec<rcgen::SanType> = names
            .iter()
            .map(|name| rcgen::SanType::DnsName(name.as_str().try_into().unwrap()))
            .collect();
        authority.sign(&[], move |params| {
            params.subject_alt_names.clone_from(&alternatives);
        })
    };
    for names in [&names[..1], &names[1..], &names[..]] {
        let server = hello(&with_names(names)).await;
        let net = TestNet::good(1).at(PUBLIC, 443, server.port);
        let error = get(&fetch(&net, &authority), "https://good.test/").await;
        let text = error.unwrap_err().to_string();
        assert!(text.len() < 500, "{} bytes: {text}", text.len());
        assert!(!text.contains(char::is_control), "{text:?}");
        assert!(text.contains("good.test"), "{text}");
    }
}

#[tokio::test]
async fn n05_a_redirect_to_an_address_is_judged_over_tls() {
    let authority = Authority::new();
    let identity = authority.sign(&["good.test", "127.0.0.1", "169.254.169.254"], |_| {});
    let server = server(&identity, "http/1.1", |stream| {
        serve(stream, Arc::default(), |_| {
            to(302, "https://169.254.169.254/latest")
        })
    })
    .await;
    let net = TestNet::good(1).at(PUBLIC, 443, server.port);
    let net = net.at("169.254.169.254", 443, server.port);
    assert_eq!(
        code(get(&fetch(&net, &authority), "https://good.test/").await),
        "fetch.denied"
    );
    assert_eq!(net.dialed().len(), 1);
}

#[tokio::test]
async fn what_is_not_tls_is_refused() {
    let server = Server::always(ok("plain")).await;
    let net = TestNet::good(1).at(PUBLIC, 443, server.port);
    let authority = Authority::new();
    let garbage = Server::raw(|mut stream, _| async move {
        use tokio::io::AsyncWriteExt;
        let _ = stream.write_all(&[0x16; 100_000]).await;
    })
    .await;
    let net = net
        .name("junk.test", &["198.41.0.4"])
        .at("198.41.0.4", 443, garbage.port);
    let fetch = fetch(&net, &authority);
    assert_eq!(code(get(&fetch, "https://junk.test/").await), "fetch.tls");
    drop(server);
}

#[tokio::test]
async fn files_of_authorities_are_checked() {
    let authority = Authority::new();
    let file = tempfile::NamedTempFile::new().unwrap();
    let build = || HttpFetch::builder().ca_file(file.path()).build().map(drop);
    let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec();
    for (text, part) in [
        (Vec::new(), "has no certificate"),
        (b"hello".to_vec(), "has no certificate"),
        (
            b"-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n".to_vec(),
            "is not PEM",
        ),
        (
            [authority.pem(), broken].concat(),
            "bad certificate, number 2",
        ),
    ] {
        std::fs::write(file.path(), text).unwrap();
        let error = build().unwrap_err();
        assert_eq!(error.code().name(), "fetch.ca_file");
        let path = file.path().display().to_string();
        assert!(
            error.to_string().contains(part) && error.to_string().contains(&path),
            "{error}"
        );
    }
    std::fs::write(file.path(), authority.pem()).unwrap();
    assert_eq!(build(), Ok(()));
    let missing = HttpFetch::builder()
        .ca_file("/nonexistent/ca.pem")
        .build()
        .map(drop);
    assert!(
        missing
            .unwrap_err()
            .to_string()
            .contains("cannot read /nonexistent/ca.pem")
    );
    for (path, part) in [("/", "no regular file"), ("/dev/zero", "no regular file")] {
        let error = HttpFetch::builder().ca_file(path).build().map(drop);
        let text = error.unwrap_err().to_string();
        assert!(text.contains(part) && text.contains(path), "{text}");
    }
    let large = tempfile::NamedTempFile::new().unwrap();
    large.as_file().set_len((4 << 20) + 1).unwrap();
    let error = HttpFetch::builder().ca_file(large.path()).build().map(drop);
    assert!(error.unwrap_err().to_string().contains("more than 4 MiB"));
    // One that signed nothing here does not do.
    let identity = Authority::new().sign(&["good.test"], |_| {});
    let server = hello(&identity).await;
    let net = TestNet::good(1).at(PUBLIC, 443, server.port);
    let fetch = net.builder("full").ca_file(file.path()).build().unwrap();
    assert_eq!(code(get(&fetch, "https://good.test/").await), "fetch.tls");
}

/// In a process of its own, for which the system has no authorities.
#[test]
fn no_authorities_are_told() {
    if std::env::var("NO_ROOTS_INSIDE").is_ok() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let identity = Authority::new().sign(&["good.test"], |_| {});
            let server = hello(&identity).await;
            let net = TestNet::good(1).at(PUBLIC, 443, server.port);
            let error = get(&net.fetch("full"), "https://good.test/")
                .await
                .unwrap_err();
            assert_eq!(error.code().name(), "fetch.no_roots");
            assert!(error.to_string().contains("--ca FILE"), "{error}");
        });
        return;
    }
    let empty = tempfile::NamedTempFile::new().unwrap();
    let mut inside = std::process::Command::new(std::env::current_exe().unwrap());
    inside.args(["--exact", "tls::no_authorities_are_told"]);
    inside
        .env("NO_ROOTS_INSIDE", "1")
        .env("SSL_CERT_FILE", empty.path());
    inside.env_remove("SSL_CERT_DIR");
    let done = inside.output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && text.contains("1 passed"), "{text}");
}
