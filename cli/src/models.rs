//! Language models of a run: the service of `--llm`, or those of `[models]` in the configuration
//! file.

use crate::config::EffectiveConfig;
#[cfg(any(feature = "agent", feature = "models"))]
pub(crate) use crate::config::models::SECTION;
use crate::failure::Failure;
use agent99::Capabilities;

#[cfg(feature = "models")]
mod services {
    use super::{Capabilities, EffectiveConfig, Failure, SECTION};
    use crate::checks::Check;
    use crate::config::models::Section;
    use crate::failure::USAGE;
    use a99_core::diag::{excerpt, suggest};
    #[cfg(feature = "embed")]
    use a99_models::list_price;
    use a99_models::{
        CURRENCY, ModelConfig, ModelError, ModelProvider, Price, SINGLE, Secret, ServiceReport,
    };
    use agent99::capabilities::AiCode;
    use std::sync::Arc;

    /// Name of the check of services.
    const CHECK: &str = "models";

    /// Reads the key of a service.
    fn key(name: &str, from: &str) -> Result<Secret, Failure> {
        match std::env::var(name).map(|key| key.trim().to_owned()) {
            Ok(key) if !key.is_empty() => Ok(Secret::new(key)),
            _ => {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                if name.is_empty() || !name.chars().all(is_name) {
                    // The text may be the key itself.
                    let why =
                        format!("{from}: expected the name of a variable: letters, digits and `_`");
                    let help = "put the key into a variable, `export LLM_KEY=...`, and give its name, `LLM_KEY`";
                    return Err(Failure::coded(USAGE[0], why, help));
                }
                let shown = crate::grants::shown_variable(name);
                let why = format!("{from} {shown}: this variable is not set, or no text");
                let help = "set it, as in `export LLM_KEY=...`, and give its name, `LLM_KEY`";
                Err(Failure::coded(USAGE[0], why, help))
            }
        }
    }

    /// The models of these settings, with or without their keys, and the option or place that
    /// messages name.
    fn chosen(
        config: &EffectiveConfig,
        keys: bool,
    ) -> Result<Option<(ModelConfig, String)>, Failure> {
        let set = &config.set;
        if let (Some(url), Some(model)) = (&set.llm, &set.model) {
            let name = config.named("llm-key-env", 0);
            let variable = set.llm_key_env.as_deref().filter(|_| keys);
            let key = variable.map(|var| key(var, &name));
            let models = ModelConfig::single(url, model, key.transpose()?);
            return Ok(Some((
                models,
                format!(
                    "{} {}",
                    config.named("llm", 0),
                    crate::address::shown_address(url)
                ),
            )));
        }
        let Some(Section(models)) = &config.models else {
            return Ok(None);
        };
        let mut models = models.clone();
        if let Some(model) = &set.model {
            let default = agent99::capabilities::ai::DEFAULT_ROLE;
            models.roles.insert(default.to_owned(), vec![model.clone()]);
        }
        for service in models.services.values_mut() {
            if let Some(name) = service.key_env.as_ref().filter(|_| keys) {
                service.key = Some(key(name, &format!("[{SECTION}]: key-env"))?);
            }
        }
        Ok(Some((models, format!("[{SECTION}]"))))
    }

    /// Applies the prices of `--price`: by a model's name, or `SERVICE/MODEL`.
    fn take_prices(config: &EffectiveConfig, models: &mut ModelConfig) {
        for (name, (prompt, answer)) in &config.set.price {
            let service = name.split_once('/').map(|(service, _)| service);
            let ids: Vec<String> = match service.filter(|name| models.services.contains_key(*name))
            {
                Some(_) => vec![name.clone()],
                None => models
                    .services
                    .keys()
                    .map(|service| format!("{service}/{name}"))
                    .collect(),
            };
            for id in ids {
                let before = models.prices.remove(&id).unwrap_or_default();
                let price = Price {
                    prompt: *prompt,
                    completion: *answer,
                    fuel: before.fuel,
                    ..Price::default()
                };
                models.prices.insert(id, price);
            }
        }
    }

    /// Refuses a price for a model that the run does not use.
    fn check_prices(
        config: &EffectiveConfig,
        provider: Option<&ModelProvider>,
    ) -> Result<(), Failure> {
        let mut known = provider.map_or_else(Vec::new, ModelProvider::models);
        known.extend(
            known
                .clone()
                .iter()
                .filter_map(|id| Some(id.split_once('/')?.1.to_owned())),
        );
        known.extend(config.set.embed_model.clone());
        for (at, (name, _)) in config.set.price.iter().enumerate() {
            if !known.contains(name) && !name.ends_with("/*") {
                let near = suggest(name, known.iter().map(String::as_str));
                let help = near.map_or_else(
                    || "it is for the model of `--model`, `--embed-model` or `[models]`".to_owned(),
                    |near| format!("did you mean `{near}`?"),
                );
                let why = format!("the run has no model `{}`", excerpt(name));
                return Err(config.wrong("price", at, why, help));
            }
        }
        Ok(())
    }

    fn wrong(named: &str, error: &ModelError) -> Failure {
        let help = "`a99 run --help` and docs/grants.md show what names a model";
        Failure::coded(error.code().name(), format!("{named}: {error}"), help)
    }

    /// Price of a model, and its source.
    pub(crate) struct ModelPrice {
        model: String,
        price: Option<Price>,
        /// The date of the price, if it comes from the list.
        date: Option<&'static str>,
    }

    impl ModelPrice {
        pub(crate) fn to_json(&self) -> serde_json::Value {
            let from = match (&self.price, self.date) {
                (None, _) => "unknown",
                (Some(_), Some(_)) => "list",
                (Some(_), None) => "configuration",
            };
            let price = self.price.as_ref().map(|price| {
                serde_json::json!({
                    "prompt": price.prompt,
                    "cached": price.cached,
                    "written": price.written,
                    "completion": price.completion,
                })
            });
            serde_json::json!({
                "model": self.model, "price": price, "from": from, "date": self.date,
            })
        }

        pub(crate) fn to_text(&self, currency: &str) -> String {
            let name = &self.model;
            let Some(price) = &self.price else {
                return format!("{name}: no price is known");
            };
            let from = match self.date {
                Some(date) => format!("as its service asked on {date}"),
                None => "as set".to_owned(),
            };
            let (prompt, answer) = (price.prompt, price.completion);
            format!(
                "{name}: {prompt} {currency} for a million tokens of prompts, {answer} of \
                 answers, {from}"
            )
        }
    }

    /// Prices of the configured models, with the currency. Sends no request.
    pub(crate) fn prices(config: &EffectiveConfig) -> Result<(String, Vec<ModelPrice>), Failure> {
        let mut currency = CURRENCY.to_owned();
        let mut prices = Vec::new();
        let mut provider = None;
        if let Some((mut models, named)) = chosen(config, false)? {
            take_prices(config, &mut models);
            let built = ModelProvider::new(models).map_err(|error| wrong(&named, &error))?;
            currency = built.currency().to_owned();
            prices.extend(
                built
                    .models()
                    .iter()
                    .map(|model| model_price(&built, model)),
            );
            provider = Some(built);
        }
        check_prices(config, provider.as_ref())?;
        #[cfg(feature = "embed")]
        if let (Some(url), Some(model)) = (&config.set.embed, &config.set.embed_model) {
            let known = known_embedding_price(config, url, model);
            prices.push(ModelPrice {
                model: model.clone(),
                date: known.as_ref().and_then(|(_, date)| *date),
                price: known.map(|(price, _)| price),
            });
        }
        Ok((currency, prices))
    }

    /// Price of an embedding service's model, if known.
    #[cfg(feature = "embed")]
    pub(crate) fn embedding_price(
        config: &EffectiveConfig,
        url: &str,
        model: &str,
    ) -> Option<Price> {
        known_embedding_price(config, url, model).map(|(price, _)| price)
    }

    /// Price of an embedding service's model, with the list's date.
    #[cfg(feature = "embed")]
    fn known_embedding_price(
        config: &EffectiveConfig,
        url: &str,
        model: &str,
    ) -> Option<(Price, Option<&'static str>)> {
        let prices = config.set.price.iter().rev();
        let mut own = prices.filter(|(name, _)| name == model);
        if let Some((_, (prompt, _))) = own.next() {
            let own = Price {
                prompt: *prompt,
                ..Price::default()
            };
            return Some((own, None));
        }
        let section = config.models.as_ref();
        let is_listed = section.is_none_or(|Section(models)| models.currency() == CURRENCY);
        let listed = list_price(url, model).filter(|_| is_listed);
        listed.map(|listed| (listed.price, Some(listed.date)))
    }

    /// The models of these settings, if any.
    pub(crate) fn provider(config: &EffectiveConfig) -> Result<Option<ModelProvider>, Failure> {
        let Some((mut models, named)) = chosen(config, true)? else {
            return Ok(None);
        };
        take_prices(config, &mut models);
        let wrong = |error| wrong(&named, &error);
        let urls = models.services.values().map(|service| &*service.url);
        let origins = crate::network::origins(&named, urls)?;
        let fetch = ModelProvider::network(&models).map_err(wrong)?;
        let fetch = crate::network::to_origins(config, &named, &origins, fetch)?;
        let provider = ModelProvider::builder(models)
            .fetch(Arc::new(fetch))
            .build();
        provider.map(Some).map_err(wrong)
    }

    /// Checks that services can be reached and offer the configured models.
    pub(crate) async fn checks(config: &EffectiveConfig) -> Vec<Check> {
        let provider = match provider(config) {
            Ok(Some(provider)) => provider,
            Ok(None) => return Vec::new(),
            Err(failure) => return vec![Check::failed(CHECK, &failure)],
        };
        let reports = provider.probe(crate::network::PROBE_TIME).await;
        let prices = provider.models().into_iter();
        let prices = prices.map(|model| price_check(&provider, &model));
        reports.iter().map(check).chain(prices).collect()
    }

    /// The model's name of options: that of `--llm` without its service.
    fn model_name(id: &str) -> &str {
        let name = id.strip_prefix(SINGLE).and_then(|id| id.strip_prefix('/'));
        name.unwrap_or(id)
    }

    /// Checks the price of a model, and names its source.
    fn price_check(provider: &ModelProvider, model: &str) -> Check {
        /// Name of the check of prices.
        const PRICES: &str = "prices";
        let of = model_price(provider, model);
        let text = of.to_text(provider.currency());
        if of.price.is_some() {
            return Check::ok(PRICES, text);
        }
        let name = of.model;
        let help =
            format!("`--price {name}=PROMPT,ANSWER` says it; without it `--max-money` is refused");
        Check::warning(PRICES, text, &help)
    }

    fn model_price(provider: &ModelProvider, model: &str) -> ModelPrice {
        ModelPrice {
            model: model_name(model).to_owned(),
            price: provider.price_of(model),
            date: provider.price_date(model),
        }
    }

    fn check(report: &ServiceReport) -> Check {
        let url = crate::address::shown_address(&report.url);
        let models = match &report.models {
            Ok(models) => models,
            Err(error) => {
                let help = match error.code {
                    AiCode::Unauthorized => {
                        "name the variable with the key by `--llm-key-env`, or `key-env` of the service"
                    }
                    AiCode::Unreachable => "start the service, or name another address",
                    _ => {
                        "the address is that of the service\'s API, such as http://localhost:1234/v1"
                    }
                };
                let text = format!("{url}: {}", error.message);
                return Check::problem(CHECK, text, help);
            }
        };
        let ms = report.elapsed.as_millis();
        let there = format!(
            "{url} answers within {ms} ms and has {} models",
            models.len()
        );
        let missing: Vec<&str> = report.missing().collect();
        if missing.is_empty() {
            return Check::ok(
                CHECK,
                format!("{there}; asked for: {}", report.wanted.join(", ")),
            );
        }
        let known = models.iter().map(String::as_str);
        let near = missing
            .first()
            .and_then(|name| suggest(name, known.clone()));
        let near = near.or_else(|| known.clone().next().map(str::to_owned));
        let help = near.map_or(String::new(), |near| {
            format!("it has `{near}`, for instance")
        });
        let text = format!("{there}, but does not list `{}`", missing.join("`, `"));
        Check::warning(CHECK, text, &help)
    }

    /// Adds the models that these settings grant.
    pub(crate) fn grant(
        config: &EffectiveConfig,
        set: Capabilities,
    ) -> Result<Capabilities, Failure> {
        let scripted = [
            ("ai", set.ai.is_some()),
            ("llm", set.llm.is_some()),
            ("llmBattery", set.llm_battery.is_some()),
        ];
        let scripted = scripted.iter().find(|(_, there)| *there);
        if config.yields("llm", scripted.is_some()) {
            return Ok(set);
        }
        if let Some((member, _)) = scripted {
            let why = format!("--llm and the script's `{member}` exclude each other");
            return Err(Failure::coded(USAGE[0], why, "leave one of the two out"));
        }
        let provider = provider(config)?;
        check_prices(config, provider.as_ref())?;
        let Some(provider) = provider else {
            return Ok(set);
        };
        let unpriced = provider.unpriced();
        if let Some(first) = unpriced.first().filter(|_| config.set.max_money.is_some()) {
            let name = model_name(first);
            let help = format!(
                "write what a million tokens of prompts and of answers cost, `--price \
                 {name}=PROMPT,ANSWER` (`0,0` if nothing), or `[models.prices]` in a file"
            );
            let model = format!("the model `{name}`");
            return Err(crate::limits::without_price(config, &model, &help));
        }
        Ok(set.with_ai(provider))
    }
}

#[cfg(not(feature = "models"))]
mod services {
    use super::{Capabilities, EffectiveConfig, Failure};
    use crate::checks::Check;
    use std::convert::Infallible;

    /// Price of a model; this binary knows no prices.
    pub(crate) struct ModelPrice(Infallible);

    impl ModelPrice {
        pub(crate) fn to_json(&self) -> serde_json::Value {
            match self.0 {}
        }

        pub(crate) fn to_text(&self, _: &str) -> String {
            match self.0 {}
        }
    }

    pub(crate) fn prices(_: &EffectiveConfig) -> Result<(String, Vec<ModelPrice>), Failure> {
        Err(Failure::missing_feature("`a99 model prices`", "models"))
    }

    pub(crate) async fn checks(config: &EffectiveConfig) -> Vec<Check> {
        let failed = grant(config, Capabilities::none()).err();
        let failed = failed.map(|failure| Check::failed("models", &failure));
        failed.into_iter().collect()
    }

    pub(crate) fn grant(
        config: &EffectiveConfig,
        set: Capabilities,
    ) -> Result<Capabilities, Failure> {
        match (&config.set.llm, &config.models) {
            (Some(_), _) => {
                let what = format!("`{}`", config.named("llm", 0));
                Err(Failure::missing_feature(&what, "models"))
            }
            (None, Some(section)) => match section.0 {},
            (None, None) => Ok(set),
        }
    }
}

#[cfg(all(feature = "models", feature = "embed"))]
pub(crate) use services::embedding_price;
pub(crate) use services::{checks, grant, prices};
