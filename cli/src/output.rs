//! Output: writing to the terminal, a pipe or a file.
//!
//! Nothing here panics when the reader goes away, and nothing of a program
//! reaches a terminal unescaped (security P05).

use a99_core::text::escape_for_terminal;
use agent99::Value;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Something that was to be written is lost.
static LOST: AtomicBool = AtomicBool::new(false);

/// Whether some output could not be written, for another reason than that its
/// reader went away: then the command did not do its work.
pub(crate) fn is_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// How a command speaks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people: results on standard output, the rest on standard error.
    Human,
    /// For programs: one line of JSON on standard output.
    Json,
}

/// Writes text to standard output as it is.
pub(crate) fn out(text: &str) {
    bytes(text.as_bytes());
}

/// Writes bytes to standard output as they are.
pub(crate) fn bytes(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    report_failure(stdout.write_all(bytes).and_then(|()| stdout.flush()));
}

/// Writes text to standard error as it is.
pub(crate) fn err(text: &str) {
    if let Err(error) = io::stderr().lock().write_all(text.as_bytes()) {
        // There is nowhere left to complain to but the exit code.
        note_loss(&error);
    }
}

/// Notes that output is lost; whether that is worth a word.
fn note_loss(error: &io::Error) -> bool {
    let lost = error.kind() != ErrorKind::BrokenPipe;
    if lost {
        LOST.store(true, Ordering::Relaxed);
    }
    lost
}

/// Writes one line of JSON to standard output.
pub(crate) fn json(value: &Value) {
    let mut text = value.to_json_string();
    text.push('\n');
    out(&text);
}

/// Writes `kind: text` to standard error; the text is escaped, line by line.
pub(crate) fn note(kind: &str, text: &str) {
    let lines: Vec<String> = text.lines().map(escape_for_terminal).collect();
    err(&format!("{kind}: {}\n", lines.join("\n")));
}

/// Reports a failed write, unless the reader went away: it has what it wants. The
/// command fails.
pub(crate) fn report_failure(written: io::Result<()>) {
    if let Err(error) = written
        && note_loss(&error)
    {
        err(&format!("error: cannot write the output: {error}\n"));
    }
}
