//! Bounded decompression (security N08): gzip, deflate and brotli.

use crate::brotli::Brotli;
use crate::error::{FetchCode, FetchError};
use flate2::write::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use http::header::{CONTENT_ENCODING, HeaderMap};
use std::fmt;
use std::io::{self, Write};

/// The supported encodings, for `Accept-Encoding`.
pub(crate) const ACCEPTED: &str = "gzip, br, deflate";

/// Bytes that are decompressed at a time.
const STEP: usize = 16 << 10;

/// Bytes of a deflate decoder, including its window of 32 KiB.
const INFLATE_BYTES: usize = 96 << 10;

/// The content encoding of a body.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Identity,
    Gzip,
    Deflate,
    Brotli,
}

impl Coding {
    /// Reads the encoding from the headers.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Coding, FetchError> {
        let mut found = Coding::Identity;
        for value in headers.get_all(CONTENT_ENCODING) {
            let value = value.to_str().unwrap_or("?");
            for name in value.split(',').map(str::trim) {
                let coding = match name.to_ascii_lowercase().as_str() {
                    "" | "identity" => continue,
                    "gzip" | "x-gzip" => Coding::Gzip,
                    "deflate" => Coding::Deflate,
                    "br" => Coding::Brotli,
                    _ => {
                        let text = format!("the answer is compressed otherwise than by {ACCEPTED}");
                        return Err(FetchError::new(FetchCode::Encoding, text));
                    }
                };
                if found != Coding::Identity {
                    let text = "the answer is compressed more than once";
                    return Err(FetchError::new(FetchCode::Encoding, text));
                }
                found = coding;
            }
        }
        Ok(found)
    }
}

/// A decoder of an incoming body.
pub(crate) enum Decoder {
    Identity(Sink),
    Gzip(Box<MultiGzDecoder<Sink>>),
    Deflate(Box<Deflate>),
    Brotli(Box<Brotli<Sink>>),
    /// Before the first bytes of a brotli stream.
    Unread(Sink),
}

impl Decoder {
    pub(crate) fn new(coding: Coding, limit: usize) -> Decoder {
        let sink = Sink {
            bytes: Vec::new(),
            limit,
        };
        match coding {
            Coding::Identity => Decoder::Identity(sink),
            Coding::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(sink))),
            Coding::Deflate => Decoder::Deflate(Box::new(Deflate {
                sink,
                inflate: None,
                held: Vec::new(),
                out: Vec::new(),
                ended: false,
            })),
            Coding::Brotli => Decoder::Unread(sink),
        }
    }

    /// Takes received bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), FetchError> {
        if let (Decoder::Unread(sink), [first, ..]) = (&mut *self, bytes) {
            // Refuses windows of up to 1 GiB, which `br` does not have (RFC 7932, 9.1).
            if first & 0x7F == 0x11 {
                return Err(broken());
            }
            let sink = std::mem::take(sink);
            *self = Decoder::Brotli(Box::new(Brotli::new(sink, STEP)));
        }
        let done = match self {
            Decoder::Identity(sink) | Decoder::Unread(sink) => sink.write_all(bytes),
            Decoder::Gzip(gzip) => gzip.write_all(bytes),
            Decoder::Deflate(deflate) => deflate.push(bytes),
            Decoder::Brotli(brotli) => brotli.write_all(bytes),
        };
        done.map_err(failure)
    }

    /// Bytes of the body so far, including spare capacity.
    pub(crate) fn held(&self) -> usize {
        let sink = match self {
            Decoder::Identity(sink) | Decoder::Unread(sink) => sink,
            Decoder::Gzip(gzip) => gzip.get_ref(),
            Decoder::Deflate(deflate) => &deflate.sink,
            Decoder::Brotli(brotli) => brotli.get_ref(),
        };
        sink.bytes.capacity()
    }

    /// Bytes of decompression outside of the body: windows and tables.
    pub(crate) fn working(&self) -> usize {
        match self {
            Decoder::Identity(_) | Decoder::Unread(_) => 0,
            Decoder::Gzip(_) | Decoder::Deflate(_) => INFLATE_BYTES,
            Decoder::Brotli(brotli) => brotli.taken(),
        }
    }

    /// The whole body. An empty compressed body is invalid, except in answers without a body.
    pub(crate) fn finish(self, received: usize) -> Result<Vec<u8>, FetchError> {
        if received == 0 {
            return Ok(Vec::new());
        }
        let sink = match self {
            Decoder::Identity(sink) | Decoder::Unread(sink) => sink,
            Decoder::Gzip(mut gzip) => {
                gzip.try_finish().map_err(failure)?;
                std::mem::take(gzip.get_mut())
            }
            Decoder::Deflate(deflate) => deflate.finish().map_err(failure)?,
            Decoder::Brotli(mut brotli) => {
                brotli.close().map_err(failure)?;
                std::mem::take(brotli.get_mut())
            }
        };
        Ok(sink.bytes)
    }
}

/// A zlib stream (RFC 1950), which is the meaning of `deflate`, or the raw one (RFC 1951) that
/// some servers send.
pub(crate) struct Deflate {
    sink: Sink,
    inflate: Option<Decompress>,
    held: Vec<u8>,
    /// The output buffer, reused for all parts of the body.
    out: Vec<u8>,
    ended: bool,
}

impl Deflate {
    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.inflate.is_some() {
            return self.inflate(bytes);
        }
        self.held.extend_from_slice(bytes);
        let [first, second, ..] = *self.held.as_slice() else {
            return Ok(());
        };
        let zlib = first & 0x0F == 8 && u16::from_be_bytes([first, second]) % 31 == 0;
        self.inflate = Some(Decompress::new(zlib));
        let held = std::mem::take(&mut self.held);
        self.inflate(&held)
    }

    fn inflate(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let Some(inflate) = &mut self.inflate else {
            return Ok(());
        };
        if self.ended && !bytes.is_empty() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.out.resize(STEP, 0);
        while !self.ended {
            let (read, written) = (inflate.total_in(), inflate.total_out());
            let status = inflate
                .decompress(bytes, &mut self.out, FlushDecompress::None)
                .map_err(io::Error::other)?;
            let read = (inflate.total_in() - read) as usize;
            let written = (inflate.total_out() - written) as usize;
            bytes = bytes.get(read..).unwrap_or_default();
            self.sink
                .write_all(self.out.get(..written).unwrap_or_default())?;
            self.ended = status == Status::StreamEnd;
            if read == 0 && written == 0 {
                break;
            }
        }
        match self.ended && !bytes.is_empty() {
            true => Err(io::ErrorKind::InvalidData.into()),
            false => Ok(()),
        }
    }

    fn finish(self) -> io::Result<Sink> {
        match self.ended {
            true => Ok(self.sink),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// The output of a body, limited in size.
#[derive(Default)]
pub(crate) struct Sink {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(io::Error::other(Full(self.limit)));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The body exceeded its limit.
#[derive(Copy, Clone, Debug)]
struct Full(usize);

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than {} bytes", self.0)
    }
}

impl std::error::Error for Full {}

fn failure(error: io::Error) -> FetchError {
    match error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Full>())
    {
        Some(Full(limit)) => too_large(*limit),
        None => broken(),
    }
}

pub(crate) fn too_large(limit: usize) -> FetchError {
    let text = format!("the answer's body is larger than {limit} bytes");
    FetchError::new(FetchCode::BodyTooLarge, text)
}

fn broken() -> FetchError {
    let text = "the answer's body is not compressed as it says";
    FetchError::new(FetchCode::Encoding, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    const LIMIT: usize = 1 << 20;

    fn decode(coding: Coding, bytes: &[u8], step: usize) -> Result<Vec<u8>, FetchCode> {
        let mut decoder = Decoder::new(coding, LIMIT);
        let pushed = bytes.chunks(step).try_for_each(|part| decoder.push(part));
        let done = pushed.and_then(|()| decoder.finish(bytes.len()));
        done.map_err(|error| error.code())
    }

    fn packed(coding: Coding, plain: &[u8]) -> Vec<u8> {
        let best = Compression::best();
        match coding {
            Coding::Identity => plain.to_vec(),
            Coding::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), best);
                encoder.write_all(plain).expect("a vector");
                encoder.finish().expect("a vector")
            }
            Coding::Deflate => {
                let mut encoder = ZlibEncoder::new(Vec::new(), best);
                encoder.write_all(plain).expect("a vector");
                encoder.finish().expect("a vector")
            }
            Coding::Brotli => brotli(plain),
        }
    }

    /// A brotli stream of uncompressed meta-blocks (RFC 7932 section 9.2).
    fn brotli(plain: &[u8]) -> Vec<u8> {
        // A window of 22 bits, so that the first byte has room for 4 more.
        let mut bits: Vec<bool> = Vec::new();
        let mut put = |value: u32, count: u32| {
            bits.extend((0..count).map(|at| value >> at & 1 == 1));
        };
        put(0b1011, 4);
        let mut out = Vec::new();
        for block in plain.chunks(1 << 16) {
            put(0, 1);
            put(0, 2);
            put(block.len() as u32 - 1, 16);
            put(1, 1);
            out.push(block);
        }
        let _ = put;
        // Bytes begin at a whole byte after each head.
        let mut bytes = Vec::new();
        let mut rest = bits.as_slice();
        for (index, block) in out.iter().enumerate() {
            let head = if index == 0 { 24 } else { 20 };
            let (now, later) = rest.split_at(head);
            rest = later;
            bytes.extend(now.chunks(8).map(|byte| {
                byte.iter()
                    .rev()
                    .fold(0u8, |all, bit| all << 1 | u8::from(*bit))
            }));
            bytes.extend_from_slice(block);
        }
        bytes.push(0b11);
        bytes
    }

    #[test]
    fn bodies_come_back_however_they_are_cut() {
        let plain: Vec<u8> = (0..200_000u32)
            .flat_map(|n| (n / 7).to_le_bytes())
            .collect();
        for coding in [
            Coding::Identity,
            Coding::Gzip,
            Coding::Deflate,
            Coding::Brotli,
        ] {
            let bytes = packed(coding, &plain);
            for step in [1, 7, 1 << 20] {
                let found = decode(coding, &bytes, step);
                assert!(
                    found.as_deref() == Ok(&plain),
                    "{coding:?} {step} {:?}",
                    found.err()
                );
            }
            assert_eq!(decode(coding, &[], 1), Ok(Vec::new()));
            if coding != Coding::Identity {
                let cut = bytes.get(..bytes.len() - 3).expect("longer");
                assert_eq!(
                    decode(coding, cut, 100),
                    Err(FetchCode::Encoding),
                    "{coding:?}"
                );
                assert!(decode(coding, b"\xFFnot packed", 3).is_err(), "{coding:?}");
            }
        }
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::best());
        bare.write_all(&plain).expect("a vector");
        let bare = bare.finish().expect("a vector");
        assert_eq!(decode(Coding::Deflate, &bare, 3).as_ref(), Ok(&plain));
    }

    #[test]
    fn d7_a_packed_body_ends_where_its_stream_does() {
        let plain = b"half of this is no answer, and neither is more".repeat(3);
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::best());
        bare.write_all(&plain).expect("a vector");
        let bare = bare.finish().expect("a vector");
        let mut bodies = vec![(Coding::Deflate, bare)];
        for coding in [Coding::Gzip, Coding::Deflate, Coding::Brotli] {
            bodies.push((coding, packed(coding, &plain)));
        }
        for (coding, bytes) in bodies {
            for step in [1, 5, 1 << 20] {
                for cut in 1..bytes.len() {
                    let found = decode(coding, &bytes[..cut], step);
                    assert_eq!(found, Err(FetchCode::Encoding), "{coding:?} {step} {cut}");
                }
                for more in [&b"x"[..], b"\0", b"more", &[0x1F, 0x8B]] {
                    let found = decode(coding, &[&bytes, more].concat(), step);
                    assert_eq!(
                        found,
                        Err(FetchCode::Encoding),
                        "{coding:?} {step} {more:?}"
                    );
                }
            }
        }
        // Members of gzip follow each other (RFC 1952 section 2.2), each of them whole.
        let member = packed(Coding::Gzip, &plain);
        let two = [member.as_slice(), &member].concat();
        for step in [1, 5, 1 << 20] {
            assert_eq!(decode(Coding::Gzip, &two, step), Ok(plain.repeat(2)));
            for cut in member.len() + 1..two.len() {
                let found = decode(Coding::Gzip, &two[..cut], step);
                assert_eq!(found, Err(FetchCode::Encoding), "{step} {cut}");
            }
        }
    }

    #[test]
    fn n08_bombs_stop_at_the_limit() {
        let zeros = vec![0; 64 << 20];
        for coding in [Coding::Gzip, Coding::Deflate] {
            let bomb = packed(coding, &zeros);
            assert!(bomb.len() < LIMIT);
            assert_eq!(decode(coding, &bomb, 1 << 16), Err(FetchCode::BodyTooLarge));
        }
        // A window of 2^30 bytes in the form that only large windows have.
        assert_eq!(
            decode(Coding::Brotli, &[0x11, 0x1E, 0, 0], 4),
            Err(FetchCode::Encoding)
        );
    }
}
