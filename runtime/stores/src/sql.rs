//! Statements of a transaction: the same texts for files and servers, with `?1` for the first
//! parameter. What is in `/*FOR UPDATE*/` locks rows on a server, where transactions run
//! concurrently; a file has one writer.

use crate::fault::{Fault, fault, unreadable};
use crate::runtime::Cx;
use a99_runtime_engine::StoreCode;
use a99_sqlite::rusqlite::types::{ToSqlOutput, ValueRef};
use a99_sqlite::rusqlite::{self, params_from_iter};

/// A value of a row or a parameter. Texts of a file may be damaged.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Int(i64),
    Text(&'a [u8]),
    Bytes(&'a [u8]),
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Value::Null => ValueRef::Null,
            Value::Int(n) => ValueRef::Integer(n),
            Value::Text(text) => ValueRef::Text(text),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// What a statement takes as a parameter.
pub(crate) trait Parameter {
    fn value(&self) -> Value<'_>;
}

macro_rules! integers {
    ($($kind:ty),*) => {$(
        impl Parameter for $kind {
            fn value(&self) -> Value<'_> {
                Value::Int(i64::from(*self))
            }
        }
    )*};
}

integers!(i64, u32, u16, u8);

impl Parameter for str {
    fn value(&self) -> Value<'_> {
        Value::Text(self.as_bytes())
    }
}

impl Parameter for String {
    fn value(&self) -> Value<'_> {
        Value::Text(self.as_bytes())
    }
}

impl Parameter for [u8] {
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl Parameter for Vec<u8> {
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl<const N: usize> Parameter for [u8; N] {
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl<T: Parameter + ?Sized> Parameter for &T {
    fn value(&self) -> Value<'_> {
        T::value(self)
    }
}

impl<T: Parameter> Parameter for Option<T> {
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, Parameter::value)
    }
}

/// The parameters of a statement: values of one type, or [`params!`].
pub(crate) trait Params {
    fn values(&self) -> impl Iterator<Item = Value<'_>>;
}

impl<T: Parameter, const N: usize> Params for [T; N] {
    fn values(&self) -> impl Iterator<Item = Value<'_>> {
        self.iter().map(Parameter::value)
    }
}

impl Params for &[&dyn Parameter] {
    fn values(&self) -> impl Iterator<Item = Value<'_>> {
        self.iter().map(|parameter| parameter.value())
    }
}

macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$(&$value as &dyn $crate::sql::Parameter),*] as &[&dyn $crate::sql::Parameter]
    };
}
pub(crate) use params;

/// What a column is read as.
pub(crate) trait Column: Sized {
    /// The value, if it has the right type.
    fn of(value: Value<'_>) -> Option<Self>;
}

impl Column for i64 {
    fn of(value: Value<'_>) -> Option<i64> {
        match value {
            Value::Int(n) => Some(n),
            _ => None,
        }
    }
}

impl Column for u8 {
    fn of(value: Value<'_>) -> Option<u8> {
        u8::try_from(i64::of(value)?).ok()
    }
}

impl Column for bool {
    fn of(value: Value<'_>) -> Option<bool> {
        i64::of(value).map(|n| n != 0)
    }
}

impl Column for String {
    fn of(value: Value<'_>) -> Option<String> {
        match value {
            Value::Text(text) => std::str::from_utf8(text).ok().map(str::to_owned),
            _ => None,
        }
    }
}

impl Column for Vec<u8> {
    fn of(value: Value<'_>) -> Option<Vec<u8>> {
        match value {
            Value::Bytes(bytes) => Some(bytes.to_vec()),
            _ => None,
        }
    }
}

impl<const N: usize> Column for [u8; N] {
    fn of(value: Value<'_>) -> Option<[u8; N]> {
        match value {
            Value::Bytes(bytes) => bytes.try_into().ok(),
            _ => None,
        }
    }
}

impl<T: Column> Column for Option<T> {
    fn of(value: Value<'_>) -> Option<Option<T>> {
        match value {
            Value::Null => Some(None),
            value => T::of(value).map(Some),
        }
    }
}

/// A row of a result.
pub(crate) enum Row<'r> {
    File(&'r rusqlite::Row<'r>),
    #[cfg(feature = "postgres")]
    Server(&'r a99_postgres::tokio_postgres::Row),
}

impl Row<'_> {
    pub(crate) fn value(&self, at: usize) -> Result<Value<'_>, Fault> {
        match self {
            Row::File(row) => match row.get_ref(at)? {
                ValueRef::Null => Ok(Value::Null),
                ValueRef::Integer(n) => Ok(Value::Int(n)),
                ValueRef::Text(text) => Ok(Value::Text(text)),
                ValueRef::Blob(bytes) => Ok(Value::Bytes(bytes)),
                ValueRef::Real(_) => Err(unreadable("a number has a fraction")),
            },
            #[cfg(feature = "postgres")]
            Row::Server(row) => crate::server::value(row, at),
        }
    }

    pub(crate) fn get<T: Column>(&self, at: usize) -> Result<T, Fault> {
        let value = T::of(self.value(at)?);
        value.ok_or_else(|| unreadable(format!("column {at} has another type or size")))
    }

    pub(crate) fn text(&self, at: usize) -> Result<&str, Fault> {
        match self.value(at)? {
            Value::Text(text) => std::str::from_utf8(text).map_err(unreadable),
            _ => Err(unreadable(format!("column {at} is no text"))),
        }
    }
}

/// The database of a transaction.
pub(crate) enum Db<'a> {
    File(&'a a99_sqlite::Tx<'a>),
    #[cfg(feature = "postgres")]
    Server(&'a a99_postgres::Tx),
}

impl Db<'_> {
    /// Passes the rows of a query to `f`, in order.
    pub(crate) fn each(
        &self,
        sql: &'static str,
        params: impl Params,
        mut f: impl FnMut(&Row<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        match self {
            Db::File(tx) => {
                let mut find = tx.prepare_cached(sql)?;
                let mut rows = find.query(params_from_iter(params.values()))?;
                while let Some(row) = rows.next()? {
                    f(&Row::File(row))?;
                }
                Ok(())
            }
            #[cfg(feature = "postgres")]
            Db::Server(tx) => {
                let rows = crate::server::rows(tx, sql, params.values())?;
                rows.iter().try_for_each(|row| f(&Row::Server(row)))
            }
        }
    }

    /// Executes a statement, and gives the number of changed rows.
    pub(crate) fn execute(&self, sql: &'static str, params: impl Params) -> Result<usize, Fault> {
        match self {
            Db::File(tx) => {
                let mut statement = tx.prepare_cached(sql)?;
                Ok(statement.execute(params_from_iter(params.values()))?)
            }
            #[cfg(feature = "postgres")]
            Db::Server(tx) => crate::server::execute(tx, sql, params.values()),
        }
    }
}

/// Longest name in an index of a server, whose pages are small.
const MAX_NAME_BYTES: usize = 1_000;

impl Cx<'_> {
    /// Refuses a name that the store cannot have in an index.
    ///
    /// # Errors
    /// [`StoreCode::Input`]
    #[cfg_attr(
        not(feature = "postgres"),
        allow(unused_variables, reason = "names of a file are not limited")
    )]
    pub(crate) fn check_name(&self, what: &str, name: &str) -> Result<(), Fault> {
        if name.len() <= MAX_NAME_BYTES || matches!(self.db, Db::File(_)) {
            return Ok(());
        }
        let message = format!("the name of the {what} has more than {MAX_NAME_BYTES} bytes");
        Err(fault(StoreCode::Input, message))
    }
}
