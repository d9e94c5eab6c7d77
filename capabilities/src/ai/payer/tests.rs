//! Tests of payers: implausible reports, broken answers, and concurrent answers.

use super::*;
use crate::ai::{AiProvider, MeteredAi, StreamEvent, StreamHandle, StreamSink, TextRequest};
use crate::error::BoxFuture;
use crate::script::lock;
use crate::testing::block_on;
use crate::{Embedder, HashEmbedder};
use a99_run::account::{AccountLimits, Money};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

/// Behaviour of a mock model.
type Play = Box<dyn Fn(&TextRequest, StreamSink) + Send + Sync>;

/// A mock model with two roles; `smart` costs a thousand times as much.
struct Model {
    play: Play,
    requests: Mutex<Vec<TextRequest>>,
}

impl Model {
    fn new(play: impl Fn(&TextRequest, StreamSink) + Send + Sync + 'static) -> Arc<Model> {
        Arc::new(Model {
            play: Box::new(play),
            requests: Mutex::default(),
        })
    }

    /// A model that answers with this text and reports this usage.
    fn says(text: &'static str, usage: Option<(u64, u64)>) -> Arc<Model> {
        Model::new(move |_, sink| {
            sink.send(StreamEvent::Text(text.to_owned()));
            if let Some((prompt_tokens, completion_tokens)) = usage {
                sink.send(StreamEvent::Usage(Usage {
                    prompt_tokens,
                    completion_tokens,
                    ..Usage::default()
                }));
            }
            sink.finish(StopReason::EndTurn);
        })
    }

    fn requests(&self) -> Vec<TextRequest> {
        lock(&self.requests).clone()
    }
}

impl AiProvider for Model {
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
        let roles = ["default", "smart"].map(|role| (role.to_owned(), role.to_owned()));
        Box::pin(async { Ok(BTreeMap::from(roles)) })
    }

    fn stream_text(&self, request: TextRequest) -> StreamHandle {
        let (sink, handle) = StreamHandle::new("x");
        lock(&self.requests).push(request.clone());
        (self.play)(&request, sink);
        handle
    }

    fn price(&self, model: Option<&str>, usage: Usage) -> Option<Cost> {
        let micro = match model? {
            "smart" => 1_000,
            "default" => 1,
            _ => return None,
        };
        Some(Cost {
            money: Money::from_micro(usage.total() * micro),
            fuel: Fuel::ZERO,
        })
    }
}

fn account(tokens: Option<u64>, money: Option<u64>) -> Account {
    Account::new(
        "a",
        AccountLimits {
            tokens,
            money: money.map(Money::from_micro),
            ..AccountLimits::default()
        },
    )
}

/// A prompt of 100 words.
fn prompt() -> TextRequest {
    TextRequest::new("word ".repeat(100))
}

#[test]
fn d1_usage_that_is_missing_or_too_small_is_settled_at_the_estimate() {
    const TEXT: &str = "an answer of some twelve words that a tokenizer cuts in at least as many";
    let of = TokenEstimate::of_text(TEXT);
    let sent = TokenEstimate::of_request(&prompt());
    assert!((100..200).contains(&sent.likely), "{sent:?}");
    for (reported, paid) in [
        (None, (sent.likely, of.likely)),
        (Some((0, 0)), (sent.likely, of.likely)),
        (Some((100, 0)), (100, of.likely)),
        (Some((0, 20)), (sent.likely, 20)),
        (Some((100, 1)), (100, of.likely)),
        (Some((3, 20)), (sent.likely, 20)),
        (Some((u64::MAX, 20)), (sent.likely, 20)),
        (Some((100, 1 << 60)), (100, of.likely)),
        (Some((100, 15)), (100, 15)),
        (Some((103, 900)), (103, 900)),
    ] {
        let account = account(Some(100_000), None);
        let metered = MeteredAi::new(Model::says(TEXT, reported), account.clone());
        let answer = block_on(metered.generate_text(prompt())).unwrap();
        let usage = (answer.usage.prompt_tokens, answer.usage.completion_tokens);
        assert_eq!(usage, paid, "{reported:?}");
        assert_eq!(
            account.usage().spent.tokens,
            paid.0 + paid.1,
            "{reported:?}"
        );
        // Without limits the usage is the service's report, except zeros.
        let free = MeteredAi::new(Model::says(TEXT, reported), Account::default());
        let again = block_on(free.generate_text(prompt())).unwrap();
        let believed = |tokens: u64| (1..=MAX_REPORTED).contains(&tokens);
        if reported.is_none_or(|(prompt, answer)| !believed(prompt) && !believed(answer)) {
            assert_eq!(again.usage, answer.usage, "{reported:?}");
        }
        assert!(again.usage.prompt_tokens > 0 && again.usage.completion_tokens > 0);
    }
}

#[test]
fn d1_two_hundred_calls_that_report_nothing_do_not_pass_a_small_budget() {
    let account = account(Some(100), None);
    let model = Model::says("ok", None);
    let metered = MeteredAi::new(model.clone(), account.clone());
    let asked = (0..200).map(|_| block_on(metered.generate_text(TextRequest::new("hi"))));
    let passed = asked.filter(|answer| answer.is_ok()).count();
    assert!((1..=6).contains(&passed), "{passed}");
    assert_eq!(model.requests().len(), passed);
}

#[test]
fn d1_what_breaks_before_its_first_part_is_paid() {
    for code in [
        AiCode::CutOff,
        AiCode::FirstTokenTimeout,
        AiCode::Unavailable,
        AiCode::Malformed,
    ] {
        let account = account(Some(1_000), None);
        let model = Model::new(move |_, sink| sink.fail(AiError::new(code, "no")));
        let metered = MeteredAi::new(model.clone(), account.clone());
        for _ in 0..70 {
            assert!(block_on(metered.generate_text(prompt())).is_err());
        }
        assert!(model.requests().len() <= 10, "{code:?}");
    }
    // A service that refuses a request charges nothing.
    let account = account(Some(1_000), None);
    let model = Model::new(|_, sink| sink.fail(AiError::new(AiCode::RateLimited, "no")));
    let metered = MeteredAi::new(model, account.clone());
    assert!(block_on(metered.generate_text(prompt())).is_err());
    assert_eq!(account.left().tokens, 1_000);
    // A service that accepts it and then reports that error in its stream is paid.
    let model = Model::new(|_, sink| {
        sink.answered_by("default");
        sink.fail(AiError::new(AiCode::RateLimited, "no"));
    });
    let metered = MeteredAi::new(model, account.clone());
    assert!(block_on(metered.generate_text(prompt())).is_err());
    assert!(account.left().tokens < 900);
}

#[test]
fn d1_an_answer_that_used_all_it_might_is_paid_in_full() {
    let account = account(Some(10_000), None);
    let model = Model::new(|_, sink| sink.finish(StopReason::MaxTokens));
    let metered = MeteredAi::new(model, account.clone());
    let request = TextRequest {
        max_tokens: Some(500),
        ..TextRequest::new("think")
    };
    let answer = block_on(metered.generate_text(request)).unwrap();
    assert_eq!(answer.usage.completion_tokens, 500);
    assert!(account.usage().spent.tokens >= 500);
}

#[test]
fn d1_embeddings_are_paid() {
    let account = account(Some(100), None);
    let payer = Payer::new(account.clone());
    let embedder = HashEmbedder::new(8);
    let text = || "some words to embed".into();
    let done = (0..200).filter(|_| block_on(embedder.embed_paid(text(), &payer)).is_ok());
    let done = done.count();
    assert!((5..=30).contains(&done), "{done}");
    // A cancelled embedding was sent and is paid.
    let all = Account::default();
    let (payer, text) = (Payer::new(all.clone()), text());
    let mut paid = block_on(crate::pay_for_text(&payer, &text, None, None)).unwrap();
    paid.sent();
    drop(paid);
    assert!(all.usage().spent.tokens > 4);
}

#[test]
fn d14_prompts_are_reserved_and_settled_at_their_dearest() {
    // A token costs 1 fresh, 3 from a cache, 5 to a cache.
    let price: PriceOf = Arc::new(|_, usage| {
        let fresh = usage.prompt_tokens - usage.cached_tokens - usage.written_tokens;
        let of_prompt = fresh + 3 * usage.cached_tokens + 5 * usage.written_tokens;
        Some(Cost {
            money: Money::from_micro(of_prompt + usage.completion_tokens),
            fuel: Fuel::ZERO,
        })
    });
    let prompt = TokenEstimate {
        least: 100,
        likely: 100,
        most: 100,
    };
    for (writes_cache, each) in [(false, 3), (true, 5)] {
        let request = || Request {
            model: None,
            prompt,
            max_tokens: None,
            effort: None,
            writes_cache,
            price: price.clone(),
        };
        let account = account(None, Some(100 * each));
        let payer = Payer::new(account.clone());
        let paid = block_on(payer.reserve_prompt(request())).unwrap();
        assert_eq!(account.left().money, Money::ZERO);
        drop(paid);
        let few = Payer::new(self::account(None, Some(100 * each - 1)));
        assert!(block_on(few.reserve_prompt(request())).is_err());
        // Unreported prompt tokens count as cache writes if the service writes the cache.
        let unknown = if writes_cache { 500 } else { 100 };
        for reported in [None, Some(0)] {
            let account = self::account(None, Some(1_000));
            let paid = block_on(Payer::new(account.clone()).reserve_prompt(request())).unwrap();
            paid.settle_prompt(reported);
            assert_eq!(account.usage().spent.money.micro(), unknown, "{reported:?}");
        }
        let account = self::account(None, Some(1_000));
        let mut paid = block_on(Payer::new(account.clone()).reserve_prompt(request())).unwrap();
        paid.sent();
        drop(paid);
        assert_eq!(account.usage().spent.money.micro(), unknown);
    }
}

#[test]
fn d2_money_is_reserved_at_the_price_of_the_model_that_answers() {
    let account = account(None, Some(1_000_000));
    let model = Model::says("ok", Some((20, 100)));
    let metered = MeteredAi::new(model.clone(), account.clone());
    block_on(metered.generate_text(TextRequest::new("hi").role("smart"))).unwrap();
    // The money pays for 1,000 tokens, 17 of them for the prompt.
    assert_eq!(model.requests()[0].max_tokens, Some(983));
    assert_eq!(account.usage().spent.money, Money::from_micro(120_000));
    // A model without a price is not asked.
    let unpriced = TextRequest::new("hi").model("other");
    let error = block_on(metered.generate_text(unpriced)).unwrap_err();
    assert_eq!(error.code, AiCode::Budget);
    assert!(error.message.contains("`other` has no price"), "{error}");
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn d4_money_bounds_the_answer_that_is_asked_for() {
    // 5 units at 1,000 a million: 5,000 tokens, 17 of them for the prompt.
    let account = account(Some(1_000_000), Some(5_000_000));
    let model = Model::new(|request, sink| {
        sink.send(StreamEvent::Usage(Usage {
            prompt_tokens: 17,
            completion_tokens: u64::from(request.max_tokens.unwrap_or(100_000)),
            ..Usage::default()
        }));
        sink.finish(StopReason::MaxTokens);
    });
    let metered = MeteredAi::new(model.clone(), account.clone());
    let ask = || TextRequest {
        max_tokens: Some(100_000),
        ..TextRequest::new("hi").role("smart")
    };
    block_on(metered.generate_text(ask())).unwrap();
    let error = block_on(metered.generate_text(ask())).unwrap_err();
    assert_eq!(error.message, "the budget of money of `a` is used up");
    assert_eq!(model.requests().len(), 1, "what buys no answer is not sent");
    assert_eq!(model.requests()[0].max_tokens, Some(4_983));
    let usage = account.usage();
    assert_eq!(usage.spent.money, Money::from_micro(5_000_000));
    assert_eq!(usage.overdrawn.money, Money::ZERO);
}

#[test]
fn d12_calls_side_by_side_wait_for_each_other() {
    let account = account(Some(10_000), None);
    let open = Arc::new(Mutex::new(Vec::new()));
    let begun = Arc::clone(&open);
    let model = Model::new(move |_, sink| lock(&begun).push(sink));
    let metered = MeteredAi::new(model, account.clone());
    let mut calls: Vec<_> = (0..8)
        .map(|_| metered.generate_text(TextRequest::new("hi")))
        .collect();
    let mut cx = Context::from_waker(Waker::noop());
    let (mut whole, mut most) = (0, 0);
    for _ in 0..100 {
        calls.retain_mut(|call| match pin!(call).poll(&mut cx) {
            Poll::Pending => true,
            Poll::Ready(answer) => {
                answer.unwrap();
                whole += 1;
                false
            }
        });
        let begun: Vec<StreamSink> = std::mem::take(&mut lock(&open));
        most = most.max(begun.len());
        for sink in begun {
            sink.send(StreamEvent::Text("some words".to_owned()));
            sink.finish(StopReason::EndTurn);
        }
    }
    assert_eq!((whole, most), (8, 2), "two of 4,096 fit at once");
    // Without waiting, the exhausted budget is an error.
    let stream = metered.stream_text(TextRequest::new("hi"));
    let other = metered.stream_text(TextRequest::new("hi"));
    let third = metered.stream_text(TextRequest::new("hi"));
    let error = block_on(third.done()).unwrap_err();
    assert_eq!(error.code, AiCode::Budget);
    assert!(error.message.contains("under way"), "{error}");
    drop((stream, other));
}

#[test]
fn a_host_around_the_run_pays_too() {
    let (host, run) = (account(Some(10_000), None), account(Some(10_000), None));
    let inner = MeteredAi::new(Model::says("ok", Some((20, 5))), host.clone());
    let metered = MeteredAi::new(Arc::new(inner), run.clone());
    block_on(metered.generate_text(TextRequest::new("hi"))).unwrap();
    assert_eq!(host.usage().spent.tokens, 25);
    assert_eq!(run.usage().spent.tokens, 25);
}

#[test]
fn d4_an_answer_without_a_limit_has_room_for_what_it_thinks() {
    let model = Model::says("Hi", Some((100, 1)));
    let metered = MeteredAi::new(model.clone(), account(Some(100_000), None));
    for (effort, most) in [(None, 4_096), (Some(Effort::High), 4_096 + 24_576)] {
        let asked = TextRequest { effort, ..prompt() };
        assert!(block_on(metered.generate_text(asked)).is_ok());
        let sent = model.requests().pop().unwrap();
        assert_eq!(sent.max_tokens, Some(most));
    }
}
