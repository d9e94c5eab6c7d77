//! Faults of transactions, and their mapping to errors of a store.

use a99_runtime_engine::{KeyError, StoreCode, StoreError};
use a99_sqlite::{SqliteCode, SqliteError, rusqlite};

/// A fault in a transaction: an error of the store or of its file.
#[derive(Debug)]
pub(crate) enum Fault {
    Store(StoreError),
    File(SqliteError),
    #[cfg(feature = "postgres")]
    Server(a99_postgres::PostgresError),
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
            // Another program wrote the value, or the file is damaged.
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

/// The error for stored data that this program would not write.
pub(crate) fn unreadable(what: impl std::fmt::Display) -> Fault {
    fault(
        StoreCode::Unreadable,
        format!("what is kept cannot be read: {what}"),
    )
}

/// Maps an error of reading or opening.
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

/// Maps an error of writing. After an I/O error a restart may find a part of the write, so the
/// outcome is in doubt.
pub(crate) fn of_write(error: &SqliteError) -> StoreError {
    match error.code() {
        SqliteCode::Io => StoreError::new(StoreCode::InDoubt, error.to_string()),
        _ => of_file(error),
    }
}
