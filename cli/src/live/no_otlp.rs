//! Spans of hosts, in a command built without their export.

use super::report::Report;
use crate::failure::Failure;
use a99_runtime::HostBuilder;

pub(super) struct Spans;

impl Spans {
    /// Refuses to export.
    pub(super) fn start(endpoint: Option<&str>, _: &str, _: Report) -> Result<Spans, Failure> {
        match endpoint {
            Some(_) => Err(Failure::missing_feature("`--otlp`", "otlp")),
            None => Ok(Spans),
        }
    }

    #[allow(clippy::unused_self, reason = "as with the feature")]
    pub(super) fn of(&self, builder: HostBuilder) -> HostBuilder {
        builder
    }

    #[allow(clippy::unused_async, reason = "as with the feature")]
    pub(super) async fn stop(self) {}
}
