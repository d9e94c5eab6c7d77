//! Services, roles and models of a configuration.

use crate::config::{ModelConfig, ServiceConfig};
use crate::error::{ModelCode, ModelError};
use crate::limiter::Limiter;
use crate::redact::shown;
use crate::wire::{Wire, parse, told};
use a99_capabilities::Secret;
use a99_capabilities::ai::{AiCode, AiError, DEFAULT_ROLE, TextRequest};
use a99_core::diag::suggest;
use a99_core::value::Map;
use a99_http::{FetchCode, FetchError, StreamRequest, rule_for};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The roles that every provider has. One without models uses the models of the first in this
/// order that has some.
pub(crate) const ROLES: [&str; 4] = [DEFAULT_ROLE, "smart", "fast", "code"];

/// Maximum bytes of an answer's body: an event has several hundred for a token.
pub(crate) const MAX_BODY_BYTES: usize = 64 << 20;

/// Maximum bytes of a list of models.
const MAX_LIST_BYTES: usize = 4 << 20;

/// A configured service.
pub(crate) struct Service {
    pub(crate) name: String,
    pub(crate) config: ServiceConfig,
    /// The base address, without the path of the wire format.
    base: String,
    /// The query string of the address, such as Azure's `api-version`.
    query: Option<String>,
    /// The service's name for the maximum tokens, if it differs from the usual one.
    pub(crate) max_tokens_name: Option<String>,
    models: BTreeSet<String>,
    /// The rate limiter, if there are limits.
    pub(crate) limiter: Option<Arc<Limiter>>,
}

/// OpenAI's service. Its newer models take the maximum tokens under a different name, at Azure
/// too.
const OPENAI: &str = "api.openai.com:443";

/// Mistral's services, which speak OpenAI's wire format except for the name of the seed.
const MISTRAL: [&str; 2] = ["api.mistral.ai:443", "codestral.mistral.ai:443"];

impl Service {
    fn new(name: &str, config: ServiceConfig) -> Result<Service, ModelError> {
        let wrong =
            |code, text: String| Err(ModelError::new(code, format!("services.{name}{text}")));
        if name.is_empty() || name.contains('/') || name.chars().any(char::is_control) {
            let text = ": the name of a service has no `/` and is not empty";
            return wrong(ModelCode::Service, text.to_owned());
        }
        if let Err(error) = rule_for(&config.url) {
            return wrong(ModelCode::Url, format!(".url: {error}"));
        }
        let (base, query) = match config.url.trim().split_once('?') {
            Some((base, query)) => (base, Some(query.to_owned())),
            None => (config.url.trim(), None),
        };
        let base = base.trim_end_matches('/');
        let path = base.split_once("://").map_or("", |(_, rest)| rest);
        let version = match path.contains('/') {
            true => "",
            false => config.wire.protocol().version(),
        };
        if config.url.contains('#') {
            let text = ".url: the address of a service has no `#`";
            return wrong(ModelCode::Url, text.to_owned());
        }
        let secret = query
            .iter()
            .flat_map(|query| query.split('&'))
            .find(|pair| {
                let name = pair.split('=').next().unwrap_or_default();
                let name = name.to_ascii_lowercase();
                name.contains("key") || name.contains("token") || name.contains("secret")
            });
        if let Some(pair) = secret {
            let name = pair.split('=').next().unwrap_or_default();
            let text = format!(".url: `{name}` is a key: name its variable in `key-env`");
            return wrong(ModelCode::Url, text);
        }
        let base = format!("{base}{version}");
        let is_openai = rule_for(&base).is_ok_and(|rule| rule == OPENAI);
        let is_newer = is_openai || (is_azure(&base) && takes_newer_name(query.as_deref()));
        let newer = is_newer && config.wire == Wire::OpenAi;
        let newer = newer.then(|| "max_completion_tokens".to_owned());
        for (key, zero) in [
            ("requests-per-minute", config.requests_per_minute == Some(0)),
            ("tokens-per-minute", config.tokens_per_minute == Some(0)),
        ] {
            if zero {
                let text = format!(".{key}: with 0 nothing would ever be sent");
                return wrong(ModelCode::Limit, text);
            }
        }
        if config.prompt_cache && config.wire != Wire::Anthropic {
            let wire = config.wire.name();
            let text = format!(
                ".prompt-cache: only the wire `anthropic` has it; services of `{wire}` keep \
                 prompts by themselves"
            );
            return wrong(ModelCode::Service, text);
        }
        let service = Service {
            limiter: Limiter::shared(&base, &config),
            name: name.to_owned(),
            base,
            query,
            max_tokens_name: config.max_tokens_name.clone().or(newer),
            models: config.models.iter().cloned().collect(),
            config,
        };
        match service.request("model", Vec::new()).check() {
            Ok(()) => Ok(service),
            Err(error)
                if error.code() == FetchCode::Credentials && service.config.key.is_some() =>
            {
                wrong(ModelCode::Key, format!(".key: {error}"))
            }
            Err(error) if error.code() == FetchCode::Header => {
                wrong(ModelCode::Key, format!(".key-header: {error}"))
            }
            Err(error) => wrong(ModelCode::Url, format!(".url: {error}")),
        }
    }

    /// The address of a request to a model.
    pub(crate) fn url(&self, model: &str) -> String {
        let protocol = self.config.wire.protocol();
        let url = protocol.address(&self.base, model, self.config.stream);
        self.with_query(url)
    }

    fn with_query(&self, url: String) -> String {
        match &self.query {
            None => url,
            Some(query) if url.contains('?') => format!("{url}&{query}"),
            Some(query) => format!("{url}?{query}"),
        }
    }

    /// Whether the service may write prompts to a cache.
    pub(crate) fn writes_cache(&self) -> bool {
        self.config.prompt_cache || self.config.extra.contains_key("cache_control")
    }

    /// Renames members of a body for the service: Mistral refuses `seed`.
    pub(crate) fn rename(&self, body: &mut Map) {
        let is_mistral = rule_for(&self.base).is_ok_and(|rule| MISTRAL.contains(&&*rule));
        if is_mistral && let Some(seed) = body.remove("seed") {
            body.insert("random_seed", seed);
        }
    }

    /// A request to a model with this body.
    pub(crate) fn request(&self, model: &str, body: Vec<u8>) -> StreamRequest {
        let accepted = match self.config.stream {
            true => "text/event-stream, application/json",
            false => "application/json",
        };
        let request = StreamRequest::post(self.url(model), body)
            .header("content-type", "application/json")
            .header("accept", accepted)
            .max_body_bytes(MAX_BODY_BYTES);
        self.keyed(request)
    }

    /// A request for the list of the service's models.
    pub(crate) fn list_request(&self) -> StreamRequest {
        // Azure lists the models of a resource next to its deployments.
        let base = self
            .base
            .split("/deployments/")
            .next()
            .unwrap_or(&self.base);
        let request = StreamRequest::get(self.with_query(format!("{base}/models")))
            .header("accept", "application/json")
            .max_body_bytes(MAX_LIST_BYTES);
        self.keyed(request)
    }

    /// Adds the headers of the wire format and the key.
    fn keyed(&self, mut request: StreamRequest) -> StreamRequest {
        let protocol = self.config.wire.protocol();
        for (name, value) in protocol.headers() {
            request = request.header(*name, *value);
        }
        if let Some(key) = &self.config.key {
            let own = self.config.key_header.as_deref();
            let azure = is_azure(&self.base).then_some("api-key");
            let name = own.or(azure).unwrap_or_else(|| protocol.key_header());
            let value = match name.eq_ignore_ascii_case("authorization") {
                true => Secret::new(format!("Bearer {}", key.expose())),
                false => key.clone(),
            };
            request = request.credential(name, value);
        }
        request
    }

    /// A text of the service or the network, without the key.
    fn shown(&self, text: &str) -> String {
        shown(text, self.config.key.as_ref())
    }

    /// The error for a status from 400 on and its body.
    pub(crate) fn refused(&self, status: u16, body: &[u8]) -> AiError {
        let body = String::from_utf8_lossy(body);
        let error = match parse(&body) {
            Some(value) => told(&value, Some(status)),
            None => AiError::new(AiCode::of_status(status), body),
        };
        let (service, message) = (&self.name, self.shown(&error.message));
        let text = match message.is_empty() {
            true => format!("the model service `{service}` answers with {status}"),
            false => format!("the model service `{service}` answers with {status}: {message}"),
        };
        AiError::new(error.code, text).retry_after(error.retry_after)
    }

    /// Adds the service's name to an error.
    pub(crate) fn named(&self, error: AiError) -> AiError {
        let (service, message) = (&self.name, self.shown(&error.message));
        let text = match message.is_empty() {
            true => format!("the model service `{service}` ends its answer with an error"),
            false => format!("the model service `{service}`: {message}"),
        };
        AiError::new(error.code, text).retry_after(error.retry_after)
    }

    /// The error for a failed connection.
    pub(crate) fn failed(&self, error: &FetchError) -> AiError {
        let code = match error.code() {
            FetchCode::Denied | FetchCode::Scheme | FetchCode::Quota | FetchCode::Revoked => {
                AiCode::Denied
            }
            FetchCode::Resolve
            | FetchCode::Connect
            | FetchCode::Timeout
            | FetchCode::Tls
            | FetchCode::NoRoots
            | FetchCode::CaFile => AiCode::Unreachable,
            FetchCode::Closed => AiCode::CutOff,
            FetchCode::BodyTooLarge => AiCode::TooLarge,
            FetchCode::Protocol
            | FetchCode::HeaderTooLarge
            | FetchCode::Encoding
            | FetchCode::Redirect
            | FetchCode::Status
            | FetchCode::Json => AiCode::Malformed,
            FetchCode::Runtime => AiCode::Unavailable,
            FetchCode::Input
            | FetchCode::Url
            | FetchCode::Credentials
            | FetchCode::Method
            | FetchCode::Header
            | FetchCode::Body => AiCode::Invalid,
        };
        let (service, why) = (&self.name, self.shown(&error.to_string()));
        AiError::new(code, format!("the model service `{service}`: {why}"))
    }
}

/// Whether Azure takes `max_completion_tokens` at an address with this query: all versions of
/// its API from September 2024 on do. Earlier versions have no model that needs it.
fn takes_newer_name(query: Option<&str>) -> bool {
    let version = query
        .into_iter()
        .flat_map(|query| query.split('&'))
        .find_map(|pair| pair.strip_prefix("api-version="));
    version.is_none_or(|version| version >= "2024-09" || !version.starts_with("20"))
}

/// Whether an address is one of Azure, which takes keys in a different header.
fn is_azure(base: &str) -> bool {
    let host = base
        .split("://")
        .nth(1)
        .and_then(|rest| rest.split(['/', ':']).next());
    let host = host.unwrap_or_default().to_ascii_lowercase();
    let domains = [
        ".openai.azure.com",
        ".cognitiveservices.azure.com",
        ".services.ai.azure.com",
    ];
    domains.iter().any(|domain| host.ends_with(domain))
}

/// A model of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Model {
    /// The service's index.
    pub(crate) service: usize,
    pub(crate) name: String,
}

/// Services and roles.
pub(crate) struct Directory {
    pub(crate) services: Vec<Service>,
    roles: BTreeMap<String, Vec<Model>>,
}

impl Directory {
    pub(crate) fn new(config: &ModelConfig) -> Result<Directory, ModelError> {
        let services = config.services.iter();
        let services = services.map(|(name, service)| Service::new(name, service.clone()));
        let services: Vec<Service> = services.collect::<Result<_, _>>()?;
        if services.is_empty() {
            let text = "there is no service: name one under `services`";
            return Err(ModelError::new(ModelCode::Service, text));
        }
        let mut directory = Directory {
            services,
            roles: BTreeMap::new(),
        };
        for (role, models) in &config.roles {
            let read = models.iter().map(|id| directory.model(role, id));
            let read: Vec<Model> = read.collect::<Result<_, _>>()?;
            if read.is_empty() || role.is_empty() {
                let text = format!("roles.{role}: a role has a name and at least one model");
                return Err(ModelError::new(ModelCode::Role, text));
            }
            for model in &read {
                directory.services[model.service]
                    .models
                    .insert(model.name.clone());
            }
            directory.roles.insert(role.clone(), read);
        }
        if !ROLES.iter().any(|role| directory.roles.contains_key(*role)) {
            let text = format!("no role has a model: name one under `roles.{DEFAULT_ROLE}`");
            return Err(ModelError::new(ModelCode::Role, text));
        }
        Ok(directory)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.services.iter().map(|service| service.name.as_str())
    }

    /// The model of a role's list.
    fn model(&self, role: &str, id: &str) -> Result<Model, ModelError> {
        let wrong =
            |text: String| ModelError::new(ModelCode::Role, format!("roles.{role}: {text}"));
        let Some((service, name)) = id.split_once('/').filter(|(_, name)| !name.is_empty()) else {
            return Err(wrong(format!("`{id}` is not SERVICE/MODEL")));
        };
        let place = self.names().position(|known| known == service);
        let service = place.ok_or_else(|| {
            let near = suggest(service, self.names());
            let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
            let known = self.names().collect::<Vec<_>>().join(", ");
            wrong(format!(
                "no service is called `{service}`; {near}known are {known}"
            ))
        })?;
        Ok(Model {
            service,
            name: name.to_owned(),
        })
    }

    /// `SERVICE/MODEL`.
    pub(crate) fn id(&self, model: &Model) -> String {
        format!("{}/{}", self.services[model.service].name, model.name)
    }

    /// The models of a role. A role of [`ROLES`] without models uses those of the first that
    /// has some.
    fn of_role(&self, role: &str) -> Option<&[Model]> {
        let own = self.roles.get(role);
        let other = || ROLES.iter().find_map(|other| self.roles.get(*other));
        let found = own.or_else(|| ROLES.contains(&role).then(other).flatten());
        found.map(Vec::as_slice)
    }

    /// The models of a service that roles name.
    pub(crate) fn wanted(&self, service: usize) -> BTreeSet<String> {
        let models = self.roles.values().flatten();
        let models = models.filter(|model| model.service == service);
        models.map(|model| model.name.clone()).collect()
    }

    /// The models that roles and services name, as `SERVICE/MODEL`.
    pub(crate) fn reached(&self) -> impl Iterator<Item = String> + '_ {
        self.services.iter().flat_map(|service| {
            let models = service.models.iter();
            models.map(|model| format!("{}/{model}", service.name))
        })
    }

    /// All roles, each with its first model.
    pub(crate) fn list(&self) -> BTreeMap<String, String> {
        let own = self.roles.keys().map(String::as_str);
        let roles: BTreeSet<&str> = own.chain(ROLES).collect();
        let first = |role: &str| self.of_role(role)?.first().map(|model| self.id(model));
        let roles = roles.into_iter();
        roles
            .filter_map(|role| Some((role.to_owned(), first(role)?)))
            .collect()
    }

    /// The models that may answer a request, best first.
    pub(crate) fn candidates(&self, request: &TextRequest) -> Result<Vec<Model>, AiError> {
        if let Some(model) = &request.model {
            return self.named(model).map(|model| vec![model]);
        }
        let role = request.role.as_deref().unwrap_or(DEFAULT_ROLE);
        self.of_role(role).map(<[Model]>::to_vec).ok_or_else(|| {
            let known: Vec<String> = self.list().into_keys().collect();
            let near = suggest(role, known.iter().map(String::as_str));
            let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
            let (role, known) = (a99_core::diag::excerpt(role), known.join(", "));
            let text = format!("no model has the role `{role}`; {near}known are {known}");
            AiError::new(AiCode::UnknownRole, text)
        })
    }

    /// The model that a request names: `SERVICE/MODEL`, or `MODEL` if only one service has it.
    fn named(&self, id: &str) -> Result<Model, AiError> {
        let may = |service: usize, name: &str| {
            let Service { config, models, .. } = &self.services[service];
            !name.is_empty() && (config.any_model || models.contains(name))
        };
        let full = id.split_once('/').and_then(|(service, name)| {
            let service = self.names().position(|known| known == service)?;
            may(service, name).then_some((service, name))
        });
        let alone = || {
            let mut having = (0..self.services.len()).filter(|service| may(*service, id));
            having
                .next()
                .filter(|_| having.next().is_none())
                .map(|service| (service, id))
        };
        let Some((service, name)) = full.or_else(alone) else {
            let known = self.services.iter().flat_map(|service| {
                let models = service.models.iter();
                models.map(|model| format!("{}/{model}", service.name))
            });
            /// Maximum names in an error.
            const MAX_NAMED: usize = 20;
            let known: Vec<String> = known.take(MAX_NAMED).collect();
            let near = suggest(id, known.iter().map(String::as_str));
            let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
            let (id, known) = (a99_core::diag::excerpt(id), known.join(", "));
            let text = format!("there is no model `{id}`; {near}known are {known}");
            return Err(AiError::new(AiCode::UnknownModel, text));
        };
        Ok(Model {
            service,
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t6_mistral_has_its_own_name_for_the_seed() {
        for (url, expected) in [
            ("https://api.mistral.ai/v1", r#"{"a":1,"random_seed":7}"#),
            (
                "https://codestral.mistral.ai/v1",
                r#"{"a":1,"random_seed":7}"#,
            ),
            ("https://api.openai.com/v1", r#"{"seed":7,"a":1}"#),
            ("https://api.mistral.ai.example/v1", r#"{"seed":7,"a":1}"#),
        ] {
            let service = Service::new("a", ServiceConfig::new(Wire::OpenAi, url)).unwrap();
            let mut body = Map::new();
            body.insert("seed", 7.0);
            body.insert("a", 1.0);
            service.rename(&mut body);
            let sent = a99_core::value::Value::Object(body).to_json_string();
            assert_eq!(sent, expected, "{url}");
        }
    }

    #[test]
    fn addresses_become_urls() {
        for (wire, url, expected, name) in [
            (
                Wire::OpenAi,
                "http://localhost:1234",
                "http://localhost:1234/v1/chat/completions",
                None,
            ),
            (
                Wire::OpenAi,
                "http://localhost:1234/",
                "http://localhost:1234/v1/chat/completions",
                None,
            ),
            (
                Wire::OpenAi,
                "http://localhost:1234/api/v2/",
                "http://localhost:1234/api/v2/chat/completions",
                None,
            ),
            (
                Wire::Anthropic,
                "https://api.anthropic.com",
                "https://api.anthropic.com/v1/messages",
                None,
            ),
            (
                Wire::OpenAi,
                "https://api.openai.com/v1",
                "https://api.openai.com/v1/chat/completions",
                Some("max_completion_tokens"),
            ),
            (
                Wire::Responses,
                "https://api.openai.com/v1",
                "https://api.openai.com/v1/responses",
                None,
            ),
            (
                Wire::Gemini,
                "https://generativelanguage.googleapis.com",
                "https://generativelanguage.googleapis.com/v1beta/models/m%2F1:streamGenerateContent?alt=sse",
                None,
            ),
            (
                Wire::OpenAi,
                "https://a.openai.azure.com/openai/deployments/gpt-4o?api-version=2024-10-21",
                "https://a.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21",
                Some("max_completion_tokens"),
            ),
            // Before that name was known.
            (
                Wire::OpenAi,
                "https://a.openai.azure.com/openai/deployments/gpt-4o?api-version=2024-06-01",
                "https://a.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=2024-06-01",
                None,
            ),
            (
                Wire::OpenAi,
                "https://a.openai.azure.com/openai/v1?api-version=preview",
                "https://a.openai.azure.com/openai/v1/chat/completions?api-version=preview",
                Some("max_completion_tokens"),
            ),
            (
                Wire::OpenAi,
                "https://a.services.ai.azure.com/openai/v1",
                "https://a.services.ai.azure.com/openai/v1/chat/completions",
                Some("max_completion_tokens"),
            ),
            (
                Wire::Responses,
                "https://a.openai.azure.com/openai/v1",
                "https://a.openai.azure.com/openai/v1/responses",
                None,
            ),
            (
                Wire::OpenAi,
                "https://a.openai.azure.com/openai/deployments/{model}/?api-version=2024-10-21",
                "https://a.openai.azure.com/openai/deployments/m%2F1/chat/completions?api-version=2024-10-21",
                Some("max_completion_tokens"),
            ),
        ] {
            let service = Service::new("a", ServiceConfig::new(wire, url)).unwrap();
            assert_eq!(service.url("m/1"), expected);
            assert_eq!(service.max_tokens_name.as_deref(), name, "{url}");
        }
        for (url, code) in [
            ("localhost:1234", ModelCode::Url),
            ("http://", ModelCode::Url),
            ("http://a/?key=1", ModelCode::Url),
            ("http://a/?api-version=1&access_token=1", ModelCode::Url),
            ("http://a/#b", ModelCode::Url),
            ("http://user@a/", ModelCode::Url),
        ] {
            let error = Service::new("a", ServiceConfig::new(Wire::OpenAi, url));
            assert_eq!(error.err().map(|error| error.code()), Some(code), "{url}");
        }
    }
}
