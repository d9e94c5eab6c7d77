//! SQL of entries in namespaces.

use crate::codec::{self, Stored};
use crate::component::Component;
use crate::error::{SqliteCode, SqliteError};
use crate::key::{Key, TEXT};
use crate::task::Tx;
use a99_capabilities::{Page, Query, StoreLimits, StoreUsage, check_room};
use a99_core::text::Text;
use a99_core::value::Value;
use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Row, params};

/// Bytes that count for an entry, in addition to its key and value.
const ENTRY_BYTES: u64 = 64;

/// Most expired entries, of any namespace, that one write deletes.
const SWEEP: i64 = 32;

/// Most expired entries deleted at once when a namespace needs room.
const LARGE_SWEEP: i64 = 1_000;

/// Entries scanned between two checks for a caller that gave up.
const LOOK: usize = 256;

/// Tables of the store. Triggers maintain the usage of each namespace, so that it is correct
/// for any writer.
pub(crate) static STORE: Component = Component {
    name: "entries",
    migrations: &["
    CREATE TABLE a99_namespace (
        id INTEGER PRIMARY KEY,
        name BLOB UNIQUE, -- NULL is the store itself, which no name is
        keys INTEGER NOT NULL DEFAULT 0,
        bytes INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    INSERT INTO a99_namespace (id, name) VALUES (0, NULL);

    CREATE TABLE a99_entry (
        namespace INTEGER NOT NULL,
        kind INTEGER NOT NULL, -- undefined, null, boolean, number, 4: text, JSON of data
        key BLOB NOT NULL,
        expires REAL, -- milliseconds since 1970
        value ANY NOT NULL, -- JSON text, or a blob where JSON would lose something
        PRIMARY KEY (namespace, kind, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX a99_expires ON a99_entry (expires) WHERE expires IS NOT NULL;

    CREATE TRIGGER a99_entry_added AFTER INSERT ON a99_entry BEGIN
        UPDATE a99_namespace SET keys = keys + 1,
            bytes = bytes + length(NEW.key) + octet_length(NEW.value) + 64
        WHERE id = NEW.namespace;
    END;
    CREATE TRIGGER a99_entry_changed AFTER UPDATE OF value ON a99_entry BEGIN
        UPDATE a99_namespace SET
            bytes = bytes + octet_length(NEW.value) - octet_length(OLD.value)
        WHERE id = NEW.namespace;
    END;
    CREATE TRIGGER a99_entry_removed AFTER DELETE ON a99_entry BEGIN
        UPDATE a99_namespace SET keys = keys - 1,
            bytes = bytes - length(OLD.key) - octet_length(OLD.value) - 64
        WHERE id = OLD.namespace;
    END;

    CREATE VIEW entries AS SELECT
        CAST(a99_namespace.name AS TEXT) AS namespace,
        CASE kind WHEN 4 THEN CAST(key AS TEXT) WHEN 5 THEN CAST(key AS TEXT) ELSE key END AS key,
        value,
        expires
    FROM a99_entry JOIN a99_namespace ON a99_namespace.id = a99_entry.namespace;
    "],
};

/// The id of a namespace, or `None` before the first write. The name `None` is the store
/// itself.
fn find(tx: &Tx<'_>, name: Option<&Text>) -> Result<Option<i64>, SqliteError> {
    let Some(name) = name else {
        return Ok(Some(0));
    };
    let mut find = tx.prepare_cached("SELECT id FROM a99_namespace WHERE name = ?1")?;
    Ok(find
        .query_row([name.as_bytes()], |row| row.get(0))
        .optional()?)
}

fn find_or_make(tx: &Tx<'_>, name: Option<&Text>) -> Result<i64, SqliteError> {
    if let Some(id) = find(tx, name)? {
        return Ok(id);
    }
    let name = name.map(Text::as_bytes);
    tx.execute("INSERT INTO a99_namespace (name) VALUES (?1)", [name])?;
    Ok(tx.last_insert_rowid())
}

/// A namespace in a transaction, with the time that decides expiry.
pub(crate) struct Entries<'a> {
    tx: &'a Tx<'a>,
    id: Option<i64>,
    now_ms: f64,
}

impl<'a> Entries<'a> {
    /// Opens a namespace for reading; one without writes is empty.
    pub(crate) fn read(
        tx: &'a Tx<'a>,
        name: Option<&Text>,
        now_ms: f64,
    ) -> Result<Entries<'a>, SqliteError> {
        let id = find(tx, name)?;
        Ok(Entries { tx, id, now_ms })
    }

    /// Opens a namespace for writing, and deletes some expired entries of any namespace.
    pub(crate) fn write(
        tx: &'a Tx<'a>,
        name: Option<&Text>,
        now_ms: f64,
    ) -> Result<Entries<'a>, SqliteError> {
        let id = Some(find_or_make(tx, name)?);
        let sweep = "DELETE FROM a99_entry WHERE (namespace, kind, key) IN
            (SELECT namespace, kind, key FROM a99_entry WHERE expires <= ?1 LIMIT ?2)";
        tx.prepare_cached(sweep)?.execute(params![now_ms, SWEEP])?;
        Ok(Entries { tx, id, now_ms })
    }

    pub(crate) fn get(&self, key: &Key) -> Result<Value, SqliteError> {
        let sql = "SELECT value FROM a99_entry WHERE namespace = ?1 AND kind = ?2 AND key = ?3
            AND (expires IS NULL OR expires > ?4)";
        let mut get = self.tx.prepare_cached(sql)?;
        let mut rows = get.query(params![self.id, key.kind, key.bytes, self.now_ms])?;
        match rows.next()? {
            Some(row) => codec::decode(row.get_ref(0)?),
            None => Ok(Value::Undefined),
        }
    }

    /// True if the key is set, even to `undefined`.
    fn is_live(&self, key: &Key) -> Result<bool, SqliteError> {
        let sql = "SELECT 1 FROM a99_entry WHERE namespace = ?1 AND kind = ?2 AND key = ?3
            AND (expires IS NULL OR expires > ?4)";
        let mut find = self.tx.prepare_cached(sql)?;
        Ok(find.exists(params![self.id, key.kind, key.bytes, self.now_ms])?)
    }

    pub(crate) fn set(
        &self,
        key: &Key,
        value: &Stored,
        expires_ms: Option<f64>,
        limits: &StoreLimits,
    ) -> Result<(), SqliteError> {
        self.make_room(key, value, limits)?;
        let sql = "INSERT INTO a99_entry (namespace, kind, key, expires, value)
            VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT DO UPDATE SET expires = excluded.expires, value = excluded.value";
        // An expiry of NaN is never in the future, so the entry is expired. SQLite would bind
        // NaN as NULL, which means no expiry.
        let expires = expires_ms.map(|at| if at.is_nan() { f64::NEG_INFINITY } else { at });
        let mut set = self.tx.prepare_cached(sql)?;
        set.execute(params![self.id, key.kind, key.bytes, expires, value])?;
        Ok(())
    }

    /// Deletes expired entries if needed, then refuses an entry beyond the quota.
    fn make_room(
        &self,
        key: &Key,
        value: &Stored,
        limits: &StoreLimits,
    ) -> Result<(), SqliteError> {
        let new = (key.bytes.len() + value.bytes()) as u64 + ENTRY_BYTES;
        loop {
            let held = self.usage()?;
            let old = self.held_by(key)?;
            let bytes = check_room(held.bytes, old.unwrap_or(0), new, limits.max_bytes, "bytes");
            let keys = u64::from(old.is_some());
            let keys = check_room(held.keys, keys, 1, limits.max_keys, "keys");
            let Err(text) = bytes.and(keys) else {
                return Ok(());
            };
            if self.sweep()? == 0 {
                return Err(SqliteError::shown(SqliteCode::Quota, text));
            }
        }
    }

    /// Bytes that an entry counts, expired or not.
    fn held_by(&self, key: &Key) -> Result<Option<u64>, SqliteError> {
        let sql = "SELECT length(key) + octet_length(value) + ?4 FROM a99_entry
            WHERE namespace = ?1 AND kind = ?2 AND key = ?3";
        let mut find = self.tx.prepare_cached(sql)?;
        let found = find.query_row(
            params![self.id, key.kind, key.bytes, ENTRY_BYTES as i64],
            |row| count(row, 0),
        );
        Ok(found.optional()?)
    }

    /// Deletes some expired entries of the namespace; returns their number.
    fn sweep(&self) -> Result<usize, SqliteError> {
        let sql = "DELETE FROM a99_entry WHERE (namespace, kind, key) IN
            (SELECT namespace, kind, key FROM a99_entry
             WHERE expires <= ?1 AND namespace = ?2 LIMIT ?3)";
        let mut sweep = self.tx.prepare_cached(sql)?;
        Ok(sweep.execute(params![self.now_ms, self.id, LARGE_SWEEP])?)
    }

    pub(crate) fn usage(&self) -> Result<StoreUsage, SqliteError> {
        let sql = "SELECT keys, bytes FROM a99_namespace WHERE id = ?1";
        let mut find = self.tx.prepare_cached(sql)?;
        let found = find.query_row([self.id], |row| {
            Ok(StoreUsage {
                keys: count(row, 0)?,
                bytes: count(row, 1)?,
            })
        });
        Ok(found.optional()?.unwrap_or_default())
    }

    pub(crate) fn delete(&self, key: &Key) -> Result<bool, SqliteError> {
        let was_live = self.is_live(key)?;
        let sql = "DELETE FROM a99_entry WHERE namespace = ?1 AND kind = ?2 AND key = ?3";
        let mut delete = self.tx.prepare_cached(sql)?;
        delete.execute(params![self.id, key.kind, key.bytes])?;
        Ok(was_live)
    }

    pub(crate) fn clear(&self) -> Result<(), SqliteError> {
        let sql = "DELETE FROM a99_entry WHERE namespace = ?1";
        self.tx.prepare_cached(sql)?.execute([self.id])?;
        Ok(())
    }

    /// Yields texts with a prefix, from a key on, until `f` has enough.
    fn scan(
        &self,
        from: &[u8],
        end: Option<&[u8]>,
        columns: &str,
        mut f: impl FnMut(&Row<'_>) -> Result<bool, SqliteError>,
    ) -> Result<(), SqliteError> {
        let below = if end.is_some() {
            "AND key < ?4"
        } else {
            "AND ?4 IS NULL"
        };
        let sql = format!(
            "SELECT key, expires, {columns} FROM a99_entry
             WHERE namespace = ?1 AND kind = ?2 AND key >= ?3 {below} ORDER BY key"
        );
        let mut scan = self.tx.prepare_cached(&sql)?;
        let mut rows = scan.query(params![self.id, TEXT, from, end])?;
        let mut looked_at = 0;
        while let Some(row) = rows.next()? {
            if looked_at % LOOK == 0 {
                self.tx.go_on()?;
            }
            looked_at += 1;
            let expires: Option<f64> = row.get(1)?;
            let is_live = expires.is_none_or(|expires| self.now_ms < expires);
            if is_live && !f(row)? {
                break;
            }
        }
        Ok(())
    }

    /// A page of keys; a page that would be too large ends early.
    pub(crate) fn list(&self, mut page: Page, max_bytes: usize) -> Result<Value, SqliteError> {
        let from = match &page.after {
            // The smallest key above the cursor.
            Some(after) if *after >= page.prefix => [after.as_bytes(), &[0]].concat(),
            _ => page.prefix.as_bytes().to_vec(),
        };
        let (end, mut keys, mut bytes) = (page.end(), Vec::new(), 0);
        self.scan(&from, end.as_deref(), "NULL", |row| {
            let key = key(row)?;
            bytes += key.len_bytes();
            keys.push(key);
            if bytes > max_bytes {
                page.limit = page.limit.min(keys.len() - 1).max(1);
            }
            Ok(keys.len() <= page.limit)
        })?;
        Ok(page.answer(keys))
    }

    /// The documents that a query selects; an answer that would be too large ends early.
    pub(crate) fn query(&self, query: Query, max_bytes: usize) -> Result<Value, SqliteError> {
        let all = Page {
            prefix: query.prefix().clone(),
            after: None,
            limit: 1,
        };
        let from = query.first_key().clone();
        let mut selection = query.select().within(max_bytes);
        let end = all.end();
        self.scan(from.as_bytes(), end.as_deref(), "value", |row| {
            let document = codec::decode(row.get_ref(2)?)?;
            selection.offer(&key(row)?, &document);
            Ok(!selection.is_full())
        })?;
        Ok(selection.answer())
    }
}

fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let count: i64 = row.get(column)?;
    Ok(count.max(0).unsigned_abs())
}

fn key(row: &Row<'_>) -> Result<Text, SqliteError> {
    match row.get_ref(0)? {
        ValueRef::Blob(bytes) => Ok(Text::copy_wtf8(bytes)),
        _ => Err(SqliteError::new(SqliteCode::Corrupt, "a key is no blob")),
    }
}
