//! Store in a file: opening, owning and closing it, and work on its threads.

use crate::fault::{Fault, fault, of_file, of_write};
use crate::home::Home;
use crate::lock::{FileLock, canonical_path, check_names, failed};
use crate::options::StoreOptions;
use crate::place::Place;
use crate::rows::{int, uint};
use crate::tables::TableFiles;
use crate::token;
use a99_runtime_engine::{AgentKey, BoxFuture, Epoch, Fence, SHARDS, StoreCode, StoreError};
use a99_sqlite::{
    Component, Database, Durability, SqliteCode, SqliteError, SqliteOptions, Task, Tx,
};
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) type Reply<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Bytes of work that is small: written in less time than a thread needs to wake.
const SMALL: usize = 64 * 1024;

/// How long a reader waits for a process that is making the store.
const MAKING: Duration = Duration::from_secs(2);

/// Pause between two looks at it.
const MAKING_PAUSE: Duration = Duration::from_millis(20);

/// How long a reader waits for SQLite's locks, which are held for moments.
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
    ],
};

/// Agents and channels in a file; clones share it and its threads.
///
/// Work begins when a method is called, in the order of the calls, and need not be waited
/// for at once. A future that is dropped leaves a write done or not done.
///
/// Commits that are asked for at the same time share a transaction: it takes all that wait
/// when the one before is over. What a read sees is whatever was acknowledged before it was
/// asked for, and perhaps more.
///
/// If the last clone is dropped, what was asked for is still done, and the file closed; only
/// [`SqliteRuntime::close`] says that nothing was cut off.
#[derive(Clone)]
pub struct SqliteRuntime(Arc<Inner>);

struct Inner {
    // Closed before what they agree with.
    tables: TableFiles,
    database: Database,
    shared: Arc<Shared>,
    place: Place,
    lock: Mutex<Option<FileLock>>,
}

/// What work on the threads needs of the handle.
pub(crate) struct Shared {
    pub(crate) options: StoreOptions,
    /// Of each shard, since this handle opened the file.
    epochs: Vec<u64>,
    pub(crate) was_cut_off: bool,
    /// Why it is another file than before, if it is.
    pub(crate) moved: Option<String>,
    /// Whether this handle only reads.
    is_reader: bool,
}

impl Drop for Inner {
    /// The lock is left when nothing is written any more.
    fn drop(&mut self) {
        self.tables.close();
        self.database.clone().close();
    }
}

impl fmt::Debug for SqliteRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("SqliteRuntime");
        out.field("path", &self.0.database.path());
        out.field("options", &self.0.shared.options);
        out.finish_non_exhaustive()
    }
}

/// A transaction of this handle.
pub(crate) struct Cx<'a> {
    tx: &'a Tx<'a>,
    pub(crate) shared: &'a Shared,
}

impl<'a> Deref for Cx<'a> {
    type Target = Tx<'a>;

    fn deref(&self) -> &Tx<'a> {
        self.tx
    }
}

impl Cx<'_> {
    /// Goes on only if nobody opened the file after this handle.
    ///
    /// # Errors
    /// [`StoreCode::Fenced`]
    pub(crate) fn own(&self, shard: u16) -> Result<u64, Fault> {
        let mut find = self.prepare_cached("SELECT epoch FROM shard WHERE id = ?1")?;
        let found = uint(find.query_row([shard], |row| row.get(0))?)?;
        match self.shared.epoch(shard) {
            mine if mine == found => Ok(mine),
            mine => Err(fault(
                StoreCode::Fenced,
                format!("another owner has the shard {shard}: its epoch is {found}, not {mine}"),
            )),
        }
    }

    /// The same, and only under the epoch that an activation began with.
    ///
    /// # Errors
    /// [`StoreCode::Fenced`]
    pub(crate) fn guard(&self, fence: &Fence) -> Result<(), Fault> {
        let mine = self.own(fence.key.shard())?;
        match fence.epoch.0 == mine {
            true => Ok(()),
            false => Err(fault(
                StoreCode::Fenced,
                format!(
                    "{} was read under epoch {}; now it is {mine}",
                    fence.key, fence.epoch
                ),
            )),
        }
    }
}

impl Shared {
    fn epoch(&self, shard: u16) -> u64 {
        self.epochs
            .get(usize::from(shard))
            .copied()
            .unwrap_or_default()
    }
}

impl SqliteRuntime {
    /// Opens a file as its owner, and makes one, for this user alone, if there is none. It and
    /// `<path>.lock` beside it are locked for as long as it is open; symbolic links are
    /// followed first. Blocks for some milliseconds.
    ///
    /// # Errors
    /// [`StoreCode::Locked`] if a process owns it, this one too, with its number;
    /// [`StoreCode::Unreadable`] if the file is damaged, another's or of a later version;
    /// [`StoreCode::NotFound`] if there is no such folder; [`StoreCode::Unavailable`] if it
    /// cannot be read and written, or has several names (hard links); [`StoreCode::Copied`] if
    /// the options refuse copies.
    pub fn open(
        path: impl AsRef<Path>,
        options: StoreOptions,
    ) -> Result<SqliteRuntime, StoreError> {
        let path = path.as_ref();
        let path = canonical_path(path).map_err(|error| failed(path, &error))?;
        let lock = FileLock::take(&path)?;
        SqliteRuntime::start(&path, options, Some(lock))
    }

    /// Opens a file only to read it, whether a process owns it or not: takes no lock, raises no
    /// epoch, changes nothing in it. What asks to write fails. After a crash the tables of an
    /// agent may be one turn ahead of what is read here, until an owner opens the file.
    ///
    /// # Errors
    /// [`StoreCode::NotFound`] if there is no such file, or nothing in it;
    /// [`StoreCode::Unreadable`] if it is damaged, another's, or of an earlier or later
    /// version; [`StoreCode::Unavailable`] if it cannot be read, or has several names.
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
            epochs: Vec::new(),
            was_cut_off: false,
            moved: None,
            is_reader: true,
        };
        Ok(SqliteRuntime(Arc::new(Inner {
            tables: TableFiles::beside(&path),
            database,
            shared: Arc::new(shared),
            place: Place::of(&path),
            lock: Mutex::default(),
        })))
    }

    /// Opens a file that may be open, so that two handles contend for it.
    ///
    /// # Errors
    /// Those of [`SqliteRuntime::open`] but [`StoreCode::Locked`].
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
            is_exclusive: lock.is_some(),
            ..SqliteOptions::default()
        };
        let database = Database::open(path, sqlite).map_err(|error| of_file(&error))?;
        let (moved, was_cut_off, epochs) = match take(&database, path, &options, lock.as_mut()) {
            Ok(taken) => taken,
            Err(error) => {
                // Before the lock is left.
                database.close();
                return Err(error);
            }
        };
        let shared = Shared {
            options,
            epochs,
            was_cut_off,
            moved,
            is_reader: false,
        };
        let store = SqliteRuntime(Arc::new(Inner {
            tables: TableFiles::beside(path),
            database,
            shared: Arc::new(shared),
            place: Place::of(path),
            lock: Mutex::new(lock),
        }));
        store.know_tables()?;
        Ok(store)
    }

    /// Whether this handle is still the owner of the file at its path.
    ///
    /// # Errors
    /// [`StoreCode::NotFound`] if the file was deleted, renamed or replaced, its log or the
    /// index of that too; [`StoreCode::Fenced`] if there is another owner; those of reading.
    pub async fn check_owned(&self) -> Result<(), StoreError> {
        self.check_place()?;
        self.read(|cx| cx.own(0).map(drop)).await
    }

    /// The part of [`SqliteRuntime::check_owned`] that costs three looks at the folder: to be
    /// asked before something is acknowledged.
    ///
    /// # Errors
    /// [`StoreCode::NotFound`]
    pub fn check_place(&self) -> Result<(), StoreError> {
        self.0.place.check()
    }

    /// Notes that nothing was cut off, ends the threads after what they were asked for, and
    /// leaves the lock. What other clones ask for later fails. Blocks meanwhile.
    ///
    /// # Errors
    /// Those of writing; the file is closed all the same, as if it had been cut off.
    pub fn close(self) -> Result<(), StoreError> {
        let noted = match self.0.shared.is_reader {
            true => Ok(0),
            false => {
                let mut lock = locked(&self.0.lock);
                let durability = self.0.shared.options.durability;
                let lock = lock.as_mut();
                let lock = lock.filter(|_| durability != Durability::Relaxed);
                let (work, fault) = self.work(|cx| {
                    cx.own(0)?;
                    let closed = "UPDATE agent_meta SET value = 1 WHERE name = 'is_closed'";
                    Ok(cx.execute(closed, [])?)
                });
                let (database, home) = (&self.0.database, Home::of(self.0.database.path()));
                let noted = token::renewed(database, home.as_ref(), lock, work);
                Asked::ended(noted, &fault, of_write)
            }
        };
        self.0.tables.close();
        self.0.database.clone().close();
        drop(locked(&self.0.lock).take());
        noted.map(drop)
    }

    /// The database, for other components in the same file.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.0.database
    }

    pub(crate) fn tables_of(&self) -> &TableFiles {
        &self.0.tables
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0.shared
    }

    pub(crate) fn epoch_of(&self, key: &AgentKey) -> Epoch {
        Epoch(self.0.shared.epoch(key.shard()))
    }

    /// Does work in a transaction that may write.
    pub(crate) fn write_now<T, F>(&self, f: F) -> Asked<T>
    where
        T: Send + 'static,
        F: FnOnce(&Cx<'_>) -> Result<T, Fault> + Send + 'static,
    {
        let (work, fault) = self.work(f);
        Asked {
            task: self.0.database.write(work),
            fault,
            of_error: of_write,
        }
    }

    pub(crate) fn write<T, F>(&self, f: F) -> Reply<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Cx<'_>) -> Result<T, Fault> + Send + 'static,
    {
        Box::pin(self.write_now(f).answer())
    }

    /// The same for work that writes about so many bytes: where they are few, on this thread
    /// if that is quicker.
    pub(crate) fn write_bytes<T, F>(&self, bytes: usize, f: F) -> Reply<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Cx<'_>) -> Result<T, Fault> + Send + 'static,
    {
        if bytes > SMALL {
            return self.write(f);
        }
        let (work, fault) = self.work(f);
        let asked = Asked {
            task: self.0.database.write_here(work),
            fault,
            of_error: of_write,
        };
        Box::pin(asked.answer())
    }

    /// Does work in a transaction that reads.
    pub(crate) fn read<T, F>(&self, f: F) -> Reply<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Cx<'_>) -> Result<T, Fault> + Send + 'static,
    {
        let (work, fault) = self.work(f);
        let asked = Asked {
            task: self.0.database.read(work),
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
                tx,
                shared: &shared,
            };
            f(&cx).map_err(|fault| match fault {
                Fault::File(error) => error,
                Fault::Store(error) => {
                    // The database takes errors of its own, and undoes the work for any.
                    let stands_in = SqliteError::new(SqliteCode::Failed, error.to_string());
                    *locked(&tell) = Some(error);
                    stands_in
                }
            })
        };
        (work, told)
    }
}

/// What the store says of work that it did not do.
type Told = Arc<Mutex<Option<StoreError>>>;

/// Work that was asked for.
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

/// Opens the file of a store to read it.
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

/// Makes the tables and takes the store for this process: why it is another file than before,
/// whether the last owner was cut off, and the epochs of its shards.
fn take(
    database: &Database,
    path: &Path,
    options: &StoreOptions,
    lock: Option<&mut FileLock>,
) -> Result<(Option<String>, bool, Vec<u64>), StoreError> {
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
    let kept = home.clone();
    let lock = lock.filter(|_| options.durability != Durability::Relaxed);
    let taken = token::renewed(database, home.as_ref(), lock, move |tx| {
        if let Some(home) = &kept {
            home.keep(tx)?;
        }
        take_over(tx)
    });
    let (was_cut_off, epochs) = taken.map_err(failed)?;
    Ok((moved, was_cut_off, epochs))
}

/// Why a store is another file than the one that an owner had last, if it is.
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

/// Takes all shards: whether the last owner was cut off, and their epochs.
fn take_over(tx: &Tx<'_>) -> Result<(bool, Vec<u64>), SqliteError> {
    let owner = format!("process {}", std::process::id());
    let raise = "UPDATE shard SET epoch = epoch + 1, owner = ?1, expires = NULL";
    let is_whole = tx.execute(raise, [owner])? == usize::from(SHARDS);
    let closed = "SELECT value FROM agent_meta WHERE name = 'is_closed'";
    let is_closed: i64 = tx.query_row(closed, [], |row| row.get(0))?;
    tx.execute(
        "UPDATE agent_meta SET value = 0 WHERE name = 'is_closed'",
        [],
    )?;
    let mut find = tx.prepare("SELECT epoch FROM shard ORDER BY id")?;
    let epochs = find.query_map([], |row| row.get::<_, i64>(0))?;
    let epochs: Vec<i64> = epochs.collect::<Result<_, _>>()?;
    let epochs: Result<Vec<u64>, _> = epochs.into_iter().map(u64::try_from).collect();
    match epochs {
        Ok(epochs) if is_whole => Ok((is_closed == 0, epochs)),
        _ => Err(SqliteError::new(
            SqliteCode::Corrupt,
            "its shards are not those of a store",
        )),
    }
}

/// The present of the machine, for what people read.
pub(crate) fn present() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| {
        int(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    })
}
