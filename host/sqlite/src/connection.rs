//! Connections to the file: how they are opened, wait for each other, and begin
//! transactions.

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

/// What says in the header of a file that it is ours: `A99S`.
pub(crate) const APPLICATION_ID: i64 = 0x4139_3953;

/// The layout that this version of the crate writes.
pub(crate) const LAYOUT: i64 = 1;

/// Bytes to which the log beside the file is cut when it was copied into the file.
const LOG_BYTES: i64 = 16 << 20;

/// Statements that a connection keeps prepared: more than the components of a file have
/// together, so that none is prepared again and again.
const STATEMENTS: usize = 128;

/// Bytes of a text or blob at most: more than a store is asked for, and less than a file
/// can make a reader take.
const VALUE_BYTES: i32 = 256 << 20;

/// The table that all components need.
pub(crate) const LAYOUT_SQL: &[&str] = &["
    CREATE TABLE a99_component (
                 name TEXT PRIMARY KEY,
                 version INTEGER NOT NULL,
                 changes INTEGER NOT NULL
             ) STRICT, WITHOUT ROWID;"];

/// Longest pause between two attempts to get a lock.
const MAX_PAUSE: Duration = Duration::from_millis(10);

/// Opens the file as one of ours, and makes it one if there is none.
pub(crate) fn open(path: &Path, options: &SqliteOptions) -> Result<Link, SqliteError> {
    opened(path, options, false)
}

/// The same for a file in which other programs may have tables, views and triggers.
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

/// Opens the file that [`open`] made, to read.
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
    // An absolute path: others may be addresses, or stand for a database in memory.
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
    // Before anything of the file is read: its schema is not to be trusted.
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

/// Makes the file for its owner alone if there is none; SQLite gives its log and index the same
/// permissions. What fails here SQLite says.
fn make_private(path: &Path) {
    // A descriptor of a file that others of the process have open must not be closed: that
    // would drop the locks which SQLite has on it. Each opens a new file only after this.
    static MAKING: Mutex<()> = Mutex::new(());
    let making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    drop(options.open(path));
    drop(making);
}

/// Sleeps longer each time, and never as long as others do.
fn pause(attempts: u32) {
    let base = Duration::from_micros(200).saturating_mul(attempts.saturating_add(1));
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.subsec_nanos());
    let part = nanos.wrapping_mul(0x9E37_79B9) >> 24;
    thread::sleep(base.min(MAX_PAUSE).mul_f64(0.5 + f64::from(part) / 256.0));
}

/// Tries again while others are in the way: some locks are refused without the handler
/// being asked.
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

/// Judges a file before anything of it is changed, then makes it ready.
fn prepare(
    connection: &Connection,
    options: &SqliteOptions,
    is_shared: bool,
) -> Result<(), SqliteError> {
    // In one transaction: another process may be making it ours meanwhile.
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

/// Whether the file is still empty.
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
    // Otherwise a statement with `LIMIT ?` is prepared anew each time: plans look at values.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // On macOS a file is not on the disk until the full form was asked for.
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

/// Writes the tables that all components need; another process may be first.
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

/// Copies the log into the file, and waits until the disk has it, in any durability.
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

/// The same as far as it goes at once, while others read. Whether the disk has all of it.
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

/// Commits what succeeded, and rolls back what did not.
pub(crate) fn end<T>(
    connection: &Connection,
    result: Result<T, SqliteError>,
) -> Result<T, SqliteError> {
    let result = result.and_then(|output| {
        connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(output)
    });
    if result.is_err() && !connection.is_autocommit() {
        // After some errors SQLite has done so itself.
        connection.execute_batch("ROLLBACK")?;
    }
    result
}

/// Begins a transaction and takes what it needs, so that nothing in it waits for others.
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
            // Reads the header, and with it takes the snapshot.
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
