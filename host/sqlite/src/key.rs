//! Keys as a kind and bytes: those of a text as they are, so that texts stand in the order
//! of their bytes and no character is special.

use crate::error::{SqliteCode, SqliteError};
use a99_capabilities::{MAX_KEY_BYTES, value_bytes};
use a99_core::value::Value;

/// The kind of keys that are texts.
pub(crate) const TEXT: i64 = 4;

/// A key as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) kind: i64,
    pub(crate) bytes: Vec<u8>,
}

impl Key {
    /// Scalars by value, data by its JSON text. There is one zero and one NaN.
    pub(crate) fn of(value: Value) -> Result<Key, SqliteError> {
        let (kind, bytes) = match value {
            Value::Undefined => (0, Vec::new()),
            Value::Null => (1, Vec::new()),
            Value::Bool(b) => (2, vec![u8::from(b)]),
            Value::Number(n) => {
                let n = if n.is_nan() { f64::NAN } else { n + 0.0 };
                (3, n.to_bits().to_be_bytes().to_vec())
            }
            Value::String(text) if text.len_bytes() <= MAX_KEY_BYTES => {
                (TEXT, text.as_bytes().to_vec())
            }
            Value::Array(_) | Value::Object(_) if value_bytes(&value) <= MAX_KEY_BYTES => {
                let mut json = Vec::new();
                value.write_json(&mut json);
                (5, json)
            }
            Value::String(_) | Value::Array(_) | Value::Object(_) => {
                let text = format!("Store key too long: the limit is {MAX_KEY_BYTES} bytes");
                return Err(SqliteError::shown(SqliteCode::Input, text));
            }
        };
        Ok(Key { kind, bytes })
    }
}
