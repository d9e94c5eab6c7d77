//! Frame codec: frames and the fields of their payloads as bytes.

use super::{HEADER_BYTES, MAX_PAYLOAD};
use std::fmt;

/// A frame that this version does not understand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The payload is longer than [`MAX_PAYLOAD`].
    TooLong(usize),
    /// Unknown kind for this direction.
    UnknownKind(u8),
    /// The payload of that kind is truncated, has trailing bytes or holds a value out of
    /// range.
    Malformed(u8),
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProtocolError::TooLong(len) => write!(f, "frame of {len} bytes is longer than allowed"),
            ProtocolError::UnknownKind(kind) => write!(f, "unknown kind of frame {kind:#04x}"),
            ProtocolError::Malformed(kind) => write!(f, "malformed frame of kind {kind:#04x}"),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// Appends a frame to `out`; `payload` writes its payload.
pub(super) fn write_frame(
    out: &mut Vec<u8>,
    kind: u8,
    id: u64,
    payload: impl FnOnce(&mut Writer<'_>),
) {
    let start = out.len();
    out.extend([0; 4]);
    out.push(kind);
    out.extend(id.to_le_bytes());
    payload(&mut Writer { out });
    let len = (out.len() - start - HEADER_BYTES) as u32;
    out[start..start + 4].copy_from_slice(&len.to_le_bytes());
}

/// Writes the fields of a payload.
pub(super) struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    pub(crate) fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.out.extend(value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.out.extend(value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.out.extend(value.to_le_bytes());
    }

    /// Writes bytes up to the end of the payload.
    pub(crate) fn rest(&mut self, bytes: &[u8]) {
        self.out.extend(bytes);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.u32(bytes.len() as u32);
        self.rest(bytes);
    }

    pub(crate) fn list<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.u32(items.len() as u32);
        for item in items {
            each(self, item);
        }
    }

    pub(crate) fn option<T>(&mut self, value: Option<&T>, each: impl FnOnce(&mut Self, &T)) {
        self.u8(u8::from(value.is_some()));
        if let Some(value) = value {
            each(self, value);
        }
    }
}

/// Reads the fields of a payload. After a missing field every further field is empty, and
/// [`Reader::finish`] fails.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    good: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, good: true }
    }

    fn take(&mut self, len: usize) -> &'a [u8] {
        match self.bytes.split_at_checked(len) {
            Some((head, tail)) => {
                self.bytes = tail;
                head
            }
            None => {
                self.good = false;
                self.bytes = &[];
                &[]
            }
        }
    }

    /// Reads a fixed number of bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).try_into().unwrap_or([0; N])
    }

    pub(crate) fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    pub(crate) fn flag(&mut self) -> bool {
        let value = self.u8();
        self.good &= value <= 1;
        value == 1
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    pub(crate) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes).to_vec()
    }

    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        let len = self.u32() as usize;
        self.take(len).to_vec()
    }

    pub(crate) fn text(&mut self) -> String {
        let bytes = self.bytes();
        self.check(String::from_utf8(bytes).ok())
    }

    /// Reads a list. Every item takes at least one byte, so the payload bounds its length.
    pub(crate) fn list<T>(&mut self, mut each: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let len = self.u32();
        let mut items = Vec::new();
        for _ in 0..len {
            if self.bytes.is_empty() {
                self.good = false;
                break;
            }
            items.push(each(self));
        }
        items
    }

    pub(crate) fn option<T>(&mut self, each: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| each(self))
    }

    /// Unwraps a value; on `None` returns a default and marks the payload as malformed.
    pub(crate) fn check<T: Default>(&mut self, value: Option<T>) -> T {
        self.good &= value.is_some();
        value.unwrap_or_default()
    }

    /// Returns `value` if every field was present and no byte is left.
    pub(crate) fn finish<T>(self, kind: u8, value: T) -> Result<T, ProtocolError> {
        if self.good && self.bytes.is_empty() {
            Ok(value)
        } else {
            Err(ProtocolError::Malformed(kind))
        }
    }
}

/// Splits a byte stream into frames.
#[derive(Debug, Default)]
pub struct FrameReader {
    buffer: Vec<u8>,
    read: usize,
}

impl FrameReader {
    /// Creates a reader at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.read == self.buffer.len() {
            self.buffer.clear();
            self.read = 0;
        }
        self.buffer.extend(bytes);
    }

    /// Returns the bytes of an incomplete frame, or all undecoded bytes if
    /// [`FrameReader::next`] was not called.
    pub fn unread(&self) -> &[u8] {
        &self.buffer[self.read..]
    }

    /// Passes the next whole frame (kind, id, payload) to `decode`; `None` if it is
    /// incomplete.
    ///
    /// # Errors
    /// [`ProtocolError::TooLong`], after which the stream is lost, and those of `decode`.
    pub fn next<T>(
        &mut self,
        decode: impl FnOnce(u8, &[u8]) -> Result<T, ProtocolError>,
    ) -> Result<Option<(u64, T)>, ProtocolError> {
        let Some((header, rest)) = self.buffer[self.read..].split_at_checked(HEADER_BYTES) else {
            self.compact();
            return Ok(None);
        };
        let mut fields = Reader::new(header);
        let (len, kind, id) = (fields.u32() as usize, fields.u8(), fields.u64());
        if len > MAX_PAYLOAD {
            return Err(ProtocolError::TooLong(len));
        }
        let Some(payload) = rest.get(..len) else {
            self.compact();
            return Ok(None);
        };
        let value = decode(kind, payload)?;
        self.read += HEADER_BYTES + len;
        Ok(Some((id, value)))
    }

    /// Moves the unread bytes to the front, so that the buffer stays as long as the longest
    /// frame.
    fn compact(&mut self) {
        if self.read > 0 {
            self.buffer.drain(..self.read);
            self.read = 0;
        }
    }
}
