//! Unpacking: reads a gzip or zstd file in bounded memory, and hashes it on the way.

use super::super::digest::Hasher;
use flate2::bufread::GzDecoder;
use ruzstd::decoding::StreamingDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

/// Magic number of a gzip file (RFC 1952, section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Magic number of a zstd frame (RFC 8878, section 3.1.1), little-endian.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Maximum window of a zstd frame, which the decoder holds in memory: that of `zstd -19`.
const MAX_WINDOW: u64 = 8 << 20;

/// Bytes read at a time.
const CHUNK: usize = 256 << 10;

/// The content of a packed file.
pub(super) enum Unpacked {
    // Boxed: the state and tables of both decoders are large.
    Gzip(Box<GzDecoder<Hashed>>),
    Zstd(Box<StreamingDecoder<Hashed, ruzstd::decoding::FrameDecoder>>),
}

impl Unpacked {
    /// Begins to read a file; `None` if it is of neither kind.
    pub(super) fn open(file: File) -> io::Result<Option<Self>> {
        let mut packed = Hashed {
            inner: BufReader::with_capacity(CHUNK, file),
            hasher: Hasher::default(),
            bytes: 0,
        };
        let start = packed.fill_buf()?;
        if start.starts_with(&GZIP) {
            return Ok(Some(Self::Gzip(Box::new(GzDecoder::new(packed)))));
        }
        if !start.starts_with(&ZSTD) {
            return Ok(None);
        }
        let stream = StreamingDecoder::new_with_max_window_size(packed, MAX_WINDOW);
        Ok(stream.ok().map(|stream| Self::Zstd(Box::new(stream))))
    }

    fn packed(&mut self) -> &mut Hashed {
        match self {
            Self::Gzip(stream) => stream.get_mut(),
            Self::Zstd(stream) => stream.get_mut(),
        }
    }

    /// Bytes of the file that have been read.
    pub(super) fn bytes_read(&self) -> u64 {
        match self {
            Self::Gzip(stream) => stream.get_ref().bytes,
            Self::Zstd(stream) => stream.get_ref().bytes,
        }
    }

    /// Returns the SHA-256 of the file in hexadecimal; `None` if it goes on.
    pub(super) fn finish(&mut self) -> io::Result<Option<String>> {
        let packed = self.packed();
        let is_over = packed.fill_buf()?.is_empty();
        Ok(is_over.then(|| std::mem::take(&mut packed.hasher).hex()))
    }
}

impl Read for Unpacked {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Gzip(stream) => stream.read(bytes),
            // The decoder's own errors have no kind.
            Self::Zstd(stream) => stream.read(bytes).map_err(|error| match error.kind() {
                io::ErrorKind::Other => io::Error::new(io::ErrorKind::InvalidData, error),
                _ => error,
            }),
        }
    }
}

/// A file that is hashed while it is read.
pub(super) struct Hashed {
    inner: BufReader<File>,
    hasher: Hasher,
    bytes: u64,
}

impl Read for Hashed {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(bytes)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Hashed {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        let buffer = self.inner.buffer();
        let read = &buffer[..count.min(buffer.len())];
        self.hasher.update(read);
        self.bytes += read.len() as u64;
        self.inner.consume(count);
    }
}
