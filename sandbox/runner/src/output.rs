//! Output of a command, and how it ended.

use a99_sandbox_protocol::{Ending, Exited};

/// Result of a command: exact bytes, nothing trimmed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// How the command ended.
    pub exited: Exited,
}

impl Output {
    /// Returns the exit code; for a command that a signal ended, 128 plus its number, as in
    /// shells.
    pub fn exit_code(&self) -> i32 {
        self.exited.exit_code().into()
    }

    /// The signal that ended the command, if one did.
    pub fn signal(&self) -> Option<u8> {
        match self.exited.ending {
            Ending::Signal(number) => Some(number),
            Ending::Code(_) => None,
        }
    }

    /// Whether the session shell ended with the script: the next shell gets the last
    /// working directory and exported variables, and no other state.
    pub fn session_reset(&self) -> bool {
        self.exited.session_reset
    }

    /// Whether the kernel's out-of-memory killer ended one of its processes.
    pub fn out_of_memory(&self) -> bool {
        self.exited.out_of_memory
    }

    /// Returns standard output as text, with invalid UTF-8 replaced.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns standard error as text, with invalid UTF-8 replaced.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}
