//! Exit codes, and failures that are not the outcome of a run.

use crate::output::{self, Format};
use a99_core::text::escape_for_terminal;
use agent99::artifact::ArtifactError;
use agent99::{Diagnostics, ErrorCode, LoadError, Map, Value, codes};
use std::fmt::Display;

/// The command line, an argument or a file is not usable, or the output cannot be
/// written.
// With its alias.
const USAGE: [&str; 2] = ["cli.usage", "usage"];
/// The program was rejected; its diagnostics say why.
const REJECTED: &str = "program.rejected";

/// How the process ends. The numbers are part of the command's contract.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All went well.
    Ok,
    /// The program returned an error that nobody caught.
    Error,
    /// The command line, an argument or a file is not usable, or the output
    /// cannot be written.
    Usage,
    /// The program or artifact was rejected before it ran.
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
    /// As a command in a sandbox ended.
    #[cfg(feature = "sandbox")]
    Guest(u8),
}

impl Exit {
    /// The number that the process gives.
    pub(crate) const fn code(self) -> u8 {
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
            #[cfg(feature = "sandbox")]
            Exit::Guest(code) => code,
        }
    }

    /// How a run ends that failed with this code (decision D11).
    pub(crate) const fn of(code: ErrorCode) -> Exit {
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
pub(crate) enum Failure {
    /// The command line, an argument or a file is not usable.
    Usage(String),
    /// The program was rejected.
    Rejected {
        /// What is wrong with it.
        diagnostics: Diagnostics,
        /// The name to show for its text.
        name: String,
        /// Its text.
        source: Vec<u8>,
    },
    /// The artifact was refused.
    Artifact {
        /// Why.
        error: LoadError,
        /// The name to show for the file.
        name: String,
    },
}

impl Failure {
    /// A usage failure with this text.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::Usage(message.into())
    }

    /// A usage failure about a file or value: `subject: reason`.
    pub(crate) fn about(subject: &str, reason: impl Display) -> Failure {
        Failure::Usage(format!("{subject}: {reason}"))
    }

    /// A failure of an artifact of this name.
    pub(crate) fn artifact(name: &str, error: impl Into<LoadError>) -> Failure {
        Failure::Artifact {
            error: error.into(),
            name: name.to_owned(),
        }
    }

    /// An artifact that is refused for a reason of the command's own.
    pub(crate) fn refused(name: &str, code: &'static str, message: &str, help: &str) -> Failure {
        let error = ArtifactError {
            code,
            message: message.to_owned(),
            offset: None,
            help: help.to_owned(),
        };
        Failure::artifact(name, error)
    }

    /// Reports to the user and gives the exit.
    pub(crate) fn report(self, format: Format) -> Exit {
        match self {
            Failure::Usage(message) => {
                match format {
                    Format::Json => {
                        let [code, alias] = USAGE;
                        output::json(&error_json(code, Some(alias), &message, None));
                    }
                    Format::Human => output::note("error", &message),
                }
                Exit::Usage
            }
            Failure::Rejected {
                diagnostics,
                name,
                source,
            } => {
                match format {
                    Format::Json => output::json(&error_json(
                        REJECTED,
                        None,
                        "The program was rejected",
                        Some(&diagnostics),
                    )),
                    Format::Human => output::err(&diagnostics.render(Some((&name, &source)))),
                }
                Exit::Rejected
            }
            Failure::Artifact { error, name } => {
                match format {
                    Format::Json => output::json(&artifact_json(&error)),
                    Format::Human => output::err(&artifact_text(&error, &name)),
                }
                Exit::Rejected
            }
        }
    }
}

/// A refused artifact in the manner of the compiler's diagnostics.
fn artifact_text(error: &LoadError, name: &str) -> String {
    let place = error
        .offset()
        .map_or(String::new(), |at| format!(" (byte {at})"));
    format!(
        "error[{}]: {}\n  --> {}{place}\n  = help: {}\n",
        error.code(),
        escape_for_terminal(&error.message()),
        escape_for_terminal(name),
        escape_for_terminal(error.help()),
    )
}

/// `{error: {code, alias, message, offset, help}}`; without an offset where no
/// byte is to blame.
fn artifact_json(error: &LoadError) -> Value {
    let mut map = Map::new();
    codes::insert(&mut map, error.code());
    map.insert("message", error.message());
    if let Some(offset) = error.offset() {
        // Files are far smaller than what a double counts exactly.
        map.insert("offset", offset as f64);
    }
    map.insert("help", error.help());
    Value::Object([("error", map)].into_iter().collect())
}

/// `{error: {code, alias, message}, diagnostics}`.
fn error_json(
    code: &str,
    alias: Option<&str>,
    message: &str,
    diagnostics: Option<&Diagnostics>,
) -> Value {
    let alias = alias.map(|alias| ("alias", alias));
    let error: Map = [("code", code)]
        .into_iter()
        .chain(alias)
        .chain([("message", message)])
        .collect();
    let mut map = Map::new();
    map.insert("error", error);
    if let Some(diagnostics) = diagnostics {
        map.insert("diagnostics", diagnostics.to_json());
    }
    Value::Object(map)
}
