//! Cache entry: the files of a step's result, and the manifest that describes them.
//!
//! The manifest holds size, hash, inode and time of each file. A file that matches all of
//! these is trusted. A file with another inode or time is hashed again. A file with another
//! hash, or one that other users own or may write to, invalidates the whole result.

use super::cache::write_whole;
use super::digest::{self, Inputs};
use super::error::{At, ErrorCode, ImageError};
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Manifest version; results of another version are rebuilt.
const FORMAT: u32 = 1;

/// Name of the manifest file.
pub(super) const MANIFEST: &str = "manifest.json";

/// Permission bits removed from every file of a result: other users must not be able to
/// change code that is run.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// User id of root.
pub const ROOT: u32 = 0;

/// A file of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// Path below the result's folder.
    pub path: String,
    /// Length in bytes.
    pub size: u64,
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    inode: u64,
    modified: (i64, i64),
}

/// Origin and files of a result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    format: u32,
    /// Step that made the result.
    pub step: String,
    /// Key of the inputs.
    pub key: String,
    /// Duration of the step in seconds.
    pub seconds: f64,
    /// All inputs that the result depends on.
    pub inputs: Inputs,
    /// Files, sorted by path.
    pub files: Vec<StoredFile>,
}

/// A step's result.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Folder of the result.
    pub folder: PathBuf,
    /// Manifest of the result.
    pub manifest: Manifest,
}

impl Entry {
    /// Opens the result in a folder, if it is sound and has these inputs.
    pub(super) fn open(
        folder: PathBuf,
        step: &str,
        key: &str,
    ) -> Result<Option<Entry>, ImageError> {
        let Ok(text) = fs::read(folder.join(MANIFEST)) else {
            return Ok(None);
        };
        let Ok(manifest) = serde_json::from_slice::<Manifest>(&text) else {
            return Ok(None);
        };
        if manifest.format != FORMAT || manifest.step != step || manifest.key != key {
            return Ok(None);
        }
        let mut entry = Entry { folder, manifest };
        Ok(entry.check()?.then_some(entry))
    }

    /// Returns the path of a file of the result.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns a hash over all files: a later step depends on a result's contents, not on
    /// how they were made.
    pub fn content(&self) -> String {
        let mut files = Inputs::default();
        for file in &self.manifest.files {
            files.value(&file.path, &file.sha256);
        }
        files.key()
    }

    /// Returns the SHA-256 of a file of the result, in hexadecimal.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::UnexpectedResult`] if the result has no such file.
    pub fn sha256(&self, name: &str) -> Result<&str, ImageError> {
        let file = self.manifest.files.iter().find(|file| file.path == name);
        file.map(|file| file.sha256.as_str()).ok_or_else(|| {
            let reason = format!("the step made no {name}");
            ImageError::new(ErrorCode::UnexpectedResult, &self.manifest.step, reason)
        })
    }

    /// Rehashes every file and returns the names of the damaged ones.
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

    /// Checks the files against the manifest. If only inode or time differ, as in a copied
    /// cache, the manifest is updated.
    fn check(&mut self) -> Result<bool, ImageError> {
        let mut moved = false;
        for file in &mut self.manifest.files {
            let path = self.folder.join(&file.path);
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                return Ok(false);
            };
            let whole = metadata.is_file() && metadata.len() == file.size;
            if !whole || !is_ours(&metadata) {
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

impl Manifest {
    /// Describes the files in a folder as the result of a step, in a manifest beside them.
    pub(super) fn seal(
        folder: &Path,
        step: &str,
        inputs: Inputs,
        elapsed: Duration,
    ) -> Result<Manifest, ImageError> {
        let manifest = Manifest {
            format: FORMAT,
            step: step.to_owned(),
            key: inputs.key(),
            seconds: (elapsed.as_secs_f64() * 1000.0).round() / 1000.0,
            inputs,
            files: stored_files(folder)?,
        };
        write_manifest(folder, &manifest)?;
        Ok(manifest)
    }
}

/// User id of this process, which owns its folder in `/proc`.
pub fn user() -> Option<u32> {
    let folder = fs::metadata("/proc/self").ok()?;
    Some(folder.uid())
}

/// Whether only this user or root can have written a file.
pub(super) fn is_ours(metadata: &fs::Metadata) -> bool {
    let owner = metadata.uid();
    let known = owner == ROOT || Some(owner) == user();
    known && metadata.mode() & WRITABLE_BY_OTHERS == 0
}

fn write_manifest(folder: &Path, manifest: &Manifest) -> Result<(), ImageError> {
    let path = folder.join(MANIFEST);
    let text = serde_json::to_vec_pretty(manifest)
        .map_err(|error| ImageError::io(&path, &error.into()))?;
    write_whole(&path, &text)
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
            if metadata.mode() & WRITABLE_BY_OTHERS != 0 {
                let mode = metadata.mode() & !WRITABLE_BY_OTHERS;
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).at(&path)?;
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

#[cfg(test)]
mod tests {
    use super::super::cache::Cache;
    use super::*;

    fn publish(cache: &Cache) -> Entry {
        let work = cache.work("out").unwrap();
        fs::create_dir(work.join("deep")).unwrap();
        fs::write(work.join("Image"), "a").unwrap();
        fs::write(work.join("deep/file"), "same").unwrap();
        let elapsed = Duration::from_secs(1);
        cache
            .publish("kernel", Inputs::default(), &work, elapsed)
            .unwrap()
    }

    fn found(cache: &Cache) -> bool {
        cache
            .find("kernel", &Inputs::default().key())
            .unwrap()
            .is_some()
    }

    #[test]
    fn damage_makes_a_result_void() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let damages: [fn(&Entry); 7] = [
            |entry| {
                let others = fs::Permissions::from_mode(0o666);
                fs::set_permissions(entry.path("Image"), others).unwrap();
            },
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
            let entry = publish(&cache);
            assert!(found(&cache));
            damage(&entry);
            assert!(!found(&cache));
        }
    }

    #[test]
    fn a_touched_file_is_hashed_once_and_believed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let entry = publish(&cache);
        fs::write(entry.path("Image"), "a").unwrap();
        let before = fs::read(entry.path(MANIFEST)).unwrap();
        assert!(found(&cache));
        assert_ne!(fs::read(entry.path(MANIFEST)).unwrap(), before);
        let metadata = fs::metadata(entry.path("Image")).unwrap();
        let entry = cache.find("kernel", &entry.manifest.key).unwrap().unwrap();
        assert_eq!(entry.manifest.files[0].inode, metadata.ino());
    }

    #[test]
    fn silent_damage_is_found_by_reading_all() {
        let folder = tempfile::tempdir().unwrap();
        let entry = publish(&Cache::at(folder.path()).unwrap());
        fs::write(entry.path("Image"), "x").unwrap();
        assert_eq!(entry.damaged(), ["Image"]);
        assert!(entry.sha256("Image").is_ok());
        assert_eq!(
            entry.sha256("none").unwrap_err().code,
            ErrorCode::UnexpectedResult
        );
    }
}
