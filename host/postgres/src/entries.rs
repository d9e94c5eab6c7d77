//! Queries of the entries in namespaces, and the split of long keys.

use crate::error::{PostgresCode, PostgresError};
use crate::pool::{Call, Connection};
use a99_capabilities::{Page, Query, StoreLimits, StoreUsage, StoredKey, StoredValue, full_text};
use a99_core::text::Text;
use a99_core::value::Value;
use futures_util::TryStreamExt;
use std::pin::pin;
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, IsolationLevel, Row, Statement};

/// Bytes of a key that its index holds; `schema.sql` uses the same number.
const HEAD: usize = 1_000;

/// Documents that a query fetches from the server at once.
const CHUNK: usize = 256;

const GET: &str = "SELECT value FROM a99_entry
    WHERE namespace = (
            SELECT id FROM a99_namespace WHERE digest = coalesce(sha256($1), ''::bytea)
        )
        AND kind = $2 AND head = $3 AND tail = $4
        AND digest = CASE WHEN $4 = ''::bytea THEN ''::bytea ELSE sha256($4) END
        AND (expires IS NULL OR expires > $5)";

const PUT: &str = "SELECT outcome, present
    FROM a99_put_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";

const DELETE: &str = "SELECT a99_delete_1($1, $2, $3, $4, $5)";

const CLEAR: &str = "SELECT a99_clear_1($1)";

const USAGE: &str = "SELECT keys, bytes FROM a99_namespace
    WHERE digest = coalesce(sha256($1), ''::bytea)";

/// Common part of both kinds of ranges: texts from a key on, in order.
macro_rules! range {
    ($columns:literal, $below:literal, $limit:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM a99_entry WHERE namespace = (
                SELECT id FROM a99_namespace WHERE digest = coalesce(sha256($1), ''::bytea)
            )
            AND kind = 4 AND head >= $2 AND (head > $2 OR tail >= $3)
            AND (expires IS NULL OR expires > $4) ",
            $below,
            " ORDER BY head, tail LIMIT ",
            $limit
        )
    };
}

const KEYS_BELOW: &str = range!(
    "head, tail",
    "AND head <= $6 AND (head < $6 OR tail < $7)",
    "$5"
);
const KEYS: &str = range!("head, tail", "", "$5");
const DOCUMENTS_BELOW: &str = range!(
    "head, tail, value",
    "AND head <= $6 AND (head < $6 OR tail < $7)",
    "$5"
);
const DOCUMENTS: &str = range!("head, tail, value", "", "$5");

/// Splits a key as the tables store it.
fn parts(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.len().min(HEAD))
}

fn kind(key: &StoredKey) -> i16 {
    i16::from(key.kind)
}

/// A namespace, where `None` is the store itself, with the time that decides expiry.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) name: Option<Text>,
    pub(crate) now_ms: f64,
}

impl Place {
    fn name(&self) -> Option<&[u8]> {
        self.name.as_ref().map(Text::as_bytes)
    }
}

/// Reads the stored bytes of a key's value.
pub(crate) struct Get {
    pub(crate) place: Place,
    pub(crate) key: StoredKey,
}

impl Call for Get {
    type Output = Option<Vec<u8>>;
    const WRITES: bool = false;

    async fn run(&self, connection: &mut Connection) -> Result<Self::Output, PostgresError> {
        let get = connection.prepare(GET).await?;
        let (head, tail) = parts(&self.key.bytes);
        let (name, kind, now) = (self.place.name(), kind(&self.key), self.place.now_ms);
        let params: [&(dyn ToSql + Sync); 5] = [&name, &kind, &head, &tail, &now];
        match connection.client.query_opt(&get, &params).await? {
            Some(row) => Ok(Some(row.try_get(0)?)),
            None => Ok(None),
        }
    }
}

/// Sets a key, optionally by compare-and-set.
pub(crate) struct Put {
    pub(crate) place: Place,
    pub(crate) key: StoredKey,
    pub(crate) value: StoredValue,
    pub(crate) expires_ms: Option<f64>,
    pub(crate) limits: StoreLimits,
    /// Compare-and-set: bytes of the expected value; the inner `None` expects an unset key.
    pub(crate) expected: Option<Option<Vec<u8>>>,
}

/// Result of a [`Put`].
pub(crate) enum Outcome {
    Done,
    /// The current value differs: its bytes, or `None` for an unset key.
    Other(Option<Vec<u8>>),
}

impl Call for Put {
    type Output = Outcome;
    const WRITES: bool = true;

    async fn run(&self, connection: &mut Connection) -> Result<Outcome, PostgresError> {
        let put = connection.prepare(PUT).await?;
        let (head, tail) = parts(&self.key.bytes);
        let (name, kind, now) = (self.place.name(), kind(&self.key), self.place.now_ms);
        let value = self.value.as_bytes();
        // An expiry of NaN is never in the future, so the entry is expired; PostgreSQL sorts
        // NaN after all other numbers.
        let expires = self
            .expires_ms
            .map(|at| if at.is_nan() { f64::NEG_INFINITY } else { at });
        let (max_keys, max_bytes) = (count(self.limits.max_keys), count(self.limits.max_bytes));
        let compare = self.expected.is_some();
        let expected = self.expected.as_ref().and_then(Option::as_deref);
        let params: [&(dyn ToSql + Sync); 11] = [
            &name, &kind, &head, &tail, &value, &expires, &now, &max_keys, &max_bytes, &compare,
            &expected,
        ];
        let row = connection.client.query_one(&put, &params).await?;
        let text = match row.try_get::<_, i16>(0)? {
            0 => return Ok(Outcome::Done),
            1 => return Ok(Outcome::Other(row.try_get(1)?)),
            2 => full_text(self.limits.max_bytes, "bytes"),
            _ => full_text(self.limits.max_keys, "keys"),
        };
        Err(PostgresError::shown(PostgresCode::Quota, text))
    }
}

fn count(limit: u64) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Deletes a key; returns whether it existed.
pub(crate) struct Delete {
    pub(crate) place: Place,
    pub(crate) key: StoredKey,
}

impl Call for Delete {
    type Output = bool;
    const WRITES: bool = true;

    async fn run(&self, connection: &mut Connection) -> Result<bool, PostgresError> {
        let delete = connection.prepare(DELETE).await?;
        let (head, tail) = parts(&self.key.bytes);
        let (name, kind, now) = (self.place.name(), kind(&self.key), self.place.now_ms);
        let params: [&(dyn ToSql + Sync); 5] = [&name, &kind, &head, &tail, &now];
        let row = connection.client.query_one(&delete, &params).await?;
        Ok(row.try_get(0)?)
    }
}

/// Deletes all entries of a namespace.
pub(crate) struct Clear(pub(crate) Place);

impl Call for Clear {
    type Output = ();
    const WRITES: bool = true;

    async fn run(&self, connection: &mut Connection) -> Result<(), PostgresError> {
        let clear = connection.prepare(CLEAR).await?;
        connection
            .client
            .query_one(&clear, &[&self.0.name()])
            .await?;
        Ok(())
    }
}

/// Usage of a namespace; zero before the first write.
pub(crate) struct Count(pub(crate) Place);

impl Call for Count {
    type Output = StoreUsage;
    const WRITES: bool = false;

    async fn run(&self, connection: &mut Connection) -> Result<StoreUsage, PostgresError> {
        let usage = connection.prepare(USAGE).await?;
        let name = self.0.name();
        let Some(row) = connection.client.query_opt(&usage, &[&name]).await? else {
            return Ok(StoreUsage::default());
        };
        let count = |at: usize| row.try_get::<_, i64>(at).map(|n| n.max(0).unsigned_abs());
        Ok(StoreUsage {
            keys: count(0)?,
            bytes: count(1)?,
        })
    }
}

/// Rows of texts from a start key to below an end.
struct Range<'a> {
    place: &'a Place,
    from: &'a [u8],
    end: Option<&'a [u8]>,
    limit: usize,
}

impl Range<'_> {
    /// Yields the rows in order until `f` has enough; returns their number.
    async fn each(
        &self,
        client: &impl GenericClient,
        statement: &Statement,
        mut f: impl FnMut(&Row) -> Result<bool, PostgresError> + Send,
    ) -> Result<usize, PostgresError> {
        let (name, now) = (self.place.name(), self.place.now_ms);
        let (head, tail) = parts(self.from);
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let mut params: Vec<&(dyn ToSql + Sync)> = vec![&name, &head, &tail, &now, &limit];
        let end = self.end.map(parts);
        if let Some((head, tail)) = &end {
            params.extend([head as &(dyn ToSql + Sync), tail]);
        }
        let rows = client.query_raw(statement, params).await?;
        let mut rows = pin!(rows);
        let mut count = 0;
        while let Some(row) = rows.try_next().await? {
            count += 1;
            if !f(&row)? {
                break;
            }
        }
        Ok(count)
    }
}

fn key(row: &Row) -> Result<Text, PostgresError> {
    let (head, tail): (&[u8], &[u8]) = (row.try_get(0)?, row.try_get(1)?);
    Ok(Text::from_wtf8([head, tail].concat()))
}

/// A page of keys; a page that would be too large ends early.
pub(crate) struct List {
    pub(crate) place: Place,
    pub(crate) page: Page,
    pub(crate) max_bytes: usize,
}

impl Call for List {
    type Output = Value;
    const WRITES: bool = false;

    async fn run(&self, connection: &mut Connection) -> Result<Value, PostgresError> {
        let mut page = self.page.clone();
        let from = match &page.after {
            // The smallest key above the cursor.
            Some(after) if *after >= page.prefix => [after.as_bytes(), &[0]].concat(),
            _ => page.prefix.as_bytes().to_vec(),
        };
        let end = page.end();
        let sql = if end.is_some() { KEYS_BELOW } else { KEYS };
        let statement = connection.prepare(sql).await?;
        let range = Range {
            place: &self.place,
            from: &from,
            end: end.as_deref(),
            limit: page.limit + 1,
        };
        let (mut keys, mut bytes) = (Vec::new(), 0);
        let each = range.each(&connection.client, &statement, |row| {
            let key = key(row)?;
            bytes += key.len_bytes();
            keys.push(key);
            if bytes > self.max_bytes {
                page.limit = page.limit.min(keys.len() - 1).max(1);
            }
            Ok(keys.len() <= page.limit)
        });
        each.await?;
        Ok(page.answer(keys))
    }
}

/// The answer to a query, from one snapshot of the documents; an answer that would be too large
/// ends early.
pub(crate) struct Ask {
    pub(crate) place: Place,
    pub(crate) query: Query,
    pub(crate) max_bytes: usize,
}

impl Call for Ask {
    type Output = Value;
    const WRITES: bool = false;

    async fn run(&self, connection: &mut Connection) -> Result<Value, PostgresError> {
        let all = Page {
            prefix: self.query.prefix().clone(),
            after: None,
            limit: 1,
        };
        let end = all.end();
        let sql = match end {
            Some(_) => DOCUMENTS_BELOW,
            None => DOCUMENTS,
        };
        let statement = connection.prepare(sql).await?;
        let transaction = connection
            .client
            .build_transaction()
            .isolation_level(IsolationLevel::RepeatableRead)
            .read_only(true)
            .start()
            .await?;
        let mut from = self.query.first_key().as_bytes().to_vec();
        let mut selection = self.query.clone().select().within(self.max_bytes);
        loop {
            let mut last = None;
            let range = Range {
                place: &self.place,
                from: &from,
                end: end.as_deref(),
                limit: CHUNK,
            };
            let each = range.each(&transaction, &statement, |row| {
                let key = key(row)?;
                selection.offer(&key, &read(row.try_get(2)?)?);
                last = Some(key);
                Ok(!selection.is_full())
            });
            let count = each.await?;
            match last {
                Some(last) if count == CHUNK && !selection.is_full() => {
                    from = [last.as_bytes(), &[0]].concat();
                }
                _ => break,
            }
        }
        transaction.commit().await?;
        Ok(selection.answer())
    }
}

/// Decodes a stored value.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, PostgresError> {
    StoredValue::read(bytes).ok_or_else(|| {
        PostgresError::new(PostgresCode::Corrupt, "a value is not in a form of ours")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_stand_in_the_order_of_keys(a in long(), b in long()) {
            let (left, right) = (parts(&a), parts(&b));
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
        }
    }

    /// Bytes around the length at which a key is split, mostly equal.
    fn long() -> impl Strategy<Value = Vec<u8>> {
        let end = prop::collection::vec(0..3u8, 0..4);
        (
            prop::sample::select(vec![0, 5, HEAD - 2, HEAD - 1, HEAD, HEAD + 1]),
            end,
        )
            .prop_map(|(same, end)| {
                let mut bytes = vec![1; same];
                bytes.extend(end);
                bytes
            })
    }
}
