//! Progress of a run on standard error: its step, the calls under way and the fuel that
//! is used.
//!
//! On a terminal it is one line that is written anew; elsewhere a line each second and
//! one at the end.

use crate::output;
use a99_core::text::escape_for_terminal;
use agent99::{CallId, TraceCall, TraceEvent, TraceSink};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, stderr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the line on a terminal is written, at most.
const TICK: Duration = Duration::from_millis(100);
/// How often a line is written elsewhere.
const LINE: Duration = Duration::from_secs(1);
/// Characters of an op or place that are shown.
const MAX_CHARS: usize = 48;
/// Columns of a terminal that are used: a line that is broken could not be written anew.
const WIDTH: usize = 79;

/// What is shown of a run that goes on.
pub(crate) struct Progress {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    over: Condvar,
    terminal: bool,
    started: Instant,
    budget: f64,
}

#[derive(Default)]
struct State {
    steps: u64,
    calls: u64,
    place: String,
    fuel: f64,
    under_way: BTreeMap<CallId, (String, Instant)>,
    over: bool,
}

impl Progress {
    /// Starts to show a run with this fuel.
    pub(crate) fn start(budget: f64) -> Progress {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
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
            // Without a thread the last line is shown alone.
            thread: thread.ok(),
        }
    }

    /// What a run tells.
    pub(crate) fn sink(&self) -> impl TraceSink + 'static {
        Sink(self.shared.clone())
    }

    /// Ends it; nothing of it is left on a terminal.
    pub(crate) fn end(mut self) {
        self.shared.state().over = true;
        self.shared.over.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        match self.shared.terminal {
            true => output::err("\r\u{1b}[2K"),
            false => output::note("progress", &self.shared.line()),
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes lines until the run is over.
    fn show(&self) {
        let tick = if self.terminal { TICK } else { LINE };
        let mut before = String::new();
        loop {
            let state = self.state();
            let waited = self
                .over
                .wait_timeout_while(state, tick, |state| !state.over);
            let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if state.over {
                return;
            }
            drop(state);
            let line = self.line();
            if line == before {
                continue;
            }
            match self.terminal {
                true => {
                    let cut: String = line.chars().take(WIDTH).collect();
                    output::err(&format!("\r\u{1b}[2K{cut}"));
                }
                false => output::note("progress", &line),
            }
            before = line;
        }
    }

    fn line(&self) -> String {
        let state = self.state();
        let mut line = format!(
            "{} steps, {} calls, fuel {:.1} of {}, {:.1} s",
            state.steps,
            state.calls,
            state.fuel,
            self.budget,
            self.started.elapsed().as_secs_f64()
        );
        match state.under_way.first_key_value() {
            None if state.place.is_empty() || state.over => {}
            None => line += &format!("; {}", state.place),
            Some((id, (op, since))) => {
                let seconds = since.elapsed().as_secs_f64();
                let _ = write!(line, "; waits for {op} (call {id}, {seconds:.1} s)");
                match state.under_way.len() - 1 {
                    0 => {}
                    more => line += &format!(" and {more} more"),
                }
            }
        }
        line
    }
}

struct Sink(Arc<Shared>);

impl TraceSink for Sink {
    fn event(&self, event: &TraceEvent) {
        let mut state = self.0.state();
        state.steps += 1;
        state.fuel = (self.0.budget - event.fuel_after.to_f64()).max(0.0);
        let pointer = event.pointer.as_deref().unwrap_or_default();
        let text = format!("{} {pointer}", event.op.to_string_lossy());
        state.place = short(&text);
    }

    fn call_started(&self, call: &TraceCall) {
        let op = short(&call.op.to_string_lossy());
        let mut state = self.0.state();
        state.calls += 1;
        state
            .under_way
            .insert(call.id.clone(), (op, Instant::now()));
    }

    fn call_ended(&self, call: &TraceCall) {
        let mut state = self.0.state();
        state.under_way.remove(&call.id);
    }
}

/// Text of a program, made safe for a terminal and short.
fn short(text: &str) -> String {
    escape_for_terminal(text).chars().take(MAX_CHARS).collect()
}
