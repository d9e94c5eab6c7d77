//! Counts HTTP/2 frames without a body: a flood of them keeps a core busy without an answer
//! (security N08).

use std::time::Instant;

/// The error of a connection with too many of them.
pub(crate) const FLOOD: &str = "a flood of control frames";

/// Frames without body that any connection may have.
const FREE: u64 = 1000;
/// Additional frames for each request.
const EACH_REQUEST: u64 = 100;
/// Additional frames for each second of the connection: keep-alives.
const EACH_SECOND: u64 = 10;
/// Body bytes, in either direction, that allow one more frame: window updates.
const BYTES_FOR_ONE: u64 = 1 << 10;

const HEAD: usize = 9;
const DATA: u8 = 0;

/// The frames received over one connection.
#[derive(Debug)]
pub(crate) struct Frames {
    since: Instant,
    head: [u8; HEAD],
    have: usize,
    /// Remaining bytes of the frame whose head was read.
    rest: usize,
    control: u64,
    body: u64,
}

impl Frames {
    pub(crate) fn new() -> Frames {
        Frames {
            since: Instant::now(),
            head: [0; HEAD],
            have: 0,
            rest: 0,
            control: 0,
            body: 0,
        }
    }

    /// Counts sent bytes of bodies.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.body = self.body.saturating_add(bytes as u64);
    }

    /// Takes received bytes. Gives whether the frames are within the limit for `requests`.
    pub(crate) fn came(&mut self, mut bytes: &[u8], requests: u64) -> bool {
        let before = self.control;
        while !bytes.is_empty() {
            let skipped = self.rest.min(bytes.len());
            self.rest -= skipped;
            bytes = &bytes[skipped..];
            let taken = (HEAD - self.have).min(bytes.len());
            self.head[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
            self.have += taken;
            bytes = &bytes[taken..];
            if self.have == HEAD {
                self.have = 0;
                let [a, b, c, kind, ..] = self.head;
                self.rest = u32::from_be_bytes([0, a, b, c]) as usize;
                match kind == DATA && self.rest > 0 {
                    true => self.body = self.body.saturating_add(self.rest as u64),
                    false => self.control += 1,
                }
            }
        }
        self.control == before || self.control <= self.allowed(requests)
    }

    fn allowed(&self, requests: u64) -> u64 {
        FREE.saturating_add(requests.saturating_mul(EACH_REQUEST))
            .saturating_add(self.since.elapsed().as_secs().saturating_mul(EACH_SECOND))
            .saturating_add(self.body / BYTES_FOR_ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: usize) -> Vec<u8> {
        let mut bytes = (payload as u32).to_be_bytes()[1..].to_vec();
        bytes.extend([kind, 0, 0, 0, 0, 1]);
        bytes.resize(HEAD + payload, 0xFF);
        bytes
    }

    #[test]
    fn d13_frames_are_counted_however_they_come() {
        let stream: Vec<u8> = (0..200)
            .flat_map(|n| frame(if n % 2 == 0 { DATA } else { 6 }, (n * 7) % 40))
            .collect();
        let mut whole = Frames::new();
        assert!(whole.came(&stream, 1));
        for step in [1, 3, 9, 10, 100] {
            let mut parts = Frames::new();
            assert!(stream.chunks(step).all(|part| parts.came(part, 1)));
            assert_eq!((parts.control, parts.body), (whole.control, whole.body));
        }
        let empty = (0..200).filter(|n| n % 2 == 0 && n * 7 % 40 == 0).count();
        assert_eq!(whole.control, 100 + empty as u64);
    }

    #[test]
    fn d13_a_flood_ends_and_a_long_body_does_not() {
        for (kind, payload) in [(6, 8), (4, 0), (3, 4), (DATA, 0), (9, 100), (0xBB, 3)] {
            let mut frames = Frames::new();
            let one = frame(kind, payload);
            let most = (0..1_000_000).find(|_| !frames.came(&one, 1));
            assert!((1000..2000).contains(&most.expect("an end")), "{kind}");
        }
        let mut frames = Frames::new();
        for _ in 0..100_000 {
            assert!(frames.came(&frame(DATA, 1500), 1));
            assert!(frames.came(&frame(8, 4), 1));
        }
        for request in 0..10_000 {
            assert!((0..50).all(|_| frames.came(&frame(6, 8), request)));
        }
    }
}
