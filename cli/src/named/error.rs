//! Errors of named sandboxes, which travel from the daemon to its clients.

use crate::commands::sandbox::{SANDBOX_FAILED, exit_of};
use crate::failure::Exit;
use crate::local::Refusal;
use crate::output;
use a99_sandbox::{VmCode, VmError};
use serde_json::json;
use std::fmt::Display;
use std::io;

/// No sandbox with that name runs.
pub(crate) const NO_SUCH_NAME: &str = "sandbox.no_such_name";
/// A sandbox with that name already runs.
pub(crate) const NAME_TAKEN: &str = "sandbox.name_taken";
/// As many named sandboxes run as the user allows.
pub(crate) const TOO_MANY: &str = "sandbox.too_many";
/// Others may access the runtime directory.
pub(crate) const UNTRUSTED_FOLDER: &str = "sandbox.untrusted_folder";
/// Too many commands wait for the sandbox.
pub(crate) const BUSY: &str = "sandbox.busy";
/// The sandbox's process does not answer.
pub(crate) const NOT_ANSWERING: &str = "sandbox.not_answering";
/// The sandbox's process ended during the request.
pub(crate) const LOST: &str = "sandbox.lost";
/// Another user, or another version of this program, is at the other end.
pub(crate) const REFUSED: &str = "sandbox.refused";

impl Refusal {
    /// An I/O error.
    pub(crate) fn io(subject: impl Display, error: impl Display) -> Self {
        Self::new(VmCode::Io.name(), format!("{subject}: {error}"))
    }

    /// Reports the error as `sandbox exec` does.
    pub(crate) fn report(&self, json: bool) -> Exit {
        if json {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let mut report = json!({"error": {"code": self.code, "message": self.message}});
            if let Some((stdout, stderr)) = self.output.as_deref() {
                report["stdout"] = text(stdout).into();
                report["stderr"] = text(stderr).into();
            }
            output::out(&format!("{report}\n"));
        } else {
            output::note(&format!("error[{}]", self.code), &self.message);
        }
        Exit::Guest(self.exit.unwrap_or(SANDBOX_FAILED))
    }
}

impl From<io::Error> for Refusal {
    /// An error of a connection.
    fn from(error: io::Error) -> Self {
        Self::io("connection", error)
    }
}

impl From<VmError> for Refusal {
    fn from(error: VmError) -> Self {
        let exit = exit_of(&error);
        Self {
            exit: Some(exit),
            output: error
                .output
                .map(|output| Box::new((output.stdout, output.stderr))),
            ..Self::new(error.code.name(), error.text)
        }
    }
}

/// The command's exit; an error is reported.
pub(crate) fn ended(result: Result<Exit, Refusal>, json: bool) -> Exit {
    result.unwrap_or_else(|error| error.report(json))
}
