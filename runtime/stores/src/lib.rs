//! Stores of long-lived agents and their channels in one SQLite file, or on a PostgreSQL server
//! (feature `postgres`, `RuntimeStore::connect`).
//!
//! ```
//! use a99_runtime_engine::{AgentStore, Fence, NewState, TurnCommit};
//! use a99_runtime_stores::{SqliteRuntime, StoreOptions};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("agents.db");
//! # let done = async {
//! let store = SqliteRuntime::open(&path, StoreOptions::default())?;
//! let key = "echo/general/echo".parse().expect("a key");
//! let fence = Fence { epoch: store.epoch(&key), key };
//! let mut commit = TurnCommit::new(fence.clone(), 1_700_000_000_000);
//! commit.state = Some(NewState { json: r#"{"n":1}"#.to_owned(), version: 1, base: 0 });
//! assert_eq!(store.commit(commit).await?.revision, 1);
//! let row = store.load(&fence.key).await?.expect("it was kept");
//! assert_eq!(row.state, r#"{"n":1}"#);
//! store.close()?;
//! # Ok::<(), a99_runtime_engine::StoreError>(())
//! # };
//! # a99_capabilities::block_on(done)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! One process owns a store, which locks on the file and on one beside it enforce. Each owner
//! increments the epochs of all shards as a fencing token, so that late writes of an earlier
//! owner are refused even if the locks fail. Any number of other processes can read meanwhile
//! ([`SqliteRuntime::open_reader`]). With [`StoreOptions::is_shared`] several processes open the
//! file, and each acquires shards of its own.

#![warn(unreachable_pub)]

mod agents;
mod channels;
mod check;
mod commit;
mod encoded;
mod fault;
mod home;
mod journal;
mod kept;
mod kill;
mod lock;
mod log;
mod options;
mod place;
mod rows;
mod runtime;
#[cfg(feature = "postgres")]
mod server;
mod shards;
mod sql;
#[cfg(feature = "testing")]
pub mod suite;
mod tables;
mod timers;
mod token;

pub use a99_sqlite::Durability;
pub use lock::canonical_path;
pub use options::{StoreLimits, StoreOptions, TableLimits};
pub use runtime::{RuntimeStore, SqliteRuntime};
#[cfg(feature = "postgres")]
pub use server::ConnectError;
