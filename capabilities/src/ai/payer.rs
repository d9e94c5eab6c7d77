//! Payer: who pays for requests to models, and what was kept for one of them.
//!
//! Nothing is sent that is not reserved at its dearest, and nothing is settled below what was
//! sent and received: what a service does not report, or reports as less than what plainly
//! came, is estimated.

use super::{AiCode, AiError, Cost, Effort, StopReason, TextResult, TokenEstimate, Usage};
use a99_core::fuel::Fuel;
use a99_run::account::{Account, Exhausted, Reservation, Spend};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Tokens that are kept for an answer whose request sets no limit, beside those that its
/// effort thinks with.
const ANSWER_TOKENS: u32 = 4096;

/// The largest number of tokens that is believed: doubles count by one up to it.
const MAX_REPORTED: u64 = 1 << 53;

/// Takes the fuel that an answer costs.
type TakeFuel = Arc<dyn Fn(Fuel) + Send + Sync>;

/// What tokens of a model cost; nothing where its price is not known.
pub type PriceOf = Arc<dyn Fn(Option<&str>, Usage) -> Option<Cost> + Send + Sync>;

/// Who pays for requests: an account, and those of hosts around it.
#[derive(Clone)]
pub struct Payer {
    purses: Vec<(Account, Option<TakeFuel>)>,
    /// When nobody waits for an answer any more.
    deadline: Option<Instant>,
}

/// A request that is to be paid.
#[derive(Clone)]
pub struct Request {
    /// The model that is asked.
    pub model: Option<String>,
    /// Tokens of what it is to read.
    pub prompt: TokenEstimate,
    /// Tokens of its answer at most, if the request or the service sets that.
    pub max_tokens: Option<u32>,
    /// How hard the model is to think, which its answer needs room for.
    pub effort: Option<Effort>,
    /// Whether the service writes the prompt to a cache, for which it asks more.
    pub writes_cache: bool,
    /// Its price.
    pub price: PriceOf,
}

/// What is kept for a request until it is settled. Dropping it gives all back, unless the
/// request was [sent](Paid::sent): then what was sent is paid.
#[must_use = "what is not settled is given back"]
pub struct Paid {
    kept: Vec<(Reservation, Option<TakeFuel>)>,
    request: Request,
    /// Tokens of the answer that are paid.
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
    /// What these tokens take of an account at most: where the prompt comes from a cache or
    /// is written to one, if that is dearer.
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

    /// Tokens of a prompt of which nobody says where they come from, at their dearest.
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

    /// The same, for a caller that waits until then: a provider that has to wait longer for
    /// its turn says so at once.
    #[must_use]
    pub fn with_deadline(self, deadline: Option<Instant>) -> Payer {
        Payer { deadline, ..self }
    }

    /// When nobody waits for an answer any more.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The same, which also hands on the fuel that each answer costs.
    #[must_use]
    pub fn with_fuel(mut self, take: impl Fn(Fuel) + Send + Sync + 'static) -> Payer {
        let take: TakeFuel = Arc::new(take);
        if let Some((_, fuel)) = self.purses.last_mut() {
            *fuel = Some(take);
        }
        self
    }

    /// Both pay all of it.
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

    /// Whether tokens or money are limited.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        let (tokens, money) = self.limits();
        tokens || money
    }

    /// Whether tokens are limited, and whether money is.
    fn limits(&self) -> (bool, bool) {
        let left = self.purses.iter().map(|(account, _)| account.left());
        left.fold((false, false), |(tokens, money), left| {
            let limits = (left.tokens < u64::MAX, left.money.micro() < u64::MAX);
            (tokens || limits.0, money || limits.1)
        })
    }

    /// Keeps what a request may need at most. Where less is left, it waits for the requests
    /// that are under way, and alone it may have what is left: then its answer is limited to
    /// that ([`Paid::max_tokens`]).
    ///
    /// # Errors
    /// [`AiCode::Budget`] if what is left pays for no answer, or money is limited and the
    /// model has no price.
    pub async fn reserve(&self, request: Request) -> Result<Paid, AiError> {
        let thinks = request.effort.map_or(0, Effort::tokens);
        let wanted = request.max_tokens.unwrap_or(ANSWER_TOKENS + thinks);
        self.keep(request, wanted).await
    }

    /// The same for a request whose answer has no tokens, such as an embedding.
    ///
    /// # Errors
    /// Those of [`Payer::reserve`].
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

/// The largest number from 1 up to `most` that fits, where all below one that fits do.
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
    /// Tokens that the answer may have, where something is limited.
    #[must_use]
    pub fn max_tokens(&self) -> Option<u32> {
        self.is_limited.then_some(self.answer)
    }

    /// Notes that the request is about to be sent.
    pub fn sent(&mut self) {
        self.is_sent = true;
    }

    /// Pays for an answer, or for what came before an error, pieces of tools included, and
    /// gives what was paid.
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
        // A service that has begun to answer worked on it, whatever its error says.
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
            // It used all that was reserved, or its use is unknown.
            let all = answer.stop_reason == Some(StopReason::MaxTokens) || received.most == 0;
            let is_bounded = self.is_limited || self.request.max_tokens.is_some();
            if is_whole && all && is_bounded {
                came = came.max(u64::from(self.answer));
            }
            usage.completion_tokens = reported.completion_tokens.max(came);
        }
        self.settle(usage, answer.model.as_deref())
    }

    /// Pays for a request and its answer, of which no service reports tokens.
    pub fn settle_reply(mut self, answer: TokenEstimate) {
        let usage = self.request.written(Usage {
            prompt_tokens: self.request.prompt.likely,
            completion_tokens: answer.likely,
            ..Usage::default()
        });
        self.settle(usage, None);
    }

    /// Pays for a request whose answer has no tokens: what was reported if that may be, or
    /// what was likely sent. Gives what was paid.
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

    /// A report of fewer tokens is not believed: one of none, and where something is limited,
    /// one that is plainly wrong.
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

/// A report without what no service can count.
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
