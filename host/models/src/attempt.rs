//! Attempt: one request to one model, from its body to the end of its answer.

use crate::limiter::{Slot, TooLate};
use crate::provider::Inner;
use crate::reader::{Read, Reader, cut_off, read_whole};
use crate::retry::{retry_after, seconds};
use crate::service::{Model, Service};
use crate::wire::{Ask, CallIds};
use a99_capabilities::ai::{self, AiCode, AiError, Payer, StreamSink, TextRequest, TokenEstimate};
use a99_http::{FetchError, StreamingAnswer};
use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, timeout_at};

/// Maximum bytes read of an error's body.
pub(crate) const MAX_ERROR_BYTES: usize = 64 << 10;

/// Estimated tokens of an answer without a limit.
const ANSWER_TOKENS: u32 = 1024;

/// How long to wait for usage and the final mark after the answer is complete.
const TRAILER_TIMEOUT: Duration = Duration::from_secs(5);

/// The inputs of an answer, for any model.
pub(crate) struct Asked<'a> {
    pub(crate) request: &'a TextRequest,
    pub(crate) prompt: TokenEstimate,
    pub(crate) sink: &'a StreamSink,
    /// Pays for each request.
    pub(crate) payer: Option<&'a Payer>,
}

pub(crate) struct Attempt<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) model: &'a Model,
    pub(crate) asked: &'a Asked<'a>,
    /// The deadline of the whole answer.
    pub(crate) until: Instant,
}

/// Whether a request is sent.
enum Go {
    /// Send it; the answer has at most this many tokens, if limited.
    On { max_tokens: Option<u32> },
    /// The answer was cancelled.
    Closed,
}

/// A deadline, and the error when it passes.
type Limit = (Instant, AiCode);

/// Waits for a future until the earlier of two deadlines.
async fn within<T>(limits: [Limit; 2], future: impl Future<Output = T>) -> Result<T, AiCode> {
    let [a, b] = limits;
    let (at, code) = if b.0 < a.0 { b } else { a };
    timeout_at(at, future).await.map_err(|_| code)
}

impl Attempt<'_> {
    fn service(&self) -> &Service {
        &self.inner.directory.services[self.model.service]
    }

    /// Runs the request and writes the answer to the stream. The caller reports the error.
    pub(crate) async fn run(&self) -> Result<(), AiError> {
        let wire = self.service().config.wire;
        let checked = wire
            .protocol()
            .sampling()
            .check(self.asked.request, wire.name());
        checked.map_err(|error| self.named(error))?;
        let max_tokens = match self.pay().await? {
            Go::On { max_tokens } => max_tokens,
            Go::Closed => return Ok(()),
        };
        let slot = self.turn(max_tokens).await?;
        let answered = self.send(max_tokens).await;
        if let Some(slot) = slot {
            // Without reported usage the estimate stands.
            let used = self.asked.sink.usage().total();
            if used > 0 {
                slot.settle(used);
            }
        }
        answered
    }

    /// Waits for the rate limiter.
    async fn turn(&self, max_tokens: Option<u32>) -> Result<Option<Slot>, AiError> {
        let service = self.service();
        let Some(limiter) = &service.limiter else {
            return Ok(None);
        };
        let asked = self.asked;
        let (name, limits) = (&service.name, limiter.shown());
        let throttled = |why: String| {
            let text = format!("the model service `{name}` is sent {limits} a minute, {why}");
            AiError::new(AiCode::Throttled, text)
        };
        if !limiter.takes(asked.prompt.least) {
            return Err(throttled("fewer than this request has".to_owned()));
        }
        let answer = max_tokens.or(asked.request.max_tokens);
        let answer = answer
            .or(service.config.max_tokens)
            .unwrap_or(ANSWER_TOKENS);
        let tokens = asked.prompt.likely.saturating_add(u64::from(answer));
        let deadline = asked.payer.and_then(Payer::deadline).map(Instant::from_std);
        let until = deadline.map_or(self.until, |deadline| deadline.min(self.until));
        let entered = limiter.enter(tokens, until).await;
        let slot = entered.map_err(|TooLate(wait)| match wait {
            Some(wait) => {
                let seconds = wait.as_secs_f64().ceil();
                throttled(format!(
                    "and its next turn comes in {seconds} s, which is too late"
                ))
                .retry_after(Some(wait))
            }
            None => throttled("and others wait for their turn before this one".to_owned()),
        })?;
        Ok(Some(slot))
    }

    /// Sends the request and reads its answer.
    async fn send(&self, max_tokens: Option<u32>) -> Result<(), AiError> {
        let service = self.service();
        let first_token = seconds(self.inner.timeouts.first_token);
        // A non-streamed answer arrives at once, so its first token has no separate timeout.
        let first = match service.config.stream {
            true => (Instant::now() + first_token, AiCode::FirstTokenTimeout),
            false => (self.until, AiCode::TotalTimeout),
        };
        let request = service.request(&self.model.name, self.body(max_tokens));
        let opening = self.inner.fetch.open(request);
        let opened = within([first, self.total()], opening).await;
        let mut answer = self.timed(opened)?.map_err(|error| self.failed(&error))?;
        if answer.status() >= 400 {
            return Err(self.refused(&mut answer, first).await);
        }
        self.asked
            .sink
            .answered_by(self.inner.directory.id(self.model));
        let media = answer.header("content-type").unwrap_or_default();
        let is_json = media.to_ascii_lowercase().starts_with("application/json");
        let read = match service.config.stream && !is_json {
            true => self.events(&mut answer, first).await?,
            false => self.whole(&mut answer).await?,
        };
        match read {
            Read::Whole(reason) => self.asked.sink.finish(reason),
            Read::Closed => {}
            Read::More { .. } => return Err(self.named(cut_off())),
        }
        Ok(())
    }

    /// Reserves the request's price; waits for other reservations if necessary.
    async fn pay(&self) -> Result<Go, AiError> {
        let asked = self.asked;
        let Some(payer) = asked.payer else {
            return Ok(Go::On { max_tokens: None });
        };
        let id = self.inner.directory.id(self.model);
        let price = self.inner.price_of(&id).map(|(price, _)| price);
        let wire = self.service().config.wire;
        let least = wire.protocol().least_answer();
        let reserving = payer.reserve(ai::Request {
            model: Some(id),
            prompt: asked.prompt,
            max_tokens: asked
                .request
                .max_tokens
                .or(self.service().config.max_tokens)
                .map(|most| most.max(least)),
            effort: asked.request.effort,
            writes_cache: self.service().writes_cache(),
            price: Arc::new(move |_, usage| price.as_ref().map(|price| price.cost(usage))),
        });
        let reserved = within([self.total(), self.total()], reserving).await;
        let paid = self.timed(reserved)??;
        let max_tokens = paid.max_tokens();
        if let Some(most) = max_tokens.filter(|most| *most < least) {
            let wire = wire.name();
            let text = format!(
                "what is left pays for an answer of {most} tokens: the wire `{wire}` takes a limit \
                 from {least} on"
            );
            return Err(AiError::new(AiCode::Budget, text));
        }
        Ok(match asked.sink.pay(paid) {
            true => Go::On { max_tokens },
            false => Go::Closed,
        })
    }

    fn total(&self) -> Limit {
        (self.until, AiCode::TotalTimeout)
    }

    /// The request's body, which limits the answer to the paid tokens.
    fn body(&self, max_tokens: Option<u32>) -> Vec<u8> {
        let mut request = Cow::Borrowed(self.asked.request);
        if max_tokens.is_some() {
            request.to_mut().max_tokens = max_tokens;
        }
        let Service {
            config,
            max_tokens_name,
            ..
        } = self.service();
        let mut body = config.wire.protocol().body(&Ask {
            request: &request,
            model: &self.model.name,
            service: &self.service().name,
            send_opaque: config.send_opaque,
            prompt_cache: config.prompt_cache,
            stream: config.stream,
            max_tokens: config.max_tokens,
            max_tokens_name: max_tokens_name.as_deref(),
        });
        self.service().rename(&mut body);
        for (key, value) in &config.extra {
            if !body.contains(key) {
                body.insert(key.as_str(), value.clone());
            }
        }
        let mut bytes = Vec::new();
        a99_core::value::Value::Object(body).write_json(&mut bytes);
        bytes
    }

    /// Reads events until the answer is complete.
    async fn events(&self, answer: &mut StreamingAnswer, first: Limit) -> Result<Read, AiError> {
        let mut reader = Reader::new(self.service().config.wire, CallIds::of(self.asked.request));
        let idle = seconds(self.inner.timeouts.idle);
        let mut next = first;
        loop {
            let chunk = within([next, self.total()], answer.chunk()).await;
            let chunk = match self.timed(chunk) {
                Ok(Ok(chunk)) => chunk,
                Ok(Err(error)) => {
                    let ended = reader.broke_off(self.asked.sink);
                    return ended.map_err(|_| self.failed(&error));
                }
                Err(error) => return reader.broke_off(self.asked.sink).map_err(|_| error),
            };
            let Some(chunk) = chunk else {
                let ended = reader.end(self.asked.sink);
                return ended.map_err(|error| self.named(error));
            };
            match reader
                .push(&chunk, self.asked.sink)
                .map_err(|error| self.named(error))?
            {
                Read::More { part, event } => {
                    // Comments and pings do not count as the first token.
                    if part || (event && next.1 == AiCode::IdleTimeout) {
                        next = (Instant::now() + idle, AiCode::IdleTimeout);
                    }
                    if reader.is_whole() {
                        let soon = Instant::now() + TRAILER_TIMEOUT;
                        next = (next.0.min(soon), AiCode::IdleTimeout);
                    }
                }
                end => return Ok(end),
            }
        }
    }

    /// Reads a non-streamed answer.
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
            if self.asked.sink.is_closed() {
                return Ok(Read::Closed);
            }
        }
        let ids = CallIds::of(self.asked.request);
        let read = read_whole(self.service().config.wire, ids, &body, self.asked.sink);
        read.map_err(|error| self.named(error))
    }

    /// The error for a status from 400 on.
    async fn refused(&self, answer: &mut StreamingAnswer, first: Limit) -> AiError {
        let status = answer.status();
        let header = answer.header("retry-after");
        let millis = answer.header("retry-after-ms");
        let after = retry_after(header, millis, SystemTime::now());
        let mut body = Vec::new();
        // A truncated body suffices: it is used as text only.
        while let Ok(Ok(Some(chunk))) = within([first, self.total()], answer.chunk()).await {
            body.extend_from_slice(&chunk);
            if body.len() >= MAX_ERROR_BYTES {
                body.truncate(MAX_ERROR_BYTES);
                break;
            }
        }
        let error = self.service().refused(status, &body);
        let after = after.or(error.retry_after);
        // These statuses apply to all requests; others to this one only.
        let is_of_all = matches!(status, 429 | 503 | 529);
        if let (Some(limiter), Some(after), true) = (&self.service().limiter, after, is_of_all) {
            limiter.close_for(after);
        }
        error.retry_after(after)
    }

    fn failed(&self, error: &FetchError) -> AiError {
        self.service().failed(error)
    }

    fn named(&self, error: AiError) -> AiError {
        self.service().named(error)
    }

    /// Maps a passed deadline to its error.
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
