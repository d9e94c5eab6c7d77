//! Console lines of programs, bounded in length and number.

use a99_core::text::Text;
use a99_run::events::{EventSink, LogLine, RunEventKind};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Maximum bytes of a line.
pub const MAX_LINE: usize = 16 << 10;

/// Maximum bytes of lines in the outcome.
pub const MAX_KEPT: usize = 256 << 10;

/// Overhead of a line in bytes, beyond its text.
pub(crate) const LINE_BYTES: usize = 64;

/// The console lines of a run.
#[derive(Debug, Default)]
pub(crate) struct Console {
    /// Lines not yet passed to the host.
    fresh: Vec<LogLine>,
    kept: Vec<LogLine>,
    kept_bytes: usize,
    dropped: u64,
}

impl Console {
    pub(crate) fn clear(&mut self) {
        if !self.fresh.is_empty() || !self.kept.is_empty() {
            *self = Console::default();
        }
    }

    /// Adds a line.
    pub(crate) fn push(&mut self, line: LogLine) {
        self.fresh.push(line);
    }

    pub(crate) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Passes new lines to the host; returns the bytes that this released.
    #[cold]
    pub(crate) fn hand_over(
        &mut self,
        console: Option<&ConsoleSink>,
        events: Option<&EventSink>,
    ) -> usize {
        let mut freed = 0;
        for line in std::mem::take(&mut self.fresh) {
            if let Some(console) = console {
                console.write(&line);
            }
            if let Some(events) = events {
                events.try_send(RunEventKind::Log(line.clone()));
            }
            let bytes = line.text.len_bytes() + LINE_BYTES;
            if self.kept_bytes + bytes > MAX_KEPT {
                self.dropped += 1;
                freed += bytes;
            } else {
                self.kept_bytes += bytes;
                self.kept.push(line);
            }
        }
        freed
    }

    /// The lines for the outcome; adds a warning if some were dropped.
    pub(crate) fn take(&mut self, warnings: &mut Vec<Text>) -> Box<[LogLine]> {
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            warnings.push(Text::from(format!(
                "console: the last {dropped} lines are not in the outcome, which has at most {} KiB \
                 of them",
                MAX_KEPT >> 10
            )));
        }
        self.kept_bytes = 0;
        std::mem::take(&mut self.kept).into()
    }
}

/// Receives console lines while a run is in progress.
#[derive(Clone)]
pub struct ConsoleSink(Arc<dyn Fn(&LogLine) + Send + Sync>);

impl ConsoleSink {
    /// Creates a sink that calls a function.
    pub fn new(write: impl Fn(&LogLine) + Send + Sync + 'static) -> ConsoleSink {
        ConsoleSink(Arc::new(write))
    }

    /// Calls the function; host code may panic or do anything else there.
    fn write(&self, line: &LogLine) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.0)(line)));
    }
}

impl fmt::Debug for ConsoleSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConsoleSink")
    }
}
