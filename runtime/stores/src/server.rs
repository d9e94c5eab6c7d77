//! Store on a PostgreSQL server: its owner, its transactions, and what a lost connection means.
//!
//! The owner holds a lock of the database, as an owner of a file does. A lock ends with its
//! connection, so the epoch decides: each write transaction locks one of the *writers*, rows
//! that carry the owner's epoch. A later owner raises the epoch of all of them, and therefore
//! waits for transactions that run and admits none of an earlier owner afterwards.
//!
//! Owners that share the store have writers of their own each. There a write locks the row of its
//! shard, too, so that who acquires the shard waits for it. An owner that takes the whole store
//! deletes the writers of those that shared it.
//!
//! A connection that breaks during a commit leaves its outcome open. Each transaction has a
//! number, which it writes to its writer. A lock of the writer after the break waits for the
//! transaction to end, and the number says whether it committed. If not, the work runs again.

mod statements;
mod writers;

use crate::fault::{Fault, fault};
use crate::options::StoreOptions;
use crate::runtime::{Cx, Kept, RuntimeStore, Shared, locked};
use crate::shards::{self, Owned as OwnedShards, Taken};
use crate::sql::Db;
use a99_postgres::{
    Component, HeldLock, Parameters, PostgresCode, PostgresError, PostgresOptions, PostgresStore,
};
use a99_runtime_engine::{StoreCode, StoreError};
use std::error::Error;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use writers::{Writers, add_writers, take_over};

pub(crate) use statements::{execute, rows, value};

/// How long work waits for a server that is away, as for one that restarts.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long a commit in doubt waits for the server.
const IN_DOUBT: Duration = Duration::from_secs(60);

/// Longest pause between attempts.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The epoch of readers, which no writer has.
const READER: i64 = -1;

/// Writers in the table: more than the connections of a store.
const WRITERS: usize = 64;

static RUNTIME: Component = Component {
    name: "runtime",
    migrations: &[include_str!("server.sql")],
};

/// Why a store on a server cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// The server, or its tables.
    Server(PostgresError),
    /// Another process owns the store ([`StoreCode::Locked`]).
    Store(StoreError),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Server(error) => error.fmt(f),
            ConnectError::Store(error) => error.fmt(f),
        }
    }
}

impl Error for ConnectError {}

impl From<PostgresError> for ConnectError {
    fn from(error: PostgresError) -> ConnectError {
        ConnectError::Server(error)
    }
}

impl From<PostgresError> for Fault {
    fn from(error: PostgresError) -> Fault {
        Fault::Server(error)
    }
}

/// A server with the tables of a store.
pub(crate) struct Server {
    store: PostgresStore,
    /// The epoch of the owner's writers, or [`READER`].
    epoch: i64,
    /// Writers that no transaction uses.
    free: Arc<Mutex<Vec<i64>>>,
    /// The number of the last transaction.
    last: AtomicI64,
    /// The owner's lock.
    lock: Mutex<Option<HeldLock>>,
}

/// A writer in use.
struct Writer {
    id: i64,
    free: Arc<Mutex<Vec<i64>>>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        locked(&self.free).push(self.id);
    }
}

/// What an attempt left: its writer, and its result before the commit.
struct Left<T> {
    writer: Option<Writer>,
    done: Option<Result<T, StoreError>>,
}

impl RuntimeStore {
    /// Opens the store on a server as its owner; missing tables are created. Of the options only
    /// the limits, `has_channels` and `is_shared` apply: what is acknowledged is on the server's disk. Such a
    /// store keeps no tables of agents.
    ///
    /// # Errors
    /// Those of connecting and of the tables; [`StoreCode::Locked`] if a process owns the store.
    pub async fn connect(
        server: PostgresOptions,
        options: StoreOptions,
    ) -> Result<RuntimeStore, ConnectError> {
        let store = open(server).await?;
        let lock = match options.is_shared {
            true => store.try_lock_shared(" runtime").await?,
            false => store.try_lock(" runtime").await?,
        };
        let Some(lock) = lock else {
            let owner = store.read(|tx| {
                let mut owner = None;
                tx.query("SELECT owner FROM shard WHERE id = 0", Vec::new(), |row| {
                    owner = Some(row.try_get::<_, String>(0)?);
                    Ok(ControlFlow::Break(()))
                })?;
                Ok(owner.unwrap_or_default())
            });
            let text = format!("{}: {} owns this store", store.place(), owner.await?);
            return Err(ConnectError::Store(StoreError::new(
                StoreCode::Locked,
                text,
            )));
        };
        RuntimeStore::owner(store, options, Some(lock)).await
    }

    /// Opens the store on a server for reading, whether or not a process owns it. Writes fail.
    ///
    /// # Errors
    /// Those of connecting and of the tables.
    pub async fn connect_reader(
        server: PostgresOptions,
        options: StoreOptions,
    ) -> Result<RuntimeStore, ConnectError> {
        let store = open(server).await?;
        let shared = Shared {
            options,
            owned: OwnedShards::of(&Taken::default()),
            moved: None,
            is_reader: true,
        };
        Ok(RuntimeStore::of(
            Kept::Server(Server::new(
                store,
                READER,
                (0..).take(WRITERS).collect(),
                None,
            )),
            shared,
        ))
    }

    /// Opens the store on a server without the lock, so that tests can make two owners compete.
    ///
    /// # Errors
    /// Those of [`RuntimeStore::connect`] except [`StoreCode::Locked`].
    #[cfg(feature = "testing")]
    pub async fn connect_past_lock(
        server: PostgresOptions,
        options: StoreOptions,
    ) -> Result<RuntimeStore, ConnectError> {
        RuntimeStore::owner(open(server).await?, options, None).await
    }

    async fn owner(
        store: PostgresStore,
        options: StoreOptions,
        lock: Option<HeldLock>,
    ) -> Result<RuntimeStore, ConnectError> {
        let (writers, taken) = match options.is_shared {
            true => (store.write(add_writers).await?, Taken::default()),
            false => store.write(take_over).await?,
        };
        let shared = Shared {
            options,
            owned: OwnedShards::of(&taken),
            moved: None,
            is_reader: false,
        };
        let Writers { epoch, ids } = writers;
        let server = Server::new(store, epoch, ids, lock);
        Ok(RuntimeStore::of(Kept::Server(server), shared))
    }
}

/// Connects on a thread that may block, and creates or migrates the tables.
async fn open(server: PostgresOptions) -> Result<PostgresStore, ConnectError> {
    let store = PostgresStore::open(server)?;
    store.migrate(&RUNTIME).await?;
    Ok(store)
}

impl Server {
    fn new(store: PostgresStore, epoch: i64, ids: Vec<i64>, lock: Option<HeldLock>) -> Server {
        Server {
            store,
            epoch,
            free: Arc::new(Mutex::new(ids)),
            last: AtomicI64::new(0),
            lock: Mutex::new(lock),
        }
    }

    pub(crate) fn place(&self) -> String {
        self.store.place()
    }

    /// Records a clean shutdown, and closes the connections. Blocks meanwhile.
    pub(crate) fn close(&self, shared: &Arc<Shared>) -> Result<(), StoreError> {
        let noted = match shared.is_reader {
            true => Ok(0),
            false => {
                let owned = shared.owned.end();
                let closing = self.write(shared, move |cx| shards::close(cx, &owned));
                a99_sqlite::block_on(closing)
            }
        };
        drop(locked(&self.lock).take());
        self.store.clone().close();
        noted.map(drop)
    }

    pub(crate) async fn read<T, F>(&self, shared: &Arc<Shared>, f: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Cx<'_>) -> Result<T, Fault> + Clone + Send + 'static,
    {
        let until = Instant::now() + PATIENCE;
        for attempt in 0.. {
            let left = Arc::new(Mutex::new(None));
            let (f, shared, kept) = (Mutex::new(f.clone()), Arc::clone(shared), Arc::clone(&left));
            let read = self.store.read(move |tx| {
                let cx = Cx {
                    db: Db::Server(tx),
                    shared: &shared,
                    is_admitted: false,
                };
                let f = locked(&f).clone();
                end(f(&cx), &kept)
            });
            let error = read.await.err();
            let done = locked(&left).take();
            match (done, error) {
                (Some(done), None) | (Some(done @ Err(_)), _) => return done,
                (_, Some(error)) if !is_away(&error) || Instant::now() > until => {
                    return Err(of_server(&error));
                }
                _ => self.pause(attempt).await,
            }
        }
        unreachable!("attempts are counted without an end")
    }

    pub(crate) async fn write<T, F>(&self, shared: &Arc<Shared>, f: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Cx<'_>) -> Result<T, Fault> + Clone + Send + 'static,
    {
        let until = Instant::now() + PATIENCE;
        for attempt in 0.. {
            let left = Arc::new(Mutex::new(Left {
                writer: None,
                done: None,
            }));
            let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
            let written = self.attempt(shared, f.clone(), number, &left).await;
            let Left { writer, done } = {
                let mut left = locked(&left);
                Left {
                    writer: left.writer.take(),
                    done: left.done.take(),
                }
            };
            let error = match (written, done) {
                (Ok(()), Some(done)) | (Err(_), Some(done @ Err(_))) => return done,
                (Err(error), Some(done)) if error.code() == PostgresCode::InDoubt => {
                    match self.has_written(writer.as_ref(), number).await {
                        Ok(true) => return done,
                        Ok(false) => error,
                        Err(error) => return Err(error),
                    }
                }
                (Err(error), _) => error,
                (Ok(()), None) => PostgresError::new(PostgresCode::Failed, "nothing was done"),
            };
            let is_away = is_away(&error) || error.code() == PostgresCode::InDoubt;
            if !is_away || Instant::now() > until {
                return Err(match error.code() {
                    // It was seen not to be there.
                    PostgresCode::InDoubt => {
                        StoreError::new(StoreCode::Unavailable, error.to_string())
                    }
                    _ => of_server(&error),
                });
            }
            self.pause(attempt).await;
        }
        unreachable!("attempts are counted without an end")
    }

    async fn attempt<T, F>(
        &self,
        shared: &Arc<Shared>,
        f: F,
        number: i64,
        left: &Arc<Mutex<Left<T>>>,
    ) -> Result<(), PostgresError>
    where
        T: Send + 'static,
        F: FnOnce(&Cx<'_>) -> Result<T, Fault> + Clone + Send + 'static,
    {
        let (f, shared, left) = (Mutex::new(f), Arc::clone(shared), Arc::clone(left));
        let (free, epoch) = (Arc::clone(&self.free), self.epoch);
        let written = self.store.write(move |tx| {
            let id = {
                let mut left = locked(&left);
                left.done = None;
                let writer = match left.writer.take() {
                    Some(writer) => writer,
                    None => {
                        let id = locked(&free).pop().ok_or_else(|| {
                            PostgresError::new(PostgresCode::TooManyConnections, "no free writer")
                        })?;
                        let free = Arc::clone(&free);
                        Writer { id, free }
                    }
                };
                left.writer.insert(writer).id
            };
            let admit = "UPDATE agent_writer SET last = $3 WHERE id = $1 AND epoch = $2";
            let row: Parameters = vec![Box::new(id), Box::new(epoch), Box::new(number)];
            let done = match tx.execute(admit, row)? {
                1 => {
                    let cx = Cx {
                        db: Db::Server(tx),
                        shared: &shared,
                        is_admitted: true,
                    };
                    let f = locked(&f).clone();
                    f(&cx)
                }
                _ => Err(fenced(epoch)),
            };
            let kept = Mutex::new(None);
            let ended = end(done, &kept);
            locked(&left).done = locked(&kept).take();
            ended
        });
        written.await
    }

    /// Whether a transaction whose connection broke has committed. It has ended afterwards.
    async fn has_written(&self, writer: Option<&Writer>, number: i64) -> Result<bool, StoreError> {
        let (Some(id), epoch) = (writer.map(|writer| writer.id), self.epoch) else {
            return Ok(false);
        };
        let until = Instant::now() + IN_DOUBT;
        for attempt in 0.. {
            let find = self.store.write(move |tx| {
                let sql = "SELECT last FROM agent_writer WHERE id = $1 AND epoch = $2 FOR UPDATE";
                let mut last = None;
                tx.query(sql, vec![Box::new(id), Box::new(epoch)], |row| {
                    last = Some(row.try_get::<_, i64>(0)?);
                    Ok(ControlFlow::Break(()))
                })?;
                Ok(last)
            });
            match find.await {
                Ok(Some(last)) => return Ok(last == number),
                Ok(None) => break,
                Err(error) if Instant::now() > until => {
                    return Err(StoreError::new(StoreCode::InDoubt, error.to_string()));
                }
                Err(_) => self.pause(attempt).await,
            }
        }
        match fenced(self.epoch) {
            Fault::Store(error) => Err(error),
            _ => Ok(false),
        }
    }

    /// Waits longer after each attempt.
    async fn pause(&self, attempt: u32) {
        let time = Duration::from_millis(20 << attempt.min(6)).min(MAX_PAUSE);
        self.store.pause(time).await;
    }
}

fn fenced(epoch: i64) -> Fault {
    let text = format!("another owner has the store: its epoch is not {epoch}");
    fault(StoreCode::Fenced, text)
}

/// Keeps the result of work; an error rolls the transaction back.
fn end<T>(
    done: Result<T, Fault>,
    kept: &Mutex<Option<Result<T, StoreError>>>,
) -> Result<(), PostgresError> {
    let (done, ended) = match done {
        Ok(done) => (Ok(done), Ok(())),
        Err(Fault::Server(error)) => return Err(error),
        Err(Fault::File(error)) => return Err(failed(&error)),
        Err(Fault::Store(error)) => {
            let ended = failed(&error);
            (Err(error), Err(ended))
        }
    };
    *locked(kept) = Some(done);
    ended
}

fn failed(error: &dyn Error) -> PostgresError {
    PostgresError::new(PostgresCode::Failed, error.to_string())
}

/// Whether the server may be there again soon. Nothing was written.
fn is_away(error: &PostgresError) -> bool {
    matches!(
        error.code(),
        PostgresCode::Unreachable | PostgresCode::TooManyConnections | PostgresCode::Busy
    )
}

/// Maps an error of the server.
fn of_server(error: &PostgresError) -> StoreError {
    let code = match error.code() {
        PostgresCode::InDoubt => StoreCode::InDoubt,
        PostgresCode::NotFound => StoreCode::NotFound,
        PostgresCode::Input | PostgresCode::Quota | PostgresCode::Config => StoreCode::Input,
        PostgresCode::Newer
        | PostgresCode::Foreign
        | PostgresCode::OldServer
        | PostgresCode::Corrupt => StoreCode::Unreadable,
        _ => StoreCode::Unavailable,
    };
    StoreError::new(code, format!("{}: {error}", error.code().name()))
}
