//! Audit of a service: which of its models chat, embed, answer by a schema, and accept images.
//!
//! A service such as LM Studio lists models of every kind under names that reveal little. The
//! audit asks each for a token. That may load the model, so the findings are worth storing.

use crate::wire::{map, parse};
use a99_capabilities::Fetch;
use a99_core::value::{Map, Value};
use std::time::Duration;
use tokio::time::timeout;

/// Timeout of one question: the service may have to load the model.
const QUESTION: Duration = Duration::from_secs(60);

/// How long findings stay valid, in milliseconds: a day.
const HOLDS_MS: f64 = 24.0 * 3600.0 * 1000.0;

/// The version of the questions. Findings of other versions are invalid.
const VERSION: f64 = 1.0;

/// Maximum audited models.
const MAX_MODELS: usize = 1_000;

/// A red square.
const IMAGE: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAJ0lEQVR42u3NsQkAAAjAsP7/tF7hIASyp6lTCQQCgUAgEAgEgi/BAjLD/C5w/SM9AAAAAElFTkSuQmCC";

/// The kind of a model.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ModelKind {
    /// It chats.
    Chat,
    /// It embeds texts.
    Embedding,
    /// It answered neither question.
    Unknown,
}

impl ModelKind {
    /// All kinds.
    pub const ALL: &'static [ModelKind] =
        &[ModelKind::Chat, ModelKind::Embedding, ModelKind::Unknown];

    /// The kind as text.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ModelKind::Chat => "chat",
            ModelKind::Embedding => "embedding",
            ModelKind::Unknown => "unknown",
        }
    }
}

/// The findings about a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFinding {
    /// The model's id.
    pub id: String,
    /// The kind of the model.
    pub kind: ModelKind,
    /// Whether its answers conform to a schema.
    pub has_schemas: bool,
    /// Whether it accepts images.
    pub has_vision: bool,
    /// The dimension of its embeddings.
    pub dimension: Option<usize>,
}

/// The findings about a service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Audit {
    /// The service's address.
    pub url: String,
    /// The time of the audit in milliseconds since 1970.
    pub at_ms: f64,
    /// The service's models, by id.
    pub models: Vec<ModelFinding>,
}

impl Audit {
    /// Audits the models of a service that speaks OpenAI's wire format, one after another,
    /// unless `before` is still valid: it has the same address and models and is at most a day
    /// old. An unreachable service keeps the models of `before`, or has none.
    ///
    /// `now_ms` is the current time in milliseconds since 1970.
    pub async fn new(fetch: &dyn Fetch, url: &str, now_ms: f64, before: Option<Audit>) -> Audit {
        let url = url.trim_end_matches('/');
        let before = before.filter(|before| before.url == url);
        let Some(ids) = ids(fetch, url).await else {
            return before.unwrap_or_else(|| Audit::empty(url, now_ms));
        };
        if let Some(before) = before {
            let age = now_ms - before.at_ms;
            let same = before.models.iter().map(|model| &model.id).eq(&ids);
            if same && (0.0..=HOLDS_MS).contains(&age) {
                return before;
            }
        }
        let mut audit = Audit::empty(url, now_ms);
        for id in ids {
            audit.models.push(finding(fetch, url, id).await);
        }
        audit
    }

    fn empty(url: &str, at_ms: f64) -> Audit {
        Audit {
            url: url.to_owned(),
            at_ms,
            models: Vec::new(),
        }
    }

    /// The first model that chats.
    #[must_use]
    pub fn chat(&self) -> Option<&ModelFinding> {
        self.models
            .iter()
            .find(|model| model.kind == ModelKind::Chat)
    }

    /// The first model that embeds texts.
    #[must_use]
    pub fn embedding(&self) -> Option<&ModelFinding> {
        self.models
            .iter()
            .find(|model| model.kind == ModelKind::Embedding)
    }

    /// The first model that chats and whose answers conform to a schema.
    #[must_use]
    pub fn schemas(&self) -> Option<&ModelFinding> {
        let mut models = self.models.iter();
        models.find(|model| model.kind == ModelKind::Chat && model.has_schemas)
    }

    /// The audit as data, for storage.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let models = self.models.iter().map(|model| {
            let mut entry = Map::new();
            entry.insert("id", model.id.as_str());
            entry.insert("kind", model.kind.name());
            entry.insert("schemas", model.has_schemas);
            entry.insert("vision", model.has_vision);
            if let Some(dimension) = model.dimension {
                entry.insert("dimension", dimension as f64);
            }
            Value::Object(entry)
        });
        map([
            ("version", VERSION.into()),
            ("url", self.url.as_str().into()),
            ("at", self.at_ms.into()),
            ("models", models.collect::<Vec<Value>>().into()),
        ])
    }

    /// Reads a stored audit; `None` for invalid data or another version.
    #[must_use]
    pub fn from_value(value: &Value) -> Option<Audit> {
        if value.get("version")?.as_f64()? != VERSION {
            return None;
        }
        let model = |entry: &Value| {
            let kind = entry.get("kind")?.as_str()?;
            let dimension = entry.get("dimension").and_then(Value::as_f64);
            Some(ModelFinding {
                id: entry.get("id")?.as_str()?.to_owned(),
                kind: *ModelKind::ALL.iter().find(|known| known.name() == kind)?,
                has_schemas: entry.get("schemas")?.as_bool()?,
                has_vision: entry.get("vision")?.as_bool()?,
                dimension: dimension.map(|dimension| dimension as usize),
            })
        };
        Some(Audit {
            url: value.get("url")?.as_str()?.to_owned(),
            at_ms: value.get("at")?.as_f64()?,
            models: value
                .get("models")?
                .as_array()?
                .iter()
                .map(model)
                .collect::<Option<_>>()?,
        })
    }
}

/// The body of an answer with a status from 200 to 299, or any other status.
async fn ask(fetch: &dyn Fetch, url: String, body: Option<Value>) -> Result<Value, Option<u16>> {
    let mut options = Map::new();
    options.insert("responseType", "response");
    if let Some(body) = body {
        options.insert("method", "POST");
        options.insert("body", body);
    }
    let asked = fetch.fetch(url.into(), options.into());
    let Ok(Ok(answer)) = timeout(QUESTION, asked).await else {
        return Err(None);
    };
    let status = answer
        .get("status")
        .and_then(Value::as_f64)
        .unwrap_or_default();
    match (200.0..300.0).contains(&status) {
        true => Ok(answer.get("body").cloned().unwrap_or(Value::Undefined)),
        false => Err(Some(status as u16)),
    }
}

/// The models of a service, sorted; `None` if it is unreachable.
async fn ids(fetch: &dyn Fetch, url: &str) -> Option<Vec<String>> {
    let listed = ask(fetch, format!("{url}/models"), None).await.ok()?;
    let mut ids = crate::probe::ids(&listed, MAX_MODELS)?;
    ids.sort_unstable();
    ids.dedup();
    Some(ids)
}

async fn finding(fetch: &dyn Fetch, url: &str, id: String) -> ModelFinding {
    let talk = |content: Value, tokens: f64, format: Option<Value>| {
        let message = map([("role", "user".into()), ("content", content)]);
        let mut body = Map::new();
        body.insert("model", id.as_str());
        body.insert("messages", vec![message]);
        body.insert("max_tokens", tokens);
        if let Some(format) = format {
            body.insert("response_format", format);
        }
        let url = format!("{url}/chat/completions");
        async move { ask(fetch, url, Some(body.into())).await }
    };
    let chats = talk("hi".into(), 1.0, None).await.is_ok();
    let embeds = map([("model", id.as_str().into()), ("input", "test".into())]);
    let vector = ask(fetch, format!("{url}/embeddings"), Some(embeds)).await;
    let dimension = vector.ok().and_then(|answer| {
        let first = answer.get("data")?.as_array()?.first()?;
        let vector = first.get("embedding")?.as_array()?;
        (!vector.is_empty()).then_some(vector.len())
    });
    let (mut has_schemas, mut has_vision) = (false, false);
    if chats {
        let answer = talk("Give the number 1.".into(), 20.0, Some(format())).await;
        has_schemas = answer.is_ok_and(|answer| is_json(&answer));
        let image = map([("url", IMAGE.into())]);
        let parts = vec![
            map([("type", "text".into()), ("text", "Which color?".into())]),
            map([("type", "image_url".into()), ("image_url", image)]),
        ];
        has_vision = talk(parts.into(), 10.0, None).await.is_ok();
    }
    ModelFinding {
        kind: match (chats, dimension) {
            (true, _) => ModelKind::Chat,
            (false, Some(_)) => ModelKind::Embedding,
            (false, None) => ModelKind::Unknown,
        },
        dimension,
        has_schemas,
        has_vision,
        id,
    }
}

/// A schema that every model can follow.
fn format() -> Value {
    let number = map([("type", "number".into())]);
    let schema = map([
        ("type", "object".into()),
        ("properties", map([("n", number)])),
        ("required", vec!["n".into()].into()),
        ("additionalProperties", false.into()),
    ]);
    let inner = map([
        ("name", "number".into()),
        ("strict", true.into()),
        ("schema", schema),
    ]);
    map([("type", "json_schema".into()), ("json_schema", inner)])
}

/// Whether the content of an answer is JSON.
fn is_json(answer: &Value) -> bool {
    let content = answer.pointer("/choices/0/message/content");
    content
        .and_then(Value::as_str)
        .is_some_and(|text| parse(text).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use a99_capabilities::{CapabilityError, Reply};
    use std::sync::Mutex;

    /// A service with a model of each kind.
    #[derive(Default)]
    struct Service {
        asked: Mutex<Vec<String>>,
        is_gone: bool,
    }

    fn value(json: &str) -> Value {
        parse(json).unwrap()
    }

    impl Service {
        fn answer(&self, url: &str, body: Option<&Value>) -> (u16, Value) {
            let model = body
                .and_then(|body| body.get("model")?.as_str())
                .unwrap_or_default();
            let json = body.map(Value::to_json_string).unwrap_or_default();
            let wants_schema = json.contains("json_schema");
            let place = url
                .strip_prefix("http://127.0.0.1:1234/v1")
                .unwrap_or_default();
            self.asked.lock().unwrap().push(format!("{place} {model}"));
            let said = |text: &str| {
                let message = map([("content", text.into())]);
                let choices = vec![map([("message", message)])];
                (200, map([("choices", choices.into())]))
            };
            match (place, model) {
                ("/models", _) => (
                    200,
                    value(
                        r#"{"data":[{"id":"see"},{"id":"chat"},{"id":"vectors"},{"id":"odd"},{"id":"chat"},{}]}"#,
                    ),
                ),
                ("/chat/completions", "chat") if wants_schema => said("{\"n\": 1}"),
                ("/chat/completions", "chat") if json.contains("image_url") => (400, Value::Null),
                ("/chat/completions", "see") if wants_schema => said("Sure: 1"),
                ("/chat/completions", "chat" | "see") => said("a"),
                ("/embeddings", "vectors") => (200, value(r#"{"data":[{"embedding":[1,2,3]}]}"#)),
                ("/embeddings", "odd") => (200, value(r#"{"data":[{"embedding":[]}]}"#)),
                _ => (404, Value::Null),
            }
        }
    }

    impl Fetch for Service {
        fn fetch(&self, url: Value, options: Value) -> Reply<'_> {
            Box::pin(async move {
                if self.is_gone {
                    return Err(CapabilityError::new("no connection"));
                }
                let (status, body) = self.answer(url.as_str().unwrap(), options.get("body"));
                Ok(map([("status", f64::from(status).into()), ("body", body)]))
            })
        }
    }

    const URL: &str = "http://127.0.0.1:1234/v1";

    #[tokio::test]
    async fn models_are_told_by_what_they_answer() {
        let service = Service::default();
        let audit = Audit::new(&service, &format!("{URL}/"), 1e12, None).await;
        let found: Vec<String> = audit
            .models
            .iter()
            .map(|model| {
                let ModelFinding {
                    id,
                    kind,
                    has_schemas,
                    has_vision,
                    dimension,
                } = model;
                format!(
                    "{id} {} {has_schemas} {has_vision} {dimension:?}",
                    kind.name()
                )
            })
            .collect();
        let expected = [
            "chat chat true false None",
            "odd unknown false false None",
            "see chat false true None",
            "vectors embedding false false Some(3)",
        ];
        assert_eq!(found, expected);
        let id = |model: Option<&ModelFinding>| model.map(|model| model.id.clone()).unwrap();
        assert_eq!(id(audit.chat()), "chat");
        assert_eq!(id(audit.schemas()), "chat");
        assert_eq!(id(audit.embedding()), "vectors");
        // An audit survives a round trip, and invalid data is refused.
        assert_eq!(Audit::from_value(&audit.to_value()), Some(audit.clone()));
        let mut other = audit.to_value();
        if let Value::Object(map) = &mut other {
            map.insert("version", 0.0);
        }
        assert_eq!(Audit::from_value(&other), None);
        assert_eq!(Audit::from_value(&Value::Null), None);
    }

    #[tokio::test]
    async fn an_audit_holds_for_a_day_and_the_same_models() {
        let service = Service::default();
        let first = Audit::new(&service, URL, 1e12, None).await;
        let asked = || service.asked.lock().unwrap().len();
        let all = asked();
        let again = |at, before: &Audit| Audit::new(&service, URL, at, Some(before.clone()));
        assert_eq!(again(1e12 + HOLDS_MS, &first).await, first);
        assert_eq!(asked(), all + 1, "it asks for the list only");
        let mut other = first.clone();
        other.models.pop();
        for (at, before) in [
            (1e12 + HOLDS_MS + 1.0, &first),
            (1e12 - 1.0, &first),
            (1e12, &other),
        ] {
            let count = asked();
            assert_eq!(again(at, before).await.models, first.models);
            assert_eq!(asked(), count + all, "it asks again");
        }
        let gone = Service {
            is_gone: true,
            ..Service::default()
        };
        let at = 1e12 + 9.0 * HOLDS_MS;
        assert_eq!(Audit::new(&gone, URL, at, Some(first.clone())).await, first);
        assert!(Audit::new(&gone, URL, at, None).await.models.is_empty());
        let elsewhere = Audit::new(&gone, "http://127.0.0.1:9/v1", at, Some(first)).await;
        assert!(elsewhere.models.is_empty());
    }
}
