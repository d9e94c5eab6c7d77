//! Copy of a collection: loaded from the file, refreshed, searched.

use super::backend::{BackendError, Columns, Parameter, Transaction};
use super::cache::{Cache, Copy, Slot};
use super::document::stored_unit;
use super::tables::{Collection, int};
use crate::{Hit, Index, VectorError};
use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::{PoisonError, RwLockWriteGuard};

/// Rows that are read between two checks for an interrupt.
const CHECK_INTERVAL: i64 = 256;

/// Bytes of a piece, for a collection that is too large for a copy.
const PIECE_BYTES: usize = 8 << 20;

/// The query of a collection.
pub(crate) struct Wanted<'a> {
    pub(crate) query: &'a [f32],
    pub(crate) k: usize,
    pub(crate) filter: Option<&'a dyn Fn(u64) -> bool>,
    /// Whether no later transaction may search.
    pub(crate) is_last: bool,
}

impl Wanted<'_> {
    fn among<X: Transaction>(&self, tx: &X, index: &Index) -> Result<Vec<Hit>, X::Error> {
        let goes_on = || tx.go_on().is_ok();
        let found = index.search_while(self.query, self.k, self.filter, &goes_on);
        // The reason of the stop is the transaction's.
        tx.go_on()?;
        found.map_err(refused)
    }
}

/// Vectors are checked when they are added and read: a refusal by an index is an internal
/// error.
fn refused<E: BackendError>(error: VectorError) -> E {
    E::failed(error.to_string())
}

/// The best hits of a search in the transaction's snapshot, best first. `None` if the copy is
/// newer than the snapshot: then a later transaction must search. The last transaction instead
/// searches without the copy.
pub(crate) fn search<X: Transaction>(
    tx: &X,
    cache: &Cache,
    collection: &Collection,
    wanted: &Wanted<'_>,
) -> Result<Option<Vec<Hit>>, X::Error> {
    if !cache.may_hold(least_bytes(collection, wanted.query.len())) {
        return by_pieces(tx, cache, collection, wanted).map(Some);
    }
    let slot = cache.slot(collection.id);
    let held = slot.read().unwrap_or_else(PoisonError::into_inner);
    let held = match state(&held, collection) {
        Ordering::Less => {
            drop(held);
            let mut held = slot.write().unwrap_or_else(PoisonError::into_inner);
            if state(&held, collection) == Ordering::Less {
                update(tx, cache, &slot, collection, wanted.query.len(), &mut held)?;
            }
            RwLockWriteGuard::downgrade(held)
        }
        _ => held,
    };
    match (&*held, state(&held, collection)) {
        (Some(copy), Ordering::Equal) => return wanted.among(tx, &copy.index).map(Some),
        (_, Ordering::Greater) if !wanted.is_last => return Ok(None),
        _ => drop(held),
    }
    by_pieces(tx, cache, collection, wanted).map(Some)
}

/// Compares a copy's version with the transaction's; a missing copy is older.
fn state(held: &Option<Copy>, collection: &Collection) -> Ordering {
    match held {
        Some(copy) => copy.version.cmp(&collection.version),
        None => Ordering::Less,
    }
}

/// Minimum bytes of an index of the collection, as [`Index`] documents.
fn least_bytes(collection: &Collection, dimension: usize) -> usize {
    let rows = usize::try_from(collection.documents).unwrap_or(usize::MAX);
    rows.saturating_mul(dimension.next_multiple_of(32) * 5 + 36)
}

/// Updates the copy in a slot to the transaction's version; without room there is no copy.
fn update<X: Transaction>(
    tx: &X,
    cache: &Cache,
    slot: &Slot,
    collection: &Collection,
    dimension: usize,
    held: &mut Option<Copy>,
) -> Result<(), X::Error> {
    match held {
        Some(copy) if copy.version >= collection.floor && copy.index.dimension() == dimension => {
            let mut granted = copy.index.bytes();
            let has_room = room(cache, collection, slot, &mut granted);
            let is_refreshed = refresh(tx, collection, copy, has_room);
            let has_room = cache.reserve(collection.id, slot, copy.index.bytes());
            if is_refreshed? && has_room {
                copy.version = collection.version;
                cache.note(|usage| usage.refreshes += 1);
            } else {
                *held = None;
            }
            return Ok(());
        }
        _ => *held = None,
    }
    cache.note(|usage| usage.loads += 1);
    let mut index = Index::new(dimension).map_err(refused::<X::Error>)?;
    let mut granted = 0;
    let has_room = room(cache, collection, slot, &mut granted);
    let rest = fill(
        tx,
        collection,
        &mut index,
        collection.rows().0,
        i64::MAX,
        has_room,
    );
    let is_whole = matches!(rest, Ok(None));
    let bytes = if is_whole { index.bytes() } else { 0 };
    let has_room = cache.reserve(collection.id, slot, bytes);
    rest?;
    *held = (is_whole && has_room).then_some(Copy {
        version: collection.version,
        index,
    });
    Ok(())
}

/// Reserves room for a growing index, only when it grows.
fn room<'a>(
    cache: &'a Cache,
    collection: &'a Collection,
    slot: &'a Slot,
    granted: &'a mut usize,
) -> impl FnMut(usize) -> bool + 'a {
    move |bytes| {
        if bytes <= *granted {
            return true;
        }
        *granted = bytes;
        cache.reserve(collection.id, slot, bytes)
    }
}

/// Adds at most `most` rows to an index, in order from `from` on. Gives the start of the rest,
/// if there may be one.
fn fill<X: Transaction>(
    tx: &X,
    collection: &Collection,
    index: &mut Index,
    from: i64,
    most: i64,
    mut has_room: impl FnMut(usize) -> bool,
) -> Result<Option<i64>, X::Error> {
    let sql = "SELECT row, embedding FROM vector_document WHERE row BETWEEN ?1 AND ?2
        ORDER BY row LIMIT ?3";
    let parameters = [from, collection.rows().1, most].map(Parameter::from);
    let (mut read, mut next) = (0, None);
    tx.each(sql, &parameters, |row| {
        if read % CHECK_INTERVAL == 0 {
            tx.go_on()?;
        }
        read += 1;
        let at = int(row, 0)?;
        if !has_room(index.bytes_after_push()) {
            next = Some(at);
            return Ok(ControlFlow::Break(()));
        }
        let embedding = row.bytes(1)?.unwrap_or_default();
        let unit = stored_unit::<X::Error>(embedding, index.dimension())?;
        index
            .push(at.cast_unsigned(), &unit)
            .map_err(refused::<X::Error>)?;
        if read == most {
            next = Some(at + 1);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(next)
}

/// Applies the log's changes since the copy's version. Gives whether there was room. It may be
/// repeated after an interruption.
fn refresh<X: Transaction>(
    tx: &X,
    collection: &Collection,
    copy: &mut Copy,
    mut has_room: impl FnMut(usize) -> bool,
) -> Result<bool, X::Error> {
    // New rows have the largest numbers, so this adds them in order.
    let sql = "SELECT change.row, document.embedding FROM (
            SELECT DISTINCT row FROM vector_change WHERE collection = ?1 AND version > ?2
        ) AS change
        LEFT JOIN vector_document AS document ON document.row = change.row
        ORDER BY change.row";
    let parameters = [collection.id, copy.version].map(Parameter::from);
    let (index, mut read, mut fits) = (&mut copy.index, 0, true);
    tx.each(sql, &parameters, |row| {
        if read % CHECK_INTERVAL == 0 {
            tx.go_on()?;
        }
        read += 1;
        let at = int(row, 0)?.cast_unsigned();
        let Some(embedding) = row.bytes(1)? else {
            index.delete(at);
            return Ok(ControlFlow::Continue(()));
        };
        let unit = stored_unit::<X::Error>(embedding, index.dimension())?;
        if index.replace(at, &unit).map_err(refused::<X::Error>)? {
            return Ok(ControlFlow::Continue(()));
        }
        if !has_room(index.bytes_after_push()) {
            fits = false;
            return Ok(ControlFlow::Break(()));
        }
        index.push(at, &unit).map_err(refused::<X::Error>)?;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(fits)
}

/// Searches a collection that is too large for a copy, piece by piece. The hits are the same.
fn by_pieces<X: Transaction>(
    tx: &X,
    cache: &Cache,
    collection: &Collection,
    wanted: &Wanted<'_>,
) -> Result<Vec<Hit>, X::Error> {
    cache.note(|usage| usage.scans += 1);
    let mut best: Vec<Hit> = Vec::new();
    // No read asks for more rows than a piece has room for.
    let most = (PIECE_BYTES / (wanted.query.len() * 5).max(1)).max(1) as i64;
    let mut next = Some(collection.rows().0);
    while let Some(from) = next {
        let mut index = Index::new(wanted.query.len()).map_err(refused::<X::Error>)?;
        next = fill(tx, collection, &mut index, from, most, |bytes| {
            bytes <= PIECE_BYTES
        })?;
        best.extend(wanted.among(tx, &index)?);
        best.sort_by(better);
        best.truncate(wanted.k);
    }
    Ok(best)
}

/// The order of an index: equal scores in the order of insertion.
fn better(a: &Hit, b: &Hit) -> Ordering {
    b.score.total_cmp(&a.score).then(a.id.cmp(&b.id))
}
