//! Embeddings by a service: the endpoint `/embeddings` as OpenAI has it, which many servers
//! of models offer.

use a99_capabilities::ai::{Paid, Payer, PriceOf};
use a99_capabilities::{CapabilityError, Embedder, Fetch, Reply, pay_for_text};
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// Bytes of a text, at most.
const MAX_BYTES: usize = 1 << 20;

/// Numbers of a vector, at most.
const MAX_DIMENSION: usize = 65_536;

/// Embeds texts by asking a service, each with a request of its own:
///
/// ```text
/// POST {base}/embeddings   {"model": NAME, "input": TEXT}
/// 200                      {"data": [{"embedding": [NUMBER, ...]}], "usage": {"prompt_tokens": N}}
/// ```
///
/// Tokens are paid as the service reports them, or as they are estimated.
///
/// It reaches the service through a [`Fetch`], whose policy says what may be reached and
/// which holds the key: this type knows no secret.
///
/// ```
/// use a99_embed::EndpointEmbedder;
/// use a99_capabilities::{Capabilities, ScriptedFetch};
///
/// # let fetch = ScriptedFetch::new();
/// let embedder = EndpointEmbedder::new(fetch, "http://localhost:11434/v1", "all-minilm");
/// let granted = Capabilities::none().with_embedder(embedder);
/// ```
#[derive(Clone)]
pub struct EndpointEmbedder {
    fetch: Arc<dyn Fetch>,
    url: Text,
    model: Text,
    price: Option<PriceOf>,
}

impl fmt::Debug for EndpointEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("EndpointEmbedder");
        out.field("url", &self.url).field("model", &self.model);
        out.finish_non_exhaustive()
    }
}

impl EndpointEmbedder {
    /// The endpoint below this address, such as `https://api.openai.com/v1`, with the model
    /// of this name.
    pub fn new(fetch: impl Fetch + 'static, base: &str, model: &str) -> EndpointEmbedder {
        EndpointEmbedder::shared(Arc::new(fetch), base, model)
    }

    /// The same with a [`Fetch`] that others use, too.
    #[must_use]
    pub fn shared(fetch: Arc<dyn Fetch>, base: &str, model: &str) -> EndpointEmbedder {
        EndpointEmbedder {
            fetch,
            url: format!("{}/embeddings", base.trim_end_matches('/')).into(),
            model: model.into(),
            price: None,
        }
    }

    /// The same with what its tokens cost, without which a run whose money is limited embeds
    /// nothing.
    #[must_use]
    pub fn priced(self, price: PriceOf) -> EndpointEmbedder {
        EndpointEmbedder {
            price: Some(price),
            ..self
        }
    }

    /// Asks the service, once it is paid, if somebody pays.
    async fn ask(&self, text: Value, payer: Option<&Payer>) -> Result<Value, CapabilityError> {
        match text.as_text() {
            Some(text) if text.len_bytes() <= MAX_BYTES => {}
            Some(_) => {
                let text = format!("Embedding Error: a text of more than {MAX_BYTES} bytes");
                return Err(CapabilityError::new(text));
            }
            None => return Err(fail("what is embedded must be a text")),
        }
        let mut paid: Option<Paid> = None;
        if let Some(payer) = payer {
            let model = self.model.to_string_lossy();
            let kept = pay_for_text(payer, &text, Some(&model), self.price.clone()).await;
            let kept = paid.insert(kept.map_err(|error| fail(&error.message))?);
            kept.sent();
        }
        let url = Value::String(self.url.clone());
        let answer = self.fetch.fetch(url, self.request(text)).await;
        let answer = answer.map_err(|error| fail(&error.message.to_string_lossy()))?;
        if let Some(paid) = paid {
            paid.settle_prompt(tokens(&answer));
        }
        vector(&answer).ok_or_else(|| fail("the service gave no vector"))
    }

    fn request(&self, text: Value) -> Value {
        let headers: Map = [("content-type", Value::from("application/json"))]
            .into_iter()
            .collect();
        let body = [
            ("model", Value::String(self.model.clone())),
            ("input", text),
        ];
        // Without a `responseType`, which would make an answer of what failed (D56).
        let members = [
            ("method", Value::from("POST")),
            ("headers", Value::Object(headers)),
            ("body", Value::Object(body.into_iter().collect())),
        ];
        Value::Object(members.into_iter().collect())
    }
}

impl Embedder for EndpointEmbedder {
    fn embed(&self, text: Value) -> Reply<'_> {
        Box::pin(self.ask(text, None))
    }

    fn price(&self) -> Option<PriceOf> {
        self.price.clone()
    }

    fn embed_paid<'a>(&'a self, text: Value, payer: &'a Payer) -> Reply<'a> {
        Box::pin(self.ask(text, Some(payer)))
    }
}

/// The tokens that an answer reports: a whole number.
fn tokens(answer: &Value) -> Option<u64> {
    let usage = answer.get("usage")?;
    let number = usage
        .get("prompt_tokens")
        .or_else(|| usage.get("total_tokens"));
    let number = number?.as_f64()?;
    (number.fract() == 0.0 && number >= 0.0).then_some(number as u64)
}

/// The vector of an answer: a list of finite numbers.
fn vector(answer: &Value) -> Option<Value> {
    let first = answer.get("data")?.as_array()?.first()?;
    let vector = first.get("embedding")?;
    let numbers = vector.as_array()?;
    let fits = !numbers.is_empty() && numbers.len() <= MAX_DIMENSION;
    let finite = |n: &Value| n.as_f64().is_some_and(f64::is_finite);
    (fits && numbers.iter().all(finite)).then(|| vector.clone())
}

fn fail(why: &str) -> CapabilityError {
    CapabilityError::new(format!("Embedding Error: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use a99_capabilities::ScriptedFetch;
    use a99_core::json::{Document, Limits};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    const URL: &str = "http://models.example/v1/embeddings";

    fn value(json: &str) -> Value {
        let document = Document::parse(json, &Limits::default()).unwrap();
        document.to_value(document.root())
    }

    fn asked(fetch: &Arc<ScriptedFetch>, text: Value) -> Result<String, String> {
        let fetch: Arc<dyn Fetch> = fetch.clone();
        let embedder = EndpointEmbedder::shared(fetch, "http://models.example/v1/", "mini");
        let mut reply = pin!(embedder.embed(text));
        match reply.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(reply) => reply.map(|v| v.to_json_string()).map_err(|e| e.to_string()),
            Poll::Pending => panic!("a script answers at once"),
        }
    }

    #[test]
    fn a_text_is_asked_for_and_its_vector_given() {
        let answer = r#"{"object": "list", "data": [{"index": 0, "embedding": [0.5, -1]}]}"#;
        let fetch = Arc::new(ScriptedFetch::new().on(URL, value(answer)));
        assert_eq!(asked(&fetch, "red fox".into()).unwrap(), "[0.5,-1]");
        let request = &fetch.calls()[0][1];
        assert_eq!(
            request.to_json_string(),
            r#"{"method":"POST","headers":{"content-type":"application/json"},"body":{"model":"mini","input":"red fox"}}"#
        );
    }

    #[test]
    fn other_answers_and_inputs_are_errors() {
        for answer in [
            "{}",
            r#"{"data": []}"#,
            r#"{"data": [{"embedding": []}]}"#,
            r#"{"data": [{"embedding": [1, "2"]}]}"#,
            r#"{"data": [{"embedding": "AAAA"}]}"#,
            r#""no""#,
        ] {
            let fetch = Arc::new(ScriptedFetch::new().on(URL, value(answer)));
            let error = asked(&fetch, "x".into()).unwrap_err();
            assert_eq!(
                error, "Embedding Error: the service gave no vector",
                "{answer}"
            );
        }
        let fetch = Arc::new(ScriptedFetch::new().fails(URL, "HTTP 401 Unauthorized"));
        let error = asked(&fetch, "x".into()).unwrap_err();
        assert_eq!(error, "Embedding Error: HTTP 401 Unauthorized");
        assert!(asked(&fetch, Value::Number(1.0)).is_err());
        assert!(asked(&fetch, "x".repeat(MAX_BYTES + 1).into()).is_err());
        assert_eq!(fetch.calls().len(), 1, "what is no text is not sent");
    }

    #[test]
    fn d1_tokens_of_embeddings_are_paid_as_reported_or_estimated() {
        use a99_capabilities::ai::{Cost, Payer};
        let ask = |answer: &str, payer: &Payer, price: Option<PriceOf>| {
            let fetch = Arc::new(ScriptedFetch::new().on(URL, value(answer)));
            let shared: Arc<dyn Fetch> = fetch.clone();
            let embedder = EndpointEmbedder::shared(shared, "http://models.example/v1/", "mini");
            let embedder = match price {
                Some(price) => embedder.priced(price),
                None => embedder,
            };
            let text = "twelve words that a tokenizer cuts into at least as many tokens again";
            let mut reply = pin!(embedder.embed_paid(text.into(), payer));
            match reply.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(reply) => (reply.is_ok(), fetch.calls().len()),
                Poll::Pending => panic!("a script answers at once"),
            }
        };
        let account = |tokens: Option<u64>, money: Option<f64>| {
            let limits = a99_account::AccountLimits {
                tokens,
                money: money.and_then(a99_account::Money::from_units),
                ..a99_account::AccountLimits::default()
            };
            a99_account::Account::new("a", limits)
        };
        for (usage, paid) in [
            (r#", "usage": {"prompt_tokens": 13}"#, 13),
            (r#", "usage": {"total_tokens": 20}"#, 20),
            (r#", "usage": {"prompt_tokens": 0}"#, 20),
            (r#", "usage": {"prompt_tokens": 1}"#, 20),
            (r#", "usage": {"prompt_tokens": -4}"#, 20),
            (r#", "usage": {"prompt_tokens": 0.5}"#, 20),
            (r#", "usage": "x""#, 20),
            ("", 20),
        ] {
            let account = account(Some(100), None);
            let payer = Payer::new(account.clone());
            let answer = format!(r#"{{"data": [{{"embedding": [1]}}]{usage}}}"#);
            assert_eq!(ask(&answer, &payer, None), (true, 1));
            assert_eq!(account.usage().spent.tokens, paid, "{usage}");
        }
        // What fails was sent; what is left of 40 pays for two.
        let few = account(Some(40), None);
        let payer = Payer::new(few);
        let asked: usize = (0..5).map(|_| ask("{}", &payer, None).1).sum();
        assert_eq!(asked, 2);
        // Money needs a price.
        let money = account(None, Some(0.000_030));
        let payer = Payer::new(money.clone());
        assert_eq!(ask("{}", &payer, None), (false, 0));
        let price: PriceOf = Arc::new(|_, usage| {
            Some(Cost {
                money: a99_account::Money::from_micro(usage.total()),
                ..Cost::default()
            })
        });
        let asked: usize = (0..5)
            .map(|_| ask("{}", &payer, Some(price.clone())).1)
            .sum();
        assert_eq!((asked, money.usage().spent.money.micro()), (1, 20));
    }
}
