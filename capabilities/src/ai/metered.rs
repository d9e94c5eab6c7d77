//! Metered models: a provider whose requests an account pays for.

use super::{
    AiCode, AiError, AiProvider, Cost, DEFAULT_ROLE, Paid, Payer, Request, StreamHandle,
    TextRequest, TextResult, TokenEstimate, Usage,
};
use crate::error::BoxFuture;
use std::collections::BTreeMap;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Pays for another provider's requests. It reserves the dearest price in the account before a
/// request and limits the answer to the reservation. It settles the service's report, or an
/// estimate if the report is missing or smaller than the received answer.
///
/// A provider that sends several requests for one answer pays for each
/// ([`AiProvider::stream_paid`]). A request waits while reservations of other requests leave
/// the account too little.
#[derive(Clone)]
pub struct MeteredAi {
    provider: Arc<dyn AiProvider>,
    payer: Payer,
}

impl fmt::Debug for MeteredAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("MeteredAi");
        out.field("payer", &self.payer).finish_non_exhaustive()
    }
}

impl MeteredAi {
    /// Pays from this account, or through this payer.
    pub fn new(provider: Arc<dyn AiProvider>, payer: impl Into<Payer>) -> MeteredAi {
        MeteredAi {
            provider,
            payer: payer.into(),
        }
    }

    /// Starts an answer once its price is reserved, which may wait for other settlements.
    pub async fn open(&self, request: TextRequest) -> StreamHandle {
        if let Some(stream) = self.provider.stream_paid(&request, &self.payer) {
            return stream;
        }
        match self.pay(&request).await {
            Err(error) => StreamHandle::failed("unpaid", error),
            Ok(paid) => {
                let max_tokens = paid.max_tokens().or(request.max_tokens);
                let stream = self.provider.stream_text(TextRequest {
                    max_tokens,
                    ..request
                });
                stream.paid_by(paid);
                stream
            }
        }
    }

    /// Reserves the dearest price of a request.
    async fn pay(&self, request: &TextRequest) -> Result<Paid, AiError> {
        let mut model = request.model.clone();
        if model.is_none() {
            // The price is that of the answering model, not of the default role.
            let role = request.role.as_deref().unwrap_or(DEFAULT_ROLE);
            model = self.provider.list_roles().await?.remove(role);
        }
        let provider = Arc::clone(&self.provider);
        self.payer
            .reserve(Request {
                model,
                prompt: TokenEstimate::of_request(request),
                max_tokens: request.max_tokens,
                effort: request.effort,
                writes_cache: false,
                price: Arc::new(move |model, usage| provider.price(model, usage)),
            })
            .await
    }
}

impl AiProvider for MeteredAi {
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
        self.provider.list_roles()
    }

    /// If the provider does not pay by itself, this method cannot wait for other settlements:
    /// [`MeteredAi::open`] and [`AiProvider::generate_text`] do.
    fn stream_text(&self, request: TextRequest) -> StreamHandle {
        let mut opening = pin!(self.open(request));
        match opening
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(stream) => stream,
            Poll::Pending => {
                let text = "what is left of the budget is kept for requests that are under way";
                StreamHandle::failed("unpaid", AiError::new(AiCode::Budget, text))
            }
        }
    }

    fn stream_paid(&self, request: &TextRequest, payer: &Payer) -> Option<StreamHandle> {
        self.provider.stream_paid(request, &payer.and(&self.payer))
    }

    fn price(&self, model: Option<&str>, usage: Usage) -> Option<Cost> {
        self.provider.price(model, usage)
    }

    fn generate_text(&self, request: TextRequest) -> BoxFuture<'_, Result<TextResult, AiError>> {
        Box::pin(async move { self.open(request).await.done().await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ai::{ModelFault, ModelScript, ModelTurn, ScriptedAi};
    use crate::testing::block_on;
    use a99_core::fuel::Fuel;
    use a99_run::account::{Account, AccountLimits, Money};
    use std::sync::atomic::{AtomicI64, Ordering};

    /// A model whose tokens cost money.
    struct Dear(ScriptedAi);

    impl AiProvider for Dear {
        fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
            self.0.list_roles()
        }

        fn stream_text(&self, request: TextRequest) -> StreamHandle {
            self.0.stream_text(request)
        }

        fn price(&self, _: Option<&str>, usage: Usage) -> Option<Cost> {
            Some(Cost {
                money: Money::from_micro(usage.total() * 10),
                fuel: Fuel::from_micro(usage.total() as i64),
            })
        }
    }

    fn turn(prompt_tokens: u64, completion_tokens: u64) -> ModelTurn {
        let usage = Usage {
            prompt_tokens,
            completion_tokens,
            ..Usage::default()
        };
        ModelTurn {
            usage: Some(usage),
            ..ModelTurn::text("hello")
        }
    }

    fn model(turns: Vec<ModelTurn>) -> Arc<dyn AiProvider> {
        Arc::new(Dear(ScriptedAi::new(ModelScript { turns })))
    }

    fn account(tokens: u64) -> Account {
        Account::new(
            "a",
            AccountLimits {
                tokens: Some(tokens),
                ..AccountLimits::default()
            },
        )
    }

    #[test]
    fn what_was_used_is_paid() {
        let account = account(1_000);
        let fuel = Arc::new(AtomicI64::new(0));
        let taken = Arc::clone(&fuel);
        let payer = Payer::new(account.clone()).with_fuel(move |more| {
            taken.fetch_add(more.micro(), Ordering::Relaxed);
        });
        let metered = MeteredAi::new(model(vec![turn(30, 12), turn(8, 900)]), payer);
        block_on(metered.generate_text(TextRequest::new("hi"))).unwrap();
        let usage = account.usage();
        assert_eq!(usage.spent.tokens, 42);
        assert_eq!(usage.spent.money, Money::from_micro(420));
        assert_eq!(fuel.load(Ordering::Relaxed), 42);
        block_on(metered.generate_text(TextRequest::new("hi"))).unwrap();
        assert_eq!(account.left().tokens, 50);
        // The budget is too small for a prompt of this size.
        let error = block_on(metered.generate_text(TextRequest::new("x".repeat(400))));
        assert_eq!(error.unwrap_err().code, AiCode::Budget);
        assert_eq!(account.left().tokens, 50, "what was refused costs nothing");
    }

    #[test]
    fn answers_are_limited_to_what_is_left() {
        let scripted = Arc::new(ScriptedAi::replies(["a", "b"]));
        let metered = MeteredAi::new(scripted.clone(), account(100));
        block_on(metered.generate_text(TextRequest::new("hi"))).unwrap();
        let free = MeteredAi::new(scripted.clone(), Account::default());
        block_on(free.generate_text(TextRequest::new("hi"))).unwrap();
        let limits: Vec<Option<u32>> = scripted.requests().iter().map(|r| r.max_tokens).collect();
        assert_eq!(limits, [Some(83), None]);
    }

    #[test]
    fn what_fails_or_is_cancelled_is_paid_as_far_as_it_came() {
        let account = account(10_000);
        let refused = ModelTurn {
            status: Some(429),
            ..ModelTurn::default()
        };
        let cut = ModelTurn {
            text: vec!["eightteen bytes oh".to_owned(), "more".to_owned()],
            fault: Some(ModelFault::Malformed(1)),
            ..ModelTurn::default()
        };
        let stall = ModelTurn {
            fault: Some(ModelFault::Stall(1)),
            ..ModelTurn::text("eight by")
        };
        let metered = MeteredAi::new(model(vec![refused, cut, stall]), account.clone());
        let ask = || TextRequest::new("four");
        assert!(block_on(metered.generate_text(ask())).is_err());
        assert_eq!(
            account.usage().spent.tokens,
            0,
            "the service turned it away"
        );
        assert!(block_on(metered.generate_text(ask())).is_err());
        assert_eq!(account.usage().spent.tokens, 17 + 6);
        let stream = metered.stream_text(ask());
        assert!(account.left().tokens < 10_000 - 23, "it is kept meanwhile");
        drop(stream);
        assert_eq!(account.usage().spent.tokens, 23 + 17 + 3);
        assert_eq!(account.left().tokens, 10_000 - 43);
    }
}
