//! Output of a command, and how it ended.

use a99_sandbox_protocol::{Ending, Exited};

/// What a command did: exact bytes, nothing trimmed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// How it ended.
    pub exited: Exited,
}

impl Output {
    /// The exit code; for a command that a signal ended 128 and its number, as
    /// shells have it.
    pub fn exit_code(&self) -> i32 {
        self.exited.exit_code().into()
    }

    /// The signal that ended it, if one did.
    pub fn signal(&self) -> Option<u8> {
        match self.exited.ending {
            Ending::Signal(number) => Some(number),
            Ending::Code(_) => None,
        }
    }

    /// Whether the session shell ended with the script: the next one has the
    /// last working directory and exported variables, and no other state.
    pub fn session_reset(&self) -> bool {
        self.exited.session_reset
    }

    /// Whether a process of it was ended for want of memory.
    pub fn out_of_memory(&self) -> bool {
        self.exited.out_of_memory
    }

    /// Standard output as text; what is no UTF-8 is replaced.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text; what is no UTF-8 is replaced.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}
