//! Client of one registry: requests under the network policy, tokens, bounded bodies.

use super::{Access, Reference};
use crate::error::{OciCode, OciError, quoted};
use a99_http::{
    FetchCode, FetchError, FetchLimits, HttpFetch, Policy, Scheme, Secret, StreamRequest,
    StreamingAnswer, rule_for,
};
use serde::Deserialize;
use std::future::Future;
use std::time::{Duration, Instant};

/// Where Docker Hub's registry asks for credentials.
const HUB_AUTH: (&str, &str) = ("registry-1.docker.io:443", "auth.docker.io:443");

/// How long a registry may be silent, and the slowest rate of a body beyond that.
const IDLE: Duration = Duration::from_secs(60);
const MIN_BYTES_A_SECOND: u64 = 10_000;

/// Maximum requests of a download: manifests, 512 layers, tokens and redirects of each.
const MAX_REQUESTS: u64 = 8192;

/// Maximum bytes of an answer with a token.
const MAX_TOKEN: u64 = 64 << 10;

/// A client; see the module.
pub(super) struct Client<'a> {
    fetch: HttpFetch,
    access: &'a Access,
    reference: &'a Reference,
    base: String,
    /// Its host and port, as rules of policies name them.
    own: String,
    token: Option<Authorization>,
}

#[derive(Clone)]
enum Authorization {
    Bearer(Secret),
    Basic,
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl<'a> Client<'a> {
    /// Makes a client that reads bodies of at most `max` bytes.
    pub(super) fn new(
        access: &'a Access,
        reference: &'a Reference,
        max: u64,
    ) -> Result<Self, OciError> {
        let schemes: &[Scheme] = match access.insecure {
            true => &[Scheme::Http, Scheme::Https],
            false => &[Scheme::Https],
        };
        let limits = FetchLimits {
            max_body_bytes: usize::try_from(max).unwrap_or(usize::MAX),
            max_requests: Some(MAX_REQUESTS),
            ..FetchLimits::default()
        };
        let scheme = if access.insecure { "http" } else { "https" };
        let host = reference.api_host();
        if access.insecure && !is_loopback(host) {
            let text = "HTTP without TLS is spoken to this machine alone";
            return Err(OciError::new(OciCode::Access, host, text)
                .help("leave --insecure out; SSL_CERT_FILE names further authorities"));
        }
        let base = format!("{scheme}://{host}");
        let own = rule_for(&base).map_err(|error| failed(&error, host))?;
        let policy = match (&access.policy, access.insecure) {
            (Some(policy), _) => policy.clone(),
            (None, true) => format!("allow:{own}").parse().unwrap_or_default(),
            (None, false) => Policy::full(),
        };
        let builder = HttpFetch::builder().policy(policy).schemes(schemes);
        let fetch = builder.limits(limits).build();
        Ok(Self {
            fetch: fetch.map_err(|error| failed(&error, host))?,
            access,
            reference,
            base,
            own,
            token: None,
        })
    }

    /// Reads the manifest or blob of a path below the repository into `sink`; returns the
    /// type and the digest that the registry says it has.
    pub(super) async fn read(
        &mut self,
        path: &str,
        accept: &str,
        max: u64,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), OciError>,
    ) -> Result<(String, Option<String>), OciError> {
        let url = format!("{}/v2/{}/{path}", self.base, self.reference.repository);
        let mut answer = self.open(&url, accept, max).await?;
        if answer.status() == 401 {
            // Tokens of registries end after some minutes.
            self.authorize(&answer).await?;
            answer = self.open(&url, accept, max).await?;
        }
        if answer.status() != 200 {
            return Err(self.refused(answer.status(), path));
        }
        let text = |name| answer.header(name).map(str::to_owned);
        let length = text("content-length").and_then(|length| length.parse().ok());
        if length.is_some_and(|length: u64| length > max) {
            return Err(too_long(path, max));
        }
        let head = (text("content-type"), text("docker-content-digest"));
        body(&mut answer, path, max, sink).await?;
        Ok((head.0.unwrap_or_default(), head.1))
    }

    async fn open(&self, url: &str, accept: &str, max: u64) -> Result<StreamingAnswer, OciError> {
        let request = StreamRequest::get(url).header("accept", accept);
        let request = match (&self.token, &self.access.user) {
            (Some(Authorization::Bearer(token)), _) => {
                request.credential("authorization", token.clone())
            }
            (Some(Authorization::Basic), Some((user, password))) => {
                request.basic_auth(user, password)
            }
            _ => request,
        };
        self.send(request, max).await
    }

    async fn send(&self, request: StreamRequest, max: u64) -> Result<StreamingAnswer, OciError> {
        let host = self.reference.api_host();
        let most = usize::try_from(max).unwrap_or(usize::MAX);
        let request = request.follow_redirects().max_body_bytes(most);
        let answer = within(IDLE, host, self.fetch.open(request)).await?;
        answer.map_err(|error| failed(&error, host))
    }

    /// Does what the answer 401 asks for: Basic authentication, or a token of a realm
    /// (distribution's token specification).
    async fn authorize(&mut self, answer: &StreamingAnswer) -> Result<(), OciError> {
        let host = self.reference.api_host();
        let challenge = answer.header("www-authenticate").unwrap_or_default();
        let (scheme, rest) = challenge.split_once(' ').unwrap_or((challenge, ""));
        if scheme.eq_ignore_ascii_case("basic") {
            if self.access.user.is_none() || self.token.is_some() {
                return Err(self.refused(401, "manifest"));
            }
            self.token = Some(Authorization::Basic);
            return Ok(());
        }
        let unknown = || {
            let text = format!("it asks for {}", quoted(challenge.as_bytes()));
            OciError::new(OciCode::Unsupported, host, text)
        };
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(unknown());
        }
        let realm = parameter(rest, "realm").ok_or_else(unknown)?;
        let service = parameter(rest, "service").unwrap_or_default();
        // The scope is ours: a registry does not choose what a token is good for.
        let scope = format!("repository:{}:pull", self.reference.repository);
        let mark = if realm.contains('?') { '&' } else { '?' };
        let (service, scope) = (encoded(service), encoded(&scope));
        let url = format!("{realm}{mark}service={service}&scope={scope}");
        let mut request = StreamRequest::get(&url);
        if let Some((user, password)) = &self.access.user {
            self.check_realm(realm)?;
            request = request.basic_auth(user, password);
        }
        let mut answer = self.send(request, MAX_TOKEN).await?;
        if answer.status() != 200 {
            return Err(self.refused(answer.status(), "token"));
        }
        let mut bytes = Vec::new();
        body(&mut answer, "token", MAX_TOKEN, &mut keep(&mut bytes)).await?;
        let token: Token = crate::manifest::parse(&bytes, "token")?;
        let token = token.token.or(token.access_token).unwrap_or_default();
        let token = Secret::new(format!("Bearer {token}"));
        self.token = Some(Authorization::Bearer(token));
        Ok(())
    }

    /// Refuses to send credentials to a realm that is not the registry's.
    fn check_realm(&self, realm: &str) -> Result<(), OciError> {
        let host = self.reference.api_host();
        let rule = |url: &str| rule_for(url).map_err(|error| failed(&error, host));
        let (own, of_realm) = (&self.own, rule(realm)?);
        let allowed = self.access.auth_host.as_deref();
        let allowed = allowed.map(|host| rule(&format!("https://{host}")));
        let known = of_realm == *own
            || (own.as_str(), of_realm.as_str()) == HUB_AUTH
            || allowed.transpose()?.is_some_and(|host| host == of_realm);
        if known {
            return Ok(());
        }
        let place = quoted(of_realm.as_bytes());
        let text = format!("{host} asks for the credentials at this host");
        Err(OciError::new(OciCode::Access, place, text)
            .help("--auth-host HOST allows it, if the registry's people say so"))
    }

    fn refused(&self, status: u16, what: &str) -> OciError {
        let place = format!(
            "{}/{}",
            self.reference.api_host(),
            self.reference.repository
        );
        let what = quoted(what.as_bytes());
        let error = |code, text: &str| OciError::new(code, place, text);
        match status {
            401 | 403 => error(OciCode::Access, "the registry refuses access").help(
                "check the name: registries hide what is not there. A99_REGISTRY_USER and \
                 A99_REGISTRY_PASSWORD are sent to the registry if they are set",
            ),
            404 => error(OciCode::NotFound, &format!("the registry has no {what}"))
                .help("check the repository and the tag"),
            429 => error(OciCode::Registry, "too many requests for now")
                .help("wait, or log in by A99_REGISTRY_USER and A99_REGISTRY_PASSWORD"),
            status => error(OciCode::Registry, &format!("status {status} for {what}"))
                .help("try again later; the host may be no registry"),
        }
    }
}

/// A sink that keeps what it gets.
pub(super) fn keep(bytes: &mut Vec<u8>) -> impl FnMut(&[u8]) -> Result<(), OciError> {
    |chunk| {
        bytes.extend_from_slice(chunk);
        Ok(())
    }
}

/// Reads a body into `sink`, neither longer nor slower than allowed.
async fn body(
    answer: &mut StreamingAnswer,
    place: &str,
    max: u64,
    sink: &mut dyn FnMut(&[u8]) -> Result<(), OciError>,
) -> Result<(), OciError> {
    let end = Instant::now() + IDLE + Duration::from_secs(max / MIN_BYTES_A_SECOND);
    loop {
        let left = end.saturating_duration_since(Instant::now()).min(IDLE);
        match within(left, place, answer.chunk()).await? {
            Ok(Some(chunk)) => sink(&chunk)?,
            Ok(None) => return Ok(()),
            Err(error) if error.code() == FetchCode::BodyTooLarge => {
                return Err(too_long(place, max));
            }
            Err(error) => return Err(failed(&error, place)),
        }
    }
}

fn too_long(place: &str, max: u64) -> OciError {
    let text = format!("more than {max} bytes, which it may have at most");
    OciError::new(OciCode::Limit, quoted(place.as_bytes()), text)
        .help("the registry sends other bytes than it announced: try another")
}

async fn within<F: Future>(limit: Duration, place: &str, future: F) -> Result<F::Output, OciError> {
    tokio::time::timeout(limit, future).await.map_err(|_| {
        OciError::new(OciCode::Registry, place, "no answer in time")
            .help("look at the network, and try again")
    })
}

fn failed(error: &FetchError, place: &str) -> OciError {
    let (code, help) = match error.code() {
        FetchCode::Denied => (OciCode::Denied, None),
        FetchCode::Scheme => {
            let help = "registries are reached by https; --insecure allows HTTP to this machine";
            (OciCode::Denied, Some(help.to_owned()))
        }
        FetchCode::Quota | FetchCode::BodyTooLarge | FetchCode::HeaderTooLarge => {
            (OciCode::Limit, None)
        }
        FetchCode::Credentials => (OciCode::Access, None),
        FetchCode::Tls | FetchCode::NoRoots => {
            let help = "SSL_CERT_FILE names a file with the authority of a private registry";
            (OciCode::Registry, Some(help.to_owned()))
        }
        FetchCode::Url => (OciCode::Name, None),
        _ => {
            let help = "look at the name of the registry and at the network, and try again";
            (OciCode::Registry, Some(help.to_owned()))
        }
    };
    let rule = error.rule().map(|rule| format!("--net full:{rule}"));
    let text = error.message();
    let text = text.strip_prefix("Fetch denied: ").unwrap_or(text);
    OciError {
        help: rule.or(help),
        ..OciError::new(code, quoted(place.as_bytes()), text)
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = match host.rsplit_once(':') {
        Some((bare, port)) if port.bytes().all(|b| b.is_ascii_digit()) => bare,
        _ => host,
    };
    let bare = bare.trim_start_matches('[').trim_end_matches(']');
    let address: Option<std::net::IpAddr> = bare.parse().ok();
    bare == "localhost" || address.is_some_and(|address| address.is_loopback())
}

/// Finds a parameter of a challenge: `NAME="VALUE"`, between commas (RFC 9110 section 11.2).
fn parameter<'t>(mut text: &'t str, name: &str) -> Option<&'t str> {
    loop {
        let (key, rest) = text.split_once("=\"")?;
        let (value, rest) = rest.split_once('"')?;
        if key.trim_matches([' ', ',']).eq_ignore_ascii_case(name) {
            return Some(value);
        }
        text = rest;
    }
}

/// Encodes the value of a query's field.
fn encoded(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(byte.into());
            }
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}
