//! Stores in one file: the capability [`Store`](a99_capabilities::Store) on SQLite, which is
//! compiled in. It needs no server and no setup.
//!
//! ```
//! use a99_capabilities::{Capabilities, Store, block_on};
//! use a99_sqlite::{SqliteStore, StoreLimits};
//!
//! # let folder = tempfile::tempdir()?;
//! let store = SqliteStore::open(folder.path().join("agents.db"))?;
//! // One namespace for each tenant, with its quota.
//! let ann = store.namespace("ann").with_limits(StoreLimits {
//!     max_bytes: 10 << 20,
//!     ..StoreLimits::default()
//! });
//! let granted = Capabilities::none().with_store(ann.clone());
//!
//! // Any executor works: the crate needs no runtime.
//! block_on(ann.set("greeting".into(), "hello".into()))?;
//! assert_eq!(block_on(ann.get("greeting".into()))?, "hello".into());
//! assert_eq!(ann.usage().wait()?.keys, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Contents
//!
//! Every value of the language is stored without loss, with `undefined`, NaN, negative zero,
//! halves of surrogate pairs and the order of members. Keys may be of any kind: `7` differs
//! from `"7"`. Text keys have at most 64 KiB and sort by their bytes; no character is special.
//!
//! [`SqliteStore::set_until`](a99_capabilities::Store::set_until) gives a key an expiry time,
//! after which it is invisible. Later writes delete it, and a namespace that needs room deletes
//! it at once.
//!
//! Values are stored as JSON text where that is lossless; the view `entries` shows them:
//!
//! ```text
//! sqlite3 agents.db "SELECT namespace, key, value FROM entries"
//! ```
//!
//! # Durability
//!
//! An acknowledged write survives every end of the process. By default it also survives a power
//! cut, as far as the disk keeps what it acknowledged. [`Durability::Process`] is faster and
//! may lose the last writes in a power cut, but never part of a write. Dropping a future leaves
//! a write done or not done.
//!
//! Any number of processes may have the file open. Writes are serialised; the busy timeout is a
//! minute unless [`SqliteOptions::busy_timeout`] changes it. `compareAndSet` is atomic between
//! processes too.
//!
//! [`Database::backup_to`] copies a file in use, [`Database::check`] reads all of it. A file
//! does not shrink; new data reuses the space of deleted data.
//!
//! # Untrusted files
//!
//! A file can contain code: triggers, views, and expressions in defaults, checks and indexes.
//! Opening one compares the schema of each component's tables with the schema that its
//! migrations make, and refuses any difference with [`SqliteCode::Foreign`]. Work stops when
//! its caller gave up, or when SQLite's memory grows by 512 MiB for it; no value is larger than
//! 256 MiB.
//!
//! # Other tables in the file
//!
//! Another crate keeps tables in the same file as a [`Component`], through [`Database::read`]
//! and [`Database::write`]. Table names that begin with `a99_`, and `entries`, are reserved.
//! The crate uses [`rusqlite`] as exported here, and encodes values with [`encode`] and
//! [`decode`].

#![warn(unreachable_pub)]

mod backup;
mod codec;
mod component;
mod connection;
mod database;
mod entries;
mod error;
mod key;
mod memory;
mod options;
mod queue;
mod schema;
mod session;
mod store;
mod task;
mod watch;

pub use a99_capabilities::{StoreLimits, StoreUsage, block_on};
pub use backup::BackupProgress;
pub use codec::{Stored, decode, encode};
pub use component::Component;
pub use database::Database;
pub use error::{SqliteCode, SqliteError};
pub use memory::memory_used;
pub use options::{Durability, SqliteOptions};
pub use rusqlite;
pub use session::Session;
pub use store::SqliteStore;
pub use task::{Task, Tx};
