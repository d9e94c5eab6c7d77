//! Token of a store: new whenever an owner opens or closes it, in its file and in its lock file.
//! A file with a token that the lock file does not know was put in the place of the one that
//! was closed last, though it has the same inode: `cp backup.db agents.db`.
//!
//! A cut between two writes raises no false alarm. Before a token is in the store's file, the
//! lock file knows it beside those before it, and the disk has that; only when the disk has the
//! store's file, the lock file forgets those before. A lock file without tokens knows all. Where
//! the disk is never waited for (`relaxed`), the token stays.

use crate::home::Home;
use crate::lock::FileLock;
use a99_sqlite::rusqlite::OptionalExtension as _;
use a99_sqlite::{Database, SqliteError, Tx};
use std::time::{SystemTime, UNIX_EPOCH};

/// The column that keeps it.
pub(crate) const TOKEN: &str = "ALTER TABLE store_home ADD COLUMN token TEXT";

/// Characters of a token.
pub(crate) const LENGTH: usize = 32;

/// Tokens that a lock file knows at most: where the disk did not take the last ones, the token
/// stays.
const MOST: usize = 8;

/// One that no other opening has: a process opens no file twice in a nanosecond.
fn fresh() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos());
    let text = format!("{nanos:024x}{:08x}", std::process::id());
    debug_assert_eq!(text.len(), LENGTH, "{text}");
    text
}

/// The token of a store's file.
fn read(tx: &Tx<'_>) -> Result<Option<String>, SqliteError> {
    let sql = "SELECT token FROM store_home";
    let token = tx.query_row(sql, [], |row| row.get(0)).optional()?;
    Ok(token.flatten())
}

/// Why a store is another file than the one that was here last, though it has its inode.
pub(crate) fn replaced(
    database: &Database,
    home: &Home,
    lock: &FileLock,
) -> Result<Option<String>, SqliteError> {
    let Some(token) = database.read(read).wait()? else {
        return Ok(None);
    };
    let mut known = lock.tokens(home.inode()).peekable();
    let is_known = known.peek().is_none() || known.any(|known| known == token);
    Ok((!is_known).then(|| {
        format!(
            "{}: it is not as it was left here last: another file was copied over it, as a backup \
             is restored",
            home.shown()
        )
    }))
}

/// Writes to a store, and gives it a new token with that.
///
/// # Errors
/// Those of the write. Where only the lock file cannot be written, the token stays.
pub(crate) fn renewed<T: Send + 'static>(
    database: &Database,
    home: Option<&Home>,
    lock: Option<&mut FileLock>,
    write: impl FnOnce(&Tx<'_>) -> Result<T, SqliteError> + Send + 'static,
) -> Result<T, SqliteError> {
    let (Some(home), Some(lock)) = (home, lock) else {
        return database.write(write).wait();
    };
    let before = database.read(read).wait()?;
    let (next, inode) = (fresh(), home.inode());
    let mut all: Vec<String> = lock.tokens(inode).map(str::to_owned).collect();
    all.extend(before.filter(|before| !all.contains(before)));
    all.push(next.clone());
    if all.len() > MOST || lock.note(inode, all).and_then(|()| lock.sync()).is_err() {
        return database.write(write).wait();
    }
    let token = next.clone();
    let written = database.write(move |tx| {
        let written = write(tx)?;
        tx.execute("UPDATE store_home SET token = ?1", [token])?;
        Ok(written)
    });
    let written = written.wait()?;
    if database.checkpoint_now().wait() == Ok(true) {
        // It knows more than one otherwise.
        drop(lock.note(inode, vec![next]));
    }
    Ok(written)
}
