//! Models of a scripted server, over real HTTP on the loopback.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod budgets;
mod conformance;
mod cuts;
mod faults;
mod options;
mod secrets;

use a99_capabilities::ai::{ModelScript, ModelTurn};
use a99_models::server::{MODEL, ModelServer};
use a99_models::{ModelConfig, ModelProvider, Retries, ServiceConfig, Timeouts, Wire};

/// A configuration of a service at this address, without retries.
pub(crate) fn config(wire: Wire, url: &str) -> ModelConfig {
    ModelConfig {
        services: [("local".to_owned(), ServiceConfig::new(wire, url))].into(),
        roles: [("default".to_owned(), vec![format!("local/{MODEL}")])].into(),
        retries: Retries::none(),
        ..ModelConfig::default()
    }
}

/// Times that are over soon, also for a busy machine.
pub(crate) fn short() -> Timeouts {
    Timeouts {
        first_token: 2.0,
        idle: 1.0,
        total: 20.0,
        ..Timeouts::default()
    }
}

pub(crate) async fn server(turns: Vec<ModelTurn>) -> ModelServer {
    ModelServer::start(ModelScript { turns }).await.unwrap()
}

pub(crate) fn provider(config: ModelConfig) -> ModelProvider {
    ModelProvider::new(config).unwrap()
}
