//! Tables of collections and documents: the SQL of the store.

use super::backend::{BackendError, Columns, Parameter, Transaction};
use super::document::{DOCUMENT_BYTES, Row};
use super::limits::{VectorLimits, VectorUsage};
use crate::MAX_DIMENSION;
use a99_capabilities::check_room;
use a99_capabilities::vectors::{same_dimension, unknown_collection};
use a99_core::text::Text;
use std::ops::ControlFlow;

/// Overhead of a collection in bytes, in addition to its name: it has a log.
const COLLECTION_BYTES: u64 = 1_024;

/// Bits of a row number that number it in its collection; the higher bits identify the
/// collection.
const NUMBER_BITS: u32 = 36;

/// Maximum collections that a file, and documents that a collection, can ever create.
const MAX_COLLECTION: i64 = 1 << (62 - NUMBER_BITS);
const MAX_NUMBER: i64 = (1 << NUMBER_BITS) - 1;

/// Minimum changes that a log keeps, and documents for each further change.
const MIN_LOG: u64 = 32;
const DOCUMENTS_A_CHANGE: u64 = 4;

/// A collection in a transaction's snapshot.
pub(crate) struct Collection {
    pub(crate) id: i64,
    namespace: i64,
    pub(crate) dimension: Option<usize>,
    pub(crate) documents: u64,
    added: i64,
    pub(crate) version: i64,
    /// The log has all changes after this version.
    pub(crate) floor: i64,
}

impl Collection {
    /// Finds a collection by name.
    ///
    /// # Errors
    /// If it does not exist.
    pub(crate) fn find<X: Transaction>(
        tx: &X,
        namespace: Option<&Text>,
        name: &Text,
    ) -> Result<Collection, X::Error> {
        let found = find_namespace(tx, namespace)?.map(|id| Collection::of(tx, id, name));
        match found.transpose()?.flatten() {
            Some(collection) => Ok(collection),
            None => Err(unknown_collection(name).into()),
        }
    }

    /// Finds a collection for a change, and locks the namespace.
    pub(crate) fn change<X: Transaction>(
        tx: &X,
        namespace: Option<&Text>,
        name: &Text,
    ) -> Result<Collection, X::Error> {
        let Some(id) = find_namespace(tx, namespace)? else {
            return Err(unknown_collection(name).into());
        };
        lock_namespace(tx, id)?;
        let found = Collection::of(tx, id, name)?;
        found.ok_or_else(|| unknown_collection(name).into())
    }

    fn of<X: Transaction>(
        tx: &X,
        namespace: i64,
        name: &Text,
    ) -> Result<Option<Collection>, X::Error> {
        let sql = X::STATEMENTS.find_collection;
        let parameters = [namespace.into(), name.as_bytes().into()];
        tx.first(sql, &parameters, |row| {
            let dimension = row.int(1)?;
            let dimension = dimension.map(|numbers| match usize::try_from(numbers) {
                Ok(numbers @ 1..=MAX_DIMENSION) => Ok(numbers),
                _ => Err(X::Error::corrupt(
                    "a collection has a dimension that is none",
                )),
            });
            Ok(Collection {
                id: int(row, 0)?,
                namespace,
                dimension: dimension.transpose()?,
                documents: count(row, 2)?,
                added: int(row, 3)?,
                version: int(row, 4)?,
                floor: int(row, 5)?,
            })
        })
    }

    /// Creates a collection, or sets the undefined dimension of an existing one.
    pub(crate) fn make<X: Transaction>(
        tx: &X,
        namespace: Option<&Text>,
        name: &Text,
        dimension: Option<usize>,
        limits: &VectorLimits,
    ) -> Result<(), X::Error> {
        let namespace = find_or_make_namespace(tx, namespace)?;
        lock_namespace(tx, namespace)?;
        if let Some(collection) = Collection::of(tx, namespace, name)? {
            let known = collection.dimension;
            let dimension = same_dimension(name, known, dimension)?;
            if dimension == known {
                return Ok(());
            }
            let dimension = Parameter::Int(dimension.map(|numbers| numbers as i64));
            let sql = "UPDATE vector_collection
                SET dimension = ?2, version = version + 1 WHERE id = ?1";
            return tx.execute(sql, &[collection.id.into(), dimension]);
        }
        let dimension = Parameter::Int(dimension.map(|numbers| numbers as i64));
        let new = VectorUsage {
            documents: 0,
            bytes: name.len_bytes() as u64 + COLLECTION_BYTES,
        };
        make_room(tx, namespace, new, VectorUsage::default(), limits)?;
        let sql = "INSERT INTO vector_collection (namespace, name, dimension)
            VALUES (?1, ?2, ?3) RETURNING id";
        let parameters = [namespace.into(), name.as_bytes().into(), dimension];
        match tx.first(sql, &parameters, |row| int(row, 0))? {
            Some(id) if id < MAX_COLLECTION => Ok(()),
            _ => Err(all_numbered("collections")),
        }
    }

    /// The first of its row numbers, and the last possible one.
    pub(crate) fn rows(&self) -> (i64, i64) {
        rows_of(self.id)
    }

    /// Appends a document.
    pub(crate) fn add<X: Transaction>(
        &mut self,
        tx: &X,
        row: &Row,
        limits: &VectorLimits,
    ) -> Result<(), X::Error> {
        let new = VectorUsage {
            documents: 1,
            bytes: row.bytes(),
        };
        make_room(tx, self.namespace, new, VectorUsage::default(), limits)?;
        self.added = self.added.saturating_add(1);
        if self.added > MAX_NUMBER {
            return Err(all_numbered("documents"));
        }
        let at = self.rows().0 | self.added;
        let sql = "INSERT INTO vector_document (row, collection, id, embedding, value)
            VALUES (?1, ?2, ?3, ?4, ?5)";
        let parameters = [
            at.into(),
            self.id.into(),
            Parameter::Bytes(row.id.as_deref()),
            row.embedding.as_slice().into(),
            Parameter::Value(&row.value),
        ];
        tx.execute(sql, &parameters)?;
        self.documents += 1;
        self.log(tx, &[at])
    }

    /// Replaces the first document with the same `id`, and removes all others.
    pub(crate) fn replace<X: Transaction>(
        &mut self,
        tx: &X,
        row: &Row,
        limits: &VectorLimits,
    ) -> Result<(), X::Error> {
        let id = row.id.as_deref().unwrap_or_default();
        let held = self.held_by(tx, id)?;
        let Some((first, others)) = held.rows.split_first() else {
            return self.add(tx, row, limits);
        };
        let new = VectorUsage {
            documents: 1,
            bytes: row.bytes(),
        };
        make_room(tx, self.namespace, new, held.usage(), limits)?;
        self.remove(tx, others)?;
        let sql = "UPDATE vector_document SET embedding = ?2, value = ?3 WHERE row = ?1";
        let parameters = [
            (*first).into(),
            row.embedding.as_slice().into(),
            Parameter::Value(&row.value),
        ];
        tx.execute(sql, &parameters)?;
        self.log(tx, &held.rows)
    }

    /// Removes all documents with an `id`. Gives whether there was one.
    pub(crate) fn delete<X: Transaction>(&mut self, tx: &X, id: &[u8]) -> Result<bool, X::Error> {
        let held = self.held_by(tx, id)?;
        if held.rows.is_empty() {
            return Ok(false);
        }
        self.remove(tx, &held.rows)?;
        self.log(tx, &held.rows)?;
        Ok(true)
    }

    fn remove<X: Transaction>(&mut self, tx: &X, rows: &[i64]) -> Result<(), X::Error> {
        for row in rows {
            let sql = "DELETE FROM vector_document WHERE row = ?1";
            tx.execute(sql, &[(*row).into()])?;
        }
        self.documents = self.documents.saturating_sub(rows.len() as u64);
        Ok(())
    }

    fn held_by<X: Transaction>(&self, tx: &X, id: &[u8]) -> Result<Held, X::Error> {
        let mut held = Held::default();
        tx.each(X::STATEMENTS.held, &[self.id.into(), id.into()], |row| {
            held.rows.push(int(row, 0)?);
            held.bytes += count(row, 1)? + DOCUMENT_BYTES;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(held)
    }

    /// Logs a change of rows. A long log loses its older part; a change that alone would make
    /// it too long empties it, so that copies are loaded again.
    fn log<X: Transaction>(&mut self, tx: &X, rows: &[i64]) -> Result<(), X::Error> {
        self.version = self.version.saturating_add(1);
        let keep = MIN_LOG.max(self.documents / DOCUMENTS_A_CHANGE);
        if rows.len() as u64 > keep {
            self.floor = self.version;
        } else if self.version.abs_diff(self.floor) > 2 * keep {
            self.floor = self.version.saturating_sub_unsigned(keep);
        }
        let sql = "UPDATE vector_collection SET added = ?2, version = ?3, floor = ?4 WHERE id = ?1";
        let numbers = [self.id, self.added, self.version, self.floor];
        tx.execute(sql, &numbers.map(Parameter::from))?;
        let sql = "DELETE FROM vector_change WHERE collection = ?1 AND version <= ?2";
        tx.execute(sql, &[self.id.into(), self.floor.into()])?;
        if self.floor < self.version {
            let sql = "INSERT INTO vector_change (collection, version, row) VALUES (?1, ?2, ?3)";
            for row in rows {
                let numbers = [self.id, self.version, *row];
                tx.execute(sql, &numbers.map(Parameter::from))?;
            }
        }
        Ok(())
    }

    /// Sets the dimension, which the first document determines.
    pub(crate) fn fix_dimension<X: Transaction>(
        &mut self,
        tx: &X,
        numbers: usize,
    ) -> Result<(), X::Error> {
        if self.dimension.is_none() {
            self.dimension = Some(numbers);
            let sql = "UPDATE vector_collection SET dimension = ?2 WHERE id = ?1";
            tx.execute(sql, &[self.id.into(), (numbers as i64).into()])?;
        }
        Ok(())
    }
}

/// The documents with an `id`.
#[derive(Default)]
struct Held {
    rows: Vec<i64>,
    bytes: u64,
}

impl Held {
    fn usage(&self) -> VectorUsage {
        VectorUsage {
            documents: self.rows.len() as u64,
            bytes: self.bytes,
        }
    }
}

fn all_numbered<E: BackendError>(what: &str) -> E {
    E::quota(format!("Store is full: it has no numbers left for {what}"))
}

/// An integer of a row.
pub(crate) fn int<C: Columns<Error: BackendError>>(
    row: &C,
    column: usize,
) -> Result<i64, C::Error> {
    row.int(column)?
        .ok_or_else(|| BackendError::corrupt("a column has no number"))
}

fn count<C: Columns<Error: BackendError>>(row: &C, column: usize) -> Result<u64, C::Error> {
    Ok(int(row, column)?.max(0).unsigned_abs())
}

fn find_namespace<X: Transaction>(tx: &X, name: Option<&Text>) -> Result<Option<i64>, X::Error> {
    let Some(name) = name else {
        return Ok(Some(0));
    };
    let sql = X::STATEMENTS.find_namespace;
    tx.first(sql, &[name.as_bytes().into()], |row| int(row, 0))
}

fn find_or_make_namespace<X: Transaction>(tx: &X, name: Option<&Text>) -> Result<i64, X::Error> {
    if let Some(id) = find_namespace(tx, name)? {
        return Ok(id);
    }
    let bytes = name.map(Text::as_bytes);
    tx.execute(X::STATEMENTS.make_namespace, &[Parameter::Bytes(bytes)])?;
    find_namespace(tx, name)?.ok_or_else(|| X::Error::corrupt("a namespace is not there"))
}

/// Locks a namespace against other writers until the end of the transaction.
fn lock_namespace<X: Transaction>(tx: &X, namespace: i64) -> Result<(), X::Error> {
    match X::STATEMENTS.lock_namespace {
        "" => Ok(()),
        sql => tx.execute(sql, &[namespace.into()]),
    }
}

fn held<X: Transaction>(tx: &X, namespace: i64) -> Result<VectorUsage, X::Error> {
    let sql = "SELECT documents, bytes FROM vector_namespace WHERE id = ?1";
    let found = tx.first(sql, &[namespace.into()], |row| {
        Ok(VectorUsage {
            documents: count(row, 0)?,
            bytes: count(row, 1)?,
        })
    });
    Ok(found?.unwrap_or_default())
}

/// Usage of a namespace; zero before the first write.
pub(crate) fn usage<X: Transaction>(
    tx: &X,
    namespace: Option<&Text>,
) -> Result<VectorUsage, X::Error> {
    match find_namespace(tx, namespace)? {
        Some(id) => held(tx, id),
        None => Ok(VectorUsage::default()),
    }
}

/// Fails if the namespace has no room for new data that replaces old data.
fn make_room<X: Transaction>(
    tx: &X,
    namespace: i64,
    new: VectorUsage,
    old: VectorUsage,
    limits: &VectorLimits,
) -> Result<(), X::Error> {
    let held = held(tx, namespace)?;
    let bytes = check_room(held.bytes, old.bytes, new.bytes, limits.max_bytes, "bytes");
    let documents = check_room(
        held.documents,
        old.documents,
        new.documents,
        limits.max_documents,
        "documents",
    );
    bytes.and(documents).map_err(X::Error::quota)
}

/// Removes all collections of a namespace.
pub(crate) fn clear<X: Transaction>(tx: &X, namespace: Option<&Text>) -> Result<(), X::Error> {
    let Some(namespace) = find_namespace(tx, namespace)? else {
        return Ok(());
    };
    lock_namespace(tx, namespace)?;
    let mut ids = Vec::new();
    let sql = "SELECT id FROM vector_collection WHERE namespace = ?1";
    tx.each(sql, &[namespace.into()], |row| {
        ids.push(int(row, 0)?);
        Ok(ControlFlow::Continue(()))
    })?;
    for id in ids {
        remove_rows(tx, id)?;
    }
    let sql = "DELETE FROM vector_collection WHERE namespace = ?1";
    tx.execute(sql, &[namespace.into()])
}

/// The first row number of a collection, and the last possible one.
fn rows_of(collection: i64) -> (i64, i64) {
    let first = collection << NUMBER_BITS;
    (first, first | MAX_NUMBER)
}

fn remove_rows<X: Transaction>(tx: &X, collection: i64) -> Result<(), X::Error> {
    let (first, last) = rows_of(collection);
    let sql = "DELETE FROM vector_document WHERE row BETWEEN ?1 AND ?2";
    tx.execute(sql, &[first.into(), last.into()])?;
    let sql = "DELETE FROM vector_change WHERE collection = ?1";
    tx.execute(sql, &[collection.into()])
}
