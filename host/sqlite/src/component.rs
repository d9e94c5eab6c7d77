//! Components of a file: what keeps tables of its own in it, each with its version.

use crate::error::{SqliteCode, SqliteError};
use crate::schema;
use crate::task::Tx;
use rusqlite::{OptionalExtension, params};

/// What keeps tables in a file: a name, and the migrations that make and change them.
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
    /// A name that no other component of the file has.
    pub name: &'static str,
    /// SQL texts, each of which leads from a version to the next; an empty file has
    /// version 0. They are never changed once files exist, only added to.
    pub migrations: &'static [&'static str],
}

impl Component {
    /// How many migrations the file has had; zero before the component is there.
    ///
    /// # Errors
    /// Those of reading.
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

    /// Whether the file has all migrations: then [`Database::migrate`] does nothing, and need
    /// not wait for others who write.
    ///
    /// [`Database::migrate`]: crate::Database::migrate
    ///
    /// # Errors
    /// [`SqliteCode::Newer`] if it has more than this version knows, [`SqliteCode::Foreign`]
    /// if its tables, or what acts on them, are not as the migrations make them.
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

    /// Applies what the file lacks.
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

    /// How often the component's tables were changed, by any process: whoever keeps a
    /// copy reads this in the transaction in which it uses the copy. Zero before the
    /// component is there.
    ///
    /// # Errors
    /// Those of reading.
    pub fn changes(&self, tx: &Tx<'_>) -> Result<i64, SqliteError> {
        let mut find = tx.prepare_cached("SELECT changes FROM a99_component WHERE name = ?1")?;
        Ok(find
            .query_row([self.name], |row| row.get(0))
            .optional()?
            .unwrap_or(0))
    }

    /// Counts a change, in the transaction that makes it.
    ///
    /// # Errors
    /// Those of writing.
    pub fn changed(&self, tx: &Tx<'_>) -> Result<(), SqliteError> {
        let sql = "UPDATE a99_component SET changes = changes + 1 WHERE name = ?1";
        tx.prepare_cached(sql)?.execute([self.name])?;
        Ok(())
    }
}
