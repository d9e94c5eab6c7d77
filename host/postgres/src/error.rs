//! Errors of the server, of connections, and of stored data.

use crate::tls::DialError;
use a99_capabilities::CapabilityError;
use a99_core::diag::excerpt;
use a99_core::text::{Text, escape_for_terminal};
use std::error::Error;
use std::fmt;
use std::io;
use tokio_postgres::error::SqlState;

/// The kind of an error. The text of a code never changes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum PostgresCode {
    /// The store does not accept a key, value or other argument.
    Input,
    /// The namespace has reached its quota.
    Quota,
    /// The URL, a file that it names, or another option is not usable.
    Config,
    /// The server does not answer, or the connection to it broke.
    Unreachable,
    /// The connection cannot be encrypted, or the server's identity is wrong.
    Tls,
    /// The server refuses this user.
    Login,
    /// The database does not exist.
    NotFound,
    /// The user lacks a permission.
    Denied,
    /// The database is read-only.
    ReadOnly,
    /// A later version of this program wrote the tables.
    Newer,
    /// The tables are gone, or other objects have their names.
    Foreign,
    /// The server is older than the supported versions.
    OldServer,
    /// The server's disk is full.
    Full,
    /// The server accepts no more connections.
    TooManyConnections,
    /// Other transactions blocked the work for longer than the deadline.
    Busy,
    /// The server took longer than the deadline.
    Timeout,
    /// The connection broke during a write, which may have succeeded or not.
    InDoubt,
    /// The data on the server is damaged.
    Corrupt,
    /// The caller stopped waiting, or the store was closed.
    Stopped,
    /// The server refused the work for another reason.
    Failed,
}

impl PostgresCode {
    /// The code as text, for machines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PostgresCode::Input => "postgres.input",
            PostgresCode::Quota => "postgres.quota",
            PostgresCode::Config => "postgres.config",
            PostgresCode::Unreachable => "postgres.unreachable",
            PostgresCode::Tls => "postgres.tls",
            PostgresCode::Login => "postgres.login",
            PostgresCode::NotFound => "postgres.not_found",
            PostgresCode::Denied => "postgres.denied",
            PostgresCode::ReadOnly => "postgres.read_only",
            PostgresCode::Newer => "postgres.newer",
            PostgresCode::Foreign => "postgres.foreign",
            PostgresCode::OldServer => "postgres.old_server",
            PostgresCode::Full => "postgres.full",
            PostgresCode::TooManyConnections => "postgres.too_many_connections",
            PostgresCode::Busy => "postgres.busy",
            PostgresCode::Timeout => "postgres.timeout",
            PostgresCode::InDoubt => "postgres.in_doubt",
            PostgresCode::Corrupt => "postgres.corrupt",
            PostgresCode::Stopped => "postgres.stopped",
            PostgresCode::Failed => "postgres.failed",
        }
    }

    /// The advice that follows from the code alone.
    const fn help(self) -> Option<&'static str> {
        match self {
            PostgresCode::Unreachable => Some("see that the server runs, and the URL names it"),
            PostgresCode::Tls => Some(
                "name the authority of the server's certificate with sslrootcert=FILE, and the \
                 server as the certificate does",
            ),
            PostgresCode::Login => Some("see that the user and the password are right"),
            PostgresCode::NotFound => Some("make it (createdb), or name another one"),
            PostgresCode::Denied => {
                Some("let the user make a schema, or have its owner grant what is in it")
            }
            PostgresCode::ReadOnly => Some("name the server that takes writes"),
            PostgresCode::Newer => {
                Some("use the version of this program that wrote it, or a later one")
            }
            PostgresCode::Foreign => Some("name another schema"),
            PostgresCode::Full => Some("make room on the server's disk"),
            PostgresCode::TooManyConnections => {
                Some("allow fewer connections here, or more on the server")
            }
            PostgresCode::Corrupt => Some("restore a backup"),
            _ => None,
        }
    }

    /// Message for programs, without details of the host.
    const fn text(self) -> &'static str {
        match self {
            PostgresCode::Input => "The store does not take this.",
            PostgresCode::Quota | PostgresCode::Full => "Store is full",
            PostgresCode::Unreachable => "The store cannot be reached: try again later.",
            PostgresCode::TooManyConnections | PostgresCode::Busy => {
                "The store is busy: try again later."
            }
            PostgresCode::Timeout => "The store took too long.",
            PostgresCode::InDoubt => {
                "The store broke off while it wrote: read the key to see whether it did."
            }
            PostgresCode::Stopped => "The store was closed.",
            PostgresCode::Corrupt => "The store is damaged.",
            PostgresCode::ReadOnly => "The store can only be read.",
            _ => "The store does not work.",
        }
    }
}

/// State of the connection after an error, and whether to retry.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The server refused; the connection stays usable.
    Kept,
    /// A serialization failure or deadlock: nothing was changed, and a retry may succeed.
    Conflict,
    /// The server is not ready yet.
    Starting,
    /// The outcome is unknown.
    Lost,
}

/// Error of using the server or of storing on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresError {
    code: PostgresCode,
    message: String,
    /// Message for programs, if it is not the code's default.
    text: Option<Text>,
    fate: Fate,
}

impl PostgresError {
    /// An error that the host's own work on a [`PostgresStore`](crate::PostgresStore) returns.
    /// Programs see only the default text of the code.
    #[must_use]
    pub fn new(code: PostgresCode, message: impl Into<String>) -> PostgresError {
        PostgresError {
            code,
            message: message.into(),
            text: None,
            fate: Fate::Kept,
        }
    }

    /// Like [`PostgresError::new`], but programs see the message unchanged.
    #[must_use]
    pub fn shown(code: PostgresCode, message: impl Into<String>) -> PostgresError {
        let message = message.into();
        PostgresError {
            text: Some(message.as_str().into()),
            ..PostgresError::new(code, message)
        }
    }

    pub(crate) fn with_fate(mut self, fate: Fate) -> PostgresError {
        self.fate = fate;
        self
    }

    pub(crate) fn fate(&self) -> Fate {
        self.fate
    }

    /// Adds the place of the server.
    pub(crate) fn at(mut self, place: &str) -> PostgresError {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// The code of the error.
    #[must_use]
    pub fn code(&self) -> PostgresCode {
        self.code
    }

    /// Message with the cause and the place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Advice, if any.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        self.code.help()
    }

    /// The error without addresses or other details of the host.
    #[must_use]
    pub fn for_program(&self) -> CapabilityError {
        match &self.text {
            Some(text) => CapabilityError::new(text.clone()),
            None => CapabilityError::new(self.code.text()),
        }
    }
}

/// Prints the message, then the advice.
impl fmt::Display for PostgresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.help() {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

impl Error for PostgresError {}

impl From<CapabilityError> for PostgresError {
    fn from(error: CapabilityError) -> PostgresError {
        PostgresError {
            text: Some(error.message.clone()),
            ..PostgresError::new(PostgresCode::Input, error.message.to_string())
        }
    }
}

/// Text of the server, shortened and escaped for terminals.
fn said(text: &str) -> String {
    excerpt(&escape_for_terminal(text))
}

impl From<tokio_postgres::Error> for PostgresError {
    fn from(error: tokio_postgres::Error) -> PostgresError {
        if let Some(db) = error.as_db_error() {
            let (code, fate) = judge(db.code());
            let message = format!("{} ({})", said(db.message()), db.code().code());
            return PostgresError::new(code, message).with_fate(fate);
        }
        let dialled = error.source().and_then(|cause| cause.downcast_ref());
        if let Some(DialError::Broken(cause)) = dialled {
            let message = format!("the connection broke ({})", said(&cause.to_string()));
            return PostgresError::new(PostgresCode::Unreachable, message).with_fate(Fate::Lost);
        }
        let causes = std::iter::successors(error.source(), |&cause| cause.source());
        let cause = causes.last().map_or_else(String::new, ToString::to_string);
        let (kind, cause) = (error.to_string(), said(&cause));
        let (code, message) = match kind.as_str() {
            "error performing TLS handshake" => (PostgresCode::Tls, format!("TLS: {cause}")),
            "invalid configuration" if cause == "password missing" => (PostgresCode::Login, cause),
            "authentication error" => (PostgresCode::Login, cause),
            "invalid configuration" | "invalid connection string" => (PostgresCode::Config, cause),
            _ if cause.is_empty() => (PostgresCode::Unreachable, kind),
            _ => (PostgresCode::Unreachable, format!("{kind} ({cause})")),
        };
        PostgresError::new(code, message).with_fate(Fate::Lost)
    }
}

impl From<io::Error> for PostgresError {
    fn from(error: io::Error) -> PostgresError {
        PostgresError::new(PostgresCode::Failed, error.to_string())
    }
}

/// Maps a SQLSTATE to a code and a fate.
fn judge(state: &SqlState) -> (PostgresCode, Fate) {
    let code = state.code();
    match code {
        "40001" | "40P01" => (PostgresCode::Busy, Fate::Conflict),
        "57P03" => (PostgresCode::Unreachable, Fate::Starting),
        "57P01" | "57P02" | "57P05" => (PostgresCode::Unreachable, Fate::Lost),
        "57014" => (PostgresCode::Timeout, Fate::Kept),
        "55P03" => (PostgresCode::Busy, Fate::Kept),
        "53100" => (PostgresCode::Full, Fate::Kept),
        "53300" => (PostgresCode::TooManyConnections, Fate::Kept),
        "25006" => (PostgresCode::ReadOnly, Fate::Kept),
        "28000" | "28P01" => (PostgresCode::Login, Fate::Kept),
        "3D000" => (PostgresCode::NotFound, Fate::Kept),
        "42501" => (PostgresCode::Denied, Fate::Kept),
        // Tables or functions are missing, or other objects have their names.
        "42P01" | "42883" | "42703" | "3F000" | "42P07" | "42723" | "42710" => {
            (PostgresCode::Foreign, Fate::Kept)
        }
        "XX001" | "XX002" => (PostgresCode::Corrupt, Fate::Kept),
        _ if code.starts_with("08") || code.starts_with("25P") => {
            (PostgresCode::Unreachable, Fate::Lost)
        }
        _ => (PostgresCode::Failed, Fate::Kept),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_the_server_have_codes() {
        let code = |state: &SqlState| judge(state).0;
        assert_eq!(code(&SqlState::DISK_FULL), PostgresCode::Full);
        assert_eq!(
            code(&SqlState::READ_ONLY_SQL_TRANSACTION),
            PostgresCode::ReadOnly
        );
        let many = code(&SqlState::TOO_MANY_CONNECTIONS);
        assert_eq!(many, PostgresCode::TooManyConnections);
        for state in [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
        ] {
            assert_eq!(judge(&state), (PostgresCode::Busy, Fate::Conflict));
        }
        for state in [SqlState::ADMIN_SHUTDOWN, SqlState::CONNECTION_FAILURE] {
            assert_eq!(judge(&state), (PostgresCode::Unreachable, Fate::Lost));
        }
        assert_eq!(code(&SqlState::DIVISION_BY_ZERO), PostgresCode::Failed);
    }

    #[test]
    fn programs_see_no_servers() {
        let error = PostgresError::new(PostgresCode::Denied, "no").at("postgres://h/db");
        assert!(error.to_string().starts_with("postgres://h/db: no; let"));
        let seen = error.for_program().to_string();
        assert_eq!(seen, "The store does not work.");
    }
}
