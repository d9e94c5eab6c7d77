//! Faults of the file as those of a store.

use a99_runtime_engine::{KeyError, StoreCode, StoreError};
use a99_sqlite::{SqliteCode, SqliteError, rusqlite};

/// What goes wrong in a transaction: something that the store says, or something of the file.
#[derive(Debug)]
pub(crate) enum Fault {
    Store(StoreError),
    File(SqliteError),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Fault {
        Fault::Store(error)
    }
}

impl From<SqliteError> for Fault {
    fn from(error: SqliteError) -> Fault {
        Fault::File(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Fault {
        use rusqlite::Error;
        match error {
            // Another program wrote there, or the file is damaged.
            Error::InvalidColumnType(..)
            | Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..) => unreadable(error),
            error => Fault::File(error.into()),
        }
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Fault {
        unreadable(error)
    }
}

impl From<KeyError> for Fault {
    fn from(error: KeyError) -> Fault {
        unreadable(error)
    }
}

pub(crate) fn fault(code: StoreCode, message: impl Into<String>) -> Fault {
    Fault::Store(StoreError::new(code, message))
}

/// What is kept is not what this program writes.
pub(crate) fn unreadable(what: impl std::fmt::Display) -> Fault {
    fault(
        StoreCode::Unreadable,
        format!("what is kept cannot be read: {what}"),
    )
}

/// The error of reading, or of opening.
pub(crate) fn of_file(error: &SqliteError) -> StoreError {
    let code = match error.code() {
        SqliteCode::Input => StoreCode::TooLarge,
        SqliteCode::NotFound => StoreCode::NotFound,
        SqliteCode::NotDatabase | SqliteCode::Foreign | SqliteCode::Newer | SqliteCode::Corrupt => {
            StoreCode::Unreadable
        }
        _ => StoreCode::Unavailable,
    };
    StoreError::new(code, error.to_string())
}

/// The error of writing: when the disk failed, a part may be found after a start.
pub(crate) fn of_write(error: &SqliteError) -> StoreError {
    match error.code() {
        SqliteCode::Io => StoreError::new(StoreCode::InDoubt, error.to_string()),
        _ => of_file(error),
    }
}
