//! Tar reader for hostile streams: POSIX, PAX and GNU headers, with bounds on all of them.
//!
//! The reader returns headers and lets the caller read contents; it writes nothing. Sparse
//! files, multiple volumes and unknown kinds of entries are refused: what writes images
//! makes none of them.

use crate::error::{OciCode, OciError, damaged, limit, quoted};
use crate::limits::Limits;
use std::io::{self, Read};
use std::ops::Range;

const BLOCK: usize = 512;

/// Extended headers before one entry.
const MAX_EXTENDED_HEADERS: u32 = 8;

/// A stream that can skip bytes.
pub(crate) trait Input: Read {
    fn skip(&mut self, count: u64) -> io::Result<()>;
}

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Folder,
    HardLink,
    Link,
    Fifo,
    Device,
}

/// An entry, without its content.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) kind: EntryKind,
    pub(crate) path: Vec<u8>,
    /// Target of a link.
    pub(crate) target: Vec<u8>,
    /// Length of the content; zero except for files.
    pub(crate) size: u64,
    pub(crate) mode: u16,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mtime: i64,
}

/// Reader of the entries of a stream.
pub(crate) struct Tar<'l, R> {
    pub(crate) input: R,
    limits: &'l Limits,
    /// Bytes of the current content, and of its padding, that were not read.
    left: u64,
    padding: u64,
    /// Bytes of the stream read so far, at header borders.
    pub(crate) position: u64,
}

/// Fields that extended headers set for the next entry.
#[derive(Default)]
struct Extended {
    path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    size: Option<u64>,
    uid: Option<u64>,
    gid: Option<u64>,
    mtime: Option<i64>,
}

impl<'l, R: Input> Tar<'l, R> {
    pub(crate) fn new(input: R, limits: &'l Limits) -> Self {
        Self {
            input,
            limits,
            left: 0,
            padding: 0,
            position: 0,
        }
    }

    /// Reads the next header; `None` at the end of the archive.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, OciError> {
        let mut extended = Extended::default();
        for _ in 0..MAX_EXTENDED_HEADERS {
            self.skip_content()?;
            let Some(block) = self.header()? else {
                return Ok(None);
            };
            let size = number(&block, 124..136)?;
            match block[156] {
                b'x' => self.pax(size, &mut extended)?,
                b'g' => self.global(size)?,
                b'L' => extended.path = Some(self.long_name(size)?),
                b'K' => extended.target = Some(self.long_name(size)?),
                kind => return self.entry(&block, kind, size, extended).map(Some),
            }
        }
        Err(limit(
            "layer",
            "extended headers before an entry",
            MAX_EXTENDED_HEADERS.into(),
        ))
    }

    /// Reads from the content of the current entry; 0 at its end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = (buffer.len() as u64).min(self.left) as usize;
        if most == 0 {
            return Ok(0);
        }
        let count = self.input.read(&mut buffer[..most])?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= count as u64;
        self.position += count as u64;
        Ok(count)
    }

    fn skip_content(&mut self) -> Result<(), OciError> {
        let count = self.left.saturating_add(self.padding);
        if count > 0 {
            self.input
                .skip(count)
                .map_err(|error| OciError::io("archive", &error))?;
            self.position = self.position.saturating_add(count);
            (self.left, self.padding) = (0, 0);
        }
        Ok(())
    }

    /// Reads a header block; `None` at a zero block, or at the end of the stream.
    fn header(&mut self) -> Result<Option<[u8; BLOCK]>, OciError> {
        let mut block = [0; BLOCK];
        let mut filled = 0;
        while filled < BLOCK {
            match self.input.read(&mut block[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => {
                    let error = io::ErrorKind::UnexpectedEof.into();
                    return Err(OciError::io("archive", &error));
                }
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(OciError::io("archive", &error)),
            }
        }
        self.position += BLOCK as u64;
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let sum = |byte: &u8| u64::from(*byte);
        let fields = block[..148].iter().chain(&block[156..]).map(sum);
        // The field itself counts as eight spaces.
        if fields.sum::<u64>() + 8 * 32 != number(&block, 148..156)? {
            return Err(damaged("archive", "a header has a wrong checksum")
                .help("the file is no tar archive, or is damaged: save the image again"));
        }
        Ok(Some(block))
    }

    fn entry(
        &mut self,
        block: &[u8; BLOCK],
        kind: u8,
        size: u64,
        extended: Extended,
    ) -> Result<Entry, OciError> {
        let path = extended.path.unwrap_or_else(|| path(block));
        let target = extended.target.unwrap_or_else(|| text(&block[157..257]));
        for name in [&path, &target] {
            if name.len() > self.limits.path {
                let most = self.limits.path as u64;
                return Err(limit(quoted(name), "bytes in a path", most));
            }
            if name.contains(&0) {
                return Err(damaged(quoted(name), "a path with a zero byte"));
            }
        }
        let kind = match kind {
            // Before POSIX, a folder was a file with a slash at the end.
            0 if path.ends_with(b"/") => EntryKind::Folder,
            b'0' | 0 | b'7' => EntryKind::File,
            b'1' => EntryKind::HardLink,
            b'2' => EntryKind::Link,
            b'3' | b'4' => EntryKind::Device,
            b'5' => EntryKind::Folder,
            b'6' => EntryKind::Fifo,
            other => {
                let text = format!("an entry of kind {:?}", char::from(other));
                return Err(OciError::new(OciCode::Unsupported, quoted(&path), text)
                    .help("sparse and multi-volume archives are not read: save the image anew"));
            }
        };
        let size = match kind {
            EntryKind::File => extended.size.unwrap_or(size),
            _ => 0,
        };
        if size > self.limits.unpacked {
            return Err(limit(
                quoted(&path),
                "bytes in a file",
                self.limits.unpacked,
            ));
        }
        self.expect(size);
        let id = |value: u64| {
            let error = || damaged(quoted(&path), "a user or group above 32 bits");
            u32::try_from(value).map_err(|_| error())
        };
        let mtime = extended.mtime.map_or_else(|| time(block), Ok)?;
        Ok(Entry {
            kind,
            target,
            size,
            mode: (number(block, 100..108)? & 0o7777) as u16,
            uid: id(extended.uid.map_or_else(|| number(block, 108..116), Ok)?)?,
            gid: id(extended.gid.map_or_else(|| number(block, 116..124), Ok)?)?,
            mtime,
            path,
        })
    }

    /// Sets the content that follows.
    fn expect(&mut self, size: u64) {
        self.left = size;
        self.padding = size.next_multiple_of(BLOCK as u64) - size;
    }

    /// Reads the content of an extended header.
    fn extended_content(&mut self, size: u64) -> Result<Vec<u8>, OciError> {
        if size > self.limits.extended {
            let most = self.limits.extended;
            return Err(limit("archive", "bytes in an extended header", most));
        }
        self.expect(size);
        let mut content = vec![0; size as usize];
        let mut filled = 0;
        while filled < content.len() {
            filled += self
                .read(&mut content[filled..])
                .map_err(|error| OciError::io("archive", &error))?;
        }
        Ok(content)
    }

    fn long_name(&mut self, size: u64) -> Result<Vec<u8>, OciError> {
        Ok(text(&self.extended_content(size)?))
    }

    /// Global headers carry comments; one that names or sizes every entry is refused.
    fn global(&mut self, size: u64) -> Result<(), OciError> {
        let content = self.extended_content(size)?;
        for record in Records(&content) {
            let (key, _) = record?;
            if matches!(key, b"path" | b"linkpath" | b"size") || key.starts_with(b"GNU.sparse") {
                let text = "a global header that names or sizes entries";
                return Err(OciError::new(OciCode::Unsupported, "archive", text)
                    .help("save the image again, by docker, podman or skopeo"));
            }
        }
        Ok(())
    }

    fn pax(&mut self, size: u64, extended: &mut Extended) -> Result<(), OciError> {
        let content = self.extended_content(size)?;
        for record in Records(&content) {
            let (key, value) = record?;
            match key {
                b"path" => extended.path = Some(value.to_vec()),
                b"linkpath" => extended.target = Some(value.to_vec()),
                b"size" => extended.size = Some(decimal(value)?),
                b"uid" => extended.uid = Some(decimal(value)?),
                b"gid" => extended.gid = Some(decimal(value)?),
                b"mtime" => extended.mtime = Some(seconds(value)?),
                _ if key.starts_with(b"GNU.sparse") => {
                    return Err(
                        OciError::new(OciCode::Unsupported, "archive", "a sparse file")
                            .help("save the image again, by docker, podman or skopeo"),
                    );
                }
                // Among them extended attributes.
                _ => {}
            }
        }
        Ok(())
    }
}

/// Records of a PAX header: `LENGTH KEY=VALUE\n`.
struct Records<'a>(&'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), OciError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let parsed = record(self.0);
        self.0 = parsed.map_or(&[], |(_, rest)| rest);
        Some(
            parsed
                .map(|(pair, _)| pair)
                .ok_or_else(|| damaged("archive", "a malformed extended header")),
        )
    }
}

type Pair<'a> = (&'a [u8], &'a [u8]);

fn record(bytes: &[u8]) -> Option<(Pair<'_>, &[u8])> {
    let space = bytes.iter().take(20).position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&bytes[..space]).ok()?.parse().ok()?;
    let (record, rest) = bytes.split_at_checked(length)?;
    let pair = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = pair.iter().position(|byte| *byte == b'=')?;
    Some(((&pair[..equals], &pair[equals + 1..]), rest))
}

fn decimal(value: &[u8]) -> Result<u64, OciError> {
    let number = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
    number.ok_or_else(|| damaged("archive", "an extended header with no number"))
}

/// Parses seconds with a fraction, which is dropped.
fn seconds(value: &[u8]) -> Result<i64, OciError> {
    let whole = value.split(|byte| *byte == b'.').next().unwrap_or(value);
    let number = std::str::from_utf8(whole).ok().and_then(|v| v.parse().ok());
    number.ok_or_else(|| damaged("archive", "an extended header with no time"))
}

/// Parses a numeric field: octal digits, or a big-endian number after a set top bit.
fn number(block: &[u8; BLOCK], field: Range<usize>) -> Result<u64, OciError> {
    let wrong = || damaged("archive", "a header with a malformed number");
    let bytes = &block[field];
    if let [first, rest @ ..] = bytes
        && first & 0x80 != 0
    {
        let add = |all: u64, byte: &u8| Some(all.checked_mul(256)? + u64::from(*byte));
        let start = u64::from(first & 0x7f);
        return rest.iter().try_fold(start, add).ok_or_else(wrong);
    }
    let is_blank = |byte: &u8| matches!(byte, b' ' | 0);
    let start = bytes.iter().position(|byte| *byte != b' ');
    let digits = bytes
        .get(start.unwrap_or(bytes.len())..)
        .unwrap_or_default();
    let end = digits.iter().position(is_blank).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    let add = |all: u64, byte: &u8| match byte {
        b'0'..=b'7' => Some(all.checked_mul(8)? + u64::from(byte - b'0')),
        _ => None,
    };
    if !rest.iter().all(is_blank) {
        return Err(wrong());
    }
    digits.iter().try_fold(0, add).ok_or_else(wrong)
}

/// Parses the time; one before 1970 (a set sign bit) is 0.
fn time(block: &[u8; BLOCK]) -> Result<i64, OciError> {
    if block[136] == 0xff {
        return Ok(0);
    }
    let time = number(block, 136..148)?;
    i64::try_from(time).map_err(|_| damaged("archive", "a header with a malformed time"))
}

/// Path of a header: the name, after the prefix that POSIX headers have.
fn path(block: &[u8; BLOCK]) -> Vec<u8> {
    let name = text(&block[..100]);
    let prefix = text(&block[345..500]);
    if &block[257..263] != b"ustar\0" || prefix.is_empty() {
        return name;
    }
    [&prefix[..], b"/", &name].concat()
}

/// The bytes before the first zero.
fn text(bytes: &[u8]) -> Vec<u8> {
    bytes
        .split(|byte| *byte == 0)
        .next()
        .unwrap_or_default()
        .to_vec()
}
