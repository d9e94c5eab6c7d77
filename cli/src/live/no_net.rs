//! Network of hosts, in a command built without it.

use super::host::Live;
use crate::args::HostArgs;
use crate::failure::Failure;
use a99_runtime::Transport;
use std::sync::Arc;

/// Refuses channels on a server.
#[allow(clippy::unused_async, reason = "as with the feature")]
pub(super) async fn transport(args: &HostArgs) -> Result<Option<Arc<dyn Transport>>, Failure> {
    match args.channels {
        Some(_) => Err(missing("--channels")),
        None => Ok(None),
    }
}

fn missing(option: &str) -> Failure {
    Failure::missing_feature(&format!("`a99 agent host {option}`"), "server")
}

pub(super) struct Network;

impl Network {
    /// Refuses to listen.
    #[allow(clippy::unused_async, reason = "as with the feature")]
    pub(super) async fn of(args: &HostArgs) -> Result<Network, Failure> {
        match args.listen {
            Some(_) => Err(missing("--listen")),
            None => Ok(Network),
        }
    }

    #[allow(clippy::unnecessary_wraps, reason = "as with the feature")]
    pub(super) fn serve_live(self, _: &Arc<Live>) -> Result<Network, Failure> {
        Ok(self)
    }

    #[allow(clippy::unused_async, reason = "as with the feature")]
    pub(super) async fn stop(self) {}
}
