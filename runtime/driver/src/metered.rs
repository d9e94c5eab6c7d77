//! Models of a host: their use is counted, and each answer is a span.

use crate::metrics::Metrics;
use crate::program::spent;
use crate::trace::{fail, int};
use a99_capabilities::ai::{Cost, Payer, StreamHandle, TextRequest, TextResult, Usage};
use a99_capabilities::{AiError, AiProvider};
use a99_core::diag::excerpt;
use a99_runtime_engine::BoxFuture;
use std::collections::BTreeMap;
use std::sync::Arc;
use tracing::field::Empty;
use tracing::info_span;

/// A language model whose use is counted.
pub(crate) struct Metered {
    ai: Arc<dyn AiProvider>,
    metrics: Arc<Metrics>,
}

impl Metered {
    pub(crate) fn over(ai: Arc<dyn AiProvider>, metrics: &Arc<Metrics>) -> Arc<dyn AiProvider> {
        let metrics = Arc::clone(metrics);
        Arc::new(Metered { ai, metrics })
    }

    /// Counts an answer when it ends, also one that its reader drops.
    fn watch(&self, handle: StreamHandle, request: Asked) -> StreamHandle {
        let span = info_span!(
            "ai",
            otel.kind = "client",
            otel.status_code = Empty,
            "error.type" = Empty,
            gen_ai.operation.name = "chat",
            gen_ai.request.model = request.model.as_deref().map(excerpt),
            gen_ai.response.model = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            a99.ai.cost = Empty,
        );
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return handle;
        };
        spent::asked(|| handle.done(), &self.ai, &request);
        let (done, ai) = (handle.done(), Arc::clone(&self.ai));
        let metrics = Arc::clone(&self.metrics);
        runtime.spawn(async move {
            let result = done.await;
            let answer = match &result {
                Ok(answer) => Some(answer),
                Err(error) => {
                    fail(&span, error.code.name());
                    error.partial.as_deref()
                }
            };
            let usage = answer.map_or(Usage::default(), |answer| answer.usage);
            let cost = request.cost(&*ai, answer);
            metrics.answered(result.is_ok(), usage, cost);
            let Some(answer) = answer.filter(|_| !span.is_disabled()) else {
                return;
            };
            let model = answer.model.as_deref().map(excerpt);
            span.record("gen_ai.response.model", model.as_deref());
            span.record("gen_ai.usage.input_tokens", int(usage.prompt_tokens));
            span.record("gen_ai.usage.output_tokens", int(usage.completion_tokens));
            span.record("a99.ai.cost", cost.map(|cost| cost.money.to_f64()));
        });
        handle
    }
}

/// The model that a request names.
#[derive(Clone)]
pub(crate) struct Asked {
    model: Option<String>,
    /// Whether it names a role.
    has_role: bool,
}

impl Asked {
    fn of(request: &TextRequest) -> Asked {
        Asked {
            model: request.model.clone(),
            has_role: request.role.is_some(),
        }
    }

    /// The cost of an answer by the price of the model that gave it, or of the requested one;
    /// `None` if it cannot be known.
    pub(crate) fn cost(&self, ai: &dyn AiProvider, answer: Option<&TextResult>) -> Option<Cost> {
        let answer = answer.filter(|answer| answer.usage.total() > 0)?;
        let of = |model: &Option<String>| ai.price(Some(model.as_deref()?), answer.usage);
        let cost = of(&answer.model).or_else(|| of(&self.model));
        let is_default = answer.model.is_none() && self.model.is_none() && !self.has_role;
        cost.or_else(|| ai.price(None, answer.usage).filter(|_| is_default))
    }
}

impl AiProvider for Metered {
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
        self.ai.list_roles()
    }

    fn stream_text(&self, request: TextRequest) -> StreamHandle {
        let asked = Asked::of(&request);
        self.watch(self.ai.stream_text(request), asked)
    }

    fn stream_paid(&self, request: &TextRequest, payer: &Payer) -> Option<StreamHandle> {
        let handle = self.ai.stream_paid(request, payer)?;
        Some(self.watch(handle, Asked::of(request)))
    }

    fn price(&self, model: Option<&str>, usage: Usage) -> Option<Cost> {
        self.ai.price(model, usage)
    }
}
