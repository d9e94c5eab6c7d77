//! Import: reads a portable image, which is untrusted.

use super::super::cache::{self, Cache, make_folder};
use super::super::digest::{Hasher, Inputs};
use super::super::entry::Entry;
use super::super::error::{At, ErrorCode, ImageError};
use super::super::machine::{MODULE, Machine, ROOM};
use super::super::module::Precompile;
use super::super::progress::{Event, Progress, StepEnd};
use super::super::step;
use super::manifest::{MAX_BYTES, NAME, Part, Portable};
use super::tar::{BLOCK, END_BLOCKS, padding, size_of};
use super::unpack::Unpacked;
use super::{ORIGIN, STEP, VOUCHED, is_foreign, vouched};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Instant;

/// Bytes copied at a time.
const CHUNK: usize = 256 << 10;

/// Imports the image in a file as the one that sandboxes start from.
///
/// It checks every part, compiles the snapshot for this processor, and starts a guest from
/// it. Returns the file's manifest.
///
/// With the SHA-256 of a file that the caller trusts, the image counts as one that was built
/// here, and a file that already is the present image is not imported again.
///
/// # Errors
///
/// [`ErrorCode::BadFile`] if the file is damaged, truncated, or not an image;
/// [`ErrorCode::HashMismatch`] if it is not the trusted one;
/// [`ErrorCode::Guest`] and others if no guest starts from it. On any failure the present
/// image stays.
pub fn import(
    cache: &Cache,
    file: &Path,
    trusted: Option<&str>,
    machine: &dyn Machine,
    progress: &mut dyn Progress,
) -> Result<Portable, ImageError> {
    let start = Instant::now();
    let mut archive = ArchiveReader::open(file)?;
    let _building = cache.lock(progress)?;
    let step = "import";
    progress.event(Event::Started { step });
    let (manifest, text) = archive.manifest()?;
    if trusted.is_some() && is_present(cache, trusted, machine)? {
        progress.event(Event::Finished {
            step,
            end: StepEnd::Cached,
            elapsed: start.elapsed(),
        });
        return Ok(manifest);
    }
    let out = cache.work("out")?;
    step::check_room(&out, manifest.size().saturating_add(ROOM))?;
    let (count, megabytes) = (manifest.files.len(), manifest.size().div_ceil(1_000_000));
    let what = format!("reading {count} parts, {megabytes} MB");
    progress.event(Event::Detail { step, text: &what });
    for part in &manifest.files {
        archive.part(part, &out, progress)?;
    }
    archive.end(trusted)?;
    let path = out.join(ORIGIN);
    fs::write(&path, &text).at(&path)?;
    // A distinct kind of key: no build finds the result under the key of its inputs.
    let mut inputs = Inputs::default();
    inputs.content("imported", &text);
    if let Some(trusted) = trusted {
        inputs.value(VOUCHED, trusted);
    }
    let snapshot = cache.publish(STEP, inputs, &out, start.elapsed())?;
    progress.event(Event::Finished {
        step,
        end: StepEnd::Built,
        elapsed: start.elapsed(),
    });
    let module = prepare(cache, &snapshot, machine, progress);
    match module {
        Ok(module) => cache.set_current([&snapshot, &module])?,
        Err(error) => {
            discard(cache, &snapshot)?;
            return Err(error);
        }
    }
    Ok(manifest)
}

/// Whether the image that sandboxes start from is the trusted one, and whole.
fn is_present(
    cache: &Cache,
    trusted: Option<&str>,
    machine: &dyn Machine,
) -> Result<bool, ImageError> {
    let snapshot = cache.current(STEP)?;
    let Some(snapshot) = snapshot.filter(|snapshot| vouched(snapshot) == trusted) else {
        return Ok(false);
    };
    let key = &cache.key()?;
    let compile = Precompile {
        machine,
        key,
        snapshot: &snapshot,
    };
    let module = compile.find(cache)?;
    Ok(module.is_some_and(|module| {
        cache.is_current(&module) && machine.is_sealed(&module.path(MODULE), key)
    }))
}

/// Compiles a snapshot and starts a guest from it.
fn prepare(
    cache: &Cache,
    snapshot: &Entry,
    machine: &dyn Machine,
    progress: &mut dyn Progress,
) -> Result<Entry, ImageError> {
    let key = &cache.key()?;
    let compile = Precompile {
        machine,
        key,
        snapshot,
    };
    let module = compile.result(cache, progress)?;
    let tested = machine.smoke_test(&module.path(MODULE), key, is_foreign(snapshot));
    if tested.is_err() {
        discard(cache, &module)?;
    }
    tested.map(|()| module)
}

/// Discards a result that fails the smoke test, unless it is the current one.
fn discard(cache: &Cache, entry: &Entry) -> Result<(), ImageError> {
    match cache.is_current(entry) {
        true => Ok(()),
        false => cache::remove(&entry.folder),
    }
}

/// Reads the file once, from start to end.
pub(super) struct ArchiveReader<'a> {
    file: &'a Path,
    size: u64,
    stream: Unpacked,
}

impl<'a> ArchiveReader<'a> {
    pub(super) fn open(file: &'a Path) -> Result<Self, ImageError> {
        let open = File::open(file).at(file)?;
        let metadata = open.metadata().at(file)?;
        if !metadata.is_file() {
            return Err(bad(file, "is no file"));
        }
        let stream = Unpacked::open(open).at(file)?;
        Ok(ArchiveReader {
            file,
            size: metadata.len(),
            stream: stream.ok_or_else(|| bad(file, "is no gzipped archive, nor one of zstd"))?,
        })
    }

    /// Reads the manifest, and its text.
    fn manifest(&mut self) -> Result<(Portable, Vec<u8>), ImageError> {
        let text = self.text(NAME)?;
        let text = text.ok_or_else(|| bad(self.file, "has no manifest"))?;
        let manifest = Portable::parse(&text).map_err(|reason| bad(self.file, reason))?;
        Ok((manifest, text))
    }

    /// Reads the text that the archive begins with; `None` if it begins otherwise.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<Vec<u8>>, ImageError> {
        let header = self.block()?;
        let size = size_of(&header, name).filter(|size| *size <= MAX_BYTES);
        let Some(size) = size else {
            return Ok(None);
        };
        let mut text = vec![0; size as usize];
        self.read(&mut text)?;
        self.pad(size)?;
        Ok(Some(text))
    }

    /// Copies a part below a folder, and checks it.
    pub(super) fn part(
        &mut self,
        part: &Part,
        folder: &Path,
        progress: &mut dyn Progress,
    ) -> Result<(), ImageError> {
        let Part { path, size, sha256 } = part;
        let header = self.block()?;
        if size_of(&header, path) != Some(*size) {
            return Err(bad(
                self.file,
                format!("has something else where {path} should be"),
            ));
        }
        let target = folder.join(path);
        if let Some(folder) = target.parent() {
            make_folder(folder)?;
        }
        let mut out = File::create_new(&target).at(&target)?;
        let mut hasher = Hasher::default();
        let mut left = *size;
        let mut chunk = vec![0; CHUNK];
        while left > 0 {
            let count = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            self.read(&mut chunk[..count])?;
            hasher.update(&chunk[..count]);
            out.write_all(&chunk[..count]).at(&target)?;
            left -= count as u64;
            progress.event(Event::Advanced {
                done: self.stream.bytes_read(),
                of: self.size,
            });
        }
        self.pad(*size)?;
        match hasher.hex() == *sha256 {
            true => Ok(()),
            false => Err(bad(
                self.file,
                format!("has other contents of {path} than it says"),
            )),
        }
    }

    /// Checks the end of the archive, of the compressed stream, and of the file, and compares
    /// the SHA-256 of the file with the trusted one.
    pub(super) fn end(mut self, trusted: Option<&str>) -> Result<(), ImageError> {
        for _ in 0..END_BLOCKS {
            if self.block()? != [0; BLOCK] {
                return Err(bad(self.file, "has more parts than it says"));
            }
        }
        let mut more = [0];
        let count = self
            .stream
            .read(&mut more)
            .map_err(|e| self.unreadable(&e))?;
        let hash = self.stream.finish().at(self.file)?;
        let hash = hash.filter(|_| count == 0);
        let hash = hash.ok_or_else(|| bad(self.file, "goes on behind its end"))?;
        if trusted.is_none_or(|trusted| trusted == hash) {
            return Ok(());
        }
        let reason = "is not the file that was trusted";
        let path = self.file.display().to_string();
        Err(ImageError::new(ErrorCode::HashMismatch, path, reason)
            .help("it changed while it was read, or its hash was compared with another file's"))
    }

    fn block(&mut self) -> Result<[u8; BLOCK], ImageError> {
        let mut block = [0; BLOCK];
        self.read(&mut block)?;
        Ok(block)
    }

    fn pad(&mut self, size: u64) -> Result<(), ImageError> {
        let mut zeros = [0; BLOCK];
        let zeros = &mut zeros[..padding(size)];
        self.read(zeros)?;
        match zeros.iter().all(|byte| *byte == 0) {
            true => Ok(()),
            false => Err(bad(self.file, "has bytes between its parts")),
        }
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), ImageError> {
        let read = self.stream.read_exact(bytes);
        read.map_err(|error| self.unreadable(&error))
    }

    fn unreadable(&self, error: &io::Error) -> ImageError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => bad(self.file, "is cut off"),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                bad(self.file, format!("is damaged: {error}"))
            }
            _ => ImageError::io(self.file, error),
        }
    }
}

pub(super) fn bad(file: &Path, reason: impl Into<String>) -> ImageError {
    ImageError::new(ErrorCode::BadFile, file.display().to_string(), reason)
        .help("images are written by `a99 sandbox image export`; carry the file over again")
}
