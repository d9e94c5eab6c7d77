//! Bounded message ring.

/// Bytes before each message: its length and its tag, little-endian 32-bit.
const HEADER_BYTES: usize = 8;

/// Alignment of messages in bytes.
const ALIGNMENT: usize = 8;

/// A message at the front of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Tag that the writer attached.
    pub tag: u32,
    /// Content of the message.
    pub bytes: &'a [u8],
}

/// A bounded first-in first-out queue of contiguous messages.
///
/// A message that does not fit before the end of the memory goes to its start; the rest of
/// the end stays unused until the reader passes it. Memory is laid out as at most two runs:
/// `read..high` and, once wrapped, `0..write`.
#[derive(Debug)]
pub struct MessageRing {
    data: Box<[u8]>,
    read: usize,
    write: usize,
    /// End of the upper run while the ring is wrapped.
    high: Option<usize>,
    /// Position and length of the last [`MessageRing::reserve`].
    reserved: Option<(usize, usize)>,
}

impl MessageRing {
    /// Creates an empty ring of `capacity` bytes, headers included.
    pub fn new(capacity: usize) -> Self {
        Self {
            data: vec![0; capacity].into_boxed_slice(),
            read: 0,
            write: 0,
            high: None,
            reserved: None,
        }
    }

    /// Whether the ring is empty.
    pub fn is_empty(&self) -> bool {
        self.high.is_none() && self.read == self.write
    }

    /// Reserves room for a message of `len` bytes, to be written in place and then
    /// [committed](MessageRing::commit). `None` if it does not fit now (or ever). Cancels
    /// an earlier reservation.
    pub fn reserve(&mut self, len: usize) -> Option<&mut [u8]> {
        self.reserved = None;
        let start = self.find_space(slot_bytes(len)?)?;
        self.reserved = Some((start, len));
        let at = start + HEADER_BYTES;
        Some(&mut self.data[at..at + len])
    }

    /// Whether a message of `len` bytes fits now.
    pub fn fits(&self, len: usize) -> bool {
        slot_bytes(len)
            .and_then(|slot| self.find_space(slot))
            .is_some()
    }

    /// Commits the first `len` bytes of the reservation as a message; `false`, without an
    /// effect, if there is no reservation of that length.
    pub fn commit(&mut self, tag: u32, len: usize) -> bool {
        let Some((start, room)) = self.reserved.take() else {
            return false;
        };
        if len > room {
            return false;
        }
        self.data[start..start + 4].copy_from_slice(&(len as u32).to_le_bytes());
        self.data[start + 4..start + HEADER_BYTES].copy_from_slice(&tag.to_le_bytes());
        if start < self.write {
            // The reader may have caught up since the reservation.
            if self.is_empty() {
                self.read = start;
            } else {
                self.high = Some(self.write);
            }
        }
        self.write = start + slot_bytes(len).unwrap_or(0);
        true
    }

    /// Appends a message; `false`, without an effect, if it does not fit.
    pub fn push(&mut self, tag: u32, bytes: &[u8]) -> bool {
        let Some(room) = self.reserve(bytes.len()) else {
            return false;
        };
        room.copy_from_slice(bytes);
        self.commit(tag, bytes.len())
    }

    /// The oldest message.
    pub fn front(&self) -> Option<Message<'_>> {
        if self.is_empty() {
            return None;
        }
        let (header, rest) = self.data[self.read..].split_at(HEADER_BYTES);
        let word = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        Some(Message {
            tag: word(4),
            bytes: rest.get(..word(0) as usize)?,
        })
    }

    /// Drops the oldest message; `false` if the ring is empty.
    pub fn pop(&mut self) -> bool {
        let Some(len) = self.front().map(|message| message.bytes.len()) else {
            return false;
        };
        self.read += slot_bytes(len).unwrap_or(0);
        if self.high == Some(self.read) {
            self.high = None;
            self.read = 0;
        }
        // An empty ring starts over, unless a message is being written.
        if self.is_empty() && self.reserved.is_none() {
            self.read = 0;
            self.write = 0;
        }
        true
    }

    /// Zeroes the memory of an empty ring and cancels a reservation.
    pub fn scrub(&mut self) {
        self.reserved = None;
        if self.is_empty() {
            self.data.fill(0);
            self.read = 0;
            self.write = 0;
        }
    }

    /// Finds the position for a slot of that size.
    fn find_space(&self, slot: usize) -> Option<usize> {
        let fits =
            |start: usize, end: usize| end.checked_sub(start)?.checked_sub(slot).map(|_| start);
        if self.high.is_some() {
            fits(self.write, self.read)
        } else {
            fits(self.write, self.data.len()).or_else(|| fits(0, self.read))
        }
    }
}

/// Size of the slot of a message of `len` bytes, header included.
fn slot_bytes(len: usize) -> Option<usize> {
    u32::try_from(len).ok()?;
    len.checked_add(HEADER_BYTES)?
        .checked_next_multiple_of(ALIGNMENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn front(ring: &MessageRing) -> Option<(u32, Vec<u8>)> {
        ring.front().map(|m| (m.tag, m.bytes.to_vec()))
    }

    #[test]
    fn messages_stay_whole() {
        let mut ring = MessageRing::new(64);
        assert!(ring.push(1, &[1; 16]));
        assert!(ring.push(2, &[2; 16]));
        assert!(!ring.push(3, &[3; 16]), "16 bytes are left");
        assert!(ring.pop());
        assert!(ring.push(3, &[3; 16]), "goes to the start");
        assert!(!ring.fits(0), "full");
        assert_eq!(front(&ring), Some((2, vec![2; 16])));
        assert!(ring.pop());
        assert_eq!(front(&ring), Some((3, vec![3; 16])));
        assert!(ring.pop() && ring.is_empty() && !ring.pop());
        assert!(ring.fits(56) && !ring.fits(57));
    }

    #[test]
    fn a_reservation_may_shrink_or_lapse() {
        let mut ring = MessageRing::new(64);
        assert!(!ring.commit(0, 0));
        ring.reserve(40).expect("empty ring")[..2].copy_from_slice(b"ok");
        assert!(ring.commit(9, 2));
        assert_eq!(front(&ring), Some((9, b"ok".to_vec())));
        assert!(ring.reserve(8).is_some());
        assert!(!ring.commit(9, 9), "longer than reserved");
        assert!(ring.pop() && ring.is_empty());
    }

    #[test]
    fn a_reservation_outlives_the_reader() {
        let mut ring = MessageRing::new(64);
        assert!(ring.push(1, &[1; 8]));
        ring.reserve(8).expect("room").fill(2);
        assert!(ring.pop());
        assert!(ring.commit(2, 8));
        assert_eq!(front(&ring), Some((2, vec![2; 8])));

        let mut ring = MessageRing::new(64);
        assert!(ring.push(1, &[1; 32]));
        ring.push(2, &[2; 8]);
        assert!(ring.pop());
        ring.reserve(16).expect("room at the start").fill(3);
        assert!(ring.pop());
        assert!(ring.commit(3, 16));
        assert_eq!(front(&ring), Some((3, vec![3; 16])));
        assert!(ring.pop() && ring.is_empty());
    }

    proptest! {
        #[test]
        fn is_a_queue(steps in prop::collection::vec((any::<bool>(), 0usize..60), 0..300)) {
            let mut ring = MessageRing::new(128);
            let mut model = VecDeque::new();
            for (at, (write, len)) in steps.into_iter().enumerate() {
                if write {
                    let bytes = vec![at as u8; len];
                    if ring.push(at as u32, &bytes) {
                        model.push_back((at as u32, bytes));
                    } else {
                        prop_assert!(!model.is_empty() || len > 120);
                    }
                } else {
                    prop_assert_eq!(ring.pop(), model.pop_front().is_some());
                }
                prop_assert_eq!(front(&ring), model.front().cloned());
                prop_assert_eq!(ring.is_empty(), model.is_empty());
            }
        }
    }
}
