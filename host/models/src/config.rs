//! Configuration: services, roles, prices, timeouts.

use crate::error::{ModelCode, ModelError};
use crate::price::Price;
use crate::retry::Retries;
use crate::wire::Wire;
use a99_capabilities::Secret;
use a99_core::value::Value;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// The configuration of a [`ModelProvider`](crate::ModelProvider). Serde reads it, for example
/// from TOML:
///
/// ```
/// use a99_models::{ModelConfig, ModelProvider, Secret};
///
/// let mut config: ModelConfig = toml::from_str(r#"
///     [services.local]
///     url = "http://localhost:1234/v1"
///
///     [services.claude]
///     wire = "anthropic"
///     url = "https://api.anthropic.com/v1"
///     key-env = "ANTHROPIC_API_KEY"
///
///     [roles]
///     default = "local/qwen3-8b"
///     smart = ["claude/claude-sonnet-4-5", "local/qwen3-32b"]
///
///     [prices."claude/claude-sonnet-4-5"]
///     prompt = 3.0
///     cached = 0.3
///     completion = 15.0
/// "#)?;
/// # let variable = |_: &str| Some("sk-0".to_owned());
/// config.read_keys(variable)?;
/// let provider = ModelProvider::new(config)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelConfig {
    /// The services, by names without `/`.
    pub services: BTreeMap<String, ServiceConfig>,
    /// The models of roles as `SERVICE/MODEL`, best first: each is the fallback of the ones
    /// before. Roles are `default`, `fast`, `smart`, `code`, and any other name that requests
    /// use.
    #[serde(deserialize_with = "roles")]
    pub roles: BTreeMap<String, Vec<String>>,
    /// Prices by `SERVICE/MODEL`, or `SERVICE/*` for other models of the service. Models of
    /// public services without an entry have the price of [`list_price`](crate::list_price), if
    /// the currency is that of the list.
    pub prices: BTreeMap<String, Price>,
    /// The currency of prices and money limits; `USD` by default.
    pub currency: Option<String>,
    /// Timeouts of requests.
    pub timeouts: Timeouts,
    /// Retries of requests.
    pub retries: Retries,
    /// Maximum bytes of a request's texts, tools and images; 0 means 16 MiB.
    pub max_prompt_bytes: usize,
}

/// The configuration of a service.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServiceConfig {
    /// The wire format.
    #[serde(default)]
    pub wire: Wire,
    /// The address, such as `https://api.openai.com/v1`. An address without a path gets `/v1`,
    /// or `/v1beta` for `gemini`. `{model}` is replaced with the model's name. The query string
    /// after `?` is sent with every request, such as Azure's `api-version`.
    pub url: String,
    /// The key. It is sent over TLS, or to a loopback address such as `http://127.0.0.1:1234`.
    #[serde(skip)]
    pub key: Option<Secret>,
    /// The environment variable from which [`ModelConfig::read_keys`] takes the key.
    #[serde(default)]
    pub key_env: Option<String>,
    /// The header of the key. The default is `authorization`, as `Bearer KEY`, for `openai`,
    /// `x-api-key` for `anthropic`, `x-goog-api-key` for `gemini`, `api-key` for Azure.
    #[serde(default)]
    pub key_header: Option<String>,
    /// Whether to stream answers; otherwise an answer arrives in one piece.
    #[serde(default = "yes")]
    pub stream: bool,
    /// Models that requests may name in addition to those of roles.
    #[serde(default)]
    pub models: Vec<String>,
    /// Whether requests may name any model of the service.
    #[serde(default)]
    pub any_model: bool,
    /// Default maximum tokens of an answer.
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// The service's name for the maximum tokens, if it differs from the usual one.
    #[serde(default)]
    pub max_tokens_name: Option<String>,
    /// Whether to send the opaque parts of answers, such as signed thinking, back with the next
    /// request. Without them most reasoning services refuse tool results; a few services refuse
    /// the parts.
    #[serde(default = "yes")]
    pub send_opaque: bool,
    /// Whether to request prompt caching for tools, system and the conversation so far. Only
    /// `anthropic` needs the request; other services cache automatically. Tokens written to the
    /// cache cost more than a prompt ([`Price::written`]), tokens read from it cost less.
    #[serde(default)]
    pub prompt_cache: bool,
    /// Maximum requests within any minute. Further requests queue.
    #[serde(default)]
    pub requests_per_minute: Option<u32>,
    /// Maximum tokens of requests and answers within any minute: estimated while a request is
    /// in flight, as reported by the service afterwards.
    #[serde(default)]
    pub tokens_per_minute: Option<u64>,
    /// Additional members of every request's body; they replace none.
    #[serde(default)]
    pub extra: BTreeMap<String, Value>,
}

/// Timeouts in seconds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Timeouts {
    /// For a connection; 10 by default.
    pub connect: f64,
    /// For the first part of an answer; 120 by default.
    pub first_token: f64,
    /// For the next event of an answer; 60 by default.
    pub idle: f64,
    /// For the whole answer, including retries and fallbacks; 600 by default.
    pub total: f64,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            connect: 10.0,
            first_token: 120.0,
            idle: 60.0,
            total: 600.0,
        }
    }
}

fn yes() -> bool {
    true
}

/// Models of a role: one, or a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

fn roles<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    let roles: BTreeMap<String, OneOrMore> = BTreeMap::deserialize(from)?;
    let roles = roles.into_iter().map(|(role, models)| match models {
        OneOrMore::One(model) => (role, vec![model]),
        OneOrMore::More(models) => (role, models),
    });
    Ok(roles.collect())
}

impl ServiceConfig {
    /// A service without a key.
    pub fn new(wire: Wire, url: impl Into<String>) -> ServiceConfig {
        ServiceConfig {
            wire,
            url: url.into(),
            key: None,
            key_env: None,
            key_header: None,
            stream: true,
            models: Vec::new(),
            any_model: false,
            max_tokens: None,
            max_tokens_name: None,
            send_opaque: true,
            prompt_cache: false,
            requests_per_minute: None,
            tokens_per_minute: None,
            extra: BTreeMap::new(),
        }
    }
}

/// The name of the only service of [`ModelConfig::single`].
pub const SINGLE: &str = "service";

impl ModelConfig {
    /// One model of one service, for every role. The address determines the wire format:
    /// Anthropic's and Gemini's at their hosts, OpenAI's elsewhere.
    ///
    /// ```
    /// use a99_models::{ModelConfig, ModelProvider, Secret};
    ///
    /// let key = std::env::var("OPENAI_API_KEY").ok().map(Secret::new);
    /// # let key = Some(Secret::new("sk-0"));
    /// let config = ModelConfig::single("https://api.openai.com/v1", "gpt-5", key);
    /// let provider = ModelProvider::new(config)?;
    /// # Ok::<(), a99_models::ModelError>(())
    /// ```
    pub fn single(url: &str, model: &str, key: Option<Secret>) -> ModelConfig {
        let host = url.split("://").nth(1).unwrap_or_default();
        let host = host.split(['/', ':', '?', '#']).next().unwrap_or_default();
        let host = host.to_ascii_lowercase();
        let wire = match &*host {
            "api.anthropic.com" => Wire::Anthropic,
            "generativelanguage.googleapis.com" if !url.contains("/openai") => Wire::Gemini,
            _ => Wire::OpenAi,
        };
        let service = ServiceConfig {
            key,
            ..ServiceConfig::new(wire, url)
        };
        let default = a99_capabilities::ai::DEFAULT_ROLE;
        ModelConfig {
            services: [(SINGLE.to_owned(), service)].into(),
            roles: [(default.to_owned(), vec![format!("{SINGLE}/{model}")])].into(),
            ..ModelConfig::default()
        }
    }

    /// Reads the keys of services that name a variable, with a function such as
    /// `|name| std::env::var(name).ok()`.
    ///
    /// # Errors
    /// [`ModelCode::Key`] if a variable is not set, or is empty.
    pub fn read_keys(
        &mut self,
        mut read: impl FnMut(&str) -> Option<String>,
    ) -> Result<(), ModelError> {
        for (name, service) in &mut self.services {
            let Some(variable) = &service.key_env else {
                continue;
            };
            let key = read(variable).filter(|key| !key.trim().is_empty());
            let Some(key) = key else {
                let text = format!(
                    "services.{name}: the key is to come from the variable {variable}, which is \
                     not set"
                );
                return Err(ModelError::new(ModelCode::Key, text));
            };
            service.key = Some(Secret::new(key.trim()));
        }
        Ok(())
    }

    /// The currency of prices.
    #[must_use]
    pub fn currency(&self) -> &str {
        self.currency.as_deref().unwrap_or(crate::CURRENCY)
    }

    /// Checks the settings outside of services and roles.
    pub(crate) fn check_numbers(&self) -> Result<(), ModelError> {
        /// A day.
        const MAX_SECONDS: f64 = 86_400.0;
        let (times, retries) = (&self.timeouts, &self.retries);
        for (name, value, least) in [
            ("timeouts.connect", times.connect, 0.001),
            ("timeouts.first-token", times.first_token, 0.001),
            ("timeouts.idle", times.idle, 0.001),
            ("timeouts.total", times.total, 0.001),
            ("retries.first-wait", retries.first_wait, 0.0),
            ("retries.longest-wait", retries.longest_wait, 0.0),
        ] {
            if !(least..=MAX_SECONDS).contains(&value) {
                let text = format!("{name}: {value} is not from {least} to {MAX_SECONDS} seconds");
                return Err(ModelError::new(ModelCode::Limit, text));
            }
        }
        let is_letter = |c: char| c.is_ascii_uppercase();
        if self.currency().len() != 3 || !self.currency().chars().all(is_letter) {
            let text = format!(
                "currency: {:?} is not three capital letters such as USD",
                a99_core::diag::excerpt(self.currency())
            );
            return Err(ModelError::new(ModelCode::Price, text));
        }
        for (model, price) in &self.prices {
            price.check().map_err(|(key, value)| {
                let text = format!("prices.{model:?}.{key}: {value} is no price from 0 to 1000000");
                ModelError::new(ModelCode::Price, text)
            })?;
        }
        Ok(())
    }
}
