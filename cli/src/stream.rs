//! Events of a run as they arrive: model output and events of the program.

use crate::failure::Failure;
use crate::output::{self, Format};
use a99_core::text::escape_for_terminal;
use agent99::{
    EventSink, EventStream, LogLevel, LogLine, MAX_LOG_BYTES, Outcome, RunEvent, RunEventKind,
    RunOptions, Value, event_channel,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Capacity of the event queue; when it is full, the run waits.
const WAITING: usize = 256;

/// Writes events on a separate thread, so that a slow reader delays only the call that is sending.
pub(crate) struct Stream(JoinHandle<()>);

impl Stream {
    /// Starts the thread. Returns it with the sink for the run's events.
    pub(crate) fn start(format: Format) -> Result<(Stream, EventSink), Failure> {
        let (sink, stream) = event_channel(WAITING);
        let thread = std::thread::Builder::new()
            .name("events".to_owned())
            .spawn(move || write(stream, format))
            .map_err(|error| Failure::about("cannot start to write events", error))?;
        Ok((Stream(thread), sink))
    }

    /// Waits until all events of the ended run are written.
    pub(crate) fn end(self) {
        let _ = self.0.join();
    }
}

fn write(mut stream: EventStream, format: Format) {
    let mut shown = Shown::default();
    while let Some(event) = stream.next_blocking() {
        match format {
            Format::Json => output::json(&event.to_json()),
            Format::Human => output::err_plain(&shown.text(&event)),
        }
    }
    output::err_plain(shown.end_line());
}

/// Events as text for people: answers as they stream, each chunk on a line.
#[derive(Default)]
struct Shown {
    /// Author of the line that has not ended.
    speaker: Option<Speaker>,
}

/// An agent and its call.
type Speaker = (Vec<String>, String);

impl Shown {
    fn text(&mut self, event: &RunEvent) -> String {
        // Log lines are written at once, whether the run streams or not.
        let Some(call) = event.kind.call() else {
            return String::new();
        };
        let agents = event.agents.iter().map(ToString::to_string).collect();
        let speaker = (agents, call.to_string());
        match &event.kind {
            RunEventKind::Text { text, .. } => {
                let mut out = String::new();
                if self.speaker.as_ref().is_some_and(|last| *last != speaker) {
                    out.push_str(self.end_line());
                }
                out.push_str(&escaped(text));
                let goes_on = !text.ends_with('\n');
                self.speaker = goes_on.then_some(speaker);
                out
            }
            RunEventKind::Chunk { value, .. } => {
                let text = match value {
                    Value::String(text) => escaped(&text.to_string_lossy()),
                    Value::Undefined => String::new(),
                    other => escaped(&other.to_json_string()),
                };
                format!("{}{text}\n", self.end_line())
            }
            RunEventKind::CallEnded { .. } if self.speaker.as_ref() == Some(&speaker) => {
                self.end_line().to_owned()
            }
            _ => String::new(),
        }
    }

    /// The line break that ends an open line.
    fn end_line(&mut self) -> &'static str {
        match self.speaker.take() {
            Some(_) => "\n",
            None => "",
        }
    }
}

/// Text of programs and models, escaped for a terminal; line breaks stay.
fn escaped(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(escape_for_terminal).collect();
    lines.join("\n")
}

/// A `console` line of the program, for people.
pub(crate) fn log(line: &LogLine) {
    let text = line.text.to_string_lossy();
    let mut shown: Vec<String> = text.split('\n').map(escape_for_terminal).collect();
    if line.level != LogLevel::Log {
        shown[0] = format!("{}: {}", line.level.name(), shown[0]);
    }
    output::err(&format!("{}\n", shown.join("\n")));
}

/// `console` lines of called programs. The run's outcome holds only those of the run itself.
#[derive(Default)]
pub(crate) struct AgentLines(Arc<Mutex<(Vec<LogLine>, usize)>>);

impl AgentLines {
    /// Options of a called program.
    pub(crate) fn of(&self, options: RunOptions) -> RunOptions {
        let lines = Arc::clone(&self.0);
        options.console(move |line| {
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.1 += line.text.len_bytes();
            if lines.1 <= MAX_LOG_BYTES {
                lines.0.push(line.clone());
            }
        })
    }

    /// Appends them to the lines of the run.
    pub(crate) fn add_to(self, outcome: &mut Outcome) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.1 > MAX_LOG_BYTES {
            let text =
                "console: further lines of the programs that it called are not in the outcome";
            outcome.warnings.push(text.into());
        }
        let mut all = std::mem::take(&mut outcome.logs).into_vec();
        all.append(&mut lines.0);
        outcome.logs = all.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent99::{CallEnd, CallId};

    fn shown(events: &[(u64, &str)]) -> String {
        let (sink, mut stream) = event_channel(100);
        let mut out = String::new();
        let mut shown = Shown::default();
        for (step, text) in events {
            let call = CallId::new(None, *step, 0);
            sink.try_send(match *text {
                "." => RunEventKind::CallEnded {
                    call,
                    end: CallEnd::Answered,
                },
                text => match text.strip_prefix("chunk ") {
                    Some(data) => RunEventKind::Chunk {
                        call,
                        value: serde_json::from_str::<serde_json::Value>(data)
                            .expect("JSON")
                            .into(),
                    },
                    None => RunEventKind::Text {
                        call,
                        text: text.to_owned(),
                    },
                },
            });
            out += &shown.text(&stream.try_next().expect("it was sent"));
        }
        out + shown.end_line()
    }

    #[test]
    fn lines_are_those_of_one_speaker() {
        assert_eq!(shown(&[(0, "Hel"), (0, "lo"), (0, ".")]), "Hello\n");
        assert_eq!(
            shown(&[(0, "a"), (1, "b"), (1, "c\n"), (0, "d")]),
            "a\nbc\nd\n"
        );
        assert_eq!(
            shown(&[
                (0, "a"),
                (1, r#"chunk {"n":[1]}"#),
                (1, "."),
                (2, r#"chunk "t""#)
            ]),
            "a\n{\"n\":[1]}\nt\n"
        );
        assert_eq!(shown(&[(0, "a\n"), (0, ".")]), "a\n");
    }

    #[test]
    fn nothing_reaches_a_terminal_unescaped() {
        let out = shown(&[(0, "a\u{1b}[2Jb\nc\r"), (1, "chunk \"\\u001b]0;x\\u0007\"")]);
        assert!(!out.contains(['\u{1b}', '\r', '\u{7}']), "{out:?}");
        assert!(out.starts_with("a") && out.contains("b\nc"), "{out:?}");
    }
}
