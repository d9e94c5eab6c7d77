//! The cache folder: where images live between builds, outside of any clone.
//!
//! ```text
//! image/building         locked by the one builder at a time
//! image/work/            half-done work, emptied by the next builder
//! image/apt/             apt's own lists and indices
//! image/packages/        packages by their hash
//! image/steps/NAME-KEY/  a step's result with its manifest
//! ```
//!
//! A result is written beside its place and moved there when it is complete,
//! so that a reader sees all of it or nothing. The manifest tells size, hash,
//! inode and time of each file. A file that is as the manifest says is
//! trusted; one with another inode or time is hashed again; one with another
//! hash makes the whole result void.

use super::digest::{self, Inputs};
use super::error::{At, ImageError};
use super::progress::{Progress, note};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Version of the manifest; results of another version are built anew.
const FORMAT: u32 = 1;

/// The name of the file that describes a result.
const MANIFEST: &str = "manifest.json";

/// Only the owner may look into the cache or change it: what is in it is run.
const PRIVATE: u32 = 0o700;

/// Results that are kept for each step: the current one, and those of other
/// clones or settings that are worked on side by side.
const KEPT_RESULTS: usize = 4;

/// The cache folder.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// The right to build; given back when it is dropped.
#[derive(Debug)]
pub struct Building {
    _file: File,
}

/// A file of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// Where it is, below the result's folder.
    pub path: String,
    /// Its length in bytes.
    pub size: u64,
    /// The hash of its content, in hexadecimal.
    pub sha256: String,
    inode: u64,
    modified: (i64, i64),
}

/// Where a result comes from and what it consists of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    format: u32,
    /// The step that made it.
    pub step: String,
    /// The key of its inputs.
    pub key: String,
    /// Seconds that the step took.
    pub seconds: f64,
    /// All that the result depends on.
    pub inputs: Inputs,
    /// The files, by path.
    pub files: Vec<StoredFile>,
}

/// A step's result.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its folder.
    pub folder: PathBuf,
    /// What is known about it.
    pub manifest: Manifest,
}

impl Entry {
    /// The place of one of the files.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A hash over the files: a later step depends on what the result is, not
    /// on how it came to be.
    pub fn content(&self) -> String {
        let mut files = Inputs::default();
        for file in &self.manifest.files {
            files.value(&file.path, &file.sha256);
        }
        files.key()
    }

    /// Reads every file again; the names of those that are damaged.
    pub fn damaged(&self) -> Vec<String> {
        let sound = |file: &&StoredFile| {
            digest::of_file(&self.path(&file.path)).is_ok_and(|hash| hash == file.sha256)
        };
        let files = self.manifest.files.iter();
        files
            .filter(|file| !sound(file))
            .map(|file| file.path.clone())
            .collect()
    }
}

impl Cache {
    /// The user's: `$A99_CACHE_DIR`, else `$XDG_CACHE_HOME/agent99`, else
    /// `~/.cache/agent99`.
    pub fn of_user() -> Result<Cache, ImageError> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Cache::at(user_folder(set)?)
    }

    /// A cache in this folder, which is made if need be.
    pub fn at(folder: impl Into<PathBuf>) -> Result<Cache, ImageError> {
        let folder = folder.into();
        // Programs run with other current folders are given its paths.
        let root = std::path::absolute(&folder).at(&folder)?.join("image");
        let cache = Cache { root };
        make_folder(&cache.steps())?;
        Ok(cache)
    }

    /// The folder of one kind of content, made if need be.
    pub fn folder(&self, name: &str) -> Result<PathBuf, ImageError> {
        let folder = self.root.join(name);
        make_folder(&folder)?;
        Ok(folder)
    }

    /// Waits until nobody else builds, and clears what a builder left behind
    /// that was interrupted.
    pub fn lock(&self, progress: &mut dyn Progress) -> Result<Building, ImageError> {
        let path = self.root.join("building");
        let mut options = File::options();
        let options = options.create(true).write(true).truncate(false);
        let file = options.open(&path).at(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                note(progress, "another build is running; waiting for it");
                file.lock().at(&path)?;
            }
            Err(TryLockError::Error(error)) => return Err(ImageError::io(&path, &error)),
        }
        remove(&self.root.join("work"))?;
        Ok(Building { _file: file })
    }

    /// An empty folder for half-done work. The caller holds the lock.
    pub fn work(&self, name: &str) -> Result<PathBuf, ImageError> {
        let folder = self.root.join("work").join(name);
        remove(&folder)?;
        make_folder(&folder)?;
        Ok(folder)
    }

    /// The result of a step, if it is there and sound.
    pub fn find(&self, step: &str, key: &str) -> Result<Option<Entry>, ImageError> {
        let folder = self.place(step, key);
        let manifest = match fs::read(folder.join(MANIFEST)) {
            Ok(bytes) => bytes,
            Err(_) => return Ok(None),
        };
        let Ok(manifest) = serde_json::from_slice::<Manifest>(&manifest) else {
            return Ok(None);
        };
        if manifest.format != FORMAT || manifest.step != step || manifest.key != key {
            return Ok(None);
        }
        let mut entry = Entry { folder, manifest };
        Ok(entry.check()?.then_some(entry))
    }

    /// Moves a finished folder to its place as the result of a step.
    pub fn publish(
        &self,
        step: &str,
        inputs: Inputs,
        done: &Path,
        elapsed: Duration,
    ) -> Result<Entry, ImageError> {
        let key = inputs.key();
        let manifest = Manifest {
            format: FORMAT,
            step: step.to_owned(),
            key: key.clone(),
            seconds: (elapsed.as_secs_f64() * 1000.0).round() / 1000.0,
            inputs,
            files: stored_files(done)?,
        };
        write_manifest(done, &manifest)?;
        let folder = self.place(step, &key);
        remove(&folder)?;
        fs::rename(done, &folder).at(&folder)?;
        self.forget_old(step, &folder)?;
        Ok(Entry { folder, manifest })
    }

    fn steps(&self) -> PathBuf {
        self.root.join("steps")
    }

    fn place(&self, step: &str, key: &str) -> PathBuf {
        self.steps().join(format!("{step}-{key}"))
    }

    /// Removes the results of a step that have not been built for longest.
    fn forget_old(&self, step: &str, current: &Path) -> Result<(), ImageError> {
        let mut others = Vec::new();
        let steps = self.steps();
        for entry in fs::read_dir(&steps).at(&steps)? {
            let path = entry.at(&steps)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let of_step = name.rsplit_once('-').is_some_and(|(name, _)| name == step);
            if of_step && path != current {
                let modified = fs::metadata(path.join(MANIFEST)).and_then(|m| m.modified());
                others.push((modified.ok(), path));
            }
        }
        others.sort();
        let surplus = (others.len() + 1).saturating_sub(KEPT_RESULTS);
        others
            .iter()
            .take(surplus)
            .try_for_each(|(_, path)| remove(path))
    }
}

impl Entry {
    /// Whether the files are what the manifest says. Where only inode or time
    /// differ, as in a copied cache, the manifest is brought up to date.
    fn check(&mut self) -> Result<bool, ImageError> {
        let mut moved = false;
        for file in &mut self.manifest.files {
            let path = self.folder.join(&file.path);
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                return Ok(false);
            };
            if !metadata.is_file() || metadata.len() != file.size {
                return Ok(false);
            }
            let now = (metadata.ino(), (metadata.mtime(), metadata.mtime_nsec()));
            if now != (file.inode, file.modified) {
                if digest::of_file(&path)? != file.sha256 {
                    return Ok(false);
                }
                (file.inode, file.modified) = now;
                moved = true;
            }
        }
        if moved {
            write_manifest(&self.folder, &self.manifest)?;
        }
        Ok(true)
    }
}

fn user_folder(set: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, ImageError> {
    let own = set("A99_CACHE_DIR").map(PathBuf::from);
    let xdg = || set("XDG_CACHE_HOME").map(|folder| PathBuf::from(folder).join("agent99"));
    let home = || set("HOME").map(|home| PathBuf::from(home).join(".cache/agent99"));
    own.or_else(xdg).or_else(home).ok_or_else(|| {
        let error = std::io::Error::other("no folder for it: HOME is not set");
        ImageError::io(Path::new("cache"), &error).help("name a folder in A99_CACHE_DIR")
    })
}

fn write_manifest(folder: &Path, manifest: &Manifest) -> Result<(), ImageError> {
    let path = folder.join(MANIFEST);
    let text = serde_json::to_vec_pretty(manifest)
        .map_err(|error| ImageError::io(&path, &error.into()))?;
    write_whole(&path, &text)
}

/// Writes a file beside its place and moves it there.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> Result<(), ImageError> {
    let beside = path.with_extension("new");
    fs::write(&beside, content).at(&beside)?;
    fs::rename(&beside, path).at(path)
}

fn stored_files(folder: &Path) -> Result<Vec<StoredFile>, ImageError> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(current) = folders.pop() {
        for entry in fs::read_dir(&current).at(&current)? {
            let path = entry.at(&current)?.path();
            let metadata = fs::symlink_metadata(&path).at(&path)?;
            if metadata.is_dir() {
                folders.push(path);
                continue;
            }
            let below = path.strip_prefix(folder).unwrap_or(&path);
            files.push(StoredFile {
                path: below.to_string_lossy().into_owned(),
                size: metadata.len(),
                sha256: digest::of_file(&path)?,
                inode: metadata.ino(),
                modified: (metadata.mtime(), metadata.mtime_nsec()),
            });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Makes a folder, and those above it, for the owner only.
pub(crate) fn make_folder(folder: &Path) -> Result<(), ImageError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(PRIVATE);
    builder.create(folder).at(folder)
}

/// Removes a folder with all that is in it, if it is there.
pub(crate) fn remove(folder: &Path) -> Result<(), ImageError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(ImageError::io(folder, &error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn silent() -> impl Progress {
        |_: super::super::progress::Event<'_>| {}
    }

    fn inputs(value: &str) -> Inputs {
        let mut inputs = Inputs::default();
        inputs.value("option", value);
        inputs
    }

    fn publish(cache: &Cache, value: &str) -> Entry {
        let work = cache.work("out").unwrap();
        fs::create_dir(work.join("deep")).unwrap();
        fs::write(work.join("Image"), value).unwrap();
        fs::write(work.join("deep/file"), "same").unwrap();
        cache
            .publish("kernel", inputs(value), &work, Duration::from_millis(1500))
            .unwrap()
    }

    fn found(cache: &Cache, value: &str) -> bool {
        cache
            .find("kernel", &inputs(value).key())
            .unwrap()
            .is_some()
    }

    #[test]
    fn results_are_found_by_their_inputs() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        assert!(!found(&cache, "a"));
        let made = publish(&cache, "a");
        let entry = cache.find("kernel", &inputs("a").key()).unwrap().unwrap();
        assert_eq!(entry.manifest.files, made.manifest.files);
        assert_eq!(entry.manifest.seconds, 1.5);
        assert_eq!(fs::read(entry.path("Image")).unwrap(), b"a");
        assert!(entry.damaged().is_empty());
        assert!(!found(&cache, "b"));
        assert_ne!(publish(&cache, "b").content(), made.content());
        assert!(found(&cache, "a") && found(&cache, "b"));
    }

    #[test]
    fn damage_makes_a_result_void() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let damages: [fn(&Entry); 6] = [
            |entry| fs::write(entry.path("Image"), "x").unwrap(),
            |entry| fs::write(entry.path("Image"), "longer").unwrap(),
            |entry| fs::remove_file(entry.path("deep/file")).unwrap(),
            |entry| fs::write(entry.path(MANIFEST), "{").unwrap(),
            |entry| fs::remove_file(entry.path(MANIFEST)).unwrap(),
            |entry| {
                fs::rename(entry.path("Image"), entry.path("moved")).unwrap();
                std::os::unix::fs::symlink("moved", entry.path("Image")).unwrap();
            },
        ];
        for damage in damages {
            let entry = publish(&cache, "a");
            assert!(found(&cache, "a"));
            damage(&entry);
            assert!(!found(&cache, "a"));
        }
    }

    #[test]
    fn a_touched_file_is_hashed_once_and_believed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let entry = publish(&cache, "a");
        fs::write(entry.path("Image"), "a").unwrap();
        let before = fs::read(entry.path(MANIFEST)).unwrap();
        assert!(found(&cache, "a"));
        assert_ne!(fs::read(entry.path(MANIFEST)).unwrap(), before);
        let metadata = fs::metadata(entry.path("Image")).unwrap();
        let entry = cache.find("kernel", &entry.manifest.key).unwrap().unwrap();
        assert_eq!(entry.manifest.files[0].inode, metadata.ino());
    }

    #[test]
    fn silent_damage_is_found_by_reading_all() {
        let folder = tempfile::tempdir().unwrap();
        let entry = publish(&Cache::at(folder.path()).unwrap(), "a");
        fs::write(entry.path("Image"), "x").unwrap();
        assert_eq!(entry.damaged(), ["Image"]);
    }

    #[test]
    fn old_results_go() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let values: Vec<String> = (0..KEPT_RESULTS + 2).map(|i| i.to_string()).collect();
        for value in &values {
            publish(&cache, value);
        }
        let kept = values.iter().filter(|value| found(&cache, value)).count();
        assert_eq!(kept, KEPT_RESULTS);
        assert!(found(&cache, values.last().unwrap()));
    }

    #[test]
    fn one_builder_at_a_time_and_leftovers_go() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let first = cache.lock(&mut silent()).unwrap();
        let left = cache.work("half").unwrap();
        let (said, heard) = mpsc::channel();
        let second = std::thread::spawn({
            let cache = cache.clone();
            move || {
                let mut says = |_: super::super::progress::Event<'_>| said.send(()).unwrap();
                cache.lock(&mut says).map(|_| ())
            }
        });
        heard.recv().unwrap();
        assert!(left.exists() && !second.is_finished());
        drop(first);
        second.join().unwrap().unwrap();
        assert!(!left.exists());
    }

    #[test]
    fn the_folder_follows_the_environment() {
        let of = |set: &[(&str, &str)]| {
            let set: Vec<_> = set
                .iter()
                .map(|(k, v)| (k.to_string(), v.to_string()))
                .collect();
            let get = |name: &str| {
                let found = set.iter().find(|(key, _)| key == name);
                found.map(|(_, value)| OsString::from(value))
            };
            user_folder(get).map(|path| path.display().to_string()).ok()
        };
        let home = ("HOME", "h");
        let xdg = ("XDG_CACHE_HOME", "x");
        assert_eq!(of(&[home]).unwrap(), "h/.cache/agent99");
        assert_eq!(of(&[home, xdg]).unwrap(), "x/agent99");
        assert_eq!(of(&[home, xdg, ("A99_CACHE_DIR", "a")]).unwrap(), "a");
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn folders_are_private() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().join("new")).unwrap();
        let mode = fs::metadata(cache.folder("packages").unwrap())
            .unwrap()
            .mode();
        assert_eq!(mode & 0o777, PRIVATE);
    }
}
