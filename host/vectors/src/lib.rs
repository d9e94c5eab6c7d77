//! Exact nearest-neighbour search over vectors in memory, by cosine similarity.
//!
//! An [`Index`] holds vectors of one dimension and length one, in 32 bits; zero is allowed, and
//! scores
//! 0. [`Index::search`] gives the `k` rows with the greatest products with a query. There is no
//!    approximate index: the rows and scores are those of a comparison with every row. The
//!    search is fast because it first reads a copy in eight bits; only rows that can be among
//!    the best by a proven bound are read in full (`src/bound.rs` has the proof).
//!
//! ```
//! use a99_vectors::{Index, normalized};
//!
//! let mut index = Index::new(2)?;
//! index.push(7, &normalized(&[3.0, 4.0])?)?;
//! index.push(8, &normalized(&[1.0, 0.0])?)?;
//! index.push(9, &normalized(&[0.0, -2.0])?)?;
//! let hits = index.search(&[1.0, 0.0], 2, None)?;
//! assert_eq!(hits[0].id, 8);
//! assert_eq!((hits[1].id, hits[1].score), (7, 0.6));
//! let odd = index.search(&[1.0, 0.0], 1, Some(&|id| id % 2 == 1))?;
//! assert_eq!(odd[0].id, 7);
//! # Ok::<(), a99_vectors::VectorError>(())
//! ```
//!
//! Persistence is up to the caller: it feeds an index with [`Index::push`], [`Index::replace`]
//! and [`Index::delete`], and calls [`Index::bytes_after_push`] before. With the feature
//! `sqlite`, `VectorStore` keeps vectors in a file; with the feature `postgres`,
//! `PostgresVectorStore` keeps them on a server. Both implement the capability of programs.

#![warn(unreachable_pub)]

mod best;
mod block;
mod bound;
mod error;
mod index;
mod kernel;
mod search;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod store;

#[cfg(feature = "sqlite")]
pub use a99_sqlite::SqliteOptions;
pub use bound::normalized;
pub use error::VectorError;
pub use index::Index;
#[cfg(feature = "postgres")]
pub use store::PostgresVectorStore;
#[cfg(feature = "sqlite")]
pub use store::VectorStore;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use store::{Backend, CacheUsage, VectorLimits, VectorUsage, WithVectors};

/// Maximum dimension of a vector: the sums of codes and the proof of the bound rely on it.
pub const MAX_DIMENSION: usize = 1 << 16;

/// A row that a search found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The id that it was added with.
    pub id: u64,
    /// Its product with the query, from -1 to 1 except for rounding.
    pub score: f32,
}
