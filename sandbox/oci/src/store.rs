//! Store: images in the user's cache folder, by the digest of their configuration.
//!
//! ```text
//! image/oci/lock            held by the one process that changes the store
//! image/oci/unfinished/     half-done work, emptied by the next one
//! image/oci/download/       the same for what a registry sends, with `download.lock`
//! image/oci/images/ID/      root.erofs and its description, image.json
//! image/oci/names.json      names of images
//! ```

use crate::error::{OciCode, OciError, damaged};
use crate::read::Image;
use crate::worker::{Found, Worker};
use a99_sandbox_cache::cache::{bytes_in, make_folder, remove, write_whole};
use a99_sandbox_cache::digest::of_file;
use a99_sandbox_cache::{Cache, ImageError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Names of files in the store.
const ROOT: &str = "root.erofs";
const DESCRIPTION: &str = "image.json";
const NAMES: &str = "names.json";
const DOWNLOAD: &str = "download";
const DOWNLOAD_LOCK: &str = "download.lock";

/// Version of a description.
const FORMAT: u32 = 1;

/// Longest name of an image.
const MAX_NAME: usize = 64;

/// The store of a cache.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// An image of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoredImage {
    /// Its name in the store.
    pub name: String,
    /// The file system.
    pub file: PathBuf,
    /// SHA-256 of the file system in hexadecimal.
    pub sha256: String,
    /// Its description.
    #[serde(flatten)]
    pub image: Image,
}

/// A description with what shows changes of the file system.
#[derive(Debug, Serialize, Deserialize)]
struct Description {
    format: u32,
    image: Image,
    sha256: String,
    inode: u64,
    modified: (i64, i64),
}

impl Store {
    /// Opens the store of a cache, creating it if necessary.
    ///
    /// # Errors
    /// [`OciCode::Io`].
    pub fn of(cache: &Cache) -> Result<Self, OciError> {
        let folder = cache.folder("oci").map_err(from_cache)?;
        make_folder(&folder.join("images")).map_err(from_cache)?;
        Ok(Self { folder })
    }

    /// Reads the image in a file or folder into the store; returns it.
    ///
    /// Without a name it gets the one that the archive has for it, or that of the file. The
    /// name leads to the new image from then on. An image that the store has is not read
    /// again: the digest of its configuration names the contents of all layers.
    ///
    /// # Errors
    /// [`OciError`] if the archive is no image for guests, or the store cannot be written.
    pub fn add(
        &self,
        path: &Path,
        name: Option<&str>,
        tag: Option<&str>,
        worker: &Worker,
        progress: &mut dyn FnMut(&str),
    ) -> Result<StoredImage, OciError> {
        name.map_or(Ok(()), check_name)?;
        let failed = |error: std::io::Error| OciError::io(path.display().to_string(), &error);
        let archive = File::open(path).map_err(failed)?;
        self.forget_download();
        let _lock = self.lock("lock")?;
        let work = self.folder.join("unfinished");
        remove(&work).map_err(from_cache)?;
        make_folder(&work).map_err(from_cache)?;
        let (root, spool) = (work.join(ROOT), work.join("spool"));
        let new = |path: &Path| {
            let mut options = File::options();
            let file = options.read(true).write(true).create_new(true).open(path);
            file.map_err(|error| OciError::io(path.display().to_string(), &error))
        };
        drop(new(&spool)?);
        let is_known = |id: &str| self.has(id);
        let found = worker.run(archive, &spool, new(&root)?, tag, &is_known, progress);
        let image = match found.inspect_err(|_| drop(remove(&work)))? {
            Found::New(image) => *image,
            Found::Known(id, reference) => {
                remove(&work).map_err(from_cache)?;
                let name = name_of(name, reference.as_deref(), path)?;
                self.set_name(&name, &id)?;
                return self.find(&name);
            }
        };
        fs::remove_file(&spool).map_err(failed)?;
        let name = name_of(name, image.reference.as_deref(), path)?;
        let metadata = fs::metadata(&root).map_err(failed)?;
        if metadata.len() != image.bytes {
            return Err(damaged("file system", "the reader described another one"));
        }
        let description = Description {
            format: FORMAT,
            sha256: of_file(&root).map_err(from_cache)?,
            inode: metadata.ino(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            image,
        };
        write_json(&work.join(DESCRIPTION), &description)?;
        let folder = self.image_folder(&description.image.id);
        remove(&folder).map_err(from_cache)?;
        fs::rename(&work, &folder).map_err(failed)?;
        self.set_name(&name, &description.image.id)?;
        Ok(StoredImage {
            name,
            file: folder.join(ROOT),
            sha256: description.sha256,
            image: description.image,
        })
    }

    /// Lists the images by name. Names of damaged images are left out.
    pub fn list(&self) -> Vec<StoredImage> {
        let names = self.names();
        let images = names.keys().filter_map(|name| self.find(name).ok());
        images.collect()
    }

    /// Finds an image by its name.
    ///
    /// # Errors
    /// [`OciCode::NotFound`], and [`OciCode::Damaged`] if its file was changed.
    pub fn find(&self, name: &str) -> Result<StoredImage, OciError> {
        let missing = || {
            OciError::new(OciCode::NotFound, name, "there is no image of this name")
                .help("`a99 sandbox image ls` lists images, `image add FILE` adds one")
        };
        let id = self.names().remove(name).ok_or_else(missing)?;
        self.of_id(name, &id)
    }

    /// Whether the store has the sound image of a configuration's digest.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.of_id(id, id).is_ok()
    }

    fn of_id(&self, name: &str, id: &str) -> Result<StoredImage, OciError> {
        let folder = self.image_folder(id);
        let changed = || {
            let help = format!("`a99 sandbox image rm {name}`, and add it again");
            damaged(name, "its file in the cache is missing or was changed").help(help)
        };
        let text = fs::read(folder.join(DESCRIPTION)).map_err(|_| changed())?;
        let found: Description = serde_json::from_slice(&text).map_err(|_| changed())?;
        let file = folder.join(ROOT);
        let metadata = fs::symlink_metadata(&file).map_err(|_| changed())?;
        let whole = metadata.is_file() && metadata.len() == found.image.bytes;
        if found.format != FORMAT || !whole {
            return Err(changed());
        }
        let now = (metadata.ino(), (metadata.mtime(), metadata.mtime_nsec()));
        if now != (found.inode, found.modified)
            && of_file(&file).map_err(from_cache)? != found.sha256
        {
            return Err(changed());
        }
        Ok(StoredImage {
            name: name.to_owned(),
            file,
            sha256: found.sha256,
            image: found.image,
        })
    }

    /// Removes a name, and its image unless another name leads to it; returns how many bytes
    /// of the disk that frees. Guests that run keep their file.
    ///
    /// # Errors
    /// [`OciCode::NotFound`], and those of removing.
    pub fn remove(&self, name: &str) -> Result<u64, OciError> {
        self.forget_download();
        let _lock = self.lock("lock")?;
        let mut names = self.names();
        let Some(id) = names.remove(name) else {
            return self.find(name).map(|_| 0);
        };
        self.set_names(&names)?;
        self.drop_unnamed(Some(id), &names)
    }

    /// Lets a name lead to an image, and removes what it led to before.
    fn set_name(&self, name: &str, id: &str) -> Result<(), OciError> {
        let mut names = self.names();
        let old = names.insert(name.to_owned(), id.to_owned());
        self.set_names(&names)?;
        self.drop_unnamed(old, &names).map(drop)
    }

    fn drop_unnamed(
        &self,
        id: Option<String>,
        names: &BTreeMap<String, String>,
    ) -> Result<u64, OciError> {
        let Some(id) = id.filter(|id| !names.values().any(|known| known == id)) else {
            return Ok(0);
        };
        let folder = self.image_folder(&id);
        let bytes = if folder.exists() {
            bytes_in(&folder).map_err(from_cache)?
        } else {
            0
        };
        remove(&folder).map_err(from_cache)?;
        Ok(bytes)
    }

    fn image_folder(&self, id: &str) -> PathBuf {
        self.folder.join("images").join(id)
    }

    fn names(&self) -> BTreeMap<String, String> {
        let text = fs::read(self.folder.join(NAMES)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn set_names(&self, names: &BTreeMap<String, String>) -> Result<(), OciError> {
        write_json(&self.folder.join(NAMES), names)
    }

    /// An empty folder for a download, and the lock of the one download at a time.
    #[cfg(feature = "registry")]
    pub(crate) fn download_folder(&self) -> Result<(PathBuf, File), OciError> {
        let lock = self.lock(DOWNLOAD_LOCK)?;
        let folder = self.folder.join(DOWNLOAD);
        remove(&folder).map_err(from_cache)?;
        make_folder(&folder).map_err(from_cache)?;
        Ok((folder, lock))
    }

    /// Removes what a killed process left of its download.
    fn forget_download(&self) {
        let lock = File::open(self.folder.join(DOWNLOAD_LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            // The next download empties what cannot be removed now.
            let _ = remove(&self.folder.join(DOWNLOAD));
        }
    }

    /// Waits until no other process holds the lock; released on drop.
    fn lock(&self, name: &str) -> Result<File, OciError> {
        let path = self.folder.join(name);
        let failed = |error: std::io::Error| OciError::io(path.display().to_string(), &error);
        let mut options = File::options();
        let options = options.create(true).write(true).truncate(false);
        let file = options.open(&path).map_err(failed)?;
        file.lock().map_err(failed)?;
        Ok(file)
    }
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), OciError> {
    let text = serde_json::to_vec_pretty(value);
    let text = text.map_err(|error| OciError::io(path.display().to_string(), &error.into()))?;
    write_whole(path, &text).map_err(from_cache)
}

fn from_cache(error: ImageError) -> OciError {
    let ImageError {
        subject,
        reason,
        help,
        ..
    } = error;
    OciError {
        help,
        ..OciError::new(OciCode::Io, subject, reason)
    }
}

/// Checks the name of an image: letters, digits, `.`, `-`, `_` and `:`, at most 64 bytes,
/// beginning with a letter or digit.
///
/// # Errors
/// [`OciCode::Name`].
pub fn check_name(name: &str) -> Result<(), OciError> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
    let first = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    if first && name.len() <= MAX_NAME && name.bytes().all(good) {
        return Ok(());
    }
    let text = "not a name of letters, digits, ., -, _ and :, at most 64";
    Err(OciError::new(OciCode::Name, format!("{name:?}"), text).help("--name NAME"))
}

/// The given name, or the last part of the archive's name for it, or of the file.
fn name_of(given: Option<&str>, reference: Option<&str>, path: &Path) -> Result<String, OciError> {
    if let Some(name) = given {
        return Ok(name.to_owned());
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let reference = reference.unwrap_or(&stem);
    let name = reference.rsplit('/').next().unwrap_or(reference);
    // What a layout knows by a bare tag is called by its file.
    let name = if matches!(name, "latest") {
        &*stem
    } else {
        name
    };
    let name = name.strip_suffix(":latest").unwrap_or(name);
    check_name(name)?;
    Ok(name.to_owned())
}
