//! TLS, with a certificate of this test.

use crate::client::{Running, app, rest, start, status};
use a99_server::{Limits, ListenOptions, Listener, ServerCode, TlsFiles};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio_rustls::TlsConnector;

struct Certified {
    folder: TempDir,
    certificate: CertificateDer<'static>,
}

fn certified() -> Certified {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = made.signing_key.serialize_der();
    let place = |name| folder.path().join(name);
    fs::write(place("cert.pem"), pem("CERTIFICATE", made.cert.der())).unwrap();
    fs::write(place("key.pem"), pem("PRIVATE KEY", &key)).unwrap();
    Certified {
        folder,
        certificate: made.cert.der().clone(),
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = (0..text.len())
        .step_by(64)
        .map(|at| &text[at..text.len().min(at + 64)])
        .collect();
    format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        lines.join("\n")
    )
}

fn files(folder: &Path) -> TlsFiles {
    TlsFiles {
        certificate: folder.join("cert.pem"),
        key: folder.join("key.pem"),
    }
}

async fn encrypted(folder: &Path) -> Running {
    encrypted_within(folder, Duration::from_millis(400)).await
}

async fn encrypted_within(folder: &Path, header_timeout: Duration) -> Running {
    let options = ListenOptions {
        tls: Some(files(folder)),
        limits: Limits {
            header_timeout,
            ..Limits::default()
        },
        ..ListenOptions::default()
    };
    start(options, app()).await
}

async fn ask(running: &Running, of: &Certified, head: &str) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(of.certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, running.open().await).await.unwrap();
    stream
        .write_all(running.request(head, "").as_bytes())
        .await
        .unwrap();
    rest(&mut stream).await
}

#[tokio::test]
async fn requests_over_tls_are_served_beside_silent_clients() {
    let made = certified();
    let running = encrypted(made.folder.path()).await;
    let begin = Instant::now();
    let mut silent = Vec::new();
    for _ in 0..64 {
        silent.push(running.open().await);
    }
    assert_eq!(status(&ask(&running, &made, "GET /").await), 200);
    let own = format!("GET /\nOrigin: https://{}", running.address);
    assert_eq!(status(&ask(&running, &made, &own).await), 200);
    let plain = format!("GET /\nOrigin: http://{}", running.address);
    assert_eq!(status(&ask(&running, &made, &plain).await), 403);
    for stream in &mut silent {
        assert_eq!(rest(stream).await, "");
    }
    assert!(
        begin.elapsed() < Duration::from_secs(5),
        "{:?}",
        begin.elapsed()
    );
    assert_eq!(status(&ask(&running, &made, "GET /").await), 200);
}

#[tokio::test]
async fn a_plain_client_gets_no_answer_over_tls() {
    let made = certified();
    let running = encrypted(made.folder.path()).await;
    assert!(!running.ask("GET /", "").await.contains("HTTP"));
    assert_eq!(status(&ask(&running, &made, "GET /").await), 200);
}

#[tokio::test]
async fn a_handshake_does_not_delay_the_stop() {
    let made = certified();
    let running = encrypted_within(made.folder.path(), Duration::from_secs(60)).await;
    let mut silent = running.open().await;
    assert_eq!(status(&ask(&running, &made, "GET /").await), 200);
    let begin = Instant::now();
    running.stop().await;
    assert!(
        begin.elapsed() < Duration::from_secs(2),
        "{:?}",
        begin.elapsed()
    );
    assert_eq!(rest(&mut silent).await, "");
}

#[tokio::test]
async fn tls_makes_any_address_safe() {
    let made = certified();
    let options = ListenOptions {
        address: "0.0.0.0:0".parse().unwrap(),
        tls: Some(files(made.folder.path())),
        ..ListenOptions::default()
    };
    let listener = Listener::bind(options).await.unwrap();
    assert!(
        listener.url().starts_with("https://0.0.0.0:"),
        "{}",
        listener.url()
    );
}

#[tokio::test]
async fn bad_files_are_reported() {
    let made = certified();
    let folder = made.folder.path();
    let other = certified();
    let bind = async |tls: TlsFiles| {
        let options = ListenOptions {
            tls: Some(tls),
            ..ListenOptions::default()
        };
        Listener::bind(options).await.err().expect("a bad file")
    };
    fs::write(folder.join("empty.pem"), "").unwrap();
    fs::write(
        folder.join("broken.pem"),
        "-----BEGIN CERTIFICATE-----\n!\n",
    )
    .unwrap();
    fs::write(folder.join("large.pem"), vec![b'x'; 2 << 20]).unwrap();
    for name in [
        "absent.pem",
        "empty.pem",
        "broken.pem",
        "large.pem",
        ".",
        "key.pem",
    ] {
        let certificate = folder.join(name);
        let error = bind(TlsFiles {
            certificate,
            ..files(folder)
        })
        .await;
        assert_eq!(error.code(), ServerCode::BadCertificate, "{name}");
        assert!(error.to_string().contains(name), "{error}");
    }
    for name in ["absent.pem", "empty.pem", "cert.pem"] {
        let error = bind(TlsFiles {
            key: folder.join(name),
            ..files(folder)
        })
        .await;
        assert_eq!(error.code(), ServerCode::BadCertificate, "{name}");
    }
    let key = other.folder.path().join("key.pem");
    let error = bind(TlsFiles {
        key,
        ..files(folder)
    })
    .await;
    assert_eq!(error.code(), ServerCode::BadCertificate);
}
