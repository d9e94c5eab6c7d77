//! Stores in one file: the capability [`Store`](a99_capabilities::Store) on SQLite, which
//! is compiled in. There is no server, and nothing to set up.
//!
//! ```
//! use a99_capabilities::{Capabilities, Store, block_on};
//! use a99_sqlite::{SqliteStore, StoreLimits};
//!
//! # let folder = tempfile::tempdir()?;
//! let store = SqliteStore::open(folder.path().join("agents.db"))?;
//! // One namespace for each tenant, with what it may hold.
//! let ann = store.namespace("ann").with_limits(StoreLimits {
//!     max_bytes: 10 << 20,
//!     ..StoreLimits::default()
//! });
//! let granted = Capabilities::none().with_store(ann.clone());
//!
//! // With an executor of the host's: none is needed beneath it.
//! block_on(ann.set("greeting".into(), "hello".into()))?;
//! assert_eq!(block_on(ann.get("greeting".into()))?, "hello".into());
//! assert_eq!(ann.usage().wait()?.keys, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is kept
//!
//! Every value of the language comes back as it was, with `undefined`, NaN, negative zero,
//! halves of surrogate pairs and the order of members. Keys may be of any kind: `7` is
//! another than `"7"`. Keys that are texts have 64 KiB at most and stand in the order of
//! their bytes; no character is special.
//!
//! [`SqliteStore::set_until`](a99_capabilities::Store::set_until) gives a key a time from
//! which on nobody sees it. It is removed with later writes, and at once where a namespace
//! needs the room.
//!
//! Values are JSON text where that loses nothing, and the view `entries` shows them:
//!
//! ```text
//! sqlite3 agents.db "SELECT namespace, key, value FROM entries"
//! ```
//!
//! # What lasts
//!
//! When a write is acknowledged, it outlasts the process, however that ends. By default it
//! outlasts a power cut too, as far as the disk keeps what it says it has;
//! [`Durability::Process`] is faster and may lose the last moments with the power, but
//! never a part of a write. A future that is dropped leaves a write done or not done.
//!
//! Any number of processes may have the file open. Writes take turns, and wait for each
//! other for a minute, unless [`SqliteOptions::busy_timeout`] says otherwise;
//! `compareAndSet` holds between processes as within one.
//!
//! [`Database::backup_to`] copies a file that is in use, [`Database::check`] reads all of
//! it. A file does not shrink; what is deleted makes room in it.
//!
//! # Files of others
//!
//! A file may have been made to act: by triggers, views, expressions of defaults, checks and
//! indexes. Opening one compares its schema, as far as it concerns tables of a component, with
//! what the component's migrations make, and refuses another with [`SqliteCode::Foreign`].
//! Work stops when its caller gave up, and when SQLite takes 512 MiB more for it; no value is
//! larger than 256 MiB.
//!
//! # Other tables in the file
//!
//! Another crate keeps tables of its own in the same file as a [`Component`], through
//! [`Database::read`] and [`Database::write`]; the names of tables that begin with `a99_`
//! and `entries` are taken. It uses [`rusqlite`] as this crate exports it, and keeps values
//! with [`encode`] and [`decode`].

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
