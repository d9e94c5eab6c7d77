//! Positions of UTF-16 units in long non-ASCII text.
//!
//! Finding a unit in such text needs a scan. For a long text the position of every [`STEP`]th
//! unit is noted on first use, so that a walk by index costs the same as in short text. Notes
//! count against the heap and are kept as long as their text, which is scanned once; its
//! allocation has paid for that.

use super::live_text::TextMap;
use super::{Heap, Str};
use crate::pace::{Clock, Fault, StopReason, Watch};
use a99_ecma::wtf8;
use std::collections::HashMap;

/// Units between two noted positions.
const STEP: usize = 128;

/// Shorter texts are scanned each time.
const SHORTEST: usize = 4 * STEP;

/// Overhead of a text's entry in bytes, beyond its positions.
const ENTRY: usize = 96;

/// Noted positions of texts, keyed by first byte; shorter texts with the same start share
/// them.
#[derive(Debug, Default)]
#[allow(
    clippy::box_collection,
    reason = "few heaps note any, and the others hold a pointer"
)]
pub(super) struct UnitPositions(Option<Box<HashMap<u32, Vec<UnitPosition>>>>);

/// The position of a unit: the first byte of its code point, and whether the unit is its
/// second half.
#[derive(Copy, Clone, Debug)]
struct UnitPosition(u32);

impl UnitPosition {
    fn new(byte: usize, second: bool) -> UnitPosition {
        UnitPosition((byte as u32) << 1 | u32::from(second))
    }

    fn byte(self) -> usize {
        (self.0 >> 1) as usize
    }

    fn second(self) -> usize {
        (self.0 & 1) as usize
    }
}

impl UnitPositions {
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }

    /// The noted positions of a text.
    fn of(&self, key: u32) -> &[UnitPosition] {
        let list = self.0.as_ref().and_then(|texts| texts.get(&key));
        list.map_or(&[], |list| &list[..])
    }

    /// Number of noted positions.
    #[cfg(test)]
    pub(super) fn noted(&self) -> usize {
        let texts = self.0.iter().flat_map(|texts| texts.values());
        texts.map(Vec::len).sum()
    }

    /// Moves entries with their texts and drops those of dead texts; returns the bytes freed.
    pub(super) fn moved(
        &mut self,
        map: &TextMap,
        watch: &mut Watch<'_>,
    ) -> Result<usize, StopReason> {
        let mut freed = 0;
        let Some(texts) = &mut self.0 else {
            return Ok(0);
        };
        for (off, mut places) in std::mem::take(&mut **texts) {
            watch.work(64)?;
            if Str::offset_is_static(off) {
                texts.insert(off, places);
                continue;
            }
            let before = places.len();
            match map.around(off) {
                Some((start, end, new)) => {
                    let len = (end - off) as usize;
                    places.truncate(places.partition_point(|p| p.byte() < len));
                    places.shrink_to_fit();
                    freed += (before - places.len()) * size_of::<UnitPosition>();
                    texts.insert(new + (off - start), places);
                }
                _ => freed += ENTRY + before * size_of::<UnitPosition>(),
            }
        }
        Ok(freed)
    }
}

impl Heap {
    /// A code point at or shortly before a unit of a text: its byte offset, and the number of
    /// its first unit.
    ///
    /// # Errors
    /// Memory; a stop.
    pub(crate) fn place_near(
        &mut self,
        s: Str,
        unit: usize,
        clock: &mut Clock<'_>,
    ) -> Result<(usize, usize), Fault> {
        if s.is_ascii() {
            return Ok((unit, unit));
        }
        if s.units() < SHORTEST {
            return Ok((0, 0));
        }
        let (key, want) = (s.raw_offset(), unit.min(s.units()) / STEP);
        let known = self.places.of(key).len();
        if known <= want {
            self.note_places(s, known, clock)?;
        }
        let place = match self.places.of(key).get(want) {
            Some(place) => *place,
            None => return Ok((0, 0)),
        };
        Ok((place.byte(), want * STEP - place.second()))
    }

    /// Notes the positions of a text from the `known`th on.
    #[cold]
    fn note_places(&mut self, s: Str, known: usize, clock: &mut Clock<'_>) -> Result<(), Fault> {
        let key = s.raw_offset();
        let total = s.units() / STEP + 1;
        let more = (total - known) * size_of::<UnitPosition>() + if known == 0 { ENTRY } else { 0 };
        self.add_external(more)?;
        let texts = self.places.0.get_or_insert_default();
        let mut list = texts.remove(&key).unwrap_or_default();
        list.reserve_exact(total - known);
        let text = self.bytes(s);
        while list.len() < total {
            clock.work((STEP / 2) as i64)?;
            let (from, skip) = match list.last() {
                None => (0, 0),
                Some(last) => (last.byte(), STEP + last.second()),
            };
            let to = wtf8::unit_offset_to_byte(&text[from..], skip);
            list.push(UnitPosition::new(from + to.byte, to.mid_pair));
        }
        self.places.0.get_or_insert_default().insert(key, list);
        Ok(())
    }
}
