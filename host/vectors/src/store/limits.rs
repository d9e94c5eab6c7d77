//! Limits of what a namespace may keep in collections, and what it does keep.

/// What may be kept in the collections of a namespace of a
/// [`VectorStore`](crate::VectorStore), and asked of them. A document counts the bytes of
/// its vector, of its other members as stored, of its `id`, and 128 more; a collection
/// those of its name and 1,024 more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorLimits {
    /// Bytes of all collections and documents.
    pub max_bytes: u64,
    /// Documents of all collections.
    pub max_documents: u64,
    /// Bytes of a document as stored, without its vector.
    pub max_document_bytes: usize,
    /// Bytes of the documents that a search gives, with eight for each number of their
    /// vectors; it is an error to find more.
    pub max_answer_bytes: usize,
}

impl Default for VectorLimits {
    /// 4 GiB, ten million documents, 1 MiB a document, 64 MiB an answer.
    fn default() -> VectorLimits {
        VectorLimits {
            max_bytes: 4 << 30,
            max_documents: 10_000_000,
            max_document_bytes: 1 << 20,
            max_answer_bytes: 64 << 20,
        }
    }
}

/// What the collections of a namespace hold.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct VectorUsage {
    /// Documents.
    pub documents: u64,
    /// Bytes, as [`VectorLimits`] counts them.
    pub bytes: u64,
}
