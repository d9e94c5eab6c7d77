//! Values as SQLite has them: text for JSON, blobs for the form with tags.

use crate::error::{SqliteCode, SqliteError};
use a99_capabilities::StoredValue;
use a99_core::value::Value;
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};

/// A value as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored(StoredValue);

impl Stored {
    pub(crate) fn len(&self) -> usize {
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

/// A value as it is stored, in `max_bytes` at most.
pub(crate) fn encode(value: &Value, max_bytes: usize) -> Result<Stored, SqliteError> {
    Ok(Stored(StoredValue::of(value, max_bytes)?))
}

/// The value that was stored.
///
/// # Errors
/// [`SqliteCode::Corrupt`] for whatever [`encode`] does not write.
pub(crate) fn decode(stored: ValueRef<'_>) -> Result<Value, SqliteError> {
    let value = match stored {
        ValueRef::Text(json) => StoredValue::read_json(json),
        ValueRef::Blob(bytes) => StoredValue::read_tagged(bytes),
        _ => None,
    };
    value.ok_or_else(|| SqliteError::new(SqliteCode::Corrupt, "a value is not in a form of ours"))
}
