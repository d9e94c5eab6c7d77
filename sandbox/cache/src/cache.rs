//! Image cache: the folder that keeps images between builds, outside of any clone.
//!
//! ```text
//! image/building         locked by the one builder at a time
//! image/unfinished/      half-done work, emptied by the next builder
//! image/apt/             apt's own lists and indices
//! image/packages/        packages by their hash
//! image/cargo/           compiled crates of our own programs
//! image/steps/NAME-KEY/  a step's result with its manifest
//! image/current.json     the results of the last build, by step
//! ```
//!
//! A result is written elsewhere and moved here when it is complete, so that a reader sees
//! all of it or nothing; [`super::entry`] detects damaged results.

use super::digest::Inputs;
use super::entry::{Entry, MANIFEST, Manifest, is_ours};
use super::error::{At, ErrorCode, ImageError};
use super::progress::{Progress, note};
use super::seal::SealKey;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of the file that names the results of the last build.
const CURRENT: &str = "current.json";

/// Mode of folders: only the owner may read or change the cache, since its contents are
/// run.
const PRIVATE: u32 = 0o700;

/// Unit of `st_blocks`.
const BLOCK: u64 = 512;

/// Results kept for each step: the current one, and those of other clones or settings that
/// are built alternately.
const KEPT_RESULTS: usize = 4;

/// The cache folder.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// Lock of the only builder; released on drop.
#[derive(Debug)]
pub struct Building {
    _file: File,
}

impl Cache {
    /// Opens the user's cache: `$A99_CACHE_DIR`, else `$XDG_CACHE_HOME/agent99`, else
    /// `~/.cache/agent99`.
    pub fn of_user() -> Result<Cache, ImageError> {
        Cache::at(user_folder(variable)?)
    }

    /// Opens a cache in this folder, creating it if necessary.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::UntrustedCache`] if other users could write to it: its contents are
    /// run.
    pub fn at(folder: impl Into<PathBuf>) -> Result<Cache, ImageError> {
        let folder = folder.into();
        // Programs with other working directories receive its paths.
        let root = std::path::absolute(&folder).at(&folder)?.join("image");
        let cache = Cache { root };
        make_folder(&cache.steps())?;
        check_folder(&cache.root)?;
        check_folder(&cache.steps())?;
        Ok(cache)
    }

    /// Returns the folder of one kind of content, creating it if necessary.
    pub fn folder(&self, name: &str) -> Result<PathBuf, ImageError> {
        let folder = self.root.join(name);
        make_folder(&folder)?;
        Ok(folder)
    }

    /// Waits until no other process builds, and removes the leftovers of an interrupted
    /// builder.
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
        remove(&self.root.join("unfinished"))?;
        Ok(Building { _file: file })
    }

    /// Creates an empty folder for half-done work. The caller holds the lock.
    pub fn work(&self, name: &str) -> Result<PathBuf, ImageError> {
        let folder = self.root.join("unfinished").join(name);
        remove(&folder)?;
        make_folder(&folder)?;
        Ok(folder)
    }

    /// Finds the result of a step, if it exists and is sound.
    pub fn find(&self, step: &str, key: &str) -> Result<Option<Entry>, ImageError> {
        Entry::open(self.result_folder(step, key), step, key)
    }

    /// Moves a finished folder to its place as the result of a step.
    pub fn publish(
        &self,
        step: &str,
        inputs: Inputs,
        done: &Path,
        elapsed: Duration,
    ) -> Result<Entry, ImageError> {
        let folder = self.result_folder(step, &inputs.key());
        let manifest = Manifest::seal(done, step, inputs, elapsed)?;
        remove(&folder)?;
        fs::rename(done, &folder).at(&folder)?;
        self.forget_old(step, &folder)?;
        Ok(Entry { folder, manifest })
    }

    /// Records the results of a build as the ones to start from.
    pub fn set_current<'a>(
        &self,
        entries: impl IntoIterator<Item = &'a Entry>,
    ) -> Result<(), ImageError> {
        let keys = entries.into_iter().map(|entry| {
            let Manifest { step, key, .. } = &entry.manifest;
            (step.clone(), key.clone())
        });
        let keys: BTreeMap<String, String> = keys.collect();
        if keys == self.current_keys() {
            return Ok(());
        }
        let path = self.root.join(CURRENT);
        let text = serde_json::to_vec_pretty(&keys)
            .map_err(|error| ImageError::io(&path, &error.into()))?;
        write_whole(&path, &text)
    }

    /// Returns the key that seals modules compiled here, creating it if necessary.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::UntrustedCache`] if other users may know it.
    pub fn key(&self) -> Result<SealKey, ImageError> {
        SealKey::of(&self.root)
    }

    /// Root folder of the image cache.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the last build or import had a result of this step.
    pub fn names(&self, step: &str) -> bool {
        self.current_keys().contains_key(step)
    }

    /// Finds a step's result of the last build, if it exists and is sound. Never builds or
    /// waits.
    pub fn current(&self, step: &str) -> Result<Option<Entry>, ImageError> {
        match self.current_keys().get(step) {
            Some(key) => self.find(step, key),
            None => Ok(None),
        }
    }

    /// Whether a result belongs to the last build.
    pub fn is_current(&self, entry: &Entry) -> bool {
        let Manifest { step, key, .. } = &entry.manifest;
        self.current_keys().get(step) == Some(key)
    }

    fn current_keys(&self) -> BTreeMap<String, String> {
        let text = fs::read(self.root.join(CURRENT)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn steps(&self) -> PathBuf {
        self.root.join("steps")
    }

    fn result_folder(&self, step: &str, key: &str) -> PathBuf {
        self.steps().join(format!("{step}-{key}"))
    }

    /// Folders of all results of a step.
    fn results(&self, step: &str) -> Result<Vec<PathBuf>, ImageError> {
        let (steps, mut found) = (self.steps(), Vec::new());
        for entry in fs::read_dir(&steps).at(&steps)? {
            let path = entry.at(&steps)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.rsplit_once('-').is_some_and(|(name, _)| name == step) {
                found.push(path);
            }
        }
        Ok(found)
    }

    /// Removes all results of a step; returns how many bytes of the disk they had.
    pub(super) fn remove_results(&self, step: &str) -> Result<u64, ImageError> {
        let removed = self.results(step)?.into_iter().map(|path| {
            let bytes = bytes_in(&path)?;
            remove(&path).map(|()| bytes)
        });
        removed.sum()
    }

    /// Removes the oldest results of a step, but never the one that sandboxes start from.
    fn forget_old(&self, step: &str, made: &Path) -> Result<(), ImageError> {
        let mut others = Vec::new();
        let current = self
            .current_keys()
            .remove(step)
            .or_else(|| self.pack_key(step));
        let current = current.map(|key| self.result_folder(step, &key));
        for path in self.results(step)? {
            if path != made && Some(&path) != current.as_ref() {
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

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Lists the user's cache, then its places if its variables were unset.
pub fn user_folders() -> Vec<PathBuf> {
    candidates(variable).collect()
}

fn candidates(set: impl Fn(&str) -> Option<OsString>) -> impl Iterator<Item = PathBuf> {
    let own = set("A99_CACHE_DIR").map(PathBuf::from);
    let xdg = set("XDG_CACHE_HOME").map(|folder| PathBuf::from(folder).join("agent99"));
    let home = set("HOME").map(|home| PathBuf::from(home).join(".cache/agent99"));
    [own, xdg, home].into_iter().flatten()
}

fn user_folder(set: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, ImageError> {
    candidates(set).next().ok_or_else(|| {
        let error = std::io::Error::other("no folder for it: HOME is not set");
        ImageError::io(Path::new("cache"), &error).help("name a folder in A99_CACHE_DIR")
    })
}

/// Writes a file atomically, by a rename.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<(), ImageError> {
    let beside = path.with_extension("new");
    fs::write(&beside, content).at(&beside)?;
    fs::rename(&beside, path).at(path)
}

/// Creates a folder and its ancestors, for the owner only.
pub fn make_folder(folder: &Path) -> Result<(), ImageError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(PRIVATE);
    builder.create(folder).at(folder)
}

/// Checks that a folder is not a link and only this user or root can write to it.
fn check_folder(folder: &Path) -> Result<(), ImageError> {
    let metadata = fs::symlink_metadata(folder).at(folder)?;
    if metadata.is_dir() && is_ours(&metadata) {
        return Ok(());
    }
    let path = folder.display().to_string();
    let help = format!("`chmod go-w {path}` if it is yours, or name another one in A99_CACHE_DIR");
    let reason = "is no folder of this user, or others may write to it";
    Err(ImageError::new(ErrorCode::UntrustedCache, path, reason).help(help))
}

/// Bytes of the disk that a folder's files have; links are not followed.
///
/// # Errors
/// Those of reading the folder.
pub fn bytes_in(folder: &Path) -> Result<u64, ImageError> {
    let mut bytes = 0;
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).at(&folder)? {
            let entry = entry.at(&folder)?;
            let metadata = entry.metadata().at(&folder)?;
            bytes += metadata.blocks() * BLOCK;
            if metadata.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    Ok(bytes)
}

/// Removes a folder and its contents, if it exists.
pub fn remove(folder: &Path) -> Result<(), ImageError> {
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
    use std::os::unix::fs::MetadataExt;
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
    fn the_last_build_is_known_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        assert!(cache.current("kernel").unwrap().is_none());
        let first = publish(&cache, "first");
        cache.set_current([&first]).unwrap();
        for value in 0..=KEPT_RESULTS {
            publish(&cache, &value.to_string());
        }
        let current = cache.current("kernel").unwrap().unwrap();
        assert_eq!(current.manifest.key, first.manifest.key);
        fs::write(first.path("Image"), "damaged").unwrap();
        assert!(cache.current("kernel").unwrap().is_none());
        fs::write(folder.path().join("image").join(CURRENT), "{").unwrap();
        assert!(cache.current("kernel").unwrap().is_none());
    }

    #[test]
    fn one_builder_at_a_time_and_leftovers_go() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let first = cache.lock(&mut silent()).unwrap();
        let left = cache.work("half").unwrap();
        let (sender, waiting) = mpsc::channel();
        let second = std::thread::spawn({
            let cache = cache.clone();
            move || {
                let mut waits = |_: super::super::progress::Event<'_>| sender.send(()).unwrap();
                cache.lock(&mut waits).map(|_| ())
            }
        });
        waiting.recv().unwrap();
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
