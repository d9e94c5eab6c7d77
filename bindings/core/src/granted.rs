//! Capabilities of the host's language: each method becomes a request to the host.

use crate::asks::Asks;
use crate::failure::{Failure, codes};
use a99_core::diag::suggest;
use agent99::Value;
use agent99::capabilities::ai::{
    AiCode, AiError, AiProvider, StreamHandle, TextRequest, play_value, request_value,
};
use agent99::capabilities::{
    BoxFuture, Capabilities, CapabilityError, RequestHost, Requests, request_methods,
};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The method of models, whose answers become streams.
const MODEL: &str = "ai.generate";

/// The methods that a host can offer.
pub(crate) fn methods() -> impl Iterator<Item = &'static str> {
    request_methods().chain([MODEL])
}

/// The capabilities that pass the offered methods on to the host.
pub(crate) fn granted(offered: &[String], asks: &Asks) -> Result<Capabilities, Failure> {
    let mut names = HashSet::new();
    for name in offered {
        match methods().find(|known| known == name) {
            Some(known) => names.insert(known),
            None => return Err(unknown(name)),
        };
    }
    if names.is_empty() {
        return Ok(Capabilities::none());
    }
    let has_model = names.contains(MODEL);
    let asks = asks.clone();
    let model = HostModel(asks.clone());
    let mut granted = Requests(HostCapabilities { asks, names }).granted();
    if has_model {
        granted.ai = Some(Arc::new(model));
    }
    Ok(granted)
}

fn unknown(name: &str) -> Failure {
    let failure = Failure::new(
        codes::BAD_OPTION,
        format!("no atom calls a capability `{name}`"),
    );
    match suggest(name, methods()) {
        Some(near) => failure.with_help(format!("offer `{near}`")),
        None => failure.with_help("offer methods such as `fetch`, `store.get` or `llm.predict`"),
    }
}

struct HostCapabilities {
    asks: Asks,
    names: HashSet<&'static str>,
}

impl RequestHost for HostCapabilities {
    fn offers(&self, method: &str) -> bool {
        self.names.contains(method)
    }

    fn request(
        &self,
        method: &'static str,
        args: Vec<Value>,
    ) -> BoxFuture<'_, Result<Value, CapabilityError>> {
        match self.offers(method) {
            true => Box::pin(self.asks.ask(method, args)),
            false => Box::pin(std::future::ready(Err(CapabilityError::new(format!(
                "Capability '{method}' missing"
            ))))),
        }
    }
}

/// Language models of the host.
struct HostModel(Asks);

impl AiProvider for HostModel {
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
        Box::pin(std::future::ready(Ok(BTreeMap::new())))
    }

    /// The host answers as a whole; its answer becomes the events of the stream.
    fn stream_text(&self, request: TextRequest) -> StreamHandle {
        if let Err(error) = request.check() {
            return StreamHandle::failed("host", error);
        }
        let (sink, handle) = StreamHandle::new("host");
        let args = vec![request_value(&request)];
        self.0.ask_then(MODEL, args, move |answer| match answer {
            Ok(said) => play_value(&said, &sink),
            Err(error) => sink.fail(AiError::new(AiCode::Unavailable, error.to_string())),
        });
        handle
    }
}
