//! Values as SQLite has them: text for JSON, blobs for the form with tags.

use crate::error::{SqliteCode, SqliteError};
use a99_capabilities::StoredValue;
use a99_core::value::Value;
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};

/// A value as it is stored in a column of the type `ANY`: what [`encode`] gives, and
/// [`decode`] reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored(StoredValue);

impl Stored {
    /// Its bytes: what `octet_length` says of the column.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.as_bytes().len()
    }
}

impl ToSql for Stored {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match &self.0 {
            StoredValue::Json(bytes) => ValueRef::Text(bytes),
            StoredValue::Tagged(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// A value as it is stored, in `max_bytes` at most; nothing of it is lost.
///
/// # Errors
/// [`SqliteCode::Input`] if it is larger or too deep, with a text for programs.
pub fn encode(value: &Value, max_bytes: usize) -> Result<Stored, SqliteError> {
    Ok(Stored(StoredValue::of(value, max_bytes)?))
}

/// The value that was stored.
///
/// # Errors
/// [`SqliteCode::Corrupt`] for whatever [`encode`] does not write.
pub fn decode(stored: ValueRef<'_>) -> Result<Value, SqliteError> {
    let value = match stored {
        ValueRef::Text(json) => StoredValue::read_json(json),
        ValueRef::Blob(bytes) => StoredValue::read_tagged(bytes),
        _ => None,
    };
    value.ok_or_else(|| SqliteError::new(SqliteCode::Corrupt, "a value is not in a form of ours"))
}
