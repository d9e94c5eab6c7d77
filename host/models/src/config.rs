//! Configuration: services, roles, prices, times.

use crate::error::{ModelCode, ModelError};
use crate::price::Price;
use crate::retry::Retries;
use crate::wire::Wire;
use a99_capabilities::Secret;
use a99_core::value::Value;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// What a [`ModelProvider`](crate::ModelProvider) is made of. It can be read with serde, of
/// TOML for instance:
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
    /// The models of roles as `SERVICE/MODEL`, best first: the next one answers when one
    /// before does not work. Roles are `default`, `fast`, `smart`, `code`, and whatever
    /// else requests shall name.
    #[serde(deserialize_with = "roles")]
    pub roles: BTreeMap<String, Vec<String>>,
    /// Prices, by `SERVICE/MODEL`, or `SERVICE/*` for others of the service. Models of public services that are not among them have the
    /// price of [`list_price`](crate::list_price), if the currency is that of the list.
    pub prices: BTreeMap<String, Price>,
    /// The currency of prices and of limits of money; `USD` by default.
    pub currency: Option<String>,
    /// How long to wait.
    pub timeouts: Timeouts,
    /// How often to ask again.
    pub retries: Retries,
    /// Bytes of texts, tools and images of a request, at most; 16 MiB if it is 0.
    pub max_prompt_bytes: usize,
}

/// A service.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServiceConfig {
    /// What it speaks.
    #[serde(default)]
    pub wire: Wire,
    /// Its address, such as `https://api.openai.com/v1`. One without a path gets `/v1`, or
    /// `/v1beta` for `gemini`. `{model}` in it stands for the model's name; what follows `?`
    /// is sent with every request, as Azure's `api-version`.
    pub url: String,
    /// The key. It is sent over TLS, or to an address of the loopback such as
    /// `http://127.0.0.1:1234`.
    #[serde(skip)]
    pub key: Option<Secret>,
    /// The variable that [`ModelConfig::read_keys`] takes the key from.
    #[serde(default)]
    pub key_env: Option<String>,
    /// The header that the key is sent in: `authorization`, as `Bearer KEY`, for `openai`,
    /// `x-api-key` for `anthropic`, `x-goog-api-key` for `gemini`, `api-key` at Azure.
    #[serde(default)]
    pub key_header: Option<String>,
    /// Whether answers are asked for as events; without them nothing comes before all does.
    #[serde(default = "yes")]
    pub stream: bool,
    /// Models that requests may name beside those of roles.
    #[serde(default)]
    pub models: Vec<String>,
    /// Whether requests may name any model of the service.
    #[serde(default)]
    pub any_model: bool,
    /// Tokens of an answer, at most, if the request does not say.
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// The name under which the service takes that number, if it is not the usual one.
    #[serde(default)]
    pub max_tokens_name: Option<String>,
    /// Whether the service gets the opaque parts of its answers back with the next request,
    /// such as signed thinking. Without them most services that think refuse the results of
    /// tools; a few refuse the parts.
    #[serde(default = "yes")]
    pub send_opaque: bool,
    /// Whether the service is asked to keep tools, system and the conversation so far in its
    /// cache, which only `anthropic` wants to be asked; others do it by themselves. What is
    /// written to the cache costs more than a prompt ([`Price::written`]), what comes from it
    /// less.
    #[serde(default)]
    pub prompt_cache: bool,
    /// Requests that are sent within any minute, at most. Others wait for their turn.
    #[serde(default)]
    pub requests_per_minute: Option<u32>,
    /// Tokens of requests and answers within any minute, at most: as they are estimated while
    /// a request is under way, and as the service reports them afterwards.
    #[serde(default)]
    pub tokens_per_minute: Option<u64>,
    /// Members that every request's body has beside those that it has anyway.
    #[serde(default)]
    pub extra: BTreeMap<String, Value>,
}

/// How long to wait, in seconds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Timeouts {
    /// For a connection; 10 by default.
    pub connect: f64,
    /// For the first part of an answer; 120 by default.
    pub first_token: f64,
    /// For the next event of an answer; 60 by default.
    pub idle: f64,
    /// For the whole answer, retries and fallbacks included; 600 by default.
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
    /// One model of one service, for every role. What the service speaks follows from its
    /// address: Anthropic's and Gemini's at their own hosts, OpenAI's elsewhere.
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

    /// Takes the keys that services say a variable for, by a function that reads variables,
    /// such as `|name| std::env::var(name).ok()`.
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

    /// What is wrong beside services and roles.
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
