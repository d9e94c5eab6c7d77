//! Session: a file with one connection on a dedicated thread, where a transaction may span
//! several jobs.

use crate::component::Component;
use crate::connection;
use crate::error::{SqliteCode, SqliteError};
use crate::options::SqliteOptions;
use crate::task::{Task, Tx, locked, stopped, task};
use crate::watch::Link;
use rusqlite::Connection;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

type Job = Box<dyn FnOnce(Result<&mut Link, &SqliteError>) + Send>;

/// A connection that runs jobs in the order of submission and begins or ends no transaction
/// itself. Clones share it.
///
/// Use it for a file with one owner that keeps a transaction open while it waits; use
/// [`Database`](crate::Database) otherwise.
///
/// ```
/// use a99_sqlite::{Component, Session, SqliteOptions};
///
/// static NOTES: Component = Component {
///     name: "notes",
///     migrations: &["CREATE TABLE notes (note TEXT NOT NULL) STRICT"],
/// };
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a.db");
/// let session = Session::open(&path, SqliteOptions::default(), &NOTES)?;
/// session.run(|file| Ok(file.execute_batch("BEGIN")?)).wait()?;
/// session.run(|file| Ok(file.execute("INSERT INTO notes VALUES ('x')", [])?)).wait()?;
/// session.run(|file| Ok(file.execute_batch("COMMIT")?)).wait()?;
/// session.close();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Session(Arc<Handle>);

struct Handle {
    path: PathBuf,
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Queue {
    inside: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Default)]
struct Inside {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Session");
        out.field("path", &self.0.path).finish_non_exhaustive()
    }
}

impl Drop for Handle {
    /// Queued work is still done.
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl Queue {
    fn close(&self) {
        locked(&self.inside).is_closed = true;
        self.changed.notify_all();
    }

    /// Adds work. If the queue is closed, dropping the work reports that to its caller.
    fn push(&self, job: Job) {
        let mut inside = locked(&self.inside);
        if !inside.is_closed {
            inside.jobs.push_back(job);
            drop(inside);
            self.changed.notify_one();
        }
    }

    fn pop(&self) -> Option<Job> {
        let mut inside = locked(&self.inside);
        loop {
            if let Some(job) = inside.jobs.pop_front() {
                return Some(job);
            }
            if inside.is_closed {
                return None;
            }
            inside = self
                .changed
                .wait(inside)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Session {
    /// Starts a thread that opens or creates a file and applies a component's migrations. The
    /// call does not wait for that: an error there becomes the error of every job.
    ///
    /// # Errors
    /// If the thread cannot start.
    pub fn open(
        path: impl AsRef<Path>,
        options: SqliteOptions,
        component: &'static Component,
    ) -> Result<Session, SqliteError> {
        let path = path.as_ref().to_owned();
        let queue = Arc::new(Queue::default());
        let (jobs, file) = (Arc::clone(&queue), path.clone());
        let work = move || {
            let opened = open(&file, &options, component);
            let mut opened = opened.map_err(|error| error.in_file(&file));
            while let Some(job) = jobs.pop() {
                job(opened.as_mut().map_err(|error| &*error));
            }
        };
        let thread = thread::Builder::new().name("a99-sqlite-session".to_owned());
        let thread = thread.spawn(work).map_err(|error| {
            SqliteError::new(SqliteCode::Failed, format!("no thread for it: {error}"))
        })?;
        Ok(Session(Arc::new(Handle {
            path,
            queue,
            thread: Mutex::new(Some(thread)),
        })))
    }

    /// The path as given to [`Session::open`].
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Runs work on the session's thread. Work cancelled before it began never runs.
    ///
    /// Errors are those of `f`, [`SqliteCode::Failed`] if it panics, and those of opening.
    pub fn run<T, F>(&self, f: F) -> Task<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> Result<T, SqliteError> + Send + 'static,
    {
        let (promise, task) = task();
        self.0.queue.push(Box::new(move |opened| {
            let is_left = promise.is_left().load(std::sync::atomic::Ordering::Relaxed);
            let done = match opened {
                _ if is_left => Err(stopped()),
                Ok(connection) => caught(|| f(connection)),
                Err(error) => Err(error.clone()),
            };
            promise.end(done);
        }));
        task
    }

    /// Runs work without reporting its result.
    pub fn tell<F>(&self, f: F)
    where
        F: FnOnce(&mut Connection) + Send + 'static,
    {
        self.0.queue.push(Box::new(move |opened| {
            if let Ok(connection) = opened {
                drop(caught(|| {
                    f(connection);
                    Ok(())
                }));
            }
        }));
    }

    /// Finishes queued work, ends the thread and closes the file; blocks until then. Later
    /// calls of other clones fail.
    pub fn close(self) {
        self.0.queue.close();
        let thread = locked(&self.0.thread).take();
        if let Some(thread) = thread
            && thread.thread().id() != thread::current().id()
        {
            // Panics of work were caught earlier.
            drop(thread.join());
        }
    }
}

fn caught<T>(f: impl FnOnce() -> Result<T, SqliteError>) -> Result<T, SqliteError> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| {
        let message = "the work ended in a fault";
        Err(SqliteError::new(SqliteCode::Failed, message))
    })
}

fn open(path: &Path, options: &SqliteOptions, component: &Component) -> Result<Link, SqliteError> {
    let connection = connection::open_shared(path, options)?;
    let nobody = AtomicBool::new(false);
    let tx = Tx::new(&connection, &nobody);
    connection::begin(&connection, "BEGIN", options)?;
    let is_current = connection::end(&connection, component.is_current(&tx))?;
    if !is_current {
        connection::begin(&connection, "BEGIN IMMEDIATE", options)?;
        connection::end(&connection, component.migrate(&tx))?;
    }
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::Session;
    use crate::{Component, SqliteCode, SqliteOptions};

    static NUMBERS: Component = Component {
        name: "numbers",
        migrations: &["CREATE TABLE n (n INTEGER NOT NULL) STRICT"],
    };

    fn count(session: &Session) -> i64 {
        let sql = "SELECT count(*) FROM n";
        let counted = session.run(move |file| Ok(file.query_row(sql, [], |row| row.get(0))?));
        counted.wait().unwrap()
    }

    #[test]
    fn a_transaction_goes_on_from_one_work_to_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let session = Session::open(&path, SqliteOptions::default(), &NUMBERS).unwrap();
        let run = |sql: &'static str| session.run(move |file| Ok(file.execute_batch(sql)?)).wait();
        run("BEGIN; INSERT INTO n VALUES (1)").unwrap();
        assert_eq!(count(&session), 1);
        run("ROLLBACK").unwrap();
        assert_eq!(count(&session), 0);
        // Work submitted by `tell` runs before later jobs.
        session.tell(|file| file.execute_batch("INSERT INTO n VALUES (2)").unwrap());
        session.tell(|_| panic!("a fault of the work"));
        assert_eq!(count(&session), 1);
        let fault = session.run::<(), _>(|_| panic!("another")).wait();
        assert_eq!(fault.unwrap_err().code(), SqliteCode::Failed);
        session.clone().close();
        let late = session.run(|_| Ok(())).wait().unwrap_err();
        assert_eq!(late.code(), SqliteCode::Stopped);
        let again = Session::open(&path, SqliteOptions::default(), &NUMBERS).unwrap();
        assert_eq!(count(&again), 1);
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_the_error_of_all_work() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("no").join("a.db");
        let session = Session::open(path, SqliteOptions::default(), &NUMBERS).unwrap();
        for _ in 0..2 {
            let error = session.run(|_| Ok(())).wait().unwrap_err();
            assert_eq!(error.code(), SqliteCode::NotFound);
        }
    }
}
