//! Limits of a namespace's collections, and their usage.

/// Limits of a namespace's collections in a [`VectorStore`](crate::VectorStore), and of their
/// results. A document counts the bytes of its vector, of its other members as stored, of its
/// `id`, and 128 more; a collection those of its name and 1,024 more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorLimits {
    /// Maximum bytes of all collections and documents.
    pub max_bytes: u64,
    /// Maximum documents of all collections.
    pub max_documents: u64,
    /// Maximum bytes of a document as stored, without its vector.
    pub max_document_bytes: usize,
    /// Maximum bytes of a search's documents, with eight for each number of their vectors; a
    /// larger result is an error.
    pub max_answer_bytes: usize,
}

impl Default for VectorLimits {
    /// 4 GiB, ten million documents, 1 MiB a document, 64 MiB a result.
    fn default() -> VectorLimits {
        VectorLimits {
            max_bytes: 4 << 30,
            max_documents: 10_000_000,
            max_document_bytes: 1 << 20,
            max_answer_bytes: 64 << 20,
        }
    }
}

/// Usage of a namespace's collections.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct VectorUsage {
    /// Number of documents.
    pub documents: u64,
    /// Bytes, as [`VectorLimits`] counts them.
    pub bytes: u64,
}
