//! Backend: the storage of collections, in a file or on a server.
//!
//! The SQL of collections is the same for all backends, except for the texts in [`Statements`]:
//! standard SQL, with `?1` for the first parameter.

use a99_capabilities::{CapabilityError, Clock, Store, StoreLimits, StoredValue};
use a99_core::text::Text;
use a99_core::value::Value;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A key-value store whose database can also hold the tables of collections.
pub trait Backend: Store + Clone + fmt::Debug + 'static {
    /// The backend's error.
    type Error: BackendError;
    /// A future of work.
    type Task<T: Send + 'static>: Future<Output = Result<T, Self::Error>> + Send;
    /// The transaction of work.
    type Tx<'a>: Transaction<Error = Self::Error>;

    /// Creates or migrates the tables of collections to this version. Blocks.
    ///
    /// # Errors
    /// If a later version wrote them, or they cannot be created.
    fn make_tables(&self) -> Result<(), Self::Error>;

    /// Reads a consistent snapshot; `f` may run more than once.
    fn reading<T, F>(&self, f: F) -> Self::Task<T>
    where
        T: Send + 'static,
        F: Fn(&Self::Tx<'_>) -> Result<T, Self::Error> + Send + Sync + 'static;

    /// Writes all changes of `f` or none; `f` may run more than once.
    fn writing<T, F>(&self, f: F) -> Self::Task<T>
    where
        T: Send + 'static,
        F: Fn(&Self::Tx<'_>) -> Result<T, Self::Error> + Send + Sync + 'static;

    /// The name of the namespace; `None` for the store itself.
    fn namespace_name(&self) -> Option<&Text>;

    /// The namespace of a name.
    #[must_use]
    fn in_namespace(&self, name: Text) -> Self;

    /// The same namespace with other limits.
    #[must_use]
    fn limited(&self, limits: StoreLimits) -> Self;

    /// The same namespace with another clock.
    #[must_use]
    fn timed(&self, clock: Arc<dyn Clock>) -> Self;
}

/// An error of a [`Backend`].
pub trait BackendError: std::error::Error + From<CapabilityError> + Clone + Send + Sync {
    /// The stored data is damaged.
    fn corrupt(message: &str) -> Self;

    /// A failure that the program did not cause.
    fn failed(message: String) -> Self;

    /// The namespace has reached a limit; programs see the text.
    fn quota(text: String) -> Self;

    /// The part of the error that a program may see.
    fn seen(&self) -> CapabilityError;
}

/// A transaction on the tables of collections.
pub trait Transaction {
    /// The backend's error.
    type Error: BackendError;
    /// A row of a result.
    type Row<'r>: Columns<Error = Self::Error>;

    /// The texts that differ between backends.
    const STATEMENTS: Statements;

    /// Fails once no caller waits for the result.
    ///
    /// # Errors
    /// If the work was abandoned.
    fn go_on(&self) -> Result<(), Self::Error>;

    /// Passes rows in order to `f`, until it breaks.
    ///
    /// # Errors
    /// Those of reading and of `f`.
    fn each<F>(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
        f: F,
    ) -> Result<(), Self::Error>
    where
        F: FnMut(&Self::Row<'_>) -> Result<ControlFlow<()>, Self::Error>;

    /// Executes a statement.
    ///
    /// # Errors
    /// Those of writing.
    fn execute(&self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<(), Self::Error>;

    /// The result of `f` for the first row, if there is one.
    ///
    /// # Errors
    /// Those of reading and of `f`.
    fn first<T>(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
        mut f: impl FnMut(&Self::Row<'_>) -> Result<T, Self::Error>,
    ) -> Result<Option<T>, Self::Error> {
        let mut found = None;
        self.each(sql, parameters, |row| {
            found = Some(f(row)?);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }
}

/// A row of a result.
pub trait Columns {
    /// The backend's error.
    type Error;

    /// An integer, or NULL.
    ///
    /// # Errors
    /// If it is neither.
    fn int(&self, column: usize) -> Result<Option<i64>, Self::Error>;

    /// Bytes, or NULL.
    ///
    /// # Errors
    /// If it is neither.
    fn bytes(&self, column: usize) -> Result<Option<&[u8]>, Self::Error>;

    /// A stored value, and its size in bytes.
    ///
    /// # Errors
    /// If its encoding is unknown.
    fn value(&self, column: usize) -> Result<(Value, usize), Self::Error>;
}

/// A parameter of a statement.
#[derive(Copy, Clone, Debug)]
pub enum Parameter<'a> {
    /// An integer, or NULL.
    Int(Option<i64>),
    /// Bytes, or NULL.
    Bytes(Option<&'a [u8]>),
    /// A value.
    Value(&'a StoredValue),
}

impl From<i64> for Parameter<'_> {
    fn from(number: i64) -> Self {
        Parameter::Int(Some(number))
    }
}

impl<'a> From<&'a [u8]> for Parameter<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Parameter::Bytes(Some(bytes))
    }
}

/// Statements that differ between backends.
#[derive(Copy, Clone, Debug)]
pub struct Statements {
    /// The id of the namespace with the name `?1`, which is not NULL.
    pub find_namespace: &'static str,
    /// Locks the namespace with the id `?1` for writers; empty if the backend has only one
    /// writer at a time.
    pub lock_namespace: &'static str,
    /// Creates the namespace with the name `?1`, if it does not exist.
    pub make_namespace: &'static str,
    /// The collection with the name `?2` in the namespace `?1`.
    pub find_collection: &'static str,
    /// Rows and bytes of the documents with the id `?2` of the collection `?1`.
    pub held: &'static str,
}

/// Statements that use a plain comparison of texts.
macro_rules! statements {
    ($namespace:literal, $lock:literal, $collection:literal, $id:literal) => {
        $crate::store::backend::Statements {
            find_namespace: concat!("SELECT id FROM vector_namespace WHERE ", $namespace),
            lock_namespace: $lock,
            make_namespace: "INSERT INTO vector_namespace (name) VALUES (?1)
                ON CONFLICT DO NOTHING",
            find_collection: concat!(
                "SELECT id, dimension, documents, added, version, floor
                FROM vector_collection WHERE namespace = ?1 AND ",
                $collection
            ),
            held: concat!(
                "SELECT row, CAST(length(id) + length(embedding) + octet_length(value) AS bigint)
                FROM vector_document WHERE collection = ?1 AND ",
                $id,
                " ORDER BY row"
            ),
        }
    };
}
pub(crate) use statements;
