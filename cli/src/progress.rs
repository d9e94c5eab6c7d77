//! Progress of a run on standard error: step, pending calls and used fuel.
//!
//! On a terminal it redraws one line; elsewhere it writes a line each second and one at the end.

use crate::output;
use a99_core::text::escape_for_terminal;
use agent99::{Progress as Read, RunProgress};
use std::fmt::Write as _;
use std::io::{IsTerminal as _, stderr};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Shortest time between two redraws on a terminal.
const TICK: Duration = Duration::from_millis(100);
/// Time between two lines elsewhere.
const LINE: Duration = Duration::from_secs(1);
/// Most characters of an op or place to show.
const MAX_CHARS: usize = 48;
/// Most columns used: a wrapped line could not be redrawn.
const WIDTH: usize = 79;

/// Progress display of one run.
pub(crate) struct Progress {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    counters: Arc<RunProgress>,
    is_over: Mutex<bool>,
    over: Condvar,
    terminal: bool,
    started: Instant,
    budget: f64,
}

impl Progress {
    /// Starts the display of a run with this fuel.
    pub(crate) fn start(budget: f64) -> Progress {
        let shared = Arc::new(Shared {
            counters: Arc::default(),
            is_over: Mutex::default(),
            over: Condvar::new(),
            terminal: stderr().is_terminal(),
            started: Instant::now(),
            budget,
        });
        let shown = shared.clone();
        let thread = std::thread::Builder::new()
            .name("progress".to_owned())
            .spawn(move || shown.show());
        Progress {
            shared,
            // Without a thread only the last line is shown.
            thread: thread.ok(),
        }
    }

    /// Counters that the run updates.
    pub(crate) fn counters(&self) -> Arc<RunProgress> {
        Arc::clone(&self.shared.counters)
    }

    /// Ends the display after a run that used this fuel; clears a terminal's line.
    pub(crate) fn end(mut self, fuel_used: Option<f64>) {
        let is_over = self.shared.is_over.lock();
        *is_over.unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.over.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        match self.shared.terminal {
            true => output::clear_status(),
            false => output::note("progress", &self.shared.last_line(fuel_used)),
        }
    }
}

impl Shared {
    fn show(&self) {
        let tick = if self.terminal { TICK } else { LINE };
        let mut before = String::new();
        loop {
            let is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = self
                .over
                .wait_timeout_while(is_over, tick, |is_over| !*is_over);
            let (is_over, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if *is_over {
                return;
            }
            drop(is_over);
            let line = self.line();
            if line == before {
                continue;
            }
            match self.terminal {
                true => {
                    let cut: String = line.chars().take(WIDTH).collect();
                    output::status(&cut);
                }
                false => output::note("progress", &line),
            }
            before = line;
        }
    }

    fn counts(&self, read: &Read, fuel_used: f64) -> String {
        format!(
            "{} calls, fuel {fuel_used:.1} of {}, {:.1} s",
            read.calls,
            self.budget,
            self.started.elapsed().as_secs_f64()
        )
    }

    fn last_line(&self, fuel_used: Option<f64>) -> String {
        let read = self.counters.read();
        self.counts(&read, fuel_used.unwrap_or(read.fuel_used.to_f64()))
    }

    fn line(&self) -> String {
        let read = self.counters.read();
        let mut line = self.counts(&read, read.fuel_used.to_f64());
        if let Some((id, op, since)) = read.under_way.first() {
            let op = short(op);
            let seconds = since.map_or(0.0, |since| since.elapsed().as_secs_f64());
            let _ = write!(line, "; waits for {op} (call {id}, {seconds:.1} s)");
            match read.under_way.len() - 1 {
                0 => {}
                more => line += &format!(" and {more} more"),
            }
        } else if let Some(op) = &read.op {
            let place = match (read.line_col, &read.pointer) {
                (Some((at, column)), _) => format!("line {at}:{column}"),
                (None, Some(pointer)) => pointer.clone(),
                (None, None) => String::new(),
            };
            line += &format!("; {}", short(format!("{op} {place}").trim_end()));
        }
        line
    }
}

/// Text of a program, escaped for a terminal and shortened.
fn short(text: &str) -> String {
    escape_for_terminal(text).chars().take(MAX_CHARS).collect()
}
