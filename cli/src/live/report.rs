//! Report of a host: its events for people on standard error, or as lines of JSON on standard
//! output.

use super::wire::Refusal;
use super::{line, show};
use crate::output;
use a99_core::text::escape_for_terminal;
use a99_runtime::{Event, LogEntry, LogLevel};
use serde_json::{Value as Json, json};

#[derive(Copy, Clone, Debug)]
pub(super) struct Report {
    pub(super) is_json: bool,
}

impl Report {
    /// An action of the host.
    pub(super) fn did(self, what: &str, members: &[(&str, Json)]) {
        if self.is_json {
            let mut json = json!({"event": what});
            for (name, value) in members {
                json[*name] = value.clone();
            }
            return line(&json);
        }
        let members = members.iter().map(|(name, value)| {
            let shown = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            format!("{name} {shown}")
        });
        let members: Vec<String> = members.collect();
        output::note(what, &members.join(", "));
    }

    /// An event of a channel.
    pub(super) fn event(self, channel: &str, event: &Event) {
        let json = serde_json::to_value(event).unwrap_or_default();
        if self.is_json {
            return line(&json!({"event": "channel", "channel": channel, "said": json}));
        }
        if let Some(text) = show::event(&json) {
            output::err_plain(&format!("{} {text}", escape_for_terminal(channel)));
        }
    }

    /// An entry of the log.
    pub(super) fn entry(self, entry: &LogEntry<'_>) {
        let level = entry.level;
        if self.is_json {
            return line(&json!({
                "event": "log",
                "level": level.name(),
                "agent": entry.agent,
                "code": entry.code,
                "message": entry.message,
            }));
        }
        let kind = match level {
            LogLevel::Debug => return,
            LogLevel::Info => "info",
            LogLevel::Warn => "warning",
            LogLevel::Error => "error",
        };
        output::note(kind, &entry.to_string());
    }

    /// An operation that failed, while the host runs on.
    pub(super) fn refused(self, refusal: &Refusal) {
        self.did(
            "refused",
            &[
                ("code", refusal.code.as_str().into()),
                ("message", refusal.message.as_str().into()),
            ],
        );
    }
}
