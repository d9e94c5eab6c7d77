//! Collections in a SQLite file.

use super::backend::{
    Backend, BackendError, Columns, Parameter, Statements, Transaction, statements,
};
use a99_capabilities::{CapabilityError, Clock, StoreLimits, StoredValue};
use a99_core::text::Text;
use a99_core::value::Value;
use a99_sqlite::rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use a99_sqlite::rusqlite::{self, params_from_iter};
use a99_sqlite::{Component, SqliteCode, SqliteError, SqliteStore, Task, Tx, decode};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The tables. Rows of a collection are contiguous, in the order of their insertion.
///
/// Each change of a collection increments its version and is logged, so that the holder of an
/// older copy reads only the changes since. The log does not reach back below a version, its
/// floor. Triggers count rows and bytes.
static VECTORS: Component = Component {
    name: "vectors",
    migrations: &[include_str!("sqlite.sql")],
};

impl Backend for SqliteStore {
    type Error = SqliteError;
    type Task<T: Send + 'static> = Task<T>;
    type Tx<'a> = Tx<'a>;

    fn make_tables(&self) -> Result<(), SqliteError> {
        let database = self.database();
        if !database.read(|tx| VECTORS.is_current(tx)).wait()? {
            database.migrate(&VECTORS).wait()?;
        }
        Ok(())
    }

    fn reading<T, F>(&self, f: F) -> Task<T>
    where
        T: Send + 'static,
        F: Fn(&Tx<'_>) -> Result<T, SqliteError> + Send + Sync + 'static,
    {
        self.database().read(f)
    }

    fn writing<T, F>(&self, f: F) -> Task<T>
    where
        T: Send + 'static,
        F: Fn(&Tx<'_>) -> Result<T, SqliteError> + Send + Sync + 'static,
    {
        self.database().write(f)
    }

    fn namespace_name(&self) -> Option<&Text> {
        self.name()
    }

    fn in_namespace(&self, name: Text) -> SqliteStore {
        self.namespace(name)
    }

    fn limited(&self, limits: StoreLimits) -> SqliteStore {
        self.with_limits(limits)
    }

    fn timed(&self, clock: Arc<dyn Clock>) -> SqliteStore {
        self.with_clock(clock)
    }
}

impl BackendError for SqliteError {
    fn corrupt(message: &str) -> SqliteError {
        SqliteError::new(SqliteCode::Corrupt, message)
    }

    fn failed(message: String) -> SqliteError {
        SqliteError::new(SqliteCode::Failed, message)
    }

    fn quota(text: String) -> SqliteError {
        SqliteError::shown(SqliteCode::Quota, text)
    }

    fn seen(&self) -> CapabilityError {
        self.for_program()
    }
}

impl Transaction for Tx<'_> {
    type Error = SqliteError;
    type Row<'r> = rusqlite::Row<'r>;

    const STATEMENTS: Statements = statements!("name = ?1", "", "name = ?2", "id = ?2");

    fn go_on(&self) -> Result<(), SqliteError> {
        Tx::go_on(self)
    }

    fn each<F>(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
        mut f: F,
    ) -> Result<(), SqliteError>
    where
        F: FnMut(&rusqlite::Row<'_>) -> Result<ControlFlow<()>, SqliteError>,
    {
        let mut find = self.prepare_cached(sql)?;
        let mut rows = find.query(params_from_iter(parameters))?;
        while let Some(row) = rows.next()? {
            if f(row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn execute(&self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<(), SqliteError> {
        self.prepare_cached(sql)?
            .execute(params_from_iter(parameters))?;
        Ok(())
    }
}

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Parameter::Int(None) | Parameter::Bytes(None) => ValueRef::Null,
            Parameter::Int(Some(number)) => ValueRef::Integer(*number),
            Parameter::Value(StoredValue::Json(json)) => ValueRef::Text(json),
            Parameter::Bytes(Some(bytes)) => ValueRef::Blob(bytes),
            Parameter::Value(StoredValue::Tagged(bytes)) => ValueRef::Blob(bytes),
        }))
    }
}

impl Columns for rusqlite::Row<'_> {
    type Error = SqliteError;

    fn int(&self, column: usize) -> Result<Option<i64>, SqliteError> {
        Ok(self.get(column)?)
    }

    fn bytes(&self, column: usize) -> Result<Option<&[u8]>, SqliteError> {
        match self.get_ref(column)? {
            ValueRef::Null => Ok(None),
            ValueRef::Blob(bytes) => Ok(Some(bytes)),
            _ => Err(SqliteError::corrupt("a column has no bytes")),
        }
    }

    fn value(&self, column: usize) -> Result<(Value, usize), SqliteError> {
        let stored = self.get_ref(column)?;
        let bytes = stored.as_bytes().map_or(0, <[u8]>::len);
        Ok((decode(stored)?, bytes))
    }
}
