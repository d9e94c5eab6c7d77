//! Spans of hosts, exported by OTLP.

use super::report::Report;
use crate::failure::Failure;
use a99_runtime::HostBuilder;
use a99_runtime_otlp::{Exporter, Options, TraceContext};

/// The exporter, if an option or the environment names a collector.
pub(super) struct Spans(Option<Exporter>);

impl Spans {
    /// # Errors
    /// An address that requests cannot be sent to.
    pub(super) fn start(
        endpoint: Option<&str>,
        service: &str,
        report: Report,
    ) -> Result<Spans, Failure> {
        if endpoint.is_none() && !Options::is_in_environment() {
            return Ok(Spans(None));
        }
        let options = Options::new(service, move |warning| {
            report.did("warning", &[("message", warning.into())]);
        });
        let options = match endpoint {
            Some(url) => options.endpoint(url),
            None => options,
        };
        let exporter = Exporter::start(options).and_then(|exporter| {
            exporter.install()?;
            Ok(exporter)
        });
        let exporter = exporter.map_err(|error| Failure::about("--otlp", error))?;
        Ok(Spans(Some(exporter)))
    }

    /// Lets a host make spans.
    pub(super) fn of(&self, builder: HostBuilder) -> HostBuilder {
        match &self.0 {
            Some(_) => builder.propagation(TraceContext),
            None => builder,
        }
    }

    /// Sends the last spans.
    pub(super) async fn stop(self) {
        if let Some(exporter) = self.0 {
            exporter.stop().await;
        }
    }
}
