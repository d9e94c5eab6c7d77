//! Certificates of the server that most tests use.

use crate::cluster::Cluster;
use base64::prelude::{BASE64_STANDARD, Engine};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::sync::OnceLock;

/// The name in the server's certificate.
pub(crate) const NAME: &str = "db.example.test";

/// The shared server, which speaks TLS.
pub(crate) fn shared() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(certify))
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(64)
        .map(|l| str::from_utf8(l).unwrap())
        .collect();
    let lines = lines.join("\n");
    format!("-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n")
}

/// Creates an authority with a server certificate, and an unrelated authority; returns the
/// settings that use them.
fn certify(cluster: &Cluster) -> String {
    let authority = |name: &str| {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    };
    let (ours, other) = (authority("ours"), authority("other"));
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &ours).unwrap();
    cluster.write("server.pem", &pem("CERTIFICATE", certificate.der()));
    cluster.write("server.key", &pem("PRIVATE KEY", &key.serialize_der()));
    cluster.write("ca.pem", &pem("CERTIFICATE", ours.der()));
    cluster.write("other.pem", &pem("CERTIFICATE", other.der()));
    let folder = cluster.at("");
    let folder = folder.display();
    format!(
        "ssl = on\nssl_cert_file = '{folder}/server.pem'\nssl_key_file = '{folder}/server.key'\n"
    )
}

pub(crate) fn authority(name: &str) -> String {
    shared().at(name).display().to_string()
}
