//! Log of agents: entries that the host forwards to its log.

use a99_runtime_engine::AgentKey;
use std::fmt;
use std::sync::Arc;

/// Severity of an entry.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Details for debugging.
    Debug,
    /// Normal events.
    Info,
    /// Possible problems.
    Warn,
    /// Failures.
    Error,
}

impl LogLevel {
    /// The level with a name.
    #[cfg(unix)]
    pub(crate) fn named(name: &str) -> Option<LogLevel> {
        use LogLevel::{Debug, Error, Info, Warn};
        let mut all = [Debug, Info, Warn, Error].into_iter();
        all.find(|level| level.name() == name)
    }

    /// The lowercase name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        }
    }
}

/// An entry of the log.
#[derive(Clone, Debug)]
pub struct LogEntry<'a> {
    /// The severity.
    pub level: LogLevel,
    /// The agent concerned; `None` for the host itself.
    pub agent: Option<&'a AgentKey>,
    /// A stable code of the event.
    pub code: &'a str,
    /// The message for people.
    pub message: &'a str,
}

impl fmt::Display for LogEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.agent {
            Some(agent) => write!(f, "[{agent}] {}: {}", self.code, self.message),
            None => write!(f, "[host] {}: {}", self.code, self.message),
        }
    }
}

/// Receives log entries; it must not block.
pub trait AgentLogger: Send + Sync {
    /// Takes an entry.
    fn log(&self, entry: &LogEntry<'_>);
}

impl<F: Fn(&LogEntry<'_>) + Send + Sync> AgentLogger for F {
    fn log(&self, entry: &LogEntry<'_>) {
        self(entry);
    }
}

#[derive(Clone)]
pub(crate) struct Log(pub(crate) Option<Arc<dyn AgentLogger>>);

impl Log {
    pub(crate) fn say(&self, level: LogLevel, agent: Option<&AgentKey>, code: &str, message: &str) {
        if let Some(logger) = &self.0 {
            logger.log(&LogEntry {
                level,
                agent,
                code,
                message,
            });
        }
    }
}
