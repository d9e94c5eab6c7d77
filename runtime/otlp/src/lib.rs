//! Exports the spans of hosts of agents by OTLP over HTTP, to a collector of OpenTelemetry.
//!
//! ```no_run
//! use a99_runtime::{AgentError, Host};
//! use a99_runtime_otlp::{Exporter, Options, TraceContext};
//!
//! # async fn start() -> Result<(), Box<dyn std::error::Error>> {
//! let options = Options::new("shop", |warning| eprintln!("{warning}"));
//! let exporter = Exporter::start(options.endpoint("http://127.0.0.1:4318"))?;
//! exporter.install()?;
//! let host = Host::builder().propagation(TraceContext);
//! // At the end:
//! exporter.stop().await;
//! # Ok(())
//! # }
//! ```

#![warn(unreachable_pub)]

mod client;

use a99_runtime::Propagation;
use client::Client;
use opentelemetry::Context;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{TraceContextExt, TracerProvider};
use opentelemetry_otlp::{
    OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, SpanExporter,
    WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

/// The path of spans below an endpoint.
const PATH: &str = "/v1/traces";

/// The spans that are exported: those of the runtime, and none of the libraries that send them.
const TARGET: &str = "a99_runtime";

/// How long the last spans may take.
const STOPPING: Duration = Duration::from_secs(5);

/// Where spans go, and under which name.
pub struct Options {
    endpoint: Option<String>,
    service: String,
    warn: Box<dyn Fn(&str) + Send + Sync>,
}

impl Options {
    /// Options with the name of the service, unless `OTEL_SERVICE_NAME` or
    /// `OTEL_RESOURCE_ATTRIBUTES` has one, and the receiver of warnings: one when spans cannot be
    /// exported, and one when they can again.
    pub fn new(service: impl Into<String>, warn: impl Fn(&str) + Send + Sync + 'static) -> Options {
        Options {
            endpoint: None,
            service: service.into(),
            warn: Box::new(warn),
        }
    }

    /// The collector's address, below which `/v1/traces` takes spans. Without one that of
    /// `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT` counts, or
    /// `http://localhost:4318`.
    #[must_use]
    pub fn endpoint(mut self, url: impl Into<String>) -> Options {
        self.endpoint = Some(url.into());
        self
    }

    /// Whether a variable of the environment names an endpoint.
    #[must_use]
    pub fn is_in_environment() -> bool {
        of_environment().is_some()
    }

    /// The URL of the collector for spans.
    fn url(&self) -> String {
        let below = |base: &str| match base.trim_end_matches('/') {
            base if base.ends_with(PATH) => base.to_owned(),
            base => format!("{base}{PATH}"),
        };
        match &self.endpoint {
            Some(endpoint) => below(endpoint),
            None => of_environment().unwrap_or_else(|| below("http://localhost:4318")),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}

/// The URL that the environment names.
fn of_environment() -> Option<String> {
    let named = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let whole = named(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT);
    whole.or_else(|| {
        let base = named(OTEL_EXPORTER_OTLP_ENDPOINT)?;
        Some(format!("{}{PATH}", base.trim_end_matches('/')))
    })
}

/// Why spans cannot be exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpError(String);

impl fmt::Display for OtlpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OtlpError {}

fn failed(error: impl fmt::Display) -> OtlpError {
    OtlpError(error.to_string())
}

/// Sends spans in batches, from a thread of the SDK.
///
/// At most 2,048 spans wait (`OTEL_BSP_MAX_QUEUE_SIZE`). Those beyond it are dropped, so that
/// agents neither wait nor fill the memory when the collector is away or slow.
#[derive(Debug)]
pub struct Exporter {
    provider: SdkTracerProvider,
}

impl Exporter {
    /// Starts exporting what [`Exporter::layer`] records.
    ///
    /// # Errors
    /// No endpoint that requests can be sent to.
    ///
    /// # Panics
    /// Outside of a tokio runtime, whose tasks send the requests.
    pub fn start(options: Options) -> Result<Exporter, OtlpError> {
        let url = options.url();
        let service = options.service;
        let client = Client::new(&url, options.warn).map_err(failed)?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(url)
            .build()
            .map_err(failed)?;
        // The environment's detectors come after the name, and replace it.
        let resource = Resource::builder().build();
        let is_named = resource
            .get_ref(&"service.name".into())
            .is_some_and(|name| !name.as_str().starts_with("unknown_service"));
        let resource = match is_named {
            true => resource,
            false => Resource::builder().with_service_name(service).build(),
        };
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource)
            .build();
        Ok(Exporter { provider })
    }

    /// The layer that records the runtime's spans, for a host with a subscriber.
    #[must_use = "it records nothing until it is part of a subscriber"]
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let layer = tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(TARGET))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false);
        layer.with_filter(filter_fn(|of| {
            of.is_span() && of.target().starts_with(TARGET)
        }))
    }

    /// Makes a subscriber with this layer that of the process.
    ///
    /// # Errors
    /// The process has one.
    pub fn install(&self) -> Result<(), OtlpError> {
        let subscriber = Registry::default().with(self.layer());
        tracing::subscriber::set_global_default(subscriber).map_err(failed)
    }

    /// Sends the spans that wait, for at most five seconds.
    pub async fn stop(self) {
        let stopped = tokio::task::spawn_blocking(move || {
            // It has warned of spans that it could not send.
            drop(self.provider.shutdown_with_timeout(STOPPING));
        });
        drop(stopped.await);
    }
}

/// Trace contexts of spans that a layer of `tracing-opentelemetry` records.
#[derive(Copy, Clone, Debug, Default)]
pub struct TraceContext;

/// The name of a context.
const TRACEPARENT: &str = "traceparent";

impl Propagation for TraceContext {
    fn set_parent(&self, span: &Span, traceparent: &str) {
        let carrier = HashMap::from([(TRACEPARENT.to_owned(), traceparent.to_owned())]);
        let parent = TraceContextPropagator::new().extract_with_context(&Context::new(), &carrier);
        // Without a layer that records it, a span has no parent either.
        drop(span.set_parent(parent));
    }

    fn context(&self, span: &Span) -> Option<String> {
        let context = span.context();
        if !context.span().span_context().is_valid() {
            return None;
        }
        let mut carrier = HashMap::new();
        TraceContextPropagator::new().inject_context(&context, &mut carrier);
        carrier.remove(TRACEPARENT)
    }
}
