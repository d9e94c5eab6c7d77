//! Payer: reservation and settlement of requests to models.
//!
//! Every request reserves its dearest price before it is sent, and no settlement is below the
//! price of the data that was sent and received. Estimates replace missing or too small reports.

use super::{AiCode, AiError, Cost, Effort, StopReason, TextResult, TokenEstimate, Usage};
use a99_core::fuel::Fuel;
use a99_run::account::{Account, Exhausted, Reservation, Spend};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Tokens reserved for an answer without a limit, in addition to those of its reasoning effort.
const ANSWER_TOKENS: u32 = 4096;

/// Largest accepted report of tokens: doubles are exact up to it.
const MAX_REPORTED: u64 = 1 << 53;

/// Charges an answer's fuel.
type TakeFuel = Arc<dyn Fn(Fuel) + Send + Sync>;

/// Cost of a model's tokens; `None` if the price is unknown.
pub type PriceOf = Arc<dyn Fn(Option<&str>, Usage) -> Option<Cost> + Send + Sync>;

/// Accounts that pay for requests: the run's, and those of enclosing hosts.
#[derive(Clone)]
pub struct Payer {
    purses: Vec<(Account, Option<TakeFuel>)>,
    /// Time after which the caller no longer waits for an answer.
    deadline: Option<Instant>,
}

/// A request to reserve money for.
#[derive(Clone)]
pub struct Request {
    /// Requested model.
    pub model: Option<String>,
    /// Estimated tokens of the prompt.
    pub prompt: TokenEstimate,
    /// Token limit of the answer, if the request or the service sets one.
    pub max_tokens: Option<u32>,
    /// Reasoning effort, whose tokens count as part of the answer.
    pub effort: Option<Effort>,
    /// True if the service writes the prompt to a cache, for which it charges more.
    pub writes_cache: bool,
    /// Price of the model.
    pub price: PriceOf,
}

/// Reservation of a request. Dropping it releases the reservation, unless the request was
/// [sent](Paid::sent): then the prompt is settled.
#[must_use = "what is not settled is given back"]
pub struct Paid {
    kept: Vec<(Reservation, Option<TakeFuel>)>,
    request: Request,
    /// Reserved answer tokens.
    answer: u32,
    is_limited: bool,
    is_sent: bool,
}

impl From<Exhausted> for AiError {
    fn from(exhausted: Exhausted) -> AiError {
        AiError::new(AiCode::Budget, exhausted.to_string())
    }
}

impl Default for Payer {
    /// An account without limits.
    fn default() -> Payer {
        Payer::new(Account::default())
    }
}

impl From<Account> for Payer {
    fn from(account: Account) -> Payer {
        Payer::new(account)
    }
}

impl fmt::Debug for Payer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accounts = self.purses.iter().map(|(account, _)| account);
        f.debug_list().entries(accounts).finish()
    }
}

impl fmt::Debug for Paid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Paid");
        out.field("answer", &self.answer).finish_non_exhaustive()
    }
}

impl Request {
    /// Highest price of these tokens: uncached, read from a cache, or written to a cache.
    fn dearest(&self, model: Option<&str>, prompt: u64, answer: u64) -> Spend {
        let usage = Usage {
            prompt_tokens: prompt,
            completion_tokens: answer,
            ..Usage::default()
        };
        let cached = Usage {
            cached_tokens: prompt,
            ..usage
        };
        let spends = [usage, cached, self.written(usage)].map(|of| self.spend_of(model, of).0);
        let [first, rest @ ..] = spends;
        let dearer = |a: Spend, b: Spend| if b.money > a.money { b } else { a };
        rest.into_iter().fold(first, dearer)
    }

    /// Usage with the unreported prompt tokens as cache writes, if the service writes the
    /// cache.
    fn written(&self, usage: Usage) -> Usage {
        match self.writes_cache {
            true => Usage {
                written_tokens: usage.prompt_tokens.saturating_sub(usage.cached_tokens),
                ..usage
            },
            false => usage,
        }
    }

    fn spend_of(&self, model: Option<&str>, usage: Usage) -> (Spend, Fuel) {
        let cost = (self.price)(model, usage);
        let cost = cost.or_else(|| (self.price)(self.model.as_deref(), usage));
        let Cost { money, fuel } = cost.unwrap_or_default();
        (Spend::of_tokens(usage.total(), money), fuel)
    }
}

impl Payer {
    /// Pays from this account.
    #[must_use]
    pub fn new(account: Account) -> Payer {
        Payer {
            purses: vec![(account, None)],
            deadline: None,
        }
    }

    /// Sets the caller's deadline: a provider that would have to queue longer fails at once.
    #[must_use]
    pub fn with_deadline(self, deadline: Option<Instant>) -> Payer {
        Payer { deadline, ..self }
    }

    /// Time after which the caller no longer waits for an answer.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Also passes the fuel of each answer to `take`.
    #[must_use]
    pub fn with_fuel(mut self, take: impl Fn(Fuel) + Send + Sync + 'static) -> Payer {
        let take: TakeFuel = Arc::new(take);
        if let Some((_, fuel)) = self.purses.last_mut() {
            *fuel = Some(take);
        }
        self
    }

    /// A payer that charges the full price to both.
    #[must_use]
    pub fn and(&self, other: &Payer) -> Payer {
        let mut purses = self.purses.clone();
        purses.extend(other.purses.iter().cloned());
        let deadlines = [self.deadline, other.deadline];
        Payer {
            purses,
            deadline: deadlines.into_iter().flatten().min(),
        }
    }

    /// True if tokens or money are limited.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        let (tokens, money) = self.limits();
        tokens || money
    }

    /// Limits of tokens and of money.
    fn limits(&self) -> (bool, bool) {
        let left = self.purses.iter().map(|(account, _)| account.left());
        left.fold((false, false), |(tokens, money), left| {
            let limits = (left.tokens < u64::MAX, left.money.micro() < u64::MAX);
            (tokens || limits.0, money || limits.1)
        })
    }

    /// Reserves the dearest price of a request. If less is left, it waits for settlements of
    /// earlier requests. Once it is alone, it takes the rest and the answer is limited to that
    /// ([`Paid::max_tokens`]).
    ///
    /// # Errors
    /// [`AiCode::Budget`] if the rest pays for no answer, or if money is limited and the model
    /// has no price.
    pub async fn reserve(&self, request: Request) -> Result<Paid, AiError> {
        let thinks = request.effort.map_or(0, Effort::tokens);
        let wanted = request.max_tokens.unwrap_or(ANSWER_TOKENS + thinks);
        self.keep(request, wanted).await
    }

    /// Like [`Payer::reserve`], for a request without answer tokens, such as an embedding.
    ///
    /// # Errors
    /// Errors of [`Payer::reserve`].
    pub async fn reserve_prompt(&self, request: Request) -> Result<Paid, AiError> {
        self.keep(request, 0).await
    }

    async fn keep(&self, request: Request, wanted: u32) -> Result<Paid, AiError> {
        let model = request.model.as_deref();
        let (limits_tokens, limits_money) = self.limits();
        if limits_money && (request.price)(model, Usage::default()).is_none() {
            let name = a99_core::diag::excerpt(model.unwrap_or("that is asked"));
            let text = format!("money is limited and the model `{name}` has no price");
            return Err(AiError::new(AiCode::Budget, text));
        }
        let prompt = request.prompt;
        let least = request.dearest(model, prompt.likely, u64::from(wanted.min(1)));
        let most = request.dearest(model, prompt.most.max(prompt.likely), u64::from(wanted));
        let mut room = most;
        let mut kept = Vec::with_capacity(self.purses.len());
        for (account, fuel) in &self.purses {
            let reservation = account.reserve_within(least, most).await?;
            room.tokens = room.tokens.min(reservation.room().tokens);
            room.money = room.money.min(reservation.room().money);
            kept.push((reservation, fuel.clone()));
        }
        let fits = |answer: u32| {
            let spend = request.dearest(model, prompt.likely, u64::from(answer));
            spend.tokens <= room.tokens && spend.money <= room.money
        };
        let answer = match wanted <= 1 || fits(wanted) {
            true => wanted,
            false => largest(wanted, fits),
        };
        Ok(Paid {
            kept,
            request,
            answer,
            is_limited: limits_tokens || limits_money,
            is_sent: false,
        })
    }
}

/// Binary search for the largest number from 1 to `most` that fits; `fits` is monotonic.
fn largest(most: u32, fits: impl Fn(u32) -> bool) -> u32 {
    let (mut fit, mut not) = (1, most);
    while fit + 1 < not {
        let middle = fit + (not - fit) / 2;
        match fits(middle) {
            true => fit = middle,
            false => not = middle,
        }
    }
    fit
}

impl Paid {
    /// Token limit of the answer, if tokens or money are limited.
    #[must_use]
    pub fn max_tokens(&self) -> Option<u32> {
        self.is_limited.then_some(self.answer)
    }

    /// Marks the request as sent; call it just before sending.
    pub fn sent(&mut self) {
        self.is_sent = true;
    }

    /// Settles an answer, complete or partial, including pieces of tool calls; returns the
    /// settled usage.
    pub(super) fn settle_answer(
        mut self,
        answer: &TextResult,
        pieces: u64,
        error: Option<&AiError>,
    ) -> Usage {
        let mut received = TokenEstimate::of_answer(answer);
        received.likely = received.likely.saturating_add(pieces);
        received.most = received.most.saturating_add(pieces);
        let silent = received == TokenEstimate::default() && answer.usage.total() == 0;
        // A service that started to answer has worked on the request, even if it reports an
        // error.
        let refused = answer.model.is_none() && error.is_some_and(|e| e.code.is_unprocessed());
        if silent && refused {
            return self.settle(Usage::default(), answer.model.as_deref());
        }
        let reported = believed(answer.usage);
        let sent = self.request.prompt;
        let tells_prompt = reported.prompt_tokens >= self.at_least(sent);
        let is_whole = error.is_none() && !answer.cancelled;
        let mut usage = reported;
        if !tells_prompt {
            usage.prompt_tokens = reported.prompt_tokens.max(sent.likely);
            usage = self.request.written(usage);
        }
        let tells_answer = tells_prompt || reported.completion_tokens > 0;
        let least = match received.most {
            0 => 0,
            _ => self.at_least(received),
        };
        if !(is_whole && tells_answer && reported.completion_tokens >= least) {
            let mut came = received.likely;
            // The model used the whole limit, or its use is unknown.
            let all = answer.stop_reason == Some(StopReason::MaxTokens) || received.most == 0;
            let is_bounded = self.is_limited || self.request.max_tokens.is_some();
            if is_whole && all && is_bounded {
                came = came.max(u64::from(self.answer));
            }
            usage.completion_tokens = reported.completion_tokens.max(came);
        }
        self.settle(usage, answer.model.as_deref())
    }

    /// Settles a request and its answer by estimates, for services that report no tokens.
    pub fn settle_reply(mut self, answer: TokenEstimate) {
        let usage = self.request.written(Usage {
            prompt_tokens: self.request.prompt.likely,
            completion_tokens: answer.likely,
            ..Usage::default()
        });
        self.settle(usage, None);
    }

    /// Settles a request without answer tokens: a plausible report, or the estimate. Returns
    /// the settled tokens.
    pub fn settle_prompt(mut self, reported: Option<u64>) -> u64 {
        self.settle_text(reported)
    }

    fn settle_text(&mut self, reported: Option<u64>) -> u64 {
        let sent = self.request.prompt;
        let reported = reported.filter(|tokens| *tokens <= MAX_REPORTED);
        let told = reported.filter(|tokens| *tokens >= self.at_least(sent));
        let tokens = told.unwrap_or_else(|| sent.likely.max(reported.unwrap_or(0)));
        let usage = self.request.written(Usage {
            prompt_tokens: tokens,
            ..Usage::default()
        });
        self.settle(usage, None).prompt_tokens
    }

    /// Least plausible report: at least one token, and with a limit at least the lower bound.
    fn at_least(&self, of: TokenEstimate) -> u64 {
        match self.is_limited {
            true => of.least.max(1),
            false => 1,
        }
    }

    fn settle(&mut self, usage: Usage, model: Option<&str>) -> Usage {
        let (spend, fuel) = self.request.spend_of(model, usage);
        for (reservation, take) in std::mem::take(&mut self.kept) {
            reservation.settle(spend);
            if let Some(take) = take.filter(|_| fuel > Fuel::ZERO) {
                take(fuel);
            }
        }
        usage
    }
}

impl Drop for Paid {
    fn drop(&mut self) {
        if self.is_sent && !self.kept.is_empty() {
            self.settle_text(None);
        }
    }
}

/// The report without implausible numbers.
fn believed(usage: Usage) -> Usage {
    let number = |tokens: u64| if tokens <= MAX_REPORTED { tokens } else { 0 };
    let prompt_tokens = number(usage.prompt_tokens);
    let completion_tokens = number(usage.completion_tokens);
    let cached_tokens = usage.cached_tokens.min(prompt_tokens);
    Usage {
        prompt_tokens,
        completion_tokens,
        cached_tokens,
        written_tokens: usage.written_tokens.min(prompt_tokens - cached_tokens),
        reasoning_tokens: usage.reasoning_tokens.min(completion_tokens),
    }
}

#[cfg(test)]
mod tests;
