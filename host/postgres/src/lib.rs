//! Stores on a server: the capability [`Store`](a99_capabilities::Store) on PostgreSQL, for
//! machines that share stored data.
//!
//! ```no_run
//! use a99_capabilities::{Capabilities, Store};
//! use a99_postgres::{PostgresOptions, PostgresStore, StoreLimits};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let options = PostgresOptions::of_url("postgres://agents@db.example.com/agents")?;
//! let store = PostgresStore::open(options)?;
//! // One namespace for each tenant, with its quota.
//! let ann = store.namespace("ann").with_limits(StoreLimits {
//!     max_bytes: 10 << 20,
//!     ..StoreLimits::default()
//! });
//! let granted = Capabilities::none().with_store(ann.clone());
//!
//! // Any executor works: the connections run on a dedicated thread.
//! ann.set("greeting".into(), "hello".into()).await?;
//! assert_eq!(ann.usage().await?.keys, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Contents
//!
//! Every value of the language is stored without loss, with `undefined`, NaN, negative zero,
//! halves of surrogate pairs and the order of members. Keys may be of any kind: `7` differs
//! from `"7"`. Text keys have at most 64 KiB and sort by their bytes in any collation of the
//! database; no character is special.
//!
//! [`PostgresStore::set_until`](a99_capabilities::Store::set_until) gives a key an expiry time,
//! after which it is invisible. Later writes delete it, and a namespace that needs room deletes
//! it at once.
//!
//! The tables are in a separate schema, `agent99` unless [`PostgresOptions::schema`] names
//! another. The first user who opens the store and may create schemas creates it; other users
//! need grants of its owner. The view `entries` shows the contents:
//!
//! ```text
//! psql agents -c 'SELECT namespace, key, value FROM agent99.entries'
//! ```
//!
//! # Durability
//!
//! An acknowledged write is on the server's disk. `compareAndSet` and quotas are atomic between
//! all clients: a write locks its namespace's row, so that writes of one namespace are
//! serialised and writes of different namespaces are not.
//!
//! After a restart of the server the next call reconnects. A connection that breaks during a
//! write leaves it done or not done, and the error says that the outcome is unknown
//! ([`PostgresCode::InDoubt`]); any other work is retried or refused. Dropping a future cancels
//! its work on the server.
//!
//! Connections keep settings and prepared statements: a connection pooler must use session
//! pooling. The server is PostgreSQL 13 or later.
//!
//! # Other tables in the schema
//!
//! Another crate keeps tables in the same schema as a [`Component`], through
//! [`PostgresStore::read`] and [`PostgresStore::write`]. Table names that begin with `a99_`,
//! and `entries`, are reserved. The crate uses [`tokio_postgres`] as exported here.

#![warn(unreachable_pub)]

mod entries;
mod error;
mod hold;
mod meter;
mod options;
mod passfile;
mod pool;
mod runtime;
mod schema;
mod store;
mod tls;
mod transaction;

pub use a99_capabilities::{StoreLimits, StoreUsage};
pub use error::{PostgresCode, PostgresError};
pub use hold::HeldLock;
pub use options::PostgresOptions;
pub use runtime::Task;
pub use schema::Component;
pub use store::PostgresStore;
pub use tokio_postgres;
pub use transaction::{Parameters, Tx};
