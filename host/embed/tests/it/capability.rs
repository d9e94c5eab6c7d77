//! The capability: its suite, its limits, and that nothing goes on after nobody waits.

use crate::small::Small;
use a99_capabilities::{Embedder, block_on, suite};
use a99_core::text::Text;
use a99_core::value::Value;
use a99_embed::{EmbedCode, EmbedLimits, Precision, TextEmbedder};
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

fn embedder(limits: EmbedLimits) -> TextEmbedder {
    TextEmbedder::with_limits(Small::new(1).load(Precision::F32), limits)
}

#[test]
fn the_suite_of_the_trait_holds() {
    for at_once in [0, 1, 4] {
        let limits = EmbedLimits {
            at_once,
            ..EmbedLimits::default()
        };
        block_on(suite::embedder(&embedder(limits))).unwrap();
    }
}

#[test]
fn the_answer_is_the_vector_of_the_model() {
    let embedder = embedder(EmbedLimits::default());
    let exact = embedder.model().embed("the cat");
    let exact: Vec<Value> = exact.into_iter().map(|n| Value::Number(n.into())).collect();
    assert_eq!(
        block_on(embedder.embed("the cat".into())),
        Ok(Value::Array(exact))
    );
}

#[test]
fn halves_of_pairs_count_as_nothing() {
    let embedder = embedder(EmbedLimits::default());
    let half = Text::from_wtf8(b"the c\xed\xa0\x80at".to_vec());
    let whole = block_on(embedder.embed("the cat".into()));
    assert_eq!(block_on(embedder.embed(Value::from(half))), whole);
}

#[test]
fn long_texts_are_refused() {
    let limits = EmbedLimits {
        max_bytes: 10,
        ..EmbedLimits::default()
    };
    let embedder = embedder(limits);
    assert!(block_on(embedder.embed("x".repeat(10).into())).is_ok());
    let error = block_on(embedder.embed("x".repeat(11).into())).unwrap_err();
    assert_eq!(
        error.message,
        "the text has 11 bytes; an embedding takes 10"
    );
    let error = block_on(embedder.embed_text("x".repeat(11))).unwrap_err();
    assert_eq!(error.code(), EmbedCode::TooLarge);
    let error = block_on(embedder.embed(Value::Number(1.0))).unwrap_err();
    assert_eq!(error.message, "the text to embed is a string, not number");
}

#[test]
fn polling_does_not_wait_for_the_model() {
    let embedder = embedder(EmbedLimits::default());
    let text = "the cat ".repeat(500);
    let direct = Instant::now();
    let exact = embedder.model().embed(&text);
    let direct = direct.elapsed();
    let mut future = pin!(embedder.embed_text(text));
    let start = Instant::now();
    let first = future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    assert!(first.is_ready() || start.elapsed() < direct.max(Duration::from_millis(50)));
    if first.is_pending() {
        assert_eq!(block_on(future), Ok(exact));
    }
}

#[test]
fn many_texts_are_all_answered() {
    let limits = EmbedLimits {
        at_once: 2,
        ..EmbedLimits::default()
    };
    let embedder = embedder(limits);
    let texts: Vec<String> = (0..64).map(|n| format!("cat {n}")).collect();
    let mut futures: Vec<_> = texts
        .iter()
        .map(|text| Box::pin(embedder.embed_text(text.clone())))
        .collect();
    let mut done = vec![None; texts.len()];
    block_on(poll_fn(|cx| {
        for (future, done) in futures.iter_mut().zip(&mut done) {
            if done.is_none()
                && let Poll::Ready(vector) = future.as_mut().poll(cx)
            {
                *done = Some(vector.unwrap());
            }
        }
        if done.iter().all(Option::is_some) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }));
    for (text, done) in texts.iter().zip(done) {
        assert_eq!(done, Some(embedder.model().embed(text)));
    }
}

/// With one thread a text waits for all before it. Those that nobody waits for any more
/// are left, so the last one is not late.
#[test]
fn dropping_the_future_ends_the_work() {
    let limits = EmbedLimits {
        at_once: 1,
        ..EmbedLimits::default()
    };
    let embedder = embedder(limits);
    let long = "the cat ".repeat(200);
    let one = Instant::now();
    block_on(embedder.embed_text(long.clone())).unwrap();
    let one = one.elapsed();
    let mut abandoned: Vec<_> = (0..400)
        .map(|_| Box::pin(embedder.embed_text(long.clone())))
        .collect();
    for future in &mut abandoned {
        assert!(
            future
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
    }
    drop(abandoned);
    let start = Instant::now();
    block_on(embedder.embed_text("cat".to_owned())).unwrap();
    let waited = start.elapsed();
    assert!(waited < one * 100, "{waited:?}, and one takes {one:?}");
}
