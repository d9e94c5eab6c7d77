//! Components: groups of tables in a file, each with a version.

use crate::error::{SqliteCode, SqliteError};
use crate::schema;
use crate::task::Tx;
use rusqlite::{OptionalExtension, params};

/// A named group of tables, and the migrations that create and change them.
///
/// ```
/// use a99_sqlite::{Component, Database, SqliteOptions};
///
/// static NOTES: Component = Component {
///     name: "notes",
///     migrations: &["CREATE TABLE notes (note TEXT NOT NULL) STRICT"],
/// };
///
/// # let folder = tempfile::tempdir()?;
/// let database = Database::open(folder.path().join("a.db"), SqliteOptions::default())?;
/// database.migrate(&NOTES).wait()?;
/// let write = database.write(|tx| {
///     tx.execute("INSERT INTO notes VALUES (?1)", ["remember"])?;
///     NOTES.changed(tx)
/// });
/// write.wait()?;
/// assert_eq!(database.read(|tx| NOTES.changes(tx)).wait()?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Unique name of the component in the file.
    pub name: &'static str,
    /// SQL texts; each migrates from one version to the next. An empty file has version 0. Once
    /// files exist, migrations are only appended, never changed.
    pub migrations: &'static [&'static str],
}

impl Component {
    /// Number of migrations applied to the file; zero before the component exists.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn version(&self, tx: &Tx<'_>) -> Result<i64, SqliteError> {
        let mut find = tx.prepare_cached("SELECT version FROM a99_component WHERE name = ?1")?;
        Ok(find
            .query_row([self.name], |row| row.get(0))
            .optional()?
            .unwrap_or(0))
    }

    fn known(&self) -> i64 {
        i64::try_from(self.migrations.len()).unwrap_or(i64::MAX)
    }

    /// True if the file has all migrations. [`Database::migrate`] then does nothing, and need
    /// not wait for other writers.
    ///
    /// [`Database::migrate`]: crate::Database::migrate
    ///
    /// # Errors
    /// [`SqliteCode::Newer`] if the file has more migrations than this version knows,
    /// [`SqliteCode::Foreign`] if its tables, or the triggers, views and indexes on them,
    /// differ from the migrations' result.
    pub fn is_current(&self, tx: &Tx<'_>) -> Result<bool, SqliteError> {
        let (found, known) = (self.version(tx)?, self.known());
        if found > known {
            let name = self.name;
            let message = format!("its {name} have version {found}; this one knows {known}");
            return Err(SqliteError::new(SqliteCode::Newer, message));
        }
        let applied = usize::try_from(found).unwrap_or_default();
        schema::check(tx, self.migrations.get(..applied).unwrap_or_default())?;
        Ok(found == known)
    }

    /// Applies the missing migrations.
    pub(crate) fn migrate(&self, tx: &Tx<'_>) -> Result<(), SqliteError> {
        if self.is_current(tx)? {
            return Ok(());
        }
        let from = self.version(tx)?;
        for (_, migration) in (0..).zip(self.migrations).filter(|(n, _)| *n >= from) {
            tx.execute_batch(migration)?;
        }
        tx.execute(
            "INSERT INTO a99_component (name, version, changes) VALUES (?1, ?2, 0)
             ON CONFLICT DO UPDATE SET version = excluded.version",
            params![self.name, self.known()],
        )?;
        Ok(())
    }

    /// Number of changes to the component's tables, by any process. A cache compares it in the
    /// transaction that uses the cached copy. Zero before the component exists.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn changes(&self, tx: &Tx<'_>) -> Result<i64, SqliteError> {
        let mut find = tx.prepare_cached("SELECT changes FROM a99_component WHERE name = ?1")?;
        Ok(find
            .query_row([self.name], |row| row.get(0))
            .optional()?
            .unwrap_or(0))
    }

    /// Increments the change counter, in the transaction of the change.
    ///
    /// # Errors
    /// Errors of writing.
    pub fn changed(&self, tx: &Tx<'_>) -> Result<(), SqliteError> {
        let sql = "UPDATE a99_component SET changes = changes + 1 WHERE name = ?1";
        tx.prepare_cached(sql)?.execute([self.name])?;
        Ok(())
    }
}
