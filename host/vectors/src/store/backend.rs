//! Backend: where collections are kept, and what is asked of it.
//!
//! The SQL of collections is the same for all but where [`Statements`] has a text: standard
//! SQL, with `?1` for the first parameter.

use a99_capabilities::{CapabilityError, Clock, Store, StoreLimits, StoredValue};
use a99_core::text::Text;
use a99_core::value::Value;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A store of keys and values, in whose tables collections can be kept beside them.
pub trait Backend: Store + Clone + fmt::Debug + 'static {
    /// Why something cannot be kept.
    type Error: BackendError;
    /// The result of work.
    type Task<T: Send + 'static>: Future<Output = Result<T, Self::Error>> + Send;
    /// A transaction in which work is done.
    type Tx<'a>: Transaction<Error = Self::Error>;

    /// Makes or changes the tables of collections, if they are not as this version wants
    /// them. Blocks.
    ///
    /// # Errors
    /// If a later version wrote them, or they cannot be made.
    fn make_tables(&self) -> Result<(), Self::Error>;

    /// Reads what was committed when it begins; perhaps more than once.
    fn reading<T, F>(&self, f: F) -> Self::Task<T>
    where
        T: Send + 'static,
        F: Fn(&Self::Tx<'_>) -> Result<T, Self::Error> + Send + Sync + 'static;

    /// Writes all that `f` does or nothing; perhaps more than once.
    fn writing<T, F>(&self, f: F) -> Self::Task<T>
    where
        T: Send + 'static,
        F: Fn(&Self::Tx<'_>) -> Result<T, Self::Error> + Send + Sync + 'static;

    /// The name of the namespace; none for the store itself.
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
    /// What is kept is damaged.
    fn corrupt(message: &str) -> Self;

    /// Something is wrong that is no fault of the program's.
    fn failed(message: String) -> Self;

    /// The namespace holds as much as it may; programs see the text.
    fn quota(text: String) -> Self;

    /// What a program may see of it.
    fn seen(&self) -> CapabilityError;
}

/// A transaction on the tables of collections.
pub trait Transaction {
    /// Why something cannot be read or written.
    type Error: BackendError;
    /// A row of an answer.
    type Row<'r>: Columns<Error = Self::Error>;

    /// The texts that differ.
    const STATEMENTS: Statements;

    /// Goes on only if somebody still waits for the result.
    ///
    /// # Errors
    /// Nobody does.
    fn go_on(&self) -> Result<(), Self::Error>;

    /// Gives rows in order, until `f` has enough.
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

    /// Does what a statement says.
    ///
    /// # Errors
    /// Those of writing.
    fn execute(&self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<(), Self::Error>;

    /// What `f` says of the first row, if there is one.
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

/// A row of an answer.
pub trait Columns {
    /// Why something cannot be read.
    type Error;

    /// A whole number, or NULL.
    ///
    /// # Errors
    /// It is neither.
    fn int(&self, column: usize) -> Result<Option<i64>, Self::Error>;

    /// Bytes, or NULL.
    ///
    /// # Errors
    /// It is neither.
    fn bytes(&self, column: usize) -> Result<Option<&[u8]>, Self::Error>;

    /// A value that was kept, and how many bytes it has.
    ///
    /// # Errors
    /// It is in no form of ours.
    fn value(&self, column: usize) -> Result<(Value, usize), Self::Error>;
}

/// A parameter of a statement.
#[derive(Copy, Clone, Debug)]
pub enum Parameter<'a> {
    /// A whole number, or NULL.
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

/// Statements that are not the same for all.
#[derive(Copy, Clone, Debug)]
pub struct Statements {
    /// The id of the namespace with the name `?1`, which is no NULL.
    pub find_namespace: &'static str,
    /// Locks the namespace with the id `?1` for those who write; empty where only one
    /// writes at a time.
    pub lock_namespace: &'static str,
    /// Makes the namespace with the name `?1`, if there is none.
    pub make_namespace: &'static str,
    /// The collection with the name `?2` in the namespace `?1`.
    pub find_collection: &'static str,
    /// Rows and bytes of the documents with the id `?2` of the collection `?1`.
    pub held: &'static str,
}

/// Statements that find by comparing texts in the common way.
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
