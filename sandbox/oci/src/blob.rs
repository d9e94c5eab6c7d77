//! Blobs: spans of the archive, read with their digest, and layers with their compression.

use crate::error::{OciCode, OciError, damaged, limit};
use crate::limits::{FREE_OF_RATIO, Limits};
use crate::tar::Input;
use a99_sandbox_cache::digest::Hasher;
use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::rc::Rc;

/// Bytes read at a time.
const CHUNK: usize = 64 << 10;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Hexadecimal digits of a SHA-256.
const HEX_DIGITS: usize = 64;

/// A SHA-256 as an archive names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Digest(String);

impl Digest {
    /// Parses `sha256:HEX`.
    pub(crate) fn parse(text: &str) -> Result<Self, OciError> {
        match text.split_once(':') {
            Some(("sha256", hex)) if is_hex(hex) => Ok(Self(hex.to_owned())),
            Some((algorithm, _)) if algorithm != "sha256" => {
                let text = "a digest that is not SHA-256";
                Err(OciError::new(OciCode::Unsupported, "manifest", text)
                    .help("copy the image by skopeo, which names blobs by SHA-256"))
            }
            _ => Err(damaged("manifest", "a malformed digest")),
        }
    }

    pub(crate) fn from_hex(hex: &str) -> Option<Self> {
        is_hex(hex).then(|| Self(hex.to_owned()))
    }

    pub(crate) fn hex(&self) -> &str {
        &self.0
    }
}

fn is_hex(text: &str) -> bool {
    text.len() == HEX_DIGITS && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// A span of a file.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) file: Rc<File>,
    pub(crate) position: u64,
    pub(crate) end: u64,
}

impl Span {
    pub(crate) fn len(&self) -> u64 {
        self.end.saturating_sub(self.position)
    }
}

impl Read for Span {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = (buffer.len() as u64).min(self.len()) as usize;
        let count = self.file.read_at(&mut buffer[..most], self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

impl Input for Span {
    fn skip(&mut self, count: u64) -> io::Result<()> {
        if count > self.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.position += count;
        Ok(())
    }
}

/// Reads a small blob whole, and checks its digest and size.
pub(crate) fn read_small(
    span: Span,
    digest: Option<&Digest>,
    size: Option<u64>,
    place: &str,
    limits: &Limits,
) -> Result<Vec<u8>, OciError> {
    if span.len() > limits.json {
        return Err(limit(place, "bytes", limits.json));
    }
    check_size(&span, size, place)?;
    let mut reader = Hashing::new(span);
    let mut bytes = Vec::new();
    reader
        .read_to_end(&mut bytes)
        .map_err(|error| OciError::io(place, &error))?;
    reader.check(digest, place)?;
    Ok(bytes)
}

fn check_size(span: &Span, size: Option<u64>, place: &str) -> Result<(), OciError> {
    match size {
        Some(size) if size != span.len() => {
            let text = format!("it has {} bytes, and the manifest names {size}", span.len());
            Err(OciError::new(OciCode::Digest, place, text).help(DIFFERS))
        }
        _ => Ok(()),
    }
}

const DIFFERS: &str = "the archive is damaged or was changed: fetch or save the image again";

/// Reader that sums what it reads.
struct Hashing<R> {
    inner: R,
    hasher: Hasher,
}

impl<R> Hashing<R> {
    fn new(inner: R) -> Self {
        let hasher = Hasher::default();
        Self { inner, hasher }
    }

    /// Compares the digest of what was read.
    fn check(self, digest: Option<&Digest>, place: &str) -> Result<(), OciError> {
        let Some(digest) = digest else {
            return Ok(());
        };
        let found = self.hasher.hex();
        if found == digest.hex() {
            return Ok(());
        }
        let text = format!("its SHA-256 is {found}, and {} is named", digest.hex());
        Err(OciError::new(OciCode::Digest, place, text).help(DIFFERS))
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
    }
}

type Source = BufReader<Hashing<Span>>;

/// The unpacked stream of a layer.
enum Decoder {
    Plain(Source),
    Gzip(Box<MultiGzDecoder<Source>>),
    Zstd(Box<Zstd>),
}

impl Decoder {
    fn source(self) -> Source {
        match self {
            Decoder::Plain(source) => source,
            Decoder::Gzip(decoder) => decoder.into_inner(),
            Decoder::Zstd(decoder) => decoder.source,
        }
    }
}

impl Read for Decoder {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Decoder::Plain(source) => source.read(buffer),
            Decoder::Gzip(decoder) => decoder.read(buffer),
            Decoder::Zstd(decoder) => decoder.read(buffer),
        }
    }
}

/// Decoder of all frames of a stream; frames without data are skipped.
struct Zstd {
    decoder: FrameDecoder,
    source: Source,
    in_frame: bool,
}

impl Read for Zstd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame {
                if self.source.fill_buf()?.is_empty() {
                    return Ok(0);
                }
                match self.decoder.init(&mut self.source) {
                    Ok(()) => self.in_frame = true,
                    Err(FrameDecoderError::ReadFrameHeaderError(
                        ReadFrameHeaderError::SkipFrame { length, .. },
                    )) => {
                        let skipped = (&mut self.source).take(length.into());
                        io::copy(&mut { skipped }, &mut io::sink())?;
                        continue;
                    }
                    Err(error) => return Err(io::Error::other(error)),
                }
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder
                    .decode_blocks(&mut self.source, one)
                    .map_err(io::Error::other)?;
            }
            let count = self.decoder.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            self.in_frame = false;
        }
    }
}

/// A layer while it is read: its unpacked bytes, summed and bounded.
pub(crate) struct Layer {
    decoder: Hashing<Decoder>,
    place: String,
    unpacked: u64,
    /// Bytes that it may unpack to, and why.
    most: u64,
    bound: (&'static str, u64),
}

impl Layer {
    /// Opens a layer that may unpack to `budget` bytes.
    pub(crate) fn open(
        span: Span,
        size: Option<u64>,
        place: String,
        budget: u64,
        limits: &Limits,
    ) -> Result<Self, OciError> {
        check_size(&span, size, &place)?;
        let by_ratio = FREE_OF_RATIO.saturating_add(limits.ratio.saturating_mul(span.len()));
        let (most, bound) = if by_ratio < budget {
            (
                by_ratio,
                ("times its packed bytes in a layer", limits.ratio),
            )
        } else {
            (budget, ("unpacked bytes in an image", limits.unpacked))
        };
        let mut source = BufReader::with_capacity(CHUNK, Hashing::new(span));
        let failed = |error: io::Error| OciError::io(&place, &error);
        let start = source.fill_buf().map_err(failed)?;
        let decoder = if start.starts_with(GZIP) {
            Decoder::Gzip(Box::new(MultiGzDecoder::new(source)))
        } else if start.starts_with(ZSTD) {
            Decoder::Zstd(Box::new(Zstd {
                decoder: FrameDecoder::new(),
                source,
                in_frame: false,
            }))
        } else {
            Decoder::Plain(source)
        };
        Ok(Self {
            decoder: Hashing::new(decoder),
            place,
            unpacked: 0,
            most,
            bound,
        })
    }

    /// Reads the rest, and compares the digests of the blob and of what it unpacks to;
    /// returns how many bytes that were.
    pub(crate) fn finish(
        mut self,
        digest: Option<&Digest>,
        diff_id: &Digest,
    ) -> Result<u64, OciError> {
        let place = self.place.clone();
        let failed = |error: io::Error| OciError::io(&place, &error);
        io::copy(&mut self, &mut io::sink()).map_err(failed)?;
        let count = self.unpacked;
        let Hashing { inner, hasher } = self.decoder;
        let unpacked = Hashing { inner: (), hasher };
        let mut source = inner.source();
        io::copy(&mut source, &mut io::sink()).map_err(failed)?;
        source.into_inner().check(digest, &place)?;
        unpacked.check(Some(diff_id), &format!("{place}, unpacked"))?;
        Ok(count)
    }
}

impl Read for Layer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.decoder.read(buffer)?;
        self.unpacked += count as u64;
        if self.unpacked > self.most {
            let (what, most) = self.bound;
            return Err(limit(&self.place, what, most).into());
        }
        Ok(count)
    }
}

impl Input for Layer {
    fn skip(&mut self, count: u64) -> io::Result<()> {
        match io::copy(&mut self.take(count), &mut io::sink())? {
            skipped if skipped < count => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}
