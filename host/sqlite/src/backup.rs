//! Online backup of a database file.

use crate::connection;
use crate::database::{Database, Shared};
use crate::error::{SqliteCode, SqliteError};
use crate::task::{Promise, Task, Tx, task};
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Pages copied between two calls of `progress`: 1 MiB.
const STEP: i32 = 256;

/// Progress of a backup, in pages of the file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct BackupProgress {
    /// Pages copied.
    pub copied: u64,
    /// Pages of the whole file.
    pub of: u64,
}

impl Database {
    /// Copies the current state of the file to another file, on a separate thread. Readers and
    /// writers continue. `progress` runs after each MiB. The copy replaces an earlier file of
    /// that name whole at the end, or not at all.
    ///
    /// Errors are [`SqliteCode::Occupied`] if the other file is in use as a database, and
    /// errors of I/O.
    pub fn backup_to(
        &self,
        path: impl Into<PathBuf>,
        progress: impl FnMut(BackupProgress) + Send + 'static,
    ) -> Task<()> {
        let (promise, task) = task();
        let promise = Arc::new(promise);
        let (shared, path, mut progress) = (Arc::clone(self.shared()), path.into(), progress);
        let work = {
            let promise = Arc::clone(&promise);
            move || {
                let copy = || copy(&shared, &path, &promise, &mut progress);
                let done = catch_unwind(AssertUnwindSafe(copy)).unwrap_or_else(|_| {
                    let message = "the progress of the backup ended in a fault";
                    Err(SqliteError::new(SqliteCode::Failed, message))
                });
                promise.end(done.map_err(|error| error.in_file(&path)));
            }
        };
        if let Err(error) = self.spawn("a99-sqlite-copy", work) {
            promise.end(Err(error));
        }
        task
    }
}

/// Temporary file that is deleted on drop unless it was renamed to its final name.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // The file may never have been created.
        drop(fs::remove_file(&self.0));
    }
}

fn copy(
    shared: &Shared,
    path: &Path,
    promise: &Promise<()>,
    progress: &mut dyn FnMut(BackupProgress),
) -> Result<(), SqliteError> {
    let path = std::path::absolute(path).map_err(|error| io_error(&error))?;
    check_target(shared, &path)?;
    let source = connection::open_reader(&shared.path, &shared.options)?;
    let unfinished = Unfinished(beside(&path, &temporary()));
    // The copy is one snapshot of the file, even while others write.
    connection::begin(&source, "BEGIN", &shared.options)?;
    let mut target = Connection::open(&unfinished.0)?;
    target.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")?;
    let backup = Backup::new(&source, &mut target)?;
    let tx = Tx::new(&source, promise.is_left());
    while backup.step(STEP)? != StepResult::Done {
        tx.go_on()?;
        progress(BackupProgress::of(&backup));
    }
    progress(BackupProgress::of(&backup));
    drop(backup);
    target.close().map_err(|(_, error)| error)?;
    finish(&unfinished, &path).map_err(|error| io_error(&error))
}

impl BackupProgress {
    fn of(backup: &Backup<'_, '_>) -> BackupProgress {
        let progress = backup.progress();
        let of = progress.pagecount.unsigned_abs();
        BackupProgress {
            copied: of.saturating_sub(progress.remaining.unsigned_abs()).into(),
            of: of.into(),
        }
    }
}

/// Refuses a target with a write-ahead log: SQLite would replay that log into the copy.
fn check_target(shared: &Shared, path: &Path) -> Result<(), SqliteError> {
    let is_same = match (fs::canonicalize(&shared.path), fs::canonicalize(path)) {
        (Ok(source), Ok(target)) => source == target,
        _ => false,
    };
    let has_log = ["-wal", "-journal"].map(|end| beside(path, end).exists());
    match is_same || has_log.contains(&true) {
        true => Err(SqliteError::new(
            SqliteCode::Occupied,
            "it is in use as a database",
        )),
        false => Ok(()),
    }
}

fn finish(unfinished: &Unfinished, path: &Path) -> io::Result<()> {
    File::open(&unfinished.0)?.sync_all()?;
    fs::rename(&unfinished.0, path)?;
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// A path in the same folder: this file's name with a suffix.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    PathBuf::from(name)
}

fn temporary() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!(".{}-{count}.tmp", std::process::id())
}

fn io_error(error: &io::Error) -> SqliteError {
    let code = match error.kind() {
        io::ErrorKind::NotFound => SqliteCode::NotFound,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => SqliteCode::ReadOnly,
        io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge => SqliteCode::Full,
        _ => SqliteCode::Io,
    };
    SqliteError::new(code, error.to_string())
}
