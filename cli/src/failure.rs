//! Exit codes, and failures that are not the outcome of a run.

use crate::output::{self, Format};
use a99_core::diag::suggest;
use a99_core::text::escape_for_terminal;
use agent99::artifact::ArtifactError;
use agent99::{Diagnostics, ErrorCode, LoadError, Map, Value, codes};
use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::path::Path;

/// The command line, an argument or a file is not usable, or the output cannot be written.
// With its alias.
pub(crate) const USAGE: [&str; 2] = ["cli.usage", "usage"];
/// The program's `inputSchema` does not declare an argument of the run.
pub(crate) const UNDECLARED: &str = "cli.undeclared_argument";
/// A header is for a server that no rule of `allow` permits.
pub(crate) const UNUSED_HEADER: &str = "cli.unused_header";
/// A limit of tokens or money has no effect: no model is granted, or one has no price.
pub(crate) const NO_LIMIT: &str = "cli.no_limit";
/// The program was rejected; its diagnostics say why.
const REJECTED: &str = "program.rejected";
#[cfg(not(all(
    unix,
    feature = "agent",
    feature = "embed",
    feature = "http",
    feature = "otlp",
    feature = "sandbox",
    feature = "server",
    feature = "sqlite"
)))]
/// The command or option needs a feature that this binary lacks; the message shows how to
/// install it.
const MISSING_FEATURE: &str = "cli.missing_feature";

/// Exit status of the process. The numbers are part of the command's contract.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All went well.
    Ok,
    /// The program returned an error that it did not catch.
    Error,
    /// The command line, an argument or a file is not usable, or the output cannot be written.
    Usage,
    /// The program or artifact was rejected before it ran.
    Rejected,
    /// The fuel is used up.
    Fuel,
    /// The run, or an atom whose timeout the program did not catch, took too long.
    Timeout,
    /// The heap ceiling was reached.
    Memory,
    /// A call quota is used up.
    Quota,
    /// The run was interrupted.
    Aborted,
    /// Exit code of a command in a sandbox.
    #[cfg(feature = "sandbox")]
    Guest(u8),
}

impl Exit {
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

    /// Exit of a run that failed with this code (decision D11).
    pub(crate) const fn of(code: ErrorCode) -> Exit {
        match code {
            ErrorCode::OutOfFuel => Exit::Fuel,
            ErrorCode::RunTimeout | ErrorCode::AtomTimeout => Exit::Timeout,
            ErrorCode::HeapLimit => Exit::Memory,
            ErrorCode::QuotaExceeded => Exit::Quota,
            ErrorCode::Aborted => Exit::Aborted,
            ErrorCode::Options | ErrorCode::UnknownOp | ErrorCode::ArgsInvalid => Exit::Usage,
            _ => Exit::Error,
        }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line, an argument or a file is not usable.
    Usage(String),
    /// A usage failure with its own code and help.
    Coded {
        code: &'static str,
        message: String,
        help: String,
    },
    /// Several mistakes of one file, in its order; never empty.
    Several(Vec<Failure>),
    /// The program was rejected.
    Rejected {
        diagnostics: Diagnostics,
        /// The name to show for its text.
        name: String,
        source: Vec<u8>,
    },
    /// The artifact was refused.
    Artifact {
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

    /// A usage failure about a file or value, with help.
    pub(crate) fn advised(subject: &str, reason: impl Display, help: impl Into<String>) -> Failure {
        Failure::coded(USAGE[0], format!("{subject}: {reason}"), help)
    }

    /// A file that cannot be opened, read or written.
    pub(crate) fn of_file(subject: &str, path: &Path, error: &io::Error) -> Failure {
        let shown = path.display();
        match error.kind() {
            ErrorKind::NotFound => {
                Failure::advised(subject, "there is no such file", near_file(path))
            }
            ErrorKind::IsADirectory => Failure::advised(
                subject,
                "this is a folder, not a file",
                format!("name a file, as in `{}`", path.join("FILE").display()),
            ),
            ErrorKind::AlreadyExists => Failure::advised(
                subject,
                "a file of this name is there already",
                "give another name, or remove that file",
            ),
            ErrorKind::NotADirectory => Failure::advised(
                subject,
                "a part of this path is a file, not a folder",
                "name a file in a folder that exists",
            ),
            ErrorKind::PermissionDenied => Failure::advised(
                subject,
                "the permissions of the file or its folder forbid it",
                format!("look at them with `ls -ld {shown}`"),
            ),
            _ => Failure::about(subject, error),
        }
    }

    /// A usage failure with its own code and help.
    pub(crate) fn coded(
        code: &'static str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Failure {
        Failure::Coded {
            code,
            message: message.into(),
            help: help.into(),
        }
    }

    /// The command or option needs a feature that this binary lacks.
    #[cfg(not(all(
        unix,
        feature = "agent",
        feature = "embed",
        feature = "http",
        feature = "lsp",
        feature = "models",
        feature = "otlp",
        feature = "sandbox",
        feature = "server",
        feature = "sqlite"
    )))]
    pub(crate) fn missing_feature(what: &str, feature: &str) -> Failure {
        Failure::coded(
            MISSING_FEATURE,
            format!(
                "{what} is not in this binary, which was built without the feature `{feature}`"
            ),
            format!("install it from a checkout: `cargo install --path cli --features {feature}`"),
        )
    }

    /// A refused artifact.
    pub(crate) fn artifact(name: &str, error: impl Into<LoadError>) -> Failure {
        Failure::Artifact {
            error: error.into(),
            name: name.to_owned(),
        }
    }

    /// An artifact that the command refuses for its own reason.
    pub(crate) fn refused(name: &str, code: &'static str, message: &str, help: &str) -> Failure {
        let error = ArtifactError {
            code,
            message: message.to_owned(),
            offset: None,
            help: help.to_owned(),
        };
        Failure::artifact(name, error)
    }

    pub(crate) const fn exit(&self) -> Exit {
        match self {
            Failure::Usage(_) | Failure::Coded { .. } | Failure::Several(_) => Exit::Usage,
            Failure::Rejected { .. } | Failure::Artifact { .. } => Exit::Rejected,
        }
    }

    /// The error in one sentence.
    pub(crate) fn message(&self) -> String {
        match self {
            Failure::Usage(message) | Failure::Coded { message, .. } => message.clone(),
            Failure::Several(all) => all.first().map_or(String::new(), Failure::message),
            Failure::Rejected { .. } => "The program was rejected".to_owned(),
            Failure::Artifact { error, .. } => error.message(),
        }
    }

    /// Members of its JSON form: `error: {code, alias, message, offset, help}`, with `offset` if a
    /// byte is to blame, and `diagnostics` of a program.
    pub(crate) fn to_json(&self) -> Map {
        let mut map = Map::new();
        let mut error = Map::new();
        match self {
            Failure::Usage(message) => {
                let [code, alias] = USAGE;
                error.insert("code", code);
                error.insert("alias", alias);
                error.insert("message", message.as_str());
            }
            Failure::Coded {
                code,
                message,
                help,
            } => {
                codes::insert(&mut error, code);
                if *code == USAGE[0] {
                    error.insert("alias", USAGE[1]);
                }
                error.insert("message", message.as_str());
                error.insert("help", help.as_str());
            }
            Failure::Several(all) => {
                let all: Vec<Map> = all.iter().map(Failure::to_json).collect();
                let errors = all.into_iter().filter_map(|mut one| one.remove("error"));
                let errors: Vec<Value> = errors.collect();
                map.insert("error", errors.first().cloned().unwrap_or(Value::Null));
                map.insert("errors", errors);
                return map;
            }
            Failure::Rejected { .. } => {
                error.insert("code", REJECTED);
                error.insert("message", "The program was rejected");
            }
            Failure::Artifact { error: why, .. } => {
                codes::insert(&mut error, why.code());
                error.insert("message", why.message());
                if let Some(offset) = why.offset() {
                    // Files are far smaller than 2^53 bytes, so a double is exact.
                    error.insert("offset", offset as f64);
                }
                error.insert("help", why.help());
            }
        }
        map.insert("error", error);
        if let Failure::Rejected { diagnostics, .. } = self {
            map.insert("diagnostics", diagnostics.to_json());
        }
        map
    }

    /// Reports to the user and gives the exit.
    pub(crate) fn report(self, format: Format) -> Exit {
        match format {
            Format::Json => output::json(&Value::Object(self.to_json())),
            Format::Human => self.show(),
        }
        self.exit()
    }

    /// Message and help, one line each.
    pub(crate) fn told(&self) -> (String, String) {
        match self {
            Failure::Usage(message) => (message.clone(), String::new()),
            Failure::Coded { message, help, .. } => (message.clone(), help.clone()),
            Failure::Several(all) => {
                let (texts, helps): (Vec<_>, Vec<_>) = all.iter().map(Failure::told).unzip();
                (
                    texts.join("; "),
                    helps.into_iter().next().unwrap_or_default(),
                )
            }
            Failure::Rejected { diagnostics, .. } => (diagnostics.to_string(), String::new()),
            Failure::Artifact { error, name } => (format!("{name}: {error}"), String::new()),
        }
    }

    pub(crate) fn show(&self) {
        match self {
            Failure::Usage(message) => output::err(&format!(
                "error[{}]: {}\n",
                USAGE[0],
                escape_for_terminal(message)
            )),
            Failure::Several(all) => all.iter().for_each(Failure::show),
            Failure::Coded {
                code,
                message,
                help,
            } => output::err(&format!(
                "error[{code}]: {}\n  = help: {}\n",
                escape_for_terminal(message),
                escape_for_terminal(help),
            )),
            Failure::Rejected {
                diagnostics,
                name,
                source,
            } => output::err(&diagnostics.render(Some((name, source)))),
            Failure::Artifact { error, name } => output::err(&artifact_text(error, name)),
        }
    }
}

/// Help for a missing file: a file in its folder with a similar name.
fn near_file(path: &Path) -> String {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let Ok(entries) = folder.read_dir() else {
        return format!("there is no folder `{}`", folder.display());
    };
    // Bound the read of a large folder.
    const MOST: usize = 1000;
    let names = entries
        .take(MOST)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    // Most names of a folder share an extension: compare the stems.
    let stems: Vec<String> = names.iter().map(|name| stem(name)).collect();
    let meant = suggest(&stem(&wanted), stems.iter().map(String::as_str));
    let meant = meant.filter(|meant| meant.len() > 2 || *meant == stem(&wanted));
    let near = meant.and_then(|meant| names.iter().find(|name| stem(name) == meant).cloned());
    match near {
        Some(near) => format!("did you mean `{}`?", path.with_file_name(near).display()),
        None => "write the path of a file that exists, from the folder where `a99` is started"
            .to_owned(),
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
