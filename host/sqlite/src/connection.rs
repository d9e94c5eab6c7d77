//! Connections: opening, busy handling and transactions.

use crate::error::{SqliteCode, SqliteError};
use crate::options::{Durability, SqliteOptions};
use crate::schema;
use crate::watch::{LOOK_EVERY, Link, Watch};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};
use std::fs::OpenOptions;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// SQLite `application_id` of our files: `A99S`.
pub(crate) const APPLICATION_ID: i64 = 0x4139_3953;

/// Version of the file layout that this crate writes.
pub(crate) const LAYOUT: i64 = 1;

/// Bytes to which the write-ahead log is truncated after a checkpoint.
const LOG_BYTES: i64 = 16 << 20;

/// Capacity of a connection's statement cache. It exceeds the statements of all components
/// together, so that no statement is prepared repeatedly.
const STATEMENTS: usize = 128;

/// Largest text or blob in bytes: above the store's own limit, and a bound on memory that a
/// hostile file can make a reader allocate.
const VALUE_BYTES: i32 = 256 << 20;

/// Table of component versions, which every component needs.
pub(crate) const LAYOUT_SQL: &[&str] = &["
    CREATE TABLE a99_component (
                 name TEXT PRIMARY KEY,
                 version INTEGER NOT NULL,
                 changes INTEGER NOT NULL
             ) STRICT, WITHOUT ROWID;"];

/// Longest pause between two attempts to get a lock.
const MAX_PAUSE: Duration = Duration::from_millis(10);

/// Opens one of our files, or creates it.
pub(crate) fn open(path: &Path, options: &SqliteOptions) -> Result<Link, SqliteError> {
    opened(path, options, false)
}

/// Like [`open`], for a file in which other programs may keep tables, views and triggers.
pub(crate) fn open_shared(path: &Path, options: &SqliteOptions) -> Result<Link, SqliteError> {
    opened(path, options, true)
}

fn opened(path: &Path, options: &SqliteOptions, is_shared: bool) -> Result<Link, SqliteError> {
    let deadline = Instant::now() + options.busy_timeout;
    let connection = connect(path, options)?;
    retried(deadline, &connection.watch, || {
        prepare(&connection, options, is_shared)
    })?;
    connection.watch.rest();
    Ok(connection)
}

/// Opens a file that [`open`] made, read-only.
pub(crate) fn open_reader(path: &Path, options: &SqliteOptions) -> Result<Link, SqliteError> {
    let deadline = Instant::now() + options.busy_timeout;
    let connection = connect(path, options)?;
    retried(deadline, &connection.watch, || {
        settings(&connection, options)?;
        Ok(connection.execute_batch("PRAGMA query_only = ON")?)
    })?;
    connection.watch.rest();
    Ok(connection)
}

fn connect(path: &Path, options: &SqliteOptions) -> Result<Link, SqliteError> {
    if path.is_dir() {
        return Err(SqliteError::new(SqliteCode::NotFound, "it is a folder"));
    }
    // An absolute path cannot be a URI or the name of an in-memory database.
    let path = std::path::absolute(path)
        .map_err(|error| SqliteError::new(SqliteCode::NotFound, error.to_string()))?;
    let access = match options.is_read_only {
        true => OpenFlags::SQLITE_OPEN_READ_ONLY,
        false => {
            make_private(&path);
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
        }
    };
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    // Set before SQLite parses the schema: the schema is untrusted.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES)?;
    let watch = Watch::until(Instant::now() + options.busy_timeout);
    let scanned = Arc::clone(&watch);
    connection.progress_handler(LOOK_EVERY, Some(move || scanned.must_stop()))?;
    let (timeout, mut since) = (options.busy_timeout, Instant::now());
    let asked = Arc::clone(&watch);
    connection.busy_handler(Some(move |attempts: i32| {
        if attempts == 0 {
            since = Instant::now();
        }
        pause(attempts.unsigned_abs());
        since.elapsed() < timeout && !asked.is_over()
    }))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    if !options.is_read_only && connection.is_readonly(rusqlite::MAIN_DB)? {
        return Err(SqliteError::new(
            SqliteCode::ReadOnly,
            "it can only be read",
        ));
    }
    Ok(Link::new(connection, watch))
}

/// Creates a missing file with access for its owner only; SQLite copies the permissions to the
/// log and its index. Errors are ignored: SQLite reports them when it opens the file.
fn make_private(path: &Path) {
    // Closing any descriptor of a file drops the POSIX locks that SQLite holds on it in this
    // process. The mutex makes each caller open a new file only after this section.
    static MAKING: Mutex<()> = Mutex::new(());
    let making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    drop(options.open(path));
    drop(making);
}

/// Sleeps with linear back-off and jitter.
fn pause(attempts: u32) {
    let base = Duration::from_micros(200).saturating_mul(attempts.saturating_add(1));
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.subsec_nanos());
    let part = nanos.wrapping_mul(0x9E37_79B9) >> 24;
    thread::sleep(base.min(MAX_PAUSE).mul_f64(0.5 + f64::from(part) / 256.0));
}

/// Retries while the database is busy. SQLite refuses some locks without calling the busy
/// handler.
fn retried<T>(
    deadline: Instant,
    watch: &Watch,
    mut f: impl FnMut() -> Result<T, SqliteError>,
) -> Result<T, SqliteError> {
    let mut attempts = 0;
    loop {
        match f() {
            Err(error)
                if error.code() == SqliteCode::Locked
                    && Instant::now() < deadline
                    && !watch.is_over() =>
            {
                pause(attempts);
                attempts += 1;
            }
            result => return result,
        }
    }
}

fn pragma(connection: &Connection, name: &str) -> Result<i64, SqliteError> {
    Ok(connection.pragma_query_value(None, name, |row| row.get(0))?)
}

/// Checks a file before changing it, then prepares it for use.
fn prepare(
    connection: &Connection,
    options: &SqliteOptions,
    is_shared: bool,
) -> Result<(), SqliteError> {
    // One transaction: another process may be initialising the same file.
    connection.execute_batch("BEGIN")?;
    let judged = judge(connection).and_then(|is_new| match (is_new, is_shared) {
        (true, _) => Ok(true),
        (false, false) => schema::screen(connection).map(|()| false),
        (false, true) => schema::check(connection, LAYOUT_SQL).map(|()| false),
    });
    let is_new = end(connection, judged)?;
    if is_new && options.is_read_only {
        let message = "there is nothing in it yet";
        return Err(SqliteError::new(SqliteCode::NotFound, message));
    }
    settings(connection, options)?;
    if is_new {
        lay_out(connection)?;
    }
    if let Some(most) = options.max_file_bytes {
        let pages = most / pragma(connection, "page_size")?.max(1).unsigned_abs();
        let pages = i64::try_from(pages.max(1)).unwrap_or(i64::MAX);
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    Ok(())
}

/// Checks that the file is ours. True if it is still empty.
fn judge(connection: &Connection) -> Result<bool, SqliteError> {
    let application = pragma(connection, "application_id")?;
    let layout = pragma(connection, "user_version")?;
    if application == APPLICATION_ID {
        return check_layout(layout).map(|()| false);
    }
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application == 0 && layout == 0 && tables == 0 {
        return Ok(true);
    }
    let message = "it is a database of another program";
    Err(SqliteError::new(SqliteCode::Foreign, message))
}

fn check_layout(layout: i64) -> Result<(), SqliteError> {
    if layout <= LAYOUT {
        return Ok(());
    }
    let message = format!("its layout is {layout}; this version knows those up to {LAYOUT}");
    Err(SqliteError::new(SqliteCode::Newer, message))
}

fn settings(connection: &Connection, options: &SqliteOptions) -> Result<(), SqliteError> {
    // Otherwise SQLite prepares a statement with `LIMIT ?` anew each time: plans look at
    // values.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // On macOS only `F_FULLFSYNC` flushes the drive's cache.
    let (synchronous, full) = match options.durability {
        Durability::Power => ("FULL", "ON"),
        Durability::Process => ("NORMAL", "OFF"),
        Durability::Relaxed => ("OFF", "OFF"),
    };
    if !options.is_read_only {
        connection.execute_batch("PRAGMA journal_mode = WAL")?;
    }
    connection.execute_batch(&format!(
        "PRAGMA synchronous = {synchronous};
         PRAGMA fullfsync = {full};
         PRAGMA checkpoint_fullfsync = {full};
         PRAGMA journal_size_limit = {LOG_BYTES};
         PRAGMA temp_store = MEMORY;
         PRAGMA cell_size_check = ON;"
    ))?;
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    match mode.as_str() {
        "wal" => Ok(()),
        _ => Err(SqliteError::new(
            SqliteCode::Io,
            "its file system has no memory that processes share",
        )),
    }
}

/// Creates the shared tables unless another process was first.
fn lay_out(connection: &Connection) -> Result<(), SqliteError> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let made = judge(connection).and_then(|is_new| match is_new {
        false => Ok(()),
        true => {
            LAYOUT_SQL
                .iter()
                .try_for_each(|sql| connection.execute_batch(sql))?;
            Ok(connection.execute_batch(&format!(
                "PRAGMA application_id = {APPLICATION_ID};
                 PRAGMA user_version = {LAYOUT};"
            ))?)
        }
    });
    end(connection, made)
}

/// Runs a full checkpoint and waits for the disk, in every durability mode.
pub(crate) fn checkpoint(connection: &Link, options: &SqliteOptions) -> Result<(), SqliteError> {
    connection.execute_batch("PRAGMA synchronous = FULL")?;
    let copied = retried(
        Instant::now() + options.busy_timeout,
        &connection.watch,
        || {
            let is_busy: i64 =
                connection.query_row("PRAGMA wal_checkpoint(FULL)", [], |row| row.get(0))?;
            match is_busy {
                0 => Ok(()),
                _ => Err(SqliteError::new(
                    SqliteCode::Locked,
                    "it is read all the time",
                )),
            }
        },
    );
    settings(connection, options)?;
    copied
}

/// Passive checkpoint: copies what readers do not block. True if the disk has everything.
pub(crate) fn checkpoint_now(
    connection: &Link,
    options: &SqliteOptions,
) -> Result<bool, SqliteError> {
    connection.execute_batch("PRAGMA synchronous = FULL")?;
    let copied = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
        let (is_busy, frames, copied): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(is_busy == 0 && frames >= 0 && frames == copied)
    });
    settings(connection, options)?;
    Ok(copied?)
}

/// Commits on success, rolls back on error.
pub(crate) fn end<T>(
    connection: &Connection,
    result: Result<T, SqliteError>,
) -> Result<T, SqliteError> {
    let result = result.and_then(|output| {
        connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(output)
    });
    if result.is_err() && !connection.is_autocommit() {
        // SQLite has already rolled back after some errors.
        connection.execute_batch("ROLLBACK")?;
    }
    result
}

/// Begins a transaction and takes its lock or snapshot at once, so that later statements never
/// wait.
pub(crate) fn begin(
    connection: &Link,
    sql: &str,
    options: &SqliteOptions,
) -> Result<(), SqliteError> {
    retried(
        Instant::now() + options.busy_timeout,
        &connection.watch,
        || {
            connection.prepare_cached(sql)?.execute([])?;
            // Reading the header takes the snapshot.
            let layout = connection
                .prepare_cached("PRAGMA user_version")
                .and_then(|mut statement| statement.query_row([], |row| row.get(0)));
            let checked = layout.map_err(SqliteError::from).and_then(check_layout);
            if checked.is_err() && !connection.is_autocommit() {
                connection.execute_batch("ROLLBACK")?;
            }
            checked
        },
    )
}
