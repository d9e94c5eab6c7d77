//! Errors of database files and of their contents.

use a99_capabilities::CapabilityError;
use a99_core::text::Text;
use rusqlite::ErrorCode;
use std::fmt;
use std::path::Path;

/// The kind of an error. The text of a code never changes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum SqliteCode {
    /// The store does not accept a key, value or other argument.
    Input,
    /// The namespace has reached its quota.
    Quota,
    /// The disk is full, or the file has reached its limit.
    Full,
    /// The folder of the file is missing, or the path is not a file.
    NotFound,
    /// The file is read-only.
    ReadOnly,
    /// The file is not a database.
    NotDatabase,
    /// The file is a database of another program.
    Foreign,
    /// A later version of this program wrote the file.
    Newer,
    /// The file is damaged.
    Corrupt,
    /// Other processes locked the file for longer than the deadline.
    Locked,
    /// The target of the backup is another database.
    Occupied,
    /// The file cannot be read or written.
    Io,
    /// The caller stopped waiting, or the database was closed.
    Stopped,
    /// The work ended in a bug of the host's program.
    Failed,
}

impl SqliteCode {
    /// The code as text, for machines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            SqliteCode::Input => "sqlite.input",
            SqliteCode::Quota => "sqlite.quota",
            SqliteCode::Full => "sqlite.full",
            SqliteCode::NotFound => "sqlite.not_found",
            SqliteCode::ReadOnly => "sqlite.read_only",
            SqliteCode::NotDatabase => "sqlite.not_database",
            SqliteCode::Foreign => "sqlite.foreign",
            SqliteCode::Newer => "sqlite.newer",
            SqliteCode::Corrupt => "sqlite.corrupt",
            SqliteCode::Locked => "sqlite.locked",
            SqliteCode::Occupied => "sqlite.occupied",
            SqliteCode::Io => "sqlite.io",
            SqliteCode::Stopped => "sqlite.stopped",
            SqliteCode::Failed => "sqlite.failed",
        }
    }

    /// The advice that follows from the code alone.
    const fn help(self) -> Option<&'static str> {
        match self {
            SqliteCode::Full => Some("make room on the disk, or allow the file to be larger"),
            SqliteCode::NotFound => Some("name a file in a folder that exists"),
            SqliteCode::ReadOnly => Some("make the file and its folder writable"),
            SqliteCode::NotDatabase | SqliteCode::Foreign => Some("name another file"),
            SqliteCode::Newer => {
                Some("use the version of this program that wrote it, or a later one")
            }
            SqliteCode::Corrupt => Some("put a backup in its place"),
            SqliteCode::Locked => Some("end the process that holds it, or wait longer"),
            SqliteCode::Occupied => Some("name a file that is not in use"),
            _ => None,
        }
    }

    /// Message for programs, without details of the host.
    const fn text(self) -> &'static str {
        match self {
            SqliteCode::Input => "The store does not take this.",
            SqliteCode::Quota | SqliteCode::Full => "Store is full",
            SqliteCode::Locked => "The store is busy: try again later.",
            SqliteCode::Stopped => "The store was closed.",
            SqliteCode::Corrupt => "The store is damaged.",
            SqliteCode::ReadOnly => "The store can only be read.",
            _ => "The store does not work.",
        }
    }
}

/// Error of opening a file or of storing in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteError {
    code: SqliteCode,
    message: String,
    /// Message for programs, if it is not the code's default.
    text: Option<Text>,
}

impl SqliteError {
    /// An error that the host's own work in a [`Database`](crate::Database) returns. Programs
    /// see only the default text of the code.
    #[must_use]
    pub fn new(code: SqliteCode, message: impl Into<String>) -> SqliteError {
        SqliteError {
            code,
            message: message.into(),
            text: None,
        }
    }

    /// Like [`SqliteError::new`], but programs see the message unchanged.
    #[must_use]
    pub fn shown(code: SqliteCode, message: impl Into<String>) -> SqliteError {
        let message = message.into();
        SqliteError {
            code,
            text: Some(message.as_str().into()),
            message,
        }
    }

    /// Adds the path of the file.
    pub(crate) fn in_file(mut self, path: &Path) -> SqliteError {
        self.message = format!("{}: {}", path.display(), self.message);
        self
    }

    /// The code of the error.
    #[must_use]
    pub fn code(&self) -> SqliteCode {
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

    /// The error without paths or other details of the host.
    #[must_use]
    pub fn for_program(&self) -> CapabilityError {
        match &self.text {
            Some(text) => CapabilityError::new(text.clone()),
            None => CapabilityError::new(self.code.text()),
        }
    }
}

/// Prints the message, then the advice.
impl fmt::Display for SqliteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.help() {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for SqliteError {}

impl From<CapabilityError> for SqliteError {
    fn from(error: CapabilityError) -> SqliteError {
        SqliteError {
            code: SqliteCode::Input,
            message: error.message.to_string(),
            text: Some(error.message),
        }
    }
}

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> SqliteError {
        let (code, message) = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => (SqliteCode::Full, "there is no room left"),
            Some(ErrorCode::CannotOpen) => (SqliteCode::NotFound, "it cannot be opened"),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                (SqliteCode::ReadOnly, "it can only be read")
            }
            Some(ErrorCode::NotADatabase) => (SqliteCode::NotDatabase, "it is no database"),
            Some(ErrorCode::DatabaseCorrupt) => (SqliteCode::Corrupt, "it is damaged"),
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed,
            ) => (SqliteCode::Locked, "other processes hold it"),
            Some(ErrorCode::SystemIoFailure) => (SqliteCode::Io, "it cannot be read or written"),
            Some(ErrorCode::OperationInterrupted) => {
                (SqliteCode::Stopped, "it took too long, or too much memory")
            }
            Some(ErrorCode::TooBig) => (SqliteCode::Input, "too large"),
            _ => (SqliteCode::Failed, "SQLite refused"),
        };
        SqliteError::new(code, format!("{message} ({error})"))
    }
}
