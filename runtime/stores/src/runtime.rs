//! Store in a file: opens, owns and closes it, and runs work on its threads.

use crate::fault::{Fault, of_file, of_write};
use crate::home::Home;
use crate::lock::{FileLock, canonical_path, check_names, failed};
use crate::options::StoreOptions;
use crate::place::Place;
use crate::rows::int;
#[cfg(feature = "postgres")]
use crate::server::Server;
use crate::shards::{self, Owned, Taken};
use crate::sql::Db;
use crate::tables::TableFiles;
use crate::token;
use a99_runtime_engine::{AgentKey, BoxFuture, Epoch, StoreCode, StoreError};
use a99_sqlite::{
    Component, Database, Durability, SqliteCode, SqliteError, SqliteOptions, Task, Tx,
};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) type Reply<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Bytes of work that is written faster inline than a thread wakes.
const SMALL: usize = 64 * 1024;

/// How long a reader waits for a process that is creating the store.
const MAKING: Duration = Duration::from_secs(2);

/// Poll interval of that wait.
const MAKING_PAUSE: Duration = Duration::from_millis(20);

/// How long a reader waits for SQLite's locks, which are held briefly.
const READER_BUSY: Duration = Duration::from_secs(10);

static RUNTIME: Component = Component {
    name: "runtime",
    migrations: &[
        include_str!("schema.sql"),
        crate::tables::SHARED,
        crate::timers::HOPS,
        crate::journal::REPLAYS,
        crate::home::HOME,
        crate::timers::SET_AT,
        token::TOKEN,
        crate::kept::TURNS,
        crate::commit::METADATA,
        shards::OWNERS,
    ],
};

/// Agents and channels in a file, or on a server (feature `postgres`). Clones share it and its
/// threads.
///
/// Work starts when a method is called, in the order of the calls; the future need not be
/// awaited at once. Dropping a future leaves its write done or not done.
///
/// Concurrent commits share a transaction (group commit): when one ends, the next takes all
/// waiting commits. A read sees everything acknowledged before it was requested, and possibly
/// more.
///
/// Dropping the last clone completes the requested work and closes the file; only
/// [`SqliteRuntime::close`] records a clean shutdown.
#[derive(Clone)]
pub struct RuntimeStore(Arc<Inner>);

/// The store in a file.
pub type SqliteRuntime = RuntimeStore;

struct Inner {
    kept: Kept,
    shared: Arc<Shared>,
}

/// Where a store keeps its data.
pub(crate) enum Kept {
    File(Box<KeptFile>),
    #[cfg(feature = "postgres")]
    Server(Server),
}

pub(crate) struct KeptFile {
    // Dropped before the database that they must agree with.
    tables: TableFiles,
    database: Database,
    place: Place,
    lock: Mutex<Option<FileLock>>,
}

/// The parts of the handle that work on the threads needs.
pub(crate) struct Shared {
    pub(crate) options: StoreOptions,
    pub(crate) owned: Owned,
    /// Why the file differs from the one that an owner had last.
    pub(crate) moved: Option<String>,
    pub(crate) is_reader: bool,
}

impl Drop for KeptFile {
    /// Releases the lock once nothing is written any more.
    fn drop(&mut self) {
        self.tables.close();
        self.database.clone().close();
    }
}

impl fmt::Debug for SqliteRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("RuntimeStore");
        match &self.0.kept {
            Kept::File(file) => out.field("path", &file.database.path()),
            #[cfg(feature = "postgres")]
            Kept::Server(server) => out.field("server", &server.place()),
        };
        out.field("options", &self.0.shared.options);
        out.finish_non_exhaustive()
    }
}

/// A transaction of this handle.
pub(crate) struct Cx<'a> {
    pub(crate) db: Db<'a>,
    pub(crate) shared: &'a Shared,
    /// Whether the transaction was admitted under the owner's epoch, and none can begin under a
    /// later one before it ends.
    pub(crate) is_admitted: bool,
}

impl RuntimeStore {
    /// Opens a file as its owner; a missing file is created, for this user alone. The file and
    /// `<path>.lock` beside it stay locked while it is open. Symbolic links are resolved first.
    /// Blocks for some milliseconds.
    ///
    /// It takes over all shards at once, whatever their leases say: the lock proves that no
    /// earlier owner is left. With [`StoreOptions::is_shared`] it takes no shard.
    ///
    /// # Errors
    /// [`StoreCode::Locked`] with the process id if a process owns it, this one included;
    /// [`StoreCode::Unreadable`] if the file is damaged, not a store, or of a later version;
    /// [`StoreCode::NotFound`] if the folder does not exist; [`StoreCode::Unavailable`] if the
    /// file cannot be read and written, or has several names (hard links);
    /// [`StoreCode::Copied`] if the options refuse copies.
    pub fn open(
        path: impl AsRef<Path>,
        options: StoreOptions,
    ) -> Result<SqliteRuntime, StoreError> {
        let path = path.as_ref();
        let path = canonical_path(path).map_err(|error| failed(path, &error))?;
        let lock = FileLock::take(&path, options.is_shared)?;
        SqliteRuntime::start(&path, options, Some(lock))
    }

    /// Opens a file read-only, whether or not a process owns it. It takes no lock, increments
    /// no epoch and changes nothing. Writes fail. After a crash an agent's tables may be one
    /// turn ahead of the data read here, until an owner opens the file.
    ///
    /// # Errors
    /// [`StoreCode::NotFound`] if the file is missing or empty; [`StoreCode::Unreadable`] if it
    /// is damaged, not a store, or of an earlier or later version; [`StoreCode::Unavailable`]
    /// if it cannot be read, or has several names.
    pub fn open_reader(
        path: impl AsRef<Path>,
        options: StoreOptions,
    ) -> Result<SqliteRuntime, StoreError> {
        let path = path.as_ref();
        let path = canonical_path(path).map_err(|error| failed(path, &error))?;
        check_names(&path)?;
        let until = Instant::now() + MAKING;
        let database = loop {
            match reader(&path) {
                Err(error)
                    if error.code() == StoreCode::NotFound
                        && path.is_file()
                        && Instant::now() < until =>
                {
                    thread::sleep(MAKING_PAUSE);
                }
                opened => break opened?,
            }
        };
        let shared = Shared {
            options,
            owned: Owned::of(&Taken::default()),
            moved: None,
            is_reader: true,
        };
        let kept = Kept::File(Box::new(KeptFile {
            tables: TableFiles::beside(&path),
            database,
            place: Place::of(&path),
            lock: Mutex::default(),
        }));
        Ok(RuntimeStore::of(kept, shared))
    }

    /// Opens a file without the lock, so that tests can make two owners compete.
    ///
    /// # Errors
    /// Those of [`SqliteRuntime::open`] except [`StoreCode::Locked`].
    #[cfg(feature = "testing")]
    pub fn open_past_lock(
        path: impl AsRef<Path>,
        options: StoreOptions,
    ) -> Result<SqliteRuntime, StoreError> {
        SqliteRuntime::start(path.as_ref(), options, None)
    }

    fn start(
        path: &Path,
        options: StoreOptions,
        mut lock: Option<FileLock>,
    ) -> Result<SqliteRuntime, StoreError> {
        let sqlite = SqliteOptions {
            durability: options.durability,
            max_file_bytes: options.max_file_bytes,
            is_exclusive: lock.is_some() && !options.is_shared,
            ..SqliteOptions::default()
        };
        let database = Database::open(path, sqlite).map_err(|error| of_file(&error))?;
        let (moved, taken) = match take(&database, path, &options, lock.as_mut()) {
            Ok(taken) => taken,
            Err(error) => {
                // Close the file before the lock is released.
                database.close();
                return Err(error);
            }
        };
        let shared = Shared {
            options,
            owned: Owned::of(&taken),
            moved,
            is_reader: false,
        };
        let kept = Kept::File(Box::new(KeptFile {
            tables: TableFiles::beside(path),
            database,
            place: Place::of(path),
            lock: Mutex::new(lock),
        }));
        let store = RuntimeStore::of(kept, shared);
        let (owned, cut_off) = (&store.0.shared.owned, store.0.shared.owned.was_cut_off());
        a99_sqlite::block_on(store.know_tables(owned.shards(), cut_off))?;
        Ok(store)
    }

    pub(crate) fn of(kept: Kept, shared: Shared) -> RuntimeStore {
        let shared = Arc::new(shared);
        RuntimeStore(Arc::new(Inner { kept, shared }))
    }

    /// Checks that this handle still owns the file at its path.
    ///
    /// # Errors
    /// [`StoreCode::NotFound`] if the file, its write-ahead log or the log's index was deleted,
    /// renamed or replaced; [`StoreCode::Fenced`] if there is another owner and the file is not
    /// shared; those of reading.
    pub async fn check_owned(&self) -> Result<(), StoreError> {
        self.check_place()?;
        self.read(|cx| cx.own_any()).await
    }

    /// The cheap part of [`SqliteRuntime::check_owned`], three `stat` calls: use it before data
    /// is acknowledged.
    ///
    /// # Errors
    /// [`StoreCode::NotFound`]
    pub fn check_place(&self) -> Result<(), StoreError> {
        match &self.0.kept {
            Kept::File(file) => file.place.check(),
            #[cfg(feature = "postgres")]
            Kept::Server(_) => Ok(()),
        }
    }

    /// Completes the requested work, releases the shards, ends the threads and releases the
    /// lock. Later requests of other clones fail. Blocks meanwhile.
    ///
    /// # Errors
    /// Those of writing; the file is then closed as after a crash.
    pub fn close(self) -> Result<(), StoreError> {
        #[cfg(feature = "postgres")]
        if let Kept::Server(server) = &self.0.kept {
            return server.close(&self.0.shared);
        }
        let Some(file) = self.file() else {
            return Ok(());
        };
        let noted = match self.0.shared.is_reader {
            true => Ok(0),
            false => {
                let mut lock = locked(&file.lock);
                let lock = lock.as_mut();
                let lock = lock.filter(|_| has_token(&self.0.shared.options));
                let owned = self.0.shared.owned.end();
                let (work, fault) = self.work(move |cx| shards::close(cx, &owned));
                let (database, home) = (&file.database, Home::of(file.database.path()));
                let noted = token::renewed(database, home.as_ref(), lock, work);
                Asked::ended(noted, &fault, of_write)
            }
        };
        file.tables.close();
        file.database.clone().close();
        drop(locked(&file.lock).take());
        noted.map(drop)
    }

    /// The database, for other components in the same file.
    /// `None` for a store on a server.
    #[must_use]
    pub fn database(&self) -> Option<&Database> {
        self.file().map(|file| &file.database)
    }

    pub(crate) fn tables_of(&self) -> Option<&TableFiles> {
        self.file().map(|file| &file.tables)
    }

    fn file(&self) -> Option<&KeptFile> {
        match &self.0.kept {
            Kept::File(file) => Some(file),
            #[cfg(feature = "postgres")]
            Kept::Server(_) => None,
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0.shared
    }

    pub(crate) fn epoch_of(&self, key: &AgentKey) -> Epoch {
        Epoch(self.0.shared.owned.epoch(key.shard()))
    }

    /// Runs work in a write transaction. On a server it may run again from the beginning.
    pub(crate) fn write<T, F>(&self, f: F) -> Reply<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Cx<'_>) -> Result<T, Fault> + Clone + Send + 'static,
    {
        self.write_bytes(usize::MAX, f)
    }

    /// Runs work that writes about this many bytes in a write transaction; in a file inline on
    /// this thread if that is faster.
    pub(crate) fn write_bytes<T, F>(&self, bytes: usize, f: F) -> Reply<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Cx<'_>) -> Result<T, Fault> + Clone + Send + 'static,
    {
        let database = match &self.0.kept {
            Kept::File(file) => &file.database,
            #[cfg(feature = "postgres")]
            Kept::Server(server) => return Box::pin(server.write(&self.0.shared, f)),
        };
        let (work, fault) = self.work(f);
        let task = match bytes > SMALL {
            true => database.write(work),
            false => database.write_here(work),
        };
        let of_error = of_write;
        let asked = Asked {
            task,
            fault,
            of_error,
        };
        Box::pin(asked.answer())
    }

    /// Runs work in a read transaction. On a server it may run again from the beginning.
    pub(crate) fn read<T, F>(&self, f: F) -> Reply<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Cx<'_>) -> Result<T, Fault> + Clone + Send + 'static,
    {
        let database = match &self.0.kept {
            Kept::File(file) => &file.database,
            #[cfg(feature = "postgres")]
            Kept::Server(server) => return Box::pin(server.read(&self.0.shared, f)),
        };
        let (work, fault) = self.work(f);
        let asked = Asked {
            task: database.read(work),
            fault,
            of_error: of_file,
        };
        Box::pin(asked.answer())
    }

    fn work<T, F>(
        &self,
        f: F,
    ) -> (
        impl FnOnce(&Tx<'_>) -> Result<T, SqliteError> + Send + 'static,
        Told,
    )
    where
        F: FnOnce(&Cx<'_>) -> Result<T, Fault> + Send + 'static,
    {
        let told = Told::default();
        let (shared, tell) = (Arc::clone(&self.0.shared), Arc::clone(&told));
        let work = move |tx: &Tx<'_>| {
            let cx = Cx {
                db: Db::File(tx),
                shared: &shared,
                is_admitted: false,
            };
            f(&cx).map_err(|fault| match fault {
                Fault::File(error) => error,
                #[cfg(feature = "postgres")]
                Fault::Server(error) => SqliteError::new(SqliteCode::Failed, error.to_string()),
                Fault::Store(error) => {
                    // The database accepts only its own error type; any error rolls back.
                    let stands_in = SqliteError::new(SqliteCode::Failed, error.to_string());
                    *locked(&tell) = Some(error);
                    stands_in
                }
            })
        };
        (work, told)
    }
}

/// The store's error for work that was rolled back.
type Told = Arc<Mutex<Option<StoreError>>>;

/// Requested work.
pub(crate) struct Asked<T> {
    task: Task<T>,
    fault: Told,
    of_error: fn(&SqliteError) -> StoreError,
}

impl<T> Asked<T> {
    fn ended(
        result: Result<T, SqliteError>,
        fault: &Told,
        of_error: fn(&SqliteError) -> StoreError,
    ) -> Result<T, StoreError> {
        result.map_err(|error| locked(fault).take().unwrap_or_else(|| of_error(&error)))
    }

    pub(crate) async fn answer(self) -> Result<T, StoreError> {
        Asked::ended(self.task.await, &self.fault, self.of_error)
    }
}

/// Locks a mutex whose data stays valid whatever a panicking holder did.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a store's file read-only.
fn reader(path: &Path) -> Result<Database, StoreError> {
    let options = SqliteOptions {
        is_read_only: true,
        readers: 1,
        busy_timeout: READER_BUSY,
        ..SqliteOptions::default()
    };
    let failed = |error: SqliteError| of_file(&error);
    let database = Database::open(path, options).map_err(failed)?;
    let read = database.read(|tx| Ok((RUNTIME.version(tx)?, RUNTIME.is_current(tx)?)));
    let (code, text) = match read.wait().map_err(failed)? {
        (_, true) => return Ok(database),
        (0, false) => (StoreCode::NotFound, "there is no store in it yet"),
        (_, false) => (
            StoreCode::Unreadable,
            "an earlier version wrote it: its owner, `a99 agent host`, has to open it once",
        ),
    };
    Err(StoreError::new(code, format!("{}: {text}", path.display())))
}

/// Whether openings and closings renew the token of a store.
fn has_token(options: &StoreOptions) -> bool {
    options.durability != Durability::Relaxed && !options.is_shared
}

/// Creates the tables, and takes the shards of a file that is not shared. Gives why the file
/// differs from the last owner's, and the shards.
fn take(
    database: &Database,
    path: &Path,
    options: &StoreOptions,
    lock: Option<&mut FileLock>,
) -> Result<(Option<String>, Taken), StoreError> {
    let failed = |error: SqliteError| of_file(&error);
    database.migrate(&RUNTIME).wait().map_err(failed)?;
    let home = Home::of(path);
    let moved = match &home {
        Some(home) => moved(database, home, lock.as_deref()).map_err(failed)?,
        None => None,
    };
    if let (Some(why), true) = (&moved, options.refuses_copies) {
        return Err(StoreError::new(StoreCode::Copied, why));
    }
    let (kept, is_shared) = (home.clone(), options.is_shared);
    let lock = lock.filter(|_| has_token(options));
    let taken = token::renewed(database, home.as_ref(), lock, move |tx| {
        if let Some(home) = &kept {
            home.keep(tx)?;
        }
        let nothing = Taken::default();
        if is_shared {
            return Ok(nothing);
        }
        let now = u64::try_from(present()).unwrap_or_default();
        let taken = shards::take(&Db::File(tx), &shards::whole(now), &Owned::of(&nothing));
        taken.map_err(|fault| match fault {
            Fault::File(error) => error,
            _ => SqliteError::new(SqliteCode::Corrupt, shards::DAMAGED),
        })
    });
    Ok((moved, taken.map_err(failed)?))
}

/// Why the file differs from the one that an owner had last.
fn moved(
    database: &Database,
    home: &Home,
    lock: Option<&FileLock>,
) -> Result<Option<String>, SqliteError> {
    let found = home.clone();
    let moved = database.read(move |tx| found.moved(tx)).wait()?;
    match lock {
        Some(lock) if moved.is_none() => token::replaced(database, home, lock),
        _ => Ok(moved),
    }
}

/// The machine's current time, for display only.
pub(crate) fn present() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| {
        int(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    })
}
