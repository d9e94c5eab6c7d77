//! Wire format of 9P2000.L messages: little-endian integers, strings with a length of two
//! bytes, framed by size, type and tag (9P2000 manual, section 5 "intro"; all numbers but
//! one are those of Linux, `include/net/9p/9p.h`).
//!
//! This module does not know the meaning of messages.

use rustix::io::Errno;

/// Size of a message header in bytes: size, type and tag.
pub(super) const HEADER_BYTES: usize = 7;

/// Bytes before the data of a read response: header and count.
pub(super) const READ_OVERHEAD: usize = HEADER_BYTES + 4;

/// Tag of messages that belong to no request.
pub(super) const NO_TAG: u16 = u16::MAX;

/// Fid number that means "no fid".
pub(super) const NO_FID: u32 = u32::MAX;

/// Maximum bytes of a file name, as in Linux (`NAME_MAX`).
pub(super) const MAX_NAME_BYTES: usize = 255;

/// Maximum bytes of a symbolic link's target (`PATH_MAX` without its zero).
pub(super) const MAX_TARGET_BYTES: usize = 4095;

/// Maximum names of one walk (`P9_MAXWELEM`).
pub(super) const MAX_WALK_NAMES: u16 = 16;

/// Request types. A response's type is its request's plus one.
pub(super) mod message {
    pub(crate) const RLERROR: u8 = 7;
    pub(crate) const STATFS: u8 = 8;
    pub(crate) const LOPEN: u8 = 12;
    pub(crate) const LCREATE: u8 = 14;
    pub(crate) const SYMLINK: u8 = 16;
    pub(crate) const MKNOD: u8 = 18;
    pub(crate) const RENAME: u8 = 20;
    pub(crate) const READLINK: u8 = 22;
    pub(crate) const GETATTR: u8 = 24;
    pub(crate) const SETATTR: u8 = 26;
    /// Our extension, with a number that 9P2000.L leaves free: a walk of one name that
    /// returns the file's attributes. The new fid may be in use.
    pub(crate) const WALKATTR: u8 = 28;
    pub(crate) const XATTRWALK: u8 = 30;
    pub(crate) const XATTRCREATE: u8 = 32;
    pub(crate) const READDIR: u8 = 40;
    pub(crate) const FSYNC: u8 = 50;
    pub(crate) const LOCK: u8 = 52;
    pub(crate) const GETLOCK: u8 = 54;
    pub(crate) const LINK: u8 = 70;
    pub(crate) const MKDIR: u8 = 72;
    pub(crate) const RENAMEAT: u8 = 74;
    pub(crate) const UNLINKAT: u8 = 76;
    pub(crate) const VERSION: u8 = 100;
    pub(crate) const ATTACH: u8 = 104;
    pub(crate) const FLUSH: u8 = 108;
    pub(crate) const WALK: u8 = 110;
    pub(crate) const READ: u8 = 116;
    pub(crate) const WRITE: u8 = 118;
    pub(crate) const CLUNK: u8 = 120;
    pub(crate) const REMOVE: u8 = 122;
}

/// The client's identifier of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Qid {
    /// `QTDIR`, `QTSYMLINK` or 0.
    pub kind: u8,
    /// Changes whenever the file does; never 0, which forbids caching.
    pub version: u32,
    /// Unique for each file of the server.
    pub path: u64,
}

impl Qid {
    pub(crate) const DIR: u8 = 0x80;
    pub(crate) const SYMLINK: u8 = 0x02;
    /// Encoded size in bytes.
    pub(crate) const BYTES: usize = 13;
}

/// Reads the fields of a request.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    /// Reads the next `len` bytes.
    ///
    /// # Errors
    /// `EPROTO` if the message is too short; so for the readers below.
    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8], Errno> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(Errno::PROTO)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Errno> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Errno::PROTO)?;
        self.rest = rest;
        Ok(*bytes)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Errno> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Errno> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Errno> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Errno> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn string(&mut self) -> Result<&'a [u8], Errno> {
        let len = self.u16()?;
        self.bytes(len.into())
    }

    /// Reads the name of a directory entry, a single component.
    ///
    /// # Errors
    /// `ENAMETOOLONG`; `EINVAL` for a name that no file can have.
    pub(crate) fn name(&mut self) -> Result<&'a [u8], Errno> {
        let name = self.string()?;
        if name.len() > MAX_NAME_BYTES {
            return Err(Errno::NAMETOOLONG);
        }
        let reserved = matches!(name, b"" | b"." | b"..");
        if reserved || name.iter().any(|byte| matches!(byte, 0 | b'/')) {
            return Err(Errno::INVAL);
        }
        Ok(name)
    }
}

/// Writes a response; its header is filled in at the end.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    buffer: &'a mut Vec<u8>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(buffer: &'a mut Vec<u8>) -> Self {
        buffer.clear();
        buffer.extend_from_slice(&[0; HEADER_BYTES]);
        Self { buffer }
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.buffer.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.buffer.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.buffer.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.buffer.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Writes a string; all strings sent are shorter than 64 KiB.
    pub(crate) fn string(&mut self, text: &[u8]) {
        let text = &text[..text.len().min(usize::from(u16::MAX))];
        self.u16(text.len() as u16);
        self.bytes(text);
    }

    pub(crate) fn qid(&mut self, qid: Qid) {
        self.u8(qid.kind);
        self.u32(qid.version);
        self.u64(qid.path);
    }

    /// Length of the response so far, header included.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Overwrites the two bytes at `at` with `value`.
    pub(crate) fn patch_u16(&mut self, at: usize, value: u16) {
        self.buffer[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    /// Overwrites the four bytes at `at` with `value`.
    pub(crate) fn patch_u32(&mut self, at: usize, value: u32) {
        self.buffer[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Lets `fill` write at most `count` bytes, preceded by their number.
    ///
    /// # Errors
    /// Those of `fill`.
    pub(crate) fn counted(
        &mut self,
        count: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, Errno>,
    ) -> Result<(), Errno> {
        let at = self.len();
        self.buffer.resize(at + 4 + count, 0);
        let filled = fill(&mut self.buffer[at + 4..])?.min(count);
        self.patch_u32(at, filled as u32);
        self.buffer.truncate(at + 4 + filled);
        Ok(())
    }

    /// Completes the response.
    pub(crate) fn finish(mut self, kind: u8, tag: u16) {
        let len = self.len() as u32;
        self.patch_u32(0, len);
        self.buffer[4] = kind;
        self.buffer[5..HEADER_BYTES].copy_from_slice(&tag.to_le_bytes());
    }

    /// Turns the response into an error.
    pub(crate) fn fail(mut self, errno: Errno, tag: u16) {
        self.buffer.truncate(HEADER_BYTES);
        self.u32(errno.raw_os_error().unsigned_abs());
        self.finish(message::RLERROR, tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_end_with_the_message() {
        let mut reader = Reader::new(&[1, 2, 0, 3, 0, b'a', b'b']);
        assert_eq!(reader.u8(), Ok(1));
        assert_eq!(reader.u16(), Ok(2));
        assert_eq!(reader.string(), Err(Errno::PROTO));
        assert_eq!(Reader::new(&[0; 7]).u64(), Err(Errno::PROTO));
    }

    #[test]
    fn names_lead_nowhere_else() {
        let read = |name: &[u8]| {
            let mut bytes = (name.len() as u16).to_le_bytes().to_vec();
            bytes.extend_from_slice(name);
            Reader::new(&bytes).name().map(<[u8]>::to_vec)
        };
        assert_eq!(read(b"..."), Ok(b"...".to_vec()));
        for bad in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0"] {
            assert_eq!(read(bad), Err(Errno::INVAL), "{bad:?}");
        }
        assert_eq!(read(&[b'x'; 256]), Err(Errno::NAMETOOLONG));
    }

    #[test]
    fn answers_carry_their_length() {
        let mut buffer = vec![9; 30];
        let mut writer = Writer::new(&mut buffer);
        let read = writer.counted(10, |place| {
            place[..2].copy_from_slice(b"hi");
            Ok(2)
        });
        assert_eq!(read, Ok(()));
        writer.finish(117, 0x0102);
        assert_eq!(buffer, *b"\x0d\0\0\0\x75\x02\x01\x02\0\0\0hi");
        Writer::new(&mut buffer).fail(Errno::NOENT, NO_TAG);
        assert_eq!(buffer, *b"\x0b\0\0\0\x07\xff\xff\x02\0\0\0");
    }
}
