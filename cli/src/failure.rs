//! Exit codes, and failures that are not the outcome of a run.

use crate::output::{self, Format};
use agent99::{Diagnostics, ErrorCode, Map, Value};
use std::fmt::Display;

/// How the process ends. The numbers are part of the command's contract.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All went well.
    Ok,
    /// The program returned an error that nobody caught.
    Error,
    /// The command line, an argument or a file is not usable.
    Usage,
    /// The program was rejected before it ran.
    Rejected,
    /// The fuel is used up.
    Fuel,
    /// The run, or an atom whose timeout nobody caught, took too long.
    Timeout,
    /// The heap ceiling was reached.
    Memory,
    /// A call quota is used up.
    Quota,
    /// The run was interrupted.
    Aborted,
}

impl Exit {
    /// The number that the process gives.
    pub const fn code(self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::Error => 1,
            Exit::Usage => 2,
            Exit::Rejected => 3,
            Exit::Fuel => 4,
            Exit::Timeout => 5,
            Exit::Memory => 6,
            Exit::Quota => 7,
            Exit::Aborted => 130,
        }
    }

    /// How a run ends that failed with this code (decision D11).
    pub const fn of(code: ErrorCode) -> Exit {
        match code {
            ErrorCode::OutOfFuel => Exit::Fuel,
            ErrorCode::RunTimeout | ErrorCode::AtomTimeout => Exit::Timeout,
            ErrorCode::HeapLimit => Exit::Memory,
            ErrorCode::QuotaExceeded => Exit::Quota,
            ErrorCode::Aborted => Exit::Aborted,
            ErrorCode::Options => Exit::Usage,
            _ => Exit::Error,
        }
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The command line, an argument or a file is not usable.
    Usage(String),
    /// The program was rejected.
    Rejected {
        /// What is wrong with it.
        findings: Diagnostics,
        /// The name to show for its text.
        name: String,
        /// Its text.
        source: Vec<u8>,
    },
}

impl Failure {
    /// A usage failure with this text.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::Usage(message.into())
    }

    /// A usage failure about a file or value: `subject: reason`.
    pub fn about(subject: &str, reason: impl Display) -> Failure {
        Failure::Usage(format!("{subject}: {reason}"))
    }

    /// Tells the user and gives the exit.
    pub fn report(self, format: Format) -> Exit {
        match self {
            Failure::Usage(message) => {
                match format {
                    Format::Json => output::json(&error_json("usage", &message, None)),
                    Format::Human => output::note("error", &message),
                }
                Exit::Usage
            }
            Failure::Rejected {
                findings,
                name,
                source,
            } => {
                match format {
                    Format::Json => output::json(&error_json(
                        "program.rejected",
                        "The program was rejected",
                        Some(&findings),
                    )),
                    Format::Human => output::err(&findings.render(Some((&name, &source)))),
                }
                Exit::Rejected
            }
        }
    }
}

/// `{error: {code, message}, diagnostics}`.
fn error_json(code: &str, message: &str, findings: Option<&Diagnostics>) -> Value {
    let error: Map = [("code", code), ("message", message)].into_iter().collect();
    let mut map = Map::new();
    map.insert("error", error);
    if let Some(findings) = findings {
        map.insert("diagnostics", findings.to_json());
    }
    Value::Object(map)
}
