//! Columns of rows: whole numbers, keys, JSON and digests as SQLite has them.

use crate::fault::{Fault, unreadable};
use a99_runtime_engine::{AgentKey, StoreCode, StoreError};
use a99_sqlite::rusqlite::{OptionalExtension, Params, Row};
use a99_sqlite::{Tx, rusqlite};
use serde::Serialize;
use sha2::{Digest, Sha256};

pub(crate) type Hash = [u8; 32];

/// A number as SQLite keeps it. None that means something is as large as its bound.
pub(crate) fn int(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

pub(crate) fn uint(n: i64) -> Result<u64, Fault> {
    u64::try_from(n).map_err(|_| unreadable(format!("{n} is no place, time or number")))
}

pub(crate) fn uint32(n: i64) -> Result<u32, Fault> {
    u32::try_from(n).map_err(|_| unreadable(format!("{n} is no version or number")))
}

/// A number of rows as a limit.
pub(crate) fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

pub(crate) fn agent_key(row: &Row<'_>, at: usize) -> Result<AgentKey, Fault> {
    Ok(row.get_ref(at)?.as_str().map_err(unreadable)?.parse()?)
}

/// How deep JSON that is kept may be nested. Readers bound it at 128: what is deeper could be
/// written and never read, and frames that carry it need some levels of their own.
const MAX_DEPTH: usize = 120;

/// A value as the JSON text that is kept of it.
///
/// # Errors
/// [`StoreCode::Input`] if it has none, or is nested too deep.
pub(crate) fn json(what: &str, value: &impl Serialize) -> Result<String, StoreError> {
    let input = |message| StoreError::new(StoreCode::Input, message);
    let text = serde_json::to_string(value);
    let text = text.map_err(|error| input(format!("the {what} has no JSON form: {error}")))?;
    match depth(text.as_bytes()) <= MAX_DEPTH {
        true => Ok(text),
        false => Err(input(format!(
            "the {what} is nested deeper than {MAX_DEPTH} levels"
        ))),
    }
}

/// How deep a JSON text is nested.
fn depth(json: &[u8]) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                now += 1;
                most = most.max(now);
            }
            b']' | b'}' => now = now.saturating_sub(1),
            b'"' => {
                // To the end of the string; an escape may hide a quotation mark.
                while let Some(byte) = bytes.next()
                    && *byte != b'"'
                {
                    if *byte == b'\\' {
                        bytes.next();
                    }
                }
            }
            _ => {}
        }
    }
    most
}

/// SHA-256 of some bytes.
pub(crate) fn digest(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// All rows of a query, each read by `f`.
pub(crate) fn all<T>(
    tx: &Tx<'_>,
    sql: &str,
    params: impl Params,
    mut f: impl FnMut(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut find = tx.prepare_cached(sql)?;
    let mut rows = find.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(f(row)?);
    }
    Ok(found)
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

/// Changes rows, and gives how many.
pub(crate) fn change(tx: &Tx<'_>, sql: &str, params: impl Params) -> Result<usize, Fault> {
    Ok(tx.prepare_cached(sql)?.execute(params)?)
}
