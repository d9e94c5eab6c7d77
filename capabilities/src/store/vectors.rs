//! Vectors of stores: checks of collections, documents and searches (language section 2.8), and
//! the exhaustive search of the store in memory.
//!
//! Every store with vectors uses these checks, so that programs see the same errors. A search
//! makes them in this order: [`collection_name`],
//! [`unknown_collection`], [`query_vector`], [`check_dimension`], [`top_k`], [`filter`].

use super::memory::MAX_KEY_BYTES;
use crate::error::CapabilityError;
use crate::size::value_bytes;
use a99_core::text::Text;
use a99_core::value::{Map, Value};

/// Most documents of a search (security N16).
pub const MAX_TOP_K: usize = 1_000;

/// Default number of documents of a search.
pub const DEFAULT_TOP_K: usize = 5;

/// Most numbers of a vector; embedding models have a few thousand.
pub const MAX_DIMENSION: usize = 65_536;

/// Estimated bytes of a collection or document in addition to its content.
const OVERHEAD_BYTES: usize = 128;

/// Documents with vectors of one dimension.
#[derive(Debug, Default)]
pub(super) struct Collection {
    dimension: Option<usize>,
    entries: Vec<Entry>,
    bytes: usize,
}

/// A document with its unit vector.
#[derive(Debug)]
pub(super) struct Entry {
    document: Value,
    unit: Vec<f64>,
    bytes: usize,
}

impl Entry {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The document's `id`, which must be a text.
    pub(super) fn id(&self) -> Result<&Text, CapabilityError> {
        document_id(self.document.get("id").unwrap_or(&Value::Undefined))
    }

    fn has_id(&self, id: &Text) -> bool {
        self.document.get("id").and_then(Value::as_text) == Some(id)
    }
}

impl Collection {
    /// An empty collection; [`dimension`] reads `dimension`.
    pub(super) fn new(dimension: &Value) -> Result<Collection, CapabilityError> {
        Ok(Collection {
            dimension: self::dimension(dimension)?,
            ..Collection::default()
        })
    }

    /// Creates the collection again, which only sets an open dimension.
    pub(super) fn make_again(
        &mut self,
        name: &Text,
        made: &Collection,
    ) -> Result<(), CapabilityError> {
        self.dimension = same_dimension(name, self.dimension, made.dimension)?;
        Ok(())
    }

    pub(super) fn bytes(&self) -> usize {
        OVERHEAD_BYTES + self.bytes
    }

    /// Checks a document and makes it an entry.
    pub(super) fn entry(&self, document: Value) -> Result<Entry, CapabilityError> {
        let vector = embedding(&document)?;
        check_dimension(self.dimension, vector.len())?;
        let bytes = OVERHEAD_BYTES + value_bytes(&document) + vector.len() * size_of::<f64>();
        Ok(Entry {
            unit: unit(vector),
            document,
            bytes,
        })
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.dimension.get_or_insert(entry.unit.len());
        self.bytes += entry.bytes;
        self.entries.push(entry);
    }

    /// Estimated bytes of all documents with an `id`.
    pub(super) fn bytes_of(&self, id: &Text) -> usize {
        let with_id = self.entries.iter().filter(|entry| entry.has_id(id));
        with_id.map(|entry| entry.bytes).sum()
    }

    /// Replaces the first entry with the same `id`, or appends, and removes all others with it.
    pub(super) fn replace(&mut self, id: &Text, entry: Entry) {
        let place = self.entries.iter().position(|entry| entry.has_id(id));
        self.remove(id);
        self.push(entry);
        if let Some(place) = place {
            self.entries[place..].rotate_right(1);
        }
    }

    /// Removes all documents with an `id`; returns their bytes, if any.
    pub(super) fn remove(&mut self, id: &Text) -> Option<usize> {
        let freed = self.bytes_of(id);
        self.entries.retain(|entry| !entry.has_id(id));
        self.bytes -= freed;
        (freed > 0).then_some(freed)
    }

    /// The `k` nearest documents by cosine, best first; equal ones keep their order of
    /// insertion. A filter is an object whose members the document must have.
    pub(super) fn search(
        &self,
        vector: &Value,
        k: &Value,
        filter: &Value,
    ) -> Result<Vec<Value>, CapabilityError> {
        let query = query_vector(vector)?;
        check_dimension(self.dimension, query.len())?;
        let k = top_k(k)?;
        let filter = self::filter(filter)?;
        let query = unit(query);
        let mut scored: Vec<(f64, &Entry)> = self
            .entries
            .iter()
            .filter(|entry| filter.is_none_or(|f| has_members(&entry.document, f)))
            .map(|entry| (dot(&query, &entry.unit), entry))
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        Ok(scored
            .into_iter()
            .take(k)
            .map(|(_, entry)| entry.document.clone())
            .collect())
    }
}

/// Reads the name of a collection.
///
/// # Errors
/// The name is no text, or longer than [`MAX_KEY_BYTES`].
pub fn collection_name(name: Value) -> Result<Text, CapabilityError> {
    match name {
        Value::String(text) if text.len_bytes() <= MAX_KEY_BYTES => Ok(text),
        _ => Err(CapabilityError::new("Collection names must be strings")),
    }
}

/// The dimension of an existing collection that is created again: its contents stay, so that a
/// program may start by creating it.
///
/// # Errors
/// The requested dimension differs.
pub fn same_dimension(
    name: &Text,
    known: Option<usize>,
    asked: Option<usize>,
) -> Result<Option<usize>, CapabilityError> {
    match (known, asked) {
        (Some(known), Some(asked)) if known != asked => Err(CapabilityError::new(format!(
            "Collection '{name}' has vectors of {known} numbers, not of {asked}"
        ))),
        _ => Ok(known.or(asked)),
    }
}

/// The error of a missing collection.
#[must_use]
pub fn unknown_collection(name: &Text) -> CapabilityError {
    CapabilityError::new(format!("Collection '{name}' not found. Create it first."))
}

/// Reads the `id` by which documents are replaced and deleted.
///
/// # Errors
/// The `id` is no text.
pub fn document_id(id: &Value) -> Result<&Text, CapabilityError> {
    id.as_text()
        .ok_or_else(|| CapabilityError::new("The id of a document must be a text."))
}

/// Reads a collection's dimension: a number, or nullish for that of the first document.
///
/// # Errors
/// The value is no whole number from 1 to [`MAX_DIMENSION`].
pub fn dimension(dimension: &Value) -> Result<Option<usize>, CapabilityError> {
    match dimension {
        Value::Undefined | Value::Null => Ok(None),
        Value::Number(n) if n.fract() == 0.0 && (1.0..=MAX_DIMENSION as f64).contains(n) => {
            Ok(Some(*n as usize))
        }
        _ => Err(CapabilityError::new(format!(
            "The dimension of a collection must be an integer from 1 to {MAX_DIMENSION}."
        ))),
    }
}

/// Reads the vector of a document: its member `embedding`.
///
/// # Errors
/// The document has no `embedding`, or one that is no list of 1 to [`MAX_DIMENSION`] finite
/// numbers.
pub fn embedding(document: &Value) -> Result<Vec<f64>, CapabilityError> {
    const TEXT: &str = "Document must have an 'embedding' property that is an array of numbers.";
    let vector = document.get("embedding").and_then(numbers);
    vector.ok_or_else(|| CapabilityError::new(TEXT))
}

/// Reads the vector of a query.
///
/// # Errors
/// The value is no list of 1 to [`MAX_DIMENSION`] finite numbers.
pub fn query_vector(vector: &Value) -> Result<Vec<f64>, CapabilityError> {
    numbers(vector)
        .ok_or_else(|| CapabilityError::new("The query vector must be an array of numbers."))
}

/// Checks that a vector has the dimension of its collection, if known.
///
/// # Errors
/// The dimensions differ.
pub fn check_dimension(dimension: Option<usize>, length: usize) -> Result<(), CapabilityError> {
    if dimension.is_some_and(|d| d != length) {
        let text = "Vectors must have the same length for cosine similarity.";
        return Err(CapabilityError::new(text));
    }
    Ok(())
}

/// Reads the number of documents of a search: [`DEFAULT_TOP_K`] for nullish, clamped to
/// `0..=`[`MAX_TOP_K`].
///
/// # Errors
/// The value is NaN, or no number.
pub fn top_k(k: &Value) -> Result<usize, CapabilityError> {
    match k {
        Value::Undefined | Value::Null => Ok(DEFAULT_TOP_K),
        Value::Number(n) if !n.is_nan() => Ok(n.clamp(0.0, MAX_TOP_K as f64) as usize),
        _ => Err(CapabilityError::new("k must be a number.")),
    }
}

/// Reads the members that documents must have, if any; see [`has_members`].
///
/// # Errors
/// The value is neither nullish nor an object.
pub fn filter(filter: &Value) -> Result<Option<&Map>, CapabilityError> {
    match filter {
        Value::Undefined | Value::Null => Ok(None),
        Value::Object(map) => Ok(Some(map)),
        _ => Err(CapabilityError::new("The filter must be an object.")),
    }
}

/// Whether a document has all members of a filter, with equal values.
#[must_use]
pub fn has_members(document: &Value, filter: &Map) -> bool {
    let Some(members) = document.as_object() else {
        return false;
    };
    filter
        .iter()
        .all(|(key, wanted)| members.get_bytes(key.as_bytes()) == Some(wanted))
}

/// The finite numbers of a vector; `None` for anything else, NaN included.
fn numbers(value: &Value) -> Option<Vec<f64>> {
    let items = value.as_array()?;
    if items.is_empty() || items.len() > MAX_DIMENSION {
        return None;
    }
    items
        .iter()
        .map(|n| n.as_f64().filter(|n| n.is_finite()))
        .collect()
}

/// The unit vector of the same direction; zero stays zero. Scaling by the largest number first
/// avoids overflow of huge vectors and underflow of tiny ones.
#[must_use]
pub fn unit(mut vector: Vec<f64>) -> Vec<f64> {
    let largest = vector.iter().fold(0.0, |max: f64, x| max.max(x.abs()));
    if largest > 0.0 {
        vector.iter_mut().for_each(|x| *x /= largest);
        let norm = dot(&vector, &vector).sqrt();
        vector.iter_mut().for_each(|x| *x /= norm);
    }
    vector
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Adding zero turns negative zero into zero for the total order.
    a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>() + 0.0
}
