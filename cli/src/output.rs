//! Output: writing to the terminal, a pipe or a file.
//!
//! Nothing here panics when the reader goes away, and text of a program reaches a terminal only
//! escaped (security P05).

use a99_core::text::escape_for_terminal;
use agent99::Value;
use clap::ValueEnum;
use std::io::{self, ErrorKind, IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// When to use colours.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorArg {
    /// On terminals
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Whether messages on standard error have colours.
static COLORS: OnceLock<bool> = OnceLock::new();

/// Decides once about colours. `NO_COLOR` is defined at no-color.org.
pub(crate) fn set_colors(when: ColorArg) {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let on = match when {
        ColorArg::Always => true,
        ColorArg::Never => false,
        ColorArg::Auto => !set("NO_COLOR") && !dumb && io::stderr().is_terminal(),
    };
    // `main` decides once, at the start; a later call changes nothing.
    let _ = COLORS.set(on);
}

fn has_colors() -> bool {
    COLORS.get().copied().unwrap_or(false)
}

/// Control sequences for severities, places and help, and the reset.
const RED: &str = "\u{1b}[1;31m";
const YELLOW: &str = "\u{1b}[1;33m";
const BLUE: &str = "\u{1b}[1;34m";
const CYAN: &str = "\u{1b}[36m";
const PLAIN: &str = "\u{1b}[0m";

/// Rendered diagnostics with colours: severity, place, gutter, carets, help. Text of a program is
/// escaped, so no line of it can imitate a severity.
fn painted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for line in text.split_inclusive('\n') {
        let starts = |prefix: &str| line.starts_with(prefix).then_some(prefix.len());
        let severity = |word: &str| {
            let rest = line.strip_prefix(word)?;
            let end = match rest.strip_prefix('[') {
                Some(code) => word.len() + 2 + code.find(']')?,
                None => starts(word).filter(|_| rest.starts_with(':'))?,
            };
            Some(end)
        };
        let (color, end) = if let Some(end) = severity("error") {
            (RED, end)
        } else if let Some(end) = severity("warning") {
            (YELLOW, end)
        } else if let Some(end) = starts("  -->") {
            (BLUE, end)
        } else if let Some(end) = starts("  = help:") {
            (CYAN, end)
        } else if is_carets(line) {
            (RED, line.trim_end().len())
        } else {
            (PLAIN, 0)
        };
        match end {
            0 => out.push_str(line),
            end => out.extend([color, &line[..end], PLAIN, &line[end..]]),
        }
    }
    out
}

/// A line of carets below a line of source.
fn is_carets(line: &str) -> bool {
    line.contains('^') && line.bytes().all(|byte| b" |^\t\n.".contains(&byte))
}

/// Whether output was lost.
static LOST: AtomicBool = AtomicBool::new(false);

/// Whether a write failed for another reason than a closed reader. The command then fails.
pub(crate) fn is_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Output format of a command.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people: results on standard output, the rest on standard error.
    Human,
    /// For programs: one line of JSON on standard output.
    Json,
}

/// Writes text to standard output, unescaped.
pub(crate) fn out(text: &str) {
    bytes(text.as_bytes());
}

/// Writes bytes to standard output.
pub(crate) fn bytes(bytes: &[u8]) {
    clear_status();
    let mut stdout = io::stdout().lock();
    report_failure(stdout.write_all(bytes).and_then(|()| stdout.flush()));
}

/// Writes messages to standard error, in colours if they are enabled.
pub(crate) fn err(text: &str) {
    if has_colors() {
        err_plain(&painted(text));
    } else {
        err_plain(text);
    }
}

/// Writes text to standard error without colours.
pub(crate) fn err_plain(text: &str) {
    let mut status = status_line();
    to_stderr(&format!("{}{text}", status.before(text)));
}

fn to_stderr(text: &str) {
    if let Err(error) = io::stderr().lock().write_all(text.as_bytes()) {
        // Only the exit code can still report it.
        note_loss(&error);
    }
}

/// Clears the terminal line of the cursor.
const CLEAR: &str = "\r\u{1b}[2K";

/// A line at the end of a terminal that is redrawn, such as progress. Other text clears it first.
#[derive(Default)]
struct StatusLine {
    is_up: bool,
    /// Other text, without a line break at its end, occupies the line.
    is_taken: bool,
}

static STATUS: Mutex<StatusLine> = Mutex::new(StatusLine {
    is_up: false,
    is_taken: false,
});

fn status_line() -> MutexGuard<'static, StatusLine> {
    STATUS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StatusLine {
    /// The control sequence to write before other text.
    fn before(&mut self, text: &str) -> &'static str {
        if !text.is_empty() {
            self.is_taken = !text.ends_with('\n');
        }
        match std::mem::take(&mut self.is_up) {
            true => CLEAR,
            false => "",
        }
    }

    /// The text to write for this line, if there is room.
    fn shown(&mut self, line: &str) -> Option<String> {
        self.is_up |= !self.is_taken;
        self.is_up.then(|| format!("{CLEAR}{line}"))
    }
}

/// Replaces the status line at the end of the terminal; other text clears it.
pub(crate) fn status(line: &str) {
    let mut status = status_line();
    if let Some(text) = status.shown(line) {
        to_stderr(&text);
    }
}

/// Clears the status line, if there is one.
pub(crate) fn clear_status() {
    err_plain("");
}

/// Records lost output. Returns whether to report it.
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

/// Reports a failed write, unless the reader closed the pipe, which is no error. The command fails.
pub(crate) fn report_failure(written: io::Result<()>) {
    if let Err(error) = written
        && note_loss(&error)
    {
        err(&format!("error: cannot write the output: {error}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::{StatusLine, painted};

    #[test]
    fn u2_other_text_clears_the_status_line() {
        let mut status = StatusLine::default();
        assert_eq!(status.before("a line\n"), "");
        let shown = status.shown("1 call");
        assert_eq!(shown.as_deref(), Some("\r\u{1b}[2K1 call"));
        assert_eq!(status.before("text that goes on"), "\r\u{1b}[2K");
        // Drawn there it would overwrite the text.
        assert_eq!(status.shown("2 calls"), None);
        assert_eq!(status.before(" and ends\n"), "");
        assert!(status.shown("3 calls").is_some());
        assert_eq!(status.before(""), "\r\u{1b}[2K");
    }

    #[test]
    fn colours_add_nothing_else() {
        let text = "error[a.b]: no [x]\n  --> f:1:2 (/a)\n  |\n1 | error: ^\n  |   ^^\n  = help: do\n\nwarning: w\n";
        let shown = painted(text);
        assert!(
            shown.starts_with("\u{1b}[1;31merror[a.b]\u{1b}[0m: no [x]\n"),
            "{shown:?}"
        );
        assert!(
            shown.contains("\u{1b}[1;31m  |   ^^\u{1b}[0m\n"),
            "{shown:?}"
        );
        assert!(shown.contains("\n1 | error: ^\n"), "{shown:?}");
        assert!(
            shown.contains("\u{1b}[1;33mwarning\u{1b}[0m: w"),
            "{shown:?}"
        );
        let mut plain = shown;
        for sequence in [
            super::RED,
            super::YELLOW,
            super::BLUE,
            super::CYAN,
            super::PLAIN,
        ] {
            plain = plain.replace(sequence, "");
        }
        assert_eq!(plain, text);
    }
}
