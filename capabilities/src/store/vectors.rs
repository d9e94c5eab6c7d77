//! Brute-force vector search (language section 2.8).

use super::memory::document_id;
use crate::error::CapabilityError;
use crate::size::value_bytes;
use a99_core::text::Text;
use a99_core::value::{Map, Value};

/// No search gives more documents (security N16).
pub const MAX_TOP_K: usize = 1_000;

/// Documents that a search gives unless the program says otherwise.
const DEFAULT_TOP_K: usize = 5;

/// Longest vector; embedding models give a few thousand numbers.
const MAX_DIMENSION: usize = 65_536;

/// Estimated bytes of a collection or document beyond its content.
const OVERHEAD_BYTES: usize = 128;

/// Documents with vectors of one length.
#[derive(Debug, Default)]
pub(super) struct Collection {
    dimension: Option<usize>,
    entries: Vec<Entry>,
    bytes: usize,
}

/// A document and its vector, as unit vector.
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

    /// Its document's `id`, which must be a text.
    pub(super) fn id(&self) -> Result<&Text, CapabilityError> {
        document_id(self.document.get("id").unwrap_or(&Value::Undefined))
    }

    fn has_id(&self, id: &Text) -> bool {
        self.document.get("id").and_then(Value::as_text) == Some(id)
    }
}

impl Collection {
    /// An empty collection; `dimension` is a number, or nullish for that of
    /// the first document.
    pub(super) fn new(dimension: &Value) -> Result<Collection, CapabilityError> {
        let dimension = match dimension {
            Value::Undefined | Value::Null => None,
            Value::Number(n) if n.fract() == 0.0 && (1.0..=MAX_DIMENSION as f64).contains(n) => {
                Some(*n as usize)
            }
            _ => {
                return Err(CapabilityError::new(format!(
                    "The dimension of a collection must be an integer from 1 to {MAX_DIMENSION}."
                )));
            }
        };
        Ok(Collection {
            dimension,
            ..Collection::default()
        })
    }

    pub(super) fn bytes(&self) -> usize {
        OVERHEAD_BYTES + self.bytes
    }

    /// Checks a document and makes it an entry.
    pub(super) fn entry(&self, document: Value) -> Result<Entry, CapabilityError> {
        const TEXT: &str =
            "Document must have an 'embedding' property that is an array of numbers.";
        let vector = document.get("embedding").and_then(numbers);
        let vector = vector.ok_or_else(|| CapabilityError::new(TEXT))?;
        self.check_dimension(vector.len())?;
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

    /// Puts an entry in the place of the first with the same `id`, or at the end, and
    /// removes all others with it.
    pub(super) fn replace(&mut self, id: &Text, entry: Entry) {
        let place = self.entries.iter().position(|entry| entry.has_id(id));
        self.remove(id);
        self.push(entry);
        if let Some(place) = place {
            self.entries[place..].rotate_right(1);
        }
    }

    /// Removes all documents with an `id`; their bytes, if there were any.
    pub(super) fn remove(&mut self, id: &Text) -> Option<usize> {
        let freed = self.bytes_of(id);
        self.entries.retain(|entry| !entry.has_id(id));
        self.bytes -= freed;
        (freed > 0).then_some(freed)
    }

    /// The `k` nearest documents by cosine, best first; equals keep the order
    /// in which they were added. A filter is an object whose members the
    /// document must have.
    pub(super) fn search(
        &self,
        vector: &Value,
        k: &Value,
        filter: &Value,
    ) -> Result<Vec<Value>, CapabilityError> {
        let query = numbers(vector)
            .ok_or_else(|| CapabilityError::new("The query vector must be an array of numbers."))?;
        self.check_dimension(query.len())?;
        let k = top_k(k)?;
        let filter = match filter {
            Value::Undefined | Value::Null => None,
            Value::Object(map) => Some(map),
            _ => return Err(CapabilityError::new("The filter must be an object.")),
        };
        let query = unit(query);
        let mut scored: Vec<(f64, &Entry)> = self
            .entries
            .iter()
            .filter(|entry| filter.is_none_or(|f| matches(&entry.document, f)))
            .map(|entry| (dot(&query, &entry.unit), entry))
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        Ok(scored
            .into_iter()
            .take(k)
            .map(|(_, entry)| entry.document.clone())
            .collect())
    }

    fn check_dimension(&self, length: usize) -> Result<(), CapabilityError> {
        if self.dimension.is_some_and(|d| d != length) {
            let text = "Vectors must have the same length for cosine similarity.";
            return Err(CapabilityError::new(text));
        }
        Ok(())
    }
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

/// How many documents: clamped to `0..=`[`MAX_TOP_K`].
fn top_k(k: &Value) -> Result<usize, CapabilityError> {
    match k {
        Value::Undefined | Value::Null => Ok(DEFAULT_TOP_K),
        Value::Number(n) if !n.is_nan() => Ok(n.clamp(0.0, MAX_TOP_K as f64) as usize),
        _ => Err(CapabilityError::new("k must be a number.")),
    }
}

/// Scales to length one; the zero vector stays, so that it scores zero.
/// Scaling by the largest member first keeps huge vectors from overflowing.
fn unit(mut vector: Vec<f64>) -> Vec<f64> {
    let largest = vector.iter().fold(0.0, |max: f64, x| max.max(x.abs()));
    if largest > 0.0 {
        vector.iter_mut().for_each(|x| *x /= largest);
        let norm = dot(&vector, &vector).sqrt();
        vector.iter_mut().for_each(|x| *x /= norm);
    }
    vector
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Zero plus anything hides the sign of zero from the total order.
    a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>() + 0.0
}

fn matches(document: &Value, filter: &Map) -> bool {
    let Some(members) = document.as_object() else {
        return false;
    };
    filter
        .iter()
        .all(|(key, wanted)| members.get_bytes(key.as_bytes()) == Some(wanted))
}
