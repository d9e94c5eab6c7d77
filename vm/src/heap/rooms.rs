//! Spare bytes around growing text.
//!
//! Text at the end of the heap grows in place. Several texts that grow in turn, and text that
//! grows at its front, would be copied each time. A long text that was copied once gets spare
//! bytes on the side on which it grew, and takes the next piece there.

use super::paced::TEXT_PIECE;
use super::{Heap, Str};
use crate::pace::{Clock, Fault};

/// Shorter texts are copied faster than a room is found.
const SHORTEST: usize = 256;

/// Number of texts that can grow in turn; another one replaces the oldest.
const ROOMS: usize = 64;

/// Whether a concatenation prepends to a long second text.
pub(super) fn grows_in_front(a: Str, b: Str) -> bool {
    b.len_bytes() >= SHORTEST && a.len_bytes() < b.len_bytes()
}

/// A byte range reserved for one text: used from `start` to `end`, spare before and after.
#[derive(Copy, Clone, Debug)]
struct Room {
    low: u32,
    start: u32,
    end: u32,
    high: u32,
}

#[derive(Debug, Default)]
pub(super) struct Rooms {
    list: Vec<Room>,
    next: usize,
}

impl Rooms {
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.next = 0;
    }

    fn add(&mut self, room: Room) {
        if self.list.len() < ROOMS {
            self.list.push(room);
        } else {
            self.list[self.next % ROOMS] = room;
            self.next += 1;
        }
    }

    /// Extends sorted live ranges `(start, end, _)` by the spare bytes of their texts, and
    /// drops the rooms of other texts. Spare bytes never exceed the text they belong to.
    pub(super) fn widen(&mut self, ranges: &mut [(u32, u32, u32)]) {
        self.list.retain_mut(|room| {
            let front = ranges.partition_point(|r| r.0 < room.start);
            let front = (front < ranges.len() && ranges[front].0 == room.start).then_some(front);
            let back = ranges.partition_point(|r| r.1 < room.end);
            let back = (back < ranges.len() && ranges[back].1 == room.end).then_some(back);
            let Some(at) = back.or(front) else {
                return false;
            };
            let (first, last, _) = ranges[at];
            room.start = room.start.max(first);
            room.end = room.end.min(last);
            let most = room.end - room.start;
            room.high = match back {
                Some(_) => room.high.min(room.end + most),
                None => room.end,
            };
            room.low = match front {
                Some(front) if front == at => room.low.max(room.start.saturating_sub(most)),
                _ => room.start,
            };
            ranges[at].0 = first.min(room.low);
            ranges[at].1 = last.max(room.high);
            room.low < room.start || room.end < room.high
        });
    }

    /// Moves rooms with their ranges `(old start, old end, new start)`.
    pub(super) fn moved(&mut self, ranges: &[(u32, u32, u32)]) {
        self.list.retain_mut(|room| {
            let at = ranges.partition_point(|r| r.1 <= room.low);
            let Some(&(start, end, new)) = ranges.get(at) else {
                return false;
            };
            if room.low < start || room.high > end {
                return false;
            }
            let to = |old: u32| new + (old - start);
            *room = Room {
                low: to(room.low),
                start: to(room.start),
                end: to(room.end),
                high: to(room.high),
            };
            true
        });
    }
}

impl Heap {
    /// Concatenates two texts without copying the longer one, if it has room; else `None`.
    pub(super) fn join_in_room(
        &mut self,
        a: Str,
        b: Str,
        clock: &mut Clock<'_>,
    ) -> Result<Option<Str>, Fault> {
        let behind = !grows_in_front(a, b);
        let (long, short) = if behind { (a, b) } else { (b, a) };
        if long.is_static() || long.len_bytes() < SHORTEST {
            return Ok(None);
        }
        let n = short.len_bytes() as u32;
        let (from, to) = (long.offset(), long.offset() + long.len_bytes() as u32);
        let found = self.rooms.list.iter().position(|room| {
            if behind {
                room.end == to && room.start <= from
            } else {
                room.start == from && room.end >= to
            }
        });
        let Some(at) = found else { return Ok(None) };
        let room = self.rooms.list[at];
        if behind && room.high - room.end < n && room.high as usize == self.bytes.len() {
            // The last text of the heap gets more room in place.
            let more = (n - (room.high - room.end)) as usize;
            let spare = long.len_bytes().min(self.room() / 8);
            self.reserve_bytes(more + spare)?;
            self.add_spare(more + spare, clock)?;
            self.rooms.list[at].high = self.bytes.len() as u32;
        }
        let room = &mut self.rooms.list[at];
        let place = if behind {
            if room.high - room.end < n {
                return Ok(None);
            }
            room.end += n;
            room.end - n
        } else {
            if room.start - room.low < n {
                return Ok(None);
            }
            room.start -= n;
            room.start
        };
        self.put(short, place as usize, clock)?;
        let first = if behind { from } else { place };
        let units = (a.units() + b.units()) as u32;
        Ok(Some(Str::in_heap(first, to - from + n, units)))
    }

    /// Writes a text over existing bytes.
    fn put(&mut self, s: Str, place: usize, clock: &mut Clock<'_>) -> Result<(), Fault> {
        for at in (0..s.len_bytes()).step_by(TEXT_PIECE) {
            let n = TEXT_PIECE.min(s.len_bytes() - at);
            let (off, place) = (s.offset() as usize + at, place + at);
            if s.is_static() {
                self.bytes[place..place + n].copy_from_slice(&self.statics[off..off + n]);
            } else {
                self.bytes.copy_within(off..off + n, place);
            }
            if n == TEXT_PIECE {
                clock.work((n / 4) as i64)?;
            }
        }
        Ok(())
    }

    /// Appends spare bytes; the caller has reserved the room.
    fn add_spare(&mut self, n: usize, clock: &mut Clock<'_>) -> Result<(), Fault> {
        let end = self.bytes.len() + n;
        while self.bytes.len() < end {
            let n = TEXT_PIECE.min(end - self.bytes.len());
            self.bytes.resize(self.bytes.len() + n, 0);
            if n == TEXT_PIECE {
                clock.work((n / 4) as i64)?;
            }
        }
        Ok(())
    }

    /// Copies two texts to the end of the heap, one after the other. A long one gets room on
    /// the side of the shorter one.
    pub(super) fn join_by_copy(
        &mut self,
        a: Str,
        b: Str,
        clock: &mut Clock<'_>,
    ) -> Result<Str, Fault> {
        let len = a.len_bytes() + b.len_bytes();
        let long = a.len_bytes().max(b.len_bytes());
        let spare = if long < SHORTEST {
            0
        } else {
            (len / 2).min(self.room().saturating_sub(len) / 8)
        };
        self.reserve_bytes(len + spare)?;
        let low = self.bytes.len();
        let behind = !grows_in_front(a, b);
        if spare > 0 && !behind {
            self.add_spare(spare, clock)?;
        }
        let start = self.bytes.len();
        self.append_long(a, clock)?;
        self.append_long(b, clock)?;
        let end = self.bytes.len();
        if spare > 0 {
            if behind {
                self.add_spare(spare, clock)?;
            }
            self.rooms.add(Room {
                low: low as u32,
                start: start as u32,
                end: end as u32,
                high: self.bytes.len() as u32,
            });
        }
        let units = (a.units() + b.units()) as u32;
        Ok(Str::in_heap(start as u32, len as u32, units))
    }
}
