//! Statements and rows in the types of PostgreSQL.

use crate::fault::{Fault, fault, unreadable};
use crate::runtime::locked;
use crate::sql::Value;
use a99_postgres::tokio_postgres::Row;
use a99_postgres::tokio_postgres::types::private::BytesMut;
use a99_postgres::tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use a99_postgres::{Parameters, Tx};
use a99_runtime_engine::StoreCode;
use std::collections::HashMap;
use std::error::Error;
use std::ops::ControlFlow;
use std::sync::{LazyLock, Mutex};

/// The statement in PostgreSQL's words. The texts are leaked: there are no more than statements
/// in the code.
fn numbered(sql: &'static str) -> &'static str {
    static TEXTS: LazyLock<Mutex<HashMap<&'static str, &'static str>>> =
        LazyLock::new(Mutex::default);
    let write = || {
        let sql = sql
            .replace('?', "$")
            .replace("/*FOR UPDATE*/", "FOR UPDATE")
            .replace("/*FOR SHARE*/", "FOR SHARE");
        let sql = sql.replace("CAST(data AS TEXT)", "convert_from(data, 'UTF8')");
        &*sql.leak()
    };
    locked(&TEXTS).entry(sql).or_insert_with(write)
}

/// A parameter of any type that its statement infers.
#[derive(Debug)]
enum Owned {
    Null,
    Int(i64),
    Bytes(Vec<u8>),
}

impl ToSql for Owned {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Owned::Null => return Ok(IsNull::Yes),
            Owned::Int(n) => return n.to_sql(kind, out),
            Owned::Bytes(bytes) => out.extend_from_slice(bytes),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn owned<'v>(values: impl Iterator<Item = Value<'v>>) -> Result<Parameters, Fault> {
    let owned = values.map(|value| {
        Ok(Box::new(match value {
            Value::Null => Owned::Null,
            Value::Int(n) => Owned::Int(n),
            Value::Text(text) if text.contains(&0) => {
                let text = "a text with the character NUL cannot be kept on a server";
                return Err(fault(StoreCode::Input, text));
            }
            Value::Text(bytes) | Value::Bytes(bytes) => Owned::Bytes(bytes.to_vec()),
        }) as Box<dyn ToSql + Send + Sync>)
    });
    owned.collect()
}

/// The rows of a query: while they are read, their transaction takes no other statement.
pub(crate) fn rows<'v>(
    tx: &Tx,
    sql: &'static str,
    values: impl Iterator<Item = Value<'v>>,
) -> Result<Vec<Row>, Fault> {
    let mut found = Vec::new();
    tx.query(numbered(sql), owned(values)?, |row| {
        found.push(row.clone());
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

pub(crate) fn execute<'v>(
    tx: &Tx,
    sql: &'static str,
    values: impl Iterator<Item = Value<'v>>,
) -> Result<usize, Fault> {
    let count = tx.execute(numbered(sql), owned(values)?)?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// A column, whatever its type.
pub(crate) fn value(row: &Row, at: usize) -> Result<Value<'_>, Fault> {
    let kind = row.columns().get(at).map(|column| column.type_().clone());
    let found = match kind {
        Some(Type::INT8) => row.try_get::<_, Option<i64>>(at).map(|n| n.map(Value::Int)),
        Some(Type::BOOL) => row
            .try_get::<_, Option<bool>>(at)
            .map(|is| is.map(|is| Value::Int(is.into()))),
        Some(Type::BYTEA) => row
            .try_get::<_, Option<&[u8]>>(at)
            .map(|bytes| bytes.map(Value::Bytes)),
        _ => row
            .try_get::<_, Option<&str>>(at)
            .map(|text| text.map(|text| Value::Text(text.as_bytes()))),
    };
    Ok(found.map_err(unreadable)?.unwrap_or(Value::Null))
}
