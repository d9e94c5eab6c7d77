//! Attacks on the cache, whose modules run as machine code in the host's process. Folders
//! of other users, files that others may write to, links, and modified contents are refused
//! or rebuilt, never run.

use a99_sandbox::cache::machine::MODULE;
use a99_sandbox::cache::seal::SealKey;
use a99_sandbox::cache::{Cache, ErrorCode, Event};
use a99_sandbox::vm::{Image, VmCode, engine, load, verify, write};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::SystemTime;

/// Another user of this system.
const STRANGER: u32 = 65_534;

/// A module that exports a function.
const WASM: &[u8] = b"\0asm\x01\0\0\0\x01\x05\x01\x60\0\x01\x7f\x03\x02\x01\0\x07\x05\x01\x01a\0\0\x0a\x06\x01\x04\0\x41\x2a\x0b";

/// The same module with another result.
const OTHER: &[u8] = b"\0asm\x01\0\0\0\x01\x05\x01\x60\0\x01\x7f\x03\x02\x01\0\x07\x05\x01\x01a\0\0\x0a\x06\x01\x04\0\x41\x2b\x0b";

/// The key of a cache, which seals modules compiled there.
static KEY: LazyLock<SealKey> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::at(folder.path()).expect("a new one");
    cache.key().expect("a key")
});

fn compiled(folder: &Path, name: &str, wasm: &[u8]) -> PathBuf {
    let path = folder.join(name);
    write(&engine().expect("an engine"), wasm, &path, &KEY).expect("it is written");
    path
}

#[track_caller]
fn refused(path: &Path) {
    let error = load(&engine().expect("an engine"), path, &KEY).expect_err("refused");
    assert_eq!(error.code, VmCode::UntrustedImage, "{error}");
}

#[track_caller]
fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("mine");
}

fn is_root() -> bool {
    File::open("/proc/self").is_ok_and(|f| f.metadata().is_ok_and(|m| m.uid() == 0))
}

#[test]
fn s08_files_and_folders_of_strangers_are_refused() {
    // Only root can give a file away. CI runs as root.
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = compiled(folder.path(), MODULE, WASM);
    let manifest = path.with_added_extension("json");
    for given in [&path, &manifest, &folder.path().to_path_buf()] {
        chown(given, Some(STRANGER), None).expect("given away");
        refused(&path);
        chown(given, Some(0), None).expect("taken back");
    }
    load(&engine().expect("an engine"), &path, &KEY).expect("all mine again");
}

#[test]
fn s08_whatever_others_may_write_to_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = compiled(folder.path(), MODULE, WASM);
    let manifest = path.with_added_extension("json");
    for (what, mode) in [
        (&path, 0o400),
        (&manifest, 0o600),
        (&folder.path().to_path_buf(), 0o700),
    ] {
        for others in [0o020, 0o002] {
            chmod(what, mode | others);
            refused(&path);
        }
        chmod(what, mode);
    }
    load(&engine().expect("an engine"), &path, &KEY).expect("mine alone again");
}

#[test]
fn s08_links_to_other_modules_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = compiled(folder.path(), MODULE, WASM);
    let other = compiled(folder.path(), "other.cwasm", OTHER);
    let manifest = path.with_added_extension("json");
    // Link and manifest of a valid module.
    fs::remove_file(&path).expect("mine");
    symlink(&other, &path).expect("linked");
    fs::copy(other.with_added_extension("json"), &manifest).expect("copied");
    refused(&path);
    // A link as manifest.
    let sound = compiled(folder.path(), MODULE, WASM);
    fs::rename(&manifest, folder.path().join("kept")).expect("moved");
    symlink(folder.path().join("kept"), &manifest).expect("linked");
    refused(&sound);
    // A link as folder.
    let behind = folder.path().join("behind");
    symlink(folder.path(), &behind).expect("linked");
    let other = behind.join("other.cwasm");
    let error = load(&engine().expect("an engine"), &other, &KEY);
    error.expect_err("a folder behind a link");
    // A missing file.
    fs::remove_file(&manifest).expect("mine");
    let _ = fs::remove_file(&path);
    fs::create_dir(&path).expect("a folder in its place");
    refused(&path);
}

/// The contents of a file with its last byte changed, and its modification time.
fn damaged(path: &Path) -> (Vec<u8>, SystemTime) {
    let stamp = fs::metadata(path).expect("there").modified();
    let mut bytes = fs::read(path).expect("mine");
    *bytes.last_mut().expect("bytes") ^= 1;
    (bytes, stamp.expect("a time"))
}

#[test]
fn s08_a_module_under_anothers_manifest_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = compiled(folder.path(), MODULE, WASM);
    let other = compiled(folder.path(), "other.cwasm", OTHER);
    fs::rename(&other, &path).expect("replaced");
    refused(&path);
    verify(&path, &KEY).expect_err("replaced");
    // A replacement with the original's size and time.
    let path = compiled(folder.path(), MODULE, WASM);
    let (bytes, stamp) = damaged(&path);
    fs::remove_file(&path).expect("mine");
    fs::write(&path, &bytes).expect("mine");
    let file = File::options().write(true).open(&path).expect("mine");
    file.set_modified(stamp).expect("mine");
    chmod(&path, 0o400);
    refused(&path);
}

#[test]
fn s08_the_full_check_finds_what_no_stamp_shows() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = compiled(folder.path(), MODULE, WASM);
    let (bytes, stamp) = damaged(&path);
    // Like a failing disk: the same file, size and time.
    chmod(&path, 0o600);
    let mut file = File::options().write(true).open(&path).expect("mine");
    std::io::Write::write_all(&mut file, &bytes).expect("written");
    file.set_modified(stamp).expect("mine");
    chmod(&path, 0o400);
    let error = verify(&path, &KEY).expect_err("changed");
    assert_eq!(error.code, VmCode::UntrustedImage);
}

#[test]
fn s08_a_cache_that_others_may_write_to_is_not_used() {
    let folder = tempfile::tempdir().expect("a folder");
    Cache::at(folder.path()).expect("a new one");
    let root = folder.path().join("image");
    for (inner, mode) in [(root.clone(), 0o777), (root.join("steps"), 0o770)] {
        chmod(&inner, mode);
        let error = Cache::at(folder.path()).expect_err("others may write");
        assert_eq!(error.code, ErrorCode::UntrustedCache);
        chmod(&inner, 0o700);
    }
    Cache::at(folder.path()).expect("mine alone again");
    let moved = folder.path().join("moved");
    fs::rename(&root, &moved).expect("mine");
    symlink(&moved, &root).expect("linked");
    let error = Cache::at(folder.path()).expect_err("a link");
    assert_eq!(error.code, ErrorCode::UntrustedCache);
}

/// Copies the results that guests start from into a separate cache.
fn copy_of_cache() -> (tempfile::TempDir, Cache) {
    let from = Cache::of_user().expect("a cache");
    // Missing results are made before the copy.
    Image::current(&from, &mut |_: Event<'_>| {}).expect("the built image");
    let folder = tempfile::tempdir_in(from.root()).expect("a folder");
    let cache = Cache::at(folder.path()).expect("a cache");
    for step in ["snapshot", "module"] {
        let entry = from.current(step).expect("a cache");
        let entry = entry.expect("the built image");
        // Keeps times and holes.
        let mut copy = std::process::Command::new("cp");
        let copy = copy.args(["-a", "--sparse=always"]).arg(&entry.folder);
        let copied = copy.arg(cache.root().join("steps")).status();
        assert!(copied.expect("cp runs").success());
    }
    let current = "current.json";
    fs::copy(from.root().join(current), cache.root().join(current)).expect("copied");
    (folder, cache)
}

#[test]
#[ignore = "needs the image"]
fn s08_a_cache_that_was_tampered_with_is_built_again_from_the_snapshot() {
    let (_folder, cache) = copy_of_cache();
    let current = || Image::current(&cache, &mut |_: Event<'_>| {});
    let module = || {
        let entry = cache.current("module").expect("a cache");
        entry.expect("a module").path(MODULE)
    };
    current().expect("a copy with other inodes is hashed and believed");
    let attacks: [fn(&Path); 4] = [
        |path| chmod(path, 0o666),
        |path| {
            let mut bytes = fs::read(path).expect("mine");
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            fs::remove_file(path).expect("mine");
            fs::write(path, bytes).expect("mine");
        },
        |path| {
            let beside = path.with_extension("moved");
            fs::rename(path, &beside).expect("mine");
            symlink(beside, path).expect("linked");
        },
        |path| {
            chmod(path, 0o600);
            let file = File::options().write(true).open(path).expect("mine");
            file.set_len(1000).expect("cut off");
            file.set_modified(SystemTime::UNIX_EPOCH).expect("mine");
        },
    ];
    for attack in attacks {
        let path = module();
        attack(&path);
        current().expect("compiled again");
        verify(&module(), &cache.key().expect("a key")).expect("whole");
    }
    // Without a sound snapshot it cannot be recompiled.
    let snapshot = cache.current("snapshot").expect("a cache").expect("there");
    let wasm = snapshot.path("guest.wasm");
    fs::write(&wasm, b"\0asm").expect("mine");
    fs::remove_file(module()).expect("mine");
    let error = current().expect_err("nothing sound is left");
    assert_eq!(error.code, VmCode::NoImage, "{error}");
}
