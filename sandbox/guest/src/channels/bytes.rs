//! Bounded byte ring.

/// A bounded first-in first-out queue of bytes in one fixed buffer.
///
/// Both ends can work in place: the writer fills [`ByteRing::space`] and
/// [commits](ByteRing::commit), the reader reads [`ByteRing::front`] and
/// [consumes](ByteRing::consume). Each sees one contiguous run at a time.
#[derive(Debug)]
pub struct ByteRing {
    data: Box<[u8]>,
    read: usize,
    len: usize,
}

impl ByteRing {
    /// Creates an empty ring of `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        Self {
            data: vec![0; capacity].into_boxed_slice(),
            read: 0,
            len: 0,
        }
    }

    /// Number of bytes held.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the ring is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that can still be written.
    pub fn free(&self) -> usize {
        self.data.len() - self.len
    }

    /// The next contiguous run to write into; empty if the ring is full.
    pub fn space(&mut self) -> &mut [u8] {
        let capacity = self.data.len();
        let write = self.read + self.len;
        if write >= capacity {
            &mut self.data[write - capacity..self.read]
        } else {
            &mut self.data[write..]
        }
    }

    /// Commits the first `count` bytes of [`ByteRing::space`], at most its length; returns
    /// the number.
    pub fn commit(&mut self, count: usize) -> usize {
        let count = count.min(self.space().len());
        self.len += count;
        count
    }

    /// The next contiguous run to read; empty only if the ring is empty.
    pub fn front(&self) -> &[u8] {
        let end = (self.read + self.len).min(self.data.len());
        &self.data[self.read..end]
    }

    /// Drops the first `count` bytes of [`ByteRing::front`], at most its length; returns
    /// the number.
    pub fn consume(&mut self, count: usize) -> usize {
        let count = count.min(self.front().len());
        self.len -= count;
        self.read += count;
        // An empty ring starts over, so that frequent use touches few pages.
        if self.len == 0 || self.read == self.data.len() {
            self.read = 0;
        }
        count
    }

    /// Writes `bytes` as far as they fit; returns the number.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            let space = self.space();
            let count = space.len().min(bytes.len() - done);
            if count == 0 {
                break;
            }
            space[..count].copy_from_slice(&bytes[done..done + count]);
            done += self.commit(count);
        }
        done
    }

    /// Reads into `buf` and drops the bytes read; returns the number.
    pub fn pop(&mut self, buf: &mut [u8]) -> usize {
        let mut done = 0;
        while done < buf.len() && !self.is_empty() {
            let front = self.front();
            let count = front.len().min(buf.len() - done);
            buf[done..done + count].copy_from_slice(&front[..count]);
            done += self.consume(count);
        }
        done
    }

    /// Zeroes the memory of an empty ring.
    pub fn scrub(&mut self) {
        if self.is_empty() {
            self.data.fill(0);
            self.read = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn wraps_and_fills() {
        let mut ring = ByteRing::new(4);
        assert_eq!(ring.push(b"abcdef"), 4);
        assert!(ring.space().is_empty());
        assert_eq!(ring.consume(3), 3);
        assert_eq!(ring.push(b"xyz!"), 3);
        assert_eq!(ring.front(), b"d");
        let mut all = [0; 8];
        assert_eq!(ring.pop(&mut all), 4);
        assert_eq!(&all[..4], b"dxyz");
        assert_eq!(ring.space().len(), 4);
    }

    #[test]
    fn scrub_leaves_nothing_behind() {
        let mut ring = ByteRing::new(8);
        ring.push(b"secret");
        ring.scrub();
        assert_eq!(ring.front(), b"secret");
        ring.consume(6);
        ring.scrub();
        assert_eq!(ring.space(), &[0; 8]);
    }

    proptest! {
        #[test]
        fn is_a_queue(steps in prop::collection::vec((any::<bool>(), 0usize..9), 0..200)) {
            let mut ring = ByteRing::new(7);
            let mut model = VecDeque::new();
            let mut next = 0u8;
            for (write, count) in steps {
                if write {
                    let bytes: Vec<u8> = (0..count).map(|i| next.wrapping_add(i as u8)).collect();
                    let done = ring.push(&bytes);
                    prop_assert_eq!(done, count.min(7 - model.len()));
                    model.extend(&bytes[..done]);
                    next = next.wrapping_add(done as u8);
                } else {
                    let mut buf = vec![0; count];
                    let done = ring.pop(&mut buf);
                    let want: Vec<u8> = model.drain(..count.min(model.len())).collect();
                    prop_assert_eq!(&buf[..done], &want[..]);
                }
                prop_assert_eq!(ring.len(), model.len());
                prop_assert_eq!(ring.free(), 7 - model.len());
            }
        }
    }
}
