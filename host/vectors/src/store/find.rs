//! Searches: checks a program's query, and gives the matching documents.

use super::backend::{BackendError, Columns, Transaction};
use super::cache::Cache;
use super::copy::{self, Wanted};
use super::document::{is_vector, unit, whole};
use super::limits::VectorLimits;
use super::tables::Collection;
use crate::Hit;
use a99_capabilities::CapabilityError;
use a99_capabilities::vectors::{check_dimension, filter, has_members, query_vector, top_k};
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use std::cell::{Cell, RefCell};

/// Documents that a filter reads between two checks for an interrupt.
const CHECK_INTERVAL: usize = 64;

/// A program's query.
pub(crate) struct Asked {
    pub(crate) collection: Text,
    pub(crate) vector: Value,
    pub(crate) k: Value,
    pub(crate) filter: Value,
}

/// Maximum transactions of a search; the last one searches even if the copies are newer.
const MAX_TRIES: usize = 8;

/// The documents that match a search after `tries` earlier transactions. `None` if a later
/// transaction must search.
pub(crate) fn answer<X: Transaction>(
    tx: &X,
    cache: &Cache,
    namespace: Option<&Text>,
    asked: &Asked,
    tries: usize,
    limits: &VectorLimits,
) -> Result<Option<Value>, X::Error> {
    let collection = Collection::find(tx, namespace, &asked.collection)?;
    let query = query_vector(&asked.vector)?;
    check_dimension(collection.dimension, query.len())?;
    let k = top_k(&asked.k)?;
    let members = filter(&asked.filter)?;
    if k == 0 || collection.documents == 0 {
        return Ok(Some(Value::Array(Vec::new())));
    }
    let dimension = query.len();
    let query = unit(query);
    let filter = members.map(|members| Filter::new(tx, members, dimension));
    let admits = filter
        .as_ref()
        .map(|filter| move |row: u64| filter.admits(row));
    let wanted = Wanted {
        query: &query,
        k,
        filter: admits.as_ref().map(|admits| admits as &dyn Fn(u64) -> bool),
        is_last: tries >= MAX_TRIES,
    };
    let hits = copy::search(tx, cache, &collection, &wanted)?;
    if let Some(filter) = &filter {
        filter.end()?;
    }
    let documents = hits.map(|hits| documents(tx, &hits, dimension, limits));
    documents.transpose()
}

/// The documents of hits.
fn documents<X: Transaction>(
    tx: &X,
    hits: &[Hit],
    dimension: usize,
    limits: &VectorLimits,
) -> Result<Value, X::Error> {
    let mut left = limits.max_answer_bytes;
    let mut documents = Vec::with_capacity(hits.len());
    for hit in hits {
        documents.push(document(tx, hit.id, |row| {
            let (document, bytes) = whole(row, dimension)?;
            let bytes = bytes + dimension * size_of::<f64>();
            left = left.checked_sub(bytes).ok_or_else(|| too_much(limits))?;
            Ok(document)
        })?);
    }
    Ok(Value::Array(documents))
}

fn too_much(limits: &VectorLimits) -> CapabilityError {
    let most = limits.max_answer_bytes;
    let text = format!("The documents found have more than {most} bytes: ask for fewer with k.");
    CapabilityError::new(text)
}

/// Reads the document of a row.
fn document<X: Transaction, T>(
    tx: &X,
    row: u64,
    f: impl FnMut(&X::Row<'_>) -> Result<T, X::Error>,
) -> Result<T, X::Error> {
    let sql = "SELECT value, embedding FROM vector_document WHERE row = ?1";
    let found = tx.first(sql, &[row.cast_signed().into()], f)?;
    found.ok_or_else(|| X::Error::corrupt("a document is not there"))
}

/// The required members of documents. It reads documents on demand, and none after an error.
struct Filter<'a, X: Transaction> {
    tx: &'a X,
    members: &'a Map,
    dimension: usize,
    /// Whether a member requires the vector in place.
    is_about_vector: bool,
    asked: Cell<usize>,
    failed: RefCell<Option<X::Error>>,
}

impl<'a, X: Transaction> Filter<'a, X> {
    fn new(tx: &'a X, members: &'a Map, dimension: usize) -> Filter<'a, X> {
        Filter {
            tx,
            members,
            dimension,
            is_about_vector: members.keys().any(|key| is_vector(key.as_bytes())),
            asked: Cell::new(0),
            failed: RefCell::new(None),
        }
    }

    fn admits(&self, row: u64) -> bool {
        if self.failed.borrow().is_some() {
            return false;
        }
        self.look(row).unwrap_or_else(|error| {
            self.failed.replace(Some(error));
            false
        })
    }

    fn look(&self, row: u64) -> Result<bool, X::Error> {
        if self.asked.get().is_multiple_of(CHECK_INTERVAL) {
            self.tx.go_on()?;
        }
        self.asked.set(self.asked.get() + 1);
        let document = document(self.tx, row, |row| match self.is_about_vector {
            true => Ok(whole(row, self.dimension)?.0),
            false => Ok(row.value(0)?.0),
        })?;
        Ok(has_members(&document, self.members))
    }

    /// The error of a read, if there was one.
    fn end(&self) -> Result<(), X::Error> {
        self.failed.take().map_or(Ok(()), Err)
    }
}
