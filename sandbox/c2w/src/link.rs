//! Frame link: Ethernet frames between an image and its network, in the format of QEMU's
//! `-netdev socket`: a length of four bytes, big-endian, then the frame.

use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum frame size in bytes, without a checksum: the size of an image's buffers (MTU
/// 1500 and the Ethernet header). Longer frames are dropped.
pub const MAX_FRAME: usize = 1514;

/// Size of the length field before each frame in bytes.
const HEADER: usize = 4;

/// Lengths above this are invalid: the image has lost its place in the stream.
const MAX_LENGTH: usize = 64 << 10;

/// Maximum frames queued for a slow network. More are dropped, as by a real network
/// interface.
const MAX_WAITING: usize = 256;

/// Wakes the image's thread when frames have arrived for it.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Network of an image's interface. No method may block.
pub trait FrameLink: Send {
    /// Sets the callback for new frames in [`receive`](Self::receive); called once, before
    /// the other methods.
    fn on_frames(&mut self, wake: Wake);

    /// Accepts a frame from the image; `false` if there is no room now: the frame is
    /// offered again.
    fn send(&mut self, frame: &[u8]) -> bool;

    /// Appends the next frame for the image to `frame`, at most [`MAX_FRAME`] bytes;
    /// `false` if there is none.
    fn receive(&mut self, frame: &mut Vec<u8>) -> bool;
}

/// Byte stream between an image and its network.
pub(super) struct Stream {
    link: Box<dyn FrameLink>,
    /// An incomplete frame that the image is writing.
    partial: Vec<u8>,
    /// Complete frames that the link had no room for.
    waiting: VecDeque<Vec<u8>>,
    /// The frame that the image is reading, after its length.
    incoming: Vec<u8>,
    /// Bytes of it that were read.
    read: usize,
    /// Frames dropped because they were too long or the network was slow.
    dropped: u64,
}

/// An invalid frame length in the image's stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadLength(pub usize);

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream")
            .field("waiting", &self.waiting.len())
            .field("dropped", &self.dropped)
            .finish_non_exhaustive()
    }
}

impl Stream {
    pub(crate) fn new(mut link: Box<dyn FrameLink>, wake: Wake) -> Self {
        link.on_frames(wake);
        Self {
            link,
            partial: Vec::new(),
            waiting: VecDeque::new(),
            incoming: Vec::new(),
            read: 0,
            dropped: 0,
        }
    }

    /// Takes all bytes that the image wrote. Images send the length and the frame
    /// separately or together.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> Result<(), BadLength> {
        while !bytes.is_empty() {
            let wanted = match self.partial.first_chunk::<HEADER>() {
                None => HEADER,
                Some(header) => {
                    let len = u32::from_be_bytes(*header) as usize;
                    if len > MAX_LENGTH {
                        return Err(BadLength(len));
                    }
                    HEADER + len
                }
            };
            let (now, later) = bytes.split_at(bytes.len().min(wanted - self.partial.len()));
            self.partial.extend(now);
            bytes = later;
            self.take_frame();
        }
        self.flush();
        Ok(())
    }

    /// Queues the frame if it is complete.
    fn take_frame(&mut self) {
        let Some((header, frame)) = self.partial.split_first_chunk::<HEADER>() else {
            return;
        };
        let len = u32::from_be_bytes(*header) as usize;
        if frame.len() != len {
            return;
        }
        if len > MAX_FRAME || self.waiting.len() >= MAX_WAITING {
            self.dropped += 1;
        } else if len > 0 {
            self.waiting.push_back(frame.to_vec());
        }
        self.partial.clear();
    }

    /// Offers queued frames to the link.
    pub(crate) fn flush(&mut self) {
        while let Some(frame) = self.waiting.front() {
            if !self.link.send(frame) {
                return;
            }
            self.waiting.pop_front();
        }
    }

    /// Whether the link is so far behind that frames will soon be lost.
    pub(crate) fn is_congested(&self) -> bool {
        self.waiting.len() >= MAX_WAITING / 2
    }

    /// Whether frames wait for room in the link.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether bytes can be read.
    pub(crate) fn is_readable(&mut self) -> bool {
        if self.read < self.incoming.len() {
            return true;
        }
        self.read = 0;
        loop {
            self.incoming.clear();
            self.incoming.extend([0; HEADER]);
            if !self.link.receive(&mut self.incoming) {
                self.incoming.clear();
                return false;
            }
            let len = self.incoming.len().saturating_sub(HEADER);
            if (1..=MAX_FRAME).contains(&len) {
                self.incoming[..HEADER].copy_from_slice(&(len as u32).to_be_bytes());
                return true;
            }
            self.dropped += 1;
        }
    }

    /// Bytes that can be read now without waiting.
    pub(crate) fn readable(&mut self) -> usize {
        match self.is_readable() {
            true => self.incoming.len() - self.read,
            false => 0,
        }
    }

    /// Returns the next bytes, at most `room` bytes of one frame, and never a part of a
    /// length unless the image asked for less than one: images misread a length that comes
    /// in pieces.
    pub(crate) fn peek(&mut self, room: usize) -> &[u8] {
        let len = self.readable().min(room);
        &self.incoming[self.read..self.read + len]
    }

    /// Consumes bytes that were read.
    pub(crate) fn consume(&mut self, len: usize) {
        self.read += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Both {
        sent: Vec<Vec<u8>>,
        to_come: VecDeque<Vec<u8>>,
        full: bool,
    }

    struct Shared(Arc<Mutex<Both>>);

    impl FrameLink for Shared {
        fn on_frames(&mut self, _: Wake) {}

        fn send(&mut self, frame: &[u8]) -> bool {
            let mut both = self.0.lock().unwrap();
            if !both.full {
                both.sent.push(frame.to_vec());
            }
            !both.full
        }

        fn receive(&mut self, frame: &mut Vec<u8>) -> bool {
            let next = self.0.lock().unwrap().to_come.pop_front();
            frame.extend(next.iter().flatten());
            next.is_some()
        }
    }

    fn stream() -> (Stream, Arc<Mutex<Both>>) {
        let both = Arc::new(Mutex::new(Both::default()));
        let link = Box::new(Shared(Arc::clone(&both)));
        (Stream::new(link, Arc::new(|| {})), both)
    }

    #[test]
    fn frames_leave_whole_however_they_are_written() {
        let (mut stream, both) = stream();
        let bytes = b"\0\0\0\x03abc\0\0\0\x01x\0\0\0\0\0\0\0\x02yz";
        for byte in bytes {
            stream.write(&[*byte]).unwrap();
        }
        stream.write(bytes).unwrap();
        let expected: [&[u8]; 3] = [b"abc", b"x", b"yz"];
        assert_eq!(both.lock().unwrap().sent, [expected, expected].concat());
    }

    #[test]
    fn long_frames_are_dropped_and_senseless_lengths_refused() {
        let (mut stream, both) = stream();
        let mut bytes = 2000_u32.to_be_bytes().to_vec();
        bytes.extend([1; 2000]);
        bytes.extend(b"\0\0\0\x01k");
        stream.write(&bytes).unwrap();
        assert_eq!(both.lock().unwrap().sent, [b"k".to_vec()]);
        assert_eq!(stream.dropped, 1);
        let bad = stream.write(&u32::MAX.to_be_bytes());
        // The length is checked when more bytes follow it.
        let bad = bad.and_then(|()| stream.write(b"x"));
        assert_eq!(bad, Err(BadLength(u32::MAX as usize)));
    }

    #[test]
    fn a_network_that_is_behind_loses_only_what_does_not_fit() {
        let (mut stream, both) = stream();
        both.lock().unwrap().full = true;
        for _ in 0..MAX_WAITING + 3 {
            stream.write(b"\0\0\0\x01k").unwrap();
        }
        assert!(stream.is_congested());
        both.lock().unwrap().full = false;
        stream.flush();
        assert_eq!(both.lock().unwrap().sent.len(), MAX_WAITING);
        assert_eq!(stream.dropped, 3);
    }

    #[test]
    fn a_length_comes_in_one_piece_and_frames_one_by_one() {
        let (mut stream, both) = stream();
        let long = vec![9; MAX_FRAME + 1];
        let frames = [b"abc".to_vec(), long, Vec::new(), b"de".to_vec()];
        both.lock().unwrap().to_come.extend(frames);
        assert_eq!(stream.peek(4), b"\0\0\0\x03");
        stream.consume(4);
        assert_eq!(stream.peek(2), b"ab");
        stream.consume(2);
        assert_eq!(stream.peek(100), b"c");
        stream.consume(1);
        assert_eq!(stream.peek(100), b"\0\0\0\x02de");
        stream.consume(6);
        assert_eq!(stream.peek(100), b"");
        assert!(!stream.is_readable());
    }
}
