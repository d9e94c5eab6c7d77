//! Documents as rows of a table: the vector in bytes, the rest as a value.

use super::backend::{BackendError, Columns};
use a99_capabilities::{CapabilityError, StoredValue, vectors};
use a99_core::value::Value;

/// The member with a document's vector.
const EMBEDDING: &str = "embedding";

/// A document as stored.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Its `id`, if that is a text.
    pub(crate) id: Option<Vec<u8>>,
    /// The little-endian numbers: of 32 bits each if all are exactly representable, otherwise
    /// of 64.
    pub(crate) embedding: Vec<u8>,
    /// The document with null in place of its vector.
    pub(crate) value: StoredValue,
}

impl Row {
    /// Encodes a document whose vector was read from it.
    ///
    /// # Errors
    /// If it is too large, or nested too deeply.
    pub(crate) fn of(
        mut document: Value,
        vector: &[f64],
        max_bytes: usize,
    ) -> Result<Row, CapabilityError> {
        if let Value::Object(members) = &mut document {
            members.insert(EMBEDDING, Value::Null);
        }
        let id = document.get("id").and_then(Value::as_text);
        let id = id.map(|id| id.as_bytes().to_vec());
        let value = StoredValue::of(&document, max_bytes);
        document.dispose();
        Ok(Row {
            id,
            embedding: bytes(vector),
            value: value?,
        })
    }

    /// Bytes that it adds to a namespace; the triggers of the tables count the same.
    pub(crate) fn bytes(&self) -> u64 {
        let id = self.id.as_ref().map_or(0, Vec::len);
        (id + self.embedding.len() + self.value.as_bytes().len()) as u64 + DOCUMENT_BYTES
    }
}

/// Overhead of a document in bytes, in addition to its content.
pub(crate) const DOCUMENT_BYTES: u64 = 128;

fn bytes(vector: &[f64]) -> Vec<u8> {
    let is_short = |x: &f64| f64::from(*x as f32).to_bits() == x.to_bits();
    match vector.iter().all(is_short) {
        true => {
            let short = vector.iter().flat_map(|x| (*x as f32).to_le_bytes());
            short.collect()
        }
        false => vector.iter().flat_map(|x| x.to_le_bytes()).collect(),
    }
}

fn damaged<E: BackendError>() -> E {
    E::corrupt("a vector is not in a form of ours")
}

/// The numbers of a vector as it was added.
fn numbers<E: BackendError>(embedding: &[u8], dimension: usize) -> Result<Vec<f64>, E> {
    let (short, rest) = embedding.as_chunks::<4>();
    let numbers: Vec<f64> = if short.len() == dimension && rest.is_empty() {
        let numbers = short.iter().map(|x| f64::from(f32::from_le_bytes(*x)));
        numbers.collect()
    } else {
        let (long, rest) = embedding.as_chunks::<8>();
        if long.len() != dimension || !rest.is_empty() {
            return Err(damaged());
        }
        long.iter().map(|x| f64::from_le_bytes(*x)).collect()
    };
    match numbers.iter().all(|x| x.is_finite()) {
        true => Ok(numbers),
        false => Err(damaged()),
    }
}

/// A vector of length one in 32 bits, as an index requires.
pub(crate) fn unit(vector: Vec<f64>) -> Vec<f32> {
    let unit = vectors::unit(vector).into_iter();
    unit.map(|x| x as f32).collect()
}

/// The same vector from stored bytes.
pub(crate) fn stored_unit<E: BackendError>(
    embedding: &[u8],
    dimension: usize,
) -> Result<Vec<f32>, E> {
    Ok(unit(numbers::<E>(embedding, dimension)?))
}

/// A document as it was added, and its bytes without the vector. The columns are its value and
/// its vector.
pub(crate) fn whole<C: Columns<Error: BackendError>>(
    row: &C,
    dimension: usize,
) -> Result<(Value, usize), C::Error> {
    let (value, bytes) = row.value(0)?;
    let (Some(embedding), Value::Object(mut members)) = (row.bytes(1)?, value) else {
        return Err(damaged());
    };
    let numbers = numbers::<C::Error>(embedding, dimension)?;
    let numbers = numbers.into_iter().map(Value::Number);
    members.insert(EMBEDDING, Value::Array(numbers.collect()));
    Ok((Value::Object(members), bytes))
}

/// Whether testing a member requires the document's vector.
pub(crate) fn is_vector(member: &[u8]) -> bool {
    member == EMBEDDING.as_bytes()
}
