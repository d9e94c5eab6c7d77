//! Requests to the HTTP routes of a channel server, with a token.

use crate::codes::BAD_ANSWER;
use crate::request::send;
use a99_capabilities::Secret;
use a99_channels::codes as channels;
use a99_http::{HttpFetch, StreamRequest, rule_for};
use a99_runtime::AgentError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Where a channel server is, and how to use it.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Its address, such as `https://channels.example.com`.
    pub address: String,
    /// A token with the scopes `read` and `host` of the agents' channels.
    pub token: String,
    /// The certificate authorities, PEM; the system's without any.
    pub authorities: Vec<u8>,
    /// The limit of a request.
    pub timeout: Duration,
    /// How long a channel may be quiet before the server is asked: a turn that waits for an
    /// answer of another agent gets it before the next push.
    pub look: Duration,
}

impl ServerOptions {
    /// Requests of at most ten seconds; a look after a quiet second.
    pub fn new(address: impl Into<String>, token: impl Into<String>) -> ServerOptions {
        ServerOptions {
            address: address.into(),
            token: token.into(),
            authorities: Vec::new(),
            timeout: Duration::from_secs(10),
            look: Duration::from_secs(1),
        }
    }
}

/// Sends requests to a channel server.
pub struct Api {
    address: String,
    token: Secret,
    fetch: HttpFetch,
    timeout: Duration,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

/// The form of errors of a server.
#[derive(Deserialize)]
struct Failed {
    error: ErrorBody,
}

#[derive(Deserialize)]
struct ErrorBody {
    code: String,
    message: String,
}

impl Api {
    /// An API. It sends nothing yet.
    ///
    /// # Errors
    /// `channels.bad_server` for an address or a token that cannot be used: an address beyond
    /// the loopback needs TLS.
    pub fn new(options: ServerOptions) -> Result<Api, AgentError> {
        let bad = |error: &dyn std::fmt::Display| {
            let message = format!("the channel server's address: {error}");
            AgentError::new(channels::BAD_SERVER, message).fatal()
        };
        let address = options.address.trim_end_matches('/');
        // The socket of the same server.
        let address = match address.strip_prefix("ws") {
            Some(rest) => format!("http{rest}"),
            None => address.to_owned(),
        };
        let rule = rule_for(&address).map_err(|error| bad(&error))?;
        let policy = format!("allow:{rule}");
        let policy = policy.parse().map_err(|error| bad(&error))?;
        let limits = a99_http::FetchLimits {
            max_requests: None,
            max_hosts: None,
            max_body_bytes: 64 << 20,
            ..a99_http::FetchLimits::default()
        };
        let mut builder = HttpFetch::builder().policy(policy).limits(limits);
        if !options.authorities.is_empty() {
            builder = builder.ca_pem(&options.authorities);
        }
        let fetch = builder.build().map_err(|error| bad(&error))?;
        let token = Secret::new(format!("Bearer {}", options.token));
        let probe = StreamRequest::get(&address).credential("authorization", token.clone());
        probe.check().map_err(|error| bad(&error))?;
        Ok(Api {
            address,
            token,
            fetch,
            timeout: options.timeout,
        })
    }

    async fn send<T: DeserializeOwned>(&self, request: StreamRequest) -> Result<T, AgentError> {
        let request = request.credential("authorization", self.token.clone());
        let answer = send(&self.fetch, request, self.timeout).await;
        let answer = answer.map_err(|lost| AgentError::new(channels::LOST, lost.to_string()))?;
        let bad = |error: serde_json::Error| {
            let message = format!("the channel server's answer: {error}");
            AgentError::new(BAD_ANSWER, message)
        };
        if answer.status == 200 {
            return serde_json::from_slice(&answer.body).map_err(bad);
        }
        let Ok(Failed { error }) = serde_json::from_slice(&answer.body) else {
            let message = format!("the channel server answers with status {}", answer.status);
            return Err(AgentError::new(BAD_ANSWER, message));
        };
        let made = AgentError::new(error.code, error.message);
        // A token can be made valid again, and the events wait for it.
        match answer.status {
            400 | 404 | 409 | 413 | 422 => Err(made.fatal()),
            _ => Err(made),
        }
    }

    /// The answer to a GET.
    ///
    /// # Errors
    /// Those of the server; `channels.lost` without an answer; `push.bad_answer`.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, AgentError> {
        let url = format!("{}{path}", self.address);
        self.send(StreamRequest::get(url)).await
    }

    /// The answer to a POST of JSON, which bytes may follow.
    ///
    /// # Errors
    /// Those of [`Api::get`].
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        params: &impl Serialize,
        bytes: &[u8],
    ) -> Result<T, AgentError> {
        let mut body = serde_json::to_vec(params)?;
        body.extend_from_slice(bytes);
        let url = format!("{}{path}", self.address);
        let request = StreamRequest::post(url, body).header("content-type", "application/json");
        self.send(request).await
    }
}

/// A channel's name in a query.
#[must_use]
pub fn encoded(channel: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    channel.bytes().map(byte).collect()
}
