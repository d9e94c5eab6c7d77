//! Tables of collections and documents: the SQL of the store.

use super::document::{DOCUMENT_BYTES, Row};
use super::limits::{VectorLimits, VectorUsage};
use crate::MAX_DIMENSION;
use a99_capabilities::vectors::unknown_collection;
use a99_core::text::Text;
use a99_sqlite::rusqlite::{self, OptionalExtension, params};
use a99_sqlite::{Component, SqliteCode, SqliteError, Tx};

/// Bytes that a collection counts beside its name: it has a log.
const COLLECTION_BYTES: u64 = 1_024;

/// Bits of a row that number it in its collection; those above say which that is.
const NUMBER_BITS: u32 = 36;

/// Collections of a file, and documents of a collection, that may ever be made.
const MAX_COLLECTION: i64 = 1 << (62 - NUMBER_BITS);
const MAX_NUMBER: i64 = (1 << NUMBER_BITS) - 1;

/// Changes that a log keeps, at least, and one for so many documents.
const MIN_LOG: u64 = 32;
const DOCUMENTS_A_CHANGE: u64 = 4;

/// The tables. Rows of a collection lie together, in the order in which they were added.
///
/// Each change of a collection raises its version and is in its log, so that whoever has a
/// copy of an earlier version reads only what changed since. The log does not reach back
/// below a version, its floor. Triggers count what there is.
pub(crate) static VECTORS: Component = Component {
    name: "vectors",
    migrations: &["
    CREATE TABLE vector_namespace (
        id INTEGER PRIMARY KEY,
        name BLOB UNIQUE, -- NULL is the store itself, which no name is
        documents INTEGER NOT NULL DEFAULT 0,
        bytes INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    INSERT INTO vector_namespace (id, name) VALUES (0, NULL);

    CREATE TABLE vector_collection (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        namespace INTEGER NOT NULL,
        name BLOB NOT NULL,
        dimension INTEGER, -- NULL until there was a document
        documents INTEGER NOT NULL DEFAULT 0,
        added INTEGER NOT NULL DEFAULT 0, -- documents that ever were
        version INTEGER NOT NULL DEFAULT 0,
        floor INTEGER NOT NULL DEFAULT 0,
        UNIQUE (namespace, name)
    ) STRICT;

    CREATE TABLE vector_document (
        row INTEGER PRIMARY KEY, -- collection << 36 | number
        collection INTEGER NOT NULL,
        id BLOB, -- NULL if it is no text
        embedding BLOB NOT NULL, -- doubles or floats, little-endian
        value ANY NOT NULL -- JSON text, or a blob where JSON would lose something
    ) STRICT;
    CREATE INDEX vector_document_id ON vector_document (collection, id) WHERE id IS NOT NULL;

    CREATE TABLE vector_change (
        collection INTEGER NOT NULL,
        version INTEGER NOT NULL,
        row INTEGER NOT NULL,
        PRIMARY KEY (collection, version, row)
    ) STRICT, WITHOUT ROWID;

    CREATE TRIGGER vector_collection_added AFTER INSERT ON vector_collection BEGIN
        UPDATE vector_namespace SET bytes = bytes + length(NEW.name) + 1024
        WHERE id = NEW.namespace;
    END;
    CREATE TRIGGER vector_collection_removed AFTER DELETE ON vector_collection BEGIN
        UPDATE vector_namespace SET bytes = bytes - length(OLD.name) - 1024
        WHERE id = OLD.namespace;
    END;
    CREATE TRIGGER vector_document_added AFTER INSERT ON vector_document BEGIN
        UPDATE vector_collection SET documents = documents + 1 WHERE id = NEW.collection;
        UPDATE vector_namespace SET documents = documents + 1,
            bytes = bytes + length(NEW.embedding) + octet_length(NEW.value)
                + ifnull(length(NEW.id), 0) + 128
        WHERE id = (SELECT namespace FROM vector_collection WHERE id = NEW.collection);
    END;
    CREATE TRIGGER vector_document_changed AFTER UPDATE OF embedding, value ON vector_document
    BEGIN
        UPDATE vector_namespace SET bytes = bytes
            + length(NEW.embedding) + octet_length(NEW.value)
            - length(OLD.embedding) - octet_length(OLD.value)
        WHERE id = (SELECT namespace FROM vector_collection WHERE id = NEW.collection);
    END;
    CREATE TRIGGER vector_document_removed AFTER DELETE ON vector_document BEGIN
        UPDATE vector_collection SET documents = documents - 1 WHERE id = OLD.collection;
        UPDATE vector_namespace SET documents = documents - 1,
            bytes = bytes - length(OLD.embedding) - octet_length(OLD.value)
                - ifnull(length(OLD.id), 0) - 128
        WHERE id = (SELECT namespace FROM vector_collection WHERE id = OLD.collection);
    END;
    "],
};

/// A collection as a transaction sees it.
pub(crate) struct Collection {
    pub(crate) id: i64,
    namespace: i64,
    pub(crate) dimension: Option<usize>,
    pub(crate) documents: u64,
    added: i64,
    pub(crate) version: i64,
    /// The log has what came after this version.
    pub(crate) floor: i64,
}

impl Collection {
    /// The collection of a name.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn find(
        tx: &Tx<'_>,
        namespace: Option<&Text>,
        name: &Text,
    ) -> Result<Collection, SqliteError> {
        let found = find_namespace(tx, namespace)?.map(|id| Collection::of(tx, id, name));
        match found.transpose()?.flatten() {
            Some(collection) => Ok(collection),
            None => Err(unknown_collection(name).into()),
        }
    }

    fn of(tx: &Tx<'_>, namespace: i64, name: &Text) -> Result<Option<Collection>, SqliteError> {
        let sql = "SELECT id, dimension, documents, added, version, floor
            FROM vector_collection WHERE namespace = ?1 AND name = ?2";
        let mut find = tx.prepare_cached(sql)?;
        let mut rows = find.query(params![namespace, name.as_bytes()])?;
        let Some(row) = rows.next()? else {
            return Ok(None);
        };
        let dimension: Option<i64> = row.get(1)?;
        let dimension = dimension.map(|numbers| match usize::try_from(numbers) {
            Ok(numbers @ 1..=MAX_DIMENSION) => Ok(numbers),
            _ => Err(damaged("a collection has a dimension that is none")),
        });
        Ok(Some(Collection {
            id: row.get(0)?,
            namespace,
            dimension: dimension.transpose()?,
            documents: count(row, 2)?,
            added: row.get(3)?,
            version: row.get(4)?,
            floor: row.get(5)?,
        }))
    }

    /// Makes a collection, or empties the one that there is.
    pub(crate) fn make(
        tx: &Tx<'_>,
        namespace: Option<&Text>,
        name: &Text,
        dimension: Option<usize>,
        limits: &VectorLimits,
    ) -> Result<(), SqliteError> {
        let namespace = find_or_make_namespace(tx, namespace)?;
        let dimension = dimension.map(|numbers| numbers as i64);
        if let Some(collection) = Collection::of(tx, namespace, name)? {
            remove_rows(tx, collection.id)?;
            let sql = "UPDATE vector_collection
                SET dimension = ?2, version = version + 1, floor = version + 1 WHERE id = ?1";
            tx.prepare_cached(sql)?
                .execute(params![collection.id, dimension])?;
            return Ok(());
        }
        let new = VectorUsage {
            documents: 0,
            bytes: name.len_bytes() as u64 + COLLECTION_BYTES,
        };
        make_room(tx, namespace, new, VectorUsage::default(), limits)?;
        let sql = "INSERT INTO vector_collection (namespace, name, dimension) VALUES (?1, ?2, ?3)";
        tx.prepare_cached(sql)?
            .execute(params![namespace, name.as_bytes(), dimension])?;
        match tx.last_insert_rowid() < MAX_COLLECTION {
            true => Ok(()),
            false => Err(all_numbered("collections")),
        }
    }

    /// The first of its rows, and the last that there may be.
    pub(crate) fn rows(&self) -> (i64, i64) {
        rows_of(self.id)
    }

    /// Adds a document behind all others.
    pub(crate) fn add(
        &mut self,
        tx: &Tx<'_>,
        row: &Row,
        limits: &VectorLimits,
    ) -> Result<(), SqliteError> {
        let new = VectorUsage {
            documents: 1,
            bytes: row.bytes(),
        };
        make_room(tx, self.namespace, new, VectorUsage::default(), limits)?;
        self.added = self.added.saturating_add(1);
        if self.added > MAX_NUMBER {
            return Err(all_numbered("documents"));
        }
        let at = self.rows().0 | self.added;
        let sql = "INSERT INTO vector_document (row, collection, id, embedding, value)
            VALUES (?1, ?2, ?3, ?4, ?5)";
        tx.prepare_cached(sql)?
            .execute(params![at, self.id, row.id, row.embedding, row.value])?;
        self.documents += 1;
        self.log(tx, &[at])
    }

    /// Puts a document in the place of the first with the same `id`, and removes all others
    /// with it.
    pub(crate) fn replace(
        &mut self,
        tx: &Tx<'_>,
        row: &Row,
        limits: &VectorLimits,
    ) -> Result<(), SqliteError> {
        let id = row.id.as_deref().unwrap_or_default();
        let held = self.held_by(tx, id)?;
        let Some((first, others)) = held.rows.split_first() else {
            return self.add(tx, row, limits);
        };
        let new = VectorUsage {
            documents: 1,
            bytes: row.bytes(),
        };
        make_room(tx, self.namespace, new, held.usage(), limits)?;
        self.remove(tx, others)?;
        let sql = "UPDATE vector_document SET embedding = ?2, value = ?3 WHERE row = ?1";
        tx.prepare_cached(sql)?
            .execute(params![first, row.embedding, row.value])?;
        self.log(tx, &held.rows)
    }

    /// Removes all documents with an `id`; whether there was one.
    pub(crate) fn delete(&mut self, tx: &Tx<'_>, id: &[u8]) -> Result<bool, SqliteError> {
        let held = self.held_by(tx, id)?;
        if held.rows.is_empty() {
            return Ok(false);
        }
        self.remove(tx, &held.rows)?;
        self.log(tx, &held.rows)?;
        Ok(true)
    }

    fn remove(&mut self, tx: &Tx<'_>, rows: &[i64]) -> Result<(), SqliteError> {
        let mut remove = tx.prepare_cached("DELETE FROM vector_document WHERE row = ?1")?;
        for row in rows {
            remove.execute([row])?;
        }
        self.documents = self.documents.saturating_sub(rows.len() as u64);
        Ok(())
    }

    fn held_by(&self, tx: &Tx<'_>, id: &[u8]) -> Result<Held, SqliteError> {
        let sql = "SELECT row, length(id) + length(embedding) + octet_length(value)
            FROM vector_document WHERE collection = ?1 AND id = ?2 ORDER BY row";
        let mut find = tx.prepare_cached(sql)?;
        let mut rows = find.query(params![self.id, id])?;
        let mut held = Held::default();
        while let Some(row) = rows.next()? {
            held.rows.push(row.get(0)?);
            held.bytes += count(row, 1)? + DOCUMENT_BYTES;
        }
        Ok(held)
    }

    /// Notes a change of rows. A log that gets long loses its older part, and one that
    /// would get long by this change alone is left empty: then copies are read anew.
    fn log(&mut self, tx: &Tx<'_>, rows: &[i64]) -> Result<(), SqliteError> {
        self.version = self.version.saturating_add(1);
        let keep = MIN_LOG.max(self.documents / DOCUMENTS_A_CHANGE);
        if rows.len() as u64 > keep {
            self.floor = self.version;
        } else if self.version.abs_diff(self.floor) > 2 * keep {
            self.floor = self.version.saturating_sub_unsigned(keep);
        }
        let sql = "UPDATE vector_collection SET added = ?2, version = ?3, floor = ?4 WHERE id = ?1";
        tx.prepare_cached(sql)?
            .execute([self.id, self.added, self.version, self.floor])?;
        let sql = "DELETE FROM vector_change WHERE collection = ?1 AND version <= ?2";
        tx.prepare_cached(sql)?.execute([self.id, self.floor])?;
        if self.floor < self.version {
            let sql = "INSERT INTO vector_change (collection, version, row) VALUES (?1, ?2, ?3)";
            let mut insert = tx.prepare_cached(sql)?;
            for row in rows {
                insert.execute([self.id, self.version, *row])?;
            }
        }
        Ok(())
    }

    /// The first document says how many numbers all have.
    pub(crate) fn fix_dimension(&mut self, tx: &Tx<'_>, numbers: usize) -> Result<(), SqliteError> {
        if self.dimension.is_none() {
            self.dimension = Some(numbers);
            let sql = "UPDATE vector_collection SET dimension = ?2 WHERE id = ?1";
            tx.prepare_cached(sql)?.execute([self.id, numbers as i64])?;
        }
        Ok(())
    }
}

/// The documents with an `id`.
#[derive(Default)]
struct Held {
    rows: Vec<i64>,
    bytes: u64,
}

impl Held {
    fn usage(&self) -> VectorUsage {
        VectorUsage {
            documents: self.rows.len() as u64,
            bytes: self.bytes,
        }
    }
}

pub(crate) fn damaged(message: &str) -> SqliteError {
    SqliteError::new(SqliteCode::Corrupt, message)
}

fn all_numbered(what: &str) -> SqliteError {
    let text = format!("Store is full: it has no numbers left for {what}");
    SqliteError::shown(SqliteCode::Quota, text)
}

fn count(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let count: i64 = row.get(column)?;
    Ok(count.max(0).unsigned_abs())
}

fn find_namespace(tx: &Tx<'_>, name: Option<&Text>) -> Result<Option<i64>, SqliteError> {
    let Some(name) = name else {
        return Ok(Some(0));
    };
    let mut find = tx.prepare_cached("SELECT id FROM vector_namespace WHERE name = ?1")?;
    Ok(find
        .query_row([name.as_bytes()], |row| row.get(0))
        .optional()?)
}

fn find_or_make_namespace(tx: &Tx<'_>, name: Option<&Text>) -> Result<i64, SqliteError> {
    if let Some(id) = find_namespace(tx, name)? {
        return Ok(id);
    }
    let name = name.map(Text::as_bytes);
    tx.execute("INSERT INTO vector_namespace (name) VALUES (?1)", [name])?;
    Ok(tx.last_insert_rowid())
}

fn held(tx: &Tx<'_>, namespace: i64) -> Result<VectorUsage, SqliteError> {
    let sql = "SELECT documents, bytes FROM vector_namespace WHERE id = ?1";
    let mut find = tx.prepare_cached(sql)?;
    let found = find.query_row([namespace], |row| {
        Ok(VectorUsage {
            documents: count(row, 0)?,
            bytes: count(row, 1)?,
        })
    });
    Ok(found.optional()?.unwrap_or_default())
}

/// What a namespace holds: nothing if nobody wrote to it.
pub(crate) fn usage(tx: &Tx<'_>, namespace: Option<&Text>) -> Result<VectorUsage, SqliteError> {
    match find_namespace(tx, namespace)? {
        Some(id) => held(tx, id),
        None => Ok(VectorUsage::default()),
    }
}

/// Refuses what the namespace has no room for, in place of something old.
fn make_room(
    tx: &Tx<'_>,
    namespace: i64,
    new: VectorUsage,
    old: VectorUsage,
    limits: &VectorLimits,
) -> Result<(), SqliteError> {
    let held = held(tx, namespace)?;
    let after = |held: u64, old: u64, new: u64| held.saturating_sub(old).saturating_add(new);
    let bytes = after(held.bytes, old.bytes, new.bytes);
    let documents = after(held.documents, old.documents, new.documents);
    // Limits may be lower than when it was filled: who takes less may go on.
    let limit = if bytes > limits.max_bytes && bytes > held.bytes {
        format!("{} bytes", limits.max_bytes)
    } else if documents > limits.max_documents && documents > held.documents {
        format!("{} documents", limits.max_documents)
    } else {
        return Ok(());
    };
    let text = format!("Store is full: the limit is {limit}");
    Err(SqliteError::shown(SqliteCode::Quota, text))
}

/// Removes all collections of a namespace.
pub(crate) fn clear(tx: &Tx<'_>, namespace: Option<&Text>) -> Result<(), SqliteError> {
    let Some(namespace) = find_namespace(tx, namespace)? else {
        return Ok(());
    };
    let mut find = tx.prepare_cached("SELECT id FROM vector_collection WHERE namespace = ?1")?;
    let ids = find.query_map([namespace], |row| row.get(0))?;
    for id in ids.collect::<Result<Vec<i64>, _>>()? {
        remove_rows(tx, id)?;
    }
    let sql = "DELETE FROM vector_collection WHERE namespace = ?1";
    tx.prepare_cached(sql)?.execute([namespace])?;
    Ok(())
}

/// The first row of a collection, and the last that there may be.
fn rows_of(collection: i64) -> (i64, i64) {
    let first = collection << NUMBER_BITS;
    (first, first | MAX_NUMBER)
}

fn remove_rows(tx: &Tx<'_>, collection: i64) -> Result<(), SqliteError> {
    let (first, last) = rows_of(collection);
    let sql = "DELETE FROM vector_document WHERE row BETWEEN ?1 AND ?2";
    tx.prepare_cached(sql)?.execute([first, last])?;
    let sql = "DELETE FROM vector_change WHERE collection = ?1";
    tx.prepare_cached(sql)?.execute([collection])?;
    Ok(())
}
