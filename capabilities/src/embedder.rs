//! Embeddings of text.

use crate::ai::{AiError, Cost, Paid, Payer, PriceOf, Request, TokenEstimate};
use crate::error::{CapabilityError, Reply, ready};
use a99_core::value::Value;
use std::sync::Arc;

/// Turns text into vectors.
pub trait Embedder: Send + Sync {
    /// Calls `embed(text)`; the reply is a list of finite numbers whose length
    /// is the same for every text.
    fn embed(&self, text: Value) -> Reply<'_>;

    /// Cost of a text's tokens. The default is no price: a run with limited money cannot embed
    /// with it.
    fn price(&self) -> Option<PriceOf> {
        None
    }

    /// True if tokens are charged, as by a service; a local model is free.
    fn is_billed(&self) -> bool {
        true
    }

    /// Like [`Embedder::embed`], but paid for: reserves the text's tokens before it is sent and
    /// settles them afterwards. The default settles an estimate; a service that reports tokens
    /// settles the report.
    fn embed_paid<'a>(&'a self, text: Value, payer: &'a Payer) -> Reply<'a> {
        Box::pin(async move {
            if !self.is_billed() {
                return self.embed(text).await;
            }
            let mut paid = pay_for_text(payer, &text, None, self.price()).await?;
            paid.sent();
            self.embed(text).await
        })
    }

    /// Embeds many texts, in order, each paid for as by [`Embedder::embed_paid`]. The default
    /// embeds one after another; a service sends many in one request.
    ///
    /// Stops at the first error.
    fn embed_all<'a>(&'a self, texts: Vec<Value>, payer: &'a Payer) -> Reply<'a> {
        Box::pin(async move {
            let mut vectors = Vec::with_capacity(texts.len());
            for text in texts {
                vectors.push(self.embed_paid(text, payer).await?);
            }
            Ok(Value::Array(vectors))
        })
    }
}

/// Reserves the price of a text's embedding.
///
/// # Errors
/// [`AiCode::Budget`](crate::AiCode::Budget) if less is left, or if money is limited and the
/// price is unknown.
pub async fn pay_for_text(
    payer: &Payer,
    text: &Value,
    model: Option<&str>,
    price: Option<PriceOf>,
) -> Result<Paid, AiError> {
    pay_for_texts(payer, std::slice::from_ref(text), model, price).await
}

/// Like [`pay_for_text`], for a request with all of these texts.
///
/// # Errors
/// Errors of [`pay_for_text`].
pub async fn pay_for_texts(
    payer: &Payer,
    texts: &[Value],
    model: Option<&str>,
    price: Option<PriceOf>,
) -> Result<Paid, AiError> {
    let of = |text: &Value| {
        let text = text.as_text().map(a99_core::text::Text::to_string_lossy);
        TokenEstimate::of_text(&text.unwrap_or_default())
    };
    let none = TokenEstimate::default();
    let request = Request {
        model: model.map(str::to_owned),
        prompt: texts.iter().map(of).fold(none, TokenEstimate::plus),
        max_tokens: None,
        effort: None,
        writes_cache: false,
        price: price.unwrap_or_else(|| Arc::new(|_, _| None)),
    };
    payer.reserve_prompt(request).await
}

/// A deterministic bag-of-words embedding: each word is hashed to a dimension
/// and a sign, and the vector has length one. Texts that share words are
/// near each other, which is enough for tests.
#[derive(Copy, Clone, Debug)]
pub struct HashEmbedder {
    dimension: usize,
}

impl HashEmbedder {
    /// Vectors of this dimension, at least one.
    #[must_use]
    pub fn new(dimension: usize) -> HashEmbedder {
        HashEmbedder {
            dimension: dimension.max(1),
        }
    }

    fn vector(self, text: &[u8]) -> Vec<f64> {
        let mut out = vec![0.0; self.dimension];
        let words = text.split(|b| !b.is_ascii_alphanumeric() && *b < 0x80);
        for word in words.filter(|w| !w.is_empty()) {
            let hash = fnv1a(word);
            let sign = if hash >> 63 == 0 { 1.0 } else { -1.0 };
            out[(hash % self.dimension as u64) as usize] += sign;
        }
        let norm = out.iter().map(|x| x * x).sum::<f64>().sqrt();
        if norm > 0.0 {
            out.iter_mut().for_each(|x| *x /= norm);
        }
        out
    }
}

/// FNV-1a over the lower-cased bytes.
fn fnv1a(word: &[u8]) -> u64 {
    word.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

impl Embedder for HashEmbedder {
    /// A mock service for tests, which costs nothing.
    fn price(&self) -> Option<PriceOf> {
        Some(Arc::new(|_, _| Some(Cost::default())))
    }

    fn embed(&self, text: Value) -> Reply<'_> {
        ready(match text.as_text() {
            Some(text) => {
                let vector = self.vector(text.as_bytes());
                Ok(Value::Array(
                    vector.into_iter().map(Value::Number).collect(),
                ))
            }
            None => Err(CapabilityError::new("embed: the text must be a string")),
        })
    }
}

/// Conformance suite of [`Embedder`].
#[cfg(feature = "testing")]
pub(crate) mod suite {
    use super::Embedder;
    use crate::error::{SuiteResult, ensure, expect, refused};
    use a99_core::value::Value;

    /// Embeds some texts.
    pub async fn conformance(embedder: &dyn Embedder) -> SuiteResult {
        let first = expect(embedder.embed("a red fox".into()).await, "text embeds")?;
        let again = expect(
            embedder.embed("a red fox".into()).await,
            "text embeds twice",
        )?;
        let other = expect(embedder.embed("".into()).await, "empty text embeds")?;
        let numbers = first.as_array().ok_or("the reply is a list")?;
        let finite = |n: &Value| n.as_f64().is_some_and(f64::is_finite);
        ensure(
            !numbers.is_empty() && numbers.iter().all(finite),
            "its items are finite numbers",
        )?;
        ensure(first == again, "the same text gives the same vector")?;
        let same_length = other.as_array().is_some_and(|o| o.len() == numbers.len());
        ensure(same_length, "all vectors have one length")?;
        refused(
            embedder.embed(Value::Null).await,
            "what is not text is refused",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block_on;

    #[test]
    fn hash_embedder_conforms() {
        block_on(suite::conformance(&HashEmbedder::new(16))).unwrap();
    }

    #[test]
    fn shared_words_are_near() {
        let embedder = HashEmbedder::new(512);
        let dot = |a: &str, b: &str| -> f64 {
            let (a, b) = (embedder.vector(a.as_bytes()), embedder.vector(b.as_bytes()));
            a.iter().zip(&b).map(|(x, y)| x * y).sum()
        };
        assert!(dot("red fox jumps", "the red fox") > dot("red fox jumps", "green tea"));
    }
}
