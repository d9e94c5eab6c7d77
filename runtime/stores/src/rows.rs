//! Columns of rows: integers, keys, JSON and digests as stores keep them.

use crate::fault::{Fault, unreadable};
use crate::runtime::Cx;
use crate::sql::{Params, Row};
use a99_runtime_engine::{AgentKey, MAX_JSON_DEPTH, StoreCode, StoreError, json_depth};
use serde::Serialize;
use sha2::{Digest, Sha256};

pub(crate) type Hash = [u8; 32];

/// Converts to the signed integers of SQL, saturating; no valid value reaches the bound.
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
    Ok(row.text(at)?.parse()?)
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
    cx: &Cx<'_>,
    sql: &'static str,
    params: impl Params,
    mut f: impl FnMut(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut found = Vec::new();
    cx.db.each(sql, params, |row| {
        found.push(f(row)?);
        Ok(())
    })?;
    Ok(found)
}

/// The rows of a query that convert without error; a damaged row hides only itself.
pub(crate) fn readable<T>(
    cx: &Cx<'_>,
    sql: &'static str,
    params: impl Params,
    mut f: impl FnMut(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let read = |row: &Row<'_>| match f(row) {
        Ok(found) => Ok(Some(found)),
        Err(Fault::Store(error)) if error.code() == StoreCode::Unreadable => Ok(None),
        Err(fault) => Err(fault),
    };
    Ok(all(cx, sql, params, read)?.into_iter().flatten().collect())
}

/// The only row of a query, if there is one.
pub(crate) fn one<T>(
    cx: &Cx<'_>,
    sql: &'static str,
    params: impl Params,
    f: impl FnMut(&Row<'_>) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    Ok(all(cx, sql, params, f)?.into_iter().next())
}

/// Changes rows, and gives their number.
pub(crate) fn change(cx: &Cx<'_>, sql: &'static str, params: impl Params) -> Result<usize, Fault> {
    cx.db.execute(sql, params)
}
