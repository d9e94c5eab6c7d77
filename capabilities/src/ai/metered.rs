//! Metered models: a provider whose requests are paid from an account.

use super::{AiCode, AiError, AiProvider, Cost, StreamHandle, TextRequest, TextResult, Usage};
use crate::error::BoxFuture;
use a99_account::{Account, Exhausted, Reservation, Spend};
use a99_core::fuel::Fuel;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Tokens that are kept for an answer whose request sets no limit, at most.
const ANSWER_TOKENS: u64 = 4096;

/// Bytes of text for each token, about.
const TOKEN_BYTES: u64 = 4;

/// Takes the fuel that an answer costs.
type TakeFuel = Arc<dyn Fn(Fuel) + Send + Sync>;

/// Asks another provider, and pays for it: before a request the account keeps what it may
/// need, and the answer is limited to that; afterwards what it used is paid, of an answer
/// that failed or was cancelled as far as it is known.
#[derive(Clone)]
pub struct MeteredAi {
    provider: Arc<dyn AiProvider>,
    account: Account,
    fuel: Option<TakeFuel>,
}

impl fmt::Debug for MeteredAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("MeteredAi");
        out.field("account", &self.account).finish_non_exhaustive()
    }
}

impl From<Exhausted> for AiError {
    fn from(exhausted: Exhausted) -> AiError {
        AiError::new(AiCode::Budget, exhausted.to_string())
    }
}

/// Tokens of so many bytes, about, and never too few for what frames them.
fn tokens_of(bytes: usize) -> u64 {
    /// Tokens of a message's frame.
    const FRAME: u64 = 16;
    bytes as u64 / TOKEN_BYTES + FRAME
}

impl MeteredAi {
    /// Pays from this account.
    pub fn new(provider: Arc<dyn AiProvider>, account: Account) -> MeteredAi {
        MeteredAi {
            provider,
            account,
            fuel: None,
        }
    }

    /// The same, which also hands on the fuel that each answer costs.
    #[must_use]
    pub fn with_fuel(self, take: impl Fn(Fuel) + Send + Sync + 'static) -> MeteredAi {
        MeteredAi {
            fuel: Some(Arc::new(take)),
            ..self
        }
    }

    /// Keeps what a request with so many tokens may need, and limits its answer to that.
    fn reserve(&self, request: &mut TextRequest, prompt: u64) -> Result<Reservation, AiError> {
        let wanted = request.max_tokens.map(u64::from);
        let left = self.account.left().tokens;
        let room = left.saturating_sub(prompt);
        if left < u64::MAX {
            if room == 0 {
                // Says whose budget it is.
                let all = Spend::of_tokens(prompt.saturating_add(1), Default::default());
                return Ok(self.account.reserve(all)?);
            }
            let most = wanted.unwrap_or(ANSWER_TOKENS).min(room);
            request.max_tokens = Some(u32::try_from(most).unwrap_or(u32::MAX));
        }
        let answer = request.max_tokens.map_or(ANSWER_TOKENS, u64::from);
        let usage = Usage {
            prompt_tokens: prompt,
            completion_tokens: answer,
            ..Usage::default()
        };
        let cost = self.provider.price(request.model.as_deref(), usage);
        let kept = Spend::of_tokens(usage.total(), cost.money);
        Ok(self.account.reserve(kept)?)
    }

    /// Pays for what came.
    fn settle(&self, kept: Reservation, prompt: u64, result: &TextResult, whole: bool) {
        let mut usage = result.usage;
        if !whole && usage.total() == 0 {
            // The service did not get to tell.
            let said = result.text.len() + result.thinking.len();
            usage.prompt_tokens = prompt;
            usage.completion_tokens = said as u64 / TOKEN_BYTES;
        }
        let Cost { money, fuel } = self.provider.price(result.model.as_deref(), usage);
        kept.settle(Spend::of_tokens(usage.total(), money));
        if let Some(take) = &self.fuel
            && fuel > Fuel::ZERO
        {
            take(fuel);
        }
    }
}

impl AiProvider for MeteredAi {
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
        self.provider.list_roles()
    }

    fn stream_text(&self, mut request: TextRequest) -> StreamHandle {
        let prompt = tokens_of(request.prompt_bytes());
        let kept = match self.reserve(&mut request, prompt) {
            Ok(kept) => kept,
            Err(error) => return StreamHandle::failed("unpaid", error),
        };
        let stream = self.provider.stream_text(request);
        let payer = self.clone();
        stream.on_end(move |answer| match answer {
            Ok(result) => payer.settle(kept, prompt, result, !result.cancelled),
            // Nothing came: nothing is paid.
            Err(error) => match &error.partial {
                Some(partial) => payer.settle(kept, prompt, partial, false),
                None => drop(kept),
            },
        });
        stream
    }

    fn price(&self, model: Option<&str>, usage: Usage) -> Cost {
        self.provider.price(model, usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ai::{ModelFault, ModelScript, ModelTurn, ScriptedAi};
    use crate::testing::block_on;
    use a99_account::{AccountLimits, Money};
    use std::sync::atomic::{AtomicI64, Ordering};

    /// A model whose tokens cost.
    struct Dear(ScriptedAi);

    impl AiProvider for Dear {
        fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
            self.0.list_roles()
        }

        fn stream_text(&self, request: TextRequest) -> StreamHandle {
            self.0.stream_text(request)
        }

        fn price(&self, _: Option<&str>, usage: Usage) -> Cost {
            Cost {
                money: Money::from_micro(usage.total() * 10),
                fuel: Fuel::from_micro(usage.total() as i64),
            }
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
        let metered = MeteredAi::new(model(vec![turn(30, 12), turn(8, 900)]), account.clone())
            .with_fuel(move |more| {
                taken.fetch_add(more.micro(), Ordering::Relaxed);
            });
        block_on(metered.generate_text(TextRequest::new("hi"))).unwrap();
        let usage = account.usage();
        assert_eq!(usage.spent.tokens, 42);
        assert_eq!(usage.spent.money, Money::from_micro(420));
        assert_eq!(fuel.load(Ordering::Relaxed), 42);
        block_on(metered.generate_text(TextRequest::new("hi"))).unwrap();
        assert_eq!(account.left().tokens, 50);
        // There is no room for a prompt of this size.
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
        assert_eq!(limits, [Some(84), None]);
    }

    #[test]
    fn what_fails_or_is_cancelled_is_paid_as_far_as_it_came() {
        let account = account(10_000);
        let refused = ModelTurn {
            status: Some(500),
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
        assert_eq!(account.usage().spent.tokens, 0);
        assert!(block_on(metered.generate_text(ask())).is_err());
        assert_eq!(account.usage().spent.tokens, 17 + 4);
        let stream = metered.stream_text(ask());
        assert!(account.left().tokens < 10_000 - 21, "it is kept meanwhile");
        drop(stream);
        assert_eq!(account.usage().spent.tokens, 21 + 17 + 2);
        assert_eq!(account.left().tokens, 10_000 - 40);
    }
}
