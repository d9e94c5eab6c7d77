//! Probe: checks whether services are reachable and have the models that roles name. It sends
//! no request to a model.

use crate::attempt::MAX_ERROR_BYTES;
use crate::provider::ModelProvider;
use crate::service::Service;
use crate::wire::{malformed, parse};
use a99_capabilities::ai::{AiCode, AiError};
use a99_core::value::Value;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Maximum models of a list.
const MAX_MODELS: usize = 10_000;

/// The probe of a service.
#[derive(Clone, Debug)]
pub struct ServiceReport {
    /// The service's name in the configuration.
    pub service: String,
    /// The service's address in the configuration.
    pub url: String,
    /// The models that roles name.
    pub wanted: Vec<String>,
    /// The models that the service lists, or the error.
    pub models: Result<Vec<String>, AiError>,
    /// The duration of the probe.
    pub elapsed: Duration,
}

impl ServiceReport {
    /// Models that roles name and the service does not list. Some services have unlisted
    /// models.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let listed = self.models.as_deref().unwrap_or_default();
        let wanted = self.wanted.iter().map(String::as_str);
        wanted.filter(move |name| !listed.is_empty() && !listed.iter().any(|has| has == name))
    }
}

impl ModelProvider {
    /// Asks each service for the list of its models (`GET {url}/models`), with its key, one
    /// after another, with the timeout `wait` for each.
    pub async fn probe(&self, wait: Duration) -> Vec<ServiceReport> {
        let mut reports = Vec::new();
        for (at, service) in self.directory().services.iter().enumerate() {
            let started = Instant::now();
            let listed = timeout(wait, self.list(service)).await;
            let models = listed.unwrap_or_else(|_| {
                let text = format!(
                    "the model service `{}` did not answer within {} s",
                    service.name,
                    wait.as_secs_f64()
                );
                Err(AiError::new(AiCode::Unreachable, text))
            });
            reports.push(ServiceReport {
                service: service.name.clone(),
                url: service.config.url.clone(),
                wanted: self.directory().wanted(at).into_iter().collect(),
                models,
                elapsed: started.elapsed(),
            });
        }
        reports
    }

    async fn list(&self, service: &Service) -> Result<Vec<String>, AiError> {
        let failed = |error| service.failed(&error);
        let opened = self.fetch().open(service.list_request()).await;
        let mut answer = opened.map_err(failed)?;
        let refused = answer.status() >= 400;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            body.extend_from_slice(&chunk);
            if refused && body.len() >= MAX_ERROR_BYTES {
                break;
            }
        }
        if refused {
            return Err(service.refused(answer.status(), &body));
        }
        let listed = parse(&String::from_utf8_lossy(&body));
        let ids = listed.and_then(|listed| ids(&listed, MAX_MODELS));
        ids.ok_or_else(|| service.named(malformed("no `data`")))
    }
}

/// The ids of a list of models, as `GET /models` gives it.
pub(crate) fn ids(listed: &Value, most: usize) -> Option<Vec<String>> {
    let listed = listed.get("data")?.as_array()?.iter();
    let ids = listed.filter_map(|model| model.get("id")?.as_str().map(str::to_owned));
    Some(ids.take(most).collect())
}

#[cfg(test)]
mod tests {
    use super::{MAX_MODELS, ids, parse};

    #[test]
    fn lists_have_ids() {
        let ids = |body: &str| parse(body).and_then(|listed| ids(&listed, MAX_MODELS));
        let listed = ids(r#"{"data": [{"id": "a"}, {"id": 1}, "b", {"id": "c"}]}"#);
        assert_eq!(listed.unwrap(), ["a", "c"]);
        assert_eq!(ids("[]"), None);
        assert_eq!(ids("<html>"), None);
    }
}
