//! Image cache: everything to use a finished image of a guest, and nothing that builds one.
//!
//! An image is a handful of step results in the user's cache folder ([`Cache`]), each with
//! a manifest ([`Entry`]). The snapshot among them is portable ([`portable`]); the module
//! is that snapshot compiled for this processor and sealed with the folder's key
//! ([`module`], [`SealKey`]). A [`machine::Machine`] runs guests; `a99-sandbox-runner`
//! implements it, and `a99-sandbox-image` makes the other results.
//!
//! ```
//! use a99_sandbox_cache::Cache;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let cache = Cache::at(folder.path())?;
//! assert!(cache.current("snapshot")?.is_none());
//! # Ok(())
//! # }
//! ```

#![warn(unreachable_pub)]

pub mod cache;
pub mod digest;
pub mod entry;
pub mod error;
pub mod machine;
pub mod module;
pub mod packs;
pub mod portable;
pub mod progress;
pub mod seal;
pub mod step;

pub use cache::{Cache, user_folders};
pub use entry::Entry;
pub use error::{ErrorCode, ImageError};
pub use module::recompile;
pub use progress::{Event, Progress, StepEnd};
pub use seal::SealKey;
