//! Columns of rows: integers, keys, JSON and digests as SQLite stores them.

use crate::fault::{Fault, unreadable};
use a99_runtime_engine::{AgentKey, MAX_JSON_DEPTH, StoreCode, StoreError, json_depth};
use a99_sqlite::rusqlite::{OptionalExtension, Params, Row};
use a99_sqlite::{Tx, rusqlite};
use serde::Serialize;
use sha2::{Digest, Sha256};

pub(crate) type Hash = [u8; 32];

/// Converts to SQLite's signed integers, saturating; no valid value reaches the bound.
pub(crate) fn int(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

pub(crate) fn uint(n: i64) -> Result<u64, Fault> {
    u64::try_from(n).map_err(|_| unreadable(format!("{n} is no place, time or number")))
}

pub(crate) fn uint32(n: i64) -> Result<u32, Fault> {
    u32::try_from(n).map_err(|_| unreadable(format!("{n} is no version or number")))
}

/// Converts a row count to a `LIMIT`.
pub(crate) fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

pub(crate) fn agent_key(row: &Row<'_>, at: usize) -> Result<AgentKey, Fault> {
    Ok(row.get_ref(at)?.as_str().map_err(unreadable)?.parse()?)
}

/// Encodes a value as JSON text.
///
/// # Errors
/// [`StoreCode::Input`] if it has no JSON form, or is nested too deeply.
pub(crate) fn json(what: &str, value: &impl Serialize) -> Result<String, StoreError> {
    let input = |message| StoreError::new(StoreCode::Input, message);
    let text = serde_json::to_string(value);
    let text = text.map_err(|error| input(format!("the {what} has no JSON form: {error}")))?;
    check_depth(what, &text)?;
    Ok(text)
}

/// Refuses JSON text that is nested too deeply to be read again.
///
/// # Errors
/// [`StoreCode::Input`]
pub(crate) fn check_depth(what: &str, text: &str) -> Result<(), StoreError> {
    match json_depth(text) <= MAX_JSON_DEPTH {
        true => Ok(()),
        false => Err(StoreError::new(
            StoreCode::Input,
            format!("the {what} is nested deeper than {MAX_JSON_DEPTH} levels"),
        )),
    }
}

/// The SHA-256 of these bytes.
pub(crate) fn digest(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// All rows of a query, each converted by `f`.
pub(crate) fn all<T>(
    tx: &Tx<'_>,
    sql: &str,
    params: impl Params,
    mut f: impl FnMut(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    some(tx, sql, params, usize::MAX, |row| f(row).map(Some))
}

/// At most `most` rows of a query for which `f` gives a value.
pub(crate) fn some<T>(
    tx: &Tx<'_>,
    sql: &str,
    params: impl Params,
    most: usize,
    mut f: impl FnMut(&Row<'_>) -> Result<Option<T>, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut find = tx.prepare_cached(sql)?;
    let mut rows = find.query(params)?;
    let mut found = Vec::new();
    while found.len() < most
        && let Some(row) = rows.next()?
    {
        found.extend(f(row)?);
    }
    Ok(found)
}

/// The value of a row; `None` for a damaged row.
pub(crate) fn whole<T>(read: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(Fault::Store(error)) if error.code() == StoreCode::Unreadable => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// The rows of a query that convert without error; a damaged row hides only itself.
pub(crate) fn readable<T>(
    tx: &Tx<'_>,
    sql: &str,
    params: impl Params,
    mut f: impl FnMut(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    some(tx, sql, params, usize::MAX, |row| whole(f(row)))
}

/// The only row of a query, if there is one.
pub(crate) fn one<T>(
    tx: &Tx<'_>,
    sql: &str,
    params: impl Params,
    f: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>, Fault> {
    Ok(tx.prepare_cached(sql)?.query_row(params, f).optional()?)
}

/// Changes rows, and gives their number.
pub(crate) fn change(tx: &Tx<'_>, sql: &str, params: impl Params) -> Result<usize, Fault> {
    Ok(tx.prepare_cached(sql)?.execute(params)?)
}
