//! Encoding of values: JSON text where that is lossless, tagged blobs otherwise.

use crate::error::{SqliteCode, SqliteError};
use a99_capabilities::StoredValue;
use a99_core::value::Value;
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};

/// A value encoded for a column of the type `ANY`. [`encode`] writes it, [`decode`] reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored(StoredValue);

impl Stored {
    /// Length in bytes, equal to the column's `octet_length`.
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

/// Encodes a value without loss, in at most `max_bytes`.
///
/// # Errors
/// [`SqliteCode::Input`] if the value is too large or too deep, with a text for programs.
pub fn encode(value: &Value, max_bytes: usize) -> Result<Stored, SqliteError> {
    Ok(Stored(StoredValue::of(value, max_bytes)?))
}

/// Decodes a stored value.
///
/// # Errors
/// [`SqliteCode::Corrupt`] for data that [`encode`] never writes.
pub fn decode(stored: ValueRef<'_>) -> Result<Value, SqliteError> {
    let value = match stored {
        ValueRef::Text(json) => StoredValue::read_json(json),
        ValueRef::Blob(bytes) => StoredValue::read_tagged(bytes),
        _ => None,
    };
    value.ok_or_else(|| SqliteError::new(SqliteCode::Corrupt, "a value is not in a form of ours"))
}
