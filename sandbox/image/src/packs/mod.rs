//! Packs: programs beyond the image's, each pack one layer that guests can be started with.
//!
//! A pack is made of Debian's packages with all that they need and the image lacks. Its
//! result is one read-only file system ([`LAYER`]) and a small description
//! ([`DESCRIPTION`]). Nothing of a package runs while it is made: what maintainer scripts
//! would do is done by tables here.

mod files;
mod index;
mod table;

pub use a99_sandbox_cache::packs::{DESCRIPTION, LAYER};
pub use files::Member;
pub use table::names;

use super::apt::Apt;
use super::cache::{Cache, make_folder, write_whole};
use super::digest;
use super::entry::Entry;
use super::error::{At, ErrorCode, ImageError};
use super::lock::{self, LockFile};
use super::packages::{self, Arch, Wanted};
use super::progress::Progress;
use super::store::{Packages, Versions};
use super::{Options, step, tools};
use a99_sandbox_cache::packs::is_name;
use files::PackFiles;
use index::Index;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;
use table::{ABSENT, Archive, NAMED};

/// Folder of the packs' lock files, beside the image's.
const LOCKS: &str = "packs";

/// Most packages that a caller may name for a pack.
const MAX_ROOTS: usize = 100;

/// A pack to build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pack {
    name: String,
    roots: Vec<String>,
    without: &'static [&'static str],
    archive: Option<&'static Archive>,
    /// The lock file that this library was built with.
    lock: Option<&'static str>,
}

/// Description of a finished pack.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Description {
    /// Name of the pack.
    pub name: String,
    /// SHA-256 of its file system, in hexadecimal.
    pub sha256: String,
    /// Size of its file system in bytes.
    pub bytes: u64,
    /// Packages that it consists of.
    pub packages: Vec<Member>,
}

impl Pack {
    /// Returns the pack of this name from the table ([`names`]).
    pub fn named(name: &str) -> Option<Self> {
        let row = NAMED.iter().find(|row| row.name == name)?;
        Some(Self {
            name: row.name.to_owned(),
            roots: row.packages.iter().map(|&name| name.to_owned()).collect(),
            without: row.without,
            archive: row.archive,
            lock: Some(row.lock),
        })
    }

    /// Makes a pack of the caller's own packages.
    ///
    /// # Errors
    /// [`ErrorCode::UnexpectedPackage`] for names that are none.
    pub fn of(name: &str, packages: &[String]) -> Result<Self, ImageError> {
        let is_package = |name: &str| {
            let allowed =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
            name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(allowed)
        };
        let refuse = |subject: &str, reason: &str| {
            Err(ImageError::new(
                ErrorCode::UnexpectedPackage,
                subject,
                reason,
            ))
        };
        if !is_name(name) || Self::named(name).is_some() {
            return refuse(name, "cannot name a pack: small letters and digits can");
        }
        if packages.is_empty() || packages.len() > MAX_ROOTS {
            return refuse(name, "a pack has 1 to 100 packages");
        }
        match packages.iter().find(|package| !is_package(package)) {
            Some(package) => refuse(package, "is no name of a package"),
            None => Ok(Self {
                name: name.to_owned(),
                roots: packages.to_vec(),
                without: &[],
                archive: None,
                lock: None,
            }),
        }
    }

    /// Name of the pack.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the guest has this package already, or does without it.
    fn is_present(&self, name: &str) -> bool {
        let base = packages::root_files().into_iter();
        let mut base = base.chain(packages::disk_files());
        ABSENT.contains(&name) || self.without.contains(&name) || base.any(|w| w.name == name)
    }

    /// Path of the lock file in the clone that the options name.
    fn lock_path(&self, options: &Options) -> Option<PathBuf> {
        let folder = options.lock_file.as_ref()?.parent()?.join(LOCKS);
        self.lock?;
        Some(folder.join(format!("{}.json", self.name)))
    }

    /// Versions of the pack's packages: the locked ones, or what the index has now.
    fn lock(
        &self,
        cache: &Cache,
        options: &Options,
        progress: &mut dyn Progress,
    ) -> Result<LockFile, ImageError> {
        let path = self.lock_path(options);
        let committed = match (&path, self.lock) {
            (Some(path), _) if path.exists() => Some(fs::read_to_string(path).at(path)?),
            (_, Some(text)) if !text.is_empty() => Some(text.to_owned()),
            _ => None,
        };
        match (committed, options.versions) {
            (Some(text), Versions::Preferred | Versions::Locked) => LockFile::parse(&text),
            (None, Versions::Locked) => {
                let reason = "its packages are not locked";
                Err(ImageError::new(ErrorCode::Lock, &self.name, reason))
            }
            _ => {
                let apt = Apt::fetch(&cache.folder("apt")?, progress)?;
                let index = Index::parse(&apt.index(Arch::Riscv64)?);
                let mut lock = LockFile::empty();
                lock.packages = index.resolve(&self.roots, &|name| self.is_present(name))?;
                if lock.packages.is_empty() {
                    let reason = "the image has all of its packages";
                    let error = ImageError::new(ErrorCode::UnexpectedPackage, &self.name, reason);
                    return Err(error);
                }
                lock.packages.sort();
                if let (Versions::Updated, Some(path)) = (options.versions, &path) {
                    if let Some(folder) = path.parent() {
                        make_folder(folder)?;
                    }
                    write_whole(path, lock.text().as_bytes())?;
                }
                Ok(lock)
            }
        }
    }
}

/// Builds packs that are not in the cache, after waiting for any other builder, and records
/// them for `Cache::pack`.
///
/// # Errors
/// Every failure has a stable code; packs finished before it stay in the cache.
pub fn build(
    cache: &Cache,
    options: &Options,
    packs: &[Pack],
    progress: &mut dyn Progress,
) -> Result<Vec<Entry>, ImageError> {
    let _building = cache.lock(progress)?;
    tools::ensure(progress)?;
    let mut built = Vec::new();
    for pack in packs {
        let lock = pack.lock(cache, options, progress)?;
        let wanted: Vec<Wanted> = lock
            .packages
            .iter()
            .map(|p| Wanted::locked(&p.name))
            .collect();
        // Python's modules are compiled by the packages that compile the image's.
        let mut all = LockFile::parse(lock::COMMITTED)?;
        for (wanted, locked) in wanted.iter().zip(lock.packages) {
            all.set(*wanted, locked);
        }
        let versions = match options.versions {
            Versions::Updated => Versions::Preferred,
            versions => versions,
        };
        let mut store = Packages::open(cache, all, versions)?;
        let step = PackFiles::new(pack, wanted)?;
        let entry = step::run(cache, &mut store, &step, progress)?;
        cache.record_pack(&pack.name, &entry)?;
        built.push(entry);
    }
    Ok(built)
}

/// Reads the description of a pack.
///
/// # Errors
/// [`ErrorCode::Io`].
pub fn describe(entry: &Entry) -> Result<Description, ImageError> {
    let path = entry.path(DESCRIPTION);
    let text = fs::read(&path).at(&path)?;
    serde_json::from_slice(&text).map_err(|error| ImageError::io(&path, &error.into()))
}

/// Hash that a description names.
fn hash_of(path: &std::path::Path) -> Result<String, ImageError> {
    digest::of_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        let packages = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        let good = packages(&["nodejs", "libstdc++6", "python3.13"]);
        assert_eq!(Pack::of("mine", &good).unwrap().name(), "mine");
        for (name, list) in [
            ("py", &good),
            ("", &good),
            ("a-b", &good),
            ("../x", &good),
            ("x", &packages(&[])),
            ("x", &packages(&["a b"])),
            ("x", &packages(&["-o"])),
            ("x", &packages(&["a/../b"])),
        ] {
            let error = Pack::of(name, list).unwrap_err();
            assert_eq!(error.code, ErrorCode::UnexpectedPackage, "{name} {list:?}");
        }
    }

    #[test]
    fn the_lock_files_have_what_the_packs_name() {
        for name in names() {
            let pack = Pack::named(name).unwrap();
            let lock = LockFile::parse(pack.lock.unwrap()).unwrap();
            let has = |root: &String| lock.packages.iter().any(|locked| locked.name == *root);
            for root in &pack.roots {
                assert!(has(root) || pack.is_present(root), "{name}: {root}");
            }
            for locked in &lock.packages {
                assert!(!pack.is_present(&locked.name), "{name}: {}", locked.name);
            }
        }
        assert_eq!(Pack::named("none"), None);
    }
}
