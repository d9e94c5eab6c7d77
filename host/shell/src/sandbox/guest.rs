//! Commands in the guest, and the sandbox's errors as programs see them.

use a99_capabilities::{ShellCommand, ShellError, ShellErrorKind, ShellOutput, ShellRequest};
use a99_sandbox::{ExecOptions, Output, Sandbox, VmCode, VmError};
use std::time::{Duration, Instant};

/// Endings of the guest agent's texts for the system's errors ENOENT, ENOTDIR and EACCES.
const NOT_FOUND: [&str; 2] = ["(os error 2)", "(os error 20)"];
const DENIED: &str = "(os error 13)";

/// The error for a sandbox that did not start; it reveals nothing about the host (security
/// E20).
pub(super) fn unavailable(error: &VmError) -> ShellError {
    let text = format!("The computer cannot be started ({})", error.code.name());
    ShellError::new(ShellErrorKind::Unavailable, text)
}

/// Runs a checked command. Dropping the future kills it.
pub(super) async fn exec(
    sandbox: &Sandbox,
    request: ShellRequest,
) -> Result<ShellOutput, ShellError> {
    let (timeout, limit) = (request.timeout, request.output_limit);
    let started = Instant::now();
    let done = match request.command {
        ShellCommand::Script(text) => {
            let options = ExecOptions {
                root: false,
                cwd: request.cwd,
                env: request.env,
                stdin: (!request.stdin.is_empty()).then_some(request.stdin),
                timeout,
                output_limit: Some(limit as u64),
                cancel: None,
            };
            sandbox.exec_with(text, options).await
        }
        ShellCommand::Argv(argv) => {
            let mut command = sandbox.command(argv).output_limit(limit as u64);
            if let Some(cwd) = request.cwd {
                command = command.cwd(cwd);
            }
            for (name, value) in request.env {
                command = command.env(name, value);
            }
            if !request.stdin.is_empty() {
                command = command.stdin(request.stdin);
            }
            if let Some(timeout) = timeout {
                command = command.timeout(timeout);
            }
            command.output().await
        }
    };
    let elapsed = started.elapsed();
    match done {
        Ok(output) => Ok(shell_output(output, elapsed)),
        Err(error) => Err(readable(&error, timeout, limit).after(elapsed)),
    }
}

/// Converts a sandbox failure for programs.
fn readable(error: &VmError, timeout: Option<Duration>, limit: usize) -> ShellError {
    match error.code {
        VmCode::TimedOut => ShellError::timed_out(timeout.unwrap_or_default()),
        VmCode::OutputLimit => ShellError::output_limit(limit),
        VmCode::CannotStart => {
            // The text comes from the guest.
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

fn shell_output(output: Output, elapsed: Duration) -> ShellOutput {
    ShellOutput {
        exit_code: output.exited.exit_code(),
        signal: output.signal(),
        session_reset: output.session_reset(),
        stdout: output.stdout,
        stderr: output.stderr,
        elapsed,
    }
}
