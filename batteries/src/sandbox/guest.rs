//! Commands in the guest, and how the sandbox's errors read to a program.

use super::collect::{Limits, Note, collect};
use super::task::Cancel;
use a99_capabilities::{ShellCommand, ShellError, ShellErrorKind, ShellOutput, ShellRequest};
use a99_guest_agent::protocol::{Ending, Exec};
use a99_sandbox::vm::{Output, Sandbox, VmCode, VmError};
use std::time::{Duration, Instant};

/// The shell of scripts that are not in the session.
const SHELL: &str = "/bin/sh";

/// How the agent's texts end that tell of the system's errors ENOENT, ENOTDIR
/// and EACCES.
const NOT_FOUND: [&str; 2] = ["(os error 2)", "(os error 20)"];
const DENIED: &str = "(os error 13)";

/// What went wrong on the way.
pub(super) enum Trouble {
    /// With the sandbox, after the command ran for some time.
    Sandbox(VmError, ShellError),
    /// As a program may read it.
    Told(ShellError),
}

impl Trouble {
    /// What a program reads.
    pub fn into_error(self) -> ShellError {
        match self {
            Trouble::Sandbox(_, error) | Trouble::Told(error) => error,
        }
    }

    /// The error, if the guest is gone.
    pub fn end(&self) -> Option<&VmError> {
        match self {
            Trouble::Sandbox(error, told) if told.kind == ShellErrorKind::Crashed => Some(error),
            _ => None,
        }
    }
}

/// A sandbox that did not start, without a word about the host (security E20).
pub(super) fn unavailable(error: &VmError) -> ShellError {
    let text = format!("The computer cannot be started ({})", error.code.name());
    ShellError::new(ShellErrorKind::Unavailable, text)
}

/// A failure of the sandbox as a program reads it.
fn readable(error: &VmError, request: &ShellRequest) -> ShellError {
    match error.code {
        VmCode::TimedOut => ShellError::timed_out(request.timeout.unwrap_or_default()),
        VmCode::OutputLimit => ShellError::output_limit(request.output_limit),
        VmCode::CannotStart => {
            // The text is the guest's own.
            let told = |end: &str| error.text.ends_with(end);
            let kind = if NOT_FOUND.iter().any(|end| told(end)) {
                ShellErrorKind::NotFound
            } else if told(DENIED) {
                ShellErrorKind::Denied
            } else {
                ShellErrorKind::Failed
            };
            ShellError::new(kind, error.text.as_str())
        }
        _ => {
            let text = format!("The computer ended ({})", error.code.name());
            ShellError::new(ShellErrorKind::Crashed, text)
        }
    }
}

/// Runs a command that was checked.
pub(super) fn exec(
    sandbox: &Sandbox,
    request: &ShellRequest,
    cancel: &Cancel,
) -> Result<ShellOutput, Trouble> {
    let limits = Limits {
        timeout: request.timeout,
        output: request.output_limit,
    };
    let started = Instant::now();
    let done = match &request.command {
        ShellCommand::Script(text) if request.is_plain() => {
            let open = |sender: std::sync::mpsc::Sender<Note>| {
                sandbox.open_script(text, move |event| drop(sender.send(Note::Event(event))))
            };
            collect(open, None, &limits, cancel)
        }
        command => {
            let exec = fresh(command, request);
            let stdin = exec.stdin.then_some(request.stdin.as_slice());
            let open = |sender: std::sync::mpsc::Sender<Note>| {
                sandbox.open(exec, move |event| drop(sender.send(Note::Event(event))))
            };
            collect(open, stdin, &limits, cancel)
        }
    };
    let elapsed = started.elapsed();
    match done {
        Ok(output) => Ok(shell_output(output, elapsed)),
        Err(error) => {
            let told = readable(&error, request).after(elapsed);
            // Nobody reads it, and the guest is well.
            if cancel.is_cancelled() {
                return Err(Trouble::Told(told));
            }
            Err(Trouble::Sandbox(error, told))
        }
    }
}

/// A command as a fresh process.
fn fresh(command: &ShellCommand, request: &ShellRequest) -> Exec {
    let bytes = |text: &String| text.clone().into_bytes();
    let argv = match command {
        ShellCommand::Argv(argv) => argv.iter().map(bytes).collect(),
        ShellCommand::Script(text) => [SHELL, "-c", text]
            .map(|part| part.as_bytes().to_vec())
            .to_vec(),
    };
    Exec {
        argv,
        env: request
            .env
            .iter()
            .map(|(name, value)| (bytes(name), bytes(value)))
            .collect(),
        cwd: request.cwd.as_ref().map(bytes),
        stdin: !request.stdin.is_empty(),
        ..Exec::default()
    }
}

fn shell_output(output: Output, elapsed: Duration) -> ShellOutput {
    ShellOutput {
        exit_code: output.exited.exit_code(),
        signal: match output.exited.ending {
            Ending::Code(_) => None,
            Ending::Signal(number) => Some(number),
        },
        session_reset: output.exited.session_reset,
        stdout: output.stdout,
        stderr: output.stderr,
        elapsed,
    }
}
