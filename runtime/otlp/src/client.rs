//! The HTTP client of the exporter: `a99-http`, which may reach the collector and nothing else.

use a99_capabilities::Secret;
use a99_http::{FetchError, FetchLimits, HttpFetch, StreamRequest, rule_for};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;

/// How long a request may take: the default of OTLP exporters.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Most bytes of an answer, which reports spans that were refused.
const MAX_ANSWER: usize = 64 << 10;

/// Sends requests on the host's runtime: the SDK's thread has none.
pub(crate) struct Client {
    fetch: Arc<HttpFetch>,
    runtime: Handle,
    outage: Arc<Outage>,
}

/// Whether the last request failed, and who hears of a change.
struct Outage {
    url: String,
    is_failing: AtomicBool,
    warn: Box<dyn Fn(&str) + Send + Sync>,
}

impl Outage {
    fn fail(&self, why: &str) {
        if !self.is_failing.swap(true, Ordering::Relaxed) {
            (self.warn)(&format!(
                "spans cannot be exported to {}: {why}; agents go on, and spans that find no room \
                 in the queue are lost",
                self.url
            ));
        }
    }

    fn end(&self) {
        if self.is_failing.swap(false, Ordering::Relaxed) {
            (self.warn)(&format!("spans are exported to {} again", self.url));
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    pub(crate) fn new(
        url: &str,
        warn: Box<dyn Fn(&str) + Send + Sync>,
    ) -> Result<Client, FetchError> {
        let rule = rule_for(url)?;
        let limits = FetchLimits {
            max_requests: None,
            max_hosts: None,
            timeout: TIMEOUT,
            ..FetchLimits::default()
        };
        let policy = format!("allow:{rule}").parse().unwrap_or_default();
        let fetch = HttpFetch::builder().policy(policy).limits(limits).build()?;
        // User names in an address are refused; its path may be secret.
        let shown = url.split(['?', '#']).next().unwrap_or_default().to_owned();
        Ok(Client {
            fetch: Arc::new(fetch),
            runtime: Handle::current(),
            outage: Arc::new(Outage {
                url: shown,
                is_failing: AtomicBool::new(false),
                warn,
            }),
        })
    }
}

/// Sends a request and reads its answer.
async fn send(fetch: &HttpFetch, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let (head, body) = request.into_parts();
    let mut post = StreamRequest::post(head.uri.to_string(), body).max_body_bytes(MAX_ANSWER);
    for (name, value) in &head.headers {
        // Headers of the environment may have a token.
        post = match name.as_str() {
            "content-type" | "user-agent" => post.header(name.as_str(), value.to_str()?),
            _ => post.credential(name.as_str(), Secret::new(value.to_str()?)),
        };
    }
    let mut answer = fetch.open(post).await?;
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        body.extend_from_slice(&piece);
    }
    let mut response = Response::builder().status(answer.status());
    if let Some(pause) = answer.header("retry-after") {
        response = response.header("retry-after", pause);
    }
    Ok(response.body(body.into())?)
}

impl HttpClient for Client {
    // What `async_trait` makes of an `async fn`.
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let (fetch, outage) = (Arc::clone(&self.fetch), Arc::clone(&self.outage));
        let sent = self.runtime.spawn(async move {
            let sent = tokio::time::timeout(TIMEOUT, send(&fetch, request)).await;
            let sent = sent.unwrap_or_else(|_| Err(format!("no answer in {TIMEOUT:?}").into()));
            match &sent {
                Ok(answer) if answer.status().is_success() => outage.end(),
                Ok(answer) => outage.fail(&format!("the answer is {}", answer.status())),
                Err(error) => outage.fail(&error.to_string()),
            }
            sent
        });
        Box::pin(async move { sent.await? })
    }
}
