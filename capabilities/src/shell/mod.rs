//! A computer to run commands on.
//!
//! Unlike other capabilities, this one transfers bytes, not the language's values; atoms
//! convert them to text. Paths are absolute paths of that computer, never of the host.

mod memory;
#[cfg(feature = "testing")]
pub(crate) mod suite;

pub use memory::MemoryShell;

use crate::error::BoxFuture;
use a99_core::text::Text;
use std::fmt;
use std::time::Duration;

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellCommand {
    /// A text for the session's shell, whose state (working directory, variables) persists for
    /// the next script. A script with a directory, variables or input does not run in the
    /// session and leaves no state behind.
    Script(String),
    /// A program with its arguments, run as a new process. A name without a slash is searched
    /// in the computer's program folders.
    Argv(Vec<String>),
}

/// A command with its environment and limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellRequest {
    /// The command.
    pub command: ShellCommand,
    /// Working directory; by default the computer chooses.
    pub cwd: Option<String>,
    /// Variables added to the environment.
    pub env: Vec<(String, String)>,
    /// Standard input, which ends after these bytes.
    pub stdin: Vec<u8>,
    /// Time limit. The command is then ended with all its processes, and the answer is
    /// [`ShellErrorKind::TimedOut`].
    pub timeout: Option<Duration>,
    /// Most bytes of both outputs together. The command is then ended, and the answer is
    /// [`ShellErrorKind::OutputLimit`].
    pub output_limit: usize,
}

impl ShellRequest {
    /// A command without environment, input or time limit, and with [`DEFAULT_OUTPUT_LIMIT`].
    #[must_use]
    pub fn new(command: ShellCommand) -> ShellRequest {
        ShellRequest {
            command,
            cwd: None,
            env: Vec::new(),
            stdin: Vec::new(),
            timeout: None,
            output_limit: DEFAULT_OUTPUT_LIMIT,
        }
    }

    /// A request for a script.
    #[must_use]
    pub fn script(text: &str) -> ShellRequest {
        ShellRequest::new(ShellCommand::Script(text.to_owned()))
    }

    /// A request for a program.
    #[must_use]
    pub fn argv(argv: &[&str]) -> ShellRequest {
        let argv = argv.iter().map(|arg| (*arg).to_owned()).collect();
        ShellRequest::new(ShellCommand::Argv(argv))
    }

    /// True if a script runs in the session: it has no directory, variables or input.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.cwd.is_none() && self.env.is_empty() && self.stdin.is_empty()
    }

    /// Refuses requests that no computer can run: an empty command, a NUL in a C string of the
    /// kernel, a variable without a name.
    ///
    /// # Errors
    /// [`ShellErrorKind::Invalid`].
    pub fn check(&self) -> Result<(), ShellError> {
        let invalid = |text: &str| Err(ShellError::new(ShellErrorKind::Invalid, text));
        let argv: &[String] = match &self.command {
            ShellCommand::Script(text) => std::slice::from_ref(text),
            ShellCommand::Argv(argv) if argv.first().is_none_or(String::is_empty) => {
                return invalid("The command names no program");
            }
            ShellCommand::Argv(argv) => argv,
        };
        let names = self.env.iter().map(|(name, _)| name);
        if names.clone().any(|n| n.is_empty() || n.contains('=')) {
            return invalid("A variable's name is empty or has a '=' in it");
        }
        let values = self.env.iter().map(|(_, value)| value);
        let mut texts = argv.iter().chain(&self.cwd).chain(names).chain(values);
        if texts.any(|text| text.contains('\0')) {
            return invalid("The command has a NUL character in it");
        }
        Ok(())
    }
}

/// Default limit of output: enough for a program to use, and well below the limit of values
/// that enter it (4 MiB, D21), base64 included.
pub const DEFAULT_OUTPUT_LIMIT: usize = 1 << 20;

/// Result of a command: exact bytes, nothing trimmed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellOutput {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// Exit code; 128 plus the signal's number after a signal, as in shells.
    pub exit_code: u8,
    /// Signal that ended the command.
    pub signal: Option<u8>,
    /// True if the session's shell ended with the script. The next script gets a new shell with
    /// the last working directory and exported variables.
    pub session_reset: bool,
    /// Running time of the command, without the computer's start-up. Programs pay for this
    /// time.
    pub elapsed: Duration,
}

/// Kind of failure. An exit code other than 0 is not a failure.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum ShellErrorKind {
    /// The request is invalid: no program, or a path that is not absolute.
    Invalid,
    /// The host's policy or the computer's permissions forbid it.
    Denied,
    /// The program, file or directory does not exist.
    NotFound,
    /// The command exceeded its time limit and was ended.
    TimedOut,
    /// The output or file exceeds its limit; a command was ended.
    OutputLimit,
    /// The computer ended or failed; its data may be lost.
    Crashed,
    /// The computer cannot be started.
    Unavailable,
    /// Another failure, such as a directory where a file should be.
    Failed,
}

impl ShellErrorKind {
    /// The kind as stable text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ShellErrorKind::Invalid => "shell.invalid",
            ShellErrorKind::Denied => "shell.denied",
            ShellErrorKind::NotFound => "shell.not_found",
            ShellErrorKind::TimedOut => "shell.timed_out",
            ShellErrorKind::OutputLimit => "shell.output_limit",
            ShellErrorKind::Crashed => "shell.crashed",
            ShellErrorKind::Unavailable => "shell.unavailable",
            ShellErrorKind::Failed => "shell.failed",
        }
    }
}

/// Failure of the computer. The program sees the text unchanged, so an implementation keeps the
/// host's internals out of it (security E20).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellError {
    /// Kind of the failure.
    pub kind: ShellErrorKind,
    /// Text for the program.
    pub message: Text,
    /// Running time of the command before the failure; programs pay for it too.
    pub elapsed: Duration,
}

impl ShellError {
    /// A failure before anything ran.
    pub fn new(kind: ShellErrorKind, message: impl Into<Text>) -> ShellError {
        ShellError {
            kind,
            message: message.into(),
            elapsed: Duration::ZERO,
        }
    }

    /// Adds the running time of the command.
    #[must_use]
    pub fn after(mut self, elapsed: Duration) -> ShellError {
        self.elapsed = elapsed;
        self
    }

    /// The failure of a command that ran longer than `limit`.
    #[must_use]
    pub fn timed_out(limit: Duration) -> ShellError {
        let text = format!("The command ran longer than {} ms", limit.as_millis());
        ShellError::new(ShellErrorKind::TimedOut, text).after(limit)
    }

    /// The failure of a command that wrote more than `limit` bytes.
    #[must_use]
    pub fn output_limit(limit: usize) -> ShellError {
        let text = format!("The command wrote more than {limit} bytes");
        ShellError::new(ShellErrorKind::OutputLimit, text)
    }

    /// The failure of reading a file of more than `limit` bytes.
    #[must_use]
    pub fn file_limit(path: &str, limit: usize) -> ShellError {
        let text = format!("{path}: larger than {limit} bytes");
        ShellError::new(ShellErrorKind::OutputLimit, text)
    }
}

impl fmt::Display for ShellError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.kind.as_str())
    }
}

impl std::error::Error for ShellError {}

/// Checks a file's path: absolute, without a NUL, and without a final slash.
///
/// # Errors
/// [`ShellErrorKind::Invalid`].
pub fn check_path(path: &str) -> Result<(), ShellError> {
    let wrong = if !path.starts_with('/') {
        "a path must start with '/'"
    } else if path.contains('\0') {
        "a path has no NUL character in it"
    } else if path.ends_with('/') {
        "a file's path does not end with '/'"
    } else {
        return Ok(());
    };
    let text = format!("{}: {wrong}", path.replace('\0', "\u{FFFD}"));
    Err(ShellError::new(ShellErrorKind::Invalid, text))
}

/// Permission bits that a mode may have: read, write and execute. No file that a program writes
/// is set-user-ID.
pub const MODE_BITS: u32 = 0o777;

/// Default mode of a new file.
pub const DEFAULT_MODE: u32 = 0o644;

/// Reply of a [`Shell`].
pub type ShellReply<'a, T> = BoxFuture<'a, Result<T, ShellError>>;

/// A computer that runs commands and has files.
///
/// Calls may be concurrent; scripts run one after another. Dropping a call's future ends the
/// command and all its processes, as a timeout does; the computer stays usable.
pub trait Shell: Send + Sync {
    /// Runs a command and waits for its end.
    fn exec(&self, request: ShellRequest) -> ShellReply<'_, ShellOutput>;

    /// Writes a whole file, or replaces it, with this mode ([`MODE_BITS`]). Its directory must
    /// exist.
    fn write_file(&self, path: String, bytes: Vec<u8>, mode: u32) -> ShellReply<'_, ()>;

    /// Reads a whole file; more than `limit` bytes are refused with
    /// [`ShellErrorKind::OutputLimit`].
    fn read_file(&self, path: String, limit: usize) -> ShellReply<'_, Vec<u8>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senseless_requests_are_refused() {
        let check = |request: ShellRequest| request.check().map_err(|error| error.kind);
        assert_eq!(check(ShellRequest::script("")), Ok(()));
        assert_eq!(check(ShellRequest::argv(&["a", ""])), Ok(()));
        let mut named = ShellRequest::argv(&["a"]);
        named.env.push(("A=B".to_owned(), String::new()));
        let mut cwd = ShellRequest::script("a");
        cwd.cwd = Some("/\0".to_owned());
        for request in [
            ShellRequest::argv(&[]),
            ShellRequest::argv(&[""]),
            ShellRequest::argv(&["a\0"]),
            ShellRequest::script("\0"),
            named,
            cwd,
        ] {
            assert_eq!(check(request), Err(ShellErrorKind::Invalid));
        }
    }

    #[test]
    fn paths_are_absolute() {
        assert!(check_path("/a").is_ok());
        for bad in ["", "a", "/", "/a/", "/a\0b", "./a"] {
            assert!(check_path(bad).is_err(), "{bad:?}");
        }
    }
}
