//! Precompiled module: machine code in a sparse file, loaded only after the file proves to
//! be the one that was written.
//!
//! Loading executes the file's contents. So the file and its folder must belong to this
//! user or to root, and no other user may write to them. The file must not be a symbolic
//! link, its manifest must be sealed with the cache's key, and the file must match the
//! manifest. Each load compares identity, size and time, and the full hash when they differ
//! (a copied folder), once: [`Moved`] records what they are then. [`verify`] always compares
//! the hash.
#![allow(unsafe_code, reason = "loading machine code that is sealed")]

use super::disk::ImageDisk;
use super::engine::{compatibility, precompile};
use super::error::{VmCode, VmError};
use a99_sandbox_cache::machine::DISK;
use a99_sandbox_cache::{SealKey, digest};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use wasmtime::{Engine, Module};

/// Size of the zero blocks left out as holes: a page, and at least a block of usual file
/// systems.
const BLOCK: usize = 4096;

/// Write permission of group and others.
const OTHERS_WRITE: u32 = 0o022;

/// Identity of a module's file when it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// SHA-256 of the file.
    pub sha256: String,
    /// SHA-256 of the source WebAssembly module: the image's name on every machine.
    #[serde(default)]
    pub source: String,
    /// The image's disk beside it, if it has one.
    #[serde(default)]
    disk: Option<DiskFile>,
    /// Required engine: see [`compatibility`].
    pub compatibility: String,
    stamp: Stamp,
    /// Seal of the other fields with the cache's key.
    #[serde(default)]
    seal: String,
}

impl Manifest {
    /// The sealed text.
    fn text(&self) -> Vec<u8> {
        let unsealed = Self {
            seal: String::new(),
            ..self.clone()
        };
        // Plain data always serialises.
        serde_json::to_vec(&unsealed).unwrap_or_default()
    }
}

/// An image's disk file, beside its module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct DiskFile {
    sha256: String,
    stamp: Stamp,
}

/// File metadata that reveals a change cheaply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    size: u64,
    device: u64,
    inode: u64,
    modified: (i64, i64),
    /// Time of the last change to the file, its name included (ctime). Unlike the other
    /// times, users cannot set it freely.
    #[serde(default)]
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            size: metadata.size(),
            device: metadata.dev(),
            inode: metadata.ino(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// A file's metadata in a copied folder, beside the file: the manifest is part of a result of
/// the cache, which stays as it was made.
#[derive(Serialize, Deserialize)]
struct Moved {
    stamp: Stamp,
    /// Seal of hash and stamp with the cache's key.
    seal: String,
}

impl Moved {
    fn path(path: &Path) -> PathBuf {
        path.with_added_extension("moved")
    }

    fn text(sha256: &str, stamp: &Stamp) -> Vec<u8> {
        // Plain data always serialises.
        serde_json::to_vec(&("moved", sha256, stamp)).unwrap_or_default()
    }

    /// Whether a file was already found to have this hash, with this metadata.
    fn is_known(path: &Path, sha256: &str, stamp: &Stamp, key: &SealKey) -> bool {
        let Ok(file) = open_trusted(&Self::path(path)) else {
            return false;
        };
        serde_json::from_reader(std::io::BufReader::new(file)).is_ok_and(|moved: Self| {
            moved.stamp == *stamp && key.is_sealed(&Self::text(sha256, stamp), &moved.seal)
        })
    }

    /// Records it. A folder that cannot be written has its files hashed again next time.
    fn record(path: &Path, sha256: &str, stamp: Stamp, key: &SealKey) {
        let seal = key.seal(&Self::text(sha256, &stamp));
        drop(write_json(&Self::path(path), &Self { stamp, seal }));
    }
}

/// Path of the image's disk, beside a module's file.
fn disk_path(path: &Path) -> PathBuf {
    path.with_file_name(DISK)
}

/// Path of the manifest of a module's file.
fn manifest_path(path: &Path) -> PathBuf {
    path.with_added_extension("json")
}

/// Compiles `wasm` for this processor into the file `path` and writes its manifest beside
/// it. An image's disk must already exist.
///
/// # Errors
/// [`VmCode::Module`] and [`VmCode::Io`].
pub fn write(
    engine: &Engine,
    wasm: &[u8],
    path: &Path,
    key: &SealKey,
) -> Result<Manifest, VmError> {
    let code = precompile(wasm, false)?;
    write_code(engine, wasm, &code, path, key)
}

/// Writes machine code that [`precompile`] made of `wasm`, here or in a worker.
pub(super) fn write_code(
    engine: &Engine,
    wasm: &[u8],
    code: &[u8],
    path: &Path,
    key: &SealKey,
) -> Result<Manifest, VmError> {
    let temporary = path.with_added_extension("new");
    let io = |path: &Path| {
        let path = path.to_owned();
        move |error| VmError::io(&path, &error)
    };
    // Left by an interrupted build.
    let _ = fs::remove_file(&temporary);
    let file = File::create_new(&temporary).map_err(io(&temporary))?;
    write_sparse(&file, code).map_err(io(&temporary))?;
    file.set_permissions(fs::Permissions::from_mode(0o400))
        .map_err(io(&temporary))?;
    file.sync_all().map_err(io(&temporary))?;
    fs::rename(&temporary, path).map_err(io(path))?;
    let metadata = file.metadata().map_err(io(path))?;
    let disk = match File::open(disk_path(path)) {
        Ok(file) => Some(DiskFile {
            sha256: hash_of(&disk_path(path))?,
            stamp: Stamp::of(&file.metadata().map_err(io(path))?),
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(VmError::io(&disk_path(path), &error)),
    };
    // A saved guest also depends on its disk.
    let source = match &disk {
        None => digest::of_bytes(wasm),
        Some(disk) => digest::of_bytes((digest::of_bytes(wasm) + &disk.sha256).as_bytes()),
    };
    let mut manifest = Manifest {
        sha256: digest::of_bytes(code),
        source,
        disk,
        compatibility: compatibility(engine),
        stamp: Stamp::of(&metadata),
        seal: String::new(),
    };
    manifest.seal = key.seal(&manifest.text());
    write_json(&manifest_path(path), &manifest)?;
    Ok(manifest)
}

fn write_json(path: &Path, content: &impl Serialize) -> Result<(), VmError> {
    let text = serde_json::to_string_pretty(content).map_err(std::io::Error::other);
    let written = text.and_then(|text| {
        let temporary = path.with_added_extension(format!("{}.new", std::process::id()));
        fs::write(&temporary, text)?;
        fs::set_permissions(&temporary, fs::Permissions::from_mode(0o600))?;
        fs::rename(&temporary, path)
    });
    written.map_err(|error| VmError::io(path, &error))
}

/// Writes `bytes`, leaving holes for zero blocks.
fn write_sparse(file: &File, bytes: &[u8]) -> std::io::Result<()> {
    file.set_len(bytes.len() as u64)?;
    let zero = [0; BLOCK];
    let mut at = 0;
    // Consecutive non-zero blocks go out in one write.
    while at < bytes.len() {
        let end = |at: usize| (at + BLOCK).min(bytes.len());
        let is_zero = |at: usize| bytes[at..end(at)] == zero[..end(at) - at];
        if is_zero(at) {
            at = end(at);
            continue;
        }
        let start = at;
        while at < bytes.len() && !is_zero(at) {
            at = end(at);
        }
        file.write_all_at(&bytes[start..at], start as u64)?;
    }
    Ok(())
}

/// Loads a module from a file that [`write()`] made.
///
/// # Errors
/// [`VmCode::UntrustedImage`] if it may not be the file that was written;
/// [`VmCode::Module`] if it is for another engine or processor or was not sealed with this
/// key, and must be compiled again.
pub fn load(engine: &Engine, path: &Path, key: &SealKey) -> Result<Module, VmError> {
    let file = open_trusted(path)?;
    let manifest = trusted_manifest(path, key)?;
    if manifest.compatibility != compatibility(engine) {
        let text = format!(
            "{} was compiled for another engine or processor",
            path.display()
        );
        return Err(VmError::new(VmCode::Module, text));
    }
    let metadata = file.metadata().map_err(|error| VmError::io(path, &error))?;
    let written = (&*manifest.sha256, &manifest.stamp);
    check_same(path, &metadata, written, key)?;
    // SAFETY: wasmtime requires that the file holds the unchanged output of its own
    // serialization. The file belongs to this user or root, who alone can write to it and
    // its folder, and it was no link when it was opened. It is the very file (device,
    // inode, size, times), or has the very contents (SHA-256), that `write` made by
    // `precompile_module`: so says a manifest with an HMAC whose key only this user knows,
    // and which only `write` computes. The key above and wasmtime both check that it is for
    // this engine. It is mapped from the checked descriptor, not by its name. `write`
    // replaces a file and never changes one, so the mapping keeps its contents.
    let module = unsafe { Module::deserialize_open_file(engine, file) };
    module.map_err(|error| VmError::engine(VmCode::Module, &path.display().to_string(), &error))
}

/// Loads the module in a file that a worker wrote.
///
/// # Errors
/// [`VmCode::Module`] if it is for another engine.
pub fn from_worker(engine: &Engine, file: File) -> Result<Module, VmError> {
    // SAFETY: the file is in memory. This process made it and gave it only to the worker, a
    // program of the caller's that only compiles; the worker has ended, and the file is
    // sealed against writing.
    let module = unsafe { Module::deserialize_open_file(engine, file) };
    module.map_err(|error| VmError::engine(VmCode::Module, "image", &error))
}

/// Opens the image's disk beside a module's file, if it has one.
///
/// # Errors
/// Those of [`load`]: the guest's kernel has read parts of it and relies on the others.
pub(super) fn disk(path: &Path, key: &SealKey) -> Result<Option<ImageDisk>, VmError> {
    let Some(expected) = trusted_manifest(path, key)?.disk else {
        return Ok(None);
    };
    let path = &disk_path(path);
    let file = open_trusted(path)?;
    let metadata = file.metadata().map_err(|error| VmError::io(path, &error))?;
    check_same(path, &metadata, (&expected.sha256, &expected.stamp), key)?;
    let disk = ImageDisk::new(file).map_err(|error| VmError::io(path, &error))?;
    Ok(Some(disk))
}

/// Returns the name of the image that a module's file was compiled from; empty for a file
/// older than names.
///
/// # Errors
/// Those of its manifest.
pub(super) fn source(path: &Path, key: &SealKey) -> Result<String, VmError> {
    Ok(trusted_manifest(path, key)?.source)
}

/// Checks a module's file in full, hash included.
///
/// # Errors
/// [`VmCode::UntrustedImage`] if it differs from the file that was written.
pub fn verify(path: &Path, key: &SealKey) -> Result<(), VmError> {
    open_trusted(path)?;
    check_hash(path, &trusted_manifest(path, key)?.sha256)
}

fn check_hash(path: &Path, sha256: &str) -> Result<(), VmError> {
    if hash_of(path)? == sha256 {
        return Ok(());
    }
    Err(untrusted(path, "has other contents than were written"))
}

/// Checks that a file is the one that was written, or has its contents.
fn check_same(
    path: &Path,
    metadata: &Metadata,
    (sha256, written): (&str, &Stamp),
    key: &SealKey,
) -> Result<(), VmError> {
    let stamp = Stamp::of(metadata);
    if stamp != *written && !Moved::is_known(path, sha256, &stamp, key) {
        check_hash(path, sha256)?;
        Moved::record(path, sha256, stamp, key);
    }
    Ok(())
}

fn hash_of(path: &Path) -> Result<String, VmError> {
    let hash = digest::of_file(path);
    hash.map_err(|error| VmError::new(VmCode::Io, error.to_string()))
}

fn trusted_manifest(module: &Path, key: &SealKey) -> Result<Manifest, VmError> {
    let path = manifest_path(module);
    let file = open_trusted(&path)?;
    let text = std::io::read_to_string(file).map_err(|error| VmError::io(&path, &error))?;
    let manifest: Manifest =
        serde_json::from_str(&text).map_err(|error| untrusted(&path, &error.to_string()))?;
    if key.is_sealed(&manifest.text(), &manifest.seal) {
        return Ok(manifest);
    }
    let text = format!("{} was not compiled in this cache", module.display());
    Err(VmError::new(VmCode::Module, text))
}

/// Opens a file that only this user and root can have written.
pub(super) fn open_trusted(path: &Path) -> Result<File, VmError> {
    use rustix::fs::{Mode, OFlags};
    let io = |error: std::io::Error| VmError::io(path, &error);
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    // A pipe would wait for its writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = rustix::fs::open(folder, flags | OFlags::DIRECTORY, Mode::empty());
    let folder_fd = File::from(opened.map_err(|error| io(error.into()))?);
    check_owner(folder, &folder_fd.metadata().map_err(io)?)?;
    let name = path
        .file_name()
        .ok_or_else(|| untrusted(path, "is no file"))?;
    let file = match rustix::fs::openat(&folder_fd, name, flags, Mode::empty()) {
        Err(rustix::io::Errno::LOOP) => return Err(untrusted(path, "is a symbolic link")),
        file => File::from(file.map_err(|error| io(error.into()))?),
    };
    let metadata = file.metadata().map_err(io)?;
    if !metadata.is_file() {
        return Err(untrusted(path, "is no file"));
    }
    check_owner(path, &metadata)?;
    Ok(file)
}

fn check_owner(path: &Path, metadata: &Metadata) -> Result<(), VmError> {
    let user = rustix::process::geteuid().as_raw();
    if metadata.uid() != user && metadata.uid() != 0 {
        return Err(untrusted(path, "belongs to another user"));
    }
    if metadata.mode() & OTHERS_WRITE != 0 {
        return Err(untrusted(path, "can be written by others"));
    }
    Ok(())
}

pub(super) fn untrusted(path: &Path, what: &str) -> VmError {
    let text = format!("{} {what}", path.display());
    VmError::new(VmCode::UntrustedImage, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const WASM: &[u8] = b"\0asm\x01\0\0\0\x01\x05\x01\x60\0\x01\x7f\x03\x02\x01\0\x07\x05\x01\x01a\0\0\x0a\x06\x01\x04\0\x41\x2a\x0b";

    fn key() -> SealKey {
        key_of(7)
    }

    fn key_of(byte: u8) -> SealKey {
        SealKey::from_bytes(&[byte; 64]).expect("a key's length")
    }

    fn written() -> (Engine, tempfile::TempDir, PathBuf) {
        let engine = super::super::engine().expect("an engine");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("guest.cwasm");
        write(&engine, WASM, &path, &key()).expect("it is written");
        (engine, folder, path)
    }

    #[track_caller]
    fn refused(engine: &Engine, path: &Path, part: &str) {
        let error = load(engine, path, &key()).expect_err("refused");
        assert_eq!(error.code, VmCode::UntrustedImage, "{error}");
        assert!(error.text.contains(part), "{error}");
    }

    #[test]
    fn what_was_written_is_loaded() {
        let (engine, _folder, path) = written();
        let module = load(&engine, &path, &key()).expect("trusted");
        assert!(module.get_export("a").is_some());
        verify(&path, &key()).expect("whole");
        let mode = fs::metadata(&path).expect("there").mode();
        assert_eq!(mode & 0o777, 0o400);
    }

    #[test]
    fn a_copy_is_hashed_and_a_changed_file_refused() {
        let (engine, _folder, path) = written();
        let bytes = fs::read(&path).expect("there");
        let replace = |bytes: &[u8]| {
            fs::remove_file(&path).expect("there");
            fs::write(&path, bytes).expect("written");
        };
        replace(&bytes);
        let is_known = |key: &SealKey| {
            let stamp = Stamp::of(&fs::metadata(&path).expect("there"));
            Moved::is_known(&path, &digest::of_bytes(&bytes), &stamp, key)
        };
        assert!(!is_known(&key()));
        load(&engine, &path, &key()).expect("the same contents");
        assert!(is_known(&key()) && !is_known(&key_of(8)));
        replace(&bytes);
        assert!(!is_known(&key()));
        let mut other = bytes.clone();
        *other.last_mut().expect("not empty") ^= 1;
        replace(&other);
        refused(&engine, &path, "other contents");
        verify(&path, &key()).expect_err("changed");
    }

    #[test]
    fn what_others_can_write_is_refused() {
        let (engine, folder, path) = written();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("mine");
        };
        set(&path, 0o420);
        refused(&engine, &path, "written by others");
        set(&path, 0o400);
        set(folder.path(), 0o777);
        refused(&engine, &path, "written by others");
        set(folder.path(), 0o700);
        set(&manifest_path(&path), 0o602);
        refused(&engine, &path, "written by others");
    }

    /// All files beside the module are valid, but were made elsewhere.
    #[test]
    fn s1_what_was_not_sealed_here_is_not_loaded() {
        let (engine, _folder, path) = written();
        let error = load(&engine, &path, &key_of(8)).expect_err("refused");
        assert_eq!(error.code, VmCode::Module);
        verify(&path, &key_of(8)).expect_err("refused");
        let place = manifest_path(&path);
        let text = fs::read_to_string(&place).expect("there");
        let mut manifest: Manifest = serde_json::from_str(&text).expect("a manifest");
        let seal = std::mem::take(&mut manifest.seal);
        for seal in [String::new(), "00".repeat(32), seal] {
            // Another module takes its place, with a matching description.
            let forged = Manifest {
                sha256: digest::of_bytes(b"other"),
                seal,
                ..manifest.clone()
            };
            write_json(&place, &forged).expect("written");
            let error = load(&engine, &path, &key()).expect_err("refused");
            assert_eq!(error.code, VmCode::Module, "{error}");
        }
    }

    #[test]
    fn the_disk_beside_it_is_the_one_that_was_there() {
        let (engine, folder, path) = written();
        assert!(disk(&path, &key()).expect("trusted").is_none());
        let place = folder.path().join(DISK);
        fs::write(&place, [1; 4096]).expect("written");
        let before = source(&path, &key()).expect("named");
        write(&engine, WASM, &path, &key()).expect("it is written");
        assert_ne!(source(&path, &key()).expect("named"), before);
        let found = disk(&path, &key()).expect("trusted").expect("a disk");
        assert_eq!(found.sectors(), 8);
        // Another hard link changes the file's times, not its contents.
        fs::hard_link(&place, folder.path().join("other")).expect("linked");
        assert!(disk(&path, &key()).expect("trusted").is_some());
        fs::write(&place, [2; 4096]).expect("written");
        assert_eq!(
            disk(&path, &key()).expect_err("changed").code,
            VmCode::UntrustedImage
        );
        fs::remove_file(&place).expect("there");
        disk(&path, &key()).expect_err("gone");
    }

    #[test]
    fn links_and_pipes_are_refused() {
        let (engine, folder, path) = written();
        let moved = folder.path().join("elsewhere");
        fs::rename(&path, &moved).expect("moved");
        symlink(&moved, &path).expect("linked");
        refused(&engine, &path, "symbolic link");
        fs::remove_file(&path).expect("there");
        let pipe = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(pipe.expect("a pipe").success());
        refused(&engine, &path, "is no file");
        load(&engine, &folder.path().join("nothing"), &key()).expect_err("not there");
    }

    #[test]
    fn another_engine_must_compile_again() {
        let (_, _folder, path) = written();
        let other = Engine::default();
        let error = load(&other, &path, &key()).expect_err("refused");
        assert_eq!(error.code, VmCode::Module);
    }

    #[test]
    fn zeros_become_holes() {
        let file = tempfile::tempfile().expect("a file");
        let mut bytes = vec![0; 1 << 20];
        bytes[500_000] = 1;
        bytes.extend([2; 10]);
        write_sparse(&file, &bytes).expect("written");
        let mut back = vec![1; bytes.len()];
        file.read_exact_at(&mut back, 0).expect("read");
        assert!(back == bytes);
        let blocks = file.metadata().expect("there").blocks() * 512;
        assert!(blocks <= 64 << 10, "{blocks} bytes on disk");
    }
}
