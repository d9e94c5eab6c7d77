//! Wheels: ZIP files, of which only the wanted entries are read.
//!
//! Names in the archive are compared and never become paths. The reader of an entry must limit
//! its size.

use crate::error::{EmbedCode, EmbedError};
use flate2::read::DeflateDecoder;
use std::io::{BufReader, Read, Seek, SeekFrom};

/// Maximum bytes of the directory.
const MAX_DIRECTORY_BYTES: u32 = 4 << 20;

/// Bytes at the end of a file that may contain the end record of its directory: the record
/// itself, and the longest comment.
const END_BYTES: u64 = 22 + 0xFFFF;

/// The method of an uncompressed entry.
const STORED: u16 = 0;

/// The only supported compression method.
const DEFLATED: u16 = 8;

/// An archive whose directory has been read.
#[derive(Debug)]
pub(crate) struct Archive<F> {
    file: F,
    entries: Vec<Entry>,
}

/// A file of an archive.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// Uncompressed bytes according to the directory.
    pub(crate) bytes: u64,
    packed: u64,
    method: u16,
    is_encrypted: bool,
    header: u64,
}

#[cfg(any(test, feature = "fuzzing"))]
impl Entry {
    pub(crate) fn is_stored(&self) -> bool {
        self.method == STORED
    }
}

fn wrong(what: &str) -> EmbedError {
    EmbedError::new(EmbedCode::Archive, what)
}

fn failed(error: std::io::Error) -> EmbedError {
    EmbedError::new(EmbedCode::Archive, format!("cannot be read: {error}"))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let (found, _) = bytes.get(at..)?.split_first_chunk()?;
    Some(u16::from_le_bytes(*found))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let (found, _) = bytes.get(at..)?.split_first_chunk()?;
    Some(u32::from_le_bytes(*found))
}

impl<F: Read + Seek> Archive<F> {
    pub(crate) fn open(mut file: F) -> Result<Archive<F>, EmbedError> {
        let length = file.seek(SeekFrom::End(0)).map_err(failed)?;
        let end = read_at(&mut file, length.saturating_sub(END_BYTES), END_BYTES)?;
        let is_end = |at: &usize| {
            let comment = u16_at(&end, at + 20).map(usize::from);
            end[*at..].starts_with(b"PK\x05\x06") && comment == Some(end.len() - at - 22)
        };
        let candidates = (0..end.len().saturating_sub(21)).rev();
        let end = candidates.into_iter().find(is_end).map(|at| &end[at..]);
        let end = end.ok_or_else(|| wrong("it is no ZIP file"))?;
        let (size, offset) = (u32_at(end, 12), u32_at(end, 16));
        let (Some(size), Some(offset)) = (size, offset) else {
            return Err(wrong("the end of its directory is damaged"));
        };
        if size > MAX_DIRECTORY_BYTES {
            return Err(wrong("its directory is larger than may be"));
        }
        let directory = read_at(&mut file, offset.into(), size.into())?;
        let mut rest = directory.as_slice();
        let mut entries = Vec::new();
        while !rest.is_empty() {
            let (entry, bytes) = entry(rest).ok_or_else(|| wrong("its directory is damaged"))?;
            entries.push(entry);
            rest = rest.get(bytes..).unwrap_or_default();
        }
        Ok(Archive { file, entries })
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn read(&mut self, entry: &Entry) -> Result<Box<dyn Read + '_>, EmbedError> {
        if entry.is_encrypted {
            return Err(wrong("an entry is encrypted"));
        }
        let header = read_at(&mut self.file, entry.header, 30)?;
        let lengths = (u16_at(&header, 26), u16_at(&header, 28));
        let (Some(name), Some(extra)) = lengths else {
            return Err(wrong("an entry lies beyond its end"));
        };
        if !header.starts_with(b"PK\x03\x04") {
            return Err(wrong("an entry is not where the directory says"));
        }
        let data = entry.header + 30 + u64::from(name) + u64::from(extra);
        self.file.seek(SeekFrom::Start(data)).map_err(failed)?;
        let packed = BufReader::new((&mut self.file).take(entry.packed));
        match entry.method {
            STORED => Ok(Box::new(packed)),
            DEFLATED => Ok(Box::new(DeflateDecoder::new(packed))),
            _ => Err(wrong("an entry is packed in another way than deflate")),
        }
    }
}

/// Reads up to `length` bytes from an offset.
fn read_at(file: &mut (impl Read + Seek), at: u64, length: u64) -> Result<Vec<u8>, EmbedError> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(at)).map_err(failed)?;
    let mut part = file.take(length);
    part.read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Parses the first entry of a directory, and gives its length there.
fn entry(directory: &[u8]) -> Option<(Entry, usize)> {
    if !directory.starts_with(b"PK\x01\x02") {
        return None;
    }
    let length = |at| u16_at(directory, at).map(usize::from);
    let name = directory.get(46..46 + length(28)?)?;
    let entry = Entry {
        name: String::from_utf8_lossy(name).into_owned(),
        bytes: u32_at(directory, 24)?.into(),
        packed: u32_at(directory, 20)?.into(),
        method: u16_at(directory, 10)?,
        is_encrypted: u16_at(directory, 8)? & 1 != 0,
        header: u32_at(directory, 42)?.into(),
    };
    Some((entry, 46 + length(28)? + length(30)? + length(32)?))
}
