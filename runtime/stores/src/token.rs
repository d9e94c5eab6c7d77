//! Token of a store: renewed whenever an owner opens or closes it, in its file and in its lock
//! file. A file with a token that the lock file does not know replaced the one that was closed
//! last, even with the same inode: `cp backup.db agents.db`.
//!
//! A crash between two writes raises no false alarm. Before a new token is written to the
//! store's file, the lock file on disk has it beside the earlier ones. Only when the store's
//! file is on disk, the earlier ones are removed from the lock file. A lock file without tokens
//! accepts any. With `relaxed` durability, which never waits for the disk, the token stays the
//! same.

use crate::home::Home;
use crate::lock::FileLock;
use a99_sqlite::rusqlite::OptionalExtension as _;
use a99_sqlite::{Database, SqliteError, Tx};
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const TOKEN: &str = "ALTER TABLE store_home ADD COLUMN token TEXT";

/// Characters of a token.
pub(crate) const LENGTH: usize = 32;

/// Maximum tokens in a lock file. If the disk refused the last ones, the token stays the same.
const MOST: usize = 8;

/// A unique token: a process opens no file twice in a nanosecond.
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

/// Why the store is not the file that was here last, although it has its inode.
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

/// Writes to a store together with a new token.
///
/// # Errors
/// Those of the write. If only the lock file cannot be written, the token stays the same.
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
        // On failure the lock file keeps several tokens, which is harmless.
        drop(lock.note(inode, vec![next]));
    }
    Ok(written)
}
