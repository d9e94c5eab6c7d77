//! Long-lived agents: the host that runs them, and the commands that reach it.
//!
//! A host has the store of its agents open, and a Unix socket beside it. Other commands send
//! requests to the host ([`wire`]); without a host they open the store themselves.

pub(crate) mod call;
#[cfg(feature = "server")]
pub(crate) mod channels;
pub(crate) mod checkpoint;
mod client;
mod clients;
mod config;
mod error;
pub(crate) mod host;
pub(crate) mod inspect;
mod known;
pub(crate) mod logs;
#[cfg_attr(not(feature = "server"), path = "no_net.rs")]
mod net;
pub(crate) mod new;
#[cfg(feature = "server")]
mod operator;
#[cfg_attr(not(feature = "otlp"), path = "no_otlp.rs")]
mod otlp;
mod place;
mod program;
#[cfg(feature = "server")]
mod push;
#[cfg(feature = "server")]
pub(crate) mod receive;
pub(crate) mod reload;
#[cfg(feature = "server")]
mod remote;
pub(crate) mod replay;
mod report;
pub(crate) mod send;
mod serve;
mod show;
mod socket;
mod timers;
mod update;
mod wire;

use crate::failure::Failure;
use crate::output;
use serde_json::Value as Json;

fn line(json: &Json) {
    output::out(&format!("{json}\n"));
}

/// A runtime for a single command.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::about("cannot start the runtime", error))
}
