//! Stores on a server: the capability [`Store`](a99_capabilities::Store) on PostgreSQL,
//! for when many machines share what agents keep.
//!
//! ```no_run
//! use a99_capabilities::{Capabilities, Store};
//! use a99_postgres::{PostgresOptions, PostgresStore, StoreLimits};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let options = PostgresOptions::of_url("postgres://agents@db.example.com/agents")?;
//! let store = PostgresStore::open(options)?;
//! // One namespace for each tenant, with what it may hold.
//! let ann = store.namespace("ann").with_limits(StoreLimits {
//!     max_bytes: 10 << 20,
//!     ..StoreLimits::default()
//! });
//! let granted = Capabilities::none().with_store(ann.clone());
//!
//! // With any executor: the connections have a thread of their own.
//! ann.set("greeting".into(), "hello".into()).await?;
//! assert_eq!(ann.usage().await?.keys, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # What is kept
//!
//! Every value of the language comes back as it was, with `undefined`, NaN, negative zero,
//! halves of surrogate pairs and the order of members. Keys may be of any kind: `7` is
//! another than `"7"`. Keys that are texts have 64 KiB at most and stand in the order of
//! their bytes, whatever the collation of the database; no character is special.
//!
//! [`PostgresStore::set_until`](a99_capabilities::Store::set_until) gives a key a time from
//! which on nobody sees it. It is removed with later writes, and at once where a namespace
//! needs the room.
//!
//! The tables are in a schema of their own, `agent99` unless
//! [`PostgresOptions::schema`] names another. It is made by whoever opens the store first
//! and may make schemas; other users need what its owner grants them. The view `entries`
//! shows people what is there:
//!
//! ```text
//! psql agents -c 'SELECT namespace, key, value FROM agent99.entries'
//! ```
//!
//! # What lasts
//!
//! When a write is acknowledged, it is on the server's disk. `compareAndSet` and quotas hold
//! between all who use the server: what writes to a namespace holds the lock of its row,
//! so that writes of one namespace take turns, and those of others do not.
//!
//! Where the server was restarted the next call connects again. A connection that breaks
//! during a write leaves it done or not done, and the error says that nobody knows
//! ([`PostgresCode::InDoubt`]); everything else is tried again or refused. A future that is
//! dropped cancels what the server does for it.
//!
//! Connections keep settings and prepared statements: a pooler between here and the server
//! has to give each client a session of its own. The server is PostgreSQL 13 or later.
//!
//! # Other tables in the schema
//!
//! Another crate keeps tables of its own in the same schema as a [`Component`], through
//! [`PostgresStore::read`] and [`PostgresStore::write`]; the names of tables that begin with
//! `a99_` and `entries` are taken. It uses [`tokio_postgres`] as this crate exports it.

#![warn(unreachable_pub)]

mod entries;
mod error;
mod meter;
mod options;
mod pool;
mod runtime;
mod schema;
mod store;
mod tls;
mod transaction;

pub use a99_capabilities::{StoreLimits, StoreUsage};
pub use error::{PostgresCode, PostgresError};
pub use options::PostgresOptions;
pub use runtime::Task;
pub use schema::Component;
pub use store::PostgresStore;
pub use tokio_postgres;
pub use transaction::{Parameters, Tx};
