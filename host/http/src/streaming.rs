//! Streaming: answers whose bodies hosts read as they arrive.

use crate::client::{HttpFetch, Pool, UnderWay, check_end, lost, needs_runtime, revoked_by_policy};
use crate::credential::Credential;
use crate::decode::{Coding, too_large};
use crate::error::{FetchCode, FetchError};
use crate::options::{Fields, Request, ResponseType};
use crate::target::{Origin, Target};
use a99_capabilities::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};
use http::{Method, Version};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

/// A request for a streamed answer: see [`HttpFetch::open`].
#[derive(Clone)]
pub struct StreamRequest {
    method: Method,
    url: String,
    headers: Vec<(String, String)>,
    credentials: Vec<(String, Secret)>,
    body: Option<Bytes>,
    max_body_bytes: usize,
    follows: bool,
}

impl StreamRequest {
    fn new(method: Method, url: String, body: Option<Bytes>) -> StreamRequest {
        StreamRequest {
            method,
            url,
            headers: Vec::new(),
            credentials: Vec::new(),
            body,
            max_body_bytes: usize::MAX,
            follows: false,
        }
    }

    /// A `GET` request.
    pub fn get(url: impl Into<String>) -> StreamRequest {
        StreamRequest::new(Method::GET, url.into(), None)
    }

    /// A `POST` request; a header should give the body's type.
    pub fn post(url: impl Into<String>, body: impl Into<Vec<u8>>) -> StreamRequest {
        let body: Vec<u8> = body.into();
        StreamRequest::new(Method::POST, url.into(), Some(body.into()))
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> StreamRequest {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a secret header. Like a [`Builder::credential`](crate::Builder::credential), it is
    /// sent only over TLS, or to a loopback address.
    #[must_use]
    pub fn credential(mut self, name: impl Into<String>, value: Secret) -> StreamRequest {
        self.credentials.push((name.into(), value));
        self
    }

    /// Adds a user and password as a [`credential`](Self::credential) (RFC 7617).
    #[must_use]
    pub fn basic_auth(self, user: &str, password: &Secret) -> StreamRequest {
        let pair = STANDARD.encode(format!("{user}:{}", password.expose()));
        self.credential("authorization", Secret::new(format!("Basic {pair}")))
    }

    /// Follows at most five redirects, each judged by the policy. As in other fetches,
    /// credentials stay with their origin.
    #[must_use]
    pub fn follow_redirects(self) -> StreamRequest {
        StreamRequest {
            follows: true,
            ..self
        }
    }

    /// Limits the answer's body;
    /// [`FetchLimits::max_body_bytes`](crate::FetchLimits::max_body_bytes) applies in any case.
    #[must_use]
    pub fn max_body_bytes(self, bytes: usize) -> StreamRequest {
        StreamRequest {
            max_body_bytes: bytes,
            ..self
        }
    }

    /// Checks the request independently of the network, for hosts that read their settings.
    ///
    /// # Errors
    /// With [`FetchCode::Url`], [`FetchCode::Header`] or [`FetchCode::Credentials`].
    pub fn check(&self) -> Result<(), FetchError> {
        let target = Target::parse(&self.url)?;
        self.clone().read(&target, usize::MAX).map(|_| ())
    }

    fn read(self, target: &Target, max_sent: usize) -> Result<Request, FetchError> {
        let mut fields = Fields::default();
        for (name, value) in &self.headers {
            fields.add(Fields::name(name.as_bytes())?, value)?;
        }
        let mut headers = fields.into_headers();
        for (name, value) in &self.credentials {
            let origin = target.origin.to_string();
            Credential::new(&origin, name, value)?.put(&target.origin, &mut headers);
        }
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(body) = self.body.as_ref().filter(|body| body.len() > max_sent) {
            let text = format!(
                "the body has {} bytes, at most {max_sent} are sent",
                body.len()
            );
            return Err(FetchError::new(FetchCode::Body, text));
        }
        Ok(Request {
            method: self.method,
            headers,
            body: self.body,
            response_type: ResponseType::Response,
            is_cross_origin: false,
        })
    }
}

impl fmt::Debug for StreamRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Path, headers and body may be secret.
        f.debug_struct("StreamRequest")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

/// An answer whose head arrived. Dropping it closes its connection, unless the body was read to
/// its end.
pub struct StreamingAnswer {
    status: u16,
    headers: HeaderMap,
    version: Version,
    body: Incoming,
    origin: Origin,
    received: usize,
    limit: usize,
    ended: Option<Result<(), FetchError>>,
    pool: Arc<Pool>,
    _under_way: UnderWay,
}

impl HttpFetch {
    /// Sends a request and gives its answer when the head arrives; [`StreamingAnswer::chunk`]
    /// gives the body piece by piece.
    ///
    /// Policy, quotas, credentials and size limits are those of every request. Only connecting
    /// has a timeout: the caller must set others. Redirects are errors unless the request
    /// [follows](StreamRequest::follow_redirects) them; bodies that are compressed are errors.
    ///
    /// # Errors
    /// Each of [`FetchCode`] except those of followed redirects, of JSON and of statuses, which
    /// the caller must check.
    pub async fn open(&self, request: StreamRequest) -> Result<StreamingAnswer, FetchError> {
        needs_runtime()?;
        let mut target = Target::parse(&request.url)?;
        let most = self.limits().max_body_bytes;
        let (limit, follows) = (request.max_body_bytes.min(most), request.follows);
        let mut request = request.read(&target, most)?;
        let pool = self.pool();
        let origin = target.origin.clone();
        let sent = {
            let mut revoked = pool.revoked.subscribe();
            let mut revoked = pin!(revoked.wait_for(|revoked| *revoked));
            let mut sent = pin!(self.follow(&pool, &mut target, &mut request, follows));
            poll_fn(|cx| match revoked.as_mut().poll(cx).is_ready() {
                true => Poll::Ready(Err(revoked_by_policy(&origin))),
                false => sent.as_mut().poll(cx),
            })
            .await
        };
        let (response, under_way) = sent?;
        let origin = target.origin;
        if Coding::of(response.headers())? != Coding::Identity {
            let text = format!("{origin} compresses its answer, which nobody asked for");
            return Err(FetchError::new(FetchCode::Encoding, text));
        }
        let (head, body) = response.into_parts();
        Ok(StreamingAnswer {
            status: head.status.as_u16(),
            headers: head.headers,
            version: head.version,
            body,
            origin,
            received: 0,
            limit,
            ended: None,
            pool,
            _under_way: under_way,
        })
    }
}

impl StreamingAnswer {
    /// The HTTP status code.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The first header of this name, if it is a text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The next piece of the body, never empty; `None` after the whole body. Cancel-safe:
    /// dropping the future loses no data.
    ///
    /// # Errors
    /// [`FetchCode::BodyTooLarge`] beyond the limit, [`FetchCode::Closed`] and
    /// [`FetchCode::Protocol`] if the body is incomplete, [`FetchCode::Revoked`] after a change
    /// of policy. Later calls repeat the error.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        if let Some(ended) = &self.ended {
            return ended.clone().map(|()| None);
        }
        let next = self.next().await;
        match &next {
            Ok(Some(_)) => {}
            Ok(None) => self.ended = Some(Ok(())),
            Err(error) => self.ended = Some(Err(error.clone())),
        }
        next
    }

    async fn next(&mut self) -> Result<Option<Bytes>, FetchError> {
        let mut revoked = self.pool.revoked.subscribe();
        let mut revoked = pin!(revoked.wait_for(|revoked| *revoked));
        let (body, origin) = (&mut self.body, &self.origin);
        loop {
            let mut frame = pin!(body.frame());
            let frame = poll_fn(|cx| match revoked.as_mut().poll(cx).is_ready() {
                true => Poll::Ready(Err(revoked_by_policy(origin))),
                false => frame.as_mut().poll(cx).map(Ok),
            });
            let Some(frame) = frame.await? else {
                return check_end(&self.body, self.version, origin).map(|()| None);
            };
            // Trailers are ignored.
            let Ok(data) = frame.map_err(|error| lost(&error, origin))?.into_data() else {
                continue;
            };
            self.received = self.received.saturating_add(data.len());
            if self.received > self.limit {
                return Err(too_large(self.limit));
            }
            if !data.is_empty() {
                return Ok(Some(data));
            }
        }
    }
}

impl fmt::Debug for StreamingAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamingAnswer")
            .field("status", &self.status)
            .field("origin", &self.origin.to_string())
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}
