//! Conversion between SQL values and JSON.

use a99_runtime_engine::{StoreCode, StoreError};
use a99_sqlite::rusqlite::types::{Value as Sql, ValueRef};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The member of an object that holds bytes in base64.
const BLOB: &str = "$blob";

fn input(text: String) -> StoreError {
    StoreError::new(StoreCode::Input, text)
}

/// Converts the `n`th parameter, from 1.
///
/// # Errors
/// [`StoreCode::Input`] for values that SQL does not have.
pub(super) fn to_sql(n: usize, value: Value) -> Result<Sql, StoreError> {
    let lists = "pass its members one by one, or JSON.stringify it and read it by json_each";
    Ok(match value {
        Value::Null => Sql::Null,
        Value::Bool(flag) => Sql::Integer(i64::from(flag)),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Sql::Integer(whole),
            (None, Some(real)) => whole_or_real(real),
            (None, None) => return Err(input(format!("parameter {n} is no number of SQL"))),
        },
        Value::String(text) => Sql::Text(text),
        Value::Array(_) => return Err(input(format!("parameter {n} is a list: {lists}"))),
        Value::Object(members) => match (members.len(), members.get(BLOB)) {
            (1, Some(Value::String(text))) => {
                Sql::Blob(STANDARD.decode(text).map_err(|error| {
                    input(format!("parameter {n} has no base64 in {BLOB}: {error}"))
                })?)
            }
            _ => return Err(input(format!("parameter {n} is an object: {lists}"))),
        },
    })
}

/// A number without fraction is an integer, as in programs: `1.0` is 1.
#[allow(
    clippy::cast_possible_truncation,
    clippy::float_cmp,
    reason = "it is compared with what it was"
)]
fn whole_or_real(real: f64) -> Sql {
    /// Below this every integer is exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match real.trunc() == real && real.abs() < EXACT {
        true => Sql::Integer(real as i64),
        false => Sql::Real(real),
    }
}

/// Converts a column's value, and gives its size in bytes.
///
/// # Errors
/// [`StoreCode::Input`] for values that JSON does not have.
pub(super) fn to_json(column: &str, value: ValueRef<'_>) -> Result<(Value, usize), StoreError> {
    let none = |what: &str, cast: &str| {
        input(format!(
            "the column {column:?} has {what}, which JSON has not: write CAST({column} AS {cast})"
        ))
    };
    Ok(match value {
        ValueRef::Null => (Value::Null, 4),
        ValueRef::Integer(whole) => (Value::from(whole), 8),
        ValueRef::Real(real) => match serde_json::Number::from_f64(real) {
            Some(number) => (Value::Number(number), 8),
            None => return Err(none("an infinite number", "TEXT")),
        },
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => (Value::from(text), text.len()),
            Err(_) => return Err(none("a text that is not UTF-8", "BLOB")),
        },
        ValueRef::Blob(bytes) => {
            let text = STANDARD.encode(bytes);
            let size = text.len();
            (json!({ BLOB: text }), size)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{to_json, to_sql};
    use a99_sqlite::rusqlite::types::{Value as Sql, ValueRef};
    use serde_json::{Value, json};

    #[test]
    fn values_come_back_as_they_were() {
        for value in [
            json!(null),
            json!(0),
            json!(i64::MIN),
            json!(i64::MAX),
            json!(0.1),
            json!(1e300),
            json!("Grüße\0"),
            json!({"$blob": ""}),
            json!({"$blob": "AP8="}),
        ] {
            let sql = to_sql(1, value.clone()).unwrap();
            assert_eq!(to_json("c", ValueRef::from(&sql)).unwrap().0, value);
        }
        assert_eq!(to_sql(1, json!(true)).unwrap(), Sql::Integer(1));
        assert_eq!(to_sql(1, json!(-3.0)).unwrap(), Sql::Integer(-3));
        assert_eq!(
            to_sql(1, json!(u64::MAX)).unwrap(),
            Sql::Real(18_446_744_073_709_551_615.0)
        );
    }

    #[test]
    fn what_the_other_side_has_not_is_refused() {
        let wrong: [Value; 5] = [
            json!([]),
            json!({}),
            json!({"$blob": 1}),
            json!({"$blob": "*"}),
            json!({"$blob": "", "x": 1}),
        ];
        for value in wrong {
            let error = to_sql(3, value).unwrap_err();
            assert!(error.to_string().starts_with("parameter 3"), "{error}");
        }
        let none = to_json("c", ValueRef::Real(f64::INFINITY)).unwrap_err();
        assert!(none.to_string().contains("CAST(c AS TEXT)"), "{none}");
        assert!(to_json("c", ValueRef::Text(&[0xff])).is_err());
    }
}
