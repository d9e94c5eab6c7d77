//! Provider: models of services by roles, with retries and fallbacks.

use crate::attempt::{Asked, Attempt};
use crate::config::{ModelConfig, Timeouts};
use crate::error::{ModelCode, ModelError};
use crate::price::Price;
use crate::price_list::{CURRENCY, list_price};
use crate::retry::{Budget, Retries, seconds};
use crate::service::{Directory, MAX_BODY_BYTES, Model};
use a99_capabilities::ai::{
    self, AiCode, AiError, AiProvider, Cost, Payer, StreamHandle, TextRequest, TokenEstimate, Usage,
};
use a99_capabilities::{BoxFuture, Random, SystemRandom};
use a99_http::{FetchLimits, HttpFetch, Policy, rule_for};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use tokio::runtime::Handle;
use tokio::time::Instant;

/// Default maximum bytes of a request.
const MAX_PROMPT_BYTES: usize = 16 << 20;

/// State shared by all requests.
pub(crate) struct Inner {
    pub(crate) fetch: Arc<HttpFetch>,
    pub(crate) directory: Directory,
    pub(crate) timeouts: Timeouts,
    prices: BTreeMap<String, Price>,
    /// The currency of prices. List prices apply only in the list's currency.
    currency: String,
    retries: Retries,
    budget: Budget,
    random: Arc<dyn Random>,
    max_prompt_bytes: usize,
    streams: AtomicU64,
    runtime: Option<Handle>,
}

/// Models of services over HTTP.
///
/// A separate task reads each answer, on the tokio runtime that
/// [`stream_text`](AiProvider::stream_text) is called in or that the builder was given, so an
/// unread stream still makes progress. Cancelling or dropping a stream closes its connection at
/// once.
///
/// The first model of a role answers a request. Until the first part of an answer arrives,
/// transient errors are retried, as [`Retries`] says, and then the role's next model is asked.
/// Later errors end the answer and carry its received part.
///
/// The roles `default`, `smart`, `fast` and `code` always exist: one without models uses those
/// of the first of them, in this order, that has some. Programs may also name models, but only
/// those of roles and those that a service lists.
#[derive(Clone)]
pub struct ModelProvider(Arc<Inner>);

/// Builds a [`ModelProvider`].
pub struct Builder {
    config: ModelConfig,
    fetch: Option<Arc<HttpFetch>>,
    random: Arc<dyn Random>,
    runtime: Option<Handle>,
}

impl Builder {
    /// Uses this client, with its policy, quotas and limits. By default the provider creates a
    /// network that reaches only the origins of its services.
    #[must_use]
    pub fn fetch(mut self, fetch: Arc<HttpFetch>) -> Builder {
        self.fetch = Some(fetch);
        self
    }

    /// Runs answers on this runtime, which must have its I/O and time drivers, instead of the
    /// caller's.
    #[must_use]
    pub fn runtime(mut self, runtime: Handle) -> Builder {
        self.runtime = Some(runtime);
        self
    }

    /// Draws the jitter of retries from this instead of the system's randomness.
    #[must_use]
    pub fn random(mut self, random: impl Random + 'static) -> Builder {
        self.random = Arc::new(random);
        self
    }

    /// Builds the provider.
    ///
    /// # Errors
    /// Each of [`ModelCode`], with the place in the configuration.
    pub fn build(self) -> Result<ModelProvider, ModelError> {
        let config = self.config;
        config.check_numbers()?;
        let directory = Directory::new(&config)?;
        let fetch = match self.fetch {
            Some(fetch) => fetch,
            None => {
                let built = ModelProvider::network(&config)?.build();
                let wrong = |error| ModelError::new(ModelCode::Network, format!("{error}"));
                Arc::new(built.map_err(wrong)?)
            }
        };
        Ok(ModelProvider(Arc::new(Inner {
            fetch,
            directory,
            currency: config.currency().to_owned(),
            budget: Budget::new(&config.retries),
            timeouts: config.timeouts,
            prices: config.prices,
            retries: config.retries,
            random: self.random,
            max_prompt_bytes: match config.max_prompt_bytes {
                0 => MAX_PROMPT_BYTES,
                bytes => bytes,
            },
            streams: AtomicU64::new(0),
            runtime: self.runtime,
        })))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").finish_non_exhaustive()
    }
}

impl ModelProvider {
    /// The provider of a configuration, with a network that reaches only its services.
    ///
    /// # Errors
    /// Each of [`ModelCode`].
    pub fn new(config: ModelConfig) -> Result<ModelProvider, ModelError> {
        ModelProvider::builder(config).build()
    }

    pub(crate) fn directory(&self) -> &Directory {
        &self.0.directory
    }

    pub(crate) fn fetch(&self) -> &HttpFetch {
        &self.0.fetch
    }

    /// A network that reaches only the origins of a configuration's services, for hosts that
    /// extend it, such as with private certificate authorities.
    ///
    /// # Errors
    /// [`ModelCode::Network`] for an invalid address.
    pub fn network(config: &ModelConfig) -> Result<a99_http::Builder, ModelError> {
        let wrong = |text: String| ModelError::new(ModelCode::Network, text);
        let rules = config
            .services
            .values()
            .map(|service| rule_for(&service.url));
        let rules: BTreeSet<String> = rules
            .collect::<Result<_, _>>()
            .map_err(|error| wrong(error.to_string()))?;
        let rules: Vec<String> = rules.into_iter().collect();
        let policy = format!("allow:{}", rules.join(","));
        let policy: Policy = policy.parse().map_err(|error| wrong(format!("{error}")))?;
        let limits = FetchLimits {
            max_body_bytes: MAX_BODY_BYTES,
            connect_timeout: seconds(config.timeouts.connect),
            max_requests: None,
            max_hosts: None,
            ..FetchLimits::default()
        };
        Ok(HttpFetch::builder().policy(policy).limits(limits))
    }

    /// A builder with options beyond the configuration.
    #[must_use]
    pub fn builder(config: ModelConfig) -> Builder {
        Builder {
            config,
            fetch: None,
            random: Arc::new(SystemRandom),
            runtime: None,
        }
    }

    /// The price of a model by its name in answers, `SERVICE/MODEL`: from the configuration or
    /// the price list.
    #[must_use]
    pub fn price_of(&self, model: &str) -> Option<Price> {
        self.0.price_of(model).map(|(price, _)| price)
    }

    /// The day of a list price, `None` for a price of the configuration.
    #[must_use]
    pub fn price_date(&self, model: &str) -> Option<&'static str> {
        self.0.price_of(model).and_then(|(_, date)| date)
    }

    /// The currency of prices.
    #[must_use]
    pub fn currency(&self) -> &str {
        &self.0.currency
    }

    /// The models that roles and services name, as `SERVICE/MODEL`.
    #[must_use]
    pub fn models(&self) -> Vec<String> {
        self.0.directory.reached().collect()
    }

    /// The cost of a model's answer; `None` if its price is unknown.
    #[must_use]
    pub fn cost(&self, model: &str, usage: Usage) -> Option<Cost> {
        self.price_of(model).map(|price| price.cost(usage))
    }

    /// Models without a known price that roles and services name, as `SERVICE/MODEL`. A run
    /// with a money limit uses none of them.
    #[must_use]
    pub fn unpriced(&self) -> Vec<String> {
        let reached = self.0.directory.reached();
        reached
            .filter(|model| self.0.price_of(model).is_none())
            .collect()
    }

    fn begin(&self, request: &TextRequest) -> Result<(Vec<Model>, Handle), AiError> {
        request.check()?;
        let (bytes, most) = (request.prompt_bytes(), self.0.max_prompt_bytes);
        if bytes > most {
            let text = format!("the request has {bytes} bytes, at most {most} are sent");
            return Err(AiError::new(AiCode::Invalid, text));
        }
        let candidates = self.0.directory.candidates(request)?;
        let runtime = self
            .0
            .runtime
            .clone()
            .or_else(|| Handle::try_current().ok());
        let runtime = runtime.ok_or_else(|| {
            let text = "a model is asked within a tokio runtime, and there is none";
            AiError::new(AiCode::Unavailable, text)
        })?;
        Ok((candidates, runtime))
    }
}

impl AiProvider for ModelProvider {
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
        Box::pin(async { Ok(self.0.directory.list()) })
    }

    fn stream_text(&self, request: TextRequest) -> StreamHandle {
        self.stream(request, None)
    }

    fn stream_paid(&self, request: &TextRequest, payer: &Payer) -> Option<StreamHandle> {
        Some(self.stream(request.clone(), Some(payer.clone())))
    }

    fn price(&self, model: Option<&str>, usage: Usage) -> Option<Cost> {
        let roles = self.0.directory.list();
        let model = model.or_else(|| roles.get(ai::DEFAULT_ROLE).map(String::as_str));
        model.and_then(|model| self.cost(model, usage))
    }
}

impl ModelProvider {
    /// Begins an answer; `payer` pays for each request.
    fn stream(&self, request: TextRequest, payer: Option<Payer>) -> StreamHandle {
        let number = self.0.streams.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("models-{number}");
        let (candidates, runtime) = match self.begin(&request) {
            Ok(begun) => begun,
            Err(error) => return StreamHandle::failed(id, error),
        };
        let (sink, handle) = StreamHandle::new(id);
        let inner = Arc::clone(&self.0);
        runtime.spawn(async move {
            let asked = Asked {
                request: &request,
                prompt: TokenEstimate::of_request(&request),
                sink: &sink,
                payer: payer.as_ref(),
            };
            inner.play(&candidates, &asked).await;
        });
        handle
    }
}

impl fmt::Debug for ModelProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelProvider")
            .field("roles", &self.0.directory.list())
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// The price of a model, and its day if it is a list price.
    pub(crate) fn price_of(&self, model: &str) -> Option<(Price, Option<&'static str>)> {
        let (service, name) = model.split_once('/')?;
        let own = self.prices.get(model);
        let own = own.or_else(|| self.prices.get(&format!("{service}/*")));
        if own.is_some() || self.currency != CURRENCY {
            return own.map(|price| (price.clone(), None));
        }
        let mut services = self.directory.services.iter();
        let service = services.find(|known| known.name == service)?;
        list_price(&service.config.url, name).map(|listed| (listed.price, Some(listed.date)))
    }

    /// Answers until done or cancelled.
    async fn play(&self, candidates: &[Model], asked: &Asked<'_>) {
        let mut closed = pin!(asked.sink.closed());
        let mut answer = pin!(self.answer(candidates, asked));
        poll_fn(|cx| {
            // Dropping the answer closes its connection.
            if closed.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            answer.as_mut().poll(cx)
        })
        .await;
    }

    async fn answer(&self, candidates: &[Model], asked: &Asked<'_>) {
        let sink = asked.sink;
        let until = Instant::now() + seconds(self.timeouts.total);
        for (at, model) in candidates.iter().enumerate() {
            let attempt = Attempt {
                inner: self,
                model,
                asked,
                until,
            };
            match self.with_retries(&attempt).await {
                Ok(()) => return self.budget.answered(),
                Err(error) => {
                    let is_last = at + 1 == candidates.len();
                    if is_last
                        || sink.has_begun()
                        || !allows_fallback(&error)
                        || Instant::now() >= until
                    {
                        return sink.fail(error);
                    }
                    sink.settle(&error);
                }
            }
        }
    }

    /// Asks a model, with retries after transient errors.
    async fn with_retries(&self, attempt: &Attempt<'_>) -> Result<(), AiError> {
        let mut made = 0;
        loop {
            let error = match attempt.run().await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let sink = attempt.asked.sink;
            if sink.has_begun() || !is_transient(&error) || made >= self.retries.most {
                return Err(error);
            }
            let wait = self.retries.wait(made, error.retry_after, &*self.random);
            let next = wait.map(|wait| Instant::now() + wait);
            match next.filter(|next| *next < attempt.until && self.budget.take()) {
                Some(next) => {
                    sink.settle(&error);
                    tokio::time::sleep_until(next).await;
                }
                None => return Err(error),
            }
            made += 1;
        }
    }
}

/// Whether the same request may succeed later.
fn is_transient(error: &AiError) -> bool {
    // A connection that ended before any part arrived.
    error.code.is_transient() || error.code == AiCode::CutOff
}

/// Whether another model may answer.
fn allows_fallback(error: &AiError) -> bool {
    // `Invalid` concerns this service's wire format only.
    is_transient(error) || matches!(error.code, AiCode::UnknownModel | AiCode::Invalid)
}
