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
use super::{ORIGIN, STEP};
use flate2::bufread::GzDecoder;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::Instant;

/// Magic number of a gzip file (RFC 1952, section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Bytes copied at a time.
const CHUNK: usize = 256 << 10;

/// Imports the image in a file as the one that sandboxes start from.
///
/// It checks every part, compiles the snapshot for this processor, and starts a guest from
/// it. Returns the file's manifest.
///
/// # Errors
///
/// [`ErrorCode::BadFile`] if the file is damaged, truncated, or not an image;
/// [`ErrorCode::Guest`] and others if no guest starts from it. On any failure the present
/// image stays.
pub fn import(
    cache: &Cache,
    file: &Path,
    machine: &dyn Machine,
    progress: &mut dyn Progress,
) -> Result<Portable, ImageError> {
    let start = Instant::now();
    let mut archive = ArchiveReader::open(file)?;
    let _building = cache.lock(progress)?;
    let step = "import";
    progress.event(Event::Started { step });
    let (manifest, text) = archive.manifest()?;
    let out = cache.work("out")?;
    step::check_room(&out, manifest.size().saturating_add(ROOM))?;
    let (count, megabytes) = (manifest.files.len(), manifest.size().div_ceil(1_000_000));
    let what = format!("reading {count} parts, {megabytes} MB");
    progress.event(Event::Detail { step, text: &what });
    for part in &manifest.files {
        archive.part(part, &out)?;
    }
    archive.end()?;
    let path = out.join(ORIGIN);
    fs::write(&path, &text).at(&path)?;
    // A distinct kind of key: no build finds the result under the key of its inputs.
    let mut inputs = Inputs::default();
    inputs.content("imported", &text);
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
    let tested = machine.smoke_test(&module.path(MODULE), key, true);
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
struct ArchiveReader<'a> {
    file: &'a Path,
    stream: GzDecoder<BufReader<File>>,
}

impl<'a> ArchiveReader<'a> {
    fn open(file: &'a Path) -> Result<Self, ImageError> {
        let open = File::open(file).at(file)?;
        if !open.metadata().at(file)?.is_file() {
            return Err(bad(file, "is no file"));
        }
        let mut reader = BufReader::with_capacity(CHUNK, open);
        let begins = reader.fill_buf().at(file)?.starts_with(&GZIP);
        if !begins {
            return Err(bad(file, "is no gzipped archive"));
        }
        let stream = GzDecoder::new(reader);
        Ok(ArchiveReader { file, stream })
    }

    /// Reads the manifest, and its text.
    fn manifest(&mut self) -> Result<(Portable, Vec<u8>), ImageError> {
        let header = self.block()?;
        let size = size_of(&header, NAME).filter(|size| *size <= MAX_BYTES);
        let size = size.ok_or_else(|| bad(self.file, "has no manifest"))?;
        let mut text = vec![0; size as usize];
        self.read(&mut text)?;
        self.pad(size)?;
        let manifest = Portable::parse(&text).map_err(|reason| bad(self.file, reason))?;
        Ok((manifest, text))
    }

    /// Copies a part below a folder, and checks it.
    fn part(&mut self, part: &Part, folder: &Path) -> Result<(), ImageError> {
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

    /// Checks the end of the archive, of the compressed stream with its checksum, and of
    /// the file.
    fn end(mut self) -> Result<(), ImageError> {
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
        let rest = self.stream.get_mut().fill_buf().at(self.file)?;
        match count == 0 && rest.is_empty() {
            true => Ok(()),
            false => Err(bad(self.file, "goes on behind its end")),
        }
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

fn bad(file: &Path, reason: impl Into<String>) -> ImageError {
    ImageError::new(ErrorCode::BadFile, file.display().to_string(), reason)
        .help("images are written by `a99 sandbox image export`; carry the file over again")
}
