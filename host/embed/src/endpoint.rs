//! Embeddings by a service: OpenAI's `/embeddings` endpoint, which many model servers offer.

use a99_capabilities::ai::{Paid, Payer, PriceOf};
use a99_capabilities::{CapabilityError, Embedder, Fetch, Reply, pay_for_texts};
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// Maximum bytes of a text.
const MAX_BYTES: usize = 1 << 20;

/// Default maximum texts of a request: every known service accepts as many. OpenAI's takes
/// 2,048 and Gemini's 100.
const BATCH: usize = 100;

/// Maximum bytes of texts in a request with several.
const BATCH_BYTES: usize = 256 << 10;

/// Maximum dimension of a vector.
const MAX_DIMENSION: usize = 65_536;

/// Embeds texts by asking a service, many with one request:
///
/// ```text
/// POST {base}/embeddings   {"model": NAME, "input": TEXT or [TEXT, ...]}
/// 200                      {"data": [{"index": 0, "embedding": [NUMBER, ...]}, ...],
///                           "usage": {"prompt_tokens": N}}
/// ```
///
/// Tokens are paid as the service reports them, otherwise as estimated.
///
/// It reaches the service through a [`Fetch`], whose policy limits the reachable hosts and
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
    batch: usize,
}

impl fmt::Debug for EndpointEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("EndpointEmbedder");
        out.field("url", &self.url).field("model", &self.model);
        out.finish_non_exhaustive()
    }
}

impl EndpointEmbedder {
    /// An embedder for a model at the endpoint below this address, such as
    /// `https://api.openai.com/v1`.
    pub fn new(fetch: impl Fetch + 'static, base: &str, model: &str) -> EndpointEmbedder {
        EndpointEmbedder::shared(Arc::new(fetch), base, model)
    }

    /// An embedder with a shared [`Fetch`].
    #[must_use]
    pub fn shared(fetch: Arc<dyn Fetch>, base: &str, model: &str) -> EndpointEmbedder {
        EndpointEmbedder {
            fetch,
            url: format!("{}/embeddings", base.trim_end_matches('/')).into(),
            model: model.into(),
            price: None,
            batch: BATCH,
        }
    }

    /// Sets the maximum texts of a request; 100 by default.
    #[must_use]
    pub fn batches(self, texts: usize) -> EndpointEmbedder {
        EndpointEmbedder {
            batch: texts.max(1),
            ..self
        }
    }

    /// Sets the price of tokens. Without it a run with a money limit cannot embed.
    #[must_use]
    pub fn priced(self, price: PriceOf) -> EndpointEmbedder {
        EndpointEmbedder {
            price: Some(price),
            ..self
        }
    }

    /// The vectors of texts, with as few requests as the service allows.
    async fn ask_all(
        &self,
        texts: Vec<Value>,
        payer: Option<&Payer>,
    ) -> Result<Vec<Value>, CapabilityError> {
        // Refuse invalid values before anything is sent.
        let sizes = texts.iter().map(size).collect::<Result<Vec<_>, _>>()?;
        let mut vectors = Vec::with_capacity(texts.len());
        let mut first = 0;
        while first < texts.len() {
            let (mut end, mut bytes) = (first + 1, sizes[first]);
            while end < texts.len() && end - first < self.batch && bytes + sizes[end] <= BATCH_BYTES
            {
                bytes += sizes[end];
                end += 1;
            }
            let input = Value::Array(texts[first..end].to_vec());
            let asked = self.ask(&texts[first..end], input, payer);
            vectors.extend(asked.await?);
            first = end;
        }
        let dimension = |vector: &Value| vector.as_array().map(<[Value]>::len);
        match vectors
            .windows(2)
            .all(|two| dimension(&two[0]) == dimension(&two[1]))
        {
            true => Ok(vectors),
            false => Err(fail("the service gave vectors of several lengths")),
        }
    }

    /// The vector of one text.
    async fn ask_one(&self, text: Value, payer: Option<&Payer>) -> Result<Value, CapabilityError> {
        size(&text)?;
        let asked = self.ask(std::slice::from_ref(&text), text.clone(), payer);
        let vector = asked.await?.pop();
        vector.ok_or_else(|| fail("the service gave no vector"))
    }

    /// Asks the service for the vectors of all these texts, after payment if there is a payer.
    async fn ask(
        &self,
        texts: &[Value],
        input: Value,
        payer: Option<&Payer>,
    ) -> Result<Vec<Value>, CapabilityError> {
        let mut paid: Option<Paid> = None;
        if let Some(payer) = payer {
            let model = self.model.to_string_lossy();
            let kept = pay_for_texts(payer, texts, Some(&model), self.price.clone()).await;
            let kept = paid.insert(kept.map_err(|error| fail(&error.message))?);
            kept.sent();
        }
        let url = Value::String(self.url.clone());
        let answer = self.fetch.fetch(url, self.request(input)).await;
        let answer = answer.map_err(|error| fail(&error.message.to_string_lossy()))?;
        if let Some(paid) = paid {
            paid.settle_prompt(tokens(&answer));
        }
        vectors(&answer, texts.len())
    }

    fn request(&self, input: Value) -> Value {
        let headers: Map = [("content-type", Value::from("application/json"))]
            .into_iter()
            .collect();
        let body = [
            ("model", Value::String(self.model.clone())),
            ("input", input),
        ];
        // Without a `responseType`, which would turn a failure into an answer (D56).
        let members = [
            ("method", Value::from("POST")),
            ("headers", Value::Object(headers)),
            ("body", Value::Object(body.into_iter().collect())),
        ];
        Value::Object(members.into_iter().collect())
    }
}

/// Bytes of a text.
fn size(text: &Value) -> Result<usize, CapabilityError> {
    match text.as_text() {
        Some(text) if text.len_bytes() <= MAX_BYTES => Ok(text.len_bytes()),
        Some(_) => {
            let text = format!("Embedding Error: a text of more than {MAX_BYTES} bytes");
            Err(CapabilityError::new(text))
        }
        None => Err(fail("what is embedded must be a text")),
    }
}

impl Embedder for EndpointEmbedder {
    fn embed(&self, text: Value) -> Reply<'_> {
        Box::pin(self.ask_one(text, None))
    }

    fn price(&self) -> Option<PriceOf> {
        self.price.clone()
    }

    fn embed_paid<'a>(&'a self, text: Value, payer: &'a Payer) -> Reply<'a> {
        Box::pin(self.ask_one(text, Some(payer)))
    }

    fn embed_all<'a>(&'a self, texts: Vec<Value>, payer: &'a Payer) -> Reply<'a> {
        Box::pin(async move {
            let vectors = self.ask_all(texts, Some(payer)).await?;
            Ok(Value::Array(vectors))
        })
    }
}

/// The reported tokens of an answer: an integer.
fn tokens(answer: &Value) -> Option<u64> {
    let usage = answer.get("usage")?;
    let number = usage
        .get("prompt_tokens")
        .or_else(|| usage.get("total_tokens"));
    let number = number?.as_f64()?;
    (number.fract() == 0.0 && number >= 0.0).then_some(number as u64)
}

/// The vectors of an answer, one for each text and in the texts' order: by `index`, or in the
/// given order if no vector has one.
fn vectors(answer: &Value, texts: usize) -> Result<Vec<Value>, CapabilityError> {
    let none = || fail("the service gave no vector");
    let data = answer.get("data").and_then(Value::as_array);
    let data = data.filter(|data| !data.is_empty()).ok_or_else(none)?;
    if data.len() != texts {
        let given = data.len();
        return Err(fail(&format!(
            "the service gave {given} vectors for {texts} texts"
        )));
    }
    let mut placed: Vec<Option<Value>> = vec![None; texts];
    for (at, item) in data.iter().enumerate() {
        let place = match item.get("index").and_then(Value::as_f64) {
            Some(index) => index,
            None => at as f64,
        };
        let vector = item.get("embedding").filter(|vector| is_vector(vector));
        let vector = vector.ok_or_else(none)?;
        // An `index` that is not a valid position matches none of these.
        let place = (0..texts).find(|at| *at as f64 == place);
        let slot = place.and_then(|place| placed.get_mut(place));
        match slot.filter(|slot| slot.is_none()) {
            Some(slot) => *slot = Some(vector.clone()),
            None => return Err(fail("the service gave vectors without an order")),
        }
    }
    Ok(placed.into_iter().flatten().collect())
}

/// Whether a value is a list of finite numbers.
fn is_vector(vector: &Value) -> bool {
    let numbers = vector.as_array().unwrap_or_default();
    let fits = !numbers.is_empty() && numbers.len() <= MAX_DIMENSION;
    let finite = |n: &Value| n.as_f64().is_some_and(f64::is_finite);
    fits && numbers.iter().all(finite)
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
    fn d14_many_texts_go_with_few_requests_and_come_back_in_order() {
        use a99_run::account::{Account, AccountLimits};
        let ask = |answer: &str, texts: usize, batch: usize, tokens: Option<u64>| {
            let fetch = Arc::new(ScriptedFetch::new().on(URL, value(answer)));
            let shared: Arc<dyn Fetch> = fetch.clone();
            let embedder = EndpointEmbedder::shared(shared, "http://models.example/v1/", "mini");
            let embedder = embedder.batches(batch);
            let account = Account::new(
                "a",
                AccountLimits {
                    tokens,
                    ..AccountLimits::default()
                },
            );
            let payer = Payer::new(account.clone());
            let texts = (0..texts).map(|n| format!("text {n}").into()).collect();
            let mut reply = pin!(embedder.embed_all(texts, &payer));
            let reply = match reply.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(reply) => reply.map(|v| v.to_json_string()).map_err(|e| e.to_string()),
                Poll::Pending => panic!("a script answers at once"),
            };
            (reply, fetch.calls(), account.usage().spent.tokens)
        };
        let two = r#"{"data": [{"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1]}], "usage": {"prompt_tokens": 9}}"#;
        let (reply, calls, paid) = ask(two, 2, 100, Some(1_000));
        assert_eq!(
            (reply.unwrap().as_str(), calls.len(), paid),
            ("[[1],[2]]", 1, 9)
        );
        let body = calls[0][1].to_json_string();
        assert!(
            body.ends_with(r#""body":{"model":"mini","input":["text 0","text 1"]}}"#),
            "{body}"
        );
        // Up to the service's limit, then the next request.
        let (reply, calls, paid) = ask(two, 6, 2, None);
        assert_eq!(
            (reply.unwrap().as_str(), calls.len(), paid),
            ("[[1],[2],[1],[2],[1],[2]]", 3, 27)
        );
        let (reply, calls, _) = ask(two, 0, 2, None);
        assert_eq!((reply.unwrap().as_str(), calls.len()), ("[]", 0));
        // The whole request is paid before it is sent.
        let (reply, calls, _) = ask(two, 2, 2, Some(3));
        assert!(reply.is_err() && calls.is_empty());
        for (answer, error) in [
            (two, "gave 2 vectors for 3 texts"),
            (
                r#"{"data": [{"embedding": [1]}, {"index": 0, "embedding": [1]}, {"embedding": [1]}]}"#,
                "without an order",
            ),
            (
                r#"{"data": [{"index": 0, "embedding": [1]}, {"index": 0.5, "embedding": [1]}, {"index": 2, "embedding": [1]}]}"#,
                "without an order",
            ),
            (
                r#"{"data": [{"embedding": [1]}, {"embedding": [1, 2]}, {"embedding": [1]}]}"#,
                "several lengths",
            ),
            (
                r#"{"data": [{"embedding": [1]}, {"embedding": null}, {"embedding": [1]}]}"#,
                "no vector",
            ),
        ] {
            let (reply, calls, _) = ask(answer, 3, 100, None);
            let found = reply.unwrap_err();
            assert!(
                found.contains(error) && calls.len() == 1,
                "{answer}: {found}"
            );
        }
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
            let limits = a99_run::account::AccountLimits {
                tokens,
                money: money.and_then(a99_run::account::Money::from_units),
                ..a99_run::account::AccountLimits::default()
            };
            a99_run::account::Account::new("a", limits)
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
        // Failed requests were sent too; the rest of 40 pays for two.
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
                money: a99_run::account::Money::from_micro(usage.total()),
                ..Cost::default()
            })
        });
        let asked: usize = (0..5)
            .map(|_| ask("{}", &payer, Some(price.clone())).1)
            .sum();
        assert_eq!((asked, money.usage().spent.money.micro()), (1, 20));
    }
}
