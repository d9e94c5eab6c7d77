//! Collections on a PostgreSQL server.

use super::backend::{
    Backend, BackendError, Columns, Parameter, Statements, Transaction, statements,
};
use a99_capabilities::{CapabilityError, Clock, StoreLimits, StoredValue};
use a99_core::text::Text;
use a99_core::value::Value;
use a99_postgres::tokio_postgres::Row;
use a99_postgres::tokio_postgres::types::ToSql;
use a99_postgres::{Component, Parameters, PostgresCode, PostgresError, PostgresStore, Task, Tx};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The tables: like those of files, except that triggers count once for each statement, and
/// indices contain digests of possibly long texts.
static VECTORS: Component = Component {
    name: "vectors",
    migrations: &[include_str!("postgres.sql")],
};

impl Backend for PostgresStore {
    type Error = PostgresError;
    type Task<T: Send + 'static> = Task<T>;
    type Tx<'a> = Tx;

    fn make_tables(&self) -> Result<(), PostgresError> {
        self.migrate(&VECTORS).wait()
    }

    fn reading<T, F>(&self, f: F) -> Task<T>
    where
        T: Send + 'static,
        F: Fn(&Tx) -> Result<T, PostgresError> + Send + Sync + 'static,
    {
        self.read(f)
    }

    fn writing<T, F>(&self, f: F) -> Task<T>
    where
        T: Send + 'static,
        F: Fn(&Tx) -> Result<T, PostgresError> + Send + Sync + 'static,
    {
        self.write(f)
    }

    fn namespace_name(&self) -> Option<&Text> {
        self.name()
    }

    fn in_namespace(&self, name: Text) -> PostgresStore {
        self.namespace(name)
    }

    fn limited(&self, limits: StoreLimits) -> PostgresStore {
        self.with_limits(limits)
    }

    fn timed(&self, clock: Arc<dyn Clock>) -> PostgresStore {
        self.with_clock(clock)
    }
}

impl BackendError for PostgresError {
    fn corrupt(message: &str) -> PostgresError {
        PostgresError::new(PostgresCode::Corrupt, message)
    }

    fn failed(message: String) -> PostgresError {
        PostgresError::new(PostgresCode::Failed, message)
    }

    fn quota(text: String) -> PostgresError {
        PostgresError::shown(PostgresCode::Quota, text)
    }

    fn seen(&self) -> CapabilityError {
        self.for_program()
    }
}

/// Converts a statement to PostgreSQL's `$1` parameters. The texts are leaked: there are no more
/// than statements in the code.
fn numbered(sql: &'static str) -> &'static str {
    static TEXTS: LazyLock<Mutex<HashMap<&'static str, &'static str>>> =
        LazyLock::new(Mutex::default);
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    texts
        .entry(sql)
        .or_insert_with(|| Box::leak(sql.replace('?', "$").into_boxed_str()))
}

fn owned(parameters: &[Parameter<'_>]) -> Parameters {
    let parameters = parameters.iter();
    parameters
        .map(|parameter| -> Box<dyn ToSql + Send + Sync> {
            match parameter {
                Parameter::Int(number) => Box::new(*number),
                Parameter::Bytes(bytes) => Box::new(bytes.map(<[u8]>::to_vec)),
                Parameter::Value(value) => Box::new(value.as_bytes().to_vec()),
            }
        })
        .collect()
}

impl Transaction for Tx {
    type Error = PostgresError;
    type Row<'r> = Row;

    const STATEMENTS: Statements = statements!(
        "digest = sha256(?1)",
        "SELECT id FROM vector_namespace WHERE id = ?1 FOR NO KEY UPDATE",
        "digest = sha256(?2)",
        "sha256(id) = sha256(?2) AND id = ?2"
    );

    fn go_on(&self) -> Result<(), PostgresError> {
        Tx::go_on(self)
    }

    fn each<F>(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
        f: F,
    ) -> Result<(), PostgresError>
    where
        F: FnMut(&Row) -> Result<ControlFlow<()>, PostgresError>,
    {
        self.query(numbered(sql), owned(parameters), f)
    }

    fn execute(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<(), PostgresError> {
        Tx::execute(self, numbered(sql), owned(parameters)).map(drop)
    }
}

impl Columns for Row {
    type Error = PostgresError;

    fn int(&self, column: usize) -> Result<Option<i64>, PostgresError> {
        Ok(self.try_get(column)?)
    }

    fn bytes(&self, column: usize) -> Result<Option<&[u8]>, PostgresError> {
        Ok(self.try_get(column)?)
    }

    fn value(&self, column: usize) -> Result<(Value, usize), PostgresError> {
        let bytes: &[u8] = self.try_get(column)?;
        match StoredValue::read(bytes) {
            Some(value) => Ok((value, bytes.len())),
            None => Err(PostgresError::corrupt("a value is not in a form of ours")),
        }
    }
}
