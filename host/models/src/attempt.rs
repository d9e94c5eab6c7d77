//! Attempt: one request to one model, from its body to the end of its answer.

use crate::provider::Inner;
use crate::reader::{Read, Reader, cut_off, read_whole};
use crate::retry::{retry_after, seconds};
use crate::service::{Model, Service};
use crate::wire::{Ask, CallIds};
use a99_capabilities::ai::{AiCode, AiError, StreamSink, TextRequest};
use a99_http::{FetchError, StreamingAnswer};
use std::future::Future;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, timeout_at};

/// Bytes of an error's body that are read.
pub(crate) const MAX_ERROR_BYTES: usize = 64 << 10;

/// How long usage and the final mark are waited for when the answer is whole.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// One request to one model.
pub(crate) struct Attempt<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) model: &'a Model,
    pub(crate) request: &'a TextRequest,
    pub(crate) sink: &'a StreamSink,
    /// When the whole answer must be there.
    pub(crate) until: Instant,
}

/// A time, and what it is when it was passed.
type Limit = (Instant, AiCode);

/// Waits for a future until the first of these times.
async fn within<T>(limits: [Limit; 2], future: impl Future<Output = T>) -> Result<T, AiCode> {
    let [a, b] = limits;
    let (at, code) = if b.0 < a.0 { b } else { a };
    timeout_at(at, future).await.map_err(|_| code)
}

impl Attempt<'_> {
    fn service(&self) -> &Service {
        &self.inner.directory.services[self.model.service]
    }

    /// Asks, and gives the answer to the stream. An error is still to be told.
    pub(crate) async fn run(&self) -> Result<(), AiError> {
        let service = self.service();
        let first_token = seconds(self.inner.timeouts.first_token);
        // What comes whole has no first token before its last.
        let first = match service.config.stream {
            true => (Instant::now() + first_token, AiCode::FirstTokenTimeout),
            false => (self.until, AiCode::TotalTimeout),
        };
        let request = service.request(&self.model.name, self.body());
        let opening = self.inner.fetch.open(request);
        let opened = within([first, self.total()], opening).await;
        let mut answer = self.timed(opened)?.map_err(|error| self.failed(&error))?;
        if answer.status() >= 400 {
            return Err(self.refused(&mut answer, first).await);
        }
        self.sink.answered_by(self.inner.directory.id(self.model));
        let media = answer.header("content-type").unwrap_or_default();
        let is_json = media.to_ascii_lowercase().starts_with("application/json");
        let read = match service.config.stream && !is_json {
            true => self.events(&mut answer, first).await?,
            false => self.whole(&mut answer).await?,
        };
        match read {
            Read::Whole(reason) => self.sink.finish(reason),
            Read::Closed => {}
            Read::More { .. } => return Err(self.named(cut_off())),
        }
        Ok(())
    }

    fn total(&self) -> Limit {
        (self.until, AiCode::TotalTimeout)
    }

    fn body(&self) -> Vec<u8> {
        let Service {
            config,
            max_tokens_name,
            ..
        } = self.service();
        let mut body = config.wire.protocol().body(&Ask {
            request: self.request,
            model: &self.model.name,
            service: &self.service().name,
            send_opaque: config.send_opaque,
            stream: config.stream,
            max_tokens: config.max_tokens,
            max_tokens_name: max_tokens_name.as_deref(),
        });
        for (key, value) in &config.extra {
            if !body.contains(key) {
                body.insert(key.as_str(), value.clone());
            }
        }
        let mut bytes = Vec::new();
        a99_core::value::Value::Object(body).write_json(&mut bytes);
        bytes
    }

    /// Reads events until the answer is whole.
    async fn events(&self, answer: &mut StreamingAnswer, first: Limit) -> Result<Read, AiError> {
        let mut reader = Reader::new(self.service().config.wire, CallIds::of(self.request));
        let idle = seconds(self.inner.timeouts.idle);
        let mut next = first;
        loop {
            let chunk = within([next, self.total()], answer.chunk()).await;
            let chunk = match self.timed(chunk) {
                Ok(Ok(chunk)) => chunk,
                Ok(Err(error)) => {
                    let ended = reader.end().map(Read::Whole);
                    return ended.map_err(|_| self.failed(&error));
                }
                Err(error) => return reader.end().map(Read::Whole).map_err(|_| error),
            };
            let Some(chunk) = chunk else {
                return reader
                    .end()
                    .map(Read::Whole)
                    .map_err(|error| self.named(error));
            };
            match reader
                .push(&chunk, self.sink)
                .map_err(|error| self.named(error))?
            {
                Read::More { part, event } => {
                    // Comments and pings are no first token.
                    if part || (event && next.1 == AiCode::IdleTimeout) {
                        next = (Instant::now() + idle, AiCode::IdleTimeout);
                    }
                    if reader.is_whole() {
                        let soon = Instant::now() + LAST_WORDS;
                        next = (next.0.min(soon), AiCode::IdleTimeout);
                    }
                }
                end => return Ok(end),
            }
        }
    }

    /// Reads an answer that comes whole.
    async fn whole(&self, answer: &mut StreamingAnswer) -> Result<Read, AiError> {
        let mut body = Vec::new();
        let idle = seconds(self.inner.timeouts.idle);
        loop {
            let next = (Instant::now() + idle, AiCode::IdleTimeout);
            let chunk = within([next, self.total()], answer.chunk()).await;
            match self.timed(chunk)?.map_err(|error| self.failed(&error))? {
                Some(chunk) => body.extend_from_slice(&chunk),
                None => break,
            }
            if self.sink.is_closed() {
                return Ok(Read::Closed);
            }
        }
        let ids = CallIds::of(self.request);
        let read = read_whole(self.service().config.wire, ids, &body, self.sink);
        read.map_err(|error| self.named(error))
    }

    /// The error of a status from 400 on.
    async fn refused(&self, answer: &mut StreamingAnswer, first: Limit) -> AiError {
        let status = answer.status();
        let header = answer.header("retry-after");
        let millis = answer.header("retry-after-ms");
        let after = retry_after(header, millis, SystemTime::now());
        let mut body = Vec::new();
        // As much of it as comes: what it says is only text.
        while let Ok(Ok(Some(chunk))) = within([first, self.total()], answer.chunk()).await {
            body.extend_from_slice(&chunk);
            if body.len() >= MAX_ERROR_BYTES {
                body.truncate(MAX_ERROR_BYTES);
                break;
            }
        }
        self.service().refused(status, &body).retry_after(after)
    }

    fn failed(&self, error: &FetchError) -> AiError {
        self.service().failed(error)
    }

    fn named(&self, error: AiError) -> AiError {
        self.service().named(error)
    }

    /// What came in time, or the error of what did not.
    fn timed<T>(&self, came: Result<T, AiCode>) -> Result<T, AiError> {
        let times = &self.inner.timeouts;
        came.map_err(|code| {
            let service = &self.service().name;
            let text = match code {
                AiCode::FirstTokenTimeout => format!(
                    "the model service `{service}` sent no part of an answer within {} s",
                    times.first_token
                ),
                AiCode::IdleTimeout => format!(
                    "the model service `{service}` sent nothing more for {} s",
                    times.idle
                ),
                _ => format!("the model's answer took longer than {} s", times.total),
            };
            AiError::new(code, text)
        })
    }
}
