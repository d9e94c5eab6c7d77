//! Documents as rows of a table: the vector in bytes, the rest as a value.

use a99_capabilities::vectors;
use a99_core::value::Value;
use a99_sqlite::rusqlite::types::ValueRef;
use a99_sqlite::{SqliteCode, SqliteError, Stored, decode, encode};

/// The member that is a document's vector.
const EMBEDDING: &str = "embedding";

/// A document as it is stored.
pub(crate) struct Row {
    /// Its `id`, if that is a text.
    pub(crate) id: Option<Vec<u8>>,
    /// The numbers, the lowest byte first: of 32 bits each if all are exactly that, else of
    /// 64.
    pub(crate) embedding: Vec<u8>,
    /// The document with null in the place of its vector.
    pub(crate) value: Stored,
}

impl Row {
    /// A document, whose vector was read from it.
    ///
    /// # Errors
    /// It is too large, or too deep.
    pub(crate) fn of(
        mut document: Value,
        vector: &[f64],
        max_bytes: usize,
    ) -> Result<Row, SqliteError> {
        if let Value::Object(members) = &mut document {
            members.insert(EMBEDDING, Value::Null);
        }
        let id = document.get("id").and_then(Value::as_text);
        let id = id.map(|id| id.as_bytes().to_vec());
        let value = encode(&document, max_bytes);
        document.dispose();
        Ok(Row {
            id,
            embedding: bytes(vector),
            value: value?,
        })
    }

    /// What it adds to what a namespace holds; the triggers of the tables count the same.
    pub(crate) fn bytes(&self) -> u64 {
        let id = self.id.as_ref().map_or(0, Vec::len);
        (id + self.embedding.len() + self.value.bytes()) as u64 + DOCUMENT_BYTES
    }
}

/// Bytes that a document counts beside its content.
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

fn damaged() -> SqliteError {
    SqliteError::new(SqliteCode::Corrupt, "a vector is not in a form of ours")
}

/// The numbers of a vector as it was added.
fn numbers(embedding: &[u8], dimension: usize) -> Result<Vec<f64>, SqliteError> {
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

/// A vector of length one in 32 bits, as an index takes it.
pub(crate) fn unit(vector: Vec<f64>) -> Vec<f32> {
    let unit = vectors::unit(vector).into_iter();
    unit.map(|x| x as f32).collect()
}

/// The same from a column.
pub(crate) fn stored_unit(
    embedding: ValueRef<'_>,
    dimension: usize,
) -> Result<Vec<f32>, SqliteError> {
    match embedding {
        ValueRef::Blob(bytes) => Ok(unit(numbers(bytes, dimension)?)),
        _ => Err(damaged()),
    }
}

/// A document without its vector, which is null.
pub(crate) fn without_vector(value: ValueRef<'_>) -> Result<Value, SqliteError> {
    decode(value)
}

/// A document as it was added.
pub(crate) fn whole(
    value: ValueRef<'_>,
    embedding: ValueRef<'_>,
    dimension: usize,
) -> Result<Value, SqliteError> {
    let (ValueRef::Blob(bytes), Value::Object(mut members)) = (embedding, decode(value)?) else {
        return Err(damaged());
    };
    let numbers = numbers(bytes, dimension)?.into_iter().map(Value::Number);
    members.insert(EMBEDDING, Value::Array(numbers.collect()));
    Ok(Value::Object(members))
}

/// Whether what [`without_vector`] gives is not enough to say if a document has a member.
pub(crate) fn is_vector(member: &[u8]) -> bool {
    member == EMBEDDING.as_bytes()
}
