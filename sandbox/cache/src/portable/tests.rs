//! Images carried from one cache to another, and invalid files.

use super::super::cache::Cache;
use super::super::digest::{self, Inputs};
use super::super::entry::Entry;
use super::super::error::{At, ErrorCode, ImageError};
use super::super::machine::{MODULE, Machine, Parts};
use super::super::progress::Event;
use super::super::seal::SealKey;
use super::tar::{BLOCK, header, padding};
use super::*;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::cell::Cell;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// A machine that compiles by copying, and whose smoke test accepts snapshots that say so.
#[derive(Default)]
struct Copies {
    smoke_tests: Cell<u32>,
    /// Whether the last one was of a foreign image.
    foreign: Cell<bool>,
}

impl Machine for Copies {
    fn settings(&self) -> String {
        String::new()
    }

    fn compatibility(&self, _: bool) -> String {
        "1".to_owned()
    }

    fn snapshot(&self, _: &Parts<'_>, _: &[&[&str]], _: &str) -> Result<Vec<u8>, ImageError> {
        Err(ImageError::new(
            ErrorCode::Guest,
            "guest",
            "nothing is booted here",
        ))
    }

    fn is_sealed(&self, _: &Path, _: &SealKey) -> bool {
        true
    }

    fn precompile(
        &self,
        module: &[u8],
        file: &Path,
        _: &SealKey,
        _: bool,
    ) -> Result<(), ImageError> {
        fs::write(file, module).at(file)
    }

    fn smoke_test(&self, file: &Path, _: &SealKey, foreign: bool) -> Result<(), ImageError> {
        self.smoke_tests.set(self.smoke_tests.get() + 1);
        self.foreign.set(foreign);
        match fs::read(file).at(file)?.starts_with(b"works") {
            true => Ok(()),
            false => Err(ImageError::new(
                ErrorCode::Guest,
                "guest",
                "it does not start",
            )),
        }
    }
}

/// A cache and its temporary folder.
struct TestCache {
    folder: TempDir,
    cache: Cache,
}

impl TestCache {
    fn new() -> TestCache {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        TestCache { folder, cache }
    }

    fn add(&self, step: &str, files: &[(&str, &[u8])]) -> Entry {
        let out = self.cache.work("out").unwrap();
        let mut inputs = Inputs::default();
        for (name, content) in files {
            let path = out.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            inputs.content(*name, content);
        }
        self.cache
            .publish(step, inputs, &out, Duration::ZERO)
            .unwrap()
    }

    /// Simulates a machine that has built an image.
    fn built(snapshot: &[u8]) -> TestCache {
        let source = TestCache::new();
        let entries = [
            source.add("snapshot", &[(SNAPSHOT, snapshot), (DISK, b"d")]),
            source.add("module", &[(MODULE, snapshot)]),
            source.add(
                "kernel",
                &[
                    ("Image", b"k"),
                    ("kernel.config", b"CONFIG_A=y\n"),
                    ("licences/GPL-2", b"gpl"),
                ],
            ),
            source.add("rootfs", &[("rootfs.cpio", b"r"), ("licences/a.txt", b"a")]),
        ];
        source.cache.set_current(&entries).unwrap();
        source
    }

    fn export(&self) -> PathBuf {
        let file = self.folder.path().join("image.tar.gz");
        export(&self.cache, &file, &mut |_: Event<'_>| ()).unwrap();
        file
    }

    fn import(&self, file: &Path) -> Result<Portable, ImageError> {
        self.import_with(file, None, &Copies::default())
    }

    fn import_with(
        &self,
        file: &Path,
        trusted: Option<&str>,
        machine: &Copies,
    ) -> Result<Portable, ImageError> {
        import(&self.cache, file, trusted, machine, &mut |_: Event<'_>| ())
    }

    fn is_foreign(&self) -> bool {
        is_foreign(&self.cache.current("snapshot").unwrap().unwrap())
    }

    fn module(&self) -> Option<Vec<u8>> {
        let entry = self.cache.current("module").unwrap()?;
        Some(fs::read(entry.path(MODULE)).unwrap())
    }

    /// Writes a gzipped file with these bytes.
    fn gzipped(&self, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join("made.tar.gz");
        let mut out = GzEncoder::new(Vec::new(), Compression::fast());
        out.write_all(bytes).unwrap();
        fs::write(&path, out.finish().unwrap()).unwrap();
        path
    }

    #[track_caller]
    fn refuses(&self, file: &Path, part: &str) {
        let before = self.module();
        let error = self.import(file).unwrap_err();
        assert_eq!(error.code, ErrorCode::BadFile, "{error}");
        assert!(error.reason.contains(part), "{error}");
        assert_eq!(self.module(), before);
    }
}

fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, content) in files {
        bytes.extend(header(name, content.len() as u64));
        bytes.extend(*content);
        bytes.resize(bytes.len() + padding(content.len() as u64), 0);
    }
    bytes.resize(bytes.len() + 2 * BLOCK, 0);
    bytes
}

fn part(path: &str, content: &[u8]) -> Part {
    Part {
        path: path.to_owned(),
        size: content.len() as u64,
        sha256: digest::of_bytes(content),
    }
}

#[test]
fn an_image_arrives_with_its_licences_and_goes_on() {
    let home = TestCache::built(b"works");
    let file = home.export();
    let away = TestCache::new();
    let manifest = away.import(&file).unwrap();
    let names: Vec<&str> = manifest.files.iter().map(|p| p.path.as_str()).collect();
    let licences = ["licences/kernel/GPL-2", "licences/rootfs/a.txt"];
    assert_eq!(
        names,
        [SNAPSHOT, DISK, "kernel.config", licences[0], licences[1]]
    );
    let steps: Vec<&str> = manifest.origin.iter().map(|o| o.step.as_str()).collect();
    assert_eq!(steps, ["snapshot", "kernel", "rootfs"]);
    assert_eq!(away.module().unwrap(), b"works");
    let snapshot = away.cache.current("snapshot").unwrap().unwrap();
    assert_eq!(fs::read(snapshot.path(licences[1])).unwrap(), b"a");
    let module = away.cache.current("module").unwrap().unwrap();
    assert_eq!(fs::read(module.path(DISK)).unwrap(), b"d");
    // An imported image exports to the same file again.
    assert_eq!(fs::read(away.export()).unwrap(), fs::read(file).unwrap());
    // It can be imported again in place.
    away.import(&away.export()).unwrap();
    assert_eq!(away.module().unwrap(), b"works");
}

#[test]
fn a_file_packed_with_zstd_arrives_too_and_cuts_are_noticed() {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    let mut plain = Vec::new();
    let home = TestCache::built(b"works");
    let mut packed = GzDecoder::new(fs::File::open(home.export()).unwrap());
    packed.read_to_end(&mut plain).unwrap();
    let packed = compress_to_vec(&plain[..], CompressionLevel::Fastest);
    let away = TestCache::built(b"works before");
    let file = away.folder.path().join("image.tar.zst");
    for end in 0..packed.len() {
        fs::write(&file, &packed[..end]).unwrap();
        away.refuses(&file, "");
    }
    fs::write(&file, [&packed[..], &packed[..]].concat()).unwrap();
    away.refuses(&file, "goes on");
    fs::write(&file, &packed).unwrap();
    away.import(&file).unwrap();
    assert_eq!(away.module().unwrap(), b"works");
    assert!(away.is_foreign());
}

#[test]
fn only_the_file_with_the_trusted_hash_is_no_foreign_one() {
    let home = TestCache::built(b"works");
    assert!(!home.is_foreign());
    let file = home.export();
    let hash = digest::of_file(&file).unwrap();
    let machine = Copies::default();
    let away = TestCache::new();
    let other = digest::of_bytes(b"other");
    let error = away.import_with(&file, Some(&other), &machine).unwrap_err();
    assert_eq!(error.code, ErrorCode::HashMismatch);
    assert_eq!((away.module(), machine.smoke_tests.get()), (None, 0));
    away.import_with(&file, None, &machine).unwrap();
    assert!(away.is_foreign() && machine.foreign.get());
    away.import_with(&file, Some(&hash), &machine).unwrap();
    assert!(!away.is_foreign() && !machine.foreign.get());
    // What is there already is neither read nor tested again.
    assert_eq!(machine.smoke_tests.get(), 2);
    away.import_with(&file, Some(&hash), &machine).unwrap();
    assert_eq!(machine.smoke_tests.get(), 2);
    let module = away.cache.current("module").unwrap().unwrap();
    fs::remove_dir_all(module.folder).unwrap();
    away.import_with(&file, Some(&hash), &machine).unwrap();
    assert_eq!(away.module().unwrap(), b"works");
}

#[test]
fn common_tools_list_it() {
    let home = TestCache::built(b"works");
    let mut list = std::process::Command::new("tar");
    let output = list.arg("-tzf").arg(home.export()).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty());
    let list = String::from_utf8(output.stdout).unwrap();
    assert!(
        list.starts_with("manifest.json\nguest.wasm\nguest.disk\n"),
        "{list}"
    );
}

#[test]
fn an_imported_image_is_not_taken_for_one_that_was_built() {
    let home = TestCache::built(b"works");
    let built = home.cache.current("snapshot").unwrap().unwrap();
    let away = TestCache::new();
    away.import(&home.export()).unwrap();
    let key = &built.manifest.key;
    assert!(away.cache.find("snapshot", key).unwrap().is_none());
}

#[test]
fn every_cut_and_every_changed_byte_is_noticed() {
    let home = TestCache::built(b"works");
    let bytes = fs::read(home.export()).unwrap();
    let away = TestCache::built(b"works before");
    let file = away.folder.path().join("broken");
    let refused = |bytes: &[u8], what: &str| {
        fs::write(&file, bytes).unwrap();
        let error = away.import(&file).expect_err(what);
        assert_eq!(error.code, ErrorCode::BadFile, "{what}: {error}");
        assert_eq!(away.module().unwrap(), b"works before", "{what}");
    };
    for cut in 0..bytes.len() {
        refused(&bytes[..cut], &format!("cut at {cut}"));
    }
    // The header of gzip (RFC 1952) has ten bytes; its time and system do not affect the
    // contents.
    for at in 10..bytes.len() {
        let mut other = bytes.clone();
        other[at] ^= 1;
        refused(&other, &format!("changed at {at}"));
    }
    refused(&[&bytes[..], b"more"].concat(), "more behind it");
    refused(&[&bytes[..], &bytes[..]].concat(), "twice");
}

#[test]
fn foreign_files_are_named() {
    let away = TestCache::built(b"works before");
    let plain = away.folder.path().join("plain");
    fs::write(&plain, "hello").unwrap();
    away.refuses(&plain, "no gzipped archive");
    away.refuses(away.folder.path(), "no file");
    let none = away.import(Path::new("/none")).unwrap_err();
    assert_eq!(none.code, ErrorCode::Io);
    away.refuses(&away.gzipped(b""), "cut off");
    away.refuses(&away.gzipped(&tar(&[("a", b"b")])), "no manifest");
    away.refuses(
        &away.gzipped(&tar(&[("manifest.json", b"{}")])),
        "manifest.json",
    );
}

#[test]
fn what_the_manifest_does_not_say_is_refused() {
    let away = TestCache::built(b"works before");
    let files = [
        part(SNAPSHOT, b"works"),
        part(DISK, b"d"),
        part("licences/a", b"text"),
    ];
    let manifest = Portable::new(Vec::new(), files.to_vec());
    let manifest = serde_json::to_vec(&manifest).unwrap();
    let of = |rest: &[(&str, &[u8])]| {
        let first: (&str, &[u8]) = ("manifest.json", &manifest);
        away.gzipped(&tar(&[&[first], rest].concat()))
    };
    let (snapshot, text): ((&str, &[u8]), _) = ((SNAPSHOT, b"works"), b"text".as_slice());
    let disk: (&str, &[u8]) = (DISK, b"d");
    away.import(&of(&[snapshot, disk, ("licences/a", text)]))
        .unwrap();
    let other: &[u8] = b"other";
    away.refuses(
        &of(&[snapshot, disk, ("../../a99-beside", text)]),
        "something else",
    );
    away.refuses(
        &of(&[snapshot, disk, ("licences/a", other)]),
        "something else",
    );
    away.refuses(
        &of(&[snapshot, disk, ("licences/a", b"texT")]),
        "other contents",
    );
    away.refuses(&of(&[("licences/a", text), snapshot]), "something else");
    away.refuses(&of(&[snapshot, ("licences/a", text)]), "something else");
    away.refuses(&of(&[snapshot, disk]), "something else");
    let more = [snapshot, disk, ("licences/a", text), ("b", text)];
    away.refuses(&of(&more), "more parts");
    assert!(
        !away
            .folder
            .path()
            .parent()
            .unwrap()
            .join("a99-beside")
            .exists()
    );
}

#[test]
fn a_snapshot_that_does_not_start_changes_nothing() {
    let home = TestCache::built(b"broken");
    let file = home.export();
    let away = TestCache::built(b"works before");
    let error = away.import(&file).unwrap_err();
    assert_eq!(error.code, ErrorCode::Guest);
    assert_eq!(away.module().unwrap(), b"works before");
    let steps = away.folder.path().join("image/steps");
    let left = fs::read_dir(steps).unwrap().count();
    assert_eq!(left, 4, "the results of the build and no others");
}

#[test]
fn only_a_whole_image_is_exported() {
    let file = |source: &TestCache| source.folder.path().join("out");
    let run = |source: &TestCache| export(&source.cache, &file(source), &mut |_: Event<'_>| ());
    let empty = TestCache::new();
    assert_eq!(run(&empty).unwrap_err().code, ErrorCode::NotBuilt);
    let damaged = TestCache::built(b"works");
    fs::write(file(&damaged), "kept").unwrap();
    let snapshot = damaged.cache.current("snapshot").unwrap().unwrap();
    // Keep size, inode and time unchanged, as a failing disk would.
    let path = snapshot.path(SNAPSHOT);
    let times = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, b"wOrks").unwrap();
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(times)
        .unwrap();
    assert_eq!(run(&damaged).unwrap_err().code, ErrorCode::HashMismatch);
    assert_eq!(fs::read(file(&damaged)).unwrap(), b"kept");
    assert!(!damaged.folder.path().join("out.new").exists());
}

#[test]
fn what_is_compressed_is_what_is_declared() {
    let home = TestCache::built(b"works");
    let mut text = Vec::new();
    let file = fs::File::open(home.export()).unwrap();
    GzDecoder::new(file).read_to_end(&mut text).unwrap();
    assert_eq!(text.len() % BLOCK, 0);
    assert_eq!(text[text.len() - 2 * BLOCK..], [0; 2 * BLOCK]);
}
