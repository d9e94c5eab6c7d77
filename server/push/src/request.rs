//! Requests over HTTP with a time limit and a limited answer.

use a99_http::{FetchError, HttpFetch, StreamRequest};
use std::time::Duration;

/// An answer that arrived whole.
pub(crate) struct Response {
    pub(crate) status: u16,
    /// The seconds of `Retry-After`.
    pub(crate) retry_after: Option<u64>,
    pub(crate) body: Vec<u8>,
}

/// Why there is no answer.
pub(crate) enum Lost {
    Late,
    Fetch(FetchError),
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Lost::Late => f.write_str("no answer came in time"),
            Lost::Fetch(error) => error.fmt(f),
        }
    }
}

/// Sends a request and reads its answer.
pub(crate) async fn send(
    fetch: &HttpFetch,
    request: StreamRequest,
    limit: Duration,
) -> Result<Response, Lost> {
    let answered = async {
        let mut answer = fetch.open(request).await?;
        let retry_after = answer.header("retry-after");
        let retry_after = retry_after.and_then(|text| text.trim().parse().ok());
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            body.extend_from_slice(&chunk);
        }
        Ok(Response {
            status: answer.status(),
            retry_after,
            body,
        })
    };
    match tokio::time::timeout(limit, answered).await {
        Ok(answered) => answered.map_err(Lost::Fetch),
        Err(_) => Err(Lost::Late),
    }
}
