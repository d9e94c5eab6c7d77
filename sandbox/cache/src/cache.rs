//! Image cache: the folder where images live between builds, outside of any clone.
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
//! A result is written elsewhere and moved here when it is complete,
//! so that a reader sees all of it or nothing; [`super::entry`] knows a sound
//! result from a damaged one.

use super::digest::Inputs;
use super::entry::{Entry, MANIFEST, Manifest, is_ours};
use super::error::{At, ErrorCode, ImageError};
use super::progress::{Progress, note};
use super::seal::SealKey;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the file that names the results of the last build.
const CURRENT: &str = "current.json";

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

impl Cache {
    /// The user's: `$A99_CACHE_DIR`, else `$XDG_CACHE_HOME/agent99`, else
    /// `~/.cache/agent99`.
    pub fn of_user() -> Result<Cache, ImageError> {
        Cache::at(user_folder(variable)?)
    }

    /// A cache in this folder, which is made if need be.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::UntrustedCache`] if others could put something there: what
    /// is in it is run.
    pub fn at(folder: impl Into<PathBuf>) -> Result<Cache, ImageError> {
        let folder = folder.into();
        // Programs run with other current folders are given its paths.
        let root = std::path::absolute(&folder).at(&folder)?.join("image");
        let cache = Cache { root };
        make_folder(&cache.steps())?;
        check_folder(&cache.root)?;
        check_folder(&cache.steps())?;
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
        remove(&self.root.join("unfinished"))?;
        Ok(Building { _file: file })
    }

    /// An empty folder for half-done work. The caller holds the lock.
    pub fn work(&self, name: &str) -> Result<PathBuf, ImageError> {
        let folder = self.root.join("unfinished").join(name);
        remove(&folder)?;
        make_folder(&folder)?;
        Ok(folder)
    }

    /// The result of a step, if it is there and sound.
    pub fn find(&self, step: &str, key: &str) -> Result<Option<Entry>, ImageError> {
        Entry::open(self.result_folder(step, key), step, key)
    }

    /// Moves a finished folder to where the result of a step is kept.
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

    /// Remembers the results of a build as the ones to start from.
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

    /// The key that compiled modules here are sealed with; made if need be.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::UntrustedCache`] if others may know it.
    pub fn key(&self) -> Result<SealKey, ImageError> {
        SealKey::of(&self.root)
    }

    /// The folder of everything about images.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the last build, or an import, had a result of this step.
    pub fn names(&self, step: &str) -> bool {
        self.current_keys().contains_key(step)
    }

    /// A step's result in the last build, if it is there and sound. Nothing is
    /// built or waited for.
    pub fn current(&self, step: &str) -> Result<Option<Entry>, ImageError> {
        match self.current_keys().get(step) {
            Some(key) => self.find(step, key),
            None => Ok(None),
        }
    }

    /// Whether a result is the one of the last build.
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

    /// Removes the results of a step that have not been built for longest.
    /// The one that sandboxes start from stays.
    fn forget_old(&self, step: &str, made: &Path) -> Result<(), ImageError> {
        let mut others = Vec::new();
        let current = self.current_keys().remove(step);
        let current = current.map(|key| self.result_folder(step, &key));
        let steps = self.steps();
        for entry in fs::read_dir(&steps).at(&steps)? {
            let path = entry.at(&steps)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let of_step = name.rsplit_once('-').is_some_and(|(name, _)| name == step);
            if of_step && path != made && Some(&path) != current.as_ref() {
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

/// The user's cache, and then the places where it would be if its variables
/// were not set.
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

/// Writes a file atomically: beside its path, then moved there.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<(), ImageError> {
    let beside = path.with_extension("new");
    fs::write(&beside, content).at(&beside)?;
    fs::rename(&beside, path).at(path)
}

/// Makes a folder, and those above it, for the owner only.
pub fn make_folder(folder: &Path) -> Result<(), ImageError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(PRIVATE);
    builder.create(folder).at(folder)
}

/// Whether only this user, or root, writes to a folder, and it is no link.
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

/// Removes a folder with all that is in it, if it is there.
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
