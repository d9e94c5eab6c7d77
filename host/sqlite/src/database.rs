//! Database: a file, the thread that writes it, and those that read it.

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

/// Writes that share a transaction, at most.
const MAX_BATCH: usize = 64;

/// For how long a transaction takes more writes in.
const BATCH_TIME: Duration = Duration::from_millis(50);

/// Which part of the time that a transaction took the file stays free after it, and at most
/// how long. Other processes ask for it now and then: without that, one that always has work
/// would keep them out for as long as it has.
const FREE_PART: u32 = 32;
const MAX_FREE: Duration = Duration::from_millis(4);

/// Pages of the log from which on they are copied into the file: 4 MiB, as SQLite has it.
const LOG_PAGES: i32 = 1_000;

/// A file that any number of processes have open; clones share it and its threads.
///
/// The work of [`Database::read`] and [`Database::write`] is done on threads of the
/// database, each with a connection of its own, so that whoever asks for it never waits
/// for a disk. Reading sees what was committed when it began, and neither waits for
/// writing nor holds it up. Writes take turns, those of other processes too.
///
/// Beside the file there are its log (`-wal`) and its index (`-shm`) while it is open;
/// they belong to it. The file must be on a disk of this machine: no network file system.
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
    /// The connection that writes; none when the thread that writes has ended.
    writer: Mutex<Option<Link>>,
    log: Arc<Log>,
    /// Connections that read.
    reading: Mutex<usize>,
    all_read: Condvar,
}

/// The log beside the file.
#[derive(Default)]
struct Log {
    /// How many pages it had after the last commit.
    pages: AtomicI32,
    /// Whether the thread that writes was asked to copy them.
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
    /// Work that was asked for is still done.
    fn drop(&mut self) {
        self.shared.reads.close();
        self.shared.writes.close();
    }
}

impl Database {
    /// Opens a file, and makes one if there is none. Blocks for as long as that takes:
    /// some milliseconds, more while other processes open it for the first time or left
    /// it when they were killed.
    ///
    /// # Errors
    /// If the file is no database, one of another program or of a later version of this
    /// one, damaged where that shows at once, or cannot be read and written. Nothing of
    /// such a file is changed.
    pub fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Database, SqliteError> {
        let path = path.as_ref();
        Database::start(path, options).map_err(|error| error.in_file(path))
    }

    fn start(path: &Path, options: SqliteOptions) -> Result<Database, SqliteError> {
        let mut writer = connection::open(path, &options)?;
        let log = Arc::new(Log::default());
        if writes_here(&options) {
            // In place of SQLite's own, which copies on the thread that commits.
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

    /// The path as it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.shared.path
    }

    /// Reads: `f` sees the file as it is when it begins, and no change. It runs on
    /// another thread, and begins before anybody waits for it.
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

    /// Writes: what `f` does is kept whole, or not at all if it gives an error or
    /// panics. Nobody else writes meanwhile. It runs on another thread; when the result
    /// is there, the write is durable as [`Durability`](crate::Durability) says.
    ///
    /// Errors are those of `f`, [`SqliteCode::Failed`] if it panics, and those of the
    /// file. A transaction is shared with other writes, of which each is kept or not on
    /// its own, unless the disk fails: then all fail.
    pub fn write<T, F>(&self, f: F) -> Task<T>
    where
        T: Send + 'static,
        F: FnOnce(&Tx<'_>) -> Result<T, SqliteError> + Send + 'static,
    {
        queued(&self.0.shared.writes, f)
    }

    /// The same for small work of one who waits for it at once: done on this thread if the
    /// file is nobody else's ([`SqliteOptions::is_exclusive`]), nobody writes, and no disk is
    /// waited for ([`Durability`] below [`Durability::Power`]). That takes some ten
    /// microseconds, less than to wake another thread twice.
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

    /// Makes or changes the tables of a component, if they are not as this version of it
    /// wants them.
    pub fn migrate(&self, component: &'static Component) -> Task<()> {
        self.write(move |tx| component.migrate(tx))
    }

    /// Copies the log into the file, and waits until the disk has all that was acknowledged
    /// before, whatever the [`Durability`](crate::Durability) is.
    ///
    /// Errors are [`SqliteCode::Locked`] if somebody reads an old state for longer than
    /// [`SqliteOptions::busy_timeout`], and those of the disk.
    pub fn checkpoint(&self) -> Task<()> {
        let shared = Arc::clone(&self.0.shared);
        let (job, task) = Work::alone(move |tx| connection::checkpoint(tx.link(), &shared.options));
        pushed(&self.0.shared.writes, job, task)
    }

    /// The same without waiting for readers. Whether the disk has all that was acknowledged
    /// before.
    ///
    /// Where the [`Durability`](crate::Durability) is relaxed it may not have what was copied
    /// earlier. Errors are those of the disk.
    pub fn checkpoint_now(&self) -> Task<bool> {
        let shared = Arc::clone(&self.0.shared);
        let (job, task) =
            Work::alone(move |tx| connection::checkpoint_now(tx.link(), &shared.options));
        pushed(&self.0.shared.writes, job, task)
    }

    /// Reads the whole file and tells the first faults.
    ///
    /// Errors are [`SqliteCode::Corrupt`] with what was found, and those of reading.
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

    /// Ends the threads after what they were asked for, and waits for that: afterwards
    /// this process has the file closed, and if no other has it open, all is in the one
    /// file. What other clones ask for later fails.
    pub fn close(self) {
        self.0.shared.reads.close();
        self.0.shared.writes.close();
        let threads = std::mem::take(&mut *locked(&self.0.threads));
        // Work that asks for this would wait for itself.
        let here = thread::current().id();
        if threads.iter().all(|thread| thread.thread().id() != here) {
            // Faults of work were caught before.
            threads.into_iter().for_each(|thread| drop(thread.join()));
        }
    }
}

/// Whether small work may be done on the thread of whoever asks.
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

/// A connection that reads. It is closed before the one that writes: of two that close at
/// once SQLite takes neither for the last, which cleans up.
struct Reads {
    // Dropped first.
    connection: Link,
    counted: Counted,
}

/// One of those that [`Shared::wait_for_reads`] waits for.
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

    /// What a thread that reads does.
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

    /// Does work on this thread, unless others write or wait for that; then gives it back.
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

    /// Asks the thread that writes to copy the log, if it is long.
    fn ask_for_copy(&self) {
        let is_long = self.log.pages.load(Ordering::Relaxed) >= LOG_PAGES;
        if is_long && !self.log.is_asked.swap(true, Ordering::Relaxed) {
            // It copies after each work.
            let (job, task) = Work::alone(|_| Ok(()));
            drop(pushed(&self.writes, job, task));
        }
    }

    /// Copies the log into the file, if it is long. What fails is tried again after the next
    /// commit, as SQLite does.
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

    /// What the thread that writes does.
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

    /// Does the last jobs of the list, some or all, in one transaction.
    fn write_some(&self, connection: &Link, jobs: &mut Vec<Box<dyn Job>>) {
        let waiting = jobs.iter().map(|job| Arc::clone(job.left())).collect();
        connection.watch.serve(waiting, Duration::ZERO);
        if let Err(error) = connection::begin(connection, "BEGIN IMMEDIATE", &self.options) {
            let failed = self.placed(Err(error));
            return jobs.drain(..).for_each(|job| job.end(failed.clone()));
        }
        let until = Instant::now() + BATCH_TIME;
        // Work that has the transaction for itself is undone with it.
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
                // After a fault of the disk SQLite may have rolled all of it back.
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

    /// The same with the place of the file, unless it is for programs.
    fn placed<T>(&self, result: Result<T, SqliteError>) -> Result<T, SqliteError> {
        result.map_err(|error| match error.code() {
            SqliteCode::Input | SqliteCode::Quota | SqliteCode::Stopped => error,
            _ => error.in_file(&self.path),
        })
    }
}

/// Does a job in a savepoint: it is kept whole, or not at all.
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
