//! Database: a file with one writer thread and several reader threads.

use crate::component::Component;
use crate::connection;
use crate::error::{SqliteCode, SqliteError};
use crate::options::{Durability, SqliteOptions};
use crate::queue::Queue;
use crate::task::{Job, Task, Tx, Work, locked, stopped};
use crate::watch::{Link, SHARED};
use rusqlite::Connection;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Most writes in one transaction.
const MAX_BATCH: usize = 64;

/// Time after which a transaction accepts no more writes.
const BATCH_TIME: Duration = Duration::from_millis(50);

/// Fraction of a transaction's duration for which the writer then releases the lock, and the
/// longest such pause. Without it a process with constant work would starve the others, which
/// poll for the lock.
const FREE_PART: u32 = 32;
const MAX_FREE: Duration = Duration::from_millis(4);

/// Pages of the write-ahead log that trigger a checkpoint: 4 MiB, SQLite's default.
const LOG_PAGES: i32 = 1_000;

/// A database file, open in any number of processes. Clones share the file and its threads.
///
/// [`Database::read`] and [`Database::write`] run on the database's threads, each with its own
/// connection, so that callers never block on disk I/O. A read sees the last commit before it
/// began; readers and writers do not block each other. Writes are serialised, across processes
/// too.
///
/// While the file is open, its write-ahead log (`-wal`) and shared-memory index (`-shm`) lie
/// beside it and belong to it. The file must be on a local disk: no network file system.
#[derive(Clone)]
pub struct Database(Arc<Handle>);

struct Handle {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

pub(crate) struct Shared {
    pub(crate) path: PathBuf,
    pub(crate) options: SqliteOptions,
    reads: Queue,
    writes: Queue,
    /// The writer's connection; `None` after the writer thread has ended.
    writer: Mutex<Option<Link>>,
    log: Arc<Log>,
    /// Number of open reader connections.
    reading: Mutex<usize>,
    all_read: Condvar,
}

/// State of the write-ahead log.
#[derive(Default)]
struct Log {
    /// Pages in the log after the last commit.
    pages: AtomicI32,
    /// True once the writer thread was asked for a checkpoint.
    is_asked: AtomicBool,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Database");
        out.field("path", &self.0.shared.path);
        out.field("options", &self.0.shared.options);
        out.finish_non_exhaustive()
    }
}

impl Drop for Handle {
    /// Queued work is still done.
    fn drop(&mut self) {
        self.shared.reads.close();
        self.shared.writes.close();
    }
}

impl Database {
    /// Opens a file, or creates it. Blocks for some milliseconds; longer while other processes
    /// open it for the first time, or after they were killed.
    ///
    /// # Errors
    /// If the file is no database, belongs to another program or a later version, is visibly
    /// damaged, or cannot be read and written. Such a file is left unchanged.
    pub fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Database, SqliteError> {
        let path = path.as_ref();
        Database::start(path, options).map_err(|error| error.in_file(path))
    }

    fn start(path: &Path, options: SqliteOptions) -> Result<Database, SqliteError> {
        let mut writer = connection::open(path, &options)?;
        let log = Arc::new(Log::default());
        if writes_here(&options) {
            // Replaces SQLite's own hook, which runs checkpoints on the committing thread.
            let log = Arc::clone(&log);
            writer.wal_hook(Some(move |_: &mut _, pages| {
                log.pages.store(pages, Ordering::Relaxed);
                Ok(())
            }))?;
        }
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            options,
            reads: Queue::default(),
            writes: Queue::default(),
            writer: Mutex::new(Some(writer)),
            log,
            reading: Mutex::new(0),
            all_read: Condvar::new(),
        });
        let handle = Handle {
            shared: Arc::clone(&shared),
            threads: Mutex::default(),
        };
        let database = Database(Arc::new(handle));
        for _ in 0..shared.options.readers.max(1) {
            let reader = connection::open_reader(path, &shared.options)?;
            let reads = Reads {
                connection: reader,
                counted: Counted::of(&shared),
            };
            database.spawn("a99-sqlite-read", move || {
                let reads = reads;
                reads.counted.0.read_on(&reads.connection);
            })?;
        }
        database.spawn("a99-sqlite-write", move || {
            shared.write_on();
            shared.wait_for_reads();
            drop(locked(&shared.writer).take());
        })?;
        Ok(database)
    }

    pub(crate) fn spawn(
        &self,
        name: &str,
        f: impl FnOnce() + Send + 'static,
    ) -> Result<(), SqliteError> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(f);
        let thread = thread.map_err(|error| {
            SqliteError::new(SqliteCode::Failed, format!("no thread for it: {error}"))
        })?;
        locked(&self.0.threads).push(thread);
        Ok(())
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// The path as given to [`Database::open`].
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.shared.path
    }

    /// Runs a read transaction on another thread. `f` sees one snapshot of the file. The work
    /// starts even before the task is awaited.
    ///
    /// Errors are those of `f`, [`SqliteCode::Failed`] if it panics or writes, and those
    /// of the file.
    pub fn read<T, F>(&self, f: F) -> Task<T>
    where
        T: Send + 'static,
        F: FnOnce(&Tx<'_>) -> Result<T, SqliteError> + Send + 'static,
    {
        queued(&self.0.shared.reads, f)
    }

    /// Runs a write transaction on another thread. If `f` fails or panics, all its changes are
    /// rolled back. No other write runs at the same time. Once the result arrives, the write is
    /// durable as [`Durability`](crate::Durability) specifies.
    ///
    /// Errors are those of `f`, [`SqliteCode::Failed`] if it panics, and those of the file.
    /// Several writes may share a transaction. Each commits or rolls back separately, unless
    /// the disk fails: then all fail.
    pub fn write<T, F>(&self, f: F) -> Task<T>
    where
        T: Send + 'static,
        F: FnOnce(&Tx<'_>) -> Result<T, SqliteError> + Send + 'static,
    {
        queued(&self.0.shared.writes, f)
    }

    /// Like [`Database::write`], but runs small work on the calling thread where possible. That
    /// requires exclusive access ([`SqliteOptions::is_exclusive`]), no other writer in this
    /// process, and a mode that does not sync ([`Durability`] below [`Durability::Power`]). It
    /// takes some ten microseconds, less than waking another thread twice.
    pub fn write_here<T, F>(&self, f: F) -> Task<T>
    where
        T: Send + 'static,
        F: FnOnce(&Tx<'_>) -> Result<T, SqliteError> + Send + 'static,
    {
        let shared = &self.0.shared;
        let (job, task) = Work::of(f);
        match shared.try_write(job) {
            Ok(()) => task,
            Err(job) => pushed(&shared.writes, job, task),
        }
    }

    /// Applies a component's missing migrations.
    pub fn migrate(&self, component: &'static Component) -> Task<()> {
        self.write(move |tx| component.migrate(tx))
    }

    /// Checkpoints the write-ahead log and syncs, so that the disk has every acknowledged
    /// write, in any [`Durability`](crate::Durability).
    ///
    /// Errors are [`SqliteCode::Locked`] if a reader holds an old snapshot for longer than
    /// [`SqliteOptions::busy_timeout`], and those of the disk.
    pub fn checkpoint(&self) -> Task<()> {
        let shared = Arc::clone(&self.0.shared);
        let (job, task) = Work::alone(move |tx| connection::checkpoint(tx.link(), &shared.options));
        pushed(&self.0.shared.writes, job, task)
    }

    /// Like [`Database::checkpoint`], without waiting for readers. True if the disk has every
    /// acknowledged write.
    ///
    /// In relaxed [`Durability`](crate::Durability) the disk may lack earlier checkpoints.
    /// Errors are those of the disk.
    pub fn checkpoint_now(&self) -> Task<bool> {
        let shared = Arc::clone(&self.0.shared);
        let (job, task) =
            Work::alone(move |tx| connection::checkpoint_now(tx.link(), &shared.options));
        pushed(&self.0.shared.writes, job, task)
    }

    /// Reads the whole file and reports the first faults.
    ///
    /// Errors are [`SqliteCode::Corrupt`] with the faults, and those of reading.
    pub fn check(&self) -> Task<()> {
        self.read(|tx| {
            let mut check = tx.prepare("PRAGMA integrity_check(5)")?;
            let found = check.query_map([], |row| row.get::<_, String>(0))?;
            let found: Vec<String> = found.collect::<Result<_, _>>()?;
            match found.as_slice() {
                [one] if one == "ok" => Ok(()),
                _ => Err(SqliteError::new(SqliteCode::Corrupt, found.join("; "))),
            }
        })
    }

    /// Finishes queued work, ends the threads and closes the file; blocks until then. If no
    /// other process has the file open, all data is then in the one file. Later calls of other
    /// clones fail.
    pub fn close(self) {
        self.0.shared.reads.close();
        self.0.shared.writes.close();
        let threads = std::mem::take(&mut *locked(&self.0.threads));
        // A thread of the database must not join itself.
        let here = thread::current().id();
        if threads.iter().all(|thread| thread.thread().id() != here) {
            // Panics of work were caught earlier.
            threads.into_iter().for_each(|thread| drop(thread.join()));
        }
    }
}

/// True if small work may run on the calling thread.
fn writes_here(options: &SqliteOptions) -> bool {
    options.is_exclusive && options.durability != Durability::Power
}

fn queued<T, F>(queue: &Queue, f: F) -> Task<T>
where
    T: Send + 'static,
    F: FnOnce(&Tx<'_>) -> Result<T, SqliteError> + Send + 'static,
{
    let (job, task) = Work::of(f);
    pushed(queue, job, task)
}

fn pushed<T>(queue: &Queue, job: Box<dyn Job>, task: Task<T>) -> Task<T> {
    if let Err(job) = queue.push(job) {
        job.end(Err(stopped()));
    }
    task
}

/// A reader's connection. It closes before the writer's: if two connections close at the same
/// time, SQLite treats neither as the last, which removes the log.
struct Reads {
    // Dropped first.
    connection: Link,
    counted: Counted,
}

/// A reader that [`Shared::wait_for_reads`] waits for.
struct Counted(Arc<Shared>);

impl Counted {
    fn of(shared: &Arc<Shared>) -> Counted {
        *locked(&shared.reading) += 1;
        Counted(Arc::clone(shared))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        *locked(&self.0.reading) -= 1;
        self.0.all_read.notify_all();
    }
}

impl Shared {
    fn wait_for_reads(&self) {
        let reading = self
            .all_read
            .wait_while(locked(&self.reading), |reading| *reading > 0);
        drop(reading);
    }

    /// Loop of a reader thread.
    fn read_on(&self, connection: &Link) {
        while let Some(mut job) = self.reads.take(1).pop() {
            if job.is_left() {
                continue;
            }
            let left = vec![Arc::clone(job.left())];
            connection.watch.serve(left, Duration::ZERO);
            let done = connection::begin(connection, "BEGIN", &self.options)
                .and_then(|()| connection::end(connection, job.run(connection)));
            job.end(self.placed(done));
        }
    }

    /// Runs a write on this thread, or returns it if other writes run or wait.
    fn try_write(&self, job: Box<dyn Job>) -> Result<(), Box<dyn Job>> {
        if !writes_here(&self.options) {
            return Err(job);
        }
        let writer = match self.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::Poisoned(writer)) => writer.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(job),
        };
        let Some(connection) = writer.as_ref().filter(|_| self.writes.is_idle()) else {
            return Err(job);
        };
        self.write_some(connection, &mut vec![job]);
        drop(writer);
        self.ask_for_copy();
        Ok(())
    }

    /// Asks the writer thread for a checkpoint if the log is long.
    fn ask_for_copy(&self) {
        let is_long = self.log.pages.load(Ordering::Relaxed) >= LOG_PAGES;
        if is_long && !self.log.is_asked.swap(true, Ordering::Relaxed) {
            // The writer checks the log after each job, so an empty job is enough.
            let (job, task) = Work::alone(|_| Ok(()));
            drop(pushed(&self.writes, job, task));
        }
    }

    /// Checkpoints a long log. A failed checkpoint is retried after the next commit, as in
    /// SQLite.
    fn copy_log(&self, connection: &Connection) {
        self.log.is_asked.store(false, Ordering::Relaxed);
        if self.log.pages.load(Ordering::Relaxed) >= LOG_PAGES {
            let copy = connection.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)");
            let copied = copy.and_then(|mut copy| copy.query_row([], |_| Ok(())));
            if copied.is_ok() {
                self.log.pages.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Loop of the writer thread.
    fn write_on(&self) {
        let mut free_until = Instant::now();
        loop {
            let mut jobs = self.writes.take(MAX_BATCH);
            if jobs.is_empty() {
                return;
            }
            jobs.reverse();
            while !jobs.is_empty() {
                thread::sleep(free_until.saturating_duration_since(Instant::now()));
                let writer = locked(&self.writer);
                let Some(connection) = writer.as_ref() else {
                    return;
                };
                if let Some(mut job) = jobs.pop_if(|job| job.is_alone()) {
                    let left = vec![Arc::clone(job.left())];
                    connection.watch.serve(left, Duration::ZERO);
                    let done = job.run(connection);
                    connection.watch.rest();
                    job.end(self.placed(done));
                    self.copy_log(connection);
                    continue;
                }
                let began = Instant::now();
                self.write_some(connection, &mut jobs);
                self.copy_log(connection);
                drop(writer);
                if !self.options.is_exclusive {
                    let free = (began.elapsed() / FREE_PART).min(MAX_FREE);
                    free_until = Instant::now() + free;
                }
            }
        }
    }

    /// Runs jobs from the end of the list in one transaction, until it is full.
    fn write_some(&self, connection: &Link, jobs: &mut Vec<Box<dyn Job>>) {
        let waiting = jobs.iter().map(|job| Arc::clone(job.left())).collect();
        connection.watch.serve(waiting, Duration::ZERO);
        if let Err(error) = connection::begin(connection, "BEGIN IMMEDIATE", &self.options) {
            let failed = self.placed(Err(error));
            return jobs.drain(..).for_each(|job| job.end(failed.clone()));
        }
        let until = Instant::now() + BATCH_TIME;
        // A single job needs no savepoint: it rolls back with its transaction.
        let shares = jobs.len() > 1;
        let mut done = Vec::new();
        let mut fate = Ok(());
        while let Some(mut job) = jobs.pop_if(|job| !job.is_alone()) {
            if job.is_left() {
                continue;
            }
            let left = vec![Arc::clone(job.left())];
            let grace = if shares { SHARED } else { Duration::ZERO };
            connection.watch.serve(left, grace);
            let result = match shares {
                true => apart(connection, &mut *job),
                false => job.run(connection),
            };
            if result.is_err() && !shares {
                fate = result.clone();
            } else if connection.is_autocommit() {
                // SQLite may roll back the whole transaction after an I/O error.
                fate = result.clone().and(Err(SqliteError::new(
                    SqliteCode::Failed,
                    "the work ended the transaction",
                )));
            }
            done.push((job, result));
            if fate.is_err() || Instant::now() >= until {
                break;
            }
        }
        connection.watch.rest();
        let fate = connection::end(connection, fate);
        for (job, result) in done {
            job.end(self.placed(result.and(fate.clone())));
        }
    }

    /// Adds the file's path to an error, unless programs see it.
    fn placed<T>(&self, result: Result<T, SqliteError>) -> Result<T, SqliteError> {
        result.map_err(|error| match error.code() {
            SqliteCode::Input | SqliteCode::Quota | SqliteCode::Stopped => error,
            _ => error.in_file(&self.path),
        })
    }
}

/// Runs a job in a savepoint, so that it commits or rolls back separately.
fn apart(connection: &Link, job: &mut dyn Job) -> Result<(), SqliteError> {
    connection
        .prepare_cached("SAVEPOINT a99_job")?
        .execute([])?;
    let result = job.run(connection);
    if connection.is_autocommit() {
        return result;
    }
    if result.is_err() {
        connection.execute_batch("ROLLBACK TO a99_job")?;
    }
    connection.prepare_cached("RELEASE a99_job")?.execute([])?;
    result
}
